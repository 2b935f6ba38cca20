//! One run of a scenario: a grid is built, jobs come, what happens is seen and measured, until every job has ended.
//!
//! What the nodes do is handed out in pauses, a minute of simulated time apart. [`Watch`] is the place for whoever
//! wants to look on: checkers, progress bars.

use std::num::NonZeroU32;

use rand::RngExt;
use shoal_model::matching::{Needs, mismatches, nearest};
use shoal_model::{Envelope, Job, Machine, NodeId, Nonce, Span, Thousandths, Time};
use shoal_protocols::node::{Node, config};

use crate::ants;
use crate::checks::{Bounds, Checks, Violation, Watcher};
use crate::grid::{self, Grid, NodeLike};
use crate::measures::{Measures, Outcome, Submission};
use crate::network;
use crate::processes::{command_taking, computation};
use crate::scenario::{Error, Scenario};
use crate::streams::{Purpose, stream};
use crate::workload::profiles::Profile;
use crate::workload::{TraceJob, Workload, WorkloadError};
use crate::world::Sight;

/// The time between two pauses.
pub(crate) const STEP: Span = Span::from_mins(1);
/// The hard limit of a job that names none; jobs of a workload all name one.
const LIMIT_DEFAULT: Span = Span::from_hours(24);
/// How long a job may go without being accepted before its user gives it up for lost.
const ENTRY_PATIENCE: Span = Span::from_mins(10);
/// How often a user looks for a node that is up before taking any.
const ENTRY_TRIES: usize = 100;
/// What a run without a length has on top of what its jobs can take.
const SLACK: Span = Span::from_hours(1);

/// Looks on while a scenario runs.
pub trait Watch<P: NodeLike = Node> {
    /// Something was seen; in the order of time and node. A promise that did not hold stops the run.
    fn see(&mut self, sight: &Sight<P>) -> Result<(), Violation> {
        let _ = sight;
        Ok(())
    }

    /// All that was seen up to now has been shown; the grid stands still.
    fn pause(&mut self, grid: &mut Grid<P>, progress: Progress) -> Result<(), Violation> {
        let _ = (grid, progress);
        Ok(())
    }

    /// The run is over and measured; whoever wants to see more may let the grid go on.
    fn end(&mut self, grid: &mut Grid<P>, ending: &Ending) -> Result<(), Violation> {
        let _ = (grid, ending);
        Ok(())
    }

    /// How many facts were checked.
    fn facts(&self) -> u64 {
        0
    }
}

/// Nobody looks on.
impl<P: NodeLike> Watch<P> for () {}

/// Two look on.
impl<P: NodeLike, A: Watch<P>, B: Watch<P>> Watch<P> for (A, B) {
    fn see(&mut self, sight: &Sight<P>) -> Result<(), Violation> {
        self.0.see(sight)?;
        self.1.see(sight)
    }

    fn pause(&mut self, grid: &mut Grid<P>, progress: Progress) -> Result<(), Violation> {
        self.0.pause(grid, progress)?;
        self.1.pause(grid, progress)
    }

    fn end(&mut self, grid: &mut Grid<P>, ending: &Ending) -> Result<(), Violation> {
        self.0.end(grid, ending)?;
        self.1.end(grid, ending)
    }

    fn facts(&self) -> u64 {
        self.0.facts() + self.1.facts()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The simulated time since the nodes were switched on.
    pub now: Time,
    /// When the run ends at the latest.
    pub until: Time,
    /// Jobs that have ended.
    pub ended: usize,
    /// Jobs that there are.
    pub jobs: usize,
}

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every job that was accepted has ended.
    AllEnded,
    /// Jobs are left, and the run was no longer than asked for.
    CutShort {
        /// When the last of them may begin.
        begin: Time,
    },
    /// Jobs are left, though they had all the time they should need.
    OutOfTime {
        /// When the last of them may begin.
        begin: Time,
    },
    /// Jobs are left, of which some need more machines than are up and will do.
    TooFewMachines,
}

