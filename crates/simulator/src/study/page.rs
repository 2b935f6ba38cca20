//! A study as a page: a table of means with their spread, and a picture of the figures that matter most.

use super::{Column, Figures, Results, Row};
use crate::plot::{Axis, Figure, Layer};
use crate::report::page::{Cell, Page, Table};
use crate::report::picture::Picture;
use crate::reproduce::statistics::{Spread, mean};

/// The figures that get a picture, by their names in files.
const SHOWN: [&str; 4] = ["wait_mean_s", "slowdown_mean", "utilisation", "messages_per_job"];
/// Lines that can still be told apart.
const LINES_MAX: usize = 8;

/// The study as one page of HTML.
pub fn page(results: &Results, pictures: &[Picture]) -> String {
    let mut page = Page::new(format!("{}: {}", results.name, results.keys.join(", ")));
    if let Some(about) = &results.about {
        page = page.lead(about);
    }
    let seeds = match results.seeds.as_slice() {
        [only] => format!("One run each, seed {only}."),
        [first, .., last] => {
            format!(
                "{} runs each, seeds {first} to {last}: means, and how far they reach with 95 % confidence.",
                results.seeds.len()
            )
        }
        [] => String::new(),
    };
    page = page.lead(seeds).section("Figures").table("", &table(results)).section("Pictures");
    for picture in pictures {
        page = page.figure(&picture.caption, &picture.svg());
    }
    page.finish()
}

/// A mean and how far it reaches, as people read it.
pub fn mean_and_reach(column: Column, row: &Row) -> Option<String> {
    let values: Vec<f64> = row.runs.iter().filter_map(column.get).collect();
    let mean = mean(&values)?;
    let whole = values.iter().all(|value| *value == mean.trunc());
    let digits = if whole || mean >= 1_000.0 { 0 } else { 2 };
    Some(match Spread::of(&values) {
        Some(Spread { ci95: [_, high], .. }) if high > mean => {
            format!("{mean:.digits$} ± {:.digits$}", high - mean)
        }
        _ => format!("{mean:.digits$}"),
    })
}

fn table(results: &Results) -> Table {
    let head = results.keys.iter().map(String::as_str);
    let head = head.chain(Figures::COLUMNS.iter().map(|column| column.title));
    results.rows.iter().fold(Table::new(head), |table, row| {
        let values = row.values.iter().map(Cell::text);
        let figures = Figures::COLUMNS
            .iter()
            .map(|&column| mean_and_reach(column, row).map_or_else(|| Cell::text("-"), Cell::Number));
        table.row(values.chain(figures))
    })
}

/// A picture of each figure that matters most: lines over the first setting if that is a number, else bars.
pub fn pictures(results: &Results) -> Vec<Picture> {
    let columns = Figures::COLUMNS.into_iter().filter(|column| SHOWN.contains(&column.name));
    columns.filter_map(|column| picture(results, column)).collect()
}

fn picture(results: &Results, column: Column) -> Option<Picture> {
    results.rows.iter().flat_map(|row| &row.runs).find_map(column.get)?;
    let lines = lines(results, column);
    let banded = lines.is_some() && results.seeds.len() > 1;
    let band = if banded { "; the band is from the least to the most" } else { "" };
    let caption = format!("{}, mean over seeds{band}", column.title);
    let figure = lines.unwrap_or_else(|| bars(results, column));
    Some(Picture::figure(&column.name.replace('_', "-"), caption, figure))
}

fn bars(results: &Results, column: Column) -> Figure {
    let names = results.rows.iter().map(|row| row.values.join(", "));
    let heights = results.rows.iter().map(|row| figure_of(column, row).map_or(f64::NAN, |[mean, ..]| mean));
    let points = (0..).map(f64::from).zip(heights).collect();
    Figure::new(column.title, Axis::new(results.keys.join(", ")).names(names), Axis::new(column.title))
        .with(Layer::bars(column.title, points))
}

/// None where the first setting is no number, or has one value only, or the others have too many.
fn lines(results: &Results, column: Column) -> Option<Figure> {
    let at = |row: &Row| row.values[0].parse::<f64>().ok().filter(|value| value.is_finite());
    let places: Option<Vec<f64>> = results.rows.iter().map(at).collect();
    let mut places = places?;
    places.sort_by(f64::total_cmp);
    let (least, most) = (*places.first()?, *places.last()?);
    let mut series: Vec<&[String]> = Vec::new();
    for row in &results.rows {
        if !series.contains(&&row.values[1..]) {
            series.push(&row.values[1..]);
        }
    }
    if least == most || series.len() > LINES_MAX {
        return None;
    }
    let axis = Axis::new(&results.keys[0]);
    let axis = if least > 0.0 && most / least >= 20.0 { axis.log() } else { axis };
    let mut figure = Figure::new(column.title, axis, Axis::new(column.title));
    for one in series {
        let name = if one.is_empty() { column.title.to_owned() } else { one.join(", ") };
        let mut points: Vec<(f64, [f64; 3])> = results
            .rows
            .iter()
            .filter(|row| row.values[1..] == *one)
            .filter_map(|row| Some((at(row)?, figure_of(column, row)?)))
            .collect();
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        if results.seeds.len() > 1 {
            let band = points.iter().map(|&(x, [_, low, high])| (x, low, high));
            figure = figure.with(Layer::band(format!("{name}, least to most"), band));
        }
        figure = figure.with(Layer::line(name, points.iter().map(|(x, [mean, ..])| (*x, *mean)).collect()));
    }
    Some(figure)
}

/// Mean, least and most of a figure.
fn figure_of(column: Column, row: &Row) -> Option<[f64; 3]> {
    let values: Vec<f64> = row.runs.iter().filter_map(column.get).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some([mean(&values)?, least, most])
}
