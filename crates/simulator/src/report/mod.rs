//! What a run leaves behind: a folder of files, written whole or not at all.
//!
//! - `jobs.csv`: a line per job in Batsim's columns, as evalys reads them ([`jobs`]);
//! - `summary.json`: the run in figures ([`crate::measures::Summary`]);
//! - `scenario.toml`: what was run, with all that it builds on; to run it again.
//!
//! Pages and plots join them here, each in a file of its own and added to [`write()`]. The same seed gives the same
//! bytes: what depends on the machine or the hour, such as how long a run took, has no place in these files.

mod folder;
pub mod jobs;

use std::fs;
use std::io;
use std::path::Path;

pub use folder::{Folder, FolderError};

use crate::measures::Outcome;
use crate::scenario::Scenario;

/// Writes all files of a run into a folder.
pub fn write(folder: &Path, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    let mut csv = io::BufWriter::new(fs::File::create(folder.join("jobs.csv"))?);
    jobs::write(&mut csv, outcome)?;
    io::Write::flush(&mut csv)?;
    let mut summary = serde_json::to_string_pretty(&outcome.summary)?;
    summary.push('\n');
    fs::write(folder.join("summary.json"), summary)?;
    fs::write(folder.join("scenario.toml"), &scenario.text)
}
