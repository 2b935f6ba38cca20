//! The commands, in the shape of the command tree: a folder for each that has commands of its own.

mod bench;
mod doctor;
mod sim;
mod supervise;

use std::process::ExitCode;

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
    /// Look a node's data folder and its machine over, and say what to do
    Doctor(doctor::Arguments),
    /// Run the tasks of a node; a node starts this by itself
    #[command(hide = true)]
    Supervise(supervise::Arguments),
}

impl Command {
    /// Does it, and says what the program ends with.
    pub fn run(self, output: Options) -> Result<ExitCode, Error> {
        match self {
            Command::Sim(command) => command.run(output)?,
            Command::Bench(command) => command.run(output)?,
            Command::Doctor(arguments) => return doctor::run(&arguments, output),
            Command::Supervise(arguments) => return Ok(supervise::run(&arguments)),
        }
        Ok(ExitCode::SUCCESS)
    }
}
