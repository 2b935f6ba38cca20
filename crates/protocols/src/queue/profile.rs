//! What is free over time, planned: a sorted list of steps.
//!
//! A list rather than the calendar's tree: a queue looks from now on, again and again, over some hundreds of steps,
//! and keeps one version only. Times and amounts lie apart, since most of a search looks at amounts alone.

use shoal_model::{Amount, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Profile<A> {
    /// Where what is free changes, rising.
    times: Vec<Time>,
    /// What is free from each of these instants to the next, the last for ever; neighbours differ.
    free: Vec<A>,
}

impl<A: Amount> Profile<A> {
    pub(super) fn new(capacity: A) -> Profile<A> {
        Profile { times: vec![Time::ZERO], free: vec![capacity] }
    }

    /// Drops what lies before `now`.
    pub(super) fn forget(&mut self, now: Time) {
        let current = self.at(now);
        self.times.drain(..current);
        self.free.drain(..current);
    }

    /// The earliest start from `from` on, before `before`, with `amount` free for `span` or until `before`.
    ///
    /// For what is already placed at `before`, that is where it could move up to: from there on it has its own room.
    pub(super) fn earliest(&self, from: Time, span: Span, amount: &A, before: Time) -> Option<Time> {
        let free = &self.free[..self.times.partition_point(|&time| time < before)];
        let mut place = self.at(from);
        loop {
            place += free.get(place..)?.iter().position(|free| amount.fits_in(free))?;
            let start = from.max(self.times[place]);
            let blocked = free[place..].iter().position(|free| !amount.fits_in(free));
            match blocked.map(|steps| place + steps) {
                Some(blocked) if self.times[blocked] < start + span => place = blocked,
                Some(_) | None => return Some(start).filter(|&start| start < before),
            }
        }
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
        for free in &mut self.free[first..end] {
            *free = change(free);
        }
        for place in [end, first] {
            if place > 0 && self.free[place - 1] == self.free[place] {
                self.times.remove(place);
                self.free.remove(place);
            }
        }
    }

    /// Makes a step begin at `time`.
    fn cut(&mut self, time: Time) -> usize {
        match self.times.binary_search(&time) {
            Ok(place) => place,
            Err(place) => {
                let free = self.free[place.saturating_sub(1)].clone();
                self.times.insert(place, time);
                self.free.insert(place, free);
                place
            }
        }
    }

    /// The step that `time` lies in.
    fn at(&self, time: Time) -> usize {
        self.times.partition_point(|&start| start <= time).saturating_sub(1)
    }
}
