//! The world: machines that run nodes in virtual time, on any number of threads, with the same bytes.
//!
//! Machines are dealt out to *shards*, one per thread. A message takes at least the network's least delay, so
//! all that is due within that *lookahead* can be handled by each shard on its own; then they exchange what they
//! sent each other and go on. Each machine sees its inputs in the order (time, sender, sender's count) and draws
//! from its own two streams, so the number of threads changes nothing.
//!
//! ```text
//! shard 0  ──inputs──▶│exchange│──inputs──▶│exchange│──▶
//! shard 1  ──inputs──▶│        │──inputs──▶│        │──▶
//!          one lookahead         one lookahead
//! ```

mod cell;
mod parallel;
mod shard;
mod slab;
mod wheel;

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::{Decode, Encode};
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::{KeyOf, Message, Protocol};

use crate::clock::Clock;
use crate::network::Network;
use crate::streams::{Purpose, stream};
use crate::timetable::Timetable;
pub use cell::Executor;
use cell::{Cell, Outside};
use shard::{Shard, Turn, node_id};

/// Machines that run nodes in virtual time.
pub struct World<P: Protocol> {
    setup: Arc<Setup<P>>,
    shards: Vec<Shard<P>>,
    now: Time,
}

/// How a world is made.
pub struct Setup<P: Protocol> {
    /// From which all chance flows.
    pub seed: u64,
    /// How many machines there will ever be.
    pub machines: u32,
    /// How messages travel.
    pub network: Network,
    /// How long a write takes to become durable, at the least and at times more.
    pub fsync: Span,
    /// What a write takes longer than that, by node and time.
    pub slow_disks: Timetable<Span>,
    /// The clocks of the nodes whose clocks do not show the time of the world.
    pub clocks: BTreeMap<usize, Clock>,
    /// What a node is told at its making.
    pub configure: Box<dyn Fn(NodeId) -> P::Config + Send + Sync>,
    /// What runs the processes of a machine.
    pub executor: Box<dyn Fn(NodeId) -> Box<dyn Executor<P>> + Send + Sync>,
    /// Whether what nodes report and do is kept.
    pub watch: bool,
    /// Whether each message sent is kept as well.
    pub story: bool,
}

impl<P: Protocol> Setup<P> {
    /// A world without trouble: disks are quick, clocks are right, and nobody watches.
    pub fn calm(
        seed: u64,
        network: Network,
        configure: impl Fn(NodeId) -> P::Config + Send + Sync + 'static,
        executor: impl Fn(NodeId) -> Box<dyn Executor<P>> + Send + Sync + 'static,
    ) -> Setup<P> {
        Setup {
            seed,
            machines: u32::try_from(network.nodes()).expect("fewer than 2^32 machines"),
            network,
            fsync: Span::ZERO,
            slow_disks: Timetable::default(),
            clocks: BTreeMap::new(),
            configure: Box::new(configure),
            executor: Box::new(executor),
            watch: false,
            story: false,
        }
    }

    fn fsync(&self, node: usize, now: Time) -> Span {
        self.fsync + self.slow_disks.at(node, now).unwrap_or_default()
    }
}

/// Something that was seen from outside.
#[derive(Clone, Debug)]
pub struct Sight<P: Protocol> {
    /// When.
    pub at: Time,
    /// At which node.
    pub node: NodeId,
    /// What.
    pub saw: Saw<P>,
}

/// What can be seen from outside.
#[derive(Clone, Debug)]
pub enum Saw<P: Protocol> {
    /// The node reported something.
    Event(P::Event),
    /// The node had something done.
    Act(P::Action),
    /// What it had done has ended.
    Done(P::Outcome),
    /// A record became durable.
    Save(P::Record),
    /// A record was durably dropped.
    Erase(KeyOf<P>),
    /// The node said something.
    Send(NodeId, P::Message),
    /// The machine stopped.
    Crash,
    /// The machine lost all that it had saved.
    DiskLost,
    /// The machine started anew.
    Restart,
}

/// Messages and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Traffic {
    /// How many were sent.
    #[n(0)]
    pub messages: u64,
    /// What they were accounted for.
    #[n(1)]
    pub bytes: u64,
}

