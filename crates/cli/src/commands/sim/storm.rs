//! `shoal sim storm`: many small grids in bad weather, each watched by every checker.

use std::collections::BTreeMap;

use serde::Serialize;
use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_simulator::checks::storm::{Weather, storm_of};
use shoal_simulator::checks::story::story;

use crate::error::Error;
use crate::output::{Options, Table};

/// What `shoal sim storm` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many storms, one for each seed
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    from: u64,
    /// Follow this recipe
    #[arg(long, value_name = "NAME", default_value = "sample", value_parser = clap::builder::PossibleValuesParser::new(Recipe::NAMES))]
    recipe: String,
    /// Run this many at once
    #[arg(long, value_name = "T", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Lose a fifth of all messages and double a tenth in every storm, and have nodes crash; each job is one of one node
    #[arg(long)]
    worst: bool,
    /// Print all that happened to the job of the first promise that was broken
    #[arg(long)]
    story: bool,
}

/// What came of the storms.
#[derive(Serialize)]
struct Outcome {
    runs: u64,
    jobs: u64,
    ended: BTreeMap<&'static str, u64>,
    tasks_started: u64,
    crashes: u64,
    inputs: u64,
    facts: u64,
    violations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    story: Vec<String>,
}

/// Runs the storms, and fails if a promise was broken in one.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let Arguments { seeds, from, threads, worst, story: tells, ref recipe } = *arguments;
    if seeds == 0 {
        return Err(Error::user("--seeds 0: must be at least 1"));
    }
    let Some(named) = Recipe::named(recipe) else {
        return Err(Error::user(format!("--recipe {recipe}: unknown")));
    };
    let weather = |seed: u64| match Weather::draw_for(seed, named) {
        weather if worst => weather.at_its_worst(),
        weather => weather,
    };
    let more = if worst { " --worst" } else { "" };
    let replay = |seed: u64| format!("shoal sim storm --from {seed} --seeds 1 --recipe {recipe}{more}");
    let tally = storm_of::<Node>(from..from.saturating_add(seeds), threads.into(), weather, replay);
    let summary = tally.summary;
    let first = tally.violations.values().next().filter(|_| tells);
    let told =
        first.and_then(|first| Some(story::<Node>(weather(first.seed), first.broken.job?, first.broken.at)));
    let outcome = Outcome {
        runs: tally.runs,
        jobs: summary.jobs,
        ended: summary.ended,
        tasks_started: summary.starts,
        crashes: summary.crashes,
        inputs: summary.handled,
        facts: summary.facts,
        violations: tally.violations.values().map(ToString::to_string).collect(),
        story: told.unwrap_or_default(),
    };
    output.print(&outcome, || {
        let lines = outcome.story.iter().map(|line| format!("{line}\n"));
        format!("{}{}", lines.collect::<String>(), table(&outcome))
    })?;
    match outcome.violations.first() {
        None => Ok(()),
        Some(first) => {
            let count = outcome.violations.len();
            Err(Error::internal(format!("{count} of {} storms broke a promise: {first}", outcome.runs)))
        }
    }
}

fn table(outcome: &Outcome) -> Table {
    let mut table = Table::plain();
    let mut row = |title: &str, count: u64| {
        table.row([title.to_owned(), count.to_string()]);
    };
    row("storms", outcome.runs);
    row("jobs accepted", outcome.jobs);
    for (&end, &count) in &outcome.ended {
        row(end, count);
    }
    row("tasks started", outcome.tasks_started);
    row("crashes", outcome.crashes);
    row("inputs handled", outcome.inputs);
    row("facts checked", outcome.facts);
    row("promises broken", outcome.violations.len() as u64);
    table
}
