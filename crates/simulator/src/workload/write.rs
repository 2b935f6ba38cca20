//! Writes a workload as SWF or GWF, so that other tools, and we, can read it.
//!
//! What a [`TraceJob`] does not hold (waits, memory used, status …) is written as unknown. The file's own comments
//! are kept; what cleaning and changes made untrue (`MaxJobs`, `MaxRecords`, `MaxProcs`, `MaxNodes`) is said anew. Notes say
//! who drew the jobs and what was changed.

use std::io::{self, Write};

use shoal_model::Span;

use super::{Label, Provenance, Step, TraceJob, Workload};

/// Headers that are ours to say.
const OURS: [&str; 5] = ["Version", "MaxJobs", "MaxRecords", "MaxNodes", "MaxProcs"];

/// Writes the jobs in the Standard Workload Format.
pub fn write_swf(workload: &Workload, mut out: impl Write) -> io::Result<()> {
    let (jobs, nodes) = (workload.jobs.len(), workload.nodes);
    writeln!(out, "; Version: 2.2")?;
    writeln!(out, "; MaxJobs: {jobs}\n; MaxRecords: {jobs}\n; MaxNodes: {nodes}\n; MaxProcs: {nodes}")?;
    for comment in kept_comments(workload) {
        writeln!(out, ";{comment}")?;
    }
    for note in notes(workload) {
        writeln!(out, "; Note: {note}")?;
    }
    for job in &workload.jobs {
        let TraceJob { id, width, .. } = job;
        let [submit, run, requested] = times(job);
        let [user, group, partition] = [job.user, job.group, job.partition].map(number);
        let memory = memory(job);
        writeln!(
            out,
            "{id} {submit} -1 {run} {width} -1 -1 {width} {requested} {memory} -1 {user} {group} -1 -1 {partition} -1 -1"
        )?;
    }
    Ok(())
}

/// Writes the jobs in the Grid Workload Format, 29 columns.
pub fn write_gwf(workload: &Workload, mut out: impl Write) -> io::Result<()> {
    for comment in kept_comments(workload) {
        writeln!(out, "#{comment}")?;
    }
    for note in notes(workload) {
        writeln!(out, "# Note: {note}")?;
    }
    writeln!(out, "# MaxJobs: {}\n# MaxProcs: {}", workload.jobs.len(), workload.nodes)?;
    writeln!(
        out,
        "# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs\tAverageCPUTimeUsed\tUsedMemory\tReqNProcs\tReqTime\t\
         ReqMemory\tStatus\tUserID\tGroupID\tExecutableID\tQueueID\tPartitionID\tOrigSiteID\tLastRunSiteID\t\
         JobStructure\tJobStructureParams\tUsedNetwork\tUsedLocalDiskSpace\tUsedResources\tReqPlatform\tReqNetwork\t\
         ReqLocalDiskSpace\tReqResources\tVOID\tProjectID"
    )?;
    let rest = "\t-1".repeat(10);
    for job in &workload.jobs {
        let TraceJob { id, width, .. } = job;
        let [submit, run, requested] = times(job);
        let [user, group, partition] =
            [job.user, job.group, job.partition].map(|label| workload.names.text(label));
        let memory = memory(job);
        writeln!(
            out,
            "{id}\t{submit}\t-1\t{run}\t{width}\t-1\t-1\t{width}\t{requested}\t{memory}\t-1\t{user}\t{group}\t-1\t-1\
             \t{partition}\t-1\t-1\tUNITARY{rest}"
        )?;
    }
    Ok(())
}

fn kept_comments(workload: &Workload) -> impl Iterator<Item = &str> {
    // A list of GWF columns would be believed by the next reader, also where its columns are no longer ours.
    // Names count in any letters, as they do for readers.
    let is_ours = |name: &str| OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name.trim()));
    let ours = move |comment: &str| {
        comment.contains('\t') || comment.split_once(':').is_some_and(|(name, _)| is_ours(name))
    };
    workload.provenance.comments.iter().map(String::as_str).filter(move |comment| !ours(comment))
}

/// Where the jobs come from, if nobody else says so, and what was done to them.
fn notes(workload: &Workload) -> Vec<String> {
    let Provenance { source, seed, steps, .. } = &workload.provenance;
    let drawn = seed.map(|seed| format!("drawn by {source}, seed {seed}"));
    let step = |step: &Step| format!("{}: {} jobs, then {}", step.what, step.before, step.after);
    drawn.into_iter().chain(steps.iter().map(step)).collect()
}

fn times(job: &TraceJob) -> [Seconds; 3] {
    [Seconds(job.submit.as_micros()), seconds(job.run), seconds(job.requested)]
}

fn seconds(span: Span) -> Seconds {
    Seconds(span.as_micros())
}

fn number(label: Label) -> i64 {
    label.number().map_or(-1, i64::from)
}

