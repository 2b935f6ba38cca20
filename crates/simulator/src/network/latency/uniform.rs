//! Every delay between two bounds is equally likely, whoever sends to whom.

use serde::Deserialize;

use crate::network::error::Error;
use crate::network::quantity;

/// Bounds of the delay, both included.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// The shortest one-way delay in milliseconds.
    pub min_ms: f64,
    /// The longest one-way delay in milliseconds.
    pub max_ms: f64,
}

impl Uniform {
    /// The shortest delay, and how much longer the longest is.
    pub(super) fn bounds(&self) -> Result<(u32, u32), Error> {
        let least = quantity::delay("network.latency.min_ms", self.min_ms)?;
        let most = quantity::delay("network.latency.max_ms", self.max_ms)?;
        let width = most.checked_sub(least).ok_or_else(|| {
            let what = format!("must be at least min_ms, which is {}, not {}", self.min_ms, self.max_ms);
            Error::field("network.latency.max_ms", what)
        })?;
        Ok((least, width))
    }
}
