//! The program `shoal`: reads the command line, has the work done, and speaks to the user.
//!
//! Data goes to stdout, everything else to stderr. It ends with 0 when all is well, 2 when what it was given makes no
//! sense, and 1 when something else went wrong.

mod commands;
mod context;
mod error;
mod files;
mod grid;
mod job;
mod later;
mod output;
mod progress;
mod show;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use shoal_daemon::cell;
use shoal_daemon::executor::process::supervisor::carriage;

/// A job scheduler with no head node, and the simulator that runs the same code.
#[derive(Debug, Parser)]
#[command(name = "shoal", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
    #[command(flatten)]
    context: context::Context,
}

fn main() -> ExitCode {
    // Often once for every task that is isolated: nothing else is read before.
    match std::env::args_os().nth(1) {
        Some(word) if word == cell::CONFINE => return cell::main(),
        Some(word) if word == carriage::WORD => return carriage::inside::main(),
        _ => {}
    }
    // A node in the background and its supervisor are started through a link that says nothing of the program.
    let _ = nix::sys::prctl::set_name(c"shoal");
    let Arguments { command, context } = Arguments::parse();
    match command.run(&context) {
        Ok(code) => code,
        Err(error) => error.tell(),
    }
}

/// The whole command tree, for completions and manual pages.
fn tree() -> clap::Command {
    Arguments::command()
}
