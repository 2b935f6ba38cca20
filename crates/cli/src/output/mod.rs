//! How results are shown: as a table for people or as JSON for programs.

pub mod chart;
mod json;
mod table;

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

pub use table::Table;

use crate::error::Error;

/// How results are shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
}

impl Options {
    /// Whether results are for programs.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints results to stdout.
    pub fn print<T: Display>(self, data: &impl Serialize, table: impl FnOnce() -> T) -> Result<(), Error> {
        let text = if self.json { json::render(data)? } else { table().to_string() };
        let mut stdout = io::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => Ok(done?),
        }
    }
}
