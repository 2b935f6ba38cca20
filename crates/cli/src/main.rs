//! The program `shoal`: reads the command line, has the work done, and speaks to the user.
//!
//! Data goes to stdout, everything else to stderr. It ends with 0 when all is well, 2 when what it was given makes no
//! sense, and 1 when something else went wrong.

mod commands;
mod error;
mod home;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

/// A job scheduler with no head node, and the simulator that runs the same code.
#[derive(Debug, Parser)]
#[command(name = "shoal", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
    #[command(flatten)]
    output: output::Options,
}

fn main() -> ExitCode {
    let Arguments { command, output } = Arguments::parse();
    match command.run(output) {
        Ok(code) => code,
        Err(error) => error.tell(),
    }
}
