//! Makes jobs of the records of a trace: ten rules, applied in order, each counted.
//!
//! 1. A line that cannot be read is refused, or dropped if the scenario says so.
//! 2. Width is what was requested, else what was allocated; without either the job is dropped.
//! 3. Length is as the scenario says; under a second the job is dropped.
//! 4. Jobs that never ran (no run time, and no wait or cancelled) are dropped if run times are wanted; a cancelled
//!    request is still a request.
//! 5. A negative wait (a reservation) is left aside, as all waits are.
//! 6. A job wider than the grid is dropped, cut to the grid or refused.
//! 7. A job that ran longer than it asked keeps both lengths.
//! 8. Submit times count from the first; jobs out of order are refused, or sorted if the scenario says so.
//! 9. Flurries stay: the archive's cleaned logs are the place to remove them.
//! 10. One processor is one node, unless the scenario names a node size.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use shoal_model::{Span, Time};

use super::error::Fault;
use super::field::{Place, Places};
use super::names::Label;
use super::{Step, TraceJob};

const SECOND: i64 = 1_000_000;
/// The status of a job that was cancelled, waiting or running.
const CANCELLED: i64 = 5;
/// How many bad lines are kept by name; the others are only counted.
const BAD_LINES_NAMED_MAX: usize = 10;

/// Which length of the trace a job has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// The requested time, else the run time; the job runs exactly that long.
    #[default]
    Requested,
    /// The run time, else the requested time; plans are made with the requested time.
    Run,
}

/// What happens to a line that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadLines {
    /// It is an error.
    #[default]
    Refuse,
    /// It is dropped and counted; the first ten are named.
    Drop,
}

/// What happens to a job that is submitted before the one above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// It is an error: both formats promise order, so something else may be wrong with the file.
    #[default]
    Refuse,
    /// Jobs are sorted; those of one instant keep their order.
    Sort,
}

/// What happens to a job wider than the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooWide {
    /// It is dropped and counted.
    #[default]
    Drop,
    /// It gets the whole grid, and is counted.
    Cap,
    /// It is an error.
    Refuse,
}

/// What the cleaning rules met, and what was odd about the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cleaning {
    /// Lines that are neither blank nor comments.
    pub records: u64,
    /// Rule 1: dropped, since they could not be read.
    pub unparsable: u64,
    /// Rule 1: the first of them, with line and field.
    pub bad_lines: Vec<String>,
    /// Rule 2: width taken from what was allocated.
    pub width_from_allocated: u64,
    /// Rule 2: dropped, no width.
    pub no_width: u64,
    /// Rule 3: length taken from the other of requested and run time.
    pub length_from_other: u64,
    /// Rule 3: dropped, shorter than a second.
    pub too_short: u64,
    /// Rule 4: dropped, never ran.
    pub never_ran: u64,
    /// Rule 5: negative waits.
    pub negative_wait: u64,
    /// Rule 6: dropped, wider than the grid.
    pub too_wide: u64,
    /// Rule 6: cut to the grid.
    pub capped: u64,
    /// Rule 7: kept jobs that ran longer than they asked.
    pub overran: u64,
    /// Rule 8: moved by sorting.
    pub out_of_order: u64,
    /// Rule 8: what was taken off all submit times.
    pub first_submit: Time,
    /// Lines with more columns than the format has.
    pub extra_columns: u64,
    /// Lines that ended as DOS ends them.
    pub crlf: u64,
    /// Lines that tell a part of a job (status 2, 3 or 4), which other lines may tell again.
    pub partial: u64,
    /// Records without a run time (0 or unknown).
    pub without_run: u64,
    /// Records without a requested time.
    pub without_requested: u64,
    /// Records without allocated processors.
    pub without_allocated: u64,
    /// Jobs that the header promises (`MaxJobs`), if it does.
    pub promised: Option<u64>,
    /// Comment lines; none means that the header is missing.
    pub comments: u64,
}

