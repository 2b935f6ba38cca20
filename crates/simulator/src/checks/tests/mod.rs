//! Planted faults are found by the checker that is meant to, and honest runs break no promise.

mod ending;
pub(crate) mod planted;
mod storms;
