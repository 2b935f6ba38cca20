//! Jobs and times as people read them.

mod time;

use shoal_api::{JobStatus, JobUsage, State};
use shoal_model::units::{About, SpanText};
use shoal_model::{Size, Span};

pub use time::Clock;

use crate::output::Table;

/// Digits of an id that are shown: enough to be unambiguous among millions.
const ID_SHOWN: usize = 12;

/// The beginning of an id.
pub fn short(job: &JobStatus) -> String {
    job.id.to_string().chars().take(ID_SHOWN).collect()
}

/// A span without what nobody reads: at most two units, and none below a second where there are minutes.
pub fn span(span: Span) -> String {
    let micros = span.as_micros();
    let unit = match micros {
        0..1_000 => 1,
        1_000..1_000_000 => 1_000,
        1_000_000..10_000_000 => 10_000,
        10_000_000..3_600_000_000 => 1_000_000,
        3_600_000_000..86_400_000_000 => 60_000_000,
        _ => 3_600_000_000,
    };
    SpanText(Span::from_micros(micros / unit * unit)).to_string()
}

/// The promise that a submission got, in one line.
pub fn promise(job: &JobStatus, clock: &Clock) -> String {
    match (&job.planned, job.state) {
        (Some(planned), State::Planned | State::Running) => {
            let start = planned.start.0;
            let when = match start.since(clock.now()) {
                wait if wait < Span::from_secs(1) => "now".to_owned(),
                wait => format!("at {} (in {})", clock.show(start), span(wait)),
            };
            format!("starts {when} on {}", nodes(&planned.nodes))
        }
        _ => match &job.reason {
            Some(reason) => format!("{}: {reason}", job.state),
            None => job.state.to_string(),
        },
    }
}

/// Nodes in a line; the first of them, if they are many.
pub fn nodes(nodes: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = nodes.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match nodes.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Jobs in a table.
pub fn jobs(jobs: &[JobStatus], clock: &Clock) -> Table {
    let mut table = Table::texts(["job", "name", "state", "start", "time", "nodes", "what"]);
    for job in jobs {
        let start = job.started.or(job.planned.as_ref().map(|planned| planned.start));
        let time = match (job.started, job.ended) {
            (Some(started), Some(ended)) => span(ended.0.since(started.0)),
            (Some(started), None) if job.state == State::Running => span(clock.now().since(started.0)),
            _ => String::new(),
        };
        let planned = job.planned.as_ref().filter(|_| job.state != State::Waiting);
        table.row([
            short(job),
            name(job),
            job.state.to_string(),
            start.filter(|_| planned.is_some()).map(|start| clock.show(start.0)).unwrap_or_default(),
            time,
            planned.map(|planned| nodes(&planned.nodes)).unwrap_or_default(),
            match (&job.reason, job.state) {
                (
                    Some(reason),
                    State::Waiting
                    | State::Failed
                    | State::Lost
                    | State::NoPlace
                    | State::Unmet
                    | State::HandedOver,
                ) => reason.clone(),
                _ => job.command.clone(),
            },
        ]);
    }
    table
}

/// Says that a list lacks the jobs of nodes that did not answer.
pub fn silent(count: u32) {
    match count {
        0 => {}
        1 => eprintln!("one node did not answer in time: its jobs are not listed"),
        _ => eprintln!("{count} nodes did not answer in time: their jobs are not listed"),
    }
}

/// What a job is called; one of an array with its index.
fn name(job: &JobStatus) -> String {
    let name = job.name.clone().unwrap_or_default();
    match job.index {
        None => name,
        Some(index) => format!("{name}[{index}]"),
    }
}

/// What a job took, in one line.
fn usage(usage: &JobUsage, nodes: u32) -> String {
    let (user, system) = (Span::from_millis(usage.user_ms), Span::from_millis(usage.system_ms));
    let all = span(user + system);
    let part =
        if usage.tasks < nodes { format!("{} of {nodes} tasks: ", usage.tasks) } else { String::new() };
    let busy = usage.busy.map(|percent| format!(", {percent} % of its cores")).unwrap_or_default();
    let memory = match usage.memory_max {
        None => "little memory".to_owned(),
        Some(bytes) => format!("{} of memory at most", About::Up(Size::from_bytes(bytes))),
    };
    format!("{part}{all} of processor time ({} of it the system){busy}; {memory}", span(system))
}

/// One job, line by line.
pub fn job(job: &JobStatus, clock: &Clock) -> Table {
    let mut table = Table::plain();
    let mut line = |title: &str, what: Option<String>| {
        if let Some(what) = what.filter(|what| !what.is_empty()) {
            table.row([title.to_owned(), what]);
        }
    };
    let at = |time: Option<shoal_model::units::TimeText>| time.map(|time| clock.show(time.0));
    line("job", Some(job.id.to_string()));
    line("name", job.name.clone());
    line("one of", job.array.zip(job.index).map(|(array, index)| format!("array {array}, index {index}")));
    line("state", Some(job.state.to_string()));
    line("because", job.reason.clone());
    let counts = job.counts.iter().map(|(state, count)| format!("{count} {state}"));
    line("its jobs", Some(counts.collect::<Vec<_>>().join(", ")));
    line("runs", Some(job.command.clone()));
    line("needs", Some(format!("{} node(s) with {}, for {} at most", job.nodes, job.resources, job.limit)));
    line(
        "accepted",
        at(job.accepted).map(|at| format!("{at} by {} (durability {})", job.owner, job.durability)),
    );
    let planned = job.planned.as_ref();
    line(
        "planned",
        planned.map(|planned| format!("{} on {}", clock.show(planned.start.0), nodes(&planned.nodes))),
    );
    let promised = job.promised.filter(|promised| Some(*promised) != planned.map(|planned| planned.start));
    line("promised first", at(promised));
    line(
        "placement",
        planned.filter(|planned| planned.epoch > 1).map(|planned| format!("number {}", planned.epoch)),
    );
    line("started", at(job.started));
    line("start skew", job.skew.map(|skew| span(skew.0)));
    line("ended", at(job.ended));
    let ran = job.started.zip(job.ended).map(|(started, ended)| span(ended.0.since(started.0)));
    line("ran for", ran);
    line("took", job.usage.as_ref().map(|taken| usage(taken, job.nodes)));
    if let Some(outputs) = &job.outputs {
        let bytes = About::Up(Size::from_bytes(outputs.bytes));
        line("files", Some(format!("{} with {bytes}: `shoal get {}`", outputs.files, short(job))));
        line("left out", Some(outputs.left_out).filter(|count| *count > 0).map(|count| count.to_string()));
        line("matched nothing", Some(outputs.unmatched.join(", ")));
    }
    for task in &job.tasks {
        line(&format!("rank {}", task.rank), Some(format!("{} on {}", task.exit, task.node)));
    }
    table
}
