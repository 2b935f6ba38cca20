//! What the recipe `proactive` can be told: the paper's values, and those for real use.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

use crate::choose::genetic;
use crate::overlay::helpers;

/// What the recipe can be told. The defaults reproduce the paper (numbers in brackets are sections of the
/// specification, *ours* is a choice of our own); [`Config::real`] is for real use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Among which nodes to look (3, 4).
    pub variant: Variant,
    /// Candidates for each node wanted (7: α = 2).
    pub alpha: u8,
    /// Candidates at the least, ours.
    pub candidates_min: u16,
    /// How often to look (7: τ = 20, ours).
    pub iterations: u8,
    /// How many of these at once (3: they are independent); commits come one after the other.
    pub at_once: u8,
    /// Nodes that an iteration asks at once, ours: with one at a time the order would be exact, and slow.
    pub questions: u8,
    /// How long to wait for an answer, in milliseconds, ours.
    pub wait_ms: u32,
    /// How far ahead the earliest start lies, in milliseconds (3: two commit timeouts).
    pub lead_ms: u32,
    /// Whether three times the slowest recent answer is enough of a lead (12).
    pub adaptive: bool,
    /// How often to look again when what was found was taken, ours.
    pub retries: u8,
    /// An iteration that makes a placement better by less than so many thousandths makes the next ones wait (12: 10);
    /// 0 for never.
    pub gain_per_mille: u16,
    /// How long they then wait, in milliseconds, ours.
    pub pause_ms: u32,
    /// Whether the entry node itself is a candidate always, and not only when it is met, ours.
    pub include_self: bool,
    /// How a set is chosen (5).
    pub genetic: genetic::Config,
    /// The overlays (2).
    pub helpers: helpers::Config,
}

/// Among which nodes to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Random ones.
    Basic,
    /// Those near a random one, by the helper overlay for the criterion.
    #[default]
    Proactive,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            variant: Variant::Proactive,
            alpha: 2,
            candidates_min: 0,
            iterations: 20,
            at_once: 1,
            questions: 16,
            wait_ms: 2_000,
            lead_ms: 10_000,
            adaptive: false,
            retries: 5,
            gain_per_mille: 0,
            pause_ms: 30_000,
            include_self: false,
            genetic: genetic::Config::default(),
            helpers: helpers::Config::default(),
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Fewer candidates than nodes wanted.
    #[error("alpha = 0: must be at least 1, since there must be as many candidates as nodes wanted")]
    Alpha,
    /// Nothing would ever be done.
    #[error("{0} = 0: must be at least 1")]
    Zero(&'static str),
    /// Of the choice.
    #[error("genetic: {0}")]
    Genetic(#[from] genetic::ConfigError),
    /// Of the overlays.
    #[error("helpers: {0}")]
    Helpers(#[from] helpers::ConfigError),
}

impl Config {
    /// The values for real use: the job starts as soon as the first set is committed, if that is what is wanted, and
    /// better sets are looked for as long as there is time.
    pub fn real() -> Config {
        Config {
            candidates_min: 16,
            wait_ms: 1_000,
            lead_ms: 5,
            adaptive: true,
            gain_per_mille: 10,
            include_self: true,
            genetic: genetic::Config::real(),
            ..Config::default()
        }
    }

    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.alpha == 0 {
            return Err(ConfigError::Alpha);
        }
        let counts = [
            ("iterations", u32::from(self.iterations)),
            ("at_once", self.at_once.into()),
            ("questions", self.questions.into()),
            ("wait_ms", self.wait_ms),
        ];
        if let Some((field, _)) = counts.into_iter().find(|&(_, count)| count == 0) {
            return Err(ConfigError::Zero(field));
        }
        self.genetic.check()?;
        Ok(self.helpers.check()?)
    }

    pub(super) fn wait(&self) -> Span {
        Span::from_millis(u64::from(self.wait_ms))
    }

    pub(super) fn pause(&self) -> Span {
        Span::from_millis(u64::from(self.pause_ms))
    }

    /// How many candidates an iteration collects for so many nodes.
    pub(super) fn candidates(&self, nodes: u32) -> usize {
        (nodes as usize).saturating_mul(usize::from(self.alpha)).max(usize::from(self.candidates_min))
    }
}
