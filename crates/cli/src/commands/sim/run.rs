//! `shoal sim run`: one run of a scenario.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use shoal_protocols::node::Node;
use shoal_simulator::measures::{Spread, Summary};
use shoal_simulator::report::{self, Folder};
use shoal_simulator::run::Run;
use shoal_simulator::scenario::{Overrides, Scenario};

use crate::error::Error;
use crate::output::{Options, Table};
use crate::progress::Bar;

/// Where results go that nobody gave a place.
const OUT: &str = "out";

/// What `shoal sim run` is told.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// Run this workload trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
    summary: &'a Summary,
}

/// Runs a scenario.
pub fn run(arguments: Arguments, output: Options) -> Result<(), Error> {
    let replay = replay(&arguments);
    let Arguments { scenario, trace, recipe, nodes, seed, faults, threads, out, force } = arguments;
    let overrides = Overrides { nodes, recipe, seed, trace, faults };
    let scenario = Scenario::load(&scenario, &overrides)?;
    let run: Run<Node> = Run::prepare(&scenario, threads.into())?;
    // Before the work, so that nobody works in vain.
    let folder = match &out {
        Some(path) => Folder::named(path, force)?,
        None => Folder::numbered(Path::new(OUT), &scenario.name)?,
    };

    let begun = Instant::now();
    let bar = Bar::new();
    let checkers = run.checkers(format!("{replay} --seed {}", scenario.seed));
    let outcome = run.finish(&mut (bar.clone(), checkers));
    bar.clear();
    let outcome = outcome.map_err(|violation| {
        Error::internal(format!("a promise did not hold: {violation}")).hint("nothing was written")
    })?;
    let elapsed_s = begun.elapsed().as_secs_f64();

    report::write(folder.path(), &scenario, &outcome)
        .map_err(|error| Error::internal(format!("{}: {error}", folder.path().display())))?;
    let out = folder.finish()?;
    let summary = &outcome.summary;
    output.print(&Printed { out: &out, elapsed_s, summary }, || table(summary))?;
    eprintln!("{} simulated in {elapsed_s:.1} s; results in {}", hours(summary.simulated_s), out.display());
    Ok(())
}

/// The command that runs the same again, but for its seed, which the scenario may say.
fn replay(arguments: &Arguments) -> String {
    let Arguments { scenario, trace, recipe, nodes, faults, .. } = arguments;
    let mut words = vec!["shoal sim run".to_owned(), quoted(&scenario.display().to_string())];
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {}", quoted(&value))));
    };
    add("--trace", trace.as_ref().map(|path| path.display().to_string()));
    add("--recipe", recipe.clone());
    add("--nodes", nodes.map(|nodes| nodes.to_string()));
    add("--faults", faults.clone());
    words.join(" ")
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./+:=@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::plain();
    let mut row = |title: &str, what: String| {
        table.row([title.to_owned(), what]);
    };
    row(
        "scenario",
        format!(
            "{}: recipe {}, {} nodes, seed {}",
            summary.scenario, summary.recipe, summary.nodes, summary.seed
        ),
    );
    row("workload", summary.workload.clone());
    row("jobs", jobs(summary));
    row("wait", spread(&summary.wait_s, " s"));
    row("bounded slowdown", spread(&summary.bounded_slowdown, ""));
    row("gang start skew", spread(&summary.start_skew_s, " s"));
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let utilisation = &summary.utilisation;
    row(
        "utilisation",
        format!(
            "{} requested, {} effective, {} wasted",
            percent(utilisation.requested),
            percent(utilisation.effective),
            percent(utilisation.wasted)
        ),
    );
    row("promises checked", format!("on {} facts; none broken", summary.facts_checked));
    row("makespan", hours(summary.makespan_s));
    let promises = &summary.promises;
    row("promises kept", format!("{} of {} ({})", promises.kept, promises.made, percent(promises.share)));
    let messages = &summary.messages;
    row(
        "messages",
        format!(
            "{} ({:.2} per node and second), {} ({} per node and second)",
            messages.messages,
            messages.per_node_per_s,
            bytes(messages.bytes as f64),
            bytes(messages.bytes_per_node_per_s)
        ),
    );
    table
}

/// How many jobs there were and what became of them; what did not occur is left out.
fn jobs(summary: &Summary) -> String {
    let rest = [
        ("failed", summary.failed),
        ("refused", summary.refused),
        ("lost", summary.lost),
        ("cancelled", summary.cancelled),
        ("expired", summary.expired),
        ("no place", summary.no_place),
        ("running", summary.running),
        ("waiting", summary.waiting),
        ("unaccepted", summary.unaccepted),
    ];
    let rest = rest.into_iter().filter(|(_, count)| *count > 0);
    let rest: String = rest.map(|(state, count)| format!(", {count} {state}")).collect();
    format!("{}: {} finished{rest}", summary.jobs, summary.finished)
}

fn spread(spread: &Spread, unit: &str) -> String {
    let Spread { mean, median, p95, max } = spread;
    format!("mean {mean:.2}{unit}, median {median:.2}{unit}, 95 % {p95:.2}{unit}, max {max:.2}{unit}")
}

fn hours(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        ..1e3 => format!("{bytes:.0} B"),
        ..1e6 => format!("{:.1} kB", bytes / 1e3),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_the_command_that_was_given() {
        let arguments = Arguments {
            scenario: PathBuf::from("my scenario's.toml"),
            trace: Some(PathBuf::from("t.swf")),
            recipe: Some("asap".to_owned()),
            nodes: Some(7),
            seed: Some(1),
            faults: Some("heavy".to_owned()),
            threads: 2,
            out: None,
            force: false,
        };
        assert_eq!(
            replay(&arguments),
            r"shoal sim run 'my scenario'\''s.toml' --trace t.swf --recipe asap --nodes 7 --faults heavy"
        );
    }
}
