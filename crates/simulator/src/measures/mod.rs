//! What a run shows: for each job when it was submitted, accepted, started and ended, and sums over all of them.
//!
//! Times are those of the world, whatever the nodes' clocks show, and are told from the workload's zero on: the
//! first instant at which a job could be submitted.

mod course;
mod record;
mod summary;

use std::collections::BTreeMap;

use shoal_model::{Epoch, JobId, NodeId, Rank, Span, Time};
use shoal_protocols::node::{Action, End, Event, Exit, Outcome as Exited, Task};
use shoal_protocols::scheduling::Stuck;

pub use course::{Bin, Course};
pub use record::{Record, State};
pub use summary::{Bytes, Messages, Promises, Spread, Summary, Utilisation};

use crate::grid::NodeLayer;
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::world::{Saw, Sight, Traffic};
use shoal_protocols::Protocol;

/// A job that will be submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// Its id.
    pub job: JobId,
    /// Its number in the workload.
    pub number: i64,
    /// How many nodes it wants.
    pub width: u32,
    /// How long it may run.
    pub requested: Span,
    /// When it is submitted.
    pub at: Time,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Where the jobs came from.
    pub workload: String,
    /// Every job, by submission.
    pub jobs: Vec<Record>,
    /// All of it in figures.
    pub summary: Summary,
    /// All of it over time.
    pub course: Course,
}

/// Measures a run from what is seen of it.
pub struct Measures {
    zero: Time,
    known: BTreeMap<JobId, usize>,
    jobs: Vec<Watched>,
    /// Since when which task runs where.
    running: BTreeMap<(NodeId, Task), Time>,
    /// Node-microseconds of all tasks.
    busy: u128,
    ended: usize,
    frame: summary::Frame,
    course: Course,
    /// When the nodes were last listened to, and what they had said until then.
    heard: (Time, BTreeMap<&'static str, Traffic>),
}

/// A job on its way.
struct Watched {
    submission: Submission,
    accepted: Option<Time>,
    /// The first start that was promised.
    promised: Option<Time>,
    placements: u32,
    /// The placement that stands, or stood last.
    epoch: Option<Epoch>,
    attempts: BTreeMap<Epoch, Attempt>,
    /// Why it had no place, as last told.
    why: Option<Stuck>,
    end: Option<(Time, State)>,
}

/// What was seen of one placement of a job.
#[derive(Default)]
struct Attempt {
    nodes: Vec<NodeId>,
    starts: BTreeMap<Rank, Time>,
    last_end: Option<Time>,
    busy: u128,
}

impl Measures {
    /// Measures of a run in which these jobs will be submitted.
    pub fn new(
        scenario: &Scenario,
        workload: &Workload,
        zero: Time,
        submissions: Vec<Submission>,
    ) -> Measures {
        let known = submissions.iter().enumerate().map(|(place, one)| (one.job, place)).collect();
        let frame = summary::Frame::new(scenario, workload);
        let mut course = Course::new(zero, frame.cores);
        for submission in &submissions {
            let area = u128::from(submission.width) * u128::from(submission.requested.as_micros());
            course.ask(submission.at, area);
        }
        let jobs = submissions.into_iter().map(Watched::new).collect();
        let heard = (Time::ZERO, BTreeMap::new());
        Measures { zero, known, jobs, running: BTreeMap::new(), busy: 0, ended: 0, frame, course, heard }
    }

    /// Takes in what was seen.
    pub fn see<P: Protocol + NodeLayer>(&mut self, sight: &Sight<P>) {
        let Sight { at, node, saw } = sight;
        match saw {
            Saw::Event(event) => self.hear(*at, event),
            Saw::Act(Action::Start { task, .. }) => self.start(*at, *node, *task),
            Saw::Act(Action::Stage { .. } | Action::Adopt(_) | Action::Stop(_)) => {}
            Saw::Done(Exited(task, ..)) => self.stop(*at, *node, *task),
            Saw::Crash | Saw::Restart => self.stop_all(*at, *node),
            Saw::DiskLost => {}
            Saw::Save(_) | Saw::Erase(_) | Saw::Send(..) => {}
        }
    }