impl<P> World<P>
where
    P: Protocol + Send,
    P::Config: Send + Sync,
{
    /// A world on this many threads; a network without any delay leaves no lookahead, and runs on one.
    pub fn new(setup: Setup<P>, threads: usize) -> World<P> {
        let setup = Arc::new(setup);
        let threads = if setup.network.least_delay() == Span::ZERO { 1 } else { threads.max(1) as u32 };
        let mut shards: Vec<Shard<P>> = (0..threads)
            .map(|number| {
                Shard::new(Arc::clone(&setup), number, threads, setup.machines.div_ceil(threads) as usize)
            })
            .collect();
        for index in 0..setup.machines {
            let id = node_id(index);
            let core = P::restore(&(setup.configure)(id), id, std::iter::empty());
            let stream = |purpose| stream(setup.seed, purpose, u64::from(index));
            let luck = stream(Purpose::Carriage);
            let clock = setup.clocks.get(&(index as usize)).cloned();
            let outside = Outside::new(luck, clock);
            shards[(index % threads) as usize].cells.push(Cell {
                core,
                chance: stream(Purpose::Node),
                outside,
            });
        }
        World { setup, shards, now: Time::ZERO }
    }

    /// Starts a machine at a time, anew if it runs.
    pub fn boot(&mut self, at: Time, node: NodeId) {
        self.plan(at, node, Turn::Restart);
    }

    /// Has the user ask a node for something at a time.
    pub fn command(&mut self, at: Time, node: NodeId, command: P::Command) {
        self.plan(at, node, Turn::Command(command));
    }

    /// Stops a machine at a time: what it had not saved is lost.
    pub fn crash(&mut self, at: Time, node: NodeId) {
        self.plan(at, node, Turn::Crash);
    }

    /// Stops a machine in the middle of what it does, after so many more effects from a time on.
    pub fn crash_after(&mut self, at: Time, node: NodeId, effects: u32) {
        self.plan(at, node, Turn::CrashAfter(effects));
    }

    /// Takes a machine's disk away, with all that it had saved.
    pub fn wipe_disk(&mut self, at: Time, node: NodeId) {
        self.plan(at, node, Turn::WipeDisk);
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// All machines, in order, whether up or down.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<P> {
        (0..self.setup.machines).map(node_id)
    }

    /// Whether a machine is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.cell(node).outside.up
    }

    /// What runs on a machine.
    pub fn core(&self, node: NodeId) -> &P {
        &self.cell(node).core
    }

    /// What a machine has durably saved; none if it never had reason to.
    pub fn disk(&self, node: NodeId) -> Option<&BTreeMap<KeyOf<P>, P::Record>> {
        self.cell(node).outside.rare_if_any().map(|rare| &rare.disk)
    }

    /// Whether what nodes report and do is kept.
    pub fn is_watched(&self) -> bool {
        self.setup.watch
    }

    /// How many inputs were handled.
    pub fn handled(&self) -> u64 {
        self.shards.iter().map(|shard| shard.engine.handled).sum()
    }

    /// What was sent, by the name of its kind: where two protocols have a word of the same name, both together.
    pub fn traffic(&self) -> BTreeMap<&'static str, Traffic> {
        let mut all: BTreeMap<&'static str, Traffic> = BTreeMap::new();
        for shard in &self.shards {
            for (&name, &(messages, bytes)) in P::Message::KINDS.iter().zip(&shard.engine.traffic) {
                let sum = all.entry(name).or_default();
                *sum = Traffic { messages: sum.messages + messages, bytes: sum.bytes + bytes };
            }
        }
        all
    }

    /// Takes what was seen since the last call, in the order of time and node.
    pub fn sights(&mut self) -> Vec<Sight<P>> {
        let mut sights: Vec<Sight<P>> =
            self.shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.engine.sights)).collect();
        // Stable: what one node did at one time stays in order.
        sights.sort_by_key(|sight| (sight.at, sight.node));
        sights
    }

    /// Lets everything happen that is due before `until`.
    pub fn run_before(&mut self, until: Time) {
        if let [only] = self.shards.as_mut_slice() {
            only.run_before(until);
        } else {
            parallel::run_before(&mut self.shards, self.setup.network.least_delay(), until);
        }
        self.now = until;
    }

    fn plan(&mut self, at: Time, node: NodeId, turn: Turn<P>) {
        let index = self.index(node);
        let shards = self.shards.len() as u32;
        self.shards[(index % shards) as usize].plan(at.max(self.now), index / shards, turn);
    }

    fn cell(&self, node: NodeId) -> &Cell<P> {
        let index = self.index(node) as usize;
        &self.shards[index % self.shards.len()].cells[index / self.shards.len()]
    }

    fn index(&self, node: NodeId) -> u32 {
        assert!(node.0 >= 1 && node.0 <= u64::from(self.setup.machines), "there is no machine {node}");
        (node.0 - 1) as u32
    }
}
