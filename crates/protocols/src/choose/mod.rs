//! Choose: which of the candidates a job runs on, and when.

pub mod earliest;
