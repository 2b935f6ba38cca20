//! `shoal sim compare`: one scenario under several schedulers.

use shoal_simulator::study::Study;

use super::study;
use crate::error::Error;
use crate::output::Options;

/// The figures that the terminal shows.
const COLUMNS: [&str; 6] =
    ["not_finished", "wait_mean_s", "wait_p95_s", "slowdown_mean", "utilisation", "messages_per_job"];

/// What `shoal sim compare` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    study: study::Arguments,
    /// Compare these: recipes (sample, asap, aria, tri-pronged, proactive), who knows everything (fcfs, easy, conservative, central-asap, cent), flood
    /// [default: all of them]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    with: Vec<String>,
}

/// Compares.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let Arguments { study, with } = arguments;
    let (seeds, threads) = (study.seeds(), study.threads());
    let prepared = Study::compare(&study.scenario, &study.overrides(None), &with, seeds, threads)?;
    study::run(prepared, &study, &COLUMNS, output)
}
