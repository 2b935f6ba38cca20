//! A run in a few lines of words and figures: what the terminal shows, and the top of the page.

use std::cmp::Reverse;

use crate::measures::{Spread, Summary};
use crate::plot::{Unit, human};

/// Reasons that are shown; all of them are in `summary.json`.
const REASONS_SHOWN: usize = 3;

/// Titles and what belongs to them.
pub fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let Summary { scenario, recipe, nodes, seed, utilisation, promises, messages, .. } = summary;
    let mut facts = vec![
        ("scenario", format!("{scenario}: recipe {recipe}, {nodes} nodes, seed {seed}")),
        ("workload", summary.workload.clone()),
        ("jobs", jobs(summary)),
        ("wait", spread(&summary.wait_s, " s")),
        ("bounded slowdown", spread(&summary.bounded_slowdown, "")),
        ("gang start skew", spread(&summary.start_skew_s, " s")),
        (
            "utilisation",
            format!(
                "{} requested, {} effective, {} wasted",
                percent(utilisation.requested),
                percent(utilisation.effective),
                percent(utilisation.wasted)
            ),
        ),
        ("promises checked", format!("on {} facts; none broken", summary.facts_checked)),
        ("makespan", span(summary.makespan_s)),
        ("promises kept", format!("{} of {} ({})", promises.kept, promises.made, percent(promises.share))),
        (
            "messages",
            format!(
                "{} ({:.2} per node and second), {} ({} per node and second)",
                messages.messages,
                messages.per_node_per_s,
                human(messages.bytes as f64, Unit::Bytes),
                human(messages.bytes_per_node_per_s, Unit::Bytes)
            ),
        ),
    ];
    if !summary.dropped.is_empty() {
        let rules = summary.dropped.iter().map(|(rule, lines)| format!("{lines} {rule}"));
        let lines = rules.chain(summary.bad_lines.iter().cloned()).collect::<Vec<_>>().join("; ");
        facts.insert(2, ("lines left out", lines));
    }
    if !summary.reasons.is_empty() {
        let after_jobs = facts.iter().position(|(title, _)| *title == "jobs").map_or(0, |place| place + 1);
        facts.insert(after_jobs, ("not taken", reasons(summary)));
    }
    facts
}

/// Why jobs were not taken or had no place, the most frequent reasons first.
fn reasons(summary: &Summary) -> String {
    let mut reasons: Vec<(&String, &usize)> = summary.reasons.iter().collect();
    reasons.sort_by_key(|&(_, &jobs)| Reverse(jobs));
    let rest: usize = reasons.iter().skip(REASONS_SHOWN).map(|&(_, jobs)| jobs).sum();
    let shown = reasons.iter().take(REASONS_SHOWN).map(|(why, jobs)| format!("{jobs}: {why}"));
    let rest = (rest > 0).then(|| format!("{rest} for other reasons"));
    shown.chain(rest).collect::<Vec<_>>().join("; ")
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Seconds in the unit that fits.
pub fn span(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
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
