//! Lee, Keleher and Sussman, 2010: figures 3 to 5 and the claims of the text.
//!
//! Machines and jobs are drawn as `docs/protocols/tri-pronged.md` says, since the paper publishes neither. Ids and claims
//! with their thresholds are in `known`; `judge` holds the runs against them.

mod beyond;
mod case;
mod figures;
mod judge;
mod known;
mod plan;
mod run;
mod seen;
mod sheets;

use super::finding::Findings;
use super::runs::{Made, Making};
use super::{Error, Paper, Report};
pub(super) use known::KNOWN;
pub(super) use plan::Plan;
pub(super) use seen::Seen;

impl Plan {
    pub(super) fn runs(&self) -> usize {
        self.cases.len() + self.beyond.cases.len()
    }

    pub(super) fn carry_out(self, wanted: Vec<&'static str>, making: &Making<'_>) -> Result<Report, Error> {
        let make = |case: &case::Case, so_far: &dyn Fn(f64)| Ok(self.make(case, so_far)?);
        let Made { seen, mut timing } =
            making.all(Paper::TriPronged, &self.cases, case::Case::weight, make)?;
        let make = |case: &beyond::Case, so_far: &dyn Fn(f64)| Ok(self.beyond.make(case, so_far)?);
        let beyond = making.all(Paper::TriPronged, &self.beyond.cases, beyond::Case::weight, make)?;
        timing.extend(beyond.timing);
        let beyond = beyond::Runs { seeds: self.size.seeds, seen: beyond.seen };
        let runs = judge::Runs { seeds: self.size.seeds, seen };
        let mut findings = Findings::new(KNOWN, wanted);
        judge::judge(&runs, &mut findings);
        beyond::judge(&beyond, &mut findings);
        let mut sheets = sheets::sheets(&runs);
        sheets.extend(beyond::sheets(&beyond));
        let figures = figures::figures(&runs).into_iter().chain(beyond::figures(&beyond)).collect();
        let findings = findings.finish();
        Ok(Report { paper: Paper::TriPronged, about: self.about, findings, sheets, figures, timing })
    }
}
