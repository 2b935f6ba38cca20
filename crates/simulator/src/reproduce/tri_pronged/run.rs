//! A run of a grid: jobs come, and what is seen of them is kept.

use std::collections::BTreeMap;

use shoal_model::machine::Machine;
use shoal_model::matching::Needs;
use shoal_model::{Envelope, Job, JobId, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{Action, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::queue::backfill::{Shares, WHOLE};
use shoal_protocols::scheduling::tri_pronged;

use super::case::{Drawn, offered};
use super::seen::Seen;
use crate::baseline::cent;
use crate::checks::Violation;
use crate::faults;
use crate::grid::{self, Grid, Start};
use crate::network::{self, latency};
use crate::processes::computation;
use crate::reproduce::watched::Watched;
use crate::world::{Saw, Traffic, World};

/// When the first job comes: what lies ahead has been told from edge to edge.
const BEGIN: Time = Time::from_secs(1_200);
/// How often is looked.
const LOOK: Span = Span::from_secs(120);
/// No job is stopped before this.
const LIMIT_LEAST: Span = Span::from_hours(24);
/// Nor before so many times as long as it takes on the baseline machine: no machine is that slow.
const LIMIT_TIMES: u64 = 4;

/// What a run is made of.
pub struct Setup {
    pub seed: u64,
    pub machines: Vec<Machine>,
    pub recipe: tri_pronged::Config,
    /// How what is left of machines is found.
    pub residue: can::Residue,
    /// A run is given up so long after the last job has come.
    pub patience: Span,
    /// Whether nodes have shortcuts through many equal machines.
    pub shortcuts: bool,
    /// What comes out is the same with any number of them.
    pub threads: usize,
    /// The command that makes it again.
    pub replay: String,
}

/// One scheduler that knows everything.
pub fn centrally(jobs: &[Drawn], machines: &[Machine]) -> Seen {
    let wishes = jobs.iter().map(|job| cent::Wish {
        at: Time::ZERO + job.at,
        needs: Needs::new(job.needs.clone(), LIMIT_LEAST),
        takes: cent::Takes::Work(job.takes, 0),
    });
    let starts = cent::run(&wishes.collect::<Vec<_>>(), machines);
    let starts = || starts.iter().map(|start| start.as_ref().expect("each job fits an idle machine"));
    let waits = starts().zip(jobs).map(|(start, job)| start.at.since(Time::ZERO + job.at).as_secs_f64());
    let beyond = starts().zip(jobs).map(|(start, job)| beyond(job, &machines[start.machines[0]]));
    let beyond = beyond.sum::<f64>() / jobs.len().max(1) as f64;
    Seen { waits: waits.collect(), offered: offered(jobs, machines), beyond, ..Seen::default() }
}

/// Nodes that find places by themselves.
pub fn by_nodes(setup: Setup, jobs: &[Drawn], so_far: &dyn Fn(f64)) -> Result<Seen, Violation> {
    let (patience, seed, replay) = (setup.patience, setup.seed, setup.replay.clone());
    let load = offered(jobs, &setup.machines);
    let machines = setup.machines.clone();
    let mut watched = Watched::new(build(setup), seed, replay);
    let mut open: BTreeMap<JobId, usize> = BTreeMap::new();
    for (number, job) in jobs.iter().enumerate() {
        let envelope = envelope(number, job);
        open.insert(watched.grid.submit(BEGIN + job.at, NodeId(job.entry), envelope), number);
    }
    watched.run_before(BEGIN)?;
    let before = watched.grid.look().traffic();
    let mut starts: Vec<Option<(Time, NodeId)>> = vec![None; jobs.len()];
    let last = BEGIN + jobs.last().map_or(Span::ZERO, |job| job.at);
    // What is sent counts while jobs come: the last to start may wait long, when nothing but heartbeats is sent.
    let mut sent = None;
    while !open.is_empty() && watched.grid.look().now() < last + patience {
        let now = watched.grid.look().now();
        let until = if now < last { last.min(now + LOOK) } else { now + LOOK };
        let sights = watched.run_before(until)?;
        if until >= last {
            sent.get_or_insert_with(|| watched.grid.look().traffic());
        }
        for sight in sights {
            if let Saw::Act(Action::Start { task, .. }) = &sight.saw
                && let Some(number) = open.remove(&task.job)
            {
                starts[number] = Some((sight.at, sight.node));
            }
        }
        so_far(1.0 - open.len() as f64 / jobs.len().max(1) as f64);
    }
    let grid = &watched.grid;
    let now = grid.look().now();
    let minutes = last.since(BEGIN).as_secs_f64() / 60.0 * machines.len() as f64;
    let kinds = rates(&before, &sent.unwrap_or_default(), minutes);
    let moves = grid.look().nodes().filter_map(|node| grid.look().core(node).tri_pronged());
    let moves = moves.map(tri_pronged::TriPronged::moves).sum();
    let counters = counters(grid.look());
    let waits = starts
        .iter()
        .zip(jobs)
        .map(|(start, job)| start.map_or(now, |(start, _)| start).since(BEGIN + job.at).as_secs_f64());
    let on = starts
        .iter()
        .zip(jobs)
        .filter_map(|(start, job)| start.map(|(_, node)| beyond(job, &machines[node.0 as usize - 1])));
    let on: Vec<f64> = on.collect();
    let seen = Seen {
        waits: waits.collect(),
        unstarted: open.len(),
        messages: kinds.values().map(|(messages, _)| messages).sum(),
        bytes: kinds.values().map(|(_, bytes)| bytes).sum(),
        moves,
        beyond: on.iter().sum::<f64>() / on.len().max(1) as f64,
        offered: load,
        inputs: grid.look().handled(),
        of_residues: of_residues(&kinds),
        counters,
        kinds,
    };
    watched.end()?;
    Ok(seen)
}

fn build(setup: Setup) -> Grid<Node> {
    let Setup { seed, machines, recipe, residue, shortcuts, threads, .. } = setup;
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
    let config = grid::Config {
        seed,
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
        overlay: can::Config { residue, shortcuts, ..can::Config::default() }.into(),
        start: Start::Graph,
        work: config::Work {
            machine: machines[0].clone(),
            recipe: Recipe::TriPronged(recipe),
            commit: Default::default(),
            // Nobody fails here.
            heartbeat: heartbeat::Config { watch: false, ..Default::default() },
            limit_default: LIMIT_LEAST,
            eager: false,
            gate: Default::default(),
        },
        machines,
        threads,
        watch: true,
        story: false,
    };
    Grid::build(config).expect("a network without faults makes sense")
}

fn envelope(number: usize, drawn: &Drawn) -> Envelope {
    let job = Job {
        resources: drawn.needs.clone(),
        limit: Some(LIMIT_LEAST.max(drawn.takes * LIMIT_TIMES)),
        estimate: drawn.estimate,
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

/// How often jobs had been overtaken when they started, over all nodes; nothing where no node counts.
fn counters(grid: &World<Node>) -> Vec<u64> {
    let of = |node| grid.core(node).aria().and_then(|seats| seats.queue().counters().copied());
    let all = grid.nodes().filter_map(of);
    let sum = all.reduce(|sum, one| std::array::from_fn(|at| sum[at] + one[at]));
    sum.map_or_else(Vec::new, Vec::from)
}

/// Messages and bytes a minute and node, by kind.
fn rates(
    before: &BTreeMap<&'static str, Traffic>,
    after: &BTreeMap<&'static str, Traffic>,
    minutes: f64,
) -> BTreeMap<String, (f64, f64)> {
    let rate = |(&kind, sent): (&&'static str, &Traffic)| {
        let (messages, bytes) = before.get(kind).map_or((0, 0), |before| (before.messages, before.bytes));
        let rates = ((sent.messages - messages) as f64 / minutes, (sent.bytes - bytes) as f64 / minutes);
        (kind.to_owned(), rates)
    };
    after.iter().map(rate).filter(|(_, (messages, _))| *messages > 0.0).collect()
}

/// Messages that tie and untie balloons, or keep a second CAN and search it.
fn of_residues(kinds: &BTreeMap<String, (f64, f64)>) -> f64 {
    let is = |kind: &str| {
        ["tie", "tied", "untie", "find_residue"].contains(&kind) || kind.starts_with("secondary_")
    };
    kinds.iter().filter(|(kind, _)| is(kind)).map(|(_, (messages, _))| messages).sum()
}
