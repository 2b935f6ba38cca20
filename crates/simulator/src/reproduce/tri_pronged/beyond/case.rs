//! The runs beyond the paper: which experiment, who schedules; and what users say of running times.

use std::fmt;

use rand::RngExt;
use shoal_model::Span;

use super::super::case::{Drawn, Who};
use crate::streams::{Purpose, stream};

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub of: Of,
    pub who: Who,
    pub seed: u64,
}

/// Of which experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// Steady state, with this gap in milliseconds.
    Long(u32),
    /// A lightly loaded grid, with this gap in milliseconds.
    Light(u32),
    /// How searches find their way among so many nodes.
    Scale(Way, u32),
    /// Jobs of a trace.
    Trace,
    /// Users say how long their jobs take.
    Estimates(Said),
    /// How what is left of machines is found, with this gap in milliseconds.
    Dual(Left, u32),
}

/// How searches find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From neighbour to neighbour, as in the papers.
    Neighbours,
    /// By shortcuts along the virtual dimension too.
    Shortcuts,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Neighbours => "plain",
            Way::Shortcuts => "short",
        }
    }
}

/// How what is left of machines is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// As balloons.
    Balloon,
    /// In a CAN of its own.
    Dual,
}

impl Left {
    pub const ALL: [Left; 2] = [Left::Balloon, Left::Dual];

    pub fn name(self) -> &'static str {
        match self {
            Left::Balloon => "balloon",
            Left::Dual => "dual",
        }
    }
}

/// What users say of running times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// Nothing: as in the paper.
    Nothing,
    /// The truth.
    Exact,
    /// Every second one, the truth.
    Half,
    /// Something between a third and three times of it.
    Wrong,
}

/// By how much wrong estimates are wrong at most, either way.
const WRONG_BY: f64 = 3.0;

impl Said {
    pub const ALL: [Said; 4] = [Said::Nothing, Said::Exact, Said::Half, Said::Wrong];

    pub fn name(self) -> &'static str {
        match self {
            Said::Nothing => "none",
            Said::Exact => "exact",
            Said::Half => "every second job",
            Said::Wrong => "wrong",
        }
    }

    /// Users say it of their jobs.
    pub fn say(self, jobs: &mut [Drawn], seed: u64) {
        let mut luck = stream(seed, Purpose::Workload, 1 << 34);
        for (number, job) in jobs.iter_mut().enumerate() {
            let factor = WRONG_BY.powf(luck.random_range(-1.0..=1.0));
            job.estimate = match self {
                Said::Nothing => None,
                Said::Exact => Some(job.takes),
                Said::Half => number.is_multiple_of(2).then_some(job.takes),
                Said::Wrong => Some(Span::from_micros((job.takes.as_micros() as f64 * factor) as u64)),
            };
        }
    }
}

impl Case {
    /// How heavy it is, roughly.
    pub fn weight(&self) -> f64 {
        let nodes = match (self.who, self.of) {
            (Who::Cent, _) => 0.1,
            (_, Of::Scale(Way::Shortcuts, nodes)) => f64::from(nodes) / 1_000.0,
            // Ten times as many nodes make ways ten times as long.
            (_, Of::Scale(Way::Neighbours, nodes)) => f64::from(nodes) / 500.0,
            (_, Of::Long(_)) => 4.0,
            (_, Of::Light(gap_ms)) => f64::from(gap_ms) / 2_000.0,
            (_, Of::Trace) => 10.0,
            (_, Of::Estimates(_)) => 1.0,
            (_, Of::Dual(Left::Balloon, gap_ms)) => f64::from(gap_ms) / 2_000.0,
            (_, Of::Dual(Left::Dual, gap_ms)) => f64::from(gap_ms) / 1_000.0,
        };
        nodes.max(0.01)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, seed) = (self.who.name(), self.seed);
        let gap = |gap_ms: u32| f64::from(gap_ms) / 1e3;
        match self.of {
            Of::Long(gap_ms) => write!(f, "{who}, long, gap {} s, seed {seed}", gap(gap_ms)),
            Of::Light(gap_ms) => write!(f, "{who}, light, gap {} s, seed {seed}", gap(gap_ms)),
            Of::Scale(way, nodes) => write!(f, "{who}, {nodes} nodes, {}, seed {seed}", way.name()),
            Of::Trace => write!(f, "{who}, trace, seed {seed}"),
            Of::Estimates(said) => write!(f, "{who}, estimates: {}, seed {seed}", said.name()),
            Of::Dual(left, gap_ms) => {
                write!(f, "{who}, {}, gap {} s, seed {seed}", left.name(), gap(gap_ms))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Resources;

    use super::*;

    #[test]
    fn wrong_estimates_are_wrong_by_no_more_than_they_may_be_and_either_way() {
        let takes = Span::from_secs(900);
        let job = Drawn { at: Span::ZERO, needs: Resources::cores(1), takes, estimate: None, entry: 1 };
        let mut jobs = vec![job; 200];
        Said::Wrong.say(&mut jobs, 1);
        let said: Vec<Span> = jobs.iter().filter_map(|job| job.estimate).collect();
        assert_eq!(said.len(), 200);
        assert!(said.iter().all(|said| (Span::from_secs(299)..=Span::from_secs(2_701)).contains(said)));
        let less = said.iter().filter(|said| **said < takes).count();
        assert!((50..150).contains(&less), "{less} of 200 are too short");
        Said::Half.say(&mut jobs, 1);
        assert_eq!(jobs.iter().filter(|job| job.estimate == Some(takes)).count(), 100);
    }
}
