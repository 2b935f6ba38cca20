//! The node that has to bear it, with a driver that keeps its duties, and what must hold of it at any time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::SeedableRng;
use shoal_model::calendar::{Capacity, Interval, Key as Place, Snapshot};
use shoal_model::{Amount, Epoch, JobId, Machine, NodeId, Resources, Span, Time};
use shoal_protocols::commit::two_phase::{Brief as _, Message as Commit, Stage, Vote};
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{
    Action, Config, End, Event, Exit, JobMessage, Key, Message, Node, Outcome, Queue, Record, Task, Timer,
    config, handover,
};
use shoal_protocols::overlay::{self, Overlay, can, cyclon};
use shoal_protocols::scheduling::{aria, sample, tri_pronged};
use shoal_protocols::{Chance, Ctx, Input, Out, Protocol, Record as _};

use crate::words::{ME, Word};

/// A node that takes more inputs than this from one word talks to itself.
const INPUTS_MAX: usize = 2_000;
/// The neighbours of the node.
const CACHE: u8 = 8;

pub struct Subject {
    config: Config,
    node: Node,
    now: Time,
    chance: Chance,
    hands: Hands,
}

/// What the node asked for.
#[derive(Default)]
struct Hands {
    to_self: VecDeque<Message>,
    said: Vec<(NodeId, Message)>,
    timers: BTreeMap<(Time, u64), Timer>,
    count: u64,
    disk: BTreeMap<Key, Record>,
    started: Vec<Task>,
    moved: usize,
    told: Vec<Event>,
}

impl Out<Node> for Hands {
    fn send(&mut self, to: NodeId, message: Message) {
        self.moved += usize::from(matches!(message, Message::Aria(aria::Message::Notify { .. })));
        if to == ME { self.to_self.push_back(message) } else { self.said.push((to, message)) }
    }

    fn wake(&mut self, at: Time, timer: Timer) {
        self.count += 1;
        self.timers.insert((at, self.count), timer);
    }

    fn save(&mut self, record: Record) {
        self.disk.insert(record.key(), record);
    }

    fn erase(&mut self, key: Key) {
        self.disk.remove(&key);
    }

    fn act(&mut self, action: Action) {
        if let Action::Start { task, .. } = action {
            self.started.push(task);
        }
    }

    fn report(&mut self, event: Event) {
        self.told.push(event);
    }
}

impl Subject {
    pub fn new(recipe: config::Recipe) -> Subject {
        let cyclon = cyclon::Config { cache: CACHE, shuffle: 4, walk: 3, period_ms: 10_000, rests: 0 };
        Subject::over(cyclon.into(), recipe)
    }

    /// A node over another overlay.
    pub fn over(overlay: overlay::Config, recipe: config::Recipe) -> Subject {
        let config = config(overlay, recipe);
        let mut subject = Subject {
            node: Node::restore(&config, ME, std::iter::empty()),
            config,
            now: Time::from_secs(10),
            chance: Chance::seed_from_u64(1),
            hands: Hands::default(),
        };
        subject.input(Input::Boot);
        subject
    }

    /// Lets something happen to the node, and all that follows from it at once.
    pub fn hear(&mut self, word: Word) {
        match word {
            Word::Says(from, message) => self.input(Input::Message { from, message }),
            Word::Answers(place) => {
                let last =
                    self.hands.said.len().checked_sub(1 + place).map(|place| self.hands.said[place].clone());
                if let Some((from, said)) = last {
                    for message in self.answers(from, said) {
                        self.input(Input::Message { from, message });
                    }
                }
            }
            Word::Asks(command) => self.input(Input::Command(command)),
            Word::Ends(task, exit) => self.input(Input::Done(Outcome::unmeasured(task, exit))),
            Word::EndsStarted(place, exit) => {
                if let Some(&task) = self.hands.started.get(place) {
                    self.input(Input::Done(Outcome::unmeasured(task, exit)));
                }
            }
            Word::Timers(count) => (0..count).for_each(|_| self.next_timer()),
            Word::Passes(span) => {
                self.now += span;
                // What was due meanwhile comes late; what it asks for is for another time.
                let due = self.hands.timers.range(..=(self.now, u64::MAX)).count();
                (0..due.min(200)).for_each(|_| self.next_timer());
            }
            Word::Restarts(set_back) => {
                self.now = self.now - set_back;
                self.hands.timers.clear();
                self.hands.to_self.clear();
                self.node = Node::restore(&self.config, ME, self.hands.disk.values().cloned());
                self.input(Input::Boot);
            }
        }
        self.hands.said.drain(..self.hands.said.len().saturating_sub(50));
    }