    /// Everything stands still, after what `traffic` says was said; that is asked no more often than it is shown.
    pub fn pause(&mut self, now: Time, traffic: impl FnOnce() -> BTreeMap<&'static str, Traffic>) {
        if self.heard.0 + self.course.width <= now {
            self.listen(now, traffic());
        }
    }

    /// How many jobs have come to their end.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// Which jobs are still on their way; those are not that nobody has accepted for so long.
    pub fn open(&self, now: Time, patience: Span) -> impl Iterator<Item = usize> {
        let lost = move |job: &Watched| job.accepted.is_none() && job.submission.at + patience < now;
        let open = self.jobs.iter().enumerate().filter(move |(_, job)| job.end.is_none() && !lost(job));
        open.map(|(place, _)| place)
    }

    /// The records and figures of a run that ended now.
    pub fn sum_up(mut self, now: Time, traffic: BTreeMap<&'static str, Traffic>, handled: u64) -> Outcome {
        for ((node, task), _) in self.running.clone() {
            self.stop(now, node, task);
        }
        self.listen(now, traffic.clone());
        self.course.finish(now);
        let mut effective = 0;
        for job in &self.jobs {
            // What was stopped at its limit had its time, and what runs on is not wasted.
            let counts =
                matches!(job.end, None | Some((_, State::Finished | State::Failed(_, Exit::Overran))));
            if counts {
                effective += job.standing().map_or(0, |attempt| attempt.busy);
            }
        }
        let jobs: Vec<Record> = self.jobs.iter().map(|job| job.record(self.zero)).collect();
        let work = summary::Work { effective, busy: self.busy };
        let summary = self.frame.sum_up(&jobs, now.since(self.zero), now, work, traffic, handled);
        Outcome { workload: self.frame.workload, jobs, summary, course: self.course }
    }

    fn listen(&mut self, now: Time, traffic: BTreeMap<&'static str, Traffic>) {
        let (since, before) = &self.heard;
        for (kind, so_far) in &traffic {
            let known = before.get(kind).map_or(0, |traffic| traffic.messages);
            self.course.say(*since, now, kind, so_far.messages - known);
        }
        self.heard = (now, traffic);
    }

    fn hear(&mut self, at: Time, event: &Event) {
        match event {
            Event::Accepted(job) => {
                self.with(*job, |job| job.accepted = job.accepted.or(Some(at)));
            }
            Event::Refused(job, why) => self.end(at, *job, State::Refused(why.to_string())),
            Event::Placed(job, placement) => self.with(*job, |job| {
                // After a crash of its owner this may be the first that is heard of it.
                job.accepted = job.accepted.or(Some(at));
                job.promised = job.promised.or(Some(placement.start));
                // Told again after a crash of its owner, it is the same placement.
                job.placements += u32::from(job.epoch != Some(placement.epoch));
                job.epoch = Some(placement.epoch);
                job.attempts.entry(placement.epoch).or_default().nodes = placement.nodes.to_vec();
            }),
            Event::Ended(job, end) => {
                let state = match end {
                    End::Finished => State::Finished,
                    End::Failed(rank, exit) => State::Failed(*rank, *exit),
                    End::Lost => State::Lost,
                    End::Cancelled => State::Cancelled,
                    End::Expired => State::Expired,
                    End::NoPlace => State::NoPlace,
                    End::Unmet(_) => State::Unmet,
                    // It goes on elsewhere.
                    End::HandedOver(_) => return,
                };
                self.end(at, *job, state);
            }
            Event::Waiting(job, why) => self.with(*job, |job| job.why = Some(*why)),
            Event::Held(..)
            | Event::Unplaced { .. }
            | Event::Denied { .. }
            | Event::Started(..)
            | Event::Took(..)
            | Event::Suspected(_)
            | Event::Back(_)
            | Event::Silent(_)
            | Event::Unwatched(_)
            | Event::Slept(_)
            | Event::Left => {}
        }
    }

