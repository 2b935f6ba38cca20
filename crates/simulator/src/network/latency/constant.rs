//! Every message takes the same time.

use serde::Deserialize;

use crate::network::error::Error;
use crate::network::quantity;

/// One delay for all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// One-way delay in milliseconds.
    pub delay_ms: f64,
}

impl Constant {
    pub(super) fn delay(&self) -> Result<u32, Error> {
        quantity::delay("network.latency.delay_ms", self.delay_ms)
    }
}