    /// How many jobs were placed, for the fuzzer to know that it gets that far.
    pub fn placed(&self) -> usize {
        self.hands.told.iter().filter(|event| matches!(event, Event::Placed(..))).count()
    }

    /// How many jobs it has handed over.
    pub fn handed_over(&self) -> usize {
        let handed = |event: &&Event| matches!(event, Event::Ended(_, End::HandedOver(_)));
        self.hands.told.iter().filter(handed).count()
    }

    /// How many tasks the node has started.
    pub fn started(&self) -> usize {
        self.hands.started.len()
    }

    /// How often it has said that a job moves; each move may be spoken of several times.
    pub fn moved(&self) -> usize {
        self.hands.moved
    }

    /// What it keeps that others can fill, and how much of each there may be.
    pub fn queues(&self) -> Vec<Queue> {
        self.node.queues()
    }

    /// What must hold whatever was said.
    pub fn check(&self) -> Result<(), String> {
        let commit = self.node.commit().expect("the node takes jobs");
        overbooked(&self.node)?;
        for (lock, _) in commit.locks() {
            let place = commit.calendar().get(Place { job: lock.job, epoch: lock.epoch });
            let interval = Interval::starting(lock.start, lock.span);
            if place.map(|place| place.interval) != interval {
                return Err(format!("{lock:?} stands in the calendar as {place:?}"));
            }
            let startable = lock.brief.as_ref().is_none_or(|brief| brief.suits(lock.job, ME));
            if !startable {
                return Err(format!("{lock:?} can never start"));
            }
            let rivals = commit
                .locks()
                .any(|(other, _)| other.job == lock.job && other.coordinator != lock.coordinator);
            if rivals {
                return Err(format!("{:?} has two coordinators", lock.job));
            }
        }
        if commit.calendar().len() != commit.locks().count() {
            return Err("the calendar holds more than was promised".to_owned());
        }
        let neighbours: Vec<NodeId> = self.node.overlay().neighbours().collect();
        let few = match self.node.overlay() {
            Overlay::Cyclon(_) => neighbours.len() <= usize::from(CACHE),
            Overlay::BlatantS(_) | Overlay::Can(_) => true,
        };
        if neighbours.contains(&ME) || !few {
            return Err(format!("these are no neighbours: {neighbours:?}"));
        }
        if let Some(full) = self.queues().into_iter().find(|queue| queue.len > queue.most) {
            return Err(format!("{full:?}"));
        }
        self.check_zones()?;
        self.check_machine()?;
        self.check_disk()
    }

    /// Where the overlay is a CAN: what the node owns are zones of the space, and no cell is in two of them.
    fn check_zones(&self) -> Result<(), String> {
        let second = self.node.secondary().map(|second| second.can());
        for can in self.node.overlay().as_can().into_iter().chain(second) {
            let claims = can.claims();
            let sound = claims.iter().all(|claim| claim.zone.is_sound(can.config().space()));
            let apart = claims
                .iter()
                .enumerate()
                .all(|(place, claim)| claims[..place].iter().all(|other| !other.zone.overlaps(&claim.zone)));
            if !sound || !apart || claims.len() > can::CLAIMS_MAX {
                return Err(format!("these are no zones: {claims:?}"));
            }
        }
        Ok(())
    }

