//! Grids of up to 100,000 nodes: how good sets are, and what a node pays for the overlay.

use super::super::case::{Case, Manner, SIZES, Scene, Way};
use super::super::judge::{AFTER, PAPER, Runs, judged};
use super::{VARIANTS, average, largest, told};
use crate::plot::{Axis, Figure, Layer};
use crate::report::picture::Picture;
use crate::reproduce::asap::number;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;

/// The grids, and the one size of job.
pub const GRIDS: [(u32, u32); 3] = [SIZES[0], SIZES[2], (100_000, 64)];

/// The paper's twenty iterations, watched until the last of them and no longer.
fn case(size: (u32, u32), way: Way) -> Case {
    let scene = match way {
        Way::Central => Scene::Paper,
        Way::Basic(_) | Way::Proactive(_) => Scene::Often(20, Manner::InTurn),
    };
    Case { size, scene, way }
}

pub fn cases() -> Vec<Case> {
    let ways = [Way::Central].into_iter().chain(VARIANTS.map(|(_, way)| way));
    GRIDS.into_iter().flat_map(|size| ways.clone().map(move |way| case(size, way))).collect()
}

/// The ratio to the better centralised set after an iteration, from 1, of each query.
fn ratios(runs: &Runs, size: (u32, u32), way: Way, after: usize) -> Vec<f64> {
    let (_, best) = runs.central(size);
    let courses = runs.seen(case(size, way)).map(|seen| seen.courses.as_slice()).unwrap_or_default();
    courses.iter().filter_map(|course| course.get(after - 1)).map(|cost| cost / best).collect()
}

fn cost_of(runs: &Runs, size: (u32, u32), way: Way, after: usize) -> f64 {
    average(&ratios(runs, size, way, after))
}

fn bytes(runs: &Runs, size: (u32, u32)) -> f64 {
    runs.seen(case(size, Way::Proactive(PAPER))).map_or(f64::NAN, |seen| seen.bytes)
}

pub fn judge(runs: &Runs, findings: &mut Findings) {
    for size in GRIDS {
        let nodes = size.0;
        let (genetic, best) = runs.central(size);
        findings.figure(&format!("proactive/beyond/scale/{nodes}/genetic"), &told(genetic / best));
        findings.figure(&format!("proactive/beyond/scale/{nodes}/bytes"), &told(bytes(runs, size)));
        for (variant, way) in VARIANTS {
            for after in AFTER {
                let id = format!("proactive/beyond/scale/{nodes}/{variant}/{after}");
                findings.figure(&id, &ratios(runs, size, way, after));
            }
        }
    }
    let [(_, basic), (_, proactive)] = VARIANTS;
    let most = largest(GRIDS.map(|size| cost_of(runs, size, proactive, 20)));
    findings.claim("proactive/beyond/scale/close_to_central", &told(most), judged(most, most <= 1.2));
    let gaps = GRIDS.map(|size| cost_of(runs, size, basic, 20) / cost_of(runs, size, proactive, 20));
    let grows = gaps.windows(2).all(|pair| pair[1] > pair[0]);
    findings.claim("proactive/beyond/scale/gap", &told(gaps[2]), judged(largest(gaps), grows));
    let growth = bytes(runs, GRIDS[2]) / bytes(runs, GRIDS[0]);
    findings.claim(
        "proactive/beyond/scale/traffic",
        &told(growth),
        judged(growth, (growth - 1.0).abs() <= 0.05),
    );
}

pub fn sheet(runs: &Runs) -> Sheet {
    let columns = ["nodes", "genetic", "basic 3", "10", "20", "proactive 3", " 10", " 20", "bytes"];
    let title = "Larger grids: cost beside the best; bytes of the overlay per node and cycle";
    let mut sheet = Sheet::new(title, columns);
    for size in GRIDS {
        let (genetic, best) = runs.central(size);
        let of = |way: Way| AFTER.map(|after| number(cost_of(runs, size, way, after)));
        let [[b3, b10, b20], [p3, p10, p20]] = VARIANTS.map(|(_, way)| of(way));
        let nodes = number(f64::from(runs.run_size(size).0));
        let bytes = number(bytes(runs, size));
        sheet.row([nodes, number(genetic / best), b3, b10, b20, p3, p10, p20, bytes]);
    }
    sheet
}

pub fn figure(runs: &Runs) -> Picture {
    let (_, wanted) = runs.run_size(GRIDS[0]);
    let x = Axis::new("nodes").log();
    let title = format!("Larger grids: jobs of {wanted}");
    let mut figure = Figure::new(title, x, Axis::new("cost beside the best known").log())
        .subtitle("mean over queries, after 3 and 20 iterations");
    for (variant, way) in VARIANTS {
        for after in [3, 20] {
            let point = |size| (f64::from(runs.run_size(size).0), cost_of(runs, size, way, after));
            let line = GRIDS.map(point).to_vec();
            figure = figure.with(Layer::line(format!("{variant}, {after} iterations"), line));
        }
    }
    let genetic = |size| {
        let (genetic, best) = runs.central(size);
        (f64::from(runs.run_size(size).0), genetic / best)
    };
    figure = figure.with(Layer::line("genetic over all nodes", GRIDS.map(genetic).to_vec()));
    Picture::figure("beyond-scale", "How good sets are as the grid grows.", figure)
}
