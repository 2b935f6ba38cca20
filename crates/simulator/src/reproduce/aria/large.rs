//! Large grids: the 26 scenarios with the same load for each node, as far as traffic goes and as a whole.
//!
//! The gap between two jobs shrinks as the grid grows, and between two newcomers of a grid that expands. Traffic is seen by
//! the first jobs; what becomes of all jobs takes whole runs, which are made with the setting that is flat.

use super::case::{Case, Variant};
use super::experiment::{Runs, over, scenes};
use super::seen::Seen;
use super::size::Size;
use crate::reproduce::asap::number;
use crate::reproduce::finding::{Finding, Findings, Known};
use crate::reproduce::sheet::Sheet;

/// The nodes of the paper's grid.
const NODES: f64 = 500.0;
/// The jobs that are followed to see what is said of each.
const FIRST: u32 = 200;
/// The names of the grids on which traffic is compared, as [`Size::scales`] has them.
const SCALES: [&str; 3] = ["x1", "x20", "x200"];
/// The names of the grids on which whole runs are made, as [`Size::whole`] has them.
pub const WHOLE: [&str; 2] = ["x20", "x200"];

/// How a scenario differs on a grid of so many nodes.
pub fn changes(scene: &str, variant: Variant, nodes: u32) -> String {
    let more = f64::from(nodes) / NODES;
    let gap = match scene.trim_start_matches('i') {
        "LowLoad" => 20.0,
        "HighLoad" => 5.0,
        _ => 10.0,
    };
    let jobs = if variant == Variant::Whole(nodes) { 2 * nodes } else { FIRST };
    let mut changes = format!("nodes = {nodes}\nstart = \"graph\"\n");
    changes += &format!("workload.jobs = {jobs}\nworkload.gap_secs = {:?}\n", gap / more);
    if scene.ends_with("Expanding") {
        changes += &format!("faults.joins.every_s = {:?}\n", 50.0 / more);
        // Newcomers find their links without them; all ants of a hundred thousand nodes would take hours.
        changes += "overlay.ant_ms = 9000000\noverlay.evaporate_ms = 1200000\noverlay.rules_ms = 9000000\n";
    }
    if variant != Variant::Scale(nodes) {
        changes += "recipe.request_hops = 5\nrecipe.round_hops = 1\nrecipe.inform_hops = 6\n";
    }
    changes
}

/// The runs on which traffic is compared, both ways, as far as they are wanted.
pub fn scale_cases(size: &Size, wanted: &[&'static str]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, nodes) in SCALES.into_iter().zip(size.scales()) {
        for (kind, variant) in [("paper", Variant::Scale(nodes)), ("flat", Variant::Flat(nodes))] {
            cases.extend(wanted_of(&format!("aria/beyond/scale/{name}/{kind}"), variant, wanted));
        }
    }
    cases
}

