//! First come, first served: the first in the queue starts as soon as it fits, and nobody before it.

use std::collections::{BTreeMap, VecDeque};

use shoal_model::{Amount, Time};

use super::Task;
use super::running::Running;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fcfs<K, A> {
    pub(super) running: Running<K, A>,
    pub(super) waiting: VecDeque<Task<K, A>>,
}

impl<K: Copy + Ord, A: Amount> Fcfs<K, A> {
    pub(super) fn new(capacity: A) -> Fcfs<K, A> {
        Fcfs { running: Running::new(capacity), waiting: VecDeque::new() }
    }

    pub(super) fn arrive(&mut self, task: Task<K, A>) {
        self.waiting.push_back(task);
    }

    pub(super) fn finish(&mut self, id: K) -> bool {
        self.running.finish(id).is_some()
    }

    pub(super) fn withdraw(&mut self, id: K) -> bool {
        let place = self.waiting.iter().position(|task| task.id == id);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }

    pub(super) fn start(&mut self, now: Time, started: &mut Vec<K>) {
        let running = &mut self.running;
        while let Some(task) = self.waiting.pop_front_if(|task| task.amount.fits_in(running.free())) {
            started.push(task.id);
            running.start(task.id, task.amount, now + task.limit);
        }
    }

    /// Plays the queue up to the job, each running to its limit.
    pub(super) fn planned_start(&self, now: Time, id: K) -> Option<Time> {
        let place = self.waiting.iter().position(|task| task.id == id)?;
        let mut free = self.running.free().clone();
        let mut ends: BTreeMap<Time, A> = BTreeMap::new();
        let release = |ends: &mut BTreeMap<Time, A>, end, amount: &A| {
            let released = ends.entry(end).or_default();
            *released = released.plus(amount);
        };
        self.running.by_end().for_each(|(end, amount)| release(&mut ends, end, amount));
        let mut start = now;
        for task in self.waiting.range(..=place) {
            while !task.amount.fits_in(&free) {
                let (end, amount) = ends.pop_first()?;
                free = free.plus(&amount);
                start = start.max(end);
            }
            free = free.minus(&task.amount);
            release(&mut ends, start + task.limit, &task.amount);
        }
        Some(start)
    }
}
