//! What a study leaves behind: `results.csv` with a line per run, `summary.json` with a mean and a spread per variant,
//! `report.html` and `plots/` to look at, and `timing.json`, the only one that differs from run to run.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Figures, Results, Row, page};
use crate::report::picture;
use crate::reproduce::statistics::{Spread, mean};

/// Writes all files of a study into a folder.
pub fn write(folder: &Path, results: &Results, elapsed_s: f64) -> io::Result<()> {
    let mut csv = io::BufWriter::new(fs::File::create(folder.join("results.csv"))?);
    lines(&mut csv, results)?;
    csv.flush()?;
    put_json(&folder.join("summary.json"), &summary(results))?;
    put_json(&folder.join("timing.json"), &json!({ "elapsed_s": elapsed_s }))?;
    let pictures = page::pictures(results);
    picture::write_all(folder, pictures.iter())?;
    fs::write(folder.join("report.html"), page::page(results, &pictures))
}

/// The variants with the mean and the spread of each figure.
pub fn summary(results: &Results) -> Value {
    let rows: Vec<Value> = results.rows.iter().map(|row| variant(results, row)).collect();
    json!({ "scenario": results.name, "seeds": results.seeds, "variants": rows })
}

fn variant(results: &Results, row: &Row) -> Value {
    let keys = results.keys.iter().zip(&row.values);
    let set: Map<String, Value> = keys.map(|(key, value)| (key.clone(), json!(value))).collect();
    let mut figures = Map::new();
    for column in Figures::COLUMNS {
        let values: Vec<f64> = row.runs.iter().filter_map(column.get).collect();
        figures
            .insert(column.name.to_owned(), json!({ "mean": mean(&values), "spread": Spread::of(&values) }));
    }
    json!({ "set": set, "figures": figures })
}

fn put_json(file: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    fs::write(file, text)
}

fn lines(to: &mut impl Write, results: &Results) -> io::Result<()> {
    let head = results.keys.iter().map(|key| quoted(key));
    let columns = Figures::COLUMNS.iter().map(|column| column.name.to_owned());
    let head: Vec<String> = head.chain(["seed".to_owned()]).chain(columns).collect();
    writeln!(to, "{}", head.join(","))?;
    for row in &results.rows {
        for (run, seed) in row.runs.iter().zip(&results.seeds) {
            let values = row.values.iter().map(|value| quoted(value));
            let figures = Figures::COLUMNS.iter().map(|column| match (column.get)(run) {
                Some(figure) => figure.to_string(),
                None => String::new(),
            });
            let line: Vec<String> = values.chain([seed.to_string()]).chain(figures).collect();
            writeln!(to, "{}", line.join(","))?;
        }
    }
    Ok(())
}

/// A cell of a CSV file.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
