//! `shoal sim trace`: what is in a workload trace, or in that of a scenario; and writing it.

use std::num::NonZeroU32;
use std::path::PathBuf;

use shoal_simulator::plot::{Unit, human};
use shoal_simulator::report::{self, Folder, percent};
use shoal_simulator::scenario::{Overrides, Scenario};
use shoal_simulator::workload::{BadLines, Class, Description, Length, Quantiles, Target, Trace, Workload};

use super::reading::JobLength;
use crate::error::Error;
use crate::output::chart::{Bars, Spark, terminal_width};
use crate::output::{Options, Table};

/// What `shoal sim trace` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The trace, in SWF or GWF: plain, .gz or .xz; or a scenario (.toml), for the jobs that are read or drawn and changed there
    file: PathBuf,
    /// Nodes of the grid that the jobs are for [default: as the trace or the scenario says]
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,
    /// The length of a job: `run`, planned with what was requested, or `requested`, which it then takes [default: run]
    #[arg(long, value_name = "LENGTH")]
    length: Option<JobLength>,
    /// Pass over lines that cannot be read, and tell how many
    #[arg(long)]
    drop_bad_lines: bool,
    /// Draw the jobs of a scenario from this seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write a page with pictures into this folder, and all figures as JSON
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the jobs themselves into this file, as its name says: .swf or .gwf, with .gz or .xz behind
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

/// Describes a trace.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let Arguments { out, write, force, .. } = arguments;
    if *force && out.is_none() && write.is_none() {
        return Err(Error::user("--force: there is nothing to replace without --out or --write"));
    }
    let target = write.as_ref().map(|path| Target::named(path, *force)).transpose()?;
    let workload = workload(arguments)?;
    let description = workload.describe();
    let folder = out.as_ref().map(|out| Folder::named(out, *force)).transpose()?;
    if let Some(target) = target {
        target.save(&workload)?;
        if !workload.profiles.is_empty() {
            eprintln!("what jobs need of a machine has no column there and is left out");
        }
    }
    let write = |folder: Folder| folder.fill(|draft| report::write_trace(draft, &workload, &description));
    let page = folder.map(write).transpose()?;
    output.print(&description, || format!("{}\n{}", table(&description), charts(&description)))?;
    if let Some(page) = page {
        eprintln!("to look at: {}", page.join("report.html").display());
    }
    Ok(())
}

/// The jobs that are asked for.
fn workload(arguments: &Arguments) -> Result<Workload, Error> {
    let Arguments { file, nodes, length, drop_bad_lines, seed, .. } = arguments;
    if file.extension().is_some_and(|extension| extension == "toml") {
        for (flag, given) in [("--length", length.is_some()), ("--drop-bad-lines", *drop_bad_lines)] {
            if given {
                let why = format!(
                    "{flag}: {} is a scenario, and says itself how its jobs are read",
                    file.display()
                );
                return Err(Error::user(why));
            }
        }
        let nodes = nodes.map(|nodes| nodes.get().into());
        let scenario = Scenario::load(file, &Overrides { nodes, seed: *seed, ..Overrides::default() })?;
        return Ok(scenario.workload.load(scenario.seed)?);
    }
    if seed.is_some() {
        let why = format!("--seed: {} is a trace: nothing is drawn", file.display());
        return Err(Error::user(why).hint("a scenario ends in .toml"));
    }
    let length = length.map_or(Length::Run, JobLength::length);
    let bad_lines = if *drop_bad_lines { BadLines::Drop } else { BadLines::Refuse };
    Ok(Trace { nodes: *nodes, length, bad_lines, ..Trace::new(file) }.read()?)
}

fn table(description: &Description) -> Table {
    let mut table = Table::new(["", "mean", "min", "25 %", "median", "75 %", "90 %", "99 %", "max"]);
    let mut quantiles = |title: &str, figures: &Quantiles| {
        let Quantiles { mean, min, p25, p50, p75, p90, p99, max } = *figures;
        let rest = [min, p25, p50, p75, p90, p99, max].map(|figure| format!("{figure:.0}"));
        let [min, p25, p50, p75, p90, p99, max] = rest;
        table.row([title.to_owned(), format!("{mean:.1}"), min, p25, p50, p75, p90, p99, max]);
    };
    quantiles("nodes", &description.width);
    quantiles("requested s", &description.length_secs);
    quantiles("run s", &description.run_secs);
    let mut above = Table::plain();
    let mut row = |title: &str, what: String| {
        above.row([title.to_owned(), what]);
    };
    row("trace", description.provenance.source.clone());
    row(
        "jobs",
        format!(
            "{} over {:.2} days for {} nodes",
            description.jobs, description.span_days, description.nodes
        ),
    );
    let utilisation = description.utilisation.map_or_else(|| "unknown".to_owned(), percent);
    row(
        "utilisation",
        format!(
            "{utilisation} requested; busiest day {}, {} of days above 60 %, {} above 100 %",
            percent(description.utilisation_day_max),
            percent(description.days_above_60_percent),
            percent(description.days_above_100_percent)
        ),
    );
    row(
        "wide jobs",
        format!(
            "{} above 110 nodes, {} above 400",
            percent(description.wider_than_110),
            percent(description.wider_than_400)
        ),
    );
    row("dropped", format!("{} of {} lines", description.dropped, description.cleaning.records));
    for (rule, count) in description.cleaning.dropped_by_rule().into_iter().filter(|(_, count)| *count > 0) {
        row("", format!("{count} {rule}"));
    }
    for line in &description.cleaning.bad_lines {
        row("", line.clone());
    }
    let records = description.cleaning.records;
    if let Some(promised) = description.cleaning.promised.filter(|&promised| promised != records) {
        row("odd", format!("the header promises {promised} jobs, and {records} are there"));
    }
    for (what, count) in description.cleaning.oddities().into_iter().filter(|(_, count)| *count > 0) {
        row("odd", format!("{count} {what}"));
    }
    above.then(table)
}

/// What the page shows, as far as characters can.
fn charts(description: &Description) -> String {
    let (shape, width) = (&description.shape, terminal_width());
    let spark = |title: &str, values: Vec<f64>, unit: Unit| {
        let highest = human(values.iter().copied().fold(0.0, f64::max), unit);
        let title = title.to_owned();
        Spark { title, values, highest, width }.to_string()
    };
    let counts = |jobs: &[u64]| jobs.iter().map(|&jobs| jobs as f64).collect();
    let by_hour = match shape.hours_of_the_clock {
        true => "jobs by hour of the day, from midnight",
        false => "jobs by hour of the day, days beginning with the trace",
    };
    let share = |jobs: u64| percent(jobs as f64 / description.jobs.max(1) as f64);
    let bars = |title: &str, classes: &[Class], unit: Unit| {
        let row = |class: &Class| (human(class.from as f64, unit), class.jobs, share(class.jobs));
        let title = format!("{title}, at least");
        Bars { title, rows: classes.iter().map(row).collect(), width }.to_string()
    };
    let guesses = &shape.run_of_requested;
    let accuracy = "run over requested time, in steps of 5 %, the last one above 100 %";
    [
        spark("jobs a day", counts(&shape.jobs_by_day), Unit::Plain),
        spark("requested utilisation by day", description.utilisation_by_day.clone(), Unit::Share),
        spark(by_hour, counts(&shape.jobs_by_hour), Unit::Plain),
        spark(accuracy, counts(guesses), Unit::Plain),
        bars("nodes wanted", &shape.width, Unit::Plain),
        bars("requested time", &shape.requested_secs, Unit::Time),
        bars("run time", &shape.run_secs, Unit::Time),
    ]
    .join("\n")
}
