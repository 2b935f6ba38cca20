//! The paper's figures with our data, of the first seed.

use super::case::{Asap, Case, Jobs, Policy};
use super::experiment::{Runs, costs};
use super::seen::{Job, Seen, Stint};
use crate::plot::{Axis, Figure, Gantt, Layer, Run, Unit};
use crate::report::picture::Picture;
use crate::report::run::gantt;
use crate::reproduce::statistics::median;
use crate::workload::Piece;

/// All figures for which there are runs.
pub fn figures(runs: &Runs) -> Vec<Picture> {
    let seen = |jobs, policy| runs.seen.get(&Case::asap(jobs, Asap { policy, ..Asap::PAPER }, 1));
    let original = seen(Jobs::Original, Policy::Push);
    let compressed = seen(Jobs::Compressed, Policy::Push);
    let mut figures = Vec::new();
    let mut add =
        |name: &str, caption: &str, figure: Figure| figures.push(Picture::figure(name, caption, figure));
    if let Some(seen) = original {
        add(
            "fig4a",
            "The paper: 28 % requested on average, below 60 % up to month 2.2, above 100 % near the end; effective follows requested.",
            utilisation("Figure 4a: utilisation, original trace", seen),
        );
    }
    if let Some(seen) = compressed {
        add(
            "fig4b",
            "The paper: 95 % requested on average; effective stays near 90 % while more than 100 % is requested, with a long tail.",
            utilisation("Figure 4b: utilisation, compressed trace", seen),
        );
        add("fig5a", "The paper: waits follow the load.", waits_over_time(seen));
        add(
            "fig5b",
            "The paper: waits grow with the nodes asked for.",
            waits_by("Figure 5b: median wait by nodes", "nodes (n)", Unit::Plain, seen, nodes),
        );
        add(
            "fig5c",
            "The paper: waits do not depend on the time asked for.",
            waits_by("Figure 5c: median wait by time asked for", "time (s)", Unit::Time, seen, length),
        );
        let area = |job: &Job| nodes(job) * length(job);
        add(
            "fig5d",
            "The paper: waits grow with nodes times time, and some of the largest jobs start at once.",
            waits_by("Figure 5d: median wait by nodes × time", "node-time (n·s)", Unit::Time, seen, area),
        );
    }
    if let Some((push, pull)) = original.zip(seen(Jobs::Original, Policy::Pull)) {
        add(
            "fig6",
            "The paper: near 1 where little is requested, up to 100 where much is, above 10 on average.",
            ratio(push, pull),
        );
        add(
            "fig6-costs",
            "Schedules carried in each bin, the same jobs under both policies.",
            cost(push, pull),
        );
    }
    // The fullest grid that was run.
    let busiest = seen(Jobs::Piece(Piece::Busiest), Policy::Push);
    if let Some(seen) = compressed.or(busiest).or(original) {
        figures.push(Picture::gantt(
            "gantt",
            "Push on a shuffled overlay of degree 20. A colour is a job; what is white was not used.",
            where_it_ran(seen),
        ));
    }
    figures
}

fn where_it_ran(seen: &Seen) -> Gantt {
    let end = seen.jobs.iter().filter_map(|job| job.end).max().unwrap_or_default();
    let run =
        |stint: &Stint| Run { lane: stint.lane as usize, job: stint.job, start: stint.start, end: stint.end };
    // Its middle is that of the time in which jobs come: later, there are fewer and fewer.
    let until = seen.span.as_secs_f64().min(end.as_secs_f64());
    gantt::chart(seen.stints.iter().map(run).collect(), seen.nodes as usize, until)
}

fn utilisation(title: &str, seen: &Seen) -> Figure {
    let share = |percent: Vec<f64>| {
        percent
            .into_iter()
            .enumerate()
            .map(|(bin, percent)| (at(seen, bin), percent / 100.0))
            .collect::<Vec<_>>()
    };
    let axis = Axis::new("share of the grid").unit(Unit::Share);
    Figure::new(title, Axis::new("time").unit(Unit::Time), axis)
        .subtitle(format!("{}, bins of {} h", on(seen), seen.bin.as_secs() / 3_600))
        .with(Layer::step("requested (RU)", closed(share(seen.ru()), seen)))
        .with(Layer::step("effective (EU)", closed(share(seen.eu()), seen)))
        .with(Layer::upright("last submission", seen.span.as_secs_f64()))
}

