//! Which trace is run in place of a scenario's workload, and how it is read.

use std::path::PathBuf;

use shoal_simulator::scenario::Overrides;
use shoal_simulator::workload::Length;

/// What `shoal sim run`, `compare` and `sweep` are told of a trace.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Reading {
    /// Run this workload trace instead of the scenario's workload
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// How long a job of the trace takes: its `run` time, planned with what was requested, or all of what was `requested`;
    /// as the scenario says, else requested
    #[arg(long, value_name = "LENGTH", requires = "trace")]
    pub length: Option<JobLength>,
    /// Pass over lines of the trace that cannot be read, and tell how many
    #[arg(long, requires = "trace")]
    pub drop_bad_lines: bool,
}

/// Which length of the trace a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum JobLength {
    Run,
    Requested,
}

impl JobLength {
    /// As workloads call it.
    pub fn length(self) -> Length {
        match self {
            JobLength::Run => Length::Run,
            JobLength::Requested => Length::Requested,
        }
    }
}

impl Reading {
    /// What the command line says of the trace in place of the file.
    pub fn over(&self, overrides: Overrides) -> Overrides {
        Overrides {
            trace: self.trace.clone(),
            length: self.length.map(JobLength::length),
            drop_bad_lines: self.drop_bad_lines,
            ..overrides
        }
    }
}
