//! Proactive: figure 1 for four sizes of grid and job, the traffic of the overlays, and what stands beside them.
//!
//! A run is a grid of whole nodes that gossip until their views have settled, then some queries at once from random
//! entry nodes, each for a time of its own, so that none is in another's way. Hosts lie in clusters drawn at random, or
//! are those of a file. What goes beyond the paper is in `beyond`. What the paper does not say, and how we settle it, is in `docs/protocols/proactive.md`.

mod aim;
mod beyond;
mod busy;
mod case;
mod central;
mod figures;
mod judge;
mod known;
mod plan;
mod run;
mod stage;

use super::finding::Findings;
use super::runs::{Made, Making};
use super::{Error, Paper, Report};
pub(super) use case::Seen;
pub(super) use known::KNOWN;
pub(super) use plan::Plan;

impl Plan {
    pub(super) fn runs(&self) -> usize {
        self.cases.len()
    }

    pub(super) fn carry_out(self, wanted: Vec<&'static str>, making: &Making<'_>) -> Result<Report, Error> {
        let make = |case: &case::Case, so_far: &dyn Fn(f64)| self.make(case, so_far);
        let of = format!("{} {} queries", Paper::Proactive, self.queries);
        let Made { seen, timing } = making.all(of, &self.cases, |case| self.weigh(case), make)?;
        let runs = judge::Runs::new(seen, |size| self.run_size(size));
        let mut findings = Findings::new(KNOWN, wanted);
        let (mut sheets, mut figures) = (Vec::new(), Vec::new());
        if self.of_paper {
            runs.judge(&mut findings);
            sheets = runs.sheets();
            figures = figures::figures(&runs);
        }
        for experiment in &self.experiments {
            experiment.judge(&runs, &mut findings);
            sheets.extend(experiment.sheets(&runs));
            figures.extend(experiment.figures(&runs));
        }
        let findings = findings.finish();
        Ok(Report { paper: Paper::Proactive, about: self.about, findings, sheets, figures, timing })
    }
}
