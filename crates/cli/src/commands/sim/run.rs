//! `shoal sim run`: one run of a scenario.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use shoal_protocols::node::Node;
use shoal_simulator::checks::Watcher;
use shoal_simulator::checks::sabotage::{DoubleBooking, HalfStarted, Planted, Saboteur, SwallowedEnd};
use shoal_simulator::grid::NodeLike;
use shoal_simulator::measures::{Outcome, Summary};
use shoal_simulator::replay::Replay;
use shoal_simulator::report::{self, Folder};
use shoal_simulator::run::{Run, Watch};
use shoal_simulator::scenario::{Overrides, Scenario};

use super::place::Place;
use super::reading::Reading;
use crate::error::Error;
use crate::output::{Options, Table};
use crate::progress::Bar;

/// What `shoal sim run` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The scenario, a TOML file
    scenario: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Follow this recipe instead of the scenario's
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// Have this many nodes
    #[arg(long, value_name = "N")]
    nodes: Option<u64>,
    /// Draw all chance from this seed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Let this go wrong: none, light or heavy
    #[arg(long, value_name = "PRESET")]
    faults: Option<String>,
    /// Use this many threads; results are the same with any number
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Plant this fault in every node, to see that the checkers find it
    #[arg(long, value_name = "FAULT", value_parser = clap::builder::PossibleValuesParser::new(Planted::NAMES))]
    planted: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    out: &'a Path,
    summary: &'a Summary,
}

/// Runs a scenario.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let Arguments { scenario, reading, recipe, nodes, seed, faults, threads, planted, place } = arguments;
    let overrides = reading.over(Overrides { nodes, recipe, seed, faults, ..Overrides::default() });
    let replay =
        Replay::sim("run").word(scenario.display()).over(&overrides).flag("--planted", planted.as_ref());
    let scenario = Scenario::load(&scenario, &overrides)?;
    let asked = Asked { scenario: &scenario, threads: threads.into(), place, replay };
    let begun = Instant::now();
    let (folder, outcome) = match planted.as_deref().and_then(Planted::named) {
        None => asked.carry_out::<Node>(),
        Some(Planted::DoubleBooking) => asked.carry_out::<Saboteur<DoubleBooking>>(),
        Some(Planted::HalfStarted) => asked.carry_out::<Saboteur<HalfStarted>>(),
        Some(Planted::SwallowedEnd) => asked.carry_out::<Saboteur<SwallowedEnd>>(),
    }?;
    let elapsed_s = begun.elapsed().as_secs_f64();

    let out = folder.fill(|draft| report::write(draft, &scenario, &outcome))?;
    let summary = &outcome.summary;
    output.print(&Printed { out: &out, summary }, || table(summary))?;
    let page = out.join("report.html");
    eprintln!(
        "{} simulated in {elapsed_s:.1} s; to look at: {}",
        report::span(summary.simulated_s),
        page.display()
    );
    Ok(())
}

/// A run that is asked for.
struct Asked<'a> {
    scenario: &'a Scenario,
    threads: usize,
    place: Place,
    replay: Replay,
}

impl Asked<'_> {
    /// Runs it on nodes of this kind, watched by all checkers.
    fn carry_out<N: NodeLike>(self) -> Result<(Folder, Outcome), Error>
    where
        Watcher: Watch<N>,
    {
        let Asked { scenario, threads, place, replay } = self;
        let run: Run<N> = Run::prepare(scenario, threads)?;
        let folder = place.folder(&scenario.name)?;
        let bar = Bar::new();
        let checkers = run.checkers(replay.flag("--seed", Some(scenario.seed)).to_string());
        let outcome = run.finish(&mut (bar.clone(), checkers));
        bar.clear();
        let outcome = outcome.map_err(|violation| {
            Error::internal(format!("a promise did not hold: {violation}")).hint("nothing was written")
        })?;
        Ok((folder, outcome))
    }
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::plain();
    for (title, what) in report::facts(summary) {
        table.row([title.to_owned(), what]);
    }
    table
}
