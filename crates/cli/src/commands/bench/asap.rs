//! `shoal bench asap`: months of push or a day of polls on the grid of the paper.

use std::path::PathBuf;

use serde::Serialize;
use shoal_protocols::scheduling::asap::Policy;
use shoal_simulator::bench::asap::{self, Size, Speed};

use crate::error::Error;
use crate::output::{Options, Table};

/// What `shoal bench asap` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How calendars get from node to node
    #[arg(long, value_enum, default_value = "push")]
    policy: Sharing,
    /// Have this many nodes
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(401..))]
    nodes: u32,
    /// Let jobs come for this many days [default: 82 with push and pull, 1 with poll]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    days: Option<u32>,
    /// Take the first days of this trace instead of drawn jobs
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sharing {
    Push,
    Pull,
    Poll,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed {
    policy: &'static str,
    nodes: u32,
    days: u32,
    #[serde(flatten)]
    speed: Speed,
}

/// Measures.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let Arguments { policy, nodes, days, trace } = arguments;
    let (policy, name, usual) = match policy {
        Sharing::Push => (Policy::Push, "push", 82),
        Sharing::Pull => (Policy::Pull, "pull", 82),
        Sharing::Poll => (Policy::Poll, "poll", 1),
    };
    let days = days.unwrap_or(usual);
    let speed = asap::run(&Size { policy, nodes, days, trace })?;
    let printed = Printed { policy: name, nodes, days, speed };
    output.print(&printed, || table(&printed))
}

fn table(printed: &Printed) -> Table {
    let Printed { policy, nodes, days, speed } = printed;
    let mut table = Table::new(["", "jobs", "schedules carried", "inputs", "inputs/s", "s", "peak MiB"]);
    table.row([
        format!("{policy}, {nodes} nodes, {days} days"),
        speed.jobs.to_string(),
        speed.schedules_carried.to_string(),
        speed.inputs.to_string(),
        format!("{:.0}", speed.inputs_per_s),
        format!("{:.1}", speed.elapsed_s),
        speed.peak_bytes.map_or_else(|| "-".to_owned(), |bytes| (bytes >> 20).to_string()),
    ]);
    table
}
