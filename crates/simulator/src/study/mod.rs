//! Many runs of one scenario beside each other: under several schedulers (*compare*), or with several values of its
//! settings (*sweep*), with one or more seeds each, on all cores.
//!
//! The runs of one seed have the same jobs, so that what differs is what was changed. Schedulers that know everything
//! ([`crate::baseline`]) have no network and no faults: they are what the others are measured against.

mod figures;
mod page;
mod setting;
mod write;

use std::num::NonZeroU32;
use std::path::Path;

use shoal_model::Machine;
use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;

use crate::baseline::{Baseline, BaselineError, cent, flood};
use crate::checks::Violation;
use crate::grid::Grid;
use crate::replay::Replay;
use crate::reproduce::pool;
use crate::run::{self, Run, Watch};
use crate::scenario::{self, Overrides, Scenario};

pub use crate::reproduce::pool::{Progress, Tell};
pub use figures::{Column, Figures};
pub use page::mean_and_reach;
pub use setting::{Setting, SettingError};
pub use write::{summary, write};

/// More runs than anybody waits for; a study of more is a slip of the finger.
const RUNS_MAX: usize = 10_000;
/// Settings that cannot be swept, and what to do instead.
const NOT_SWEPT: [(&str, &str); 2] =
    [("seed", "--seed and --seeds say which are run"), ("like", "sweep each of those scenarios by itself")];
/// What the scheduler of Lee, Keleher and Sussman that knows everything is called on the command line.
const CENT: &str = "cent";
/// What flooding is.
const FLOOD: &str = "flood";

/// Runs of one scenario beside each other, ready to be made.
pub struct Study {
    /// The scenario's name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: Option<String>,
    /// What the variants differ in: `scheduler`, or the settings.
    pub keys: Vec<String>,
    seeds: Vec<u64>,
    variants: Vec<Variant>,
    threads: usize,
}

/// One way to run the scenario.
struct Variant {
    /// Its value of each key.
    values: Vec<String>,
    by: Scheduler,
    /// The scenario, by seed, and the command that runs it by itself.
    scenarios: Vec<(Scenario, String)>,
}

/// Who decides where and when jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheduler {
    Nodes,
    Central(Baseline),
    Cent,
    Flood,
}

/// What came of a study.
pub struct Results {
    /// The scenario's name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: Option<String>,
    /// What the variants differ in.
    pub keys: Vec<String>,
    /// From which all chance flowed, run by run of each variant.
    pub seeds: Vec<u64>,
    /// The variants, in the order they were asked for.
    pub rows: Vec<Row>,
}

/// What came of one variant.
pub struct Row {
    /// Its value of each key.
    pub values: Vec<String>,
    /// The figures, by seed.
    pub runs: Vec<Figures>,
}

/// Why a study cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario, as it is or as it was changed.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// The jobs are none for a scheduler.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// A promise did not hold in one of the runs.
    #[error("a promise did not hold: {0}")]
    Broken(#[from] Violation),
    /// A setting that cannot be read.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Nobody is called that.
    #[error("no scheduler is called `{name}`: take some of {}", schedulers().join(", "))]
    Scheduler {
        /// What was asked for.
        name: String,
    },
    /// Not a setting of one run.
    #[error("`{key}` cannot be swept: {instead}")]
    NotSwept {
        /// Which.
        key: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The same twice.
    #[error("`{what}` is asked for twice: name it once")]
    Twice {
        /// What was.
        what: String,
    },
    /// Too many runs.
    #[error("these are {runs} runs: ask for at most {RUNS_MAX}")]
    TooMany {
        /// How many.
        runs: usize,
    },
}

/// The names of all schedulers that can be compared.
pub fn schedulers() -> Vec<&'static str> {
    let central = Baseline::ALL.map(Baseline::name);
    Recipe::NAMES.iter().copied().chain(central).chain([CENT, FLOOD]).collect()
}

