//! `shoal bench cyclon`: node-cycles a second and bytes a node.

use serde::Serialize;
use shoal_simulator::bench::cyclon::{self, CACHE, PERIOD, SHUFFLE, Size, Speed};

use crate::error::Error;
use crate::output::{Options, Table};

/// What `shoal bench cyclon` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Have this many nodes
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=100_000_000))]
    nodes: u32,
    /// Have each node shuffle this often
    #[arg(long, value_name = "C", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
    /// Use this many threads; the bare loop has one
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Draw all chance from this seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run the bare loop only
    #[arg(long)]
    bare: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed {
    nodes: u32,
    cycles: u32,
    threads: u16,
    seed: u64,
    cache: usize,
    shuffle: usize,
    period_s: u64,
    #[serde(flatten)]
    speed: Speed,
    /// The bare loop, where it ran beside: it knows no time, and both sides of a trade happen at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    bare: Option<Speed>,
    /// The loop squeezed as far as it goes, where it ran beside: how much is left to gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuned: Option<Speed>,
    /// A plain loop over events, where it ran beside: messages take their time, as they do through nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Speed>,
    /// Node-cycles a second beside those of the bare loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// Node-cycles a second beside those of the loop over events.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_events: Option<f64>,
}

/// Measures.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let &Arguments { nodes, cycles, threads, seed, bare } = arguments;
    if bare && threads > 1 {
        return Err(Error::user(format!("--threads {threads}: the bare loop has one")));
    }
    let least = CACHE + 1;
    if (nodes as usize) < least {
        return Err(Error::user(format!(
            "--nodes {nodes}: must be at least {least}, so that caches of {CACHE} can be full"
        )));
    }
    let size = Size { nodes, cycles, seed };
    // The world first: the peak of its memory would hide behind that of the loops.
    let speed = if bare { cyclon::bare(size) } else { cyclon::world(size, threads.into()) };
    let beside = |run: fn(Size) -> Speed| (!bare).then(|| run(size));
    let loops = [cyclon::bare, cyclon::tuned, cyclon::events].map(beside);
    // Of several in one process, only the first can tell its memory.
    let unknown = |speed: Speed| Speed { bytes_per_node: None, ..speed };
    let of = |other: Speed| speed.node_cycles_per_s / other.node_cycles_per_s;
    let printed = Printed {
        nodes,
        cycles,
        threads,
        seed,
        cache: CACHE,
        shuffle: SHUFFLE,
        period_s: PERIOD.as_secs(),
        speed,
        bare: loops[0].map(unknown),
        tuned: loops[1].map(unknown),
        events: loops[2].map(unknown),
        ratio: loops[0].map(of),
        ratio_events: loops[2].map(of),
    };
    output.print(&printed, || table(&printed))
}

fn table(printed: &Printed) -> Table {
    let mut table = Table::new(["", "node-cycles/s", "bytes/node", "run s", "build s"]);
    let mut row = |title: &str, speed: &Speed| {
        table.row([
            title.to_owned(),
            format!("{:.0}", speed.node_cycles_per_s),
            speed.bytes_per_node.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}")),
            format!("{:.2}", speed.elapsed_s),
            format!("{:.2}", speed.build_s),
        ]);
    };
    row(if printed.bare.is_some() { "through nodes" } else { "bare loop" }, &printed.speed);
    let loops =
        [("bare loop", &printed.bare), ("tuned loop", &printed.tuned), ("loop over events", &printed.events)];
    for (title, speed) in loops {
        if let Some(speed) = speed {
            row(title, speed);
        }
    }
    for (title, ratio) in [("of the bare loop", printed.ratio), ("of that over events", printed.ratio_events)]
    {
        if let Some(ratio) = ratio {
            let nothing = String::new;
            table.row([title.to_owned(), format!("{ratio:.2}"), nothing(), nothing(), nothing()]);
        }
    }
    table
}
