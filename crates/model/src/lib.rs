//! The words of Shoal: ids, time, resources, jobs and calendars, with their arithmetic.
//!
//! Data only: nothing here does IO, reads a clock or talks to a peer. Every other crate speaks in these words.

pub mod amount;
pub mod id;
pub mod machine;
pub mod resources;
#[cfg(test)]
mod samples;
pub mod text;
pub mod time;
pub mod units;

pub use amount::Amount;
pub use id::{Epoch, JobId, NodeId, Rank};
pub use machine::{Machine, Speed};
pub use resources::Resources;
pub use text::{Architecture, Expression, Line, Name, System};
pub use time::{Span, Time};
pub use units::{Size, Thousandths};
