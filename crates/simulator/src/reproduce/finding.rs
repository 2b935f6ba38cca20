//! A figure or claim of a paper beside ours.

use serde::Serialize;

use super::statistics::{Spread, mean};

/// A figure or claim that a paper has, or that we set beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Its name, such as `asap/table1/push/messages`.
    pub id: &'static str,
    /// What the paper says; none for what only we measure.
    pub paper: Option<f64>,
    /// What it is counted in; empty for plain numbers.
    pub unit: &'static str,
    /// What is claimed, in words, with the threshold it is judged by.
    pub claim: Option<&'static str>,
}

impl Known {
    /// Whether it goes beyond the paper, as its id says: found only if it is asked for, since its runs are long.
    pub fn is_beyond(&self) -> bool {
        self.id.split('/').nth(1) == Some("beyond")
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub id: &'static str,
    /// What the paper says.
    pub paper: Option<f64>,
    /// What we measured, the mean over seeds; none where there was nothing to measure.
    pub ours: Option<f64>,
    /// How it varies from seed to seed; none with one seed.
    pub spread: Option<Spread>,
    /// What it is counted in.
    pub unit: &'static str,
    /// What is claimed, in words.
    pub claim: Option<&'static str>,
    /// Whether it holds; none for a mere figure, and where a run gave nothing to judge by.
    pub holds: Option<bool>,
}

/// Findings as they are made, of the ids that are wanted.
pub(super) struct Findings {
    known: &'static [Known],
    wanted: Vec<&'static str>,
    made: Vec<Finding>,
}

impl Findings {
    pub fn new(known: &'static [Known], wanted: Vec<&'static str>) -> Findings {
        Findings { known, wanted, made: Vec::new() }
    }

    /// A figure, one value for each seed.
    pub fn figure(&mut self, id: &str, values: &[f64]) {
        self.push(id, mean(values), values, None);
    }

    /// A claim: the figure that it is judged by, one value for each seed, and the judgement; none where there was
    /// nothing to judge by.
    pub fn claim(&mut self, id: &str, values: &[f64], holds: Option<bool>) {
        self.push(id, mean(values), values, holds);
    }

    /// A claim that is judged by a figure of several means; its spread is that of the same figure of each seed alone.
    pub fn claim_of_means(&mut self, id: &str, figure: Option<f64>, each: &[f64], holds: Option<bool>) {
        self.push(id, figure, each, holds);
    }

    /// All findings, in the order in which the ids are known.
    pub fn finish(self) -> Vec<Finding> {
        let mut made = self.made;
        let place = |id: &str| self.known.iter().position(|known| known.id == id);
        made.sort_by_key(|finding| place(finding.id));
        assert!(
            made.windows(2).all(|pair| pair[0].id != pair[1].id) && made.len() == self.wanted.len(),
            "each wanted id is found once"
        );
        made
    }

    fn push(&mut self, id: &str, ours: Option<f64>, values: &[f64], holds: Option<bool>) {
        let known = self.known.iter().find(|known| known.id == id);
        let known = known.unwrap_or_else(|| panic!("{id} is not among the known ids"));
        if !self.wanted.contains(&known.id) {
            return;
        }
        self.made.push(Finding {
            id: known.id,
            paper: known.paper,
            ours: ours.map(round),
            spread: Spread::of(values).map(|Spread { seeds, min, max, sd, ci95 }| Spread {
                seeds,
                min: round(min),
                max: round(max),
                sd: round(sd),
                ci95: ci95.map(round),
            }),
            unit: known.unit,
            claim: known.claim,
            holds,
        });
    }
}

/// Six decimals say enough.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
