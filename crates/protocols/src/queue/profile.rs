//! What is free over time, planned: a sorted list of steps.
//!
//! A list rather than the calendar's tree: a queue looks from now on, again and again, over a few hundred steps, and
//! keeps one version only.

use shoal_model::{Amount, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Profile<A> {
    /// What is free from each instant to the next; neighbours differ, times rise, the last lasts for ever.
    steps: Vec<(Time, A)>,
}

impl<A: Amount> Profile<A> {
    pub(super) fn new(capacity: A) -> Profile<A> {
        Profile { steps: vec![(Time::ZERO, capacity)] }
    }

    /// Drops what lies before `now`.
    pub(super) fn forget(&mut self, now: Time) {
        let current = self.at(now);
        self.steps.drain(..current);
    }

    /// The earliest start from `from` on, before `before`, with `amount` free for `span` or until `before`.
    ///
    /// For what is already placed at `before`, that is where it could move up to: from there on it has its own room.
    pub(super) fn earliest(&self, from: Time, span: Span, amount: &A, before: Time) -> Option<Time> {
        if from >= before {
            return None;
        }
        let mut start: Option<Time> = None;
        for (time, free) in &self.steps[self.at(from)..] {
            if *time >= before || start.is_some_and(|start| start + span <= *time) {
                return start;
            }
            if !amount.fits_in(free) {
                start = None;
            } else if start.is_none() {
                start = Some(from.max(*time));
            }
        }
        start
    }

    pub(super) fn take(&mut self, from: Time, until: Time, amount: &A) {
        self.change(from, until, |free| free.minus(amount));
    }

    pub(super) fn give(&mut self, from: Time, until: Time, amount: &A) {
        self.change(from, until, |free| free.plus(amount));
    }

    fn change(&mut self, from: Time, until: Time, change: impl Fn(&A) -> A) {
        if from >= until {
            return;
        }
        let first = self.cut(from);
        let end = self.cut(until);
        for (_, free) in &mut self.steps[first..end] {
            *free = change(free);
        }
        for place in [end, first] {
            if place > 0 && self.steps[place - 1].1 == self.steps[place].1 {
                self.steps.remove(place);
            }
        }
    }

    /// Makes a step begin at `time`.
    fn cut(&mut self, time: Time) -> usize {
        match self.steps.binary_search_by_key(&time, |&(start, _)| start) {
            Ok(place) => place,
            Err(place) => {
                let free = self.steps[place.saturating_sub(1)].1.clone();
                self.steps.insert(place, (time, free));
                place
            }
        }
    }

    /// The step that `time` lies in.
    fn at(&self, time: Time) -> usize {
        self.steps.partition_point(|&(start, _)| start <= time).saturating_sub(1)
    }
}
