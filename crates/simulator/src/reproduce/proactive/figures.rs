//! The paper's figure with our data: means over queries, with bands from the least to the most.

use super::case::{SIZES, Way};
use super::judge::{Runs, name};
use crate::plot::{Axis, Figure, Layer};
use crate::report::picture::Picture;
use crate::reproduce::statistics::mean;

/// Figure 1 for each size.
pub fn figures(runs: &Runs) -> Vec<Picture> {
    SIZES.into_iter().filter(|&size| runs.iterations(size) > 0).map(|size| figure(runs, size)).collect()
}

fn figure(runs: &Runs, size: (u32, u32)) -> Picture {
    let (nodes, wanted) = runs.run_size(size);
    let title = format!("Figure 1: {nodes} nodes, jobs of {wanted}");
    let mut figure =
        Figure::new(title, Axis::new("iteration"), Axis::new("cost beside the best centralised"))
            .subtitle("mean over queries; bands from the least to the most");
    for (label, way) in [("basic", Way::Basic(2)), ("proactive", Way::Proactive(2))] {
        let at = |after: usize| runs.ratios(size, way, after);
        let iterations = 1..=runs.iterations(size);
        if at(1).len() > 1 {
            let band = iterations.clone().map(|after| {
                let values = at(after);
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                (after as f64, low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            });
            figure = figure.with(Layer::band(format!("{label}, all queries"), band));
        }
        let line = iterations.map(|after| (after as f64, mean(&at(after)).unwrap_or(f64::NAN)));
        figure = figure.with(Layer::line(label, line.collect()));
    }
    let (genetic, best) = runs.central(size);
    figure = figure.with(Layer::rule("genetic over all nodes", genetic / best));
    let caption =
        "The paper: proactive is below basic at every iteration, and close to centralised after few.";
    Picture::figure(&format!("fig1-{}", name(size)), caption, figure)
}
