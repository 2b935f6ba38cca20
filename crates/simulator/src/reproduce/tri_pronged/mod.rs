//! Lee, Keleher and Sussman, 2010: figures 3 to 5 and the claims of the text.
//!
//! Machines and jobs are drawn as `docs/protocols/tri-pronged.md` says, since the paper publishes neither. Ids and claims
//! with their thresholds are in `known`; `judge` holds the runs against them.

mod case;
mod central;
mod figures;
mod judge;
mod known;
mod plan;
mod seen;

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
            shelf.get_or_make(&format!("tri-pronged {case}"), || self.make(case, so_far))
        };
        let made = pool::carry_out(&self.cases, threads, case::Case::weight, make, tell)?;
        let mut timing = Vec::new();
        let mut seen = BTreeMap::new();
        for (case, Timed { seen: one, took }) in made {
            timing.push(Timing { run: case.to_string(), elapsed_s: took.as_secs_f64(), inputs: one.inputs });
            seen.insert(case, one);
        }
        let runs = judge::Runs { seeds: self.size.seeds, seen };
        let mut findings = Findings::new(KNOWN, wanted);
        judge::judge(&runs, &mut findings);
        let sheets = vec![figures::sheet(&runs)];
        let figures = figures::figures(&runs);
        let findings = findings.finish();
        Ok(Report { paper: Paper::TriPronged, about: self.about, findings, sheets, figures, timing })
    }
}