/// A line of a trace: numbers as they stand, times in microseconds; below 0 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: i64,
    pub(crate) submit: i64,
    pub(crate) wait: i64,
    pub(crate) run: i64,
    pub(crate) allocated: i64,
    pub(crate) requested_width: i64,
    pub(crate) requested: i64,
    pub(crate) memory_kib: i64,
    pub(crate) status: i64,
    pub(crate) user: Label,
    pub(crate) group: Label,
    pub(crate) partition: Label,
    pub(crate) extra_columns: bool,
}

/// Applies the rules to one record after another.
pub(crate) struct Cleaner {
    length: Length,
    nodes: Option<u32>,
    node_size: NonZeroU32,
    too_wide: TooWide,
    order: Order,
    jobs: Vec<TraceJob>,
    /// The latest submission so far and its line.
    latest: (i64, u64),
    counts: Cleaning,
}

impl Cleaning {
    /// Jobs dropped, by rule, in the order of the rules.
    pub fn dropped_by_rule(&self) -> [(&'static str, u64); 5] {
        [
            ("unparsable", self.unparsable),
            ("no width", self.no_width),
            ("shorter than a second", self.too_short),
            ("never ran", self.never_ran),
            ("wider than the grid", self.too_wide),
        ]
    }

    /// Jobs dropped by all rules together.
    pub fn dropped(&self) -> u64 {
        self.dropped_by_rule().iter().map(|(_, count)| count).sum()
    }
}

impl Cleaner {
    /// Starts with the grid's size where it is known, and what the scenario says.
    pub(crate) fn new(
        length: Length,
        nodes: Option<u32>,
        node_size: NonZeroU32,
        too_wide: TooWide,
        order: Order,
    ) -> Cleaner {
        let (jobs, latest, counts) = (Vec::new(), (i64::MIN, 0), Cleaning::default());
        Cleaner { length, nodes, node_size, too_wide, order, jobs, latest, counts }
    }

    /// Tells the grid's size once the header says it. A header stands before the jobs: what comes after one of them is a
    /// remark, since jobs were judged without it.
    pub(crate) fn nodes_from_header(&mut self, processors: u32) {
        if self.counts.records > 0 {
            return;
        }
        self.nodes.get_or_insert(processors.div_ceil(self.node_size.get()).max(1));
    }

    /// The grid's size, where it is known.
    pub(crate) fn nodes(&self) -> Option<u32> {
        self.nodes
    }

    /// Rule 1: a line that cannot be read was dropped.
    pub(crate) fn drop_line(&mut self, line: u64, fault: &Fault) {
        self.counts.records += 1;
        self.counts.unparsable += 1;
        if self.counts.bad_lines.len() < BAD_LINES_NAMED_MAX {
            self.counts.bad_lines.push(format!("line {line}: {fault}"));
        }
    }

    /// Takes the next record; a fault is one that the scenario refuses, and names the place of what is at fault.
    pub(crate) fn push(&mut self, record: &Record, line: u64, places: &Places) -> Result<(), Fault> {
        self.counts.records += 1;
        self.count_oddities(record);

        let asked = record.requested_width > 0;
        let processors = if asked { record.requested_width } else { record.allocated };
        if processors < 1 {
            self.counts.no_width += 1;
            return Ok(());
        }
        self.counts.width_from_allocated += u64::from(!asked);
        let Some((run, requested)) = self.lengths(record) else { return Ok(()) };
        self.counts.negative_wait += u64::from(record.wait < 0 && record.wait != -SECOND);
        let place = if asked { &places.requested_width } else { &places.allocated };
        let Some(width) = self.width(record.id, processors, place)? else { return Ok(()) };
        self.counts.overran += u64::from(record.requested > 0 && record.run > record.requested);
        self.check_order(record.submit, line, &places.submit)?;

        self.jobs.push(TraceJob {
            submit: time(record.submit),
            run,
            requested,
            id: record.id,
            memory_kib: u64::try_from(record.memory_kib).ok().and_then(NonZeroU64::new),
            width,
            user: record.user,
            group: record.group,
            partition: record.partition,
        });
        Ok(())
    }

