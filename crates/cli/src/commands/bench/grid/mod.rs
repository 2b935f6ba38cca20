//! `shoal bench grid`: how fast a grid of real nodes is, beside what the machine can do at most.

mod array;
pub(super) mod figures;
mod idle;
mod queue;
mod start;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::error::Error;
use crate::output::{Options, Table};
use array::Keep;
use figures::Spread;

/// What can be measured, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Arrays of jobs that do nothing, beside spawning as fast as the machine can
    Array,
    /// How long `shoal submit` takes, and how long until the job runs
    Start,
    /// What nodes take that have nothing to do
    Idle,
    /// A node that holds very many jobs
    Queue,
}

/// What `shoal bench grid` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Measure these only, with commas between
    #[arg(long, value_enum, value_name = "PARTS", value_delimiter = ',')]
    only: Vec<Part>,
    /// Run arrays of this many jobs
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Run each array so often; what is shown is the run in the middle, by its ratio to the machine's limit
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Have this many nodes, where it is more than one
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    nodes: u16,
    /// Cores that each node is said to have, for arrays [default: what the machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: Option<u32>,
    /// Submit this many jobs one after the other
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    submits: u32,
    /// Start this many jobs of each size one after the other
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    starts: u32,
    /// Start gangs of these sizes, with commas between; larger ones than there are nodes are left out
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values_t = [4, 16])]
    gangs: Vec<u16>,
    /// Watch nodes that have nothing to do for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle: u64,
    /// Leave them alone for this long before: nodes that have just met have a lot to say [default: twice what --idle says]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=36_000))]
    settle: Option<u64>,
    /// Have one node hold this many jobs
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=900_000))]
    queued: u32,
    /// All of it, but small: the figures say little
    #[arg(long)]
    quick: bool,
}

/// The part of the processors from which on it is said that other machines took it.
const MUCH: f64 = 0.05;

/// What came of it; what was not asked for is left out.
#[derive(Debug, Default, Serialize)]
struct Printed {
    /// Cores of the machine.
    cores: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<array::Speeds>,
    /// `shoal submit` from its start to its end, on an empty node.
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<Spread>,
    /// From the start of `shoal submit` until the job's program has said something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    starts: Vec<start::Start>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<idle::Idle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<queue::Queue>,
}

/// Shows how far it is.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len}  {msg}  {elapsed}");
        bar.set_style(style.expect("a template that makes sense"));
        Bar(bar)
    }

    /// Begins something of so many steps.
    fn begin(&self, what: impl Into<String>, steps: u64) {
        self.0.set_length(steps);
        self.0.set_position(0);
        self.0.set_message(what.into());
    }

    fn at(&self, step: u64) {
        self.0.set_position(step);
    }

    fn step(&self) {
        self.0.inc(1);
    }
}