/// A run, ready to begin.
pub struct Run<P: NodeLike = Node> {
    grid: Grid<P>,
    seed: u64,
    jobs: Vec<(Time, Envelope)>,
    measures: Measures,
    until: Time,
    /// Whether the scenario says until when.
    cut: bool,
    bounds: Bounds,
}

impl<P: NodeLike> Run<P> {
    /// Builds the grid and gathers the jobs; all that can be wrong with a scenario is found here.
    pub fn prepare(scenario: &Scenario, threads: usize) -> Result<Run<P>, Error> {
        Run::with_jobs(scenario, load(scenario)?, threads)
    }

    /// The same with these jobs in place of the scenario's own.
    pub fn with_jobs(scenario: &Scenario, mut workload: Workload, threads: usize) -> Result<Run<P>, Error> {
        check_widths(scenario, &workload)?;
        let zero = Time::ZERO + scenario.warm_up;
        let leads = match scenario.slots {
            Some(slots) => slots.cut(&mut workload),
            None => vec![Span::ZERO; workload.jobs.len()],
        };
        let mut jobs = Vec::with_capacity(workload.jobs.len());
        let mut submissions = Vec::with_capacity(workload.jobs.len());
        for (number, (job, lead)) in (0..).zip(workload.jobs.iter().zip(leads)) {
            let due = zero + job.submit.since(Time::ZERO);
            let begin = scenario.slots.map(|_| due);
            let profile = workload.profiles.get(number as usize).map(|profile| (profile, zero));
            let envelope = envelope(number, job, begin, profile, scenario)?;
            if profile.is_some() {
                check_needs(scenario, job.id, envelope.job())?;
            }
            submissions.push(Submission {
                job: envelope.id(),
                number: job.id,
                width: job.width,
                requested: job.requested,
                at: due,
            });
            jobs.push((due - lead, envelope));
        }
        let until = zero + scenario.length.unwrap_or_else(|| long_enough(&workload, scenario.nodes));
        check_connected(scenario)?;
        let grid = Grid::build(grid::Config {
            seed: scenario.seed,
            nodes: scenario.nodes,
            network: scenario.network.clone(),
            faults: scenario.faults.clone(),
            fsync: scenario.fsync,
            overlay: scenario.overlay,
            start: scenario.start,
            work: config::Work {
                machine: scenario.machines[0].clone(),
                recipe: scenario.recipe,
                commit: scenario.commit,
                heartbeat: scenario.heartbeat,
                limit_default: LIMIT_DEFAULT,
                eager: scenario.eager,
                gate: Default::default(),
            },
            machines: scenario.machines.clone(),
            threads,
            watch: true,
            story: false,
        });
        let grid = grid.map_err(|error| at_its_field(scenario, error))?;
        let measures = Measures::new(scenario, &workload, zero, submissions);
        let bounds = Bounds::of(&scenario.commit, scenario.fsync);
        let cut = scenario.length.is_some();
        Ok(Run { grid, seed: scenario.seed, jobs, measures, until, cut, bounds })
    }

    /// All checkers, to watch this run; `replay` is the command that runs it again.
    pub fn checkers(&self, replay: String) -> Watcher {
        Watcher::new(&self.grid, Checks::all(), self.bounds.clone(), self.seed, replay)
    }

