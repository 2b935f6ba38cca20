//! The page of a workload: `report.html`, `description.json` and the pictures.

use std::fs;
use std::io;
use std::path::Path;

use super::facts::percent;
use super::page::{Cell, Page, Table};
use super::picture::{self, Picture};
use crate::plot::{Axis, Figure, Layer, Unit, human};
use crate::workload::{Class, Description, Quantiles, TraceJob, Workload};

const DAY: f64 = 86_400.0;
/// A day that is so many times the usual one hides the others.
const OUTSTANDING: f64 = 12.0;

/// Writes all files of a workload's report into a folder.
pub fn write(folder: &Path, workload: &Workload, description: &Description) -> io::Result<()> {
    let mut json = serde_json::to_string_pretty(description)?;
    json.push('\n');
    fs::write(folder.join("description.json"), json)?;
    let (coming, size) = (coming(description), size(workload, description));
    picture::write_all(folder, coming.iter().chain(&size))?;
    fs::write(folder.join("report.html"), page(description, &coming, &size))
}

fn page(description: &Description, coming: &[Picture], size: &[Picture]) -> String {
    let source = &description.provenance.source;
    let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    let show = |page: Page, pictures: &[Picture]| {
        pictures.iter().fold(page, |page, picture| page.figure(&picture.caption, &picture.svg()))
    };
    let page = Page::new(format!("Workload {name}"))
        .lead(format!(
            "{} jobs over {:.1} days for {} nodes.",
            description.jobs, description.span_days, description.nodes
        ))
        .section("In figures")
        .table("", &Table::of_facts(facts(description)))
        .table("", &quantiles(description))
        .section("When jobs come");
    let page = show(page, coming).section("What they ask for");
    let mut page = show(page, size).section("Cleaning").table("", &cleaning(description));
    if !description.provenance.comments.is_empty() {
        page = page.section("Header").listing(description.provenance.comments.join("\n"));
    }
    page.finish()
}

fn coming(description: &Description) -> Vec<Picture> {
    let shape = &description.shape;
    let days = |values: &[f64]| {
        let mut points: Vec<_> =
            (0..).zip(values).map(|(day, &value)| (f64::from(day) * DAY, value)).collect();
        if let Some(&(_, last)) = points.last() {
            points.push((values.len() as f64 * DAY, last));
        }
        points
    };
    let time = || Axis::new("time since the start").unit(Unit::Time);
    let by_day: Vec<f64> = shape.jobs_by_day.iter().map(|&jobs| jobs as f64).collect();
    let by_hour =
        (0..).zip(&shape.jobs_by_hour).map(|(hour, &jobs)| (f64::from(hour), jobs as f64)).collect();
    let hours = match shape.hours_of_the_clock {
        true => "By the clock of the machine's place, as the header tells it.",
        false => "Hours of days that begin with the workload: its header does not tell the time of day.",
    };
    let arrivals = Figure::new("Jobs a day", time(), Axis::new("jobs submitted"));
    let hour = Figure::new("Jobs by hour of the day", Axis::new("hour"), Axis::new("jobs submitted"));
    let requested = share_axis(&description.utilisation_by_day);
    let utilisation = Figure::new("Requested utilisation", time(), requested)
        .with(Layer::step("requested of each day", days(&description.utilisation_by_day)))
        .with(Layer::rule("all nodes", 1.0));
    vec![
        Picture::figure("jobs-by-day", "", arrivals.with(Layer::step("", days(&by_day)))),
        Picture::figure("jobs-by-hour", hours, hour.with(Layer::bars("", by_hour))),
        Picture::figure(
            "requested-utilisation",
            "Nodes times requested time of the jobs submitted on a day, over what all nodes could do in it.",
            utilisation,
        ),
    ]
}

