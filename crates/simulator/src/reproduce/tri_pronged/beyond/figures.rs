//! Tables and figures of the runs beyond the paper.

use shoal_protocols::scheduling::tri_pronged::Variant;

use super::super::case::{EVERYBODY, Who};
use super::super::seen::Seen;
use super::case::{Left, Of, Said, Way};
use super::judge::Runs;
use super::{DUAL, LIGHT, LONG, PUSH_AND_PULL, WITH_DUAL, WITH_ESTIMATES};
use crate::plot::{Axis, Figure, Layer, Unit};
use crate::report::picture::Picture;
use crate::reproduce::asap::number;
use crate::reproduce::sheet::Sheet;

const COLUMNS: [&str; 8] = ["", "ρ", "wait", "longest", "unstarted", "sent", "bytes", "moves"];

/// Lines of a table: an experiment, who scheduled, and what it is called there.
type Lines = Vec<(Of, Who, String)>;

/// A table for each experiment for which there are runs.
pub fn sheets(runs: &Runs) -> Vec<Sheet> {
    let nodes = |variants: &[Variant]| -> Vec<Who> { variants.iter().copied().map(Who::Nodes).collect() };
    let gap = |gap_ms: u32| f64::from(gap_ms) / 1e3;
    let each = |who: Vec<Who>, of: Of, suffix: String| -> Lines {
        who.into_iter().map(|who| (of, who, format!("{}{suffix}", who.name()))).collect()
    };
    let long: Lines = LONG
        .into_iter()
        .flat_map(|gap_ms| each(EVERYBODY.to_vec(), Of::Long(gap_ms), format!(", gap {} s", gap(gap_ms))))
        .collect();
    let light: Lines = LIGHT
        .into_iter()
        .flat_map(|gap_ms| each(nodes(&PUSH_AND_PULL), Of::Light(gap_ms), format!(", gap {} s", gap(gap_ms))))
        .collect();
    let scale: Lines = [Way::Neighbours, Way::Shortcuts]
        .into_iter()
        .flat_map(|way| runs.grids(way).into_iter().map(move |count| (way, count)))
        .flat_map(|(way, count)| {
            let about = format!(", {count}, {}", way.name());
            each(nodes(&[Variant::LiqPull]), Of::Scale(way, count), about)
        })
        .collect();
    let estimates: Lines = Said::ALL
        .into_iter()
        .flat_map(|said| {
            each(nodes(&WITH_ESTIMATES), Of::Estimates(said), format!(", estimates: {}", said.name()))
        })
        .collect();
    let trace = each(EVERYBODY.to_vec(), Of::Trace, String::new());
    [
        ("In steady state: the middle 60 % of four times as many jobs", long),
        ("Lightly loaded grids", light),
        ("So many nodes at equal load of each; searches plain or with shortcuts", scale),
        ("A trace with cores and memory", trace),
        ("With running-time estimates, gap 2 s", estimates),
    ]
    .into_iter()
    .filter_map(|(title, lines)| sheet(runs, title, lines))
    .chain(dual(runs))
    .collect()
}

