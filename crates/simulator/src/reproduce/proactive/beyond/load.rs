//! Calendars that hold reservations already: how soon a job starts, and how close its nodes are within the hour.

use super::super::aim::Aim;
use super::super::case::{Case, SWEPT, Scene, Seen, Way};
use super::super::judge::{PAPER, Runs, judged};
use super::{VARIANTS, average, beside, cost, found, largest, told};
use crate::plot::{Axis, Figure, Layer, Unit};
use crate::report::picture::Picture;
use crate::reproduce::asap::number;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;

/// How full the calendars are, in per cent.
const LOADS: [u8; 4] = [0, 30, 60, 80];
const AIMS: [Aim; 2] = [Aim::Soonest, Aim::Bounded];
const MINUTE_MS: f64 = 60_000.0;
/// The longest wait that is drawn, in seconds: bars of five minutes and of a day are to be seen beside each other.
const WAIT_SHOWN: f64 = 100_000.0;

fn case(load: u8, aim: Aim, way: Way) -> Case {
    Case { size: SWEPT, scene: Scene::Busy(load, aim), way }
}

pub fn cases() -> Vec<Case> {
    let ways = [Way::Central].into_iter().chain(VARIANTS.map(|(_, way)| way));
    let scenes = LOADS.into_iter().flat_map(|load| AIMS.map(|aim| (load, aim)));
    scenes.flat_map(|(load, aim)| ways.clone().map(move |way| case(load, aim, way))).collect()
}

/// How long the jobs of all queries wait, in minutes.
fn waits(runs: &Runs, load: u8, way: Way) -> Vec<f64> {
    let Some(seen) = runs.seen(case(load, Aim::Soonest, way)) else { return Vec::new() };
    let costs: Vec<f64> = match way {
        Way::Central => seen.centrals.iter().map(|&(_, best)| best).collect(),
        Way::Basic(_) | Way::Proactive(_) => {
            seen.courses.iter().filter_map(|course| course.last().copied()).collect()
        }
    };
    costs.into_iter().filter(|cost| cost.is_finite()).map(|cost| cost / MINUTE_MS).collect()
}

fn ratios(runs: &Runs, load: u8, way: Way) -> Vec<f64> {
    let central = runs.seen(case(load, Aim::Bounded, Way::Central));
    beside(runs.seen(case(load, Aim::Bounded, way)), central).into_iter().flatten().collect()
}

fn within(runs: &Runs, load: u8, way: Way) -> f64 {
    found(runs.seen(case(load, Aim::Bounded, way)))
}

/// The share of queries for which somebody who knows everything found a set within the hour.
fn possible(central: Option<&Seen>) -> f64 {
    let Some(seen) = central else { return f64::NAN };
    seen.centrals.iter().filter(|(_, best)| best.is_finite()).count() as f64 / seen.centrals.len() as f64
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    let [(_, basic), (_, proactive)] = VARIANTS;
    for load in LOADS {
        let id = |what: &str| format!("proactive/beyond/load/{load}/{what}");
        let central = runs.seen(case(load, Aim::Soonest, Way::Central));
        findings.figure(&id("booked"), &told(central.map_or(f64::NAN, |seen| seen.booked)));
        findings.figure(&id("soonest/central"), &waits(runs, load, Way::Central));
        let share = possible(runs.seen(case(load, Aim::Bounded, Way::Central)));
        findings.figure(&id("within_the_hour/central"), &told(share));
        for (variant, way) in VARIANTS {
            findings.figure(&id(&format!("soonest/{variant}")), &waits(runs, load, way));
            findings.figure(&id(&format!("bounded/{variant}")), &ratios(runs, load, way));
            findings.figure(&id(&format!("within_the_hour/{variant}")), &told(within(runs, load, way)));
        }
    }
    let wait = |load, way| average(&waits(runs, load, way));
    let later = largest(LOADS.map(|load| wait(load, proactive) - wait(load, basic)));
    let behind = largest(LOADS.map(|load| wait(load, proactive) - wait(load, Way::Central)));
    let missed = largest(LOADS.map(|load| {
        possible(runs.seen(case(load, Aim::Bounded, Way::Central))) - within(runs, load, proactive)
    }));
    // Half a minute is no matter to a job of half an hour.
    findings.claim("proactive/beyond/load/soonest", &told(later), judged(later, later <= 0.5));
    findings.claim("proactive/beyond/load/close_to_central", &told(behind), judged(behind, behind <= 60.0));
    findings.claim("proactive/beyond/load/within_the_hour", &told(missed), judged(missed, missed <= 0.1));
}

