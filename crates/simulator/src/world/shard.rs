//! A part of the world that one thread drives: some of the machines, and all that is due for them.

use std::cmp::Ordering;
use std::sync::Arc;

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::{Ctx, Input, KeyOf, Message, Out, Protocol};

use crate::network::Carried;

use super::cell::{Cell, Outside, Rare, Waiting, Write};
use super::slab::Slab;
use super::wheel::{Due, Wheel};
use super::{Saw, Setup, Sight};

/// Some of the machines, and all that is due for them.
pub(super) struct Shard<P: Protocol> {
    pub cells: Vec<Cell<P>>,
    pub engine: Engine<P>,
}

/// All of a shard but its machines.
pub(super) struct Engine<P: Protocol> {
    pub setup: Arc<Setup<P>>,
    /// This shard's number, and how many there are: machine i lives in shard i mod `shards`.
    pub number: u32,
    pub shards: u32,
    wheel: Wheel,
    letters: Slab<Letter<P>>,
    alarms: Slab<Alarm<P>>,
    turns: Slab<(u32, Turn<P>)>,
    /// Machines that have got something to do since the memory of others was fetched, and will come up soon.
    soon: Vec<u32>,
    /// What was sent to machines of other shards, by shard.
    pub outbox: Vec<Vec<Post<P>>>,
    /// Messages and bytes by kind.
    pub traffic: Vec<(u64, u64)>,
    pub sights: Vec<Sight<P>>,
    pub handled: u64,
}

/// A message on its way to a machine of this shard.
struct Letter<P: Protocol> {
    from: u32,
    count: u32,
    message: P::Message,
}

/// A timer of a machine.
struct Alarm<P: Protocol> {
    life: u32,
    count: u32,
    timer: P::Timer,
}

/// What befalls a machine, other than messages and timers.
#[derive(Clone, Debug)]
pub(super) enum Turn<P: Protocol> {
    /// The user asks for something.
    Command(P::Command),
    /// The machine stops at once; what was not durable is lost.
    Crash,
    /// The machine stops in the middle of a batch: after so many more effects.
    CrashAfter(u32),
    /// The machine starts anew from its disk.
    Restart,
    /// The disk is lost.
    WipeDisk,
    /// A write of that life is durable.
    Durable(u32),
    /// An action of that life has ended.
    Done(u32, P::Outcome),
}

/// A message on its way to a machine of another shard.
pub(super) struct Post<P: Protocol> {
    pub at: Time,
    pub to: u32,
    from: u32,
    count: u32,
    message: P::Message,
}

/// How many inputs ahead memory is fetched: as many misses as a core can wait for at once, several times over.
const AHEAD: usize = 32;
/// Fewer machines than this stay in the processor's own memory, and nothing is fetched ahead.
const FETCHED_FROM: usize = 2_000;

/// The lowest two bits of `Due::what` say in which slab the content lies.
const LETTER: u32 = 0;
const ALARM: u32 = 1;
const TURN: u32 = 2;

impl<P: Protocol> Shard<P> {
    pub fn new(setup: Arc<Setup<P>>, number: u32, shards: u32, machines: usize) -> Shard<P> {
        let wheel = Wheel::new(machines, setup.network.least_delay());
        let mut engine = Engine {
            setup,
            number,
            shards,
            wheel,
            letters: Slab::new(),
            alarms: Slab::new(),
            turns: Slab::new(),
            soon: Vec::new(),
            outbox: (0..shards).map(|_| Vec::new()).collect(),
            traffic: vec![(0, 0); P::Message::KINDS.len()],
            sights: Vec::new(),
            handled: 0,
        };
        engine.alarms.reserve(machines);
        Shard { cells: Vec::with_capacity(machines), engine }
    }

    /// Puts a turn of fate on the agenda.
    pub fn plan(&mut self, at: Time, local: u32, turn: Turn<P>) {
        let count = self.cells[local as usize].outside.next_count();
        self.engine.plan(at, local, count, turn);
    }

    /// Takes in what other shards sent.
    pub fn receive(&mut self, post: &mut Vec<Post<P>>) {
        for Post { at, to, from, count, message } in post.drain(..) {
            self.engine.deliver(at, to / self.engine.shards, Letter { from, count, message });
        }
    }

    /// When the next thing is due here, if before `until`.
    pub fn next_before(&mut self, until: Time) -> Option<Time> {
        let Engine { wheel, letters, alarms, turns, .. } = &mut self.engine;
        wheel.next_before(until, |a, b| tie(letters, alarms, turns, a, b))
    }

