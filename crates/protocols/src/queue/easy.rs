//! EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001): first come, first served, but a later job may start
//! now if the first in the queue is not delayed by it.
//!
//! When the first cannot start:
//! - its *shadow time* is the earliest end of a running job's limit at which it fits, all jobs that must have ended
//!   by then being gone;
//! - the *extra* is what it leaves free at that time.
//!
//! The others are looked at once, in the order of their arrival. One starts if it fits now and either must end by
//! the shadow time (at that very instant will do) or fits in the extra, which then shrinks by it. Who could do
//! either takes nothing of the extra. Neither kind moves the shadow time, so it is found once for all of them.
//!
//! A job that outlives its limit is taken at its word: the shadow time then lies in the past and nobody ends by it.

use std::collections::VecDeque;

use shoal_model::{Amount, Time};

use super::Task;
use super::running::Running;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Easy<K, A> {
    pub(super) running: Running<K, A>,
    pub(super) waiting: VecDeque<Task<K, A>>,
    /// So many from the front have been refused since a job last ended. They need no second look: time alone brings
    /// the shadow nearer, and starts make less room.
    refused: usize,
}

impl<K: Copy + Ord, A: Amount> Easy<K, A> {
    pub(super) fn new(capacity: A) -> Easy<K, A> {
        Easy { running: Running::new(capacity), waiting: VecDeque::new(), refused: 0 }
    }

    pub(super) fn arrive(&mut self, task: Task<K, A>) {
        self.waiting.push_back(task);
    }

    pub(super) fn finish(&mut self, id: K) -> bool {
        self.refused = 0;
        self.running.finish(id).is_some()
    }

    pub(super) fn withdraw(&mut self, id: K) -> bool {
        self.refused = 0;
        let place = self.waiting.iter().position(|task| task.id == id);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }

    pub(super) fn start(&mut self, now: Time, started: &mut Vec<K>) {
        if self.refused == 0 {
            self.start_in_order(now, started);
        }
        self.backfill(now, started);
    }

    pub(super) fn planned_start(&self, now: Time, id: K) -> Option<Time> {
        let first = self.waiting.front().filter(|first| first.id == id)?;
        Some(self.running.fits_at(now, &first.amount).0.max(now))
    }

    fn start_in_order(&mut self, now: Time, started: &mut Vec<K>) {
        let running = &mut self.running;
        while let Some(task) = self.waiting.pop_front_if(|task| task.amount.fits_in(running.free())) {
            started.push(task.id);
            running.start(task.id, task.amount, now + task.limit);
        }
    }

    fn backfill(&mut self, now: Time, started: &mut Vec<K>) {
        // The first in the queue is never passed over here: it was refused in order.
        let first = self.refused.max(1);
        let mut kept = first;
        let mut shadow = None;
        for place in first..self.waiting.len() {
            let task = &self.waiting[place];
            if task.amount.fits_in(self.running.free()) {
                let (time, extra) =
                    shadow.get_or_insert_with(|| shadow_of(&self.waiting[0], &self.running, now));
                let ends_in_time = now + task.limit <= *time;
                if ends_in_time || task.amount.fits_in(extra) {
                    if !ends_in_time {
                        *extra = extra.minus(&task.amount);
                    }
                    started.push(task.id);
                    self.running.start(task.id, task.amount.clone(), now + task.limit);
                    continue;
                }
            }
            self.waiting.swap(kept, place);
            kept += 1;
        }
        self.waiting.truncate(kept);
        self.refused = self.waiting.len();
    }
}

/// The shadow time and the extra.
fn shadow_of<K: Copy + Ord, A: Amount>(first: &Task<K, A>, running: &Running<K, A>, now: Time) -> (Time, A) {
    let (time, free) = running.fits_at(now, &first.amount);
    (time, free.minus(&first.amount))
}
