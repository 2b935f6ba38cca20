//! DGS_ASAP: figures 4, 5 and 6, tables I, II and III, and what the paper claims.
//!
//! Runs are variants of the scenarios in `scenarios/asap`, which are part of the program. Ids, the paper's figures and
//! the claims with their thresholds are in `known`; each experiment names the runs that it needs and judges them.
//! What the paper does not say, and how we settle it, is in `docs/protocols/asap.md`.

mod case;
mod experiment;
mod figures;
mod known;
mod plan;
mod seen;
mod sheets;
mod size;

use std::collections::BTreeMap;

use super::finding::Findings;
use super::pool::{self, Tell, Timed};
use super::{Error, Paper, Report, Shelf, Timing};
pub(super) use known::KNOWN;
pub(crate) use plan::LIBRARY;
pub(super) use plan::Plan;
pub(super) use sheets::number;

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
            shelf.get_or_make(&format!("asap {case}"), || self.make(case, so_far))
        };
        let weigh = |case: &case::Case| self.weigh(case);
        let runs = pool::carry_out(&self.cases, threads, weigh, make, tell)?;
        let mut timing = Vec::new();
        let mut seen = BTreeMap::new();
        for (case, Timed { seen: one, took }) in runs {
            timing.push(Timing { run: case.to_string(), elapsed_s: took.as_secs_f64(), inputs: one.inputs });
            seen.insert(case, one);
        }
        let seen = experiment::Runs { size: self.size, seen };
        let mut findings = Findings::new(KNOWN, wanted);
        for experiment in &self.experiments {
            experiment.judge(&seen, &mut findings);
        }
        let findings = findings.finish();
        let sheets = sheets::sheets(&findings);
        let figures = figures::figures(&seen);
        Ok(Report { paper: Paper::Asap, about: self.about, findings, sheets, figures, timing })
    }
}