    /// Handles all that is due before `until`.
    pub fn run_before(&mut self, until: Time) {
        let mut fetched = 0;
        let fetches = self.cells.len() >= FETCHED_FROM;
        loop {
            if fetches && fetched == 0 {
                fetched = self.fetch_ahead(until);
            }
            fetched = fetched.saturating_sub(1);
            let Engine { wheel, letters, alarms, turns, .. } = &mut self.engine;
            let Some(due) = wheel.take_before(until, |a, b| tie(letters, alarms, turns, a, b)) else {
                return;
            };
            self.engine.handled += 1;
            self.handle(due);
            if fetches {
                self.fetch_soon();
            } else {
                self.engine.soon.clear();
            }
        }
    }

    /// Reads what the next inputs will need, and says how many they are.
    ///
    /// Machines come up in random order, and waiting for the memory of each in turn would take most of the time; asked
    /// for all at once, it comes at once.
    fn fetch_ahead(&mut self, until: Time) -> usize {
        self.next_before(until);
        let Shard { cells, engine } = self;
        let coming = || engine.wheel.coming().take(AHEAD);
        let mut seen = 0;
        for due in coming() {
            seen ^= u64::from(cells[due.node as usize].outside.up);
            seen ^= match due.what & 3 {
                LETTER => u64::from(engine.letters.get(due.what >> 2).count),
                ALARM => u64::from(engine.alarms.get(due.what >> 2).count),
                _ => 0,
            };
        }
        for due in coming() {
            seen ^= cells[due.node as usize].core.glance();
        }
        std::hint::black_box(seen);
        coming().count()
    }

    /// Reads what those will need who have just got something to do among the next inputs: too late for
    /// [`Self::fetch_ahead`], but the processor need not wait for it before it goes on.
    fn fetch_soon(&mut self) {
        let Shard { cells, engine } = self;
        for node in engine.soon.drain(..) {
            std::hint::black_box(cells[node as usize].core.glance());
        }
    }

    fn handle(&mut self, due: Due) {
        let cell = &mut self.cells[due.node as usize];
        let place = due.what >> 2;
        match due.what & 3 {
            LETTER => {
                let Letter { from, message, .. } = self.engine.letters.take(place);
                if cell.outside.up {
                    let from = node_id(from);
                    self.engine.input(cell, due.at, due.node, Input::Message { from, message });
                }
            }
            ALARM => {
                let Alarm { life, timer, .. } = self.engine.alarms.take(place);
                if cell.outside.up && cell.outside.life == life {
                    self.engine.input(cell, due.at, due.node, Input::Timer(timer));
                }
            }
            _ => {
                let (_, turn) = self.engine.turns.take(place);
                self.engine.turn(cell, due.at, due.node, turn);
            }
        }
    }
}

impl<P: Protocol> Engine<P> {
    fn index(&self, local: u32) -> u32 {
        local * self.shards + self.number
    }

    fn put(&mut self, at: Time, node: u32, what: u32) {
        if self.wheel.put(Due { at, node, what }) {
            self.soon.push(node);
        }
    }

    fn deliver(&mut self, at: Time, local: u32, letter: Letter<P>) {
        let place = self.letters.put(letter);
        self.put(at, local, place << 2 | LETTER);
    }

    fn plan(&mut self, at: Time, local: u32, count: u32, turn: Turn<P>) {
        let place = self.turns.put((count, turn));
        self.put(at, local, place << 2 | TURN);
    }

    /// Gives a node its input and carries out what it asks for.
    fn input(&mut self, cell: &mut Cell<P>, now: Time, local: u32, input: Input<P>) {
        let index = self.index(local);
        let Cell { core, chance, outside } = cell;
        outside.look();
        let read = outside.local(now);
        let mut effects = Effects { engine: self, outside, now, local, index };
        core.handle(input, &mut Ctx::new(read, node_id(index), chance, &mut effects));
        if cell.outside.peculiar().is_some_and(|rare| rare.effects_left == Some(0)) {
            self.crash(cell, now, local);
        }
    }

    fn turn(&mut self, cell: &mut Cell<P>, now: Time, local: u32, turn: Turn<P>) {
        match turn {
            Turn::Command(command) => {
                if cell.outside.up {
                    self.input(cell, now, local, Input::Command(command));
                }
            }
            Turn::Crash => self.crash(cell, now, local),
            Turn::CrashAfter(effects) => cell.outside.rare().effects_left = Some(effects),
            Turn::Restart => self.restart(cell, now, local),
            Turn::WipeDisk => {
                cell.outside.rare().disk.clear();
                self.see(now, local, Saw::DiskLost);
            }
            Turn::Durable(life) => {
                if cell.outside.up && cell.outside.life == life {
                    self.durable(cell, now, local);
                }
            }
            Turn::Done(life, outcome) => {
                let lives = cell.outside.up && cell.outside.life == life;
                let executor = cell.outside.rare_if_any_mut().and_then(|rare| rare.executor.as_mut());
                if lives && executor.is_none_or(|executor| executor.holds(now, &outcome)) {
                    self.see(now, local, Saw::Done(outcome.clone()));
                    self.input(cell, now, local, Input::Done(outcome));
                }
            }
        }
    }

