//! Files of jobs: read and brought to the node before a job is submitted, fetched after it has ended.

mod bring;
mod fetch;
mod read;
pub mod secrets;

pub use bring::bring;
pub use fetch::fetch;
pub use read::{Sources, input};