    /// The jobs in order, counted from the first, and what was met on the way.
    pub(crate) fn finish(self) -> (Vec<TraceJob>, Cleaning) {
        let (mut jobs, mut counts) = (self.jobs, self.counts);
        if counts.out_of_order > 0 {
            jobs.sort_by_key(|job| job.submit);
        }
        counts.first_submit = jobs.first().map_or(Time::ZERO, |job| job.submit);
        for job in &mut jobs {
            job.submit = Time::ZERO + job.submit.since(counts.first_submit);
        }
        (jobs, counts)
    }

    /// Counts what a reader of the trace should know and no rule acts on.
    fn count_oddities(&mut self, record: &Record) {
        let counts = &mut self.counts;
        counts.extra_columns += u64::from(record.extra_columns);
        counts.partial += u64::from(matches!(record.status, 2..=4));
        counts.without_run += u64::from(record.run <= 0);
        counts.without_requested += u64::from(record.requested <= 0);
        counts.without_allocated += u64::from(record.allocated <= 0);
    }

    /// Rules 3, 4 and 7: how long the job runs and how long it says it will.
    fn lengths(&mut self, record: &Record) -> Option<(Span, Span)> {
        // A run of nothing is a fact; a request for nothing is no request.
        let run = (record.run >= 0).then_some(record.run);
        let requested = (record.requested > 0).then_some(record.requested);
        let (wanted, other) = match self.length {
            Length::Requested => (requested, run),
            Length::Run => (run, requested),
        };
        let length = wanted.or(other).unwrap_or(0);
        if length < SECOND {
            self.counts.too_short += 1;
            return None;
        }
        if self.length == Length::Run && never_ran(record) {
            self.counts.never_ran += 1;
            return None;
        }
        self.counts.length_from_other += u64::from(wanted.is_none());
        let planned = match self.length {
            Length::Requested => length,
            Length::Run => requested.unwrap_or(length),
        };
        Some((span(length), span(planned)))
    }

    /// Rules 6 and 10: the nodes a job gets, none if it is dropped.
    fn width(&mut self, id: i64, processors: i64, place: &Place) -> Result<Option<u32>, Fault> {
        let width = processors.unsigned_abs().div_ceil(u64::from(self.node_size.get()));
        let nodes = self.nodes.unwrap_or(u32::MAX);
        match u32::try_from(width) {
            Ok(fits) if fits <= nodes => return Ok(Some(fits)),
            _ => {}
        }
        match self.too_wide {
            TooWide::Drop => {
                self.counts.too_wide += 1;
                Ok(None)
            }
            TooWide::Cap => {
                self.counts.capped += 1;
                Ok(Some(nodes))
            }
            TooWide::Refuse => {
                let Place { column, name } = *place;
                Err(Fault::TooWide { column, name, id, width, nodes })
            }
        }
    }

