//! The jobs that run: what they leave free, and by when each must have ended.

use std::collections::BTreeMap;

use shoal_model::{Amount, Time};

/// Running jobs by the ends of their limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running<K, A> {
    free: A,
    ends: BTreeMap<K, Time>,
    by_end: BTreeMap<(Time, K), A>,
}

impl<K: Copy + Ord, A: Amount> Running<K, A> {
    pub(super) fn new(capacity: A) -> Running<K, A> {
        Running { free: capacity, ends: BTreeMap::new(), by_end: BTreeMap::new() }
    }

    /// What no running job has.
    pub(super) fn free(&self) -> &A {
        &self.free
    }

    /// Each running job's end and what it has, by end.
    pub(super) fn by_end(&self) -> impl Iterator<Item = (Time, &A)> {
        self.by_end.iter().map(|(&(end, _), amount)| (end, amount))
    }

    /// Each running job and its end.
    pub(super) fn ends(&self) -> impl Iterator<Item = (K, Time)> + '_ {
        self.ends.iter().map(|(&id, &end)| (id, end))
    }

    /// What a running job has.
    pub(super) fn amount(&self, id: K) -> Option<&A> {
        self.by_end.get(&(*self.ends.get(&id)?, id))
    }

    pub(super) fn start(&mut self, id: K, amount: A, end: Time) {
        self.free = self.free.minus(&amount);
        let twin = self.ends.insert(id, end);
        assert!(twin.is_none(), "a job was started that runs already");
        self.by_end.insert((end, id), amount);
    }

    /// Takes a job out; tells by when it had to end and what it had.
    pub(super) fn finish(&mut self, id: K) -> Option<(Time, A)> {
        let end = self.ends.remove(&id)?;
        let amount = self.by_end.remove(&(end, id)).expect("a running job has an end");
        self.free = self.free.plus(&amount);
        Some((end, amount))
    }

    /// When `amount` is free if every job runs to its limit, and all that is free then; before `now` only if a job
    /// outlives its limit.
    pub(super) fn fits_at(&self, now: Time, amount: &A) -> (Time, A) {
        let mut free = self.free.clone();
        if amount.fits_in(&free) {
            return (now, free);
        }
        let mut ends = self.by_end().peekable();
        while let Some((end, freed)) = ends.next() {
            free = free.plus(freed);
            let all_of_this_instant = ends.peek().is_none_or(|&(next, _)| next > end);
            if all_of_this_instant && amount.fits_in(&free) {
                return (end, free);
            }
        }
        unreachable!("what fits the node fits once every job has ended")
    }

    /// Whether a job that should have ended by `now` runs on.
    pub(super) fn overstays(&self, now: Time) -> bool {
        self.by_end.first_key_value().is_some_and(|(&(end, _), _)| end <= now)
    }

    /// Counts on the jobs that outlive their limits until `end`.
    pub(super) fn extend_overstaying(&mut self, now: Time, end: Time) {
        while let Some(entry) = self.by_end.first_entry() {
            let &(was, id) = entry.key();
            if was > now {
                break;
            }
            let amount = entry.remove();
            self.ends.insert(id, end);
            self.by_end.insert((end, id), amount);
        }
    }
}