fn memory(job: &TraceJob) -> i64 {
    job.memory_kib.map_or(-1, |memory| i64::try_from(memory.get()).unwrap_or(i64::MAX))
}

/// Microseconds shown as seconds, with decimals only where there are any.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 % 1_000_000 {
            0 => write!(f, "{}", self.0 / 1_000_000),
            micros => write!(f, "{}.{micros:06}", self.0 / 1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroU64};

    use proptest::prelude::*;
    use shoal_model::Time;

    use super::*;
    use crate::workload::{Cleaning, Format, Length, Names, Trace};

    fn any_label() -> impl Strategy<Value = Label> {
        prop_oneof![Just(Label::UNKNOWN), (0..9u32).prop_map(Label::new)]
    }

    prop_compose! {
        fn any_job()(
            gap in 0..5_000_000_000u64,
            run in 1_000_000..1_000_000_000_000u64,
            requested in 1_000_000..1_000_000_000_000u64,
            id: i64,
            memory: Option<u32>,
            width in 1..500u32,
            labels in [any_label(), any_label(), any_label()],
        ) -> TraceJob {
            let [user, group, partition] = labels;
            TraceJob {
                submit: Time::from_micros(gap),
                run: Span::from_micros(run),
                requested: Span::from_micros(requested),
                id,
                memory_kib: memory.and_then(|memory| NonZeroU64::new(memory.into())),
                width,
                user,
                group,
                partition,
            }
        }
    }

    fn any_workload() -> impl Strategy<Value = Workload> {
        prop::collection::vec(any_job(), 1..30).prop_map(|mut jobs| {
            // What was drawn as an instant is the gap to the job before; the first is at zero, as after cleaning.
            jobs[0].submit = Time::ZERO;
            for index in 1..jobs.len() {
                jobs[index].submit = jobs[index - 1].submit + jobs[index].submit.since(Time::ZERO);
            }
            let span = jobs[jobs.len() - 1].submit.since(Time::ZERO);
            let comments = [" Computer: made up", " MaxProcs: 3", " maxprocs: 4"].map(str::to_owned).to_vec();
            let provenance = Provenance { comments, ..Provenance::default() };
            let (names, cleaning) = (Names::default(), Cleaning::default());
            Workload { jobs, nodes: 500, span, names, provenance, cleaning, profiles: Vec::new() }
        })
    }

    fn read(format: Format, bytes: &[u8]) -> Workload {
        let trace = Trace { format: Some(format), length: Length::Run, ..Trace::new("t") };
        trace.read_from(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn swf_reads_back_what_was_written(workload in any_workload()) {
            let mut bytes = Vec::new();
            write_swf(&workload, &mut bytes).unwrap();
            let back = read(Format::Swf, &bytes);
            prop_assert_eq!(&back.jobs, &workload.jobs);
            prop_assert_eq!((back.nodes, back.span), (500, workload.span));
            prop_assert_eq!(back.provenance.header("Computer"), Some("made up"));

            let mut again = Vec::new();
            write_swf(&back, &mut again).unwrap();
            prop_assert_eq!(again, bytes, "the second writing is the first");
        }

        #[test]
        fn gwf_reads_back_what_was_written(workload in any_workload()) {
            let mut bytes = Vec::new();
            write_gwf(&workload, &mut bytes).unwrap();
            let back = read(Format::Gwf, &bytes);
            prop_assert_eq!((back.nodes, back.span, back.jobs.len()), (500, workload.span, workload.jobs.len()));
            for (back_job, job) in back.jobs.iter().zip(&workload.jobs) {
                let labels = |job: &TraceJob| [job.user, job.group, job.partition];
                let read = labels(back_job).map(|label| back.names.text(label));
                prop_assert_eq!(read, labels(job).map(|label| workload.names.text(label)));
                let TraceJob { user, group, partition, .. } = *job;
                prop_assert_eq!(TraceJob { user, group, partition, ..*back_job }, *job);
            }
        }
    }

    #[test]
    fn columns_are_those_of_the_formats() {
        let trace = Trace { nodes: NonZeroU32::new(9), ..Trace::new("t.swf") };
        let line = "7 0 -1 60 4 -1 -1 4 60 2048 -1 3 2 -1 -1 6 -1 -1";
        let workload = trace.read_from(line.as_bytes()).unwrap();
        let mut swf = Vec::new();
        write_swf(&workload, &mut swf).unwrap();
        assert_eq!(String::from_utf8(swf).unwrap().lines().last(), Some(line));
        let mut gwf = Vec::new();
        write_gwf(&workload, &mut gwf).unwrap();
        let gwf = String::from_utf8(gwf).unwrap();
        let columns: Vec<usize> = gwf.lines().rev().take(2).map(|line| line.split('\t').count()).collect();
        assert_eq!(columns, [29, 29]);
    }
}
