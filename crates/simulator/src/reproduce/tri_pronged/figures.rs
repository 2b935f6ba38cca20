//! Figures 3 to 5 with our data.

use super::case::{EVERYBODY, Mix};
use super::judge::{GAPS, RATIOS, Runs};
use super::seen::Seen;
use crate::plot::{Axis, Figure, Layer, Unit};
use crate::report::picture::Picture;

/// All figures for which there are runs.
pub fn figures(runs: &Runs) -> Vec<Picture> {
    let at_gaps = |title: &str, axis: Axis, figure: fn(&Seen) -> f64, from: usize| {
        let gap = Axis::new("mean gap between jobs, s");
        let mut drawn = Figure::new(title, gap, axis);
        for &who in &EVERYBODY[from..] {
            let points: Vec<(f64, f64)> = GAPS
                .iter()
                .filter_map(|&gap| {
                    Some((f64::from(gap) / 1e3, runs.of(who, Mix::Clustered, gap, 40, figure)?))
                })
                .collect();
            if !points.is_empty() {
                drawn = drawn.with(Layer::line(who.name(), points));
            }
        }
        drawn
    };
    let mut figures = vec![
        (
            "fig3",
            "The paper: LIQ-PULL waits least of the decentralised, close to CENT.",
            at_gaps("Figure 3: mean wait", Axis::new("wait").unit(Unit::Time), Seen::wait, 0),
        ),
        (
            "fig4a",
            "The paper: PULL sends more, about 20 messages a minute and node.",
            at_gaps("Figure 4a: messages", Axis::new("messages a minute and node"), |seen| seen.messages, 1),
        ),
        (
            "fig4b",
            "The paper: the volume hardly differs.",
            at_gaps("Figure 4b: volume", Axis::new("bytes a minute and node"), |seen| seen.bytes, 1),
        ),
    ];
    let ratio = Axis::new("jobs with constraints, %");
    let mut fifth =
        Figure::new("Figure 5: mean wait by constraints", ratio, Axis::new("wait").unit(Unit::Time));
    for who in EVERYBODY {
        let points: Vec<(f64, f64)> = RATIOS
            .iter()
            .filter_map(|&ratio| {
                Some((f64::from(ratio), runs.of(who, Mix::Clustered, 3_000, ratio, Seen::wait)?))
            })
            .collect();
        if !points.is_empty() {
            fifth = fifth.with(Layer::line(who.name(), points));
        }
    }
    figures.push(("fig5", "The paper: the same order; at 80 % LIQ-PULL moves away from CENT.", fifth));
    figures
        .into_iter()
        .filter(|(_, _, figure)| !figure.layers.is_empty())
        .map(|(name, caption, figure)| Picture::figure(name, caption, figure))
        .collect()
}