/// Balloons and a second CAN side by side.
fn dual(runs: &Runs) -> Option<Sheet> {
    let title =
        "What is left of machines as balloons and in a second CAN; messages and bytes a minute and node";
    let columns = ["", "gap", "ρ", "wait", "longest", "unstarted", "sent", "for residues", "bytes", "moves"];
    let mut sheet = Sheet::new(title, columns);
    for (gap_ms, variant, left) in DUAL.into_iter().flat_map(|gap| {
        WITH_DUAL.into_iter().flat_map(move |variant| Left::ALL.map(|left| (gap, variant, left)))
    }) {
        let (of, who) = (Of::Dual(left, gap_ms), Who::Nodes(variant));
        let Some(wait) = runs.of(of, who, Seen::wait) else { continue };
        let cell = |figure: fn(&Seen) -> f64| runs.of(of, who, figure).map_or("-".to_owned(), number);
        sheet.row([
            format!("{}, {}", who.name(), left.name()),
            number(f64::from(gap_ms) / 1e3),
            cell(|seen| seen.offered),
            number(wait),
            cell(Seen::longest),
            cell(|seen| seen.unstarted as f64),
            cell(|seen| seen.messages),
            cell(|seen| seen.of_residues),
            cell(|seen| seen.bytes),
            cell(|seen| seen.moves as f64),
        ]);
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

fn sheet(runs: &Runs, title: &str, lines: Lines) -> Option<Sheet> {
    let mut sheet = Sheet::new(format!("{title}; messages and bytes a minute and node"), COLUMNS);
    for (of, who, name) in lines {
        let Some(wait) = runs.of(of, who, Seen::wait) else { continue };
        let cell = |figure: fn(&Seen) -> f64| runs.of(of, who, figure).map_or("-".to_owned(), number);
        let sent = |figure: fn(&Seen) -> f64| if who == Who::Cent { "-".to_owned() } else { cell(figure) };
        sheet.row([
            name,
            cell(|seen| seen.offered),
            number(wait),
            cell(Seen::longest),
            cell(|seen| seen.unstarted as f64),
            sent(|seen| seen.messages),
            sent(|seen| seen.bytes),
            sent(|seen| seen.moves as f64),
        ]);
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// A figure for each experiment for which there are runs.
pub fn figures(runs: &Runs) -> Vec<Picture> {
    let wait = || Axis::new("mean wait").unit(Unit::Time);
    let at = |gaps: &[u32], of: fn(u32) -> Of, who: Who, figure: fn(&Seen) -> f64| -> Vec<(f64, f64)> {
        let point = |&gap_ms: &u32| Some((f64::from(gap_ms) / 1e3, runs.of(of(gap_ms), who, figure)?));
        gaps.iter().filter_map(point).collect()
    };
    let gap = || Axis::new("mean gap between jobs, s");
    let mut long = Figure::new("Steady state: mean wait", gap(), wait());
    for who in EVERYBODY {
        long = with_line(long, who.name(), at(&LONG, Of::Long, who, Seen::wait));
    }
    let mut light = Figure::new("Light load: mean wait", gap(), wait());
    for variant in PUSH_AND_PULL {
        let who = Who::Nodes(variant);
        light = with_line(light, who.name(), at(&LIGHT, Of::Light, who, Seen::wait));
    }
    let liq_pull = Who::Nodes(Variant::LiqPull);
    let by_size = |way: Way, figure: fn(&Seen) -> f64| -> Vec<(f64, f64)> {
        let grids = runs.grids(way);
        let point =
            |&nodes: &u32| Some((f64::from(nodes), runs.of(Of::Scale(way, nodes), liq_pull, figure)?));
        grids.iter().filter_map(point).collect()
    };
    let ways = [(Way::Neighbours, "plain"), (Way::Shortcuts, "with shortcuts")];
    let messages = ways.map(|(way, name)| (name, by_size(way, |seen| seen.messages)));
    let waits = ways.map(|(way, name)| (name, by_size(way, Seen::wait)));
    // From nothing on: what hardly changes is to look so.
    let from_zero = |axis: Axis, lines: &[(&str, Vec<(f64, f64)>)]| {
        let most = lines.iter().flat_map(|(_, points)| points).map(|&(_, value)| value).fold(1.0, f64::max);
        axis.bounds(0.0, most * 1.1)
    };
    let nodes = Axis::new("nodes").log();
    let left = from_zero(Axis::new("mean wait").unit(Unit::Time), &waits);
    let right = from_zero(Axis::new("messages a minute and node"), &messages);
    let mut scale = Figure::new("Large grids: LIQ-PULL", nodes, left).right(right);
    for (name, points) in waits {
        scale = with_line(scale, &format!("wait, {name}"), points);
    }
    for (name, points) in messages.into_iter().filter(|(_, points)| !points.is_empty()) {
        scale = scale.with(Layer::line(format!("messages, {name}"), points).on_right());
    }
    let mut trace =
        Figure::new("A trace: mean wait", Axis::new("who schedules").names(EVERYBODY.map(Who::name)), wait());
    let bars: Vec<(f64, f64)> = (0u32..)
        .zip(EVERYBODY)
        .filter_map(|(place, who)| Some((f64::from(place), runs.of(Of::Trace, who, Seen::wait)?)))
        .collect();
    if !bars.is_empty() {
        trace = trace.with(Layer::bars("mean wait", bars));
    }
    let mut estimates =
        Figure::new("Estimates: mean wait", Axis::new("estimates").names(Said::ALL.map(Said::name)), wait());
    for variant in WITH_ESTIMATES {
        let who = Who::Nodes(variant);
        let points = (0u32..).zip(Said::ALL).filter_map(|(place, said)| {
            Some((f64::from(place), runs.of(Of::Estimates(said), who, Seen::wait)?))
        });
        estimates = with_line(estimates, who.name(), points.collect());
    }
    [
        ("beyond-long", "Jobs that came while the grid filled or emptied are left out.", long),
        ("beyond-light", "Who has room asks every minute; who has too much offers at once.", light),
        ("beyond-scale", "Two jobs for each node, one every 2 s for each 1000 nodes.", scale),
        ("beyond-trace", "As many machines as make a load of 0.85.", trace),
        ("beyond-estimates", "What users say of how long their jobs take.", estimates),
    ]
    .into_iter()
    .filter(|(_, _, figure)| !figure.layers.is_empty())
    .map(|(name, caption, figure)| Picture::figure(name, caption, figure))
    .collect()
}

fn with_line(figure: Figure, name: &str, points: Vec<(f64, f64)>) -> Figure {
    if points.is_empty() { figure } else { figure.with(Layer::line(name, points)) }
}