    /// Where jobs wait in a queue: what runs fits the machine, and what is free is what no job has.
    fn check_machine(&self) -> Result<(), String> {
        let Some(queue) = self.node.aria().map(|aria| aria.queue()) else { return Ok(()) };
        if queue.free().fits_in(&Resources::cores(2)) {
            return Ok(());
        }
        Err(format!("{:?} are free of two cores", queue.free()))
    }

    /// Whatever was promised durably is promised by the next life too, and no more than that.
    fn check_disk(&self) -> Result<(), String> {
        let next = Node::restore(&self.config, ME, self.hands.disk.values().cloned());
        let durable = |node: &Node| -> BTreeSet<(JobId, Epoch, Stage)> {
            let locks = node.commit().into_iter().flat_map(|commit| commit.locks());
            let kept = locks.filter(|(_, stage)| *stage > Stage::Held);
            kept.map(|(lock, stage)| (lock.job, lock.epoch, stage)).collect()
        };
        if durable(&next) != durable(&self.node) {
            return Err(format!("{:?} became {:?}", durable(&self.node), durable(&next)));
        }
        let owned = |node: &Node| node.owned().map(|(job, _)| job).collect::<Vec<_>>();
        if owned(&next) != owned(&self.node) {
            return Err("a job is lost".to_owned());
        }
        overbooked(&next)
    }

    fn input(&mut self, input: Input<Node>) {
        self.handle(input);
        let mut inputs = 0;
        while let Some(message) = self.hands.to_self.pop_front() {
            inputs += 1;
            assert!(inputs < INPUTS_MAX, "the node talks to itself: {message:?}");
            self.handle(Input::Message { from: ME, message });
        }
    }

    fn handle(&mut self, input: Input<Node>) {
        self.node.handle(input, &mut Ctx::new(self.now, ME, &mut self.chance, &mut self.hands));
    }

    fn next_timer(&mut self) {
        // Nobody waits for the end of time.
        let first = self.hands.timers.first_key_value().filter(|((at, _), _)| *at < Time::NEVER);
        if let Some((&(at, count), _)) = first {
            let timer = self.hands.timers.remove(&(at, count)).expect("just seen");
            self.now = self.now.max(at);
            self.input(Input::Timer(timer));
        }
    }

