//! Drives nodes in virtual time.

pub mod workload;
