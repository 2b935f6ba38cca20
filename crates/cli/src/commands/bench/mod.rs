//! `shoal bench`: how fast this program is.

mod asap;
mod cyclon;
mod files;
mod grid;
mod kills;

use crate::error::Error;
use crate::output::Options;

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Simulate months of push or a day of polls on the grid of DGS_ASAP
    Asap(asap::Arguments),
    /// Simulate a gossip overlay through whole nodes, beside the same work as a bare loop
    Cyclon(cyclon::Arguments),
    /// Move files between real nodes: how fast, what a death in the middle costs, many small ones, one for many jobs
    Files(files::Arguments),
    /// Run real nodes on this machine: jobs a second, how soon jobs run, what idle nodes and long queues take
    Grid(grid::Arguments),
    /// Kill real nodes at random while jobs run, and see that every job ends exactly once
    Kills(kills::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self, output: Options) -> Result<(), Error> {
        match self {
            Command::Asap(arguments) => asap::run(arguments, output),
            Command::Cyclon(arguments) => cyclon::run(&arguments, output),
            Command::Files(arguments) => files::run(&arguments, output),
            Command::Grid(arguments) => grid::run(arguments, output),
            Command::Kills(arguments) => kills::run(&arguments, output),
        }
    }
}
