//! A simulated grid: nodes with their machines and their recipe, a network, what goes wrong, and the jobs that come.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use shoal_model::{Envelope, JobId, Machine, NodeId, Span, Time};
use shoal_protocols::node::{Command, Config as NodeConfig, Node, config};
use shoal_protocols::overlay;
use shoal_protocols::overlay::can::{self, Can};
use shoal_protocols::scheduling::asap::Tally;
use shoal_protocols::{Protocol, Shared};

use crate::ants::settle_for;
use crate::clock::Clock;
use crate::faults::{self, Disk, Fault, Plan};
use crate::network::{self, Network};
use crate::processes::Processes;
use crate::streams::{Purpose, stream};
use crate::world::{Setup, World};

/// How a grid is made.
pub struct Config {
    /// From which all chance flows.
    pub seed: u64,
    /// Nodes at the start; more may join by plan.
    pub nodes: usize,
    /// How messages travel.
    pub network: network::Config,
    /// What goes wrong.
    pub faults: faults::Config,
    /// How long a write takes to become durable.
    pub fsync: Span,
    /// How nodes come to know each other.
    pub overlay: overlay::Config,
    /// Whom they know at the start.
    pub start: Start,
    /// What nodes do with jobs, and what each machine is: the machine in it is replaced by that of `machines`.
    pub work: config::Work,
    /// What each machine is; the list is gone round.
    pub machines: Vec<Machine>,
    /// How many threads drive it.
    pub threads: usize,
    /// Whether what nodes do is kept for checkers.
    pub watch: bool,
    /// Whether each message sent is kept as well.
    pub story: bool,
}

/// Whom the nodes of a grid know at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// One of those before them: they start one after the other, and join.
    #[default]
    Join,
    /// As many others at random as their caches hold, a directed graph; or as BLATANT-S has links, an undirected one.
    /// Drawn once; they start at once. A CAN is laid out as if they had joined one after the other.
    Graph,
    /// Those that the ants of BLATANT-S have linked them with, once these were quiet; they start at once.
    Ants,
}

/// A simulated grid.
pub struct Grid<P: Protocol = Node> {
    world: World<P>,
    plan: Plan,
    machines: Vec<Machine>,
}

/// A protocol that speaks as a node does: a node, or one with a fault planted in it.
pub trait NodeLike: Protocol<Config = NodeConfig> + NodeLayer + Send + 'static {
    /// The node in it, to look at.
    fn node(&self) -> &Node;
}

/// What a node says and hears.
pub trait NodeLayer:
    shoal_protocols::Layer<
        Command = Command,
        Message = shoal_protocols::node::Message,
        Timer = shoal_protocols::node::Timer,
        Record = shoal_protocols::node::Record,
        Action = shoal_protocols::node::Action,
        Outcome = shoal_protocols::node::Outcome,
        Event = shoal_protocols::node::Event,
    >
{
}

impl<L> NodeLayer for L where
    L: shoal_protocols::Layer<
            Command = Command,
            Message = shoal_protocols::node::Message,
            Timer = shoal_protocols::node::Timer,
            Record = shoal_protocols::node::Record,
            Action = shoal_protocols::node::Action,
            Outcome = shoal_protocols::node::Outcome,
            Event = shoal_protocols::node::Event,
        >
{
}

impl NodeLike for Node {
    fn node(&self) -> &Node {
        self
    }
}

/// The pause between two first starts: nodes of a real grid are not switched on at one instant either.
pub(crate) const JOIN_GAP: Span = Span::from_millis(10);

impl<P: NodeLike> Grid<P> {
    /// A grid of which the first nodes have met, and to which the others come as planned.
    pub fn build(config: Config) -> Result<Grid<P>, network::Error> {
        let Config { seed, nodes, faults, fsync, overlay, start, work, machines, .. } = config;
        let Config { threads, watch, story, .. } = config;
        assert!(!machines.is_empty(), "a grid has machines");
        let plan = Plan::generate(&faults, nodes, seed)?;
        let network = plan.disturb(Network::build(&config.network, plan.nodes(), seed)?);
        let (kinds, speeds) = (machines.clone(), machines.clone());
        let places = network.clone();
        let configure = move |node: NodeId| {
            let mut recipe = work.recipe;
            if let config::Recipe::Proactive(proactive) = &mut recipe
                && !proactive.helpers.measure
            {
                proactive.helpers.coordinates = places.place(node.0 as usize - 1);
            }
            let machine = machine(&kinds, node).clone();
            NodeConfig { overlay, work: Some(Box::new(config::Work { machine, recipe, ..work.clone() })) }
        };
        let setup = Setup {
            fsync,
            slow_disks: plan.disks(),
            clocks: plan.clocks(),
            watch,
            story,
            ..Setup::calm(seed, network, configure, move |node| {
                Box::new(Processes::on(machine(&speeds, node).speed))
            })
        };
        let mut grid = Grid { world: World::new(setup, threads), plan, machines };
        match start {
            Start::Join => grid.start(nodes),
            Start::Ants => grid.meet_by_ants(nodes, &overlay, seed),
            Start::Graph => match &overlay {
                overlay::Config::Cyclon(cyclon) => {
                    grid.draw_graph(nodes, usize::from(cyclon.cache), false, seed);
                }
                overlay::Config::BlatantS(_) => grid.draw_graph(nodes, 2, true, seed),
                overlay::Config::Can(can) => grid.lay_out(nodes, can),
            },
        }
        grid.carry_out_faults();
        Ok(grid)
    }

