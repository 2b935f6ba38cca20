//! The supervisor as a program of its own, for tests and measurements: `shoal-supervise FOLDER`.

use std::path::Path;
use std::process::ExitCode;

use shoal_daemon::cell;
use shoal_daemon::executor::process::supervisor::{self, carriage};

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(word) if word == cell::CONFINE => cell::main(),
        Some(word) if word == carriage::WORD => carriage::inside::main(),
        Some(folder) => supervisor::main(Path::new(&folder)),
        None => {
            eprintln!("usage: shoal-supervise FOLDER");
            ExitCode::from(2)
        }
    }
}
