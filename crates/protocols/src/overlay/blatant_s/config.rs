//! What BLATANT-S can be told.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

/// What BLATANT-S can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// D: nodes that are 2D − 1 or more apart are linked, links that close a ring of at most D + 1 are cut. ARiA's
    /// target path length of 9 is 2D − 1.
    pub bound: u8,
    /// The time between two discovery ants of one node, in milliseconds; 0 for none: nothing changes any more.
    pub ant_ms: u32,
    /// Hops after which a discovery ant dies.
    pub ant_hops: u8,
    /// Nodes that a discovery ant remembers.
    pub ant_carries: u8,
    /// Nodes that a node remembers (the size of its α-table).
    pub alpha: u8,
    /// The time between two evaporations, in milliseconds: pheromone loses a tenth.
    pub evaporate_ms: u32,
    /// The least time between two looks at the rules, in milliseconds: what an ant brings is seldom urgent.
    pub rules_ms: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bound: 5,
            ant_ms: 30_000,
            ant_hops: 20,
            ant_carries: 10,
            alpha: 50,
            evaporate_ms: 10_000,
            rules_ms: 10_000,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Rings of so few links are triangles, or every path is short enough.
    #[error("bound = {0}: must be 2 to 60")]
    Bound(u8),
    /// An ant that goes nowhere learns nothing.
    #[error("ant_hops = 0: must be at least 1")]
    Hops,
    /// An ant that remembers nobody tells nothing.
    #[error("ant_carries = {0}: must be 1 to {CARRIES_MAX}")]
    Carries(u8),
    /// Nobody is remembered.
    #[error("alpha = 0: must be at least 1")]
    Alpha,
    /// Pheromone that never goes finds no crash.
    #[error("evaporate_ms = 0: must be at least 1, unless ant_ms is 0 too")]
    Evaporate,
}

/// The most that an ant is listened to about.
pub const CARRIES_MAX: u8 = 64;

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(2..=60).contains(&self.bound) {
            return Err(ConfigError::Bound(self.bound));
        }
        if self.ant_hops == 0 {
            return Err(ConfigError::Hops);
        }
        if self.ant_carries == 0 || self.ant_carries > CARRIES_MAX {
            return Err(ConfigError::Carries(self.ant_carries));
        }
        if self.alpha == 0 {
            return Err(ConfigError::Alpha);
        }
        if self.evaporate_ms == 0 && self.ant_ms > 0 {
            return Err(ConfigError::Evaporate);
        }
        Ok(())
    }

    /// The same, but nothing changes any more.
    pub fn frozen(self) -> Config {
        Config { ant_ms: 0, ..self }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.ant_ms == 0
    }

    /// How far apart nodes are that are to be linked: 2D − 1.
    pub fn far(&self) -> u8 {
        2 * self.bound - 1
    }

    pub(super) fn ant(&self) -> Span {
        Span::from_millis(u64::from(self.ant_ms))
    }

    pub(super) fn evaporate(&self) -> Span {
        Span::from_millis(u64::from(self.evaporate_ms))
    }

    pub(super) fn rules(&self) -> Span {
        Span::from_millis(u64::from(self.rules_ms))
    }
}
