//! What `shoal sim compare` and `shoal sim sweep` have in common: many runs of one scenario, and their results.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use shoal_simulator::scenario::Overrides;
use shoal_simulator::study::{self, Figures, Results, Study};

use super::place::Place;
use super::reading::Reading;
use crate::error::Error;
use crate::output::{Options, Table};
use crate::progress::Runs;

/// What both are told.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// The scenario, a TOML file
    pub scenario: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Have this many nodes
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// Draw all chance of the first run from this seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Make so many runs of each, with one seed after the other
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Let this go wrong: none, light or heavy
    #[arg(long, value_name = "PRESET")]
    faults: Option<String>,
    /// Make this many runs at once; results are the same with any number [default: all cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    place: Place,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    out: &'a Path,
    summary: serde_json::Value,
}

impl Arguments {
    /// What the command line says in place of the file.
    pub fn overrides(&self, recipe: Option<String>) -> Overrides {
        let Arguments { nodes, seed, faults, .. } = self;
        let faults = faults.clone();
        self.reading.over(Overrides { nodes: *nodes, recipe, seed: *seed, faults, ..Overrides::default() })
    }

    /// How many runs of each.
    pub fn seeds(&self) -> NonZeroU32 {
        NonZeroU32::new(self.seeds).unwrap_or(NonZeroU32::MIN)
    }

    /// How many runs at once.
    pub fn threads(&self) -> usize {
        threads(self.threads)
    }
}

/// As many threads as asked for, or as there are cores.
pub fn threads(asked: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, Into::into);
    asked.map_or_else(cores, usize::from)
}

/// Makes the runs of a study and shows what came of them in these columns.
pub fn run(study: Study, arguments: &Arguments, columns: &[&str], output: Options) -> Result<(), Error> {
    let folder = arguments.place.folder(&study.name)?;
    let begun = Instant::now();
    let bar = Runs::new();
    let tell = |progress| bar.tell(progress);
    let results = study.carry_out(&tell)?;
    bar.clear();
    let elapsed_s = begun.elapsed().as_secs_f64();
    let out = folder.fill(|draft| study::write(draft, &results, elapsed_s))?;
    let printed = Printed { out: &out, summary: study::summary(&results) };
    output.print(&printed, || table(&results, columns))?;
    let runs: usize = results.rows.iter().map(|row| row.runs.len()).sum();
    eprintln!("{runs} runs in {elapsed_s:.1} s; results in {}", out.display());
    Ok(())
}

fn table(results: &Results, columns: &[&str]) -> Table {
    let shown = || Figures::COLUMNS.into_iter().filter(|column| columns.contains(&column.name));
    let head: Vec<&str> =
        results.keys.iter().map(String::as_str).chain(shown().map(|column| column.title)).collect();
    let mut table = Table::with_columns(&head);
    for row in &results.rows {
        let figures =
            shown().map(|column| study::mean_and_reach(column, row).unwrap_or_else(|| "-".to_owned()));
        let cells: Vec<String> = row.values.iter().cloned().chain(figures).collect();
        table.cells(&cells);
    }
    table
}
