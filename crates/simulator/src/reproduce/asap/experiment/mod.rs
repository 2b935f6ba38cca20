//! The experiments: the runs that each needs, and what it makes of them.

mod beside;
pub mod costs;
mod degrees;
mod overlays;
mod utilisation;
mod waits;

use std::collections::BTreeMap;

use super::case::{Asap, Case, Jobs};
use super::seen::Seen;
use super::size::Size;
use crate::reproduce::finding::Findings;

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    Fig4a,
    Fig4b,
    Tail,
    Fig5,
    Table1,
    Table2,
    Table3,
    Fig6,
    Narrow,
    Scale,
    Baselines,
    Estimates,
}

impl Experiment {
    pub const ALL: [Experiment; 12] = [
        Experiment::Fig4a,
        Experiment::Fig4b,
        Experiment::Tail,
        Experiment::Fig5,
        Experiment::Table1,
        Experiment::Table2,
        Experiment::Table3,
        Experiment::Fig6,
        Experiment::Narrow,
        Experiment::Scale,
        Experiment::Baselines,
        Experiment::Estimates,
    ];

    /// Whether it finds this id.
    pub fn finds(self, id: &str) -> bool {
        let (figures, claims): (&str, &[&str]) = match self {
            Experiment::Fig4a => ("fig4a", &["eu_follows_ru"]),
            Experiment::Fig4b => ("fig4b", &["eu_plateau"]),
            Experiment::Tail => ("", &["tail"]),
            Experiment::Fig5 => (
                "fig5",
                &[
                    "wt_follows_ru",
                    "wt_grows_with_n",
                    "wt_not_with_s",
                    "wt_grows_with_ns",
                    "large_without_delay",
                ],
            ),
            Experiment::Table1 => ("table1", &["push_cheapest", "poll_known"]),
            Experiment::Table2 => (
                "table2",
                &[
                    "push_linear_in_degree",
                    "degree10_fails",
                    "degree20_enough",
                    "degree10_lowest_wt",
                    "wt_flat_above_10",
                ],
            ),
            Experiment::Table3 => ("table3", &["static_beats_dynamic"]),
            Experiment::Fig6 => ("fig6", &[]),
            Experiment::Narrow => ("", &["push_vs_pull"]),
            Experiment::Scale => ("scale", &["scale_free_cost"]),
            Experiment::Baselines => ("baselines", &[]),
            Experiment::Estimates => ("estimates", &[]),
        };
        let mut parts = id.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some("claim"), Some(claim)) => claims.contains(&claim),
            (Some(group), _) => group == figures,
            (None, _) => false,
        }
    }

    /// The runs that it needs.
    pub fn cases(self, size: &Size) -> Vec<Case> {
        match self {
            Experiment::Fig4a => paper(Jobs::Original, size),
            Experiment::Fig4b | Experiment::Fig5 => paper(Jobs::Compressed, size),
            Experiment::Tail => [paper(Jobs::Original, size), paper(Jobs::Compressed, size)].concat(),
            Experiment::Table1 => costs::table1_cases(size),
            Experiment::Table2 => degrees::cases(size),
            Experiment::Table3 => overlays::cases(size),
            Experiment::Fig6 => costs::pair_cases(Jobs::Original, size),
            Experiment::Narrow => costs::pair_cases(costs::narrow(size), size),
            Experiment::Scale => costs::scale_cases(size),
            Experiment::Baselines => beside::baseline_cases(size),
            Experiment::Estimates => beside::estimate_cases(size),
        }
    }

    /// What came of it.
    pub fn judge(self, runs: &Runs, findings: &mut Findings) {
        match self {
            Experiment::Fig4a => utilisation::fig4a(runs, findings),
            Experiment::Fig4b => utilisation::fig4b(runs, findings),
            Experiment::Tail => utilisation::tail(runs, findings),
            Experiment::Fig5 => waits::fig5(runs, findings),
            Experiment::Table1 => costs::table1(runs, findings),
            Experiment::Table2 => degrees::table2(runs, findings),
            Experiment::Table3 => overlays::table3(runs, findings),
            Experiment::Fig6 => costs::fig6(runs, findings),
            Experiment::Narrow => costs::push_vs_pull(runs, findings),
            Experiment::Scale => costs::scale(runs, findings),
            Experiment::Baselines => beside::baselines(runs, findings),
            Experiment::Estimates => beside::estimates(runs, findings),
        }
    }
}

/// All runs that were made.
pub struct Runs {
    pub size: Size,
    pub seen: BTreeMap<Case, Seen>,
}

impl Runs {
    /// What was seen with seeds 1 to this.
    pub fn each(&self, seeds: u64, case: impl Fn(u64) -> Case) -> Vec<&Seen> {
        (1..=seeds).map(|seed| &self.seen[&case(seed)]).collect()
    }

    /// What was seen of the paper's own configuration on these jobs.
    pub fn paper(&self, jobs: Jobs) -> Vec<&Seen> {
        self.each(self.size.seeds, |seed| Case::asap(jobs, Asap::PAPER, seed))
    }
}

/// The paper's own configuration on these jobs.
fn paper(jobs: Jobs, size: &Size) -> Vec<Case> {
    (1..=size.seeds).map(|seed| Case::asap(jobs, Asap::PAPER, seed)).collect()
}

/// A figure of each run.
fn of(runs: &[&Seen], figure: impl Fn(&Seen) -> f64) -> Vec<f64> {
    runs.iter().map(|seen| figure(seen)).collect()
}

/// A figure of each run that has it.
fn of_some(runs: &[&Seen], figure: impl Fn(&Seen) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(|seen| figure(seen)).collect()
}

#[cfg(test)]
mod tests;