    /// Lets it happen, to its end or until a promise does not hold.
    pub fn finish(mut self, watch: &mut dyn Watch<P>) -> Result<Outcome, Violation> {
        let mut submitted = 0;
        loop {
            let now = self.grid.world().now();
            let next = (now + STEP).min(self.until);
            while let Some((at, envelope)) = self.jobs.get(submitted).filter(|(at, _)| *at < next) {
                let entry = entry(&mut self.grid, self.seed, submitted);
                self.grid.submit(*at, entry, envelope.clone());
                submitted += 1;
            }
            let world = self.grid.world();
            world.run_before(next);
            for sight in world.sights() {
                watch.see(&sight)?;
                self.measures.see(&sight);
            }
            self.measures.pause(next, || world.traffic());
            let ended = self.measures.ended();
            let progress = Progress { now: next, until: self.until, ended, jobs: self.jobs.len() };
            watch.pause(&mut self.grid, progress)?;
            let all_in = submitted == self.jobs.len();
            if next >= self.until || all_in && self.measures.open(next, ENTRY_PATIENCE).next().is_none() {
                let ending = self.ending(next);
                let world = self.grid.world();
                let mut outcome = self.measures.sum_up(next, world.traffic(), world.handled());
                watch.end(&mut self.grid, &ending)?;
                outcome.summary.facts_checked = watch.facts();
                return Ok(outcome);
            }
        }
    }

    fn ending(&self, now: Time) -> Ending {
        let open = || self.measures.open(now, ENTRY_PATIENCE).map(|place| self.jobs[place].1.job());
        let Some(begin) = open().map(|job| job.begin.unwrap_or_default()).max() else {
            return Ending::AllEnded;
        };
        match open().all(|job| will_do(&self.grid, job)) {
            false => Ending::TooFewMachines,
            true if self.cut => Ending::CutShort { begin },
            true => Ending::OutOfTime { begin },
        }
    }
}

/// Whether there are as many machines up as the job needs that will do for it.
fn will_do<P: NodeLike>(grid: &Grid<P>, job: &Job) -> bool {
    let needs = Needs::of(job, LIMIT_DEFAULT);
    let world = grid.look();
    let fit = |node: &NodeId| world.is_up(*node) && mismatches(&needs, grid.machine(*node)).next().is_none();
    world.nodes().filter(fit).take(job.nodes.get() as usize).count() == job.nodes.get() as usize
}

/// The jobs of a scenario as whoever knows everything gets them, in its slots. A job takes a core of each of its nodes,
/// so every core of the grid is a node to them: they may put two ranks of a gang on one machine, which nodes do not.
pub fn jobs(scenario: &Scenario) -> Result<Workload, Error> {
    let mut workload = load(scenario)?;
    check_widths(scenario, &workload)?;
    if let Some(slots) = scenario.slots {
        slots.cut(&mut workload);
    }
    let machines = scenario.machines.iter().cycle().take(scenario.nodes);
    let cores = |machine: &Machine| u64::from(machine.capacity.cores.get() / Thousandths::ONE.get());
    let cores: u64 = machines.map(cores).sum();
    // A trace may be of another grid than the one it runs on.
    workload.nodes = u32::try_from(cores).unwrap_or(u32::MAX);
    Ok(workload)
}

/// The jobs of the scenario.
fn load(scenario: &Scenario) -> Result<Workload, Error> {
    scenario.workload.load(scenario.seed).map_err(|error| match error {
        WorkloadError::Setting { setting, why } => {
            let field = scenario.places.find("workload", setting).unwrap_or("workload").to_owned();
            let why = if field.ends_with(setting) { why } else { format!("`{setting}`: {why}") };
            scenario.places.error(&field, why)
        }
        error => Error::Workload(error),
    })
}

/// A job wider than the grid would wait for ever.
pub(crate) fn check_widths(scenario: &Scenario, workload: &Workload) -> Result<(), Error> {
    match workload.jobs.iter().find(|job| job.width as usize > scenario.nodes) {
        None => Ok(()),
        Some(wide) => {
            let what = format!(
                "job {} is {} nodes wide and the grid has {}: raise `nodes`, or filter by `width_max`",
                wide.id, wide.width, scenario.nodes
            );
            Err(scenario.places.error("workload", what))
        }
    }
}

/// Nodes that the ants left apart do not hear of each other's jobs.
fn check_connected(scenario: &Scenario) -> Result<(), Error> {
    if scenario.start != grid::Start::Ants {
        return Ok(());
    }
    let settled = ants::settle_for(scenario.nodes, scenario.seed, &scenario.overlay);
    apart(&settled.graph().components()).map_or(Ok(()), |what| Err(scenario.places.error("start", what)))
}

