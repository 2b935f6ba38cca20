//! All that a Shoal node decides, and nothing that it does: no clock, no IO, no thread, no unordered map.
//!
//! [`protocol`] is the contract; [`node`] joins the layers; each layer has a room of its own.

pub mod choose;
pub mod commit;
pub mod guard;
pub mod node;
pub mod nodes;
pub mod overlay;
pub mod protocol;
pub mod queue;
pub mod scheduling;
pub mod shared;
#[cfg(test)]
mod testing;

pub use protocol::{Chance, Ctx, Hosts, Input, KeyOf, Layer, Message, Never, Out, Protocol, Record};
pub use shared::Shared;
