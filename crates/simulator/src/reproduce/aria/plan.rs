//! Which runs are made for what is wanted; and making them.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::PathBuf;

use shoal_model::Time;
use shoal_protocols::node::Node;

use super::case::{Case, LIBRARY, Variant};
use super::central;
use super::experiment::Experiment;
use super::seen::{Job, Seen};
use super::size::Size;
use crate::checks::Violation;
use crate::faults;
use crate::grid::Grid;
use crate::measures::State;
use crate::reproduce::again::Again;
use crate::reproduce::{Error, Paper, Settings};
use crate::run::{Progress, Run, Watch};
use crate::scenario::Scenario;
use crate::world::Traffic;

/// How long runs with the jobs of a trace may take.
const TRACED: &str = "100d";

/// What is run.
pub struct Plan {
    pub size: Size,
    pub experiments: Vec<Experiment>,
    pub cases: Vec<Case>,
    pub about: Vec<(String, String)>,
    trace: Option<PathBuf>,
    again: Again,
}

impl Plan {
    /// Finds the runs that the wanted ids need.
    pub fn new(settings: &Settings, wanted: &[&'static str]) -> Result<Plan, Error> {
        let size = Size::of(settings);
        let experiments: Vec<Experiment> =
            Experiment::ALL.into_iter().filter(|one| wanted.iter().any(|id| one.finds(id))).collect();
        let cases: BTreeSet<Case> = experiments.iter().flat_map(|one| one.cases(&size, wanted)).collect();
        let cases: Vec<Case> = cases.into_iter().collect();
        let trace = settings.trace.clone();
        let again = Again::new(Paper::Aria, settings, wanted);
        let mut plan = Plan { size, experiments, cases, about: Vec::new(), trace, again };
        let Size { name, nodes, jobs, seeds, seeds_beside, .. } = size;
        let runs = plan.cases.len();
        plan.about.push(("size".to_owned(), format!("{name}: {nodes} nodes, {jobs} jobs, {runs} runs")));
        let beside = format!("1 to {seeds}; what stands beside the paper's scenarios 1 to {seeds_beside}");
        plan.about.push(("seeds".to_owned(), beside));
        if let Some(case) = plan.cases.first() {
            let workload = plan.scenario(case)?.workload.load(case.seed)?;
            plan.about.push(("jobs".to_owned(), workload.provenance.source));
        }
        Ok(plan)
    }

    /// How heavy a run is, roughly.
    pub fn weigh(&self, case: &Case) -> f64 {
        let informs = if case.scene.starts_with('i') { 2.0 } else { 1.0 };
        let deadlines = if case.scene.contains("Deadline") { 1.5 } else { 1.0 };
        let ants = if case.scene.ends_with("Expanding") { 4.0 } else { 1.0 };
        match case.variant {
            Variant::Paper | Variant::Wait(_) | Variant::Plenty => informs * deadlines * ants,
            Variant::Live => informs * 4.0,
            Variant::Cyclon => informs + 5.0,
            Variant::Central => 0.1,
            Variant::Scale(nodes) | Variant::Flat(nodes) => f64::from(nodes) / 500.0,
            Variant::Whole(nodes) => f64::from(nodes) / 10.0,
        }
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Error> {
        let scenario = self.scenario(case)?;
        let workload = scenario.workload.load(case.seed)?;
        let hours = |time: Time| time.as_secs_f64() / 3_600.0;
        let nodes = scenario.nodes;
        let plan = faults::Plan::generate(&scenario.faults, nodes, scenario.seed);
        let events = plan.map(|plan| plan.events().to_vec()).unwrap_or_default();
        let joins = events.into_iter().filter(|event| matches!(event.fault, faults::Fault::Join { .. }));
        let joins: Vec<Time> = joins.map(|event| event.at).collect();
        let joined = joins.iter().copied().map(hours).collect();
        if case.variant == Variant::Central {
            let from: Vec<Time> = iter::repeat_n(Time::ZERO, nodes).chain(joins).collect();
            let jobs = central::run(&workload, &scenario.machines[..from.len()], &from);
            return Ok(Seen { nodes, joined, jobs, traffic: BTreeMap::new(), inputs: 0 });
        }
        let deadlines: Vec<Option<Time>> = workload.profiles.iter().map(|profile| profile.deadline).collect();
        let run: Run<Node> = Run::with_jobs(&scenario, workload, 1)?;
        let checkers = run.checkers(self.replay(case));
        let ledger = Ledger { traffic: BTreeMap::new(), so_far };
        let mut watch = (ledger, checkers);
        let outcome = run.finish(&mut watch)?;
        let jobs = outcome.jobs.iter().zip(deadlines).map(|(job, deadline)| {
            let finished = job.state == State::Finished;
            Job {
                submit: hours(job.submit),
                start: job.start.map(hours),
                end: job.finish.filter(|_| finished).map(hours),
                deadline: deadline.map(hours),
            }
        });
        let (jobs, inputs) = (jobs.collect(), outcome.summary.inputs);
        Ok(Seen { nodes, joined, jobs, traffic: watch.0.traffic, inputs })
    }

    /// The command that makes a run again.
    pub fn replay(&self, case: &Case) -> String {
        let finds = |id: &'static str| {
            let mut finding = self.experiments.iter().filter(|one| one.finds(id));
            finding.any(|one| one.cases(&self.size, &[id]).contains(case))
        };
        self.again.command(case.seed, finds)
    }

    fn scenario(&self, case: &Case) -> Result<Scenario, Error> {
        let Size { nodes, jobs, .. } = self.size;
        let sized = match case.variant {
            Variant::Scale(_) | Variant::Flat(_) | Variant::Whole(_) => String::new(),
            Variant::Paper | Variant::Wait(_) | Variant::Live | Variant::Cyclon | Variant::Central => {
                format!("nodes = {nodes}\nworkload.jobs = {jobs}\n")
            }
            Variant::Plenty => {
                format!("nodes = {nodes}\nworkload.jobs = {jobs}\nworkload.least = {}\n", nodes / 10)
            }
        };
        // Jobs of traces may be far longer than the paper's.
        let traced = match &self.trace {
            Some(file) => {
                format!("length = \"{TRACED}\"\nworkload.trace = {:?}\n", file.display().to_string())
            }
            None => String::new(),
        };
        Ok(Scenario::built_in(LIBRARY, case.scene, &format!("{sized}{traced}{}", case.changes()))?)
    }
}

/// Writes down what was said in all.
struct Ledger<'a> {
    traffic: BTreeMap<String, Traffic>,
    so_far: &'a dyn Fn(f64),
}

impl Watch for Ledger<'_> {
    fn pause(&mut self, grid: &mut Grid, progress: Progress) -> Result<(), Violation> {
        (self.so_far)(progress.ended as f64 / progress.jobs.max(1) as f64);
        if progress.ended == progress.jobs || progress.now >= progress.until {
            let traffic = grid.world().traffic().into_iter();
            self.traffic = traffic.map(|(kind, traffic)| (kind.to_owned(), traffic)).collect();
        }
        Ok(())
    }
}