    /// Rule 8: whether the job is in its place.
    fn check_order(&mut self, submit: i64, line: u64, place: &Place) -> Result<(), Fault> {
        let (previous, previous_line) = self.latest;
        if submit >= previous {
            self.latest = (submit, line);
            return Ok(());
        }
        match self.order {
            Order::Sort => {
                self.counts.out_of_order += 1;
                Ok(())
            }
            Order::Refuse => Err(Fault::OutOfOrder {
                column: place.column,
                name: place.name,
                submit_secs: submit / SECOND,
                previous_secs: previous / SECOND,
                previous_line,
            }),
        }
    }
}

/// Whether a record without a run time is that of a job that nobody started, rather than a trace that does not say.
///
/// Some traces give a job that was cancelled in the queue the wait up to then: 10,742 of SDSC-BLUE, a quarter of the
/// machine if each ran for what it asked.
fn never_ran(record: &Record) -> bool {
    record.run == -SECOND && (record.wait == -SECOND || record.status == CANCELLED)
}

impl Step {
    pub(crate) fn new(what: impl Into<String>, before: usize, after: usize) -> Step {
        Step { what: what.into(), before, after }
    }
}

/// Callers have made sure that it is not negative.
fn time(micros: i64) -> Time {
    Time::from_micros(micros.unsigned_abs())
}

fn span(micros: i64) -> Span {
    Span::from_micros(micros.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Record = Record {
        id: 1,
        submit: 50 * SECOND,
        wait: 0,
        run: 60 * SECOND,
        allocated: 4,
        requested_width: 8,
        requested: 100 * SECOND,
        memory_kib: -1,
        status: 1,
        user: Label::UNKNOWN,
        group: Label::UNKNOWN,
        partition: Label::UNKNOWN,
        extra_columns: false,
    };
    const UNKNOWN: i64 = -SECOND;
    const PLACES: &Places = &crate::workload::swf::PLACES;

    fn cleaner(length: Length, nodes: u32, too_wide: TooWide) -> Cleaner {
        Cleaner::new(length, Some(nodes), NonZeroU32::MIN, too_wide, Order::Refuse)
    }

    fn clean(length: Length, record: Record) -> (Option<TraceJob>, Cleaning) {
        let mut cleaner = cleaner(length, 100, TooWide::Drop);
        cleaner.push(&record, 1, PLACES).unwrap();
        let (jobs, counts) = cleaner.finish();
        (jobs.first().copied(), counts)
    }

    fn seconds(job: Option<TraceJob>) -> Option<(u64, u64)> {
        job.map(|job| (job.run.as_secs(), job.requested.as_secs()))
    }

    #[test]
    fn width_is_requested_else_allocated_else_dropped() {
        assert_eq!(clean(Length::Run, RECORD).0.unwrap().width, 8);
        let (job, counts) = clean(Length::Run, Record { requested_width: -1, ..RECORD });
        assert_eq!((job.unwrap().width, counts.width_from_allocated), (4, 1));
        let (job, counts) = clean(Length::Run, Record { requested_width: 0, allocated: -1, ..RECORD });
        assert_eq!((job, counts.no_width, counts.dropped()), (None, 1, 1));
    }

    #[test]
    fn length_is_the_one_wanted_else_the_other() {
        assert_eq!(seconds(clean(Length::Requested, RECORD).0), Some((100, 100)));
        assert_eq!(seconds(clean(Length::Run, RECORD).0), Some((60, 100)));

        let no_request = Record { requested: UNKNOWN, ..RECORD };
        let (job, counts) = clean(Length::Requested, no_request);
        assert_eq!((seconds(job), counts.length_from_other), (Some((60, 60)), 1));
        let (job, counts) = clean(Length::Run, no_request);
        assert_eq!((seconds(job), counts.length_from_other), (Some((60, 60)), 0));

        let no_run = Record { run: UNKNOWN, ..RECORD };
        let (job, counts) = clean(Length::Run, no_run);
        assert_eq!((seconds(job), counts.length_from_other), (Some((100, 100)), 1));
    }

    #[test]
    fn job_under_a_second_is_dropped() {
        for record in [
            Record { run: 0, ..RECORD },
            Record { run: SECOND - 1, ..RECORD },
            Record { run: UNKNOWN, requested: 0, ..RECORD },
        ] {
            let (job, counts) = clean(Length::Run, record);
            assert_eq!((job, counts.too_short), (None, 1));
        }
        assert!(clean(Length::Requested, Record { run: 0, ..RECORD }).0.is_some());
    }

    #[test]
    fn job_that_never_ran_is_dropped_only_where_run_times_count() {
        let never = Record { run: UNKNOWN, wait: UNKNOWN, ..RECORD };
        let (job, counts) = clean(Length::Run, never);
        assert_eq!((job, counts.never_ran), (None, 1));
        assert_eq!(seconds(clean(Length::Requested, never).0), Some((100, 100)));
        let nothing = Record { requested: UNKNOWN, ..never };
        assert_eq!(clean(Length::Run, nothing).1.too_short, 1, "rule 3 comes before rule 4");
        let silent = Record { run: UNKNOWN, ..RECORD };
        let cancelled = Record { status: CANCELLED, ..silent };
        assert_eq!(clean(Length::Run, cancelled).1.never_ran, 1, "cancelled while it waited");
        assert_eq!(clean(Length::Run, silent).1.never_ran, 0, "the trace does not say");
    }

    #[test]
    fn negative_wait_is_counted_and_left_aside() {
        let (job, counts) = clean(Length::Run, Record { wait: -7 * SECOND, ..RECORD });
        assert_eq!((job.is_some(), counts.negative_wait), (true, 1));
        assert_eq!(clean(Length::Run, Record { wait: UNKNOWN, ..RECORD }).1.negative_wait, 0);
    }

    #[test]
    fn job_wider_than_the_grid_is_dropped_capped_or_refused() {
        let wide = |too_wide| {
            let mut cleaner = cleaner(Length::Run, 7, too_wide);
            let result = cleaner.push(&RECORD, 3, PLACES);
            result.map(|()| cleaner.finish())
        };
        let (jobs, counts) = wide(TooWide::Drop).unwrap();
        assert_eq!((jobs.len(), counts.too_wide), (0, 1));
        let (jobs, counts) = wide(TooWide::Cap).unwrap();
        assert_eq!((jobs[0].width, counts.capped, counts.dropped()), (7, 1, 0));
        let fault = wide(TooWide::Refuse).unwrap_err().to_string();
        assert!(
            fault.starts_with("field 8 (processors requested): job 1 wants 8 nodes, the grid has 7"),
            "{fault}"
        );
    }

    #[test]
    fn overrun_keeps_both_lengths() {
        let (job, counts) = clean(Length::Run, Record { run: 150 * SECOND, ..RECORD });
        assert_eq!((seconds(job), counts.overran), (Some((150, 100)), 1));
    }

    #[test]
    fn order_is_demanded_or_made() {
        let submits = [50, 40, 60, 40];
        let push_all = |order| {
            let mut cleaner = Cleaner::new(Length::Run, None, NonZeroU32::MIN, TooWide::Drop, order);
            for (index, submit) in (0..).zip(submits) {
                let record = Record { id: index, submit: submit * SECOND, ..RECORD };
                cleaner.push(&record, 10 + index as u64, PLACES)?;
            }
            Ok(cleaner.finish())
        };
        let fault: Fault = push_all(Order::Refuse).unwrap_err();
        let (column, name) = (2, "submit time");
        let expected =
            Fault::OutOfOrder { column, name, submit_secs: 40, previous_secs: 50, previous_line: 10 };
        assert_eq!(fault, expected);
        let (jobs, counts) = push_all(Order::Sort).unwrap();
        let order: Vec<_> = jobs.iter().map(|job| (job.id, job.submit.as_secs())).collect();
        assert_eq!(order, [(1, 0), (3, 0), (0, 10), (2, 20)]);
        assert_eq!((counts.out_of_order, counts.first_submit), (2, Time::from_secs(40)));
    }

    #[test]
    fn node_size_turns_processors_into_nodes() {
        let size = NonZeroU32::new(3).unwrap();
        let mut cleaner = Cleaner::new(Length::Run, None, size, TooWide::Drop, Order::Refuse);
        cleaner.nodes_from_header(10);
        assert_eq!(cleaner.nodes(), Some(4));
        cleaner.push(&RECORD, 1, PLACES).unwrap();
        assert_eq!(cleaner.finish().0[0].width, 3, "8 processors on nodes of 3");
    }
}
