//! The explorer: runs protocol cores in *every* interleaving of a small world, and checks each state it comes to.
//!
//! ```text
//! state: cores, disks, timers, errands · messages in flight · time · faults left · commands left · monitor
//!   │
//!   ├─ deliver any message          ├─ give any command                ├─ lose or double a message
//!   ├─ fire the next timer          ├─ end an errand, in any way       ├─ crash a node, or cut any of the steps
//!   ├─ make a write durable         └─ restart a node that is down     │  on the left short after any effect
//!   ▼                                                                  ▼
//! next states, unless seen before
//! ```
//!
//! Messages have no order and no delay: each may come in now or after anything else. Time stands still but when
//! a timer fires; which one may, [`Clocks`] says. A crash forgets the core, its timers, its errands and all
//! writes that are not durable; a message to a node that is down finds nobody. All nodes are up at the start.
//!
//! What keeps it fast: each distinct node, message and monitor is kept once and known by number, so that a state
//! is a short list of numbers, and what a node does upon an input is computed once and then looked up. What keeps
//! it small: of a state that has been seen only its 128-bit print is kept, and 8 bytes to find the way to it:
//! 28 to 55 bytes, by how full the tables are. A state that is still to be looked at takes about 200. Both hold as
//! long as single nodes have far fewer states than their world, which is why it is worth to explore worlds.
//!
//! Restrictions. A node draws the same chance at every input, so a protocol that branches on chance is explored
//! on one branch only. What a core leaves out of its `Hash` is not told apart. Time takes no values between those
//! that timers name. Nothing is reduced by symmetry or partial order: with states that are remembered, sleep
//! sets need care to stay exact, and every state shall be checked.

mod moves;
mod print;
mod react;
mod report;
mod search;
mod state;
mod step;
#[cfg(test)]
mod tests;

use std::hash::Hash;

use shoal_model::{NodeId, Time};
use shoal_protocols::{Layer, Protocol, Record};

use crate::world::Sight;
pub use report::{Cut, Leg, Report, Violation};
pub use state::State;

/// A protocol that can be explored: all that a state is made of can be copied and told apart.
pub trait Explorable:
    Protocol<
        Command: Hash,
        Message: Hash,
        Timer: Hash,
        Record: Hash + Record<Key: Hash>,
        Action: Hash,
        Event: Hash,
    > + Clone
    + Hash
{
}

impl<P> Explorable for P where
    P: Protocol<
            Command: Hash,
            Message: Hash,
            Timer: Hash,
            Record: Hash + Record<Key: Hash>,
            Action: Hash,
            Event: Hash,
        > + Clone
        + Hash
{
}

/// Watches what nodes do, with a memory that becomes part of the state: the less it remembers, the fewer states.
///
/// It sees events, actions, writes, crashes and restarts, but no messages.
pub trait Monitor<P: Protocol>: Clone + Hash {
    /// Takes note of something; an error says what is wrong with it.
    fn see(&mut self, sight: &Sight<P>) -> Result<(), String>;
}

/// Watches nothing.
impl<P: Protocol> Monitor<P> for () {
    fn see(&mut self, _sight: &Sight<P>) -> Result<(), String> {
        Ok(())
    }
}

/// How much may go wrong on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Nodes that crash; the same one may do so again.
    pub crashes: u8,
    /// Messages that are lost.
    pub losses: u8,
    /// Messages that are doubled.
    pub duplicates: u8,
}

/// Where an exploration stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most states.
    pub states: u32,
    /// The most moves on a path.
    pub depth: u32,
    /// The latest time at which a timer fires; one that is due later counts as none.
    pub horizon: Time,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: u32::MAX, depth: u32::MAX, horizon: Time::NEVER }
    }
}

/// How the clocks of the nodes relate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocks {
    /// One clock: timers fire in the order in which they are due, in any order where due at once.
    #[default]
    Shared,
    /// Each node's clock goes as it likes: only the timers of one node are in order.
    Own,
}

/// When timers fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timers {
    /// At the instant they are due, before anything else happens then.
    #[default]
    First,
    /// Also after other things that happen at that instant: a message may come in when a timer is due, before it.
    Any,
}