    fn end(&mut self, at: Time, job: JobId, state: State) {
        let Some(&place) = self.known.get(&job) else { return };
        let watched = &mut self.jobs[place];
        // One end counts; whether there was a second one is for the checkers to say.
        if watched.end.is_none() {
            watched.end = Some((at, state));
            self.ended += 1;
        }
    }

    fn start(&mut self, at: Time, node: NodeId, task: Task) {
        self.running.insert((node, task), at);
        self.with(task.job, |job| {
            job.attempts.entry(task.epoch).or_default().starts.entry(task.rank).or_insert(at);
        });
    }

    fn stop(&mut self, at: Time, node: NodeId, task: Task) {
        let Some(since) = self.running.remove(&(node, task)) else { return };
        let ran = u128::from(at.since(since).as_micros());
        self.busy += ran;
        self.course.work(since, at);
        self.with(task.job, |job| {
            let attempt = job.attempts.entry(task.epoch).or_default();
            attempt.busy += ran;
            attempt.last_end = attempt.last_end.max(Some(at));
        });
    }

    fn stop_all(&mut self, at: Time, node: NodeId) {
        let first = Task { job: JobId([0; 16]), epoch: Epoch(0), rank: Rank(0) };
        let last = Task { job: JobId([u8::MAX; 16]), epoch: Epoch(u32::MAX), rank: Rank(u32::MAX) };
        let tasks: Vec<Task> =
            self.running.range((node, first)..=(node, last)).map(|((_, task), _)| *task).collect();
        for task in tasks {
            self.stop(at, node, task);
        }
    }

    fn with(&mut self, job: JobId, change: impl FnOnce(&mut Watched)) {
        if let Some(&place) = self.known.get(&job) {
            change(&mut self.jobs[place]);
        }
    }
}

impl Watched {
    fn new(submission: Submission) -> Watched {
        Watched {
            submission,
            accepted: None,
            promised: None,
            placements: 0,
            epoch: None,
            attempts: BTreeMap::new(),
            why: None,
            end: None,
        }
    }

    /// What was seen of the placement that counts.
    fn standing(&self) -> Option<&Attempt> {
        self.attempts.get(&self.epoch?)
    }

    fn record(&self, zero: Time) -> Record {
        let from_zero = |at: Time| Time::ZERO + at.since(zero);
        let Submission { job, number, width, requested, at } = self.submission;
        // A gang runs once its last member does.
        let all = self.standing().filter(|attempt| attempt.starts.len() == width as usize);
        let first = all.and_then(|attempt| attempt.starts.values().min().copied());
        let start = all.and_then(|attempt| attempt.starts.values().max().copied());
        let (finish, state) = match &self.end {
            Some((_, state @ State::Finished)) => {
                (self.standing().and_then(|attempt| attempt.last_end), state.clone())
            }
            Some((at, state)) => (Some(*at), state.clone()),
            None if start.is_some() => (None, State::Running),
            None if self.accepted.is_some() => (None, State::Waiting),
            None => (None, State::Unaccepted),
        };
        Record {
            job,
            number,
            width,
            requested,
            submit: from_zero(at),
            accepted: self.accepted.map(from_zero),
            promised: self.promised.map(from_zero),
            start: start.map(from_zero),
            finish: finish.map(from_zero),
            nodes: self.standing().map(|attempt| attempt.nodes.clone()).unwrap_or_default(),
            placements: self.placements,
            skew: start.zip(first).map_or(Span::ZERO, |(start, first)| start.since(first)),
            why: self.why.filter(|_| state == State::NoPlace).map(|why| why.to_string()),
            state,
        }
    }
}
