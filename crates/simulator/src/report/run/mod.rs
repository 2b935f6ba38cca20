//! The page of a run.

pub mod gantt;
mod over_time;
mod waits;

use super::facts::facts;
use super::page::{Cell, Page, Table};
use super::picture::Picture;
use crate::measures::{Outcome, Summary};
use crate::scenario::Scenario;

/// The pictures of a run.
pub struct Pictures {
    over_time: Vec<Picture>,
    waits: Vec<Picture>,
    gantt: Picture,
}

impl Pictures {
    /// Draws a run.
    pub fn of(outcome: &Outcome) -> Pictures {
        Pictures {
            over_time: vec![
                over_time::utilisation(&outcome.course),
                over_time::waits(outcome),
                over_time::messages(&outcome.course, outcome.summary.nodes),
            ],
            waits: waits::pictures(&outcome.jobs),
            gantt: gantt::picture(outcome),
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Picture> {
        self.over_time.iter().chain(&self.waits).chain([&self.gantt])
    }
}

/// The page of a run, with its pictures.
pub fn page(scenario: &Scenario, outcome: &Outcome, pictures: &Pictures) -> String {
    let summary = &outcome.summary;
    let show = |page: Page, pictures: &[Picture]| {
        pictures.iter().fold(page, |page, picture| page.figure(&picture.caption, &picture.svg()))
    };
    let page = Page::new(format!("Run of {}", summary.scenario))
        .lead(format!(
            "{} jobs on {} nodes that follow the recipe {}; all chance from seed {}.",
            summary.jobs, summary.nodes, summary.recipe, summary.seed
        ))
        .section("In figures")
        .table("", &Table::of_facts(facts(summary)))
        .section("Over time");
    let page = show(page, &pictures.over_time).section("Who waited");
    let page = show(page, &pictures.waits).section("What ran where");
    show(page, std::slice::from_ref(&pictures.gantt))
        .section("What the nodes said")
        .table("Messages by type, over the whole run and the time before the first job.", &messages(summary))
        .section("Files")
        .table("", &Table::of_facts(FILES))
        .section("Scenario")
        .text("To run it again: shoal sim run scenario.toml. The same seed gives the same bytes.")
        .listing(&scenario.text)
        .finish()
}

/// What else lies in the folder.
const FILES: [(&str, &str); 4] = [
    ("jobs.csv", "A line per job in Batsim's columns, as evalys reads them."),
    ("summary.json", "The run in figures, for programs."),
    ("scenario.toml", "What was run, with all that it builds on."),
    ("plots/", "Each picture of this page as SVG and as PNG."),
];

fn messages(summary: &Summary) -> Table {
    let mut kinds: Vec<_> = summary.messages.by_type.iter().collect();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.messages));
    let total = summary.messages.messages.max(1) as f64;
    let head = Table::new(["type", "messages", "share", "bytes", "bytes each"]);
    kinds.into_iter().fold(head, |table, (name, kind)| {
        table.row([
            Cell::text(*name),
            Cell::number(kind.messages.to_string()),
            Cell::number(super::facts::percent(kind.messages as f64 / total)),
            Cell::number(kind.bytes.to_string()),
            Cell::number(format!("{:.0}", kind.bytes as f64 / kind.messages.max(1) as f64)),
        ])
    })
}