    /// What a sound node says to this.
    fn answers(&self, from: NodeId, said: Message) -> Vec<Message> {
        match said {
            Message::Commit(Commit::Prepare(prepare)) => {
                let (job, epoch) = (prepare.job, prepare.epoch);
                vec![Message::Commit(Commit::Vote { job, epoch, vote: Vote::Yes })]
            }
            Message::Commit(Commit::Commit { job, epoch, .. }) => {
                vec![Message::Commit(Commit::Committed { job, epoch })]
            }
            Message::Commit(Commit::Confirm { job, epoch }) => self.run(from, job, epoch),
            Message::Commit(Commit::Release { job, upto }) => {
                vec![Message::Commit(Commit::Released { job, upto })]
            }
            Message::Commit(Commit::Vote { job, epoch, vote: Vote::Yes } | Commit::Ask { job, epoch }) => {
                vec![Message::Commit(Commit::Confirm { job, epoch })]
            }
            Message::Commit(Commit::Committed { job, epoch }) => {
                vec![Message::Commit(Commit::Confirm { job, epoch })]
            }
            Message::Heartbeat(heartbeat::Message::Ping(number)) => {
                vec![Message::Heartbeat(heartbeat::Message::Pong(number))]
            }
            Message::Sample(sample::Message::Probe { job, round, .. }) => {
                let capacity = Capacity::constant(Resources::cores(2)).expect("in range");
                let calendar = Snapshot::from_steps(1, capacity, &[], None).ok();
                vec![Message::Sample(sample::Message::Offer { job, round, calendar: calendar.map(Box::new) })]
            }
            Message::Aria(aria::Message::Assign { job, epoch, .. }) => {
                vec![Message::Aria(aria::Message::Assigned { job, epoch, token: 7, start: self.now })]
            }
            Message::Aria(aria::Message::Assigned { job, epoch, token, .. }) => {
                vec![Message::Aria(aria::Message::Confirm { job, epoch, token })]
            }
            Message::Aria(aria::Message::Cancel { job, epoch }) => {
                vec![Message::Aria(aria::Message::Cancelled { job, epoch })]
            }
            Message::TriPronged(tri_pronged::Message::Find(search, _)) => {
                let (job, round, node) = (search.job, search.round, Some(from));
                vec![Message::TriPronged(tri_pronged::Message::Found { job, round, node })]
            }
            Message::TriPronged(tri_pronged::Message::Offer(offer)) => {
                vec![Message::TriPronged(tri_pronged::Message::Answer { job: offer.job, yes: true })]
            }
            Message::TriPronged(tri_pronged::Message::Pull { .. }) => {
                vec![Message::TriPronged(tri_pronged::Message::Nothing)]
            }
            Message::Can(can::Message::Join { .. }) => {
                let (_, zone) = can::Zone::WHOLE.cut(can::VIRTUAL, 1);
                let claim = Box::new(can::Claim { zone, version: 1 });
                vec![Message::Can(can::Message::Welcome { claim, around: Vec::new() })]
            }
            Message::HandOver(handover::Message::Hand { job, yours }) => {
                let job = job.id();
                let said = if yours { handover::Message::Taken(job) } else { handover::Message::Ready(job) };
                vec![Message::HandOver(said)]
            }
            Message::Job(JobMessage::Ended(task, ..)) => vec![Message::Job(JobMessage::Noted(task))],
            Message::Job(JobMessage::Inquire(task)) => {
                vec![Message::Job(JobMessage::Ended(task, Exit::Code(0), None))]
            }
            Message::Overlay(cyclon::Message::Shuffle(entries)) => {
                vec![Message::Overlay(cyclon::Message::ShuffleReply(entries))]
            }
            _ => Vec::new(),
        }
    }

    /// The whole life of a task at one of its nodes.
    fn run(&self, from: NodeId, job: JobId, epoch: Epoch) -> Vec<Message> {
        let placement = self.node.commit().and_then(|commit| commit.placement(job));
        let rank = placement.and_then(|placement| placement.nodes.iter().position(|&node| node == from));
        let task = rank.map(|rank| Task { job, epoch, rank: shoal_model::Rank(rank as u32) });
        let life = |task| {
            [JobMessage::Started(task, self.now), JobMessage::Ended(task, Exit::Code(0), None)]
                .map(Message::Job)
        };
        task.into_iter().flat_map(life).collect()
    }
}

fn config(overlay: overlay::Config, recipe: config::Recipe) -> Config {
    Config {
        overlay,
        work: Some(Box::new(config::Work {
            machine: Machine::with_capacity(Resources::cores(2)),
            recipe,
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_hours(1),
            eager: false,
            gate: Default::default(),
        })),
    }
}

/// Sums up what was promised at each instant, without a calendar: the largest share of each job.
fn overbooked(node: &Node) -> Result<(), String> {
    let locks: Vec<_> =
        node.commit().into_iter().flat_map(|commit| commit.locks()).map(|(lock, _)| lock).collect();
    let room = Resources::cores(2);
    for at in locks.iter().map(|lock| lock.start) {
        let mut shares: BTreeMap<JobId, Resources> = BTreeMap::new();
        for lock in locks.iter().filter(|lock| lock.start <= at && at < lock.start + lock.span) {
            let share = shares.entry(lock.job).or_default();
            *share = share.most(&lock.amount);
        }
        let all = shares.values().try_fold(Resources::NONE, |sum, share| sum.checked_plus(share));
        if !all.as_ref().is_some_and(|all| all.fits_in(&room)) {
            return Err(format!("{all:?} at {at} in {room:?}"));
        }
    }
    Ok(())
}