/// When a write becomes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disks {
    /// At once.
    #[default]
    Instant,
    /// At any later moment; what was asked for after it waits for it.
    Slow,
}

/// In which order states are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Nearest first: a violation comes with a shortest path.
    #[default]
    Nearest,
    /// Latest first: few states wait to be looked at, and paths are long.
    Latest,
}

type Outcomes<P> = Box<dyn Fn(NodeId, &<P as Layer>::Action) -> Vec<<P as Layer>::Outcome>>;
type Rule<P, M> = Box<dyn Fn(&State<'_, P, M>) -> Result<(), String>>;

/// A small world, and what must hold in it.
pub struct Explorer<P: Explorable, M = ()> {
    configs: Vec<P::Config>,
    script: Vec<(NodeId, P::Command)>,
    outcomes: Outcomes<P>,
    monitor: M,
    always: Vec<(String, Rule<P, M>)>,
    at_rest: Vec<(String, Rule<P, M>)>,
    faults: Faults,
    limits: Limits,
    clocks: Clocks,
    timers: Timers,
    disks: Disks,
    order: Order,
}

impl<P: Explorable, M: Monitor<P>> Explorer<P, M> {
    /// A world of nodes 1 to `nodes`, without faults or limits, that a monitor watches.
    pub fn new(nodes: u32, configure: impl Fn(NodeId) -> P::Config, monitor: M) -> Explorer<P, M> {
        Explorer {
            configs: (0..nodes as usize).map(|index| configure(node_id(index))).collect(),
            script: Vec::new(),
            outcomes: Box::new(|_, _| Vec::new()),
            monitor,
            always: Vec::new(),
            at_rest: Vec::new(),
            faults: Faults::default(),
            limits: Limits::default(),
            clocks: Clocks::default(),
            timers: Timers::default(),
            disks: Disks::default(),
            order: Order::default(),
        }
    }

    /// May give a node this command once, at any moment when it is up, before or after any other.
    pub fn command(mut self, node: NodeId, command: P::Command) -> Self {
        assert!(self.script.len() < 64, "a script has at most 64 commands");
        assert!((1..=self.configs.len() as u64).contains(&node.0), "there is no node {node}");
        self.script.push((node, command));
        self
    }

    /// Says how an action can end; one that cannot is fire-and-forget, and so are all where this is not called.
    pub fn outcomes(mut self, outcomes: impl Fn(NodeId, &P::Action) -> Vec<P::Outcome> + 'static) -> Self {
        self.outcomes = Box::new(outcomes);
        self
    }

    /// Demands something of every state; the error says what is wrong with it.
    pub fn always(
        mut self,
        name: &str,
        rule: impl Fn(&State<'_, P, M>) -> Result<(), String> + 'static,
    ) -> Self {
        self.always.push((name.to_owned(), Box::new(rule)));
        self
    }

    /// Demands something of every state in which nothing happens any more, unless by a fault or a restart.
    ///
    /// Nodes may be down then: [`State::is_up`] knows.
    pub fn at_rest(
        mut self,
        name: &str,
        rule: impl Fn(&State<'_, P, M>) -> Result<(), String> + 'static,
    ) -> Self {
        self.at_rest.push((name.to_owned(), Box::new(rule)));
        self
    }

    /// Sets how much may go wrong.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Sets where to stop.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how clocks relate.
    pub fn clocks(mut self, clocks: Clocks) -> Self {
        self.clocks = clocks;
        self
    }

    /// Sets when timers fire.
    pub fn timers(mut self, timers: Timers) -> Self {
        self.timers = timers;
        self
    }

    /// Sets when writes become durable.
    pub fn disks(mut self, disks: Disks) -> Self {
        self.disks = disks;
        self
    }

    /// Sets in which order states are looked at.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Looks at every state, up to the first violation or the limits.
    pub fn run(&self) -> Report {
        search::run(self)
    }
}

fn node_id(index: usize) -> NodeId {
    NodeId(index as u64 + 1)
}
