//! What `shoal sim compare` and `shoal sim sweep` have in common: many runs of one scenario, and their results.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use shoal_simulator::report::Folder;
use shoal_simulator::scenario::Overrides;
use shoal_simulator::study::{self, Figures, Progress, Results, Study};

use crate::error::Error;
use crate::output::{Options, Table};

/// Where results go that nobody gave a place.
const OUT: &str = "out";

/// What both are told.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// The scenario, a TOML file
    pub scenario: PathBuf,
    /// Run this workload trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
    /// Write the results into this folder [default: a new one, out/SCENARIO-001 and so on]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace what is in the folder
    #[arg(long, requires = "out")]
    force: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    out: &'a Path,
    elapsed_s: f64,
    summary: serde_json::Value,
}

impl Arguments {
    /// What the command line says in place of the file.
    pub fn overrides(&self, recipe: Option<String>) -> Overrides {
        let Arguments { nodes, seed, trace, faults, .. } = self;
        let (trace, faults) = (trace.clone(), faults.clone());
        Overrides { nodes: *nodes, recipe, seed: *seed, trace, faults, set: Vec::new() }
    }

    /// How many runs of each.
    pub fn seeds(&self) -> NonZeroU32 {
        NonZeroU32::new(self.seeds).unwrap_or(NonZeroU32::MIN)
    }

    /// How many runs at once.
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, Into::into);
        self.threads.map_or_else(cores, usize::from)
    }
}

/// Makes the runs of a study and shows what came of them in these columns.
pub fn run(study: Study, arguments: &Arguments, columns: &[&str], output: Options) -> Result<(), Error> {
    // Before the work, so that nobody works in vain.
    let folder = match &arguments.out {
        Some(path) => Folder::named(path, arguments.force)?,
        None => Folder::numbered(Path::new(OUT), &study.name)?,
    };
    let begun = Instant::now();
    let bar = bar();
    let tell = |progress: Progress| {
        bar.set_position((progress.share * 1_000.0) as u64);
        bar.set_message(format!("{} of {} runs", progress.done, progress.runs));
    };
    let results = study.carry_out(&tell)?;
    bar.finish_and_clear();
    let elapsed_s = begun.elapsed().as_secs_f64();
    study::write(folder.path(), &results, elapsed_s)
        .map_err(|error| Error::internal(format!("{}: {error}", folder.path().display())))?;
    let out = folder.finish()?;
    let printed = Printed { out: &out, elapsed_s, summary: study::summary(&results) };
    output.print(&printed, || table(&results, columns))?;
    let runs: usize = results.rows.iter().map(|row| row.runs.len()).sum();
    eprintln!("{runs} runs in {elapsed_s:.1} s; results in {}", out.display());
    Ok(())
}

/// A bar over all runs; hidden where stderr is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1_000);
    let style = ProgressStyle::with_template("{bar:40} {percent} %  {msg}  {elapsed}");
    bar.set_style(style.expect("a template that makes sense"));
    bar
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
