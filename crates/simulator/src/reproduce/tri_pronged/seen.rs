//! What is kept of a run.

use crate::reproduce::statistics::mean;

/// What is kept of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How long each job waited, in seconds; those that never started waited until the end.
    pub waits: Vec<f64>,
    /// Jobs that had not started when the run was given up.
    pub unstarted: usize,
    /// Messages a minute and node.
    pub messages: f64,
    /// Bytes a minute and node.
    pub bytes: f64,
    /// Jobs that moved.
    pub moves: u64,
    /// How much of its run node a job did not need, of 1, on average over resources.
    pub beyond: f64,
    /// ρ.
    pub offered: f64,
    /// Inputs that nodes handled.
    pub inputs: u64,
}

impl Seen {
    pub fn wait(&self) -> f64 {
        mean(&self.waits).unwrap_or(0.0)
    }

    pub fn longest(&self) -> f64 {
        self.waits.iter().copied().fold(0.0, f64::max)
    }
}
