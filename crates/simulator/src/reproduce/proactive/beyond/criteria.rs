//! Criteria other than `closest`: each beside somebody who knows all nodes and their calendars.

use super::super::aim::Aim;
use super::super::case::{Case, SWEPT, Scene, Way};
use super::super::judge::{Runs, judged};
use super::{VARIANTS, average, beside, cost, found, largest, over, told};
use crate::plot::{Axis, Figure, Layer};
use crate::report::picture::Picture;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;

/// How full the calendars are, in per cent: so that when a job starts makes a difference.
const BUSY: u8 = 30;

fn case(aim: Aim, way: Way) -> Case {
    Case { size: SWEPT, scene: Scene::Busy(BUSY, aim), way }
}

pub fn cases() -> Vec<Case> {
    let ways = [Way::Central].into_iter().chain(VARIANTS.map(|(_, way)| way));
    Aim::ALL.into_iter().flat_map(|aim| ways.clone().map(move |way| case(aim, way))).collect()
}

fn by_query(runs: &Runs, aim: Aim, way: Way) -> Vec<Option<f64>> {
    beside(runs.seen(case(aim, way)), runs.seen(case(aim, Way::Central)))
}

fn ratios(runs: &Runs, aim: Aim, way: Way) -> Vec<f64> {
    by_query(runs, aim, way).into_iter().flatten().collect()
}

/// What proactive costs beside basic, over the queries for which both found a set.
fn share(runs: &Runs, aim: Aim) -> f64 {
    let [basic, proactive] = VARIANTS.map(|(_, way)| by_query(runs, aim, way));
    let both = basic.into_iter().zip(proactive).filter_map(|(basic, proactive)| Some((basic?, proactive?)));
    let (basic, proactive): (Vec<f64>, Vec<f64>) = both.unzip();
    average(&proactive) / average(&basic)
}

/// The genetic algorithm over all nodes beside the best that is known.
fn genetic(runs: &Runs, aim: Aim) -> Vec<f64> {
    let central = runs.seen(case(aim, Way::Central));
    let pairs = central.map(|seen| seen.centrals.as_slice()).unwrap_or_default();
    let all = pairs.iter().map(|&(genetic, best)| over(genetic, best));
    all.filter(|ratio| ratio.is_finite()).collect()
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    let mut farthest = Vec::new();
    for aim in Aim::ALL {
        let name = aim.name();
        findings.figure(&format!("proactive/beyond/criteria/{name}/genetic"), &genetic(runs, aim));
        let [basic, proactive] = VARIANTS.map(|(variant, way)| {
            let values = ratios(runs, aim, way);
            findings.figure(&format!("proactive/beyond/criteria/{name}/{variant}"), &values);
            (average(&values), found(runs.seen(case(aim, way))))
        });
        let share = share(runs, aim);
        let better = if aim.has_overlay() { share < 1.0 } else { (share - 1.0).abs() <= 0.05 };
        // Who finds no set where there is one, or fewer of them, has found no better ones.
        let missed = proactive.0.is_nan() && is_possible(runs, aim);
        let holds = if missed || proactive.1 < basic.1 { Some(false) } else { judged(share, better) };
        findings.claim(&format!("proactive/beyond/criteria/{name}"), &told(share), holds);
        farthest.push(if missed { f64::INFINITY } else { proactive.0 });
    }
    let most = largest(farthest.iter().copied());
    let close = (!most.is_nan()).then_some(most <= 1.2);
    let finite = largest(farthest.into_iter().filter(|ratio| ratio.is_finite()));
    findings.claim("proactive/beyond/criteria/close_to_central", &told(finite), close);
}

/// Whether somebody who knows everything found a set for some query.
fn is_possible(runs: &Runs, aim: Aim) -> bool {
    let central = runs.seen(case(aim, Way::Central));
    central.is_some_and(|seen| seen.centrals.iter().any(|(_, best)| best.is_finite()))
}

pub fn sheet(runs: &Runs) -> Sheet {
    let columns = ["criterion", "genetic", "basic", "found", "proactive", " found"];
    let title = "Cost beside the best known, 30 % booked: genetic over all nodes; when the search was over";
    let mut sheet = Sheet::new(title, columns);
    for aim in Aim::ALL {
        let of = |way| cost(&ratios(runs, aim, way));
        let with = |way| format!("{:.0} %", 100.0 * found(runs.seen(case(aim, way))));
        let [(_, basic), (_, proactive)] = VARIANTS;
        sheet.row([
            aim.words().to_owned(),
            cost(&genetic(runs, aim)),
            of(basic),
            with(basic),
            of(proactive),
            with(proactive),
        ]);
    }
    sheet
}

pub fn figure(runs: &Runs) -> Picture {
    let (nodes, wanted) = runs.run_size(SWEPT);
    let x = Axis::new("criterion").names(Aim::ALL.map(Aim::name));
    let title = format!("Other criteria: {nodes} nodes, jobs of {wanted}");
    let mut figure = Figure::new(title, x, Axis::new("cost beside the best known").log())
        .subtitle("mean over queries that found a set, when the search was over; calendars 30 % booked");
    let bars = |of: &dyn Fn(Aim) -> Vec<f64>| -> Vec<(f64, f64)> {
        Aim::ALL.into_iter().enumerate().map(|(place, aim)| (place as f64, average(&of(aim)))).collect()
    };
    figure = figure.with(Layer::bars("genetic over all nodes", bars(&|aim| genetic(runs, aim))));
    for (label, way) in VARIANTS {
        figure = figure.with(Layer::bars(label, bars(&|aim| ratios(runs, aim, way))));
    }
    let caption = "What basic and proactive find beside somebody who knows all nodes and their calendars.";
    Picture::figure("beyond-criteria", caption, figure.with(Layer::rule("the best known", 1.0)))
}
