//! What CYCLON can be told.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

use super::CACHE_MAX;

/// What CYCLON can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Entries in a cache (c); the PeerSim configurations of the authors use 20.
    pub cache: u8,
    /// Entries that change hands in a shuffle (ℓ), the sender's own included; 8 there.
    pub shuffle: u8,
    /// Steps of a join's random walk: about the average path length.
    pub walk: u8,
    /// The time between two shuffles of one node (ΔT), in milliseconds; 0 for never: a static overlay.
    pub period_ms: u32,
    /// Periods that a node lets pass between two shuffles while nothing changes around it, at most; 0 there.
    #[serde(skip_serializing_if = "is_none")]
    pub rests: u8,
}

/// Who never rests need not say so: what is written of a run stays what it was.
fn is_none(rests: &u8) -> bool {
    *rests == 0
}

impl Default for Config {
    fn default() -> Config {
        Config { cache: 20, shuffle: 8, walk: 4, period_ms: 10_000, rests: 0 }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No entries, or more than a mask has bits.
    #[error("cache = {0}: must be 1 to {CACHE_MAX}")]
    Cache(u8),
    /// A shuffle of nothing, or of more than there is.
    #[error("shuffle = {shuffle}: must be 1 to the size of the cache ({cache})")]
    Shuffle {
        /// What was asked for.
        shuffle: u8,
        /// What there is.
        cache: u8,
    },
}

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.cache == 0 || usize::from(self.cache) > CACHE_MAX {
            return Err(ConfigError::Cache(self.cache));
        }
        if self.shuffle == 0 || self.shuffle > self.cache {
            return Err(ConfigError::Shuffle { shuffle: self.shuffle, cache: self.cache });
        }
        Ok(())
    }

    pub(super) fn period(&self) -> Span {
        Span::from_millis(u64::from(self.period_ms))
    }
}
