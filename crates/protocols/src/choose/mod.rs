//! Choose: which of the candidates a job runs on, and when.

pub mod best;
pub mod earliest;
pub mod genetic;
pub mod problem;
