//! The paper's figures with our data: means over seeds, with bands and whiskers from the least to the most.

use super::experiment::{Runs, WAITS, of_wait, scenes};
use super::seen::Seen;
use crate::plot::{Axis, Figure, Layer, Unit};
use crate::report::picture::Picture;
use crate::reproduce::statistics::{Spread, mean};

/// A figure of a run, and what it is called.
type Named = (&'static str, fn(&Seen) -> f64);

/// All figures for which there are runs.
pub fn figures(runs: &Runs) -> Vec<Picture> {
    let mut figures = Vec::new();
    if runs.of("iInform30m").is_empty() {
        return waits(runs).into_iter().collect();
    }
    let mut add =
        |name: &str, caption: &str, figure: Figure| figures.push(Picture::figure(name, caption, figure));
    let batch = ["FCFS", "iFCFS", "SJF", "iSJF", "Mixed", "iMixed"];
    let idle: fn(&Seen, f64) -> f64 = Seen::idle_at;
    add(
        "fig1",
        "The paper: iSJF and iMixed finish jobs sooner; FCFS is comparably good.",
        course("Figure 1: completed jobs", "jobs", runs, &batch, Seen::done_by),
    );
    add(
        "fig2",
        "The paper: with rescheduling execution is longer and completion sooner, except for FCFS.",
        times("Figure 2: waiting, execution and completion time", runs, &batch),
    );
    add(
        "fig3",
        "The paper: iSJF and iMixed leave about 100 nodes fewer idle; the three i-scenarios are nearly the same.",
        course("Figure 3: idle nodes", "nodes", runs, &batch, idle),
    );
    let deadlines = ["Deadline", "iDeadline", "DeadlineH", "iDeadlineH"];
    add(
        "fig4",
        "The paper: 187, 4, 236 and 59.",
        bars(
            "Figure 4: missed deadlines",
            "jobs",
            Unit::Plain,
            runs,
            &deadlines,
            &[("missed", Seen::missed)],
        ),
    );
    add(
        "fig4-times",
        "The paper: jobs in time have slightly more to spare with rescheduling; what late ones miss by is halved.",
        bars(
            "Figure 4: what is spared, and missed by",
            "time",
            Unit::Time,
            runs,
            &deadlines,
            &[
                ("to spare", |seen| seen.lateness() * 3_600.0),
                ("missed by", |seen| seen.missed_time() * 3_600.0),
            ],
        ),
    );
    add(
        "fig5",
        "The paper: iExpanding has fewer idle nodes.",
        course("Figure 5: idle nodes in a growing grid", "nodes", runs, &["Expanding", "iExpanding"], idle),
    );
    let loads = ["LowLoad", "iLowLoad", "Mixed", "iMixed", "HighLoad", "iHighLoad"];
    add(
        "fig6",
        "The paper: rescheduling uses more nodes at low and high load.",
        course("Figure 6: idle nodes by load", "nodes", runs, &loads, idle),
    );
    add(
        "fig7",
        "The paper: iHighLoad completes about as soon as LowLoad.",
        times("Figure 7: times by load", runs, &loads),
    );
    add(
        "fig8",
        "The paper: little difference; iInform4 waits least.",
        times(
            "Figure 8: how rescheduling is set",
            runs,
            &["iInform1", "iMixed", "iInform4", "iInform15m", "iInform30m"],
        ),
    );
    add(
        "fig9",
        "The paper: alike but for AccuracyBad.",
        times(
            "Figure 9: how well running times are known",
            runs,
            &[
                "Precise",
                "iPrecise",
                "Mixed",
                "iMixed",
                "Accuracy25",
                "iAccuracy25",
                "AccuracyBad",
                "iAccuracyBad",
            ],
        ),
    );
    let kinds: [Named; 4] = [
        ("REQUEST", |seen| seen.megabytes(&["request"])),
        ("INFORM", |seen| seen.megabytes(&["inform"])),
        ("ACCEPT", |seen| seen.megabytes(&["accept"])),
        ("ASSIGN", |seen| seen.megabytes(&["assign"])),
    ];
    add(
        "fig10",
        "The paper: about 3 MB per node, mostly REQUEST and INFORM.",
        bars("Figure 10: traffic", "MB per node", Unit::Plain, runs, &scenes(), &kinds),
    );
    figures.extend(waits(runs));
    figures
}

/// A figure over time, of some scenarios.
fn course(
    title: &str,
    label: &str,
    runs: &Runs,
    scenes: &[&'static str],
    of: fn(&Seen, f64) -> f64,
) -> Figure {
    const STEPS: usize = 97;
    const HOURS: f64 = 12.0;
    let mut figure =
        Figure::new(title, Axis::new("time").unit(Unit::Time), Axis::new(label)).subtitle(on(runs));
    for &scene in scenes {
        let seen = runs.of(scene);
        let at = |step: usize| HOURS * step as f64 / (STEPS - 1) as f64;
        let values = |step: usize| seen.iter().map(|seen| of(seen, at(step))).collect::<Vec<f64>>();
        let x = |step: usize| at(step) * 3_600.0;
        if seen.len() > 1 {
            let band = (0..STEPS).map(|step| {
                let values = values(step);
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                (x(step), low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            });
            figure = figure.with(Layer::band(format!("{scene}, all seeds"), band));
        }
        let line = (0..STEPS).map(|step| (x(step), mean(&values(step)).unwrap_or(f64::NAN)));
        figure = figure.with(Layer::line(scene, line.collect()));
    }
    figure
}

fn times(title: &str, runs: &Runs, scenes: &[&'static str]) -> Figure {
    let figures: [Named; 3] = [
        ("waiting", |seen| seen.wait() * 3_600.0),
        ("execution", |seen| seen.execution() * 3_600.0),
        ("completion", |seen| seen.completion() * 3_600.0),
    ];
    bars(title, "time", Unit::Time, runs, scenes, &figures)
}

fn bars(
    title: &str,
    label: &str,
    unit: Unit,
    runs: &Runs,
    scenes: &[&'static str],
    figures: &[Named],
) -> Figure {
    let x = Axis::new("scenario").names(scenes.iter().copied());
    let mut figure = Figure::new(title, x, Axis::new(label).unit(unit)).subtitle(on(runs));
    for (name, of) in figures {
        let values = |scene: &&'static str| runs.of(scene).into_iter().map(of).collect::<Vec<f64>>();
        let places = || (0u32..).map(f64::from).zip(scenes.iter().map(values));
        let means = places().map(|(place, values)| (place, mean(&values).unwrap_or(f64::NAN)));
        let spreads = places().filter_map(|(place, values)| Some((place, Spread::of(&values)?)));
        let whiskers = spreads.map(|(place, spread)| (place, spread.min, spread.max));
        figure = figure.with(Layer::bars(*name, means.collect()).whiskers(whiskers.collect()));
    }
    figure
}

/// Missed deadlines by how long offers are waited for.
fn waits(runs: &Runs) -> Option<Picture> {
    let mut figure = Figure::new(
        "Missed deadlines by how long offers are waited for",
        Axis::new("wait for offers").unit(Unit::Time),
        Axis::new("jobs"),
    )
    .subtitle(on(runs));
    for scene in ["Deadline", "iDeadline", "DeadlineH", "iDeadlineH"] {
        let missed = |wait| runs.varied(scene, of_wait(wait)).into_iter().map(Seen::missed).collect();
        let waits = WAITS.iter().map(|&wait| (f64::from(wait), missed(wait)));
        let waits: Vec<(f64, Vec<f64>)> = waits.collect();
        let means = waits.iter().map(|(wait, missed)| Some((*wait, mean(missed)?)));
        let means: Vec<(f64, f64)> = means.collect::<Option<_>>()?;
        // Of most waits there are runs with the first seeds only; more of them would be wider by that alone.
        let first = |missed: &[f64]| Spread::of(&missed[..missed.len().min(runs.size.seeds_beside as usize)]);
        let spreads = waits.iter().map(|(wait, missed)| Some((*wait, first(missed)?)));
        if let Some(spreads) = spreads.collect::<Option<Vec<(f64, Spread)>>>() {
            let band = spreads.into_iter().map(|(wait, spread)| (wait, spread.min, spread.max));
            figure = figure.with(Layer::band(format!("{scene}, first seeds"), band));
        }
        figure = figure.with(Layer::line(scene, means));
    }
    let caption = "The paper leaves the wait open; its own counts are 187, 4, 236 and 59. Without any, most jobs find no place: only their initiators have offered.";
    Some(Picture::figure("accept-wait", caption, figure))
}

fn on(runs: &Runs) -> String {
    let seeds = runs.size.seeds;
    format!(
        "{} jobs on {} nodes, {seeds} {}",
        runs.size.jobs,
        runs.size.nodes,
        if seeds == 1 { "seed" } else { "seeds" }
    )
}