    /// Has a user submit a job to a node at a time.
    pub fn submit(&mut self, at: Time, node: NodeId, envelope: Envelope) -> JobId {
        let job = envelope.id();
        self.world.command(at, node, Command::Submit(Shared::new(envelope)));
        job
    }

    /// Has a user take a job back at a time.
    pub fn cancel(&mut self, at: Time, node: NodeId, job: JobId) {
        self.world.command(at, node, Command::Cancel(job));
    }

    /// The schedules that all nodes have carried so far, where they follow the recipe `asap`.
    pub fn schedules_carried(&self) -> Tally {
        let carried = self.world.nodes().filter_map(|node| self.world.core(node).node().schedules_carried());
        carried.fold(Tally::default(), Tally::plus)
    }

    /// The world that the nodes live in, to look at.
    pub fn look(&self) -> &World<P> {
        &self.world
    }

    /// The world that the nodes live in.
    pub fn world(&mut self) -> &mut World<P> {
        &mut self.world
    }

    /// What a node really is, whatever it thinks of itself.
    pub fn machine(&self, node: NodeId) -> &Machine {
        machine(&self.machines, node)
    }

    /// The clocks of the nodes whose clocks do not show the time of the world.
    pub fn clocks(&self) -> BTreeMap<NodeId, Clock> {
        self.plan.clocks().into_iter().map(|(index, clock)| (node_id(index), clock)).collect()
    }

    /// From when on nothing goes wrong any more.
    pub fn healed_from(&self) -> Time {
        self.plan.healed_from()
    }

    fn start(&mut self, nodes: usize) {
        for index in 0..nodes {
            let at = Time::ZERO + JOIN_GAP * index as u64;
            let node = node_id(index);
            self.world.boot(at, node);
            self.join(at, node);
        }
    }

    fn draw_graph(&mut self, nodes: usize, degree: usize, undirected: bool, seed: u64) {
        for index in 0..nodes {
            self.world.boot(Time::ZERO, node_id(index));
        }
        for index in 0..nodes {
            let mut luck = stream(seed, Purpose::Acquaintance, index as u64);
            let others = rand::seq::index::sample(&mut luck, nodes - 1, degree.min(nodes - 1));
            // All but oneself, in order.
            let others: Box<[NodeId]> = others
                .into_iter()
                .map(|other| node_id(if other < index { other } else { other + 1 }))
                .collect();
            if undirected {
                for &other in &others {
                    self.world.command(Time::ZERO, other, Command::Meet([node_id(index)].into()));
                }
            }
            self.world.command(Time::ZERO, node_id(index), Command::Meet(others));
        }
    }

    fn lay_out(&mut self, nodes: usize, config: &can::Config) {
        let points: Vec<_> = (0..nodes)
            .map(node_id)
            .map(|node| (node, Can::point_of(config, node, self.machine(node))))
            .collect();
        for &(node, _) in &points {
            self.world.boot(Time::ZERO, node);
        }
        for ((node, _), place) in points.iter().zip(can::lay_out(config, &points)) {
            self.world.command(Time::ZERO, *node, Command::Settle(Box::new(place)));
        }
    }

    fn meet_by_ants(&mut self, nodes: usize, overlay: &overlay::Config, seed: u64) {
        let settled = settle_for(nodes, seed, overlay);
        for index in 0..nodes {
            self.world.boot(Time::ZERO, node_id(index));
        }
        for (index, links) in settled.links.iter().enumerate() {
            self.world.command(Time::ZERO, node_id(index), Command::Meet(links.clone()));
        }
    }

    /// Whoever starts enters through a node that has been there from the beginning.
    fn join(&mut self, at: Time, node: NodeId) {
        let introducer = if node == NodeId(1) { NodeId(2) } else { NodeId(node.0 / 2) };
        if introducer.0 <= self.plan.nodes() as u64 {
            self.world.command(at, node, Command::Join(introducer));
        }
    }

    fn carry_out_faults(&mut self) {
        let mut wiped = BTreeSet::new();
        for faults::Event { at, fault } in self.plan.events().to_vec() {
            match fault {
                Fault::Crash { node, after_effects, disk } => {
                    match after_effects {
                        None => self.world.crash(at, node_id(node)),
                        Some(effects) => self.world.crash_after(at, node_id(node), effects),
                    }
                    if disk == Disk::Lost {
                        wiped.insert(node);
                    }
                }
                Fault::Restart { node } | Fault::Join { node } => {
                    // Not at the crash, which may come later than planned: a node never outlives its disk.
                    if wiped.remove(&node) {
                        self.world.crash(at, node_id(node));
                        self.world.wipe_disk(at, node_id(node));
                    }
                    self.world.boot(at, node_id(node));
                    self.join(at, node_id(node));
                }
                Fault::Leave { node } => self.world.crash(at, node_id(node)),
                // Told to network, clocks and disks before the start.
                Fault::Slow(_)
                | Fault::SlowDisk(_)
                | Fault::Clock { .. }
                | Fault::Cut(_)
                | Fault::Storm { .. } => {}
            }
        }
    }
}

/// How many others each node draws in a graph drawn at random, and whether these know it too.
fn machine(machines: &[Machine], node: NodeId) -> &Machine {
    &machines[(node.0 as usize - 1) % machines.len()]
}

fn node_id(index: usize) -> NodeId {
    NodeId(index as u64 + 1)
}