impl Arguments {
    /// The same with small sizes, if that was asked for.
    fn sized(self) -> Arguments {
        if !self.quick {
            return self;
        }
        Arguments {
            jobs: 60,
            rounds: 1,
            nodes: 4,
            submits: 10,
            starts: 5,
            gangs: vec![2, 4],
            idle: 1,
            settle: Some(2),
            queued: 200,
            ..self
        }
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Measures.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let sizes = arguments.sized();
    let bar = Bar::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut printed = Printed { cores, ..Printed::default() };
    if sizes.wants(Part::Array) {
        let each = sizes.cores.unwrap_or(u32::try_from(cores).unwrap_or(1));
        let mut rubbish = Vec::new();
        for (nodes, keep) in [(1, Keep::Trusted), (sizes.nodes, Keep::Trusted), (1, Keep::Isolated)] {
            let plan = array::Plan { jobs: sizes.jobs, nodes, cores: each, keep };
            printed.arrays.push(array::measure(plan, sizes.rounds, &mut rubbish, &bar)?);
        }
    }
    if sizes.wants(Part::Start) {
        let (submit, starts) = start::measure(&sizes, &bar)?;
        printed.submit = Some(submit);
        printed.starts = starts;
    }
    if sizes.wants(Part::Idle) {
        printed.idle =
            Some(idle::measure(sizes.nodes, sizes.settle.unwrap_or(2 * sizes.idle), sizes.idle, &bar)?);
    }
    if sizes.wants(Part::Queue) {
        printed.queue = Some(queue::measure(sizes.queued, sizes.submits, &bar)?);
    }
    bar.0.finish_and_clear();
    output.print(&printed, || table(&printed))
}

fn table(printed: &Printed) -> Table {
    let mut table = Table::new(["", "figure", "beside"]);
    let mut row = |title: String, figure: String, beside: String| {
        table.row([title, figure, beside]);
    };
    for speeds in &printed.arrays {
        let array::Plan { jobs, nodes, cores, keep } = speeds.plan;
        let array::Speed { jobs_per_s, raw_per_s, ratio, .. } = speeds.middle;
        let between = |(least, most): (f64, f64)| match speeds.rounds.len() {
            1 => String::new(),
            _ => format!(" ({:.0} to {:.0} %)", least * 100.0, most * 100.0),
        };
        let range = between(speeds.range(|speed| speed.ratio));
        row(
            format!("array of {jobs}, {nodes} nodes of {cores} cores, {}", keep.name()),
            format!("{jobs_per_s:.0} jobs/s"),
            format!("{:.0} % of {raw_per_s:.0} spawns/s{range}", ratio * 100.0),
        );
        if let (Some(raw), Some(ratio)) = (speeds.middle.raw_in_cells_per_s, speeds.middle.ratio_in_cells) {
            let range = between(speeds.range(|speed| speed.ratio_in_cells.unwrap_or_default()));
            row(
                String::new(),
                String::new(),
                format!("{:.0} % of {raw:.0} spawns/s in cells{range}", ratio * 100.0),
            );
        }
        // What was measured then is the others as much as this.
        if let Some(stolen) = speeds.middle.stolen.filter(|&stolen| stolen >= MUCH) {
            let said = format!("other machines took {:.0} % of the processors", stolen * 100.0);
            row(String::new(), String::new(), said);
        }
    }
    let spread =
        |spread: &Spread| (format!("{:.1} ms", spread.p50_ms), format!("p99 {:.1} ms", spread.p99_ms));
    if let Some(submit) = &printed.submit {
        let (middle, most) = spread(submit);
        row(format!("shoal submit, {} times", submit.count), middle, most);
    }
    for start in &printed.starts {
        let (middle, most) = spread(&start.spread);
        row(format!("submit to running, {} nodes", start.nodes), middle, most);
    }
    if let Some(idle) = &printed.idle {
        let whose = format!("idle node, one of {}", idle.nodes);
        row(whose.clone(), format!("{:.2} % CPU", idle.cpu_percent), String::new());
        row(
            format!("{whose}, resident"),
            format!("{:.1} MB", idle.resident_mb),
            format!("{:.1} MB with its supervisor", idle.resident_all_mb),
        );
        row(
            format!("{whose}, its own"),
            format!("{:.1} MB", idle.own_mb),
            "the rest is the program, which all share".to_owned(),
        );
        let bytes = idle.bytes_per_s.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0} bytes/s"));
        row(format!("{whose}, sent"), bytes, "all IP traffic counted".to_owned());
    }
    if let Some(queue) = &printed.queue {
        let whose = format!("a node with {} jobs", queue.jobs);
        row(
            format!("{whose}, filled"),
            format!("{:.1} s", queue.fill_s),
            format!("{:.0} jobs/s", queue.jobs_per_s),
        );
        row(
            format!("{whose}, resident"),
            format!("{:.0} MB", queue.resident_mb),
            format!("{:.0} MB when empty", queue.resident_empty_mb),
        );
        let (middle, most) = spread(&queue.submit);
        row(format!("{whose}, shoal submit"), middle, most);
        row(format!("{whose}, restart"), format!("{:.2} s", queue.restart_s), "after kill -9".to_owned());
        row(format!("{whose}, resident then"), format!("{:.0} MB", queue.resident_again_mb), String::new());
    }
    table
}
