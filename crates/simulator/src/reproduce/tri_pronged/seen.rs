//! What is kept of a run.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::reproduce::runs::Kept;
use crate::reproduce::statistics::mean;

/// What is kept of a run.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Seen {
    /// How long each job waited, in seconds; those that never started waited until the end.
    #[n(0)]
    pub waits: Vec<f64>,
    /// Jobs that had not started when the run was given up.
    #[n(1)]
    pub unstarted: usize,
    /// Messages a minute and node.
    #[n(2)]
    pub messages: f64,
    /// Bytes a minute and node.
    #[n(3)]
    pub bytes: f64,
    /// Jobs that moved.
    #[n(4)]
    pub moves: u64,
    /// How much of its run node a job did not need, of 1, on average over resources.
    #[n(5)]
    pub beyond: f64,
    /// ρ.
    #[n(6)]
    pub offered: f64,
    /// Inputs that nodes handled.
    #[n(7)]
    pub inputs: u64,
    /// Of the messages a minute and node, those that are there for what is left of machines.
    #[n(8)]
    #[cbor(default)]
    pub of_residues: f64,
    /// How many jobs started after they had been overtaken never, once, up to 3, 7, 15, 31, 63 times, or more.
    #[n(9)]
    #[cbor(default)]
    pub counters: Vec<u64>,
    /// Messages and bytes a minute and node, by kind of message.
    #[n(10)]
    #[cbor(default)]
    pub kinds: BTreeMap<String, (f64, f64)>,
}

impl Kept for Seen {
    fn inputs(&self) -> u64 {
        self.inputs
    }
}

impl Seen {
    pub fn wait(&self) -> f64 {
        mean(&self.waits).unwrap_or(0.0)
    }

    pub fn longest(&self) -> f64 {
        self.waits.iter().copied().fold(0.0, f64::max)
    }
}
