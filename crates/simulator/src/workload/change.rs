//! Changes to a workload: choose jobs, cut a window, go to a grid of another size, set the load.
//!
//! In this order, whatever order the scenario names them in: each step then means the same with or without the
//! others, and the load asked for is the load in the end.

use std::cmp::Reverse;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::{Span, Time};

use super::error::WorkloadError;
use super::generate::{setting, stream};
use super::{JOBS_MAX, Label, Step, TraceJob, Workload};

const DAY_SECS: f64 = 86_400.0;
/// More pieces than a trace of centuries has days.
const PIECES_MAX: u64 = 1_000_000;

/// What to do to a workload before it is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// Which jobs to keep.
    pub filter: Option<Filter>,
    /// Which days to keep.
    pub window: Option<Window>,
    /// Copies or thins out the jobs for a grid of this many nodes; their widths stay.
    pub scale_to_nodes: Option<u32>,
    /// How far a copy may be moved from its original, either way; an hour if not said.
    pub jitter_secs: Option<f64>,
    /// Stretches the submit times until this share of the grid is asked for: 0.95 for 95 %.
    pub utilisation: Option<f64>,
}

/// Which jobs to keep; bounds count as inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Least nodes.
    pub width_min: Option<u32>,
    /// Most nodes.
    pub width_max: Option<u32>,
    /// Shortest requested time.
    pub length_min_secs: Option<f64>,
    /// Longest requested time.
    pub length_max_secs: Option<f64>,
    /// Users, by number or name; empty means all.
    pub users: Vec<String>,
    /// Partitions, by number or name; empty means all.
    pub partitions: Vec<String>,
}

/// A piece of a workload: from its start, up to but without its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Days from the start of the workload.
    #[serde(default)]
    pub start_days: f64,
    /// Days it lasts.
    pub length_days: f64,
    /// Of all such windows, from the start on one after the other, which; instead of the one at the start.
    #[serde(default)]
    pub piece: Option<Piece>,
}

/// One of the pieces that a workload can be cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// The one in which most node-time is asked for; of equals the first.
    Busiest,
    /// The one in the middle, by node-time asked for; the lower of the two where there are two.
    Median,
}

impl Change {
    /// Makes the changes; chance (copies when scaling) comes from the seed.
    pub fn apply(&self, workload: &mut Workload, seed: u64) -> Result<(), WorkloadError> {
        if let Some(filter) = &self.filter {
            workload.filter(filter)?;
        }
        if let Some(window) = self.window {
            workload.window(window)?;
        }
        match (self.scale_to_nodes, self.jitter_secs) {
            (Some(nodes), jitter_secs) => workload.scale_to(nodes, jitter_secs.unwrap_or(3_600.0), seed)?,
            (None, Some(_)) => return Err(setting("jitter_secs", "needs `scale_to_nodes`: it moves copies")),
            (None, None) => {}
        }
        if let Some(utilisation) = self.utilisation {
            workload.compress(utilisation)?;
        }
        Ok(())
    }
}

impl Workload {
    /// Keeps the jobs that the filter lets through; the span stays.
    pub fn filter(&mut self, filter: &Filter) -> Result<(), WorkloadError> {
        let length_min = filter.length_min_secs.map(|secs| span("length_min_secs", secs)).transpose()?;
        let length_max = filter.length_max_secs.map(|secs| span("length_max_secs", secs)).transpose()?;
        let users = self.labels("users", &filter.users)?;
        let partitions = self.labels("partitions", &filter.partitions)?;
        let among = |labels: &[Label], label| labels.is_empty() || labels.contains(&label);
        let before = self.jobs.len();
        self.jobs.retain(|job| {
            filter.width_min.is_none_or(|least| job.width >= least)
                && filter.width_max.is_none_or(|most| job.width <= most)
                && length_min.is_none_or(|least| job.requested >= least)
                && length_max.is_none_or(|most| job.requested <= most)
                && among(&users, job.user)
                && among(&partitions, job.partition)
        });
        self.note("filter".to_owned(), before)
    }

