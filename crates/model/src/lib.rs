//! The words of Shoal: ids, time, resources, jobs and calendars, with their arithmetic.
//!
//! Data only: nothing here does IO, reads a clock or talks to a peer. Every other crate speaks in these words.

pub mod amount;
pub mod calendar;
pub mod id;
pub mod time;

pub use amount::Amount;
pub use calendar::Calendar;
pub use id::{Epoch, JobId, NodeId, Rank};
pub use time::{Span, Time};
