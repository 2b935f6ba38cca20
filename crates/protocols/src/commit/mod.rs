//! Commit: how a plan becomes binding on several nodes at once.

pub mod two_phase;