pub fn sheets(runs: &Runs) -> Vec<Sheet> {
    let [(_, basic), (_, proactive)] = VARIANTS;
    let mut soonest = Sheet::new("Wait in minutes, soonest", ["booked", "central", "basic", "proactive"]);
    let columns = ["booked", "central: found", "basic: found", "cost", "proactive: found", " cost"];
    let mut bounded =
        Sheet::new("Closest within the hour: queries with a set, cost beside the best", columns);
    for load in LOADS {
        let wait = |way| number(average(&waits(runs, load, way)));
        let booked = runs.seen(case(load, Aim::Soonest, Way::Central)).map_or(f64::NAN, |seen| seen.booked);
        let booked = percent(booked);
        soonest.row([booked.clone(), wait(Way::Central), wait(basic), wait(proactive)]);
        let share = |way| percent(within(runs, load, way));
        let cost = |way| cost(&ratios(runs, load, way));
        let possible = percent(possible(runs.seen(case(load, Aim::Bounded, Way::Central))));
        bounded.row([booked, possible, share(basic), cost(basic), share(proactive), cost(proactive)]);
    }
    vec![soonest, bounded]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

pub fn figures(runs: &Runs) -> Vec<Picture> {
    let (nodes, wanted) = runs.run_size(SWEPT);
    let ways =
        [("central", Way::Central), ("basic", Way::Basic(PAPER)), ("proactive", Way::Proactive(PAPER))];
    let x = || Axis::new("booked").names(LOADS.map(|load| format!("{load} %")));
    let bars = |of: &dyn Fn(u8) -> f64| -> Vec<(f64, f64)> {
        LOADS.into_iter().enumerate().map(|(place, load)| (place as f64, of(load))).collect()
    };
    let title = format!("Soonest beside reservations: {nodes} nodes, jobs of {wanted}");
    let mut waited =
        Figure::new(title, x(), Axis::new("wait").unit(Unit::Time).log().bounds(1.0, WAIT_SHOWN))
            .subtitle("mean over queries; jobs of half an hour, calendars booked for a day");
    for (label, way) in ways {
        let seconds = |load| 60.0 * average(&waits(runs, load, way));
        waited = waited.with(Layer::bars(label, bars(&seconds)));
    }
    let title = format!("Closest within the hour: {nodes} nodes, jobs of {wanted}");
    let mut shares =
        Figure::new(title, x(), Axis::new("queries with a set").unit(Unit::Share).bounds(0.0, 1.0))
            .subtitle("closest subject to wait <= 1h; jobs of half an hour, calendars booked for a day");
    for (label, way) in ways {
        let share = |load| match way {
            Way::Central => possible(runs.seen(case(load, Aim::Bounded, way))),
            Way::Basic(_) | Way::Proactive(_) => within(runs, load, way),
        };
        shares = shares.with(Layer::bars(label, bars(&share)));
    }
    let caption = "How long jobs wait, by how full calendars are, beside somebody who knows all calendars.";
    let within = "Which queries find nodes that are free together within the hour.";
    vec![
        Picture::figure("beyond-load-wait", caption, waited),
        Picture::figure("beyond-load-within", within, shares),
    ]
}