fn size(workload: &Workload, description: &Description) -> Vec<Picture> {
    let shape = &description.shape;
    let jobs = || Axis::new("jobs");
    let nodes = shape.width.iter().map(|class| match (class.from, class.below.saturating_sub(1)) {
        (from, last) if from == last => from.to_string(),
        (from, last) => format!("{from}–{last}"),
    });
    let widths =
        (0..).zip(&shape.width).map(|(place, class)| (f64::from(place), class.jobs as f64)).collect();
    let widths =
        Figure::new("Widths", Axis::new("nodes wanted").names(nodes), jobs()).with(Layer::bars("", widths));
    let time = |label: &str| Axis::new(label).unit(Unit::Time).log();
    let durations = Figure::new("Durations", time("duration"), jobs())
        .with(Layer::bars("requested", bars(&shape.requested_secs)))
        .with(Layer::bars("run", bars(&shape.run_secs)));
    let guesses = &shape.run_of_requested;
    let names = (0..guesses.len()).map(|step| match step {
        step if step + 1 == guesses.len() => "more".to_owned(),
        // Every other name, so that they fit.
        step if step % 2 == 0 => format!("{} %", step * 5),
        _ => String::new(),
    });
    let accuracy =
        Figure::new("Accuracy of estimates", Axis::new("run time over requested time").names(names), jobs());
    let steps = (0..).zip(guesses).map(|(step, &jobs)| (f64::from(step), jobs as f64)).collect();
    let seconds = |job: &TraceJob| (job.requested.as_secs_f64().max(1.0), job.run.as_secs_f64().max(1.0));
    let points: Vec<(f64, f64)> = workload.jobs.iter().map(seconds).collect();
    let most = points.iter().map(|&(requested, run)| requested.min(run)).fold(1.0, f64::max);
    let scatter = Figure::new("Run time by requested time", time("requested time"), time("run time"))
        .with(Layer::points("jobs", points))
        .with(Layer::line("as requested", vec![(1.0, 1.0), (most, most)]));
    vec![
        Picture::figure("widths", "", widths),
        Picture::figure("durations", "A bar holds about a doubling.", durations),
        Picture::figure(
            "accuracy",
            "Steps of 5 %, named by their lower end; \"more\" ran longer than requested.",
            accuracy.with(Layer::bars("", steps)),
        ),
        Picture::figure("run-by-requested", "Less than a second counts as a second.", scatter),
    ]
}

/// An axis for shares of days: logarithmic where a few days stand out so far that the others could not be seen.
fn share_axis(days: &[f64]) -> Axis {
    let axis = Axis::new("share of the nodes").unit(Unit::Share);
    let Quantiles { p50, max, .. } = Quantiles::of(days.iter().copied());
    if p50 > 0.0 && max > OUTSTANDING * p50 { axis.log() } else { axis }
}

/// A bar in the middle of each class, as a logarithm sees it; what is less than one stands below one.
fn bars(classes: &[Class]) -> Vec<(f64, f64)> {
    let middle = |class: &Class| match (class.from, class.below) {
        (0, _) => 0.5,
        (from, u64::MAX) => from as f64 * std::f64::consts::SQRT_2,
        (from, below) => (from as f64 * below as f64).sqrt(),
    };
    classes.iter().map(|class| (middle(class), class.jobs as f64)).collect()
}

fn facts(description: &Description) -> Vec<(&'static str, String)> {
    vec![
        ("source", description.provenance.source.clone()),
        ("requested utilisation", description.utilisation.map_or("unknown".to_owned(), percent)),
        ("busiest day", percent(description.utilisation_day_max)),
        ("days above 60 %", percent(description.days_above_60_percent)),
        ("days above 100 %", percent(description.days_above_100_percent)),
        ("jobs above 110 nodes", percent(description.wider_than_110)),
        ("jobs above 400 nodes", percent(description.wider_than_400)),
    ]
}

fn quantiles(description: &Description) -> Table {
    let head = Table::new(["", "mean", "least", "25 %", "median", "75 %", "90 %", "99 %", "most"]);
    let rows = [
        ("nodes", &description.width, Unit::Plain),
        ("requested time", &description.length_secs, Unit::Time),
        ("run time", &description.run_secs, Unit::Time),
    ];
    rows.into_iter().fold(head, |table, (title, figures, unit)| {
        let Quantiles { mean, min, p25, p50, p75, p90, p99, max } = *figures;
        let figures = [mean, min, p25, p50, p75, p90, p99, max];
        let figures = figures.map(|figure| Cell::number(human(figure, unit)));
        table.row([Cell::text(title)].into_iter().chain(figures))
    })
}

fn cleaning(description: &Description) -> Table {
    let cleaning = &description.cleaning;
    let dropped = cleaning.dropped_by_rule().map(|(rule, count)| (format!("dropped: {rule}"), count));
    let odd = cleaning.oddities().map(|(oddity, count)| (format!("kept: {oddity}"), count));
    let head =
        Table::new(["lines", "count"]).row([Cell::text("read"), Cell::number(cleaning.records.to_string())]);
    let met = dropped.into_iter().chain(odd).filter(|(_, count)| *count > 0);
    met.fold(head, |table, (what, count)| table.row([Cell::text(what), Cell::number(count.to_string())]))
}
