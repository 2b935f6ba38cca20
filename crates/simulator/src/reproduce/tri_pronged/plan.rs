//! Which runs are made; and making them.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::machine::Machine;
use shoal_model::{Envelope, Job, JobId, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{Action, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::queue::backfill::{Shares, WHOLE};
use shoal_protocols::scheduling::tri_pronged::{self, Variant};

use super::case::{Case, Drawn, EVERYBODY, Mix, Who, offered};
use super::central;
use super::judge::{GAPS, LIGHT, RATIOS};
use super::seen::Seen;
use crate::faults;
use crate::grid::{self, Grid, Start};
use crate::network::{self, latency};
use crate::processes::computation;
use crate::reproduce::{Error, Settings};
use crate::workload::WorkloadError;
use crate::world::{Saw, Traffic};

/// How large a reproduction is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: usize,
    pub jobs: usize,
    pub seeds: u64,
}

/// What is run.
pub struct Plan {
    pub size: Size,
    pub cases: Vec<Case>,
    pub about: Vec<(String, String)>,
}

/// When the first job comes: zones are settled, and what lies ahead has been told from edge to edge.
const BEGIN: Time = Time::from_secs(1_200);
/// A run is given up so long after the last job has come.
const PATIENCE: Span = Span::from_hours(12);
/// How often is looked.
const LOOK: Span = Span::from_secs(120);

impl Plan {
    /// Finds the runs that the wanted ids need.
    pub fn new(settings: &Settings, wanted: &[&'static str]) -> Result<Plan, Error> {
        if settings.trace.is_some() {
            let why = "the jobs of this paper need memory and disk, which traces lack: leave --trace out";
            return Err(Error::Workload(WorkloadError::Setting { setting: "trace", why: why.to_owned() }));
        }
        let usual = match (settings.tiny, settings.quick) {
            (true, _) => Size { nodes: 30, jobs: 60, seeds: 1 },
            (false, true) => Size { nodes: 200, jobs: 800, seeds: 1 },
            (false, false) => Size { nodes: 1_000, jobs: 5_000, seeds: 1 },
        };
        let size =
            Size { seeds: settings.seeds.map_or(usual.seeds, |seeds| u64::from(seeds.get())), ..usual };
        let wants = |group: &str| wanted.iter().any(|id| id.contains(group));
        let mut cases = BTreeSet::new();
        for seed in 1..=size.seeds {
            let mut add = |who, mix, gap_ms, ratio| {
                cases.insert(Case { who, mix, gap_ms, ratio, seed });
            };
            for who in EVERYBODY {
                if wants("/fig3/") || wants("/fig4") || wants("bounded") {
                    GAPS.iter().for_each(|&gap| add(who, Mix::Clustered, gap, 40));
                }
                if wants("/fig5/") {
                    RATIOS.iter().for_each(|&ratio| add(who, Mix::Clustered, 3_000, ratio));
                }
                if wants("other_mixes") {
                    add(who, Mix::Mixed, 2_500, 40);
                    add(who, Mix::Clustered, 2_500, 40);
                }
            }
            if wants("push_light") {
                for variant in [Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull] {
                    add(Who::Nodes(variant), Mix::Clustered, LIGHT, 40);
                }
            }
        }
        let cases: Vec<Case> = cases.into_iter().collect();
        let about = vec![
            ("size".to_owned(), format!("{} nodes, {} jobs, {} runs", size.nodes, size.jobs, cases.len())),
            ("seeds".to_owned(), format!("1 to {}", size.seeds)),
        ];
        Ok(Plan { size, cases, about })
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Error> {
        let machines = case.machines(self.size.nodes);
        let jobs = case.jobs(self.size.jobs, &machines);
        let load = offered(&jobs, &machines);
        match case.who {
            Who::Cent => {
                let starts = central::run(&jobs, &machines);
                let waits = starts
                    .iter()
                    .zip(&jobs)
                    .map(|((start, _), job)| start.saturating_sub(job.at).as_secs_f64());
                let beyond = starts.iter().zip(&jobs).map(|(&(_, node), job)| beyond(job, &machines[node]));
                let beyond = beyond.sum::<f64>() / jobs.len().max(1) as f64;
                Ok(Seen { waits: waits.collect(), offered: load, beyond, ..Seen::default() })
            }
            Who::Nodes(variant) => self.make_grid(case, variant, machines, &jobs, load, so_far),
        }
    }

    fn make_grid(
        &self,
        case: &Case,
        variant: Variant,
        machines: Vec<Machine>,
        jobs: &[Drawn],
        load: f64,
        so_far: &dyn Fn(f64),
    ) -> Result<Seen, Error> {
        let mut grid = build(case, variant, machines.clone());
        let mut open: BTreeMap<JobId, usize> = BTreeMap::new();
        for (number, job) in jobs.iter().enumerate() {
            let envelope = envelope(number, job);
            open.insert(grid.submit(BEGIN + job.at, NodeId(job.entry), envelope), number);
        }
        grid.world().run_before(BEGIN);
        let before = sum(grid.world().traffic());
        let mut starts: Vec<Option<(Time, NodeId)>> = vec![None; jobs.len()];
        let last = BEGIN + jobs.last().map_or(Span::ZERO, |job| job.at);
        while !open.is_empty() && grid.world().now() < last + PATIENCE {
            let until = grid.world().now() + LOOK;
            grid.world().run_before(until);
            for sight in grid.world().sights() {
                if let Saw::Act(Action::Start { task, .. }) = &sight.saw
                    && let Some(number) = open.remove(&task.job)
                {
                    starts[number] = Some((sight.at, sight.node));
                }
            }
            so_far(1.0 - open.len() as f64 / jobs.len().max(1) as f64);
        }
        let now = grid.world().now();
        let after = sum(grid.world().traffic());
        let minutes = now.since(BEGIN).as_secs_f64() / 60.0 * self.size.nodes as f64;
        let moves = grid.look().nodes().filter_map(|node| grid.look().core(node).tri_pronged());
        let moves = moves.map(tri_pronged::TriPronged::moves).sum();
        let waits = starts
            .iter()
            .zip(jobs)
            .map(|(start, job)| start.map_or(now, |(start, _)| start).since(BEGIN + job.at).as_secs_f64());
        let on = starts
            .iter()
            .zip(jobs)
            .filter_map(|(start, job)| start.map(|(_, node)| beyond(job, &machines[node.0 as usize - 1])));
        let on: Vec<f64> = on.collect();
        Ok(Seen {
            waits: waits.collect(),
            unstarted: open.len(),
            messages: (after.messages - before.messages) as f64 / minutes,
            bytes: (after.bytes - before.bytes) as f64 / minutes,
            moves,
            beyond: on.iter().sum::<f64>() / on.len().max(1) as f64,
            offered: load,
            inputs: grid.look().handled(),
        })
    }
}

fn build(case: &Case, variant: Variant, machines: Vec<Machine>) -> Grid<Node> {
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
    let config = grid::Config {
        seed: case.seed,
        nodes: machines.len(),
        network: network::Config {
            latency,
            loss: 0.0,
            duplication: 0.0,
            reorder: 0.0,
            reorder_ms: 0.0,
            partitions: Vec::new(),
        },
        faults: faults::Config::default(),
        fsync: Span::ZERO,
        overlay: can::Config::default().into(),
        start: Start::Join,
        work: config::Work {
            machine: machines[0].clone(),
            recipe: Recipe::TriPronged(tri_pronged::Config { variant, ..Default::default() }),
            commit: Default::default(),
            // Nobody fails here.
            heartbeat: heartbeat::Config { watch: false, ..Default::default() },
            limit_default: Span::from_hours(24),
            eager: false,
            gate: Default::default(),
        },
        machines,
        threads: 1,
        watch: true,
        story: false,
    };
    Grid::build(config).expect("a network without faults makes sense")
}

fn envelope(number: usize, drawn: &Drawn) -> Envelope {
    let job = Job {
        resources: drawn.needs.clone(),
        limit: Some(Span::from_hours(24)),
        ..computation(drawn.takes, 0)
    };
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Envelope::new(job, Nonce(nonce)).expect("the job makes sense")
}

/// How much of its run node a job does not need, on average over resources.
fn beyond(job: &Drawn, machine: &Machine) -> f64 {
    let capacity: &Resources = &machine.capacity;
    let used: u64 = job.needs.shares(capacity).iter().sum();
    1.0 - used as f64 / (capacity.components().max(1) * WHOLE) as f64
}

fn sum(traffic: BTreeMap<&'static str, Traffic>) -> Traffic {
    traffic.values().fold(Traffic { messages: 0, bytes: 0 }, |sum, one| Traffic {
        messages: sum.messages + one.messages,
        bytes: sum.bytes + one.bytes,
    })
}
