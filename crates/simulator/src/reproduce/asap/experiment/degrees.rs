//! Table II: what the degree of the overlay does to failures, waits and costs.

use super::{Runs, of};
use crate::reproduce::asap::case::{Asap, Case, Jobs, Policy};
use crate::reproduce::asap::seen::Seen;
use crate::reproduce::asap::size::Size;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::{by_seed, mean};
use crate::workload::Piece;

const DEGREES: [u8; 4] = [10, 20, 30, 40];
/// How far push over degree may be from its mean, in percent.
const LINEAR_OFF: f64 = 15.0;
/// How far the share of failures may be from that of jobs that are too wide, in points.
const FAILURES_OFF: f64 = 0.3;
/// How far waits above degree 10 may be from their mean, in percent.
const FLAT_OFF: f64 = 20.0;

const PIECES: [(Piece, &str); 2] =
    [(Piece::Busiest, "asap/table2"), (Piece::Median, "asap/table2/median_day")];

pub fn cases(size: &Size) -> Vec<Case> {
    let mut cases = Vec::new();
    for (piece, _) in PIECES {
        for degree in DEGREES {
            for policy in [Policy::Push, Policy::Pull] {
                let asap = Asap { degree, policy, ..Asap::PAPER };
                cases.extend((1..=size.seeds_long).map(|seed| Case::asap(Jobs::Piece(piece), asap, seed)));
            }
        }
    }
    cases
}

/// Table II. Claims are judged on the busiest piece.
pub fn table2(runs: &Runs, findings: &mut Findings) {
    for (piece, group) in PIECES {
        for degree in DEGREES {
            let id = |name: &str| format!("{group}/degree{degree}/{name}");
            let push = seen(runs, piece, degree, Policy::Push);
            let pull = seen(runs, piece, degree, Policy::Pull);
            findings.figure(&id("failures"), &of(&push, Seen::failures));
            findings.figure(&id("wt"), &of(&push, Seen::wait));
            findings.figure(&id("push"), &of(&push, |seen| seen.messages as f64));
            findings.figure(&id("pull"), &of(&pull, |seen| seen.messages as f64));
        }
    }
    let busiest = |degree| seen(runs, Piece::Busiest, degree, Policy::Push);
    let each_wait = DEGREES.map(|degree| of(&busiest(degree), Seen::wait));
    let each_link =
        DEGREES.map(|degree| of(&busiest(degree), |seen| seen.messages as f64 / f64::from(degree)));
    let means =
        |each: &[Vec<f64>; DEGREES.len()]| each.each_ref().map(|values| mean(values).unwrap_or_default());
    let (waits, per_link) = (means(&each_wait), means(&each_link));
    let off = off_mean(&per_link);
    let each = by_seed(&each_link, off_mean);
    findings.claim_of_means("asap/claim/push_linear_in_degree", Some(off), &each, Some(off <= LINEAR_OFF));

    let ten = of(&busiest(10), Seen::failures);
    let reach = reach(runs.size.nodes, 10);
    let wide = of(&busiest(10), |seen| seen.share(|job| f64::from(job.width) > reach));
    let holds = mean(&ten)
        .zip(mean(&wide))
        .map(|(failed, wide)| failed > 0.0 && (failed - wide).abs() <= FAILURES_OFF);
    findings.claim("asap/claim/degree10_fails", &ten, holds);
    let twenty = of(&busiest(20), Seen::failures);
    let none = twenty.iter().all(|&failed| failed == 0.0);
    findings.claim("asap/claim/degree20_enough", &twenty, Some(none));

    let [ten, above @ ..] = waits;
    let least = above.iter().all(|&wait| ten < wait);
    findings.claim("asap/claim/degree10_lowest_wt", &of(&busiest(10), Seen::wait), Some(least));
    let off = off_mean(&above);
    let each = by_seed(&each_wait[1..], off_mean);
    findings.claim_of_means("asap/claim/wt_flat_above_10", Some(off), &each, Some(off <= FLAT_OFF));
}

fn seen(runs: &Runs, piece: Piece, degree: u8, policy: Policy) -> Vec<&Seen> {
    let asap = Asap { degree, policy, ..Asap::PAPER };
    runs.each(runs.size.seeds_long, |seed| Case::asap(Jobs::Piece(piece), asap, seed))
}

/// How many different nodes two hops of a random graph reach, as a mean: 109 at degree 10 on 5000 nodes.
fn reach(nodes: u32, degree: u8) -> f64 {
    let (nodes, degree) = (f64::from(nodes), f64::from(degree));
    nodes * (1.0 - (1.0 - 1.0 / nodes).powf(degree + degree * degree))
}

/// How far the farthest is from the mean, in percent.
fn off_mean(values: &[f64]) -> f64 {
    let mean = mean(values).unwrap_or_default();
    let off = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if mean > 0.0 { 100.0 * off / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hops_reach_what_the_specification_says() {
        let reached = DEGREES.map(|degree| reach(5_000, degree).round() as u32);
        assert_eq!(reached, [109, 403, 849, 1_398]);
    }

    #[test]
    fn the_farthest_counts() {
        assert_eq!(off_mean(&[8.0, 10.0, 12.0]), 20.0);
        assert_eq!(off_mean(&[0.0, 0.0]), 0.0);
    }
}
