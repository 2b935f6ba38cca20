//! When a job can be forgotten: it has ended, and for a while nothing of it has been on any disk but how it ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shoal_model::{JobId, NodeId, Span, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Key, Node, Record};
use shoal_protocols::scheduling::aria;

use crate::world::{Saw, Sight};

/// How long a job is remembered after the last trace of it: messages that are held back may come meanwhile.
const REMEMBERED: Span = Span::from_mins(10);

/// What is left of jobs on the disks of all machines.
#[derive(Clone, Debug, Default)]
pub struct Lasting {
    /// Where records of which job are, other than how it ended.
    records: BTreeMap<NodeId, BTreeSet<Key>>,
    /// How many there are of each job.
    traces: BTreeMap<JobId, u32>,
    ended: BTreeSet<JobId>,
    /// The jobs of which nothing was left, and since when.
    gone: VecDeque<(Time, JobId)>,
}

impl Lasting {
    /// Takes note of what happened.
    pub fn see(&mut self, sight: &Sight<Node>) {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Owned(owned)) => {
                let job = owned.id();
                if owned.over().is_some() && self.ended.insert(job) && !self.traces.contains_key(&job) {
                    self.gone.push_back((at, job));
                }
            }
            Saw::Save(record) => {
                let key = shoal_protocols::Record::key(record);
                if self.records.entry(node).or_default().insert(key) {
                    *self.traces.entry(job_of(&key)).or_default() += 1;
                }
            }
            Saw::Erase(key) => {
                if self.records.get_mut(&node).is_some_and(|records| records.remove(key)) {
                    self.less(job_of(key), at);
                }
            }
            Saw::DiskLost => {
                for key in self.records.remove(&node).unwrap_or_default() {
                    self.less(job_of(&key), at);
                }
            }
            Saw::Event(_) | Saw::Act(_) | Saw::Done(_) | Saw::Send(..) | Saw::Crash | Saw::Restart => {}
        }
    }

    /// The next job that can be forgotten by now.
    pub fn next(&mut self, now: Time) -> Option<JobId> {
        while let Some((_, job)) = self.gone.pop_front_if(|(since, _)| now.since(*since) > REMEMBERED) {
            // Something may have come back since, which is waited for again.
            if !self.traces.contains_key(&job) && self.ended.remove(&job) {
                return Some(job);
            }
        }
        None
    }

    fn less(&mut self, job: JobId, at: Time) {
        let Some(traces) = self.traces.get_mut(&job) else { return };
        *traces -= 1;
        if *traces == 0 {
            self.traces.remove(&job);
            if self.ended.contains(&job) {
                self.gone.push_back((at, job));
            }
        }
    }
}

fn job_of(key: &Key) -> JobId {
    match key {
        Key::Commit(two_phase::Key::Tenure(job) | two_phase::Key::Lock(job, _)) => *job,
        Key::Owned(job) | Key::Exits(job) => *job,
        Key::Task(task) => task.job,
        Key::Aria(aria::Key::Tenure(job) | aria::Key::Seat(job)) => *job,
    }
}