    /// Keeps the jobs submitted in the window, and counts time from its start.
    pub fn window(&mut self, window: Window) -> Result<(), WorkloadError> {
        let first = Time::ZERO + span("start_days", window.start_days * DAY_SECS)?;
        let length = span("length_days", window.length_days * DAY_SECS)?;
        if length == Span::ZERO {
            return Err(setting("length_days", "a window without length holds no job"));
        }
        let start = match window.piece {
            None => first,
            Some(piece) => self.find(piece, first, length)?,
        };
        let before = self.jobs.len();
        self.jobs.retain(|job| start <= job.submit && job.submit < start + length);
        for job in &mut self.jobs {
            job.submit = Time::ZERO + job.submit.since(start);
        }
        let whole_days = self.span.as_secs_f64() / DAY_SECS;
        self.span = length;
        let start_days = start.since(Time::ZERO).as_secs_f64() / DAY_SECS;
        let end_days = start_days + window.length_days;
        self.note(format!("window of days {start_days} to {end_days} (of {whole_days:.2} days)"), before)
    }

    /// Where a piece of this length begins; only whole pieces count.
    fn find(&self, piece: Piece, first: Time, length: Span) -> Result<Time, WorkloadError> {
        let whole = self.span.saturating_sub(first.since(Time::ZERO)).as_micros() / length.as_micros();
        if whole == 0 {
            return Err(setting("length_days", "the workload is shorter than one piece"));
        }
        if whole > PIECES_MAX {
            return Err(setting("length_days", format!("more than {PIECES_MAX} pieces are too many")));
        }
        let mut asked = vec![0_u128; whole as usize];
        for job in self.jobs.iter().filter(|job| job.submit >= first) {
            let place = job.submit.since(first).as_micros() / length.as_micros();
            if let Some(asked) = asked.get_mut(place as usize) {
                *asked += job.area();
            }
        }
        let mut order: Vec<usize> = (0..asked.len()).collect();
        let place = match piece {
            Piece::Busiest => {
                order.sort_by_key(|&place| Reverse(asked[place]));
                order[0]
            }
            Piece::Median => {
                order.sort_by_key(|&place| asked[place]);
                order[(order.len() - 1) / 2]
            }
        };
        Ok(first + length * place as u64)
    }

    /// Multiplies all submit times so that jobs ask for this share of the grid; lengths and widths stay.
    pub fn compress(&mut self, utilisation: f64) -> Result<(), WorkloadError> {
        if !(utilisation > 0.0 && utilisation <= 1_000.0) {
            return Err(setting("utilisation", "a share above 0, such as 0.95, is needed"));
        }
        let Some(now) = self.requested_utilisation() else {
            return Err(setting(
                "utilisation",
                "all jobs are submitted at one instant, so there is nothing to stretch",
            ));
        };
        let factor = now / utilisation;
        let stretch = |micros: u64| (micros as f64 * factor).round() as u64;
        for job in &mut self.jobs {
            job.submit = Time::from_micros(stretch(job.submit.as_micros()));
        }
        self.span = Span::from_micros(stretch(self.span.as_micros()));
        let what =
            format!("submit times x {factor:.4}: requested utilisation from {now:.4} to {utilisation:.4}");
        self.note(what, self.jobs.len())
    }

    /// Goes to a grid of another size at equal load: jobs are copied, copies moved by up to the jitter either
    /// way; for a smaller grid jobs are thinned out evenly, and those wider than it are dropped.
    pub fn scale_to(&mut self, nodes: u32, jitter_secs: f64, seed: u64) -> Result<(), WorkloadError> {
        let jitter = span("jitter_secs", jitter_secs)?.as_micros();
        if nodes == 0 {
            return Err(setting("scale_to_nodes", "a grid has at least one node"));
        }
        let ratio = f64::from(nodes) / f64::from(self.nodes);
        if self.jobs.len() as f64 * ratio > JOBS_MAX as f64 {
            return Err(setting("scale_to_nodes", "more than 100,000,000 jobs would be made"));
        }
        let mut rng = stream(seed, "scale");
        let last = self.span.as_micros();
        let before = self.jobs.len();
        // How many copies are due after each job is a straight line: no stretch of the trace gets more than its share.
        let phase: f64 = rng.random();
        let due = |jobs: usize| (jobs as f64 * ratio + phase).floor() as u64;
        let mut scaled = Vec::with_capacity((before as f64 * ratio) as usize + 1);
        let mut too_wide = 0;
        for (index, job) in self.jobs.iter().enumerate() {
            let copies = due(index + 1) - due(index);
            if job.width > nodes {
                too_wide += copies;
                continue;
            }
            for copy in 0..copies {
                let moved = match copy {
                    0 => job.submit.as_micros(),
                    _ => near(job.submit.as_micros(), jitter, last, rng.random()),
                };
                scaled.push(TraceJob { submit: Time::from_micros(moved), ..*job });
            }
        }
        scaled.sort_by_key(|job| job.submit);
        self.jobs = scaled;
        let from = std::mem::replace(&mut self.nodes, nodes);
        self.provenance.seed = Some(seed);
        self.note(
            format!("scaled from {from} to {nodes} nodes ({too_wide} jobs wider than that dropped)"),
            before,
        )
    }

