//! Table III: a shuffled overlay beside a static one.

use super::{Runs, of};
use crate::reproduce::asap::case::{Asap, Case, Jobs, Overlay};
use crate::reproduce::asap::seen::Seen;
use crate::reproduce::asap::size::Size;
use crate::reproduce::finding::Findings;
use crate::reproduce::statistics::{by_seed, mean};

const TRACES: [(Jobs, &str); 2] = [(Jobs::Original, "grid5000"), (Jobs::Compressed, "compressed")];

pub fn cases(size: &Size) -> Vec<Case> {
    let mut cases = Vec::new();
    for (jobs, _) in TRACES {
        for overlay in [Overlay::Dynamic, Overlay::Static] {
            let asap = Asap { overlay, ..Asap::PAPER };
            cases.extend((1..=size.seeds).map(|seed| Case::asap(jobs, asap, seed)));
        }
    }
    cases
}

/// Table III.
pub fn table3(runs: &Runs, findings: &mut Findings) {
    let (mut differences, mut each) = (Vec::new(), Vec::new());
    let mut beaten = true;
    for (jobs, name) in TRACES {
        let waits = |overlay| {
            let asap = Asap { overlay, ..Asap::PAPER };
            of(&runs.each(runs.size.seeds, |seed| Case::asap(jobs, asap, seed)), Seen::wait)
        };
        let (shuffled, fixed) = (waits(Overlay::Dynamic), waits(Overlay::Static));
        // The same jobs on both: each seed is a pair.
        let pairs = shuffled.iter().zip(&fixed).filter(|(_, fixed)| **fixed > 0.0);
        let difference: Vec<f64> = pairs.map(|(shuffled, fixed)| 100.0 * (shuffled / fixed - 1.0)).collect();
        findings.figure(&format!("asap/table3/{name}/dynamic"), &shuffled);
        findings.figure(&format!("asap/table3/{name}/static"), &fixed);
        findings.figure(&format!("asap/table3/{name}/difference"), &difference);
        beaten &= mean(&fixed) < mean(&shuffled);
        differences.extend(mean(&difference));
        each.push(difference);
    }
    // The figure is the smaller of the two differences.
    let each = by_seed(&each, |pair| pair.iter().copied().fold(f64::INFINITY, f64::min));
    let least = differences.into_iter().reduce(f64::min);
    findings.claim_of_means("asap/claim/static_beats_dynamic", least, &each, Some(beaten));
}
