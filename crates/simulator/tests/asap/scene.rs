//! A small grid that follows `asap`, with jobs put to it one by one.

use std::collections::BTreeMap;

use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::commit::two_phase::Placement;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{Action, End, Event, Node, config};
use shoal_protocols::overlay::cyclon;
use shoal_protocols::scheduling::asap::{Audience, Config, Policy};
use shoal_simulator::grid::{self, Grid, Start};
use shoal_simulator::network::{self, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::{Saw, Sight};

pub const MINUTE: Span = Span::from_mins(1);

/// Every way to share schedules.
pub const POLICIES: [(Policy, Audience); 4] = [
    (Policy::Push, Audience::Told),
    (Policy::Push, Audience::Counted),
    (Policy::Pull, Audience::Told),
    (Policy::Poll, Audience::Told),
];

/// How a grid is made; what is not said is plain.
#[derive(Clone)]
pub struct Scene {
    pub seed: u64,
    pub nodes: usize,
    pub degree: u8,
    pub recipe: Config,
    /// 0 for a static overlay.
    pub shuffle_ms: u32,
    pub watch: bool,
    pub machines: Vec<Machine>,
    pub threads: usize,
    pub loss: f64,
}

pub fn scene(nodes: usize, degree: u8, recipe: Config) -> Scene {
    Scene {
        seed: 1,
        nodes,
        degree,
        recipe,
        shuffle_ms: 0,
        watch: false,
        machines: vec![Machine::with_capacity(Resources::cores(1))],
        threads: 1,
        loss: 0.0,
    }
}

impl Scene {
    pub fn open(self) -> Stage {
        self.recipe.check().expect("the recipe makes sense");
        let overlay = cyclon::Config {
            cache: self.degree,
            shuffle: self.degree.div_ceil(2),
            period_ms: self.shuffle_ms,
            ..cyclon::Config::default()
        };
        let grid = Grid::build(grid::Config {
            seed: self.seed,
            nodes: self.nodes,
            network: network::Config {
                loss: self.loss,
                ..network::Config::calm(latency::Config::Constant(latency::Constant { delay_ms: 5.0 }))
            },
            faults: Default::default(),
            fsync: Span::ZERO,
            overlay: overlay.into(),
            start: Start::Graph,
            work: config::Work {
                machine: Machine::with_capacity(Resources::cores(1)),
                recipe: config::Recipe::Asap(self.recipe),
                commit: Default::default(),
                heartbeat: heartbeat::Config { watch: self.watch, ..heartbeat::Config::default() },
                limit_default: Span::from_hours(1),
                eager: false,
                gate: Default::default(),
            },
            machines: self.machines,
            threads: self.threads,
            watch: true,
            story: false,
        });
        Stage { grid: grid.expect("the network makes sense"), jobs: 0, seen: Vec::new(), recipe: self.recipe }
    }
}

/// A grid under way, and what was seen of it so far.
pub struct Stage {
    pub grid: Grid,
    pub recipe: Config,
    jobs: u64,
    seen: Vec<Sight<Node>>,
}

/// A job of so many nodes that takes all of its limit.
pub fn gang(nodes: u32, limit: Span) -> Job {
    Job { nodes: nodes.try_into().unwrap(), limit: Some(limit), ..command_taking(limit) }
}

impl Stage {
    pub fn submit(&mut self, at: Time, node: u64, job: Job) -> JobId {
        self.jobs += 1;
        let envelope = Envelope::new(job, Nonce(u128::from(self.jobs).to_le_bytes())).unwrap();
        self.grid.submit(at, NodeId(node), envelope)
    }

    pub fn run_until(&mut self, time: Time) {
        self.grid.world().run_before(time);
        self.seen.extend(self.grid.world().sights());
    }

    pub fn seen(&self) -> &[Sight<Node>] {
        &self.seen
    }

    /// The last placement of each job.
    pub fn placements(&self) -> BTreeMap<JobId, Placement> {
        let placed = self.seen.iter().filter_map(|sight| match &sight.saw {
            Saw::Event(Event::Placed(job, placement)) => Some((*job, placement.clone())),
            _ => None,
        });
        placed.collect()
    }

    pub fn ends(&self) -> BTreeMap<JobId, End> {
        let mut ends = BTreeMap::new();
        for sight in &self.seen {
            if let Saw::Event(Event::Ended(job, end)) = &sight.saw {
                assert_eq!(ends.insert(*job, *end), None, "{job} ended twice");
            }
        }
        ends
    }

    /// How many hold each node.
    pub fn in_degrees(&mut self) -> BTreeMap<NodeId, u64> {
        let world = self.grid.world();
        let mut degrees: BTreeMap<NodeId, u64> = world.nodes().map(|node| (node, 0)).collect();
        for node in world.nodes() {
            for neighbour in world.core(node).overlay().neighbours() {
                *degrees.get_mut(&neighbour).unwrap() += 1;
            }
        }
        degrees
    }

    pub fn messages(&mut self, kind: &str) -> u64 {
        self.grid.world().traffic()[kind].messages
    }

    /// The paper's cost so far.
    pub fn cost(&self) -> u64 {
        self.grid.schedules_carried().cost(&self.recipe)
    }

    /// No node ever had two tasks at once, as seen from its machine.
    pub fn assert_no_double_booking(&self) {
        let mut until: BTreeMap<NodeId, (Time, JobId)> = BTreeMap::new();
        let mut starts = 0;
        for sight in &self.seen {
            match &sight.saw {
                Saw::Act(Action::Start { task, stop_at, .. }) => {
                    if let Some((busy, other)) = until.get(&sight.node) {
                        let (node, at, job) = (sight.node, sight.at, task.job);
                        assert!(*busy <= at, "{node} started {job} at {at}, but had {other} until {busy}");
                    }
                    until.insert(sight.node, (*stop_at, task.job));
                    starts += 1;
                }
                Saw::Done(outcome) => {
                    if let Some((busy, _)) =
                        until.get_mut(&sight.node).filter(|(_, job)| *job == outcome.0.job)
                    {
                        *busy = (*busy).min(sight.at);
                    }
                }
                Saw::Crash => {
                    until.remove(&sight.node);
                }
                _ => {}
            }
        }
        assert!(starts > 0, "nothing was started");
    }

    /// Nothing is left of ended jobs anywhere.
    pub fn assert_at_rest(&mut self) {
        let world = self.grid.world();
        for node in world.nodes().filter(|&node| world.is_up(node)) {
            assert_eq!(world.core(node).commit().unwrap().locks().count(), 0, "locks left on {node}");
            assert_eq!(world.core(node).tasks().count(), 0, "tasks left on {node}");
        }
    }
}