/// What to say of an overlay in several parts.
fn apart(parts: &[usize]) -> Option<String> {
    let (largest, rest) = parts.split_first().filter(|(_, rest)| !rest.is_empty())?;
    Some(format!(
        "the overlay does not hang together: the ants left {} parts, the largest of {largest} nodes; take another `seed`, or `start = \"graph\"`",
        rest.len() + 1
    ))
}

/// A job for which no machine will do would be looked for in vain.
fn check_needs(scenario: &Scenario, id: i64, job: &Job) -> Result<(), Error> {
    let needs = Needs::of(job, LIMIT_DEFAULT);
    let Some(nearest) = nearest(&needs, scenario.machines.iter()) else { return Ok(()) };
    let lacks: Vec<String> = mismatches(&needs, nearest).map(|mismatch| mismatch.to_string()).collect();
    let what = format!(
        "no machine of the grid will do for job {id}, which for the nearest one {}; `profiles` draws machines that will do",
        lacks.join(", ")
    );
    Err(scenario.places.error("workload", what))
}

/// A job as its user submits it: it takes a core of each node.
fn envelope(
    number: u128,
    job: &TraceJob,
    begin: Option<Time>,
    profile: Option<(&Profile, Time)>,
    scenario: &Scenario,
) -> Result<Envelope, Error> {
    let wanted = Job {
        nodes: NonZeroU32::new(job.width).unwrap_or(NonZeroU32::MIN),
        limit: Some(job.requested + scenario.limit_slack),
        begin,
        ..command_taking(job.run)
    };
    let wanted = match profile {
        None => wanted,
        Some((profile, zero)) => Job {
            resources: profile.resources.clone(),
            requires: profile.requires.clone(),
            estimate: Some(profile.estimate),
            deadline: profile.deadline.map(|deadline| zero + deadline.since(Time::ZERO)),
            limit: wanted.limit,
            ..computation(profile.estimate, profile.drift)
        },
    };
    Envelope::new(wanted, Nonce(number.to_be_bytes()))
        .map_err(|error| scenario.places.error("workload", format!("job {}: {error}", job.id)))
}

/// A node that is up, as a user would choose one.
fn entry<P: NodeLike>(grid: &mut Grid<P>, seed: u64, job: usize) -> NodeId {
    let world = grid.world();
    let nodes = world.nodes().count() as u64;
    let mut chance = stream(seed, Purpose::Entry, job as u64);
    let mut draw = || NodeId(chance.random_range(1..=nodes));
    let first = draw();
    if world.is_up(first) {
        return first;
    }
    (0..ENTRY_TRIES).map(|_| draw()).find(|&node| world.is_up(node)).unwrap_or(first)
}

/// As long as the jobs come, twice what they would take on a full grid, and twice the longest of them.
fn long_enough(workload: &Workload, nodes: usize) -> Span {
    let last = workload.jobs.last().map_or(Span::ZERO, |job| job.submit.since(Time::ZERO));
    let longest = workload.jobs.iter().map(|job| job.requested).max().unwrap_or_default();
    let area: u128 = workload.jobs.iter().map(TraceJob::area).sum();
    let full = Span::from_micros(u64::try_from(area / nodes as u128).unwrap_or(u64::MAX));
    last + full * 2 + longest * 2 + SLACK
}

fn at_its_field(scenario: &Scenario, error: network::Error) -> Error {
    match error {
        network::Error::Field { field, what } => scenario.places.error(&field, what),
        error => Error::Network(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_in_parts_are_told_with_their_parts() {
        assert_eq!(apart(&[5]), None);
        assert_eq!(apart(&[]), None);
        let what = apart(&[3, 2, 1]).expect("three parts");
        assert!(what.contains("3 parts, the largest of 3 nodes"), "{what}");
    }
}
