//! Proactive: figure 1 for four sizes of grid and job, the traffic of the overlays, and what stands beside them.
//!
//! A run is a grid of whole nodes that gossip until their views have settled, then some queries at once from random
//! entry nodes, each for a time of its own, so that none is in another's way. Hosts lie in clusters drawn at random, or
//! are those of a file. What the paper does not say, and how we settle it, is in `docs/protocols/proactive.md`.

mod case;
mod central;
mod figures;
mod judge;
mod known;
mod plan;

use std::collections::BTreeMap;

use super::finding::Findings;
use super::pool::{self, Tell, Timed};
use super::{Error, Paper, Report, Shelf, Timing};
pub(super) use known::KNOWN;
pub(super) use plan::Plan;

impl Plan {
    pub(super) fn runs(&self) -> usize {
        self.cases.len()
    }

    pub(super) fn carry_out(
        self,
        wanted: Vec<&'static str>,
        shelf: &Shelf,
        threads: usize,
        tell: Tell<'_>,
    ) -> Result<Report, Error> {
        let make = |case: &case::Case, so_far: &dyn Fn(f64)| {
            shelf.get_or_make(&format!("proactive {case}"), || self.make(case, so_far))
        };
        let made = pool::carry_out(&self.cases, threads, |case| self.weigh(case), make, tell)?;
        let mut timing = Vec::new();
        let mut seen = BTreeMap::new();
        for (case, Timed { seen: one, took }) in made {
            timing.push(Timing { run: case.to_string(), elapsed_s: took.as_secs_f64(), inputs: one.inputs });
            seen.insert(case, one);
        }
        let runs = judge::Runs { seen };
        let mut findings = Findings::new(KNOWN, wanted);
        runs.judge(&mut findings);
        let sheets = runs.sheets();
        let figures = figures::figures(&runs);
        let findings = findings.finish();
        Ok(Report { paper: Paper::Proactive, about: self.about, findings, sheets, figures, timing })
    }
}