/// The whole runs, as far as they are wanted: each of them takes minutes.
pub fn whole_cases(grid: usize, size: &Size, wanted: &[&'static str]) -> Vec<Case> {
    wanted_of(&format!("aria/beyond/whole/{}", WHOLE[grid]), Variant::Whole(size.whole[grid]), wanted)
}

fn wanted_of(group: &str, variant: Variant, wanted: &[&'static str]) -> Vec<Case> {
    let is_wanted = |scene: &&str| wanted.iter().any(|id| id.starts_with(&format!("{group}/{scene}/")));
    scenes().into_iter().filter(is_wanted).map(|scene| Case { scene, variant, seed: 1 }).collect()
}

/// REQUESTs and INFORMs of a job.
fn messages(seen: &Seen) -> f64 {
    let sent = ["request", "inform"].into_iter().filter_map(|kind| seen.traffic.get(kind));
    over(sent.map(|traffic| traffic.messages as f64).sum(), seen.jobs.len() as f64)
}

fn requests(seen: &Seen) -> f64 {
    let sent = seen.traffic.get("request").map_or(0, |traffic| traffic.messages);
    over(sent as f64, seen.jobs.len() as f64)
}

/// Of a thousand jobs.
fn missed(seen: &Seen) -> f64 {
    over(1_000.0 * seen.missed(), seen.jobs.len() as f64)
}

/// What is said of a job as the grid grows, and what fewer hops make of that.
pub fn judge_scale(runs: &Runs, findings: &mut Findings) {
    for (name, nodes) in SCALES.into_iter().zip(runs.size.scales()) {
        for (kind, variant) in [("paper", Variant::Scale(nodes)), ("flat", Variant::Flat(nodes))] {
            for scene in scenes() {
                let seen = runs.varied(scene, variant);
                let each =
                    |figure: fn(&Seen) -> f64| seen.iter().map(|seen| figure(seen)).collect::<Vec<_>>();
                let id = format!("aria/beyond/scale/{name}/{kind}/{scene}");
                findings.figure(&format!("{id}/requests"), &each(requests));
                findings.figure(&format!("{id}/completion"), &each(Seen::completion));
            }
        }
    }
}

/// What becomes of all jobs of a large grid.
pub fn judge_whole(name: &str, nodes: u32, runs: &Runs, findings: &mut Findings) {
    for scene in scenes() {
        let seen = runs.varied(scene, Variant::Whole(nodes));
        let each = |figure: fn(&Seen) -> f64| seen.iter().map(|seen| figure(seen)).collect::<Vec<_>>();
        let id = format!("aria/beyond/whole/{name}/{scene}");
        findings.figure(&format!("{id}/messages"), &each(messages));
        findings.figure(&format!("{id}/completion"), &each(Seen::completion));
        findings.figure(&format!("{id}/missed"), &each(missed));
        findings.figure(&format!("{id}/unfinished"), &each(Seen::unfinished));
    }
}

/// Tables of both.
pub fn sheets(findings: &[Finding]) -> [Sheet; 3] {
    let find = |id: &str| findings.iter().find(|finding| finding.id == id);
    let ours = |id: &str| find(id).and_then(|found| found.ours).map_or_else(|| "-".to_owned(), number);
    let scale = |title: &str, what: &str| {
        let columns = ["", "x1", "x20", "x200", "flat: x1", "x20", "x200"];
        let mut sheet = Sheet::new(title, columns);
        for scene in scenes() {
            let id = |name: &str, kind: &str| format!("aria/beyond/scale/{name}/{kind}/{scene}/{what}");
            if find(&id("x1", "paper")).is_some() {
                let [a, b, c] = SCALES.map(|name| ours(&id(name, "paper")));
                let [d, e, f] = SCALES.map(|name| ours(&id(name, "flat")));
                sheet.row([scene.to_owned(), a, b, c, d, e, f]);
            }
        }
        sheet
    };
    let columns = ["", "messages", "", "completion", "", "missed", "", "unfinished", ""];
    let title = "Whole runs on 20 and 200 times as many nodes: a job's messages, hours, of 1000";
    let mut whole = Sheet::new(title, columns);
    for scene in scenes() {
        let id = |name: &str, what: &str| format!("aria/beyond/whole/{name}/{scene}/{what}");
        if WHOLE.iter().any(|name| find(&id(name, "messages")).is_some()) {
            let both = |what: &str| WHOLE.map(|name| ours(&id(name, what)));
            let [a, b] = both("messages");
            let [c, d] = both("completion");
            let deadlines = scene.contains("Deadline");
            let [e, f] = both("missed").map(|missed| if deadlines { missed } else { "-".to_owned() });
            let [g, h] = both("unfinished");
            whole.row([scene.to_owned(), a, b, c, d, e, f, g, h]);
        }
    }
    [
        scale(
            "REQUESTs of each of the first 200 jobs on larger grids, at the same rate for each node",
            "requests",
        ),
        scale("The same: hours to completion", "completion"),
        whole,
    ]
}

macro_rules! figures {
    ($($scene:literal)*) => {
        &[$(
            figure(concat!("aria/beyond/scale/x1/paper/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x1/paper/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/scale/x1/flat/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x1/flat/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/scale/x20/paper/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x20/paper/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/scale/x20/flat/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x20/flat/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/scale/x200/paper/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x200/paper/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/scale/x200/flat/", $scene, "/requests"), ""),
            figure(concat!("aria/beyond/scale/x200/flat/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/whole/x20/", $scene, "/messages"), ""),
            figure(concat!("aria/beyond/whole/x20/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/whole/x20/", $scene, "/missed"), "of 1000"),
            figure(concat!("aria/beyond/whole/x20/", $scene, "/unfinished"), "jobs"),
            figure(concat!("aria/beyond/whole/x200/", $scene, "/messages"), ""),
            figure(concat!("aria/beyond/whole/x200/", $scene, "/completion"), "h"),
            figure(concat!("aria/beyond/whole/x200/", $scene, "/missed"), "of 1000"),
            figure(concat!("aria/beyond/whole/x200/", $scene, "/unfinished"), "jobs"),
        )*]
    };
}

const fn figure(id: &'static str, unit: &'static str) -> Known {
    Known { id, paper: None, unit, claim: None }
}

/// All that is found out about large grids.
pub const KNOWN: &[Known] = figures![
    "FCFS" "iFCFS" "SJF" "iSJF" "Mixed" "iMixed" "Deadline" "iDeadline" "DeadlineH" "iDeadlineH" "LowLoad" "iLowLoad"
    "HighLoad" "iHighLoad" "Expanding" "iExpanding" "Precise" "iPrecise" "Accuracy25" "iAccuracy25" "AccuracyBad"
    "iAccuracyBad" "iInform1" "iInform4" "iInform15m" "iInform30m"
];

#[cfg(test)]
mod tests {
    use super::super::case::LIBRARY;
    use super::*;
    use crate::scenario::Scenario;

    /// By which the others are stretched: so each has its own load, whatever its file says.
    #[test]
    fn jobs_of_a_grid_of_the_usual_size_come_as_in_the_scenario() {
        for scene in scenes() {
            let case = Case { scene, variant: Variant::Whole(500), seed: 1 };
            let large = Scenario::built_in(LIBRARY, scene, &case.changes()).unwrap();
            let usual = Scenario::built_in(LIBRARY, scene, "seed = 1\n").unwrap();
            let [large_jobs, usual_jobs] = [&large, &usual].map(|scenario| {
                let workload = scenario.workload.load(1).unwrap();
                workload.jobs.iter().map(|job| job.submit).collect::<Vec<_>>()
            });
            assert_eq!(large_jobs, usual_jobs, "{scene}");
            assert_eq!(large.faults, usual.faults, "{scene}");
        }
    }
}
