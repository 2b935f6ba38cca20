//! What a reproduction leaves behind: `results.json`, each figure as SVG and PNG, and `timing.json` with all that
//! depends on machine and hour.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::{Finding, Report, Timing};

/// How many times larger than its SVG a PNG is.
const PNG_SCALE: f32 = 2.0;

/// Writes all files of a reproduction into a folder.
pub fn write(folder: &Path, reports: &[Report], elapsed_s: f64) -> io::Result<()> {
    let findings: Vec<&Finding> = reports.iter().flat_map(|report| &report.findings).collect();
    write_json(&folder.join("results.json"), &findings)?;
    for (name, figure) in reports.iter().flat_map(|report| &report.figures) {
        std::fs::write(folder.join(format!("{name}.svg")), figure.svg())?;
        let png = figure.png(PNG_SCALE).map_err(io::Error::other)?;
        std::fs::write(folder.join(format!("{name}.png")), png)?;
    }
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
