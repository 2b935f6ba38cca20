//! What a node asked to be reminded of, earliest first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use shoal_model::Time;

/// Timers by (time, count): those of one time come out in the order they were asked for.
pub(super) struct Timers<T> {
    heap: BinaryHeap<Reverse<Due<T>>>,
    count: u64,
}

struct Due<T> {
    at: Time,
    count: u64,
    timer: T,
}

impl<T> Timers<T> {
    pub fn new() -> Timers<T> {
        Timers { heap: BinaryHeap::new(), count: 0 }
    }

    pub fn put(&mut self, at: Time, timer: T) {
        self.count += 1;
        if self.heap.len() == self.heap.capacity() {
            // A node with a long queue has hundreds of thousands: twice as much room would be megabytes of nothing.
            self.heap.reserve_exact(self.heap.len() / 8 + 64);
        }
        self.heap.push(Reverse(Due { at, count: self.count, timer }));
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    /// Takes the next one out, with its time, if it is due by now.
    pub fn take_due(&mut self, now: Time) -> Option<(Time, T)> {
        self.next().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse(due)| (due.at, due.timer))
    }
}

impl<T> Due<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.count)
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Due<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Due<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Due<T>) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_out_by_time_then_as_asked_and_never_early() {
        let mut timers = Timers::new();
        for (at, name) in [(20, 'c'), (10, 'a'), (30, 'e'), (20, 'd'), (10, 'b')] {
            timers.put(Time::from_secs(at), name);
        }
        let now = Time::from_secs(20);
        let out: String = std::iter::from_fn(|| timers.take_due(now)).map(|(_, name)| name).collect();
        assert_eq!(out, "abcd");
        assert_eq!(timers.next(), Some(Time::from_secs(30)));
    }
}
