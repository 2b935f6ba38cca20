//! In an order of the jobs' own: shortest first (SJF), earliest deadline first (EDF), or by priority; ties by arrival.
//!
//! The first in that order starts as soon as it fits, and nobody before it. Nobody who waits is promised a start: whoever
//! comes later may come before.

use std::cmp::Reverse;

use shoal_model::{Amount, Time};

use super::Task;
use super::running::Running;

/// What the order goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum By {
    /// The shortest limit first.
    Length,
    /// The earliest deadline first; jobs without one come last.
    Deadline,
    /// The highest priority first.
    Priority,
}

impl By {
    /// Smaller comes first.
    pub(super) fn key<K, A>(self, task: &Task<K, A>) -> (u64, Reverse<i16>) {
        match self {
            By::Length => (task.limit.as_micros(), Reverse(0)),
            By::Deadline => (task.wish.deadline.unwrap_or(Time::NEVER).as_micros(), Reverse(0)),
            By::Priority => (0, Reverse(task.wish.priority)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sorted<K, A> {
    pub(super) by: By,
    pub(super) running: Running<K, A>,
    /// In order.
    pub(super) waiting: Vec<Task<K, A>>,
}

impl<K: Copy + Ord, A: Amount> Sorted<K, A> {
    pub(super) fn new(by: By, capacity: A) -> Sorted<K, A> {
        Sorted { by, running: Running::new(capacity), waiting: Vec::new() }
    }

    pub(super) fn arrive(&mut self, task: Task<K, A>) {
        self.waiting.insert(self.place(&task), task);
    }

    /// Where a job would stand that came now.
    pub(super) fn place(&self, task: &Task<K, A>) -> usize {
        let key = self.by.key(task);
        self.waiting.partition_point(|other| self.by.key(other) <= key)
    }

    pub(super) fn finish(&mut self, id: K) -> bool {
        self.running.finish(id).is_some()
    }

    pub(super) fn withdraw(&mut self, id: K) -> bool {
        let place = self.waiting.iter().position(|task| task.id == id);
        place.map(|place| self.waiting.remove(place)).is_some()
    }

    pub(super) fn start(&mut self, now: Time, started: &mut Vec<K>) {
        let fits = self.waiting.iter().position(|task| {
            let fits = task.amount.fits_in(self.running.free());
            if fits {
                started.push(task.id);
                self.running.start(task.id, task.amount.clone(), now + task.limit);
            }
            !fits
        });
        self.waiting.drain(..fits.unwrap_or(self.waiting.len()));
    }
}
