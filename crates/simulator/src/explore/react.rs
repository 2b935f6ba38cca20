//! What a node does upon something that befalls it: computed once for each node, thing and time, then looked up.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand_xoshiro::rand_core::SeedableRng;
use shoal_model::{NodeId, Time};
use shoal_protocols::{Chance, Ctx, Input, KeyOf, Out};

use super::print::{Pass, Print, print};
use super::state::{Effect, Letter, Site, Tables};
use super::{Clocks, Disks, Explorable, Explorer, Monitor, node_id};
use crate::world::{Saw, Sight};

/// What can befall a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stimulus {
    /// It starts, with what its disk holds.
    Start,
    /// It stops.
    Crash,
    /// This letter comes in.
    Letter(u32),
    /// Its next timer fires.
    Timer,
    /// Its clock advances.
    Wait,
    /// This errand ends in this way.
    Done { errand: u16, outcome: u16 },
    /// This command of the script is given.
    Command(u16),
    /// Its oldest write becomes durable.
    Durable,
}

/// What follows from it.
pub(super) struct Reaction<P: Explorable> {
    /// What the node is then.
    pub site: u32,
    /// What leaves it, in order.
    pub effects: Box<[Outward<P>]>,
    /// How a crash may cut this short.
    pub cuts: Box<[Snap]>,
}

/// An effect that others can notice.
pub(super) enum Outward<P: Explorable> {
    Send(u32),
    See(Sight<P>),
}

/// A crash in the middle of a reaction.
#[derive(Clone, Copy)]
pub(super) struct Snap {
    /// How many of the effects asked for happened.
    pub happened: u16,
    /// How many of those left the node.
    pub left: u16,
    /// What remains of the node.
    pub site: u32,
}

/// All reactions that have been computed.
pub(super) struct Reactions<P: Explorable> {
    all: Vec<Result<Reaction<P>, String>>,
    numbers: HashMap<Print, u32, Pass>,
    /// The chance of each node, as it is at every input.
    chances: Vec<Chance>,
}

impl<P: Explorable> Reactions<P> {
    pub fn new(nodes: usize) -> Reactions<P> {
        let chances = (0..nodes as u64).map(Chance::seed_from_u64).collect();
        Reactions { all: Vec::new(), numbers: HashMap::default(), chances }
    }

    /// The reaction with this number; an error says how the core broke.
    pub fn get(&self, number: u32) -> Result<&Reaction<P>, &str> {
        self.all[number as usize].as_ref().map_err(String::as_str)
    }

    /// The number of the reaction of this site.
    pub fn find<M: Monitor<P>>(
        &mut self,
        explorer: &Explorer<P, M>,
        tables: &mut Tables<P, M>,
        site: u32,
        stimulus: Stimulus,
        now: Time,
    ) -> u32 {
        let print = print(4, &(site, stimulus, now));
        if let Some(&number) = self.numbers.get(&print) {
            return number;
        }
        let reaction = self
            .ask(explorer, tables, site, stimulus, now)
            .map(|asked| carry_out(explorer, tables, asked, stimulus, now));
        let number = self.all.len() as u32;
        self.all.push(reaction);
        self.numbers.insert(print, number);
        number
    }

    /// Lets a copy of the site take what befalls it, without carrying out what it asks for.
    pub fn ask<M: Monitor<P>>(
        &self,
        explorer: &Explorer<P, M>,
        tables: &Tables<P, M>,
        site: u32,
        stimulus: Stimulus,
        now: Time,
    ) -> Result<Asked<P>, String> {
        let mut site = tables.sites.get(site).clone();
        if explorer.clocks == Clocks::Own {
            site.clock = now;
        }
        let input = match stimulus {
            Stimulus::Crash => return Ok(Asked { site: site.remains(), effects: Vec::new() }),
            Stimulus::Wait => return Ok(Asked { site, effects: Vec::new() }),
            Stimulus::Durable => {
                let more = site.waiting.iter().skip(1).position(Effect::is_write);
                let freed = more.map_or(site.waiting.len(), |more| more + 1);
                let effects = site.waiting.drain(..freed).collect();
                return Ok(Asked { site, effects });
            }
            Stimulus::Start => Input::Boot,
            Stimulus::Letter(letter) => {
                let Letter { from, message, .. } = tables.letters.get(letter);
                Input::Message { from: node_id(*from), message: message.clone() }
            }
            Stimulus::Timer => Input::Timer(site.timers.remove(0).1),
            Stimulus::Done { errand, outcome } => {
                let errand = site.errands.remove(usize::from(errand));
                let mut outcomes = (explorer.outcomes)(node_id(site.node), &errand.action);
                Input::Done(outcomes.swap_remove(usize::from(outcome)))
            }
            Stimulus::Command(command) => Input::Command(explorer.script[usize::from(command)].1.clone()),
        };
        self.handle(explorer, site, input, now)
    }

