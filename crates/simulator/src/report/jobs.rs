//! `jobs.csv`: a line per job in the columns of Batsim's output, as evalys reads them.
//!
//! Times are seconds from the workload's zero. What a job never reached is left empty. Resources are nodes by their
//! numbers, as a set of intervals: `1-3 7`. Energy is not simulated, and its column empty.

use std::io::{self, Write};

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::Exit;

use crate::measures::{Outcome, Record, State};

const COLUMNS: [&str; 17] = [
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
];

/// Writes the jobs of a run.
pub fn write(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    let workload = quoted(outcome.workload.rsplit(['/', '\\']).next().unwrap_or_default());
    // Jobs may share a number in their trace; their place in the run is theirs alone.
    for (place, job) in (1..).zip(&outcome.jobs) {
        writeln!(out, "{}", line(place, &workload, job))?;
    }
    Ok(())
}

fn line(place: usize, workload: &str, job: &Record) -> String {
    let span = |span: Option<Span>| span.map_or(String::new(), seconds);
    let time = |time: Option<Time>| span(time.map(|time| time.since(Time::ZERO)));
    let started = job.start.is_some();
    let metadata = format!(
        "trace_id={} job={} placements={} promised={}",
        job.number,
        job.job,
        job.placements,
        time(job.promised)
    );
    let fields: [String; 17] = [
        place.to_string(),
        workload.to_owned(),
        "sleep".to_owned(),
        time(Some(job.submit)),
        job.width.to_string(),
        seconds(job.requested),
        u8::from(job.state == State::Finished).to_string(),
        final_state(&job.state).to_owned(),
        time(job.start),
        span(job.execution()),
        time(job.finish),
        span(job.wait()),
        span(job.turnaround()),
        stretch(job),
        if started { intervals(&job.nodes) } else { String::new() },
        String::new(),
        metadata,
    ];
    fields.join(",")
}

/// Batsim's word for how far a job came.
fn final_state(state: &State) -> &'static str {
    match state {
        State::Finished => "COMPLETED_SUCCESSFULLY",
        State::Failed(_, Exit::Overran) => "COMPLETED_WALLTIME_REACHED",
        State::Failed(..) | State::Lost => "COMPLETED_FAILED",
        State::Cancelled => "COMPLETED_KILLED",
        State::Refused(_) | State::Expired | State::NoPlace | State::Unmet => "REJECTED",
        State::Running => "RUNNING",
        State::Waiting => "SUBMITTED",
        State::Unaccepted => "NOT_SUBMITTED",
    }
}

/// Turnaround over execution; of a job that took no time there is none.
fn stretch(job: &Record) -> String {
    match (job.turnaround(), job.execution()) {
        (Some(turnaround), Some(execution)) if execution > Span::ZERO => {
            let millionths =
                u128::from(turnaround.as_micros()) * 1_000_000 / u128::from(execution.as_micros());
            decimal(millionths)
        }
        _ => String::new(),
    }
}

/// Nodes as a set of intervals, in order.
fn intervals(nodes: &[NodeId]) -> String {
    let mut numbers: Vec<u64> = nodes.iter().map(|node| node.0).collect();
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(" ")
}

fn seconds(span: Span) -> String {
    decimal(span.as_micros().into())
}

fn decimal(millionths: u128) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::JobId;

    use super::*;

    fn job() -> Record {
        Record {
            job: JobId::from_number(7),
            number: 12,
            width: 4,
            requested: Span::from_secs(60),
            submit: Time::from_secs(10),
            accepted: Some(Time::from_secs(10)),
            promised: Some(Time::from_secs(20)),
            start: Some(Time::from_millis(20_002)),
            finish: Some(Time::from_millis(50_002)),
            nodes: [4, 1, 9, 2].map(NodeId).to_vec(),
            placements: 1,
            skew: Span::ZERO,
            why: None,
            state: State::Finished,
        }
    }

    #[test]
    fn a_finished_job_fills_batsims_columns() {
        let metadata = format!("trace_id=12 job={} placements=1 promised=20.000000", JobId::from_number(7));
        assert_eq!(
            line(1, "w", &job()),
            format!(
                "1,w,sleep,10.000000,4,60.000000,1,COMPLETED_SUCCESSFULLY,20.002000,30.000000,50.002000,\
                 10.002000,40.002000,1.333400,1-2 4 9,,{metadata}"
            )
        );
        assert_eq!(line(1, "w", &job()).split(',').count(), COLUMNS.len());
    }

    #[test]
    fn what_a_job_never_reached_is_empty() {
        let waiting = Record { start: None, finish: None, promised: None, state: State::Waiting, ..job() };
        let line = line(2, "w", &waiting);
        assert!(
            line.starts_with("2,w,sleep,10.000000,4,60.000000,0,SUBMITTED,,,,,,,,,trace_id=12"),
            "{line}"
        );
        assert_eq!(line.split(',').count(), COLUMNS.len());
    }

    #[test]
    fn names_with_commas_stay_one_field() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("plain.swf"), "plain.swf");
    }
}
