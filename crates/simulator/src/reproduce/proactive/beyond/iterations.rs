//! More iterations, one after the other or all at once: what they gain, and what they cost.

use super::super::case::{Case, Manner, SWEPT, Scene, Way};
use super::super::judge::{PAPER, Runs, judged};
use super::{VARIANTS, average, largest, told};
use crate::plot::{Axis, Figure, Layer};
use crate::report::picture::Picture;
use crate::reproduce::asap::number;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;

/// How many (τ).
const TIMES: [u8; 6] = [1, 2, 5, 10, 20, 40];
const MANNERS: [(&str, Manner); 2] = [("in_turn", Manner::InTurn), ("at_once", Manner::AtOnce)];

fn case(times: u8, manner: Manner, way: Way) -> Case {
    Case { size: SWEPT, scene: Scene::Often(times, manner), way }
}

pub fn cases() -> Vec<Case> {
    let central = Case { size: SWEPT, scene: Scene::Paper, way: Way::Central };
    let often = TIMES.into_iter().flat_map(|times| MANNERS.map(|(_, manner)| (times, manner)));
    let all = often.flat_map(|(times, manner)| VARIANTS.map(|(_, way)| case(times, manner, way)));
    [central].into_iter().chain(all).collect()
}

fn ratios(runs: &Runs, times: u8, manner: Manner, way: Way) -> Vec<f64> {
    let (_, best) = runs.central(SWEPT);
    let courses = runs.seen(case(times, manner, way)).map(|seen| seen.courses.as_slice()).unwrap_or_default();
    courses.iter().filter_map(|course| course.last()).map(|cost| cost / best).collect()
}

/// Messages of a query of the proactive variant: of its search, and of its commits.
fn messages(runs: &Runs, times: u8, manner: Manner) -> (f64, f64) {
    runs.seen(case(times, manner, Way::Proactive(PAPER))).map_or((f64::NAN, f64::NAN), |seen| seen.messages)
}

fn seconds(runs: &Runs, times: u8, manner: Manner) -> Vec<f64> {
    runs.seen(case(times, manner, Way::Proactive(PAPER))).map(|seen| seen.seconds.clone()).unwrap_or_default()
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    for times in TIMES {
        for (name, manner) in MANNERS {
            let id = |what: &str| format!("proactive/beyond/iterations/{times}/{name}/{what}");
            for (variant, way) in VARIANTS {
                findings.figure(&id(variant), &ratios(runs, times, manner, way));
            }
            let (search, commits) = messages(runs, times, manner);
            findings.figure(&id("search_messages"), &told(search));
            findings.figure(&id("commit_messages"), &told(commits));
            findings.figure(&id("seconds"), &seconds(runs, times, manner));
        }
    }
    let cost = |times, manner, way| average(&ratios(runs, times, manner, way));
    let [_, (_, proactive)] = VARIANTS;
    let rest = cost(40, Manner::InTurn, proactive) / cost(20, Manner::InTurn, proactive);
    findings.claim("proactive/beyond/iterations/enough", &told(rest), judged(rest, rest >= 0.9));

    let apart = |times| cost(times, Manner::AtOnce, proactive) / cost(times, Manner::InTurn, proactive);
    let most = largest(TIMES.map(apart));
    findings.claim("proactive/beyond/iterations/at_once_as_good", &told(most), judged(most, most <= 1.1));

    let quicker = average(&seconds(runs, 20, Manner::AtOnce)) / average(&seconds(runs, 20, Manner::InTurn));
    findings.claim(
        "proactive/beyond/iterations/at_once_quicker",
        &told(quicker),
        judged(quicker, quicker <= 0.25),
    );

    let each = |times: u8| messages(runs, times, Manner::InTurn).0 / f64::from(times);
    let growth = each(40) / each(1);
    let in_proportion = (growth - 1.0).abs() <= 0.1;
    findings.claim("proactive/beyond/iterations/messages", &told(growth), judged(growth, in_proportion));
}

pub fn sheet(runs: &Runs) -> Sheet {
    let columns =
        ["iterations", "basic", "proactive", "at once", "search", "commits", "seconds", "at once: s"];
    let title = "More iterations: cost beside the best; messages and time of a proactive query";
    let mut sheet = Sheet::new(title, columns);
    let [(_, basic), (_, proactive)] = VARIANTS;
    for times in TIMES {
        let cost = |manner, way| number(average(&ratios(runs, times, manner, way)));
        let (search, commits) = messages(runs, times, Manner::InTurn);
        let took = |manner| number(average(&seconds(runs, times, manner)));
        sheet.row([
            times.to_string(),
            cost(Manner::InTurn, basic),
            cost(Manner::InTurn, proactive),
            cost(Manner::AtOnce, proactive),
            number(search),
            number(commits),
            took(Manner::InTurn),
            took(Manner::AtOnce),
        ]);
    }
    sheet
}

pub fn figures(runs: &Runs) -> Vec<Picture> {
    let (nodes, wanted) = runs.run_size(SWEPT);
    let line = |of: &dyn Fn(u8) -> f64| -> Vec<(f64, f64)> {
        TIMES.into_iter().map(|times| (f64::from(times), of(times))).collect()
    };
    let title = format!("More iterations: {nodes} nodes, jobs of {wanted}");
    let mut gains =
        Figure::new(title, Axis::new("iterations").log(), Axis::new("cost beside the best known"))
            .subtitle("mean over queries");
    for (variant, way) in VARIANTS {
        for (label, manner) in [("in turn", Manner::InTurn), ("at once", Manner::AtOnce)] {
            let cost = |times| average(&ratios(runs, times, manner, way));
            gains = gains.with(Layer::line(format!("{variant}, {label}"), line(&cost)));
        }
    }
    let title = format!("What iterations cost: {nodes} nodes, jobs of {wanted}");
    let mut costs = Figure::new(title, Axis::new("iterations"), Axis::new("messages of a query"))
        .right(Axis::new("seconds, without computing"))
        .subtitle("proactive, mean over queries");
    let search = |times| messages(runs, times, Manner::InTurn).0;
    let commits = |times| messages(runs, times, Manner::InTurn).1;
    costs = costs.with(Layer::line("search", line(&search))).with(Layer::line("commits", line(&commits)));
    for (label, manner) in [("seconds, in turn", Manner::InTurn), ("seconds, at once", Manner::AtOnce)] {
        let took = |times| average(&seconds(runs, times, manner));
        costs = costs.with(Layer::line(label, line(&took)).on_right());
    }
    vec![
        Picture::figure("beyond-iterations", "What more iterations gain.", gains),
        Picture::figure("beyond-iterations-cost", "What more iterations cost.", costs),
    ]
}