    fn handle<M: Monitor<P>>(
        &self,
        explorer: &Explorer<P, M>,
        mut site: Site<P>,
        input: Input<P>,
        now: Time,
    ) -> Result<Asked<P>, String> {
        let me = node_id(site.node);
        let mut chance = self.chances[site.node].clone();
        let mut wishes = Wishes { effects: Vec::new(), timers: Vec::new() };
        // A core that breaks is dropped with its site, so nobody sees it half changed.
        let handled = catch_unwind(AssertUnwindSafe(|| {
            let core = site.core.get_or_insert_with(|| {
                P::restore(&explorer.configs[site.node], me, site.disk.values().cloned())
            });
            core.handle(input, &mut Ctx::new(now, me, &mut chance, &mut wishes));
        }));
        handled.map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("{me} panicked: {}", text.unwrap_or("without a message"))
        })?;
        for (at, timer) in wishes.timers {
            site.add_timer(at.max(now), timer);
        }
        Ok(Asked { site, effects: wishes.effects })
    }
}

/// A site that has taken an input, and what it asks for in consequence.
pub(super) struct Asked<P: Explorable> {
    pub site: Site<P>,
    pub effects: Vec<Effect<P>>,
}

/// Whether an effect has to wait until a write is durable.
pub(super) fn waits<P: Explorable>(
    disks: Disks,
    stimulus: Stimulus,
    site: &Site<P>,
    effect: &Effect<P>,
) -> bool {
    let slow = disks == Disks::Slow && stimulus != Stimulus::Durable;
    slow && (effect.is_write() || !site.waiting.is_empty())
}

fn carry_out<P: Explorable, M: Monitor<P>>(
    explorer: &Explorer<P, M>,
    tables: &mut Tables<P, M>,
    asked: Asked<P>,
    stimulus: Stimulus,
    now: Time,
) -> Reaction<P> {
    let Asked { mut site, effects } = asked;
    let node = node_id(site.node);
    let see = |saw| Outward::See(Sight { at: now, node, saw });
    let mut outward = Vec::new();
    match stimulus {
        Stimulus::Start => outward.push(see(Saw::Restart)),
        Stimulus::Crash => outward.push(see(Saw::Crash)),
        _ => {}
    }
    let mut cuts: Vec<Snap> = Vec::new();
    for (happened, effect) in effects.into_iter().enumerate() {
        if waits(explorer.disks, stimulus, &site, &effect) {
            site.waiting.push_back(effect);
            continue;
        }
        // A crash after the last effect is a move of its own.
        if explorer.faults.crashes > 0 {
            let (happened, left) = (happened as u16, outward.len() as u16);
            cuts.push(Snap { happened, left, site: tables.sites.put(site.remains()) });
        }
        match effect {
            Effect::Send(to, message) => {
                // Nobody there: the world drops it too.
                let Some(to) = index_of(to, tables.nodes) else { continue };
                let letter = Letter { from: site.node, to, message };
                outward.push(Outward::Send(tables.letters.put(letter)));
            }
            Effect::Save(record) => {
                outward.push(see(Saw::Save(record.clone())));
                site.save(record);
            }
            Effect::Erase(key) => {
                site.disk.remove(&key);
                outward.push(see(Saw::Erase(key)));
            }
            Effect::Act(action) => {
                let outcomes = (explorer.outcomes)(node, &action).len();
                if outcomes > 0 {
                    site.add_errand(action.clone(), outcomes);
                }
                outward.push(see(Saw::Act(action)));
            }
            Effect::Report(event) => outward.push(see(Saw::Event(event))),
        }
    }
    Reaction { site: tables.sites.put(site), effects: outward.into(), cuts: cuts.into() }
}

fn index_of(node: NodeId, nodes: usize) -> Option<usize> {
    let index = usize::try_from(node.0.checked_sub(1)?).ok()?;
    (index < nodes).then_some(index)
}

/// Takes down what a core asks for.
struct Wishes<P: Explorable> {
    effects: Vec<Effect<P>>,
    /// Apart, because a timer never leaves the node: it waits for no write, and no crash can come after it.
    timers: Vec<(Time, P::Timer)>,
}

impl<P: Explorable> Out<P> for Wishes<P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        self.effects.push(Effect::Send(to, message));
    }

    fn wake(&mut self, at: Time, timer: P::Timer) {
        self.timers.push((at, timer));
    }

    fn save(&mut self, record: P::Record) {
        self.effects.push(Effect::Save(record));
    }

    fn erase(&mut self, key: KeyOf<P>) {
        self.effects.push(Effect::Erase(key));
    }

    fn act(&mut self, action: P::Action) {
        self.effects.push(Effect::Act(action));
    }

    fn report(&mut self, event: P::Event) {
        self.effects.push(Effect::Report(event));
    }
}