fn waits_over_time(seen: &Seen) -> Figure {
    let waits = seen.wait_by_bin().into_iter().enumerate();
    let waits = waits.map(|(bin, wait)| (at(seen, bin), wait.unwrap_or(f64::NAN)));
    let ru = seen.ru().into_iter().enumerate().map(|(bin, percent)| (at(seen, bin), percent / 100.0));
    Figure::new(
        "Figure 5a: mean wait by submission, compressed trace",
        Axis::new("time of submission").unit(Unit::Time),
        Axis::new("mean wait").unit(Unit::Time),
    )
    .subtitle(on(seen))
    .right(Axis::new("requested utilisation").unit(Unit::Share))
    .with(Layer::step("wait", closed(waits.collect(), seen)))
    .with(Layer::step("requested (RU)", closed(ru.collect(), seen)).on_right())
}

/// Median waits of jobs of about the same size: three bins for each doubling, those with few jobs left out.
fn waits_by(title: &str, label: &str, unit: Unit, seen: &Seen, size: impl Fn(&Job) -> f64) -> Figure {
    const FEWEST: usize = 5;
    let mut bins: std::collections::BTreeMap<i64, (Vec<f64>, Vec<f64>)> = Default::default();
    for (size, wait) in seen.with_wait(size) {
        let (sizes, waits) = bins.entry((size.log2() * 3.0).round() as i64).or_default();
        sizes.push(size);
        waits.push(wait);
    }
    let bins = bins.into_values().filter(|(sizes, _)| sizes.len() >= FEWEST);
    let points = bins.filter_map(|(sizes, waits)| Some((median(&sizes)?, median(&waits)?)));
    Figure::new(title, Axis::new(label).unit(unit).log(), Axis::new("median wait").unit(Unit::Time))
        .subtitle(format!("{}, compressed trace; sizes with at least {FEWEST} jobs", on(seen)))
        .with(Layer::points("median wait", points.collect()))
}

fn ratio(push: &Seen, pull: &Seen) -> Figure {
    let ratios = costs::by_bin(push, pull).into_iter().enumerate();
    let ratios = ratios.map(|(bin, (push_cost, pull_cost))| {
        let ratio = if push_cost > 0 { pull_cost as f64 / push_cost as f64 } else { f64::NAN };
        (at(push, bin), ratio)
    });
    let ru = push.ru().into_iter().enumerate().map(|(bin, percent)| (at(push, bin), percent / 100.0));
    Figure::new(
        "Figure 6: pull over push, original trace",
        Axis::new("time").unit(Unit::Time),
        Axis::new("schedules carried, pull / push").log(),
    )
    .subtitle(on(push))
    .right(Axis::new("requested utilisation").unit(Unit::Share))
    .with(Layer::step("pull / push", closed(ratios.collect(), push)))
    .with(Layer::step("requested (RU)", closed(ru.collect(), push)).on_right())
    .with(Layer::rule("the paper's mean", 10.0))
}

fn cost(push: &Seen, pull: &Seen) -> Figure {
    let bins = costs::by_bin(push, pull);
    let line = |of: fn(&(u64, u64)) -> u64| {
        let points = bins.iter().enumerate().map(|(bin, costs)| (at(push, bin), of(costs) as f64));
        closed(points.collect(), push)
    };
    Figure::new(
        "Figure 6: what push and pull cost, original trace",
        Axis::new("time").unit(Unit::Time),
        Axis::new("schedules carried in a bin").log(),
    )
    .subtitle(on(push))
    .with(Layer::step("push", line(|&(push, _)| push)))
    .with(Layer::step("pull", line(|&(_, pull)| pull)))
}

/// The last bin ends where the next would begin, or with the trace.
fn closed(mut points: Vec<(f64, f64)>, seen: &Seen) -> Vec<(f64, f64)> {
    if let Some(&(x, y)) = points.last() {
        let (next, span) = (x + seen.bin.as_secs_f64(), seen.span.as_secs_f64());
        points.push((if x < span { next.min(span) } else { next }, y));
    }
    points
}

fn at(seen: &Seen, bin: usize) -> f64 {
    bin as f64 * seen.bin.as_secs_f64()
}

fn on(seen: &Seen) -> String {
    format!("{} jobs on {} nodes", seen.jobs.len(), seen.nodes)
}

fn nodes(job: &Job) -> f64 {
    f64::from(job.width)
}

fn length(job: &Job) -> f64 {
    job.requested.as_secs_f64()
}
