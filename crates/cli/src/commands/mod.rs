//! The commands, in the shape of the command tree: a folder for each that has commands of its own.

mod bench;
mod sim;

use crate::error::Error;
use crate::output::Options;

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Simulate a grid
    #[command(subcommand)]
    Sim(sim::Command),
    /// Measure how fast this program is
    #[command(subcommand)]
    Bench(bench::Command),
}

impl Command {
    /// Does it.
    pub fn run(self, output: Options) -> Result<(), Error> {
        match self {
            Command::Sim(command) => command.run(output),
            Command::Bench(command) => command.run(output),
        }
    }
}
