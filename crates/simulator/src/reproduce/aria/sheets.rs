//! The paper's figures in tables, with ours beside them.

use super::experiment::{WAITING, WAITS, scenes};
use super::large;
use crate::reproduce::asap::number;
use crate::reproduce::finding::Finding;
use crate::reproduce::sheet::Sheet;

/// All tables for which there are findings.
pub fn sheets(findings: &[Finding]) -> Vec<Sheet> {
    let sheets = [
        scenarios(findings),
        deadlines(findings),
        accept_wait(findings),
        otherwise(findings),
        beside(findings),
    ];
    sheets.into_iter().chain(large::sheets(findings)).filter(|sheet| !sheet.rows.is_empty()).collect()
}

fn find<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.id == id)
}

fn ours(findings: &[Finding], id: &str) -> String {
    find(findings, id).and_then(|finding| finding.ours).map_or_else(|| "-".to_owned(), number)
}

fn scenarios(findings: &[Finding]) -> Sheet {
    let columns = ["", "wait", "execution", "completion", "idle", "REQUEST", "INFORM", "total"];
    let title = "The 26 scenarios: hours, idle nodes at 3 h and MB per node, means over seeds";
    let mut sheet = Sheet::new(title, columns);
    for scene in scenes() {
        let of = |name: &str| ours(findings, &format!("aria/scenario/{scene}/{name}"));
        if find(findings, &format!("aria/scenario/{scene}/wait")).is_some() {
            let names = ["wait", "execution", "completion", "idle_3h", "request", "inform", "total"];
            let [wait, execution, completion, idle, request, inform, total] = names.map(of);
            sheet.row([scene.to_owned(), wait, execution, completion, idle, request, inform, total]);
        }
    }
    sheet
}

fn deadlines(findings: &[Finding]) -> Sheet {
    let mut sheet = Sheet::new(
        "Figure 4: missed deadlines of 1000",
        ["", "paper", "ours", "least", "most", "95 % interval"],
    );
    for scene in ["Deadline", "iDeadline", "DeadlineH", "iDeadlineH"] {
        let Some(finding) = find(findings, &format!("aria/fig4/{}/missed", scene.to_lowercase())) else {
            continue;
        };
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let spread = finding.spread;
        sheet.row([
            scene.to_owned(),
            text(finding.paper),
            text(finding.ours),
            text(spread.map(|spread| spread.min)),
            text(spread.map(|spread| spread.max)),
            spread.map_or_else(|| "-".to_owned(), |spread| spread.ci95.map(number).join(" to ")),
        ]);
    }
    sheet
}

fn accept_wait(findings: &[Finding]) -> Sheet {
    let columns =
        ["wait for offers", "FCFS, h", "iFCFS, h", "Deadline", "iDeadline", "DeadlineH", "iDeadlineH"];
    let mut sheet = Sheet::new("How long offers are waited for: completion, and missed deadlines", columns);
    for wait in WAITS {
        let cell = |scene: &str| {
            let name = if scene.contains("Deadline") { "missed" } else { "completion" };
            ours(findings, &format!("aria/accept_wait/{wait}s/{scene}/{name}"))
        };
        let [a, b, c, d, e, f] = WAITING.map(cell);
        if find(findings, &format!("aria/accept_wait/{wait}s/FCFS/completion")).is_some() {
            sheet.row([format!("{wait} s"), a, b, c, d, e, f]);
        }
    }
    let [a, b, c, d, e, f] =
        WAITING.map(|scene| ours(findings, &format!("aria/accept_wait/0s/{scene}/unfinished")));
    if find(findings, "aria/accept_wait/0s/FCFS/unfinished").is_some() {
        sheet.row(["0 s: unfinished".to_owned(), a, b, c, d, e, f]);
    }
    sheet
}

fn otherwise(findings: &[Finding]) -> Sheet {
    let columns = ["", "completion", "ants go on", "CYCLON", "knows all", "missed", "CYCLON", "knows all"];
    let title = "The 26 with ants that go on and on CYCLON (first seeds only), and by one that knows all: hours, missed";
    let mut sheet = Sheet::new(title, columns);
    for scene in scenes() {
        let beyond = ["live", "cyclon", "central"].map(|how| format!("aria/beyond/{how}/{scene}"));
        if beyond.iter().all(|how| find(findings, &format!("{how}/completion")).is_none()) {
            continue;
        }
        let [live, cyclon, central] = &beyond;
        let missed = format!("aria/fig4/{}", scene.to_lowercase());
        let of = |group: &str, name: &str| ours(findings, &format!("{group}/{name}"));
        sheet.row([
            scene.to_owned(),
            of(&format!("aria/scenario/{scene}"), "completion"),
            of(live, "completion"),
            of(cyclon, "completion"),
            of(central, "completion"),
            of(&missed, "missed"),
            of(cyclon, "missed"),
            of(central, "missed"),
        ]);
    }
    sheet
}

fn beside(findings: &[Finding]) -> Sheet {
    let mut sheet = Sheet::new("Beside the paper", ["", "ours"]);
    let rows = [
        ("aria/beyond/cyclon/Mixed/request", "Mixed on CYCLON: REQUEST, MB"),
        ("aria/beyond/cyclon/iMixed/request", "iMixed on CYCLON: REQUEST, MB"),
        ("aria/beyond/cause/Deadline/missed", "Deadline, each job for a tenth of the machines: missed"),
        ("aria/beyond/cause/iDeadline/missed", "iDeadline, each job for a tenth of the machines: missed"),
        ("aria/beyond/cause/DeadlineH/missed", "DeadlineH, each job for a tenth of the machines: missed"),
        ("aria/beyond/cause/iDeadlineH/missed", "iDeadlineH, each job for a tenth of the machines: missed"),
        ("aria/beyond/cause/Deadline/missed_time", "Deadline, the same: late by, h"),
        ("aria/beyond/cause/iDeadline/missed_time", "iDeadline, the same: late by, h"),
        ("aria/beyond/cause/DeadlineH/missed_time", "DeadlineH, the same: late by, h"),
        ("aria/beyond/cause/iDeadlineH/missed_time", "iDeadlineH, the same: late by, h"),
    ];
    for (id, title) in rows {
        if find(findings, id).is_some() {
            sheet.row([title.to_owned(), ours(findings, id)]);
        }
    }
    sheet
}
