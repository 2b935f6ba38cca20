//! What a run leaves behind: a folder of files, written whole or not at all.
//!
//! - `jobs.csv`: a line per job in Batsim's columns, as evalys reads them ([`jobs`]);
//! - `summary.json`: the run in figures ([`crate::measures::Summary`]);
//! - `scenario.toml`: what was run, with all that it builds on; to run it again;
//! - `report.html`: all of it to look at, in one page that needs nothing else ([`page`]);
//! - `plots/`: the pictures of that page, as SVG and as PNG ([`picture`]).
//!
//! The same seed gives the same bytes: what depends on the machine or the hour, such as how long a run took, has no
//! place in these files.

mod facts;
mod folder;
pub mod jobs;
pub mod page;
pub mod picture;
pub(crate) mod run;
mod trace;

use std::fs;
use std::io;
use std::path::Path;

pub use facts::{facts, percent, span};
pub use folder::{Folder, FolderError};
pub use trace::write as write_trace;

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
    fs::write(folder.join("scenario.toml"), &scenario.text)?;
    let pictures = run::Pictures::of(outcome);
    picture::write_all(folder, pictures.all())?;
    fs::write(folder.join("report.html"), run::page(scenario, outcome, &pictures))
}
