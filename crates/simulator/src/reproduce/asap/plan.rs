//! Which runs are made for what is wanted, with which jobs; and making them.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use shoal_model::{Span, Time};
use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::scheduling::asap::Tally;

use super::case::{Case, Ends, Jobs, Overlay, Policy, Scheduler};
use super::experiment::Experiment;
use super::seen::{Job, Seen, Stint};
use super::size::{FULL, Size};
use crate::baseline::flood;
use crate::checks::Violation;
use crate::grid::Grid;
use crate::measures::State;
use crate::plot;
use crate::report::run::gantt;
use crate::reproduce::again::Again;
use crate::reproduce::{Error, Paper, Settings};
use crate::run::{Progress, Run, Watch};
use crate::scenario::{Library, Scenario};
use crate::workload::{Length, Piece, Source, TooWide, Trace, Window, Workload};

/// The scenarios of this paper, so that the program needs no files.
pub(crate) const LIBRARY: Library = &[
    ("fig4a", include_str!("../../../../../scenarios/asap/fig4a.toml")),
    ("fig4b", include_str!("../../../../../scenarios/asap/fig4b.toml")),
    ("table1", include_str!("../../../../../scenarios/asap/table1.toml")),
];
/// The bins of the trace, and of the compressed one (specification, section 6).
const BIN: Span = Span::from_hours(24);
const BIN_COMPRESSED: Span = Span::from_hours(6);

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
    /// Finds the runs that the wanted ids need, and looks at the jobs of each kind once.
    pub fn new(settings: &Settings, wanted: &[&'static str]) -> Result<Plan, Error> {
        let size = Size::of(settings);
        let experiments: Vec<Experiment> =
            Experiment::ALL.into_iter().filter(|one| wanted.iter().any(|id| one.finds(id))).collect();
        let cases: BTreeSet<Case> = experiments.iter().flat_map(|one| one.cases(&size)).collect();
        let cases: Vec<Case> = cases.into_iter().collect();
        let again = Again::new(Paper::Asap, settings, wanted);
        let trace = settings.trace.clone();
        let mut plan = Plan { size, experiments, cases, about: Vec::new(), trace, again };
        plan.look_at_jobs()?;
        Ok(plan)
    }

    /// How heavy a run is, roughly: node-days of shuffles, and more for polls.
    pub fn weigh(&self, case: &Case) -> f64 {
        let days = match case.jobs {
            Jobs::Original => f64::from(self.size.days),
            Jobs::Narrow => f64::from(self.size.days) * 0.5,
            // More jobs a day, which search farther.
            Jobs::Compressed => f64::from(self.size.days) * 0.6,
            Jobs::Piece(Piece::Busiest) => self.size.piece_days() * 6.0,
            Jobs::Piece(Piece::Median) | Jobs::Spread(_) => self.size.piece_days() * 2.0,
        };
        let factor = match case.by {
            Scheduler::Asap(asap) => match (asap.policy, asap.overlay) {
                (Policy::Poll, _) => 60.0,
                (_, Overlay::Dynamic) => 1.0 + f64::from(asap.degree) / 40.0,
                (_, Overlay::Static) => 0.6,
            },
            Scheduler::Central(_) | Scheduler::Flood => 0.05,
        };
        days * factor
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Error> {
        let scenario = self.scenario(case)?;
        let jobs = self.jobs(case, &scenario)?;
        let bin = match case.jobs {
            Jobs::Compressed => BIN_COMPRESSED,
            Jobs::Original | Jobs::Piece(_) | Jobs::Narrow | Jobs::Spread(_) => BIN,
        };
        match case.by {
            Scheduler::Asap(_) => self.simulate(case, &scenario, jobs, bin, so_far),
            Scheduler::Central(baseline) => {
                let jobs = in_slots(jobs, &scenario);
                let outcome = baseline.run(&jobs)?;
                let times = outcome.jobs.iter().map(|job| Some((job.start, job.end)));
                Ok(told(&jobs, times, 0, bin))
            }
            Scheduler::Flood => {
                let jobs = in_slots(jobs, &scenario);
                let outcome = flood::run(&jobs, scenario.degree(), case.seed)?;
                let times = outcome.jobs.iter().map(|job| job.map(|job| (job.start, job.end)));
                Ok(told(&jobs, times, outcome.messages, bin))
            }
        }
    }

    /// The command that makes a run again.
    pub fn replay(&self, case: &Case) -> String {
        let needs_it = |one: &Experiment| one.cases(&self.size).contains(case);
        let experiments: Vec<Experiment> = self.experiments.iter().copied().filter(needs_it).collect();
        self.again.command(case.seed, |id| experiments.iter().any(|one| one.finds(id)))
    }

    fn simulate(
        &self,
        case: &Case,
        scenario: &Scenario,
        workload: Workload,
        bin: Span,
        so_far: &dyn Fn(f64),
    ) -> Result<Seen, Error> {
        let (nodes, span) = (workload.nodes, workload.span);
        let run: Run<Node> = Run::with_jobs(scenario, workload, 1)?;
        let zero = Time::ZERO + scenario.warm_up;
        let border = match case.jobs {
            Jobs::Piece(_) => self.size.piece,
            Jobs::Original | Jobs::Compressed | Jobs::Narrow | Jobs::Spread(_) => bin,
        };
        let ledger = Ledger { zero, border, carried: Vec::new(), last: Tally::default(), so_far };
        let checkers = run.checkers(self.replay(case));
        let mut watch = (ledger, checkers);
        let outcome = run.finish(&mut watch)?;
        let (ledger, _) = watch;
        let Recipe::Asap(recipe) = scenario.recipe else {
            unreachable!("the scenarios of this paper follow asap")
        };
        let Ledger { carried, last, .. } = ledger;
        let first = carried.first().copied().unwrap_or_default();
        let messages = last.cost(&recipe) - first.cost(&recipe);
        let jobs = outcome.jobs.iter().map(|job| {
            // A plan never moves: what has not started when a piece ends will start when it was said to.
            let start = job.start.or(job.promised);
            let end = start.map(|start| job.finish.unwrap_or(start + job.requested));
            Job {
                due: job.submit,
                width: job.width,
                requested: job.requested,
                start,
                end,
                failed: job.state == State::NoPlace,
            }
        });
        let (jobs, inputs) = (jobs.collect(), outcome.summary.inputs);
        let runs = gantt::runs(&outcome.jobs, outcome.course.end).into_iter();
        let stint =
            |run: plot::Run| Stint { lane: run.lane as u32, job: run.job, start: run.start, end: run.end };
        let stints = runs.map(stint).collect();
        Ok(Seen { nodes, span, jobs, carried, messages, bin, inputs, stints })
    }

    fn scenario(&self, case: &Case) -> Result<Scenario, Error> {
        let Size { nodes, days, piece, .. } = self.size;
        let nodes = match case.jobs {
            Jobs::Spread(nodes) => nodes,
            Jobs::Narrow => self.size.smallest,
            Jobs::Original | Jobs::Compressed | Jobs::Piece(_) => nodes,
        };
        let mut changes = format!("nodes = {nodes}\nworkload.days = {days}\n{}", case.changes());
        if let Jobs::Piece(_) = case.jobs {
            changes += &format!("length = \"{}s\"\n", piece.as_secs());
            changes += &format!("workload.change.window.length_days = {:?}\n", self.size.piece_days());
        }
        Ok(Scenario::built_in(LIBRARY, case.scenario(), &changes)?)
    }

    /// The jobs of a run.
    fn jobs(&self, case: &Case, scenario: &Scenario) -> Result<Workload, Error> {
        if let Jobs::Spread(nodes) = case.jobs {
            let median = Case { jobs: Jobs::Piece(Piece::Median), ..*case };
            let mut workload = self.jobs(&median, &self.scenario(&median)?)?;
            let share = workload.requested_utilisation().unwrap_or(1.0);
            workload.nodes = nodes;
            workload.compress(share)?;
            return Ok(workload);
        }
        match (&self.trace, case.jobs) {
            (None, _) | (_, Jobs::Narrow) => Ok(scenario.workload.load(case.seed)?),
            (Some(file), _) => {
                let Source::Grid5000Like(like) = &scenario.workload else {
                    unreachable!("the scenarios of this paper draw such jobs")
                };
                let length = match case.ends {
                    Ends::AsAsked => Length::Requested,
                    Ends::Early => Length::Run,
                };
                let mut workload = self.read(file.clone(), length, case.seed)?;
                like.change.apply(&mut workload, case.seed)?;
                Ok(workload)
            }
        }
    }

    /// The jobs of the trace; of a smaller size, those of its last days, thinned out for a smaller grid.
    fn read(&self, file: PathBuf, length: Length, seed: u64) -> Result<Workload, Error> {
        let full = NonZeroU32::new(FULL.nodes);
        let trace = Trace { nodes: full, length, too_wide: TooWide::Refuse, ..Trace::new(file) };
        let mut workload = trace.read()?;
        if self.size.nodes < workload.nodes {
            let whole = workload.span.as_secs_f64() / 86_400.0;
            let length_days = f64::from(self.size.days).min(whole);
            workload.window(Window { start_days: whole - length_days, length_days, piece: None })?;
            workload.scale_to(self.size.nodes, 3_600.0, seed)?;
        }
        Ok(workload)
    }

    /// Looks at the jobs of each kind, so that nothing is wrong with them later, and says what they are.
    fn look_at_jobs(&mut self) -> Result<(), Error> {
        let mut kinds: BTreeSet<(Jobs, Ends)> = BTreeSet::new();
        let firsts: Vec<Case> =
            self.cases.iter().filter(|case| kinds.insert((case.jobs, case.ends))).copied().collect();
        let mut about = Vec::new();
        let Size { name, nodes, seeds, seeds_long, seeds_scale, .. } = self.size;
        about.push(("size".to_owned(), format!("{name}: {nodes} nodes, {} runs", self.cases.len())));
        about.push((
            "seeds".to_owned(),
            format!(
                "1 to {seeds}; polls and pulls of months 1 to {seeds_long}, grids compared 1 to {seeds_scale}"
            ),
        ));
        for case in firsts {
            let scenario = self.scenario(&case)?;
            let workload = self.jobs(&case, &scenario)?;
            crate::run::check_widths(&scenario, &workload)?;
            if case.ends == Ends::Early {
                continue;
            }
            let kind = match case.jobs {
                Jobs::Original => "jobs".to_owned(),
                Jobs::Compressed => "compressed".to_owned(),
                Jobs::Piece(Piece::Busiest) => "busiest piece".to_owned(),
                Jobs::Piece(Piece::Median) => "median piece".to_owned(),
                Jobs::Narrow => "narrow jobs".to_owned(),
                Jobs::Spread(_) => continue,
            };
            about.push((kind, describe(&workload)));
        }
        self.about = about;
        Ok(())
    }
}

fn describe(workload: &Workload) -> String {
    let figures = workload.describe();
    format!(
        "{}: {} jobs in {:.2} days, {:.1} nodes wide on average, {:.1} % wider than 110, {:.1} % requested",
        figures.provenance.source.rsplit(['/', '\\']).next().unwrap_or_default(),
        figures.jobs,
        figures.span_days,
        figures.width.mean,
        100.0 * figures.wider_than_110,
        100.0 * figures.utilisation.unwrap_or_default(),
    )
}

fn in_slots(mut workload: Workload, scenario: &Scenario) -> Workload {
    if let Some(slots) = scenario.slots {
        slots.cut(&mut workload);
    }
    workload
}

/// What a baseline made of its jobs.
fn told(
    workload: &Workload,
    times: impl Iterator<Item = Option<(Time, Time)>>,
    messages: u64,
    bin: Span,
) -> Seen {
    let jobs = workload.jobs.iter().zip(times).map(|(job, times)| Job {
        due: job.submit,
        width: job.width,
        requested: job.requested,
        start: times.map(|(start, _)| start),
        end: times.map(|(_, end)| end),
        failed: times.is_none(),
    });
    let (nodes, span) = (workload.nodes, workload.span);
    let (carried, stints) = (Vec::new(), Vec::new());
    Seen { nodes, span, jobs: jobs.collect(), carried, messages, bin, inputs: 0, stints }
}

/// Writes down what was carried at each border.
struct Ledger<'a> {
    zero: Time,
    border: Span,
    carried: Vec<Tally>,
    /// At the end.
    last: Tally,
    so_far: &'a dyn Fn(f64),
}

impl Watch for Ledger<'_> {
    fn pause(&mut self, grid: &mut Grid, progress: Progress) -> Result<(), Violation> {
        let next = self.zero + self.border * self.carried.len() as u64;
        if progress.now >= next {
            self.carried.push(grid.schedules_carried());
            let past = progress.now.since(self.zero).as_secs_f64();
            let whole = progress.until.since(self.zero).as_secs_f64();
            let jobs = progress.ended as f64 / progress.jobs.max(1) as f64;
            (self.so_far)(jobs.max(past / whole).min(1.0));
        }
        if progress.ended == progress.jobs || progress.now >= progress.until {
            self.last = grid.schedules_carried();
        }
        Ok(())
    }
}
