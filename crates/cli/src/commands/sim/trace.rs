//! `shoal sim trace`: what is in a workload trace.

use std::num::NonZeroU32;
use std::path::PathBuf;

use shoal_simulator::workload::{Description, Quantiles, Trace};

use crate::error::Error;
use crate::output::{Options, Table};

/// What `shoal sim trace` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The trace, in SWF or GWF: plain, .gz or .xz
    file: PathBuf,
    /// Nodes of the grid that the jobs are for [default: as the trace says]
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,
}

/// Describes a trace.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let trace = Trace { nodes: arguments.nodes, ..Trace::new(&arguments.file) };
    let description = trace.read()?.describe();
    output.print(&description, || table(&description))
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
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
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
    for (what, count) in description.cleaning.oddities().into_iter().filter(|(_, count)| *count > 0) {
        row("odd", format!("{count} {what}"));
    }
    above.then(table)
}
