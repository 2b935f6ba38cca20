//! A swarm: nodes that only gossip, and what can be measured of them.

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::{Command, Config, Node};
use shoal_protocols::overlay::cyclon;
use shoal_simulator::graph::Graph;
use shoal_simulator::network::{self, Network, latency, partition};
use shoal_simulator::processes::Processes;
use shoal_simulator::world::{Setup, World};

/// Nodes that only gossip.
pub struct Swarm {
    pub world: World<Node>,
    pub config: cyclon::Config,
}

/// What a swarm is made of.
#[derive(Clone)]
pub struct Plan {
    pub machines: usize,
    pub seed: u64,
    pub overlay: cyclon::Config,
    pub network: network::Config,
    pub story: bool,
}

impl Plan {
    /// Messages take 10 to 200 ms and all arrive.
    pub fn calm(machines: usize, seed: u64) -> Plan {
        let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
        let network = network::Config::calm(latency);
        Plan { machines, seed, overlay: cyclon::Config::default(), network, story: false }
    }

    /// The same with nodes 1 to `nodes` cut off from the others for a while, both ways.
    pub fn cut(mut self, nodes: usize, from: Time, until: Time) -> Plan {
        self.network.partitions.push(partition::Config {
            name: "cut".into(),
            from_s: from.as_micros() as f64 / 1e6,
            until_s: until.as_micros() as f64 / 1e6,
            group: partition::Group::Ranges(vec![(0, nodes - 1)]),
            direction: partition::Direction::Both,
        });
        self
    }

    /// The world of the plan, with nobody up.
    pub fn dark(self) -> Swarm {
        let Plan { machines, seed, overlay, network, story } = self;
        let network = Network::build(&network, machines, seed).expect("the network makes sense");
        let configure = move |_| Config { overlay: overlay.into(), work: None };
        let calm = Setup::calm(seed, network, configure, |_| Box::new(Processes::default()));
        Swarm { world: World::new(Setup { watch: story, story, ..calm }, 1), config: overlay }
    }

    /// All are up, and all that anybody knows is node 1, which knows nobody.
    pub fn star(self) -> Swarm {
        let mut swarm = self.dark();
        for node in swarm.world.nodes() {
            swarm.world.boot(Time::ZERO, node);
            if node != NodeId(1) {
                swarm.world.command(Time::ZERO, node, Command::Meet([NodeId(1)].into()));
            }
        }
        swarm
    }

    /// The first `nodes` come one by one, each through the one before it, and have had time to mix.
    pub fn joined(self, nodes: usize) -> Swarm {
        let mut swarm = self.dark();
        for node in swarm.world.nodes().take(nodes) {
            let at = Time::from_millis(20 * node.0);
            let before = if node == NodeId(1) { NodeId(2) } else { NodeId(node.0 - 1) };
            swarm.enter(at, node, before);
        }
        swarm.world.run_before(Time::from_secs(400));
        swarm
    }
}

impl Swarm {
    /// Lets so many periods pass.
    pub fn cycles(&mut self, count: u64) {
        let period = Span::from_millis(u64::from(self.config.period_ms));
        self.world.run_before(self.world.now() + period * count);
    }

    /// A node starts, anew if it runs, and enters through another.
    pub fn enter(&mut self, at: Time, node: NodeId, introducer: NodeId) {
        self.world.boot(at, node);
        self.world.command(at, node, Command::Join(introducer));
    }

    /// Who is up.
    pub fn up(&self) -> Vec<NodeId> {
        self.world.nodes().filter(|&node| self.world.is_up(node)).collect()
    }

    /// What a node knows.
    pub fn cache(&self, node: NodeId) -> &cyclon::Cyclon {
        self.world.core(node).overlay().as_cyclon().expect("the swarm gossips by CYCLON")
    }

    /// Who of those that are up knows whom of them.
    pub fn graph(&self) -> Graph {
        Graph::among(&self.up(), |node| self.cache(node).neighbours())
    }

    /// The same, with the links that open exchanges have taken out of the caches.
    pub fn graph_with_exchanges(&self) -> Graph {
        Graph::among(&self.up(), |node| self.cache(node).neighbours().chain(self.cache(node).awaits()))
    }

    /// How many of the links of those that are up lead to whom.
    pub fn links(&self, leads_to: impl Fn(NodeId) -> bool) -> usize {
        let known = self.up().into_iter().flat_map(|node| self.cache(node).neighbours());
        known.filter(|&known| leads_to(known)).count()
    }

    /// The share of links that lead to nodes that are down.
    pub fn dead(&self) -> f64 {
        self.links(|node| !self.world.is_up(node)) as f64 / self.links(|_| true) as f64
    }

    /// A cache that names its own node, or another twice, or more than it may, and which of these it does.
    pub fn unsound(&self) -> Option<(NodeId, &'static str)> {
        self.world.nodes().find_map(|node| {
            let mut known: Vec<NodeId> = self.cache(node).neighbours().collect();
            let count = known.len();
            known.sort_unstable();
            known.dedup();
            let faults = [
                (known.contains(&node), "knows itself"),
                (known.len() < count, "knows somebody twice"),
                (count > usize::from(self.config.cache), "knows too many"),
            ];
            faults.into_iter().find_map(|(holds, fault)| holds.then_some((node, fault)))
        })
    }
}
