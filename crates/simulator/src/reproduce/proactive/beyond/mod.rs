//! What goes beyond the paper: other criteria, calendars that are not empty, more iterations, larger grids.

mod criteria;
mod iterations;
mod load;
mod scale;

use super::case::{Case, Seen, Way};
use super::judge::{PAPER, Runs};
use crate::report::picture::Picture;
use crate::reproduce::asap::number;
use crate::reproduce::finding::Findings;
use crate::reproduce::sheet::Sheet;
use crate::reproduce::statistics::mean;

/// One question that the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    Criteria,
    Load,
    Iterations,
    Scale,
}

/// The variants beside each other, by name.
const VARIANTS: [(&str, Way); 2] = [("basic", Way::Basic(PAPER)), ("proactive", Way::Proactive(PAPER))];

impl Experiment {
    pub const ALL: [Experiment; 4] =
        [Experiment::Criteria, Experiment::Load, Experiment::Iterations, Experiment::Scale];

    /// The part of an id behind `beyond` that is its.
    fn part(self) -> &'static str {
        match self {
            Experiment::Criteria => "criteria",
            Experiment::Load => "load",
            Experiment::Iterations => "iterations",
            Experiment::Scale => "scale",
        }
    }

    /// Whether it finds what this id names.
    pub fn finds(self, id: &str) -> bool {
        id.strip_prefix("proactive/beyond/").and_then(|id| id.split('/').next()) == Some(self.part())
    }

    /// The runs that it needs.
    pub fn cases(self) -> Vec<Case> {
        match self {
            Experiment::Criteria => criteria::cases(),
            Experiment::Load => load::cases(),
            Experiment::Iterations => iterations::cases(),
            Experiment::Scale => scale::cases(),
        }
    }

    pub fn judge(self, runs: &Runs, findings: &mut Findings) {
        match self {
            Experiment::Criteria => criteria::judge(runs, findings),
            Experiment::Load => load::judge(runs, findings),
            Experiment::Iterations => iterations::judge(runs, findings),
            Experiment::Scale => scale::judge(runs, findings),
        }
    }

    pub fn sheets(self, runs: &Runs) -> Vec<Sheet> {
        match self {
            Experiment::Criteria => vec![criteria::sheet(runs)],
            Experiment::Load => load::sheets(runs),
            Experiment::Iterations => vec![iterations::sheet(runs)],
            Experiment::Scale => vec![scale::sheet(runs)],
        }
    }

    pub fn figures(self, runs: &Runs) -> Vec<Picture> {
        match self {
            Experiment::Criteria => vec![criteria::figure(runs)],
            Experiment::Load => load::figures(runs),
            Experiment::Iterations => iterations::figures(runs),
            Experiment::Scale => vec![scale::figure(runs)],
        }
    }
}

/// What the last set of each query cost beside the best that somebody who knows everything found for it: 1 is as good, more
/// is worse. None where one of them found no set.
fn beside(seen: Option<&Seen>, central: Option<&Seen>) -> Vec<Option<f64>> {
    let (Some(seen), Some(central)) = (seen, central) else { return Vec::new() };
    let last = seen.courses.iter().map(|course| course.last().copied().unwrap_or(f64::INFINITY));
    let ratio = |(cost, &(_, best)): (f64, &(f64, f64))| {
        (cost.is_finite() && best.is_finite()).then(|| over(cost, best))
    };
    last.zip(&central.centrals).map(ratio).collect()
}

/// The largest of some figures; none of them may be missing.
fn largest(figures: impl IntoIterator<Item = f64>) -> f64 {
    let larger =
        |one: f64, other: f64| if one.is_nan() || other.is_nan() { f64::NAN } else { one.max(other) };
    figures.into_iter().fold(f64::NEG_INFINITY, larger)
}

/// How much worse a cost is than the best; what is to be large has costs below nothing.
fn over(cost: f64, best: f64) -> f64 {
    if best < 0.0 { best / cost } else { cost / best }
}

/// How many queries found a set at all, as a share.
fn found(seen: Option<&Seen>) -> f64 {
    let Some(seen) = seen else { return f64::NAN };
    let with = seen.courses.iter().filter(|course| course.last().is_some_and(|cost| cost.is_finite()));
    with.count() as f64 / seen.courses.len() as f64
}

/// A figure to tell; none where there is nothing to tell.
fn told(figure: f64) -> Vec<f64> {
    Some(figure).filter(|figure| figure.is_finite()).into_iter().collect()
}

/// A mean for a table; a dash where there is none.
fn cost(values: &[f64]) -> String {
    mean(values).map_or_else(|| "-".to_owned(), number)
}

fn average(values: &[f64]) -> f64 {
    mean(values).unwrap_or(f64::NAN)
}
