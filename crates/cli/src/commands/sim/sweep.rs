//! `shoal sim sweep`: one scenario with several values of its settings.

use shoal_simulator::study::{Setting, Study};

use super::study;
use crate::error::Error;
use crate::output::Options;

/// The figures that the terminal shows.
const COLUMNS: [&str; 5] =
    ["not_finished", "wait_mean_s", "slowdown_mean", "utilisation", "messages_per_job"];

/// What `shoal sim sweep` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    study: study::Arguments,
    /// Follow this recipe instead of the scenario's
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// A setting and its values, such as overlay.cache=10,20,30; of several, every combination is run
    #[arg(long, value_name = "KEY=V,V,…", required = true)]
    set: Vec<String>,
}

/// Sweeps.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let Arguments { study, recipe, set } = arguments;
    let settings: Result<Vec<Setting>, _> = set.iter().map(|setting| setting.parse()).collect();
    let settings = settings.map_err(|error| Error::user(format!("--set {error}")))?;
    let (seeds, threads) = (study.seeds(), study.threads());
    let prepared = Study::sweep(&study.scenario, &study.overrides(recipe), &settings, seeds, threads)?;
    study::run(prepared, &study, &COLUMNS, output)
}
