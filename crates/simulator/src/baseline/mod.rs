//! What decentralised schedulers are measured against: one scheduler that knows everything, in virtual time.
//!
//! Each baseline gets a whole [`Workload`] and tells when every job started and ended. Plans are made with the
//! requested times; a job runs for its run time, and is stopped when its requested time is over. At one instant,
//! ends come before arrivals, and arrivals in the order of the workload (see [`shoal_protocols::queue`] for what the
//! policies make of that). Nothing is left to chance, and nothing takes time but the jobs.

pub mod cent;
mod central_asap;
pub mod flood;
mod outcome;
mod policy;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shoal_model::Span;
use shoal_protocols::queue::Policy;

use crate::workload::{TraceJob, Workload};

pub use outcome::{Outcome, Placed, Summary, TAU};

/// A centralised scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "&'static str")]
pub enum Baseline {
    /// A queue policy over all nodes as one big node: a job gets any that are free.
    Queue(Policy),
    /// The earliest common slot in the calendars of all nodes, never to be moved.
    CentralAsap,
}

/// A name that no baseline has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no baseline is called `{name}`: take one of {}", known())]
pub struct UnknownBaseline {
    /// The name.
    pub name: Box<str>,
}

/// Why a baseline cannot run a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaselineError {
    /// It would wait for ever.
    #[error("job {id} wants {width} nodes, the grid has {nodes}: drop such jobs or give it more nodes")]
    TooWide {
        /// Its number in the trace.
        id: i64,
        /// What it wants.
        width: u32,
        /// What there is.
        nodes: u32,
    },
    /// The order of submission is the order of the queue.
    #[error("job {id} stands after one that is submitted later: sort the jobs by submission")]
    OutOfOrder {
        /// Its number in the trace.
        id: i64,
    },
}

impl Baseline {
    /// Every baseline.
    pub const ALL: [Baseline; 4] = [
        Baseline::Queue(Policy::Fcfs),
        Baseline::Queue(Policy::Easy),
        Baseline::Queue(Policy::Conservative),
        Baseline::CentralAsap,
    ];

    /// What it is called in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Queue(policy) => policy.name(),
            Baseline::CentralAsap => "central-asap",
        }
    }

    /// Runs every job of a workload on its nodes.
    pub fn run(self, workload: &Workload) -> Result<Outcome, BaselineError> {
        check(workload)?;
        let starts = match self {
            Baseline::Queue(policy) => policy::starts(policy, workload),
            Baseline::CentralAsap => central_asap::starts(workload),
        };
        Ok(Outcome::new(self, workload, &starts))
    }
}

/// How long a job really runs: it is stopped at its limit.
fn length(job: &TraceJob) -> Span {
    job.run.min(job.requested)
}

fn check(workload: &Workload) -> Result<(), BaselineError> {
    let nodes = workload.nodes;
    if let Some(job) = workload.jobs.iter().find(|job| job.width > nodes) {
        return Err(BaselineError::TooWide { id: job.id, width: job.width, nodes });
    }
    match workload.jobs.windows(2).find(|pair| pair[0].submit > pair[1].submit) {
        Some(pair) => Err(BaselineError::OutOfOrder { id: pair[1].id }),
        None => Ok(()),
    }
}

impl FromStr for Baseline {
    type Err = UnknownBaseline;

    fn from_str(name: &str) -> Result<Baseline, UnknownBaseline> {
        let found = Baseline::ALL.into_iter().find(|baseline| baseline.name() == name);
        found.ok_or_else(|| UnknownBaseline { name: name.into() })
    }
}

impl TryFrom<Box<str>> for Baseline {
    type Error = UnknownBaseline;

    fn try_from(name: Box<str>) -> Result<Baseline, UnknownBaseline> {
        name.parse()
    }
}

impl From<Baseline> for &'static str {
    fn from(baseline: Baseline) -> &'static str {
        baseline.name()
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn known() -> String {
    Baseline::ALL.map(Baseline::name).join(", ")
}