    /// What was not durable is lost, and so are the processes; letters to a machine that is down find nobody.
    fn crash(&mut self, cell: &mut Cell<P>, now: Time, local: u32) {
        if !cell.outside.up {
            return;
        }
        cell.outside.up = false;
        cell.outside.life += 1;
        if let Some(rare) = cell.outside.rare_if_any_mut() {
            rare.waiting.clear();
            rare.executor = None;
            rare.effects_left = None;
        }
        self.see(now, local, Saw::Crash);
    }

    fn restart(&mut self, cell: &mut Cell<P>, now: Time, local: u32) {
        // One that was to die in the middle of its next batch, and got none.
        self.crash(cell, now, local);
        cell.outside.up = true;
        let id = node_id(self.index(local));
        let records = cell.outside.rare_if_any().into_iter().flat_map(|rare| rare.disk.values().cloned());
        cell.core = P::restore(&(self.setup.configure)(id), id, records);
        self.see(now, local, Saw::Restart);
        self.input(cell, now, local, Input::Boot);
    }

    /// Writes up to now are durable: lets out what waited for them, up to the next write that is not.
    fn durable(&mut self, cell: &mut Cell<P>, now: Time, local: u32) {
        let index = self.index(local);
        loop {
            let rare = cell.outside.rare();
            match rare.waiting.front() {
                None => return,
                Some(Waiting::Write { durable_at, .. }) if *durable_at > now => return,
                Some(_) => {}
            }
            let waiting = rare.waiting.pop_front().expect("there is one");
            if let Waiting::Write { write, .. } = waiting {
                self.write(cell.outside.rare(), now, local, write);
                continue;
            }
            let mut effects = Effects { engine: self, outside: &mut cell.outside, now, local, index };
            effects.let_out(waiting);
        }
    }

    /// The write is durable.
    fn write(&mut self, rare: &mut Rare<P>, now: Time, local: u32, write: Write<P>) {
        if self.setup.watch {
            self.see(
                now,
                local,
                match &write {
                    Write::Save(record) => Saw::Save(record.clone()),
                    Write::Erase(key) => Saw::Erase(key.clone()),
                },
            );
        }
        rare.write(write);
    }

    fn see(&mut self, at: Time, local: u32, saw: Saw<P>) {
        if self.setup.watch {
            let node = node_id(self.index(local));
            self.sights.push(Sight { at, node, saw });
        }
    }
}

/// The order of two entries for one machine at one time: what the world does first, then by (sender, its count).
fn tie<P: Protocol>(
    letters: &Slab<Letter<P>>,
    alarms: &Slab<Alarm<P>>,
    turns: &Slab<(u32, Turn<P>)>,
    a: u32,
    b: u32,
) -> Ordering {
    let key = |what: u32| match what & 3 {
        LETTER => {
            let letter = letters.get(what >> 2);
            (2, letter.from, letter.count)
        }
        // A machine's timers sort as if it had sent them to itself, after what others say.
        ALARM => (3, 0, alarms.get(what >> 2).count),
        _ => (1, 0, turns.get(what >> 2).0),
    };
    key(a).cmp(&key(b))
}

/// Carries out what a node asks for.
struct Effects<'a, P: Protocol> {
    engine: &'a mut Engine<P>,
    outside: &'a mut Outside<P>,
    now: Time,
    local: u32,
    index: u32,
}

