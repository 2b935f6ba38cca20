//! A simulated machine: the node that runs on it, its two streams of chance, its disk and its processes.

use std::collections::{BTreeMap, VecDeque};

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::{Chance, KeyOf, Protocol, Record};

use crate::clock::Clock;

/// A simulated machine.
pub(super) struct Cell<P: Protocol> {
    /// What runs on it; of a machine that is down, what ran last.
    pub core: P,
    /// The node's own chance.
    pub chance: Chance,
    pub outside: Outside<P>,
}

/// All of a machine but its core: what the node's effects change.
pub(super) struct Outside<P: Protocol> {
    /// The chance of what the node sends: delays and losses.
    pub luck: Chance,
    /// Counts what this node has put on the agenda, to order what is due at once.
    pub count: u32,
    /// Counts the node's lives; timers and outcomes of an earlier one are void.
    pub life: u32,
    pub up: bool,
    /// Whether the rest needs no look: the clock shows the world's time, and effects leave as soon as they are asked for. To
    /// look there for each input, though it lies elsewhere in memory, costs a tenth of a run.
    plain: bool,
    /// The rest: of machines that have saved, acted or suffered something.
    rare: Option<Box<Rare<P>>>,
}

/// What a machine has once it saves, acts or suffers something.
pub(super) struct Rare<P: Protocol> {
    pub disk: BTreeMap<KeyOf<P>, P::Record>,
    /// Writes that are not durable yet, and what waits for them, in the order asked.
    pub waiting: VecDeque<Waiting<P>>,
    pub executor: Option<Box<dyn Executor<P>>>,
    pub clock: Clock,
    /// Effects left until the machine dies in the middle of a batch.
    pub effects_left: Option<u32>,
}

/// An effect that has been asked for behind a write that is not durable yet.
pub(super) enum Waiting<P: Protocol> {
    Write { durable_at: Time, write: Write<P> },
    Send { to: NodeId, message: P::Message },
    Act(P::Action),
    Report(P::Event),
}

/// A change of the disk.
pub(super) enum Write<P: Protocol> {
    Save(P::Record),
    Erase(KeyOf<P>),
}

/// The processes of one machine. A crash of the machine drops it.
pub trait Executor<P: Protocol>: Send {
    /// Carries an action out at a time of the world; what comes of it is due after the given span.
    ///
    /// The node's clock is there for what the node has said in its own time.
    fn perform(&mut self, now: Time, clock: &Clock, action: P::Action) -> Vec<(Span, P::Outcome)>;

    /// An outcome is due: whether it still holds, or was overtaken by a later action.
    fn holds(&mut self, now: Time, outcome: &P::Outcome) -> bool;
}

impl<P: Protocol> Default for Rare<P> {
    fn default() -> Rare<P> {
        Rare {
            disk: BTreeMap::new(),
            waiting: VecDeque::new(),
            executor: None,
            clock: Clock::default(),
            effects_left: None,
        }
    }
}

impl<P: Protocol> Rare<P> {
    /// Whether effects leave as soon as they are asked for: no write is under way, and no end in the middle of a batch.
    pub fn lets_out_at_once(&self) -> bool {
        self.waiting.is_empty() && self.effects_left.is_none()
    }

    pub fn write(&mut self, write: Write<P>) {
        match write {
            Write::Save(record) => {
                self.disk.insert(record.key(), record);
            }
            Write::Erase(key) => {
                self.disk.remove(&key);
            }
        }
    }
}

impl<P: Protocol> Outside<P> {
    pub fn new(luck: Chance, clock: Option<Clock>) -> Outside<P> {
        let rare = clock.map(|clock| Box::new(Rare { clock, ..Rare::default() }));
        Outside { luck, count: 0, life: 0, up: false, plain: false, rare }
    }

    /// What may be changed of the rest; made if there is none.
    pub fn rare(&mut self) -> &mut Rare<P> {
        self.plain = false;
        self.rare.get_or_insert_default()
    }

    /// The rest, if there is any.
    pub fn rare_if_any(&self) -> Option<&Rare<P>> {
        self.rare.as_deref()
    }

    /// The rest, if there is any, to be changed.
    pub fn rare_if_any_mut(&mut self) -> Option<&mut Rare<P>> {
        self.plain = false;
        self.rare.as_deref_mut()
    }

    /// The same, if something in it may bear on what the node reads or asks for.
    pub fn peculiar(&mut self) -> Option<&mut Rare<P>> {
        if self.plain { None } else { self.rare.as_deref_mut() }
    }

    /// Finds out whether the rest can be left alone from here on.
    pub fn look(&mut self) {
        self.plain = self.plain
            || self.rare_if_any().is_none_or(|rare| rare.clock.is_true() && rare.lets_out_at_once());
    }

    /// The node's clock, read at a time of the world.
    pub fn local(&mut self, world: Time) -> Time {
        self.peculiar().map_or(world, |rare| rare.clock.local(world))
    }

    /// When the node's clock will read that.
    pub fn world_at_local(&mut self, local: Time) -> Time {
        self.peculiar().map_or(local, |rare| rare.clock.world_at_local(local))
    }

    pub fn next_count(&mut self) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }
}
