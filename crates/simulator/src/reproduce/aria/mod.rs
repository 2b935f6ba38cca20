//! ARiA: its 26 scenarios, figures 1 to 10, and what stands beside them.
//!
//! Runs are those of `scenarios/aria`, which are part of the program, and variants of them. Ids, the paper's figures and
//! the claims with their thresholds are in `known`; each experiment names the runs that it needs and judges them.
//! What the paper does not say, and how we settle it, is in `docs/protocols/aria.md`.

mod case;
mod central;
mod experiment;
mod figures;
mod known;
mod large;
mod plan;
mod seen;
mod sheets;
mod size;

use super::finding::Findings;
use super::runs::{Made, Making};
use super::{Error, Paper, Report};
pub(super) use known::KNOWN;
pub(super) use plan::Plan;
pub(super) use seen::Seen;

impl Plan {
    pub(super) fn runs(&self) -> usize {
        self.cases.len()
    }

    pub(super) fn carry_out(self, wanted: Vec<&'static str>, making: &Making<'_>) -> Result<Report, Error> {
        let make = |case: &case::Case, so_far: &dyn Fn(f64)| self.make(case, so_far);
        let Made { seen, timing } = making.all(Paper::Aria, &self.cases, |case| self.weigh(case), make)?;
        let runs = experiment::Runs { size: self.size, seen };
        let mut findings = Findings::new(KNOWN, wanted);
        for experiment in &self.experiments {
            experiment.judge(&runs, &mut findings);
        }
        let findings = findings.finish();
        let sheets = sheets::sheets(&findings);
        let figures = figures::figures(&runs);
        Ok(Report { paper: Paper::Aria, about: self.about, findings, sheets, figures, timing })
    }
}
