//! The words of Shoal: ids, time, resources, jobs and calendars, with their arithmetic.
//!
//! Data only: nothing here does IO, reads a clock or talks to a peer. Every other crate speaks in these words.

pub mod amount;
pub mod calendar;
pub mod constraint;
pub mod coordinates;
pub mod criterion;
pub mod digest;
pub mod envelope;
pub mod expression;
pub mod honours;
pub mod id;
pub mod job;
pub mod machine;
pub mod matching;
pub mod resources;
#[cfg(test)]
mod samples;
pub mod text;
pub mod time;
pub mod units;

pub use amount::Amount;
pub use calendar::Calendar;
pub use constraint::Constraint;
pub use coordinates::Coordinates;
pub use criterion::Criterion;
pub use digest::Digest;
pub use envelope::{Envelope, Nonce, Pass};
pub use expression::ExpressionError;
pub use honours::{Field, FieldSet, refuse_unhonoured};
pub use id::{Epoch, JobId, NodeId, Rank};
pub use job::Job;
pub use machine::{Machine, Speed};
pub use matching::{Mismatch, Needs, matches, mismatches};
pub use resources::Resources;
pub use text::{Architecture, Expression, Line, Name, System};
pub use time::{Span, Time};
pub use units::{Size, Thousandths};
