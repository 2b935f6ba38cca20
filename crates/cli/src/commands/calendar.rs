//! `shoal calendar`: what is reserved on a node, as a small picture.

use shoal_api::{CalendarView, NodeView};
use shoal_model::Span;
use shoal_model::units::{SpanText, Thousandths};

use crate::context::Context;
use crate::error::Error;
use crate::output::Table;
use crate::output::chart::{Spark, terminal_width};
use crate::show::{Clock, span};

/// Reservations that are listed.
const LISTED: usize = 20;

/// Which part of which calendar.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A node, by its name or by as much of its id as tells it from the others; else the one that is asked
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// From now on, for so long
    #[arg(long, value_name = "SPAN", default_value = "6h")]
    span: SpanText,
}

/// Shows a calendar.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    if arguments.span.0 == Span::ZERO {
        return Err(Error::user("`--span 0s`: there is nothing to see"));
    }
    let client = context.client()?;
    let node = match &arguments.node {
        Some(said) => Some(which(said, &client.nodes()?.nodes)?),
        None => None,
    };
    let calendar = client.calendar(node.as_deref(), arguments.span.0)?;
    context.output.print(&calendar, || picture(&calendar, &Clock::read(), terminal_width()))
}

/// The id of the node that is meant.
fn which(said: &str, nodes: &[NodeView]) -> Result<String, Error> {
    if let Some(node) = nodes.iter().find(|node| node.id == said) {
        return Ok(node.id.clone());
    }
    let meant: Vec<&NodeView> =
        nodes.iter().filter(|node| node.name == said || node.id.starts_with(said)).collect();
    match meant.as_slice() {
        [node] => Ok(node.id.clone()),
        [] => Err(Error::user(format!("no node is called `{said}`, nor has an id that begins so"))
            .hint("`shoal nodes` lists them")),
        several => {
            let ids: Vec<&str> = several.iter().map(|node| node.id.as_str()).collect();
            Err(Error::user(format!("`{said}` may be any of {}", ids.join(", "))))
        }
    }
}

fn picture(calendar: &CalendarView, clock: &Clock, width: usize) -> String {
    let values = taken(calendar, width.saturating_sub(2).max(1));
    let highest = format!(
        "{} of {} cores",
        cores(values.iter().copied().max().unwrap_or(0)),
        cores(calendar.cores_thousandths)
    );
    // The first value is the whole node, so that heights are shares of it.
    let heights = std::iter::once(calendar.cores_thousandths).chain(values).map(|value| value as f64);
    let title = format!(
        "node {}, {} from {} to {}",
        calendar.node,
        span(calendar.until.0.since(calendar.from.0)),
        clock.show(calendar.from.0),
        clock.show(calendar.until.0)
    );
    let spark = Spark { title, values: heights.collect(), highest, width };
    let mut table = Table::texts(["job", "start", "end", "takes", "surely"]);
    for reservation in calendar.reservations.iter().take(LISTED) {
        table.row([
            reservation.job.to_string().chars().take(12).collect(),
            clock.show(reservation.start.0),
            clock.show(reservation.end.0),
            reservation.amount.clone(),
            reservation.surely.clone(),
        ]);
    }
    match calendar.reservations.len().saturating_sub(LISTED) {
        0 if calendar.reservations.is_empty() => format!("{spark}\nnothing is reserved"),
        0 => format!("{spark}\n{table}"),
        more => format!("{spark}\n{table}\nand {more} more"),
    }
}

/// How many thousandths of a core are taken at most in each part of the time.
fn taken(calendar: &CalendarView, places: usize) -> Vec<u64> {
    let whole = calendar.until.0.since(calendar.from.0).as_micros().max(1);
    let at = |place: usize| {
        calendar.from.0 + Span::from_micros((u128::from(whole) * place as u128 / places as u128) as u64)
    };
    (0..places)
        .map(|place| {
            let (from, until) = (at(place), at(place + 1));
            let within = calendar.reservations.iter().filter(|r| r.start.0 < until && r.end.0 > from);
            within
                .map(|reservation| reservation.cores_thousandths)
                .sum::<u64>()
                .min(calendar.cores_thousandths)
        })
        .collect()
}

fn cores(thousandths: u64) -> String {
    Thousandths::new(u32::try_from(thousandths).unwrap_or(u32::MAX)).to_string()
}
