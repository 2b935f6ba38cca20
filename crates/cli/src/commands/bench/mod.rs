//! `shoal bench`: how fast this program is.

mod asap;
mod cyclon;

use crate::error::Error;
use crate::output::Options;

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Simulate months of push or a day of polls on the grid of DGS_ASAP
    Asap(asap::Arguments),
    /// Simulate a gossip overlay through whole nodes, beside the same work as a bare loop
    Cyclon(cyclon::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self, output: Options) -> Result<(), Error> {
        match self {
            Command::Asap(arguments) => asap::run(arguments, output),
            Command::Cyclon(arguments) => cyclon::run(&arguments, output),
        }
    }
}
