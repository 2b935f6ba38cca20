//! `shoal supervise`: the process beside a node that runs its tasks.

use std::path::PathBuf;
use std::process::ExitCode;

use shoal_daemon::executor::process::supervisor;

/// What to supervise.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The folder of the node
    folder: PathBuf,
}

/// Supervises until there is nothing to do.
pub fn run(arguments: &Arguments) -> ExitCode {
    supervisor::main(&arguments.folder)
}