impl Study {
    /// The scenario under several schedulers; under all of them if none is named.
    pub fn compare(
        file: &Path,
        overrides: &Overrides,
        names: &[String],
        seeds: NonZeroU32,
        threads: usize,
    ) -> Result<Study, Error> {
        let all: Vec<String> = schedulers().into_iter().map(str::to_owned).collect();
        let names = if names.is_empty() { &all } else { names };
        no_doubles(names.iter().map(String::as_str))?;
        let mut changed = Vec::new();
        for name in names {
            let (by, recipe) = match name.parse::<Baseline>() {
                Ok(central) => (Scheduler::Central(central), None),
                Err(_) if name == CENT => (Scheduler::Cent, None),
                Err(_) if name == FLOOD => (Scheduler::Flood, None),
                Err(_) if Recipe::NAMES.contains(&name.as_str()) => (Scheduler::Nodes, Some(name.clone())),
                Err(_) => return Err(Error::Scheduler { name: name.clone() }),
            };
            let recipe = recipe.or_else(|| overrides.recipe.clone());
            changed.push((vec![name.clone()], by, Overrides { recipe, ..overrides.clone() }));
        }
        Study::prepare(file, vec!["scheduler".to_owned()], changed, seeds, threads)
    }

    /// The scenario with every combination of these values of its settings.
    pub fn sweep(
        file: &Path,
        overrides: &Overrides,
        settings: &[Setting],
        seeds: NonZeroU32,
        threads: usize,
    ) -> Result<Study, Error> {
        no_doubles(settings.iter().map(|setting| setting.key.as_str()))?;
        if let Some((key, instead)) =
            NOT_SWEPT.into_iter().find(|(key, _)| settings.iter().any(|setting| setting.key == *key))
        {
            return Err(Error::NotSwept { key, instead });
        }
        let mut combinations = vec![Vec::new()];
        for setting in settings {
            no_doubles(setting.values.iter().map(String::as_str))?;
            let longer = combinations.iter().flat_map(|values: &Vec<String>| {
                setting.values.iter().map(|value| [values.as_slice(), std::slice::from_ref(value)].concat())
            });
            combinations = longer.collect();
            check_count(combinations.len(), seeds)?;
        }
        let keys: Vec<String> = settings.iter().map(|setting| setting.key.clone()).collect();
        let changed = combinations.into_iter().map(|values| {
            let set = keys.iter().cloned().zip(values.iter().map(|value| setting::in_toml(value))).collect();
            (values, Scheduler::Nodes, Overrides { set, ..overrides.clone() })
        });
        Study::prepare(file, keys.clone(), changed.collect(), seeds, threads)
    }

    fn prepare(
        file: &Path,
        keys: Vec<String>,
        changed: Vec<(Vec<String>, Scheduler, Overrides)>,
        seeds: NonZeroU32,
        threads: usize,
    ) -> Result<Study, Error> {
        check_count(changed.len(), seeds)?;
        let mut variants: Vec<Variant> = Vec::new();
        let mut first: Option<Scenario> = None;
        for (values, by, overrides) in changed {
            let base = Scenario::load(file, &overrides)?;
            let seeded = |more: u64| {
                let seed = base.seed.wrapping_add(more);
                let scenario = Scenario::load(file, &Overrides { seed: Some(seed), ..overrides.clone() })?;
                Ok((scenario, replay(file, &overrides, seed)))
            };
            let scenarios: Vec<(Scenario, String)> =
                (0..u64::from(seeds.get())).map(seeded).collect::<Result<_, Error>>()?;
            // What can be wrong with a variant is found before the work; the jobs are thrown away again, to save memory.
            check(&base, by)?;
            first.get_or_insert(base);
            variants.push(Variant { values, by, scenarios });
        }
        let first = first.expect("there is at least one variant");
        let seeds = variants[0].scenarios.iter().map(|(scenario, _)| scenario.seed).collect();
        Ok(Study { name: first.name, about: first.about, keys, seeds, variants, threads })
    }

