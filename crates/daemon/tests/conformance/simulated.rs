//! The simulated arm: the simulator's grid, in which nothing goes wrong but what a script asks for.

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::{Command, Event, Node};
use shoal_simulator::grid::{Config, Grid};
use shoal_simulator::network::{self, latency};
use shoal_simulator::world::Saw;

use crate::arm::{Arm, ENTRY, NODES, configuration, machine, others};

/// How much time passes at a time.
const STEP: Span = Span::from_millis(10);
/// How long a script waits at most.
const PATIENCE: Span = Span::from_hours(2);

pub struct Simulated {
    grid: Grid<Node>,
    now: Time,
    told: Vec<(NodeId, Event)>,
}

/// A grid of the conformance suite, with this going wrong.
pub fn grid(
    seed: u64,
    nodes: usize,
    latency: latency::Config,
    faults: shoal_simulator::faults::Config,
) -> Grid<Node> {
    Grid::build(settings(seed, nodes, latency, faults)).expect("the network makes sense")
}

/// How such a grid is made.
pub fn settings(
    seed: u64,
    nodes: usize,
    latency: latency::Config,
    faults: shoal_simulator::faults::Config,
) -> Config {
    let network = network::Config::calm(latency);
    let node = configuration(ENTRY);
    Config {
        seed,
        nodes,
        network,
        faults,
        fsync: Span::from_millis(1),
        overlay: node.overlay,
        start: shoal_simulator::grid::Start::Join,
        work: *node.work.expect("nodes take jobs"),
        machines: (1..=NODES).map(|node| machine(NodeId(node))).collect(),
        threads: 1,
        watch: true,
        story: false,
    }
}

impl Arm for Simulated {
    fn new() -> Simulated {
        // All messages take equally long, so that none overtakes another: neither does one on a switchboard.
        let latency = latency::Config::Constant(latency::Constant { delay_ms: 1.0 });
        let mut arm = Simulated {
            grid: grid(1, NODES as usize, latency, Default::default()),
            now: Time::ZERO,
            told: Vec::new(),
        };
        arm.wait();
        for node in (1..=NODES).map(NodeId) {
            arm.command(node, others(node));
        }
        arm.wait();
        arm
    }

    fn now(&self) -> Time {
        self.now
    }

    fn command(&mut self, node: NodeId, command: Command) {
        let now = self.now();
        self.grid.world().command(now, node, command);
    }

    fn crash(&mut self, node: NodeId) {
        let now = self.now();
        self.grid.world().crash(now, node);
        self.wait();
    }

    fn restart(&mut self, node: NodeId) {
        let now = self.now();
        self.grid.world().boot(now, node);
        self.command(node, others(node));
    }

    fn told(&mut self) -> Vec<(NodeId, Event)> {
        for sight in self.grid.world().sights() {
            if let Saw::Event(event) = sight.saw {
                self.told.push((sight.node, event));
            }
        }
        self.told.clone()
    }

    fn look<T: Send + 'static>(&mut self, node: NodeId, see: impl FnOnce(&Node) -> T + Send + 'static) -> T {
        see(self.grid.world().core(node))
    }

    fn wait(&mut self) -> bool {
        self.now += STEP;
        self.grid.world().run_before(self.now);
        self.now < Time::ZERO + PATIENCE
    }
}