    /// Writes down a change; an error if it left no job.
    fn note(&mut self, what: String, before: usize) -> Result<(), WorkloadError> {
        if self.jobs.is_empty() {
            let source_name = self.provenance.source.clone();
            return Err(WorkloadError::NothingLeft { source_name, before, what });
        }
        self.provenance.steps.push(Step::new(what, before, self.jobs.len()));
        Ok(())
    }

    fn labels(&self, name: &'static str, texts: &[String]) -> Result<Vec<Label>, WorkloadError> {
        let unknown = |text: &str| setting(name, format!("`{text}` is not in {}", self.provenance.source));
        texts.iter().map(|text| self.names.find(text).ok_or_else(|| unknown(text))).collect()
    }
}

fn span(name: &'static str, secs: f64) -> Result<Span, WorkloadError> {
    if !(0.0..=1e12).contains(&secs) {
        return Err(setting(name, "a length of time that is not negative is needed"));
    }
    Ok(Span::from_micros((secs * 1e6).round() as u64))
}

/// An instant within the jitter of another, mirrored at both ends of the workload.
fn near(micros: u64, jitter: u64, last: u64, chance: f64) -> u64 {
    let offset = (chance * 2.0 - 1.0) * jitter as f64;
    let moved = (micros as f64 + offset).abs();
    let past_end = (moved - last as f64).max(0.0);
    (moved - 2.0 * past_end).clamp(0.0, last as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Uniform;

    fn workload() -> Workload {
        let uniform = Uniform {
            nodes: 100,
            jobs: 2_000,
            first_secs: 0.0,
            gap_secs: [0.0, 200.0],
            width: [1, 20],
            length_secs: [60.0, 600.0],
            overestimate: 1.0,
            change: Change::default(),
        };
        uniform.generate(1).unwrap()
    }

    #[test]
    fn compressing_meets_the_utilisation_and_leaves_the_jobs() {
        let mut changed = workload();
        changed.compress(0.95).unwrap();
        assert!((changed.requested_utilisation().unwrap() - 0.95).abs() < 1e-6);
        for (job, old) in changed.jobs.iter().zip(workload().jobs) {
            assert_eq!((job.width, job.requested, job.run), (old.width, old.requested, old.run));
        }
        assert!(changed.jobs.is_sorted_by_key(|job| job.submit));
    }

    #[test]
    fn window_keeps_its_start_and_leaves_out_its_end() {
        let mut changed = workload();
        let second = 1.0 / DAY_SECS;
        for (job, submit) in changed.jobs.iter_mut().zip([0, 10, 11, 20]) {
            job.submit = Time::from_secs(submit);
        }
        changed.jobs.truncate(4);
        changed
            .window(Window { start_days: 10.0 * second, length_days: 10.0 * second, piece: None })
            .unwrap();
        let submits: Vec<u64> = changed.jobs.iter().map(|job| job.submit.as_secs()).collect();
        assert_eq!(submits, [0, 1]);
        assert_eq!(changed.span, Span::from_secs(10));
        assert_eq!((changed.provenance.steps[0].before, changed.provenance.steps[0].after), (4, 2));
    }

    #[test]
    fn window_without_jobs_is_an_error_that_names_it() {
        let error =
            workload().window(Window { start_days: 500.0, length_days: 1.0, piece: None }).unwrap_err();
        assert!(
            error.to_string().contains("no job is left of 2000 after window of days 500 to 501"),
            "{error}"
        );
        assert!(workload().window(Window { start_days: -1.0, length_days: 1.0, piece: None }).is_err());
        assert!(workload().window(Window { start_days: f64::NAN, length_days: 1.0, piece: None }).is_err());
        assert!(workload().window(Window { start_days: 0.0, length_days: 0.0, piece: None }).is_err());
    }

    #[test]
    fn busiest_and_median_pieces_are_found_by_what_is_asked_for() {
        let base = || {
            let mut base = workload();
            base.jobs.truncate(6);
            // Four whole days with 1, 3, 2 and 3 nodes asked for, and a rest with more.
            for (job, (hour, width)) in
                base.jobs.iter_mut().zip([(1, 1), (25, 1), (30, 2), (50, 2), (75, 3), (99, 9)])
            {
                job.submit = Time::ZERO + Span::from_hours(hour);
                (job.width, job.requested) = (width, Span::from_hours(1));
            }
            base.span = Span::from_hours(100);
            base
        };
        let ids = |piece| {
            let mut changed = base();
            changed.window(Window { start_days: 0.0, length_days: 1.0, piece: Some(piece) }).unwrap();
            assert_eq!(changed.span, Span::from_hours(24));
            changed.jobs.iter().map(|job| (job.width, job.submit.as_secs() / 3_600)).collect::<Vec<_>>()
        };
        assert_eq!(ids(Piece::Busiest), [(1, 1), (2, 6)]);
        assert_eq!(ids(Piece::Median), [(2, 2)]);
        let long = Window { start_days: 0.0, length_days: 5.0, piece: Some(Piece::Busiest) };
        assert!(base().window(long).unwrap_err().to_string().contains("shorter than one piece"));
    }

    #[test]
    fn scaling_keeps_load_per_node_and_widths() {
        let before = workload().requested_utilisation().unwrap();
        for nodes in [50, 100, 250, 1_000] {
            let mut changed = workload();
            changed.scale_to(nodes, 3_600.0, 7).unwrap();
            let after = changed.requested_utilisation().unwrap();
            assert!((after / before - 1.0).abs() < 0.03, "{nodes} nodes: {before} {after}");
            assert_eq!(changed.jobs.len(), 20 * nodes as usize);
            assert!(changed.jobs.iter().all(|job| job.width <= 20));
            assert!(changed.jobs.is_sorted_by_key(|job| job.submit));
            assert!(changed.jobs.last().unwrap().submit <= Time::ZERO + changed.span);
        }
    }

    #[test]
    fn scaling_moves_copies_no_further_than_the_jitter() {
        let mut changed = workload();
        changed.scale_to(300, 60.0, 7).unwrap();
        let originals = workload().jobs;
        for job in &changed.jobs {
            let original = originals[job.id as usize - 1].submit;
            let apart = job.submit.since(original).max(original.since(job.submit));
            assert!(apart <= Span::from_secs(60), "{apart}");
        }
    }

    #[test]
    fn scaling_down_drops_jobs_wider_than_the_grid() {
        let mut changed = workload();
        changed.scale_to(10, 0.0, 7).unwrap();
        assert!(changed.jobs.iter().all(|job| job.width <= 10));
        assert!(!changed.provenance.steps[0].what.contains("(0 jobs"), "{:?}", changed.provenance.steps);
    }

    #[test]
    fn filter_keeps_what_lies_in_its_bounds() {
        let mut changed = workload();
        let filter = Filter {
            width_min: Some(3),
            width_max: Some(5),
            length_min_secs: Some(100.0),
            length_max_secs: Some(200.0),
            ..Filter::default()
        };
        changed.filter(&filter).unwrap();
        let inside =
            |job: &TraceJob| (3..=5).contains(&job.width) && (100..=200).contains(&job.requested.as_secs());
        assert!(changed.jobs.iter().all(inside));
        assert_eq!(changed.jobs.len(), workload().jobs.iter().filter(|job| inside(job)).count());
    }

    #[test]
    fn filter_by_user_and_partition_takes_numbers() {
        let mut changed = workload();
        changed.jobs[3].user = Label::new(7);
        changed.jobs[4].user = Label::new(7);
        changed.jobs[4].partition = Label::new(2);
        let filter = Filter { users: vec!["7".into()], partitions: vec!["2".into()], ..Filter::default() };
        changed.filter(&filter).unwrap();
        assert_eq!(changed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [5]);
        let unknown = Filter { users: vec!["carol".into()], ..Filter::default() };
        assert!(changed.filter(&unknown).unwrap_err().to_string().contains("`carol`"));
    }

    #[test]
    fn jitter_alone_is_refused() {
        let change = Change { jitter_secs: Some(5.0), ..Change::default() };
        assert!(change.apply(&mut workload(), 1).is_err());
    }
}
