//! `shoal sim`: the simulator.

mod compare;
mod place;
mod reading;
mod reproduce;
mod run;
mod storm;
mod study;
mod sweep;
mod trace;

use crate::error::Error;
use crate::output::Options;

/// What the simulator can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run a scenario and write what came of it
    Run(run::Arguments),
    /// Run a scenario under several schedulers
    Compare(compare::Arguments),
    /// Run a scenario with several values of its settings
    Sweep(sweep::Arguments),
    /// Run the published results of a paper again, and set ours beside them
    Reproduce(reproduce::Arguments),
    /// Let many small grids weather storms, and check every promise
    Storm(storm::Arguments),
    /// Describe a workload trace
    Trace(trace::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self, output: Options) -> Result<(), Error> {
        match self {
            Command::Run(arguments) => run::run(arguments, output),
            Command::Compare(arguments) => compare::run(arguments, output),
            Command::Sweep(arguments) => sweep::run(arguments, output),
            Command::Reproduce(arguments) => reproduce::run(arguments, output),
            Command::Storm(arguments) => storm::run(&arguments, output),
            Command::Trace(arguments) => trace::run(&arguments, output),
        }
    }
}
