//! All that a Shoal node decides, and nothing that it does: no clock, no IO, no thread, no unordered map.
//!
//! [`protocol`] is the contract; [`node`] joins the layers; each layer is a protocol of its own.

pub mod guard;
pub mod node;
pub mod overlay;
pub mod protocol;
#[cfg(test)]
mod testing;

pub use protocol::{Chance, Ctx, Hosts, Input, KeyOf, Message, Never, Out, Protocol, Record};