    /// Makes all runs.
    pub fn carry_out(self, tell: Tell<'_>) -> Result<Results, Error> {
        let Study { name, about, keys, seeds, variants, threads } = self;
        let cases: Vec<(usize, usize)> = (0..variants.len())
            .flat_map(|variant| (0..seeds.len()).map(move |seed| (variant, seed)))
            .collect();
        let weigh = |&(variant, _): &(usize, usize)| {
            let Variant { by, scenarios, .. } = &variants[variant];
            if *by == Scheduler::Nodes { scenarios[0].0.nodes as f64 } else { 1.0 }
        };
        let work = |&(variant, seed): &(usize, usize), so_far: &dyn Fn(f64)| {
            let Variant { by, scenarios, .. } = &variants[variant];
            let (scenario, replay) = &scenarios[seed];
            one(*by, scenario, replay, so_far)
        };
        let mut made = pool::carry_out(&cases, threads, weigh, work, tell)?;
        let rows = variants.iter().enumerate().map(|(place, variant)| Row {
            values: variant.values.clone(),
            runs: (0..seeds.len())
                .filter_map(|seed| made.remove(&(place, seed)))
                .map(|run| run.seen)
                .collect(),
        });
        let rows = rows.collect();
        Ok(Results { name, about, keys, seeds, rows })
    }
}

/// The command that makes one run: only a sweep takes settings by name.
fn replay(file: &Path, overrides: &Overrides, seed: u64) -> String {
    let verb = if overrides.set.is_empty() { "run" } else { "sweep" };
    let command = Replay::sim(verb).word(file.display()).over(overrides);
    command.flag("--seed", Some(seed)).flag("--threads", Some(1)).to_string()
}

/// Makes one run.
fn one(by: Scheduler, scenario: &Scenario, replay: &str, so_far: &dyn Fn(f64)) -> Result<Figures, Error> {
    match by {
        Scheduler::Nodes => {
            let run: Run<Node> = Run::prepare(scenario, 1)?;
            let checkers = run.checkers(replay.to_owned());
            Ok(Figures::of_run(&run.finish(&mut (Teller(so_far), checkers))?.summary))
        }
        Scheduler::Central(baseline) => {
            let workload = run::jobs(scenario)?;
            let placed: Vec<_> = baseline.run(&workload)?.jobs.into_iter().map(Some).collect();
            Ok(Figures::of_jobs(&placed, None, workload.nodes))
        }
        Scheduler::Cent => {
            let workload = run::jobs(scenario)?;
            let machines: Vec<Machine> =
                scenario.machines.iter().cycle().take(scenario.nodes).cloned().collect();
            Ok(Figures::of_jobs(&cent::place(&workload, &machines), None, workload.nodes))
        }
        Scheduler::Flood => {
            let workload = run::jobs(scenario)?;
            let outcome = flood::run(&workload, scenario.degree(), scenario.seed)?;
            Ok(Figures::of_jobs(&outcome.jobs, Some(outcome.messages), workload.nodes))
        }
    }
}

/// Says what is wrong with a run, if anything, without making it.
fn check(scenario: &Scenario, by: Scheduler) -> Result<(), Error> {
    match by {
        Scheduler::Nodes => Run::<Node>::prepare(scenario, 1).map(|_| ())?,
        Scheduler::Central(_) | Scheduler::Cent | Scheduler::Flood => run::jobs(scenario).map(|_| ())?,
    }
    Ok(())
}

/// Tells how far a run is.
struct Teller<'a>(&'a dyn Fn(f64));

impl Watch for Teller<'_> {
    fn pause(&mut self, _grid: &mut Grid, progress: run::Progress) -> Result<(), Violation> {
        (self.0)(progress.ended as f64 / progress.jobs.max(1) as f64);
        Ok(())
    }
}

fn check_count(variants: usize, seeds: NonZeroU32) -> Result<(), Error> {
    let runs = variants.saturating_mul(seeds.get() as usize);
    if runs > RUNS_MAX { Err(Error::TooMany { runs }) } else { Ok(()) }
}

fn no_doubles<'a>(all: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for one in all {
        if !seen.insert(one) {
            return Err(Error::Twice { what: one.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