impl<P: Protocol> Effects<'_, P> {
    /// Whether the machine lives to see this effect; counts down to a crash in the middle of a batch.
    fn alive(&mut self) -> bool {
        let Some(left) = self.outside.peculiar().and_then(|rare| rare.effects_left.as_mut()) else {
            return true;
        };
        let alive = *left > 0;
        *left = left.saturating_sub(1);
        alive
    }

    /// Queues an effect behind the writes that are not durable yet; gives it back if there are none.
    fn after_writes(&mut self, waiting: Waiting<P>) -> Option<Waiting<P>> {
        match self.outside.peculiar() {
            Some(rare) if !rare.waiting.is_empty() => {
                rare.waiting.push_back(waiting);
                None
            }
            _ => Some(waiting),
        }
    }

    fn write(&mut self, write: Write<P>) {
        if !self.alive() {
            return;
        }
        let fsync = self.engine.setup.fsync(self.index as usize, self.now);
        let rare = self.outside.rare();
        if fsync == Span::ZERO && rare.waiting.is_empty() {
            self.engine.write(rare, self.now, self.local, write);
            return;
        }
        let durable_at = self.now + fsync;
        rare.waiting.push_back(Waiting::Write { durable_at, write });
        let (life, count) = (self.outside.life, self.outside.next_count());
        self.engine.plan(durable_at, self.local, count, Turn::Durable(life));
    }

    fn let_out(&mut self, waiting: Waiting<P>) {
        match waiting {
            Waiting::Send { to, message } => self.post(to, message),
            Waiting::Act(action) => self.perform(action),
            Waiting::Report(event) => self.engine.see(self.now, self.local, Saw::Event(event)),
            Waiting::Write { .. } => unreachable!("writes go to the disk"),
        }
    }

    fn post(&mut self, to: NodeId, message: P::Message) {
        if self.engine.setup.story {
            self.engine.see(self.now, self.local, Saw::Send(to, message.clone()));
        }
        if to == node_id(self.index) {
            // To oneself: at once, never lost, and no traffic.
            let (from, count) = (self.index, self.outside.next_count());
            self.engine.deliver(self.now, self.local, Letter { from, count, message });
            return;
        }
        let kind = &mut self.engine.traffic[message.kind()];
        kind.0 += 1;
        kind.1 += message.bytes();
        let Some(to) = to.0.checked_sub(1).map(|to| to as u32).filter(|&to| to < self.engine.setup.machines)
        else {
            return;
        };
        let network = &self.engine.setup.network;
        let carried = network.carry(self.now, self.index as usize, to as usize, &mut self.outside.luck);
        match carried {
            Carried::Lost => {}
            Carried::Once(delay) => self.dispatch(delay, to, message),
            Carried::Twice(delay, again) => {
                self.dispatch(delay, to, message.clone());
                self.dispatch(again, to, message);
            }
        }
    }

    fn dispatch(&mut self, delay: Span, to: u32, message: P::Message) {
        let at = self.now + delay;
        let count = self.outside.next_count();
        let from = self.index;
        let shard = to % self.engine.shards;
        if shard == self.engine.number {
            self.engine.deliver(at, to / self.engine.shards, Letter { from, count, message });
        } else {
            self.engine.outbox[shard as usize].push(Post { at, to, from, count, message });
        }
    }

    fn perform(&mut self, action: P::Action) {
        self.engine.see(self.now, self.local, Saw::Act(action.clone()));
        let id = node_id(self.index);
        let setup = Arc::clone(&self.engine.setup);
        let life = self.outside.life;
        let rare: &mut Rare<P> = self.outside.rare();
        let executor = rare.executor.get_or_insert_with(|| (setup.executor)(id));
        let outcomes = executor.perform(self.now, &rare.clock, action);
        for (after, outcome) in outcomes {
            let count = self.outside.next_count();
            self.engine.plan(self.now + after, self.local, count, Turn::Done(life, outcome));
        }
    }
}

impl<P: Protocol> Out<P> for Effects<'_, P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        if self.outside.peculiar().is_none_or(|rare| rare.lets_out_at_once()) {
            self.post(to, message);
        } else if self.alive()
            && let Some(now) = self.after_writes(Waiting::Send { to, message })
        {
            self.let_out(now);
        }
    }

    fn wake(&mut self, at: Time, timer: P::Timer) {
        // A timer never leaves the machine, so it waits for no write.
        let at = self.outside.world_at_local(at);
        let alarm = Alarm { life: self.outside.life, count: self.outside.next_count(), timer };
        let place = self.engine.alarms.put(alarm);
        self.engine.put(at.max(self.now), self.local, place << 2 | ALARM);
    }

    fn save(&mut self, record: P::Record) {
        self.write(Write::Save(record));
    }

    fn erase(&mut self, key: KeyOf<P>) {
        self.write(Write::Erase(key));
    }

    fn act(&mut self, action: P::Action) {
        if self.alive()
            && let Some(now) = self.after_writes(Waiting::Act(action))
        {
            self.let_out(now);
        }
    }

    fn report(&mut self, event: P::Event) {
        if self.alive()
            && let Some(now) = self.after_writes(Waiting::Report(event))
        {
            self.let_out(now);
        }
    }
}

pub(super) fn node_id(index: u32) -> NodeId {
    NodeId(u64::from(index) + 1)
}
