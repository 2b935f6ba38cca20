//! What a reproduction leaves behind: `results.json`, `report.html`, each figure as SVG and PNG in `plots`, and
//! `timing.json` with all that depends on machine and hour.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::page::page;
use super::{Finding, Report, Timing};
use crate::report::picture::{self, Picture};

/// Writes all files of a reproduction into a folder.
pub fn write(folder: &Path, reports: &[Report], elapsed_s: f64) -> io::Result<()> {
    let findings: Vec<&Finding> = reports.iter().flat_map(|report| &report.findings).collect();
    write_json(&folder.join("results.json"), &findings)?;
    let figures: Vec<&Picture> = reports.iter().flat_map(|report| &report.figures).collect();
    if !figures.is_empty() {
        picture::write_all(folder, figures)?;
    }
    std::fs::write(folder.join("report.html"), page(reports))?;
    let runs = reports.iter().flat_map(|report| &report.timing).collect();
    write_json(&folder.join("timing.json"), &Times { elapsed_s, runs })
}

#[derive(Serialize)]
struct Times<'a> {
    elapsed_s: f64,
    runs: Vec<&'a Timing>,
}

fn write_json(path: &Path, data: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(data)?;
    text.push('\n');
    std::fs::write(path, text)
}
