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

use super::finding::Findings;
use super::runs::{Made, Making};
use super::{Error, Paper, Report};
pub(super) use known::KNOWN;
pub(crate) use plan::LIBRARY;
pub(super) use plan::Plan;
pub(super) use seen::Seen;
pub(super) use sheets::number;

impl Plan {
    pub(super) fn runs(&self) -> usize {
        self.cases.len()
    }

    pub(super) fn carry_out(self, wanted: Vec<&'static str>, making: &Making<'_>) -> Result<Report, Error> {
        let make = |case: &case::Case, so_far: &dyn Fn(f64)| self.make(case, so_far);
        let Made { seen, timing } = making.all(Paper::Asap, &self.cases, |case| self.weigh(case), make)?;
        let runs = experiment::Runs { size: self.size, seen };
        let mut findings = Findings::new(KNOWN, wanted);
        for experiment in &self.experiments {
            experiment.judge(&runs, &mut findings);
        }
        let findings = findings.finish();
        let sheets = sheets::sheets(&findings);
        let figures = figures::figures(&runs);
        Ok(Report { paper: Paper::Asap, about: self.about, findings, sheets, figures, timing })
    }
}
