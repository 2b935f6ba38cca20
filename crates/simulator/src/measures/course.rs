//! A run over time: what was asked for, what was done and what was said.
//!
//! Time is cut into bins. There are never more than a limit: when one more is needed, two become one. What lasts is
//! spread over the bins that it touches, and nothing is lost in between: sums are those of the whole run.

use std::collections::BTreeMap;

use shoal_model::{Span, Time};

/// The most bins.
const BINS_MAX: usize = 512;
/// The width of a bin as long as the run is short.
const WIDTH_LEAST: Span = Span::from_mins(1);

/// A run over time; times count from the workload's zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The width of a bin.
    pub width: Span,
    /// The bins from zero on, without a gap.
    pub bins: Vec<Bin>,
    /// When the run ended; the last bin may reach beyond it.
    pub end: Time,
    /// The grid's cores, in thousandths.
    pub cores: u128,
    zero: Time,
}

/// A piece of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Node-microseconds asked for by the jobs that were submitted in it.
    pub asked: u128,
    /// Node-microseconds in which tasks ran.
    pub busy: u128,
    /// Messages sent, by kind.
    pub sent: BTreeMap<&'static str, u128>,
}

impl Course {
    /// A course without bins; `zero` is the world's time at which it begins.
    pub(super) fn new(zero: Time, cores: u128) -> Course {
        Course { width: WIDTH_LEAST, bins: Vec::new(), end: Time::ZERO, cores, zero }
    }

    /// When the bin of this number begins, in seconds.
    pub fn start_s(&self, bin: usize) -> f64 {
        self.width.as_secs_f64() * bin as f64
    }

    /// How much of a bin's time had passed when the run ended, in seconds.
    pub fn length_s(&self, bin: usize) -> f64 {
        (self.end.as_secs_f64() - self.start_s(bin)).clamp(0.0, self.width.as_secs_f64())
    }

    pub(super) fn ask(&mut self, at: Time, area: u128) {
        self.spread(at, at, area, |bin| &mut bin.asked);
    }

    pub(super) fn work(&mut self, from: Time, to: Time) {
        self.spread(from, to, to.since(from).as_micros().into(), |bin| &mut bin.busy);
    }

    pub(super) fn say(&mut self, from: Time, to: Time, kind: &'static str, messages: u64) {
        self.spread(from, to, messages.into(), |bin| bin.sent.entry(kind).or_default());
    }

    /// The run ends now, in the world's time; what would come later is cut off.
    pub(super) fn finish(&mut self, now: Time) {
        self.end = Time::ZERO + now.since(self.zero);
        let bins = self.end.as_micros().div_ceil(self.width.as_micros());
        self.bins.resize_with(bins as usize, Bin::default);
    }

    /// Spreads an amount evenly over a time; what was before zero has no place.
    fn spread(&mut self, from: Time, to: Time, amount: u128, place: impl Fn(&mut Bin) -> &mut u128) {
        if to < self.zero || amount == 0 {
            return;
        }
        if from == to {
            let bin = self.bin_at(from);
            *place(&mut self.bins[bin]) += amount;
            return;
        }
        let (begin, total) = (from.max(self.zero), u128::from(to.since(from).as_micros()));
        let until = |at: Time| amount * u128::from(at.since(from).as_micros()) / total;
        let last = self.bin_at(to);
        for bin in self.bin_at(begin)..=last {
            let edge = |bin: usize| self.zero + self.width * bin as u64;
            let part = until(edge(bin + 1).min(to)) - until(edge(bin).max(begin));
            if part > 0 {
                *place(&mut self.bins[bin]) += part;
            }
        }
    }

    /// The bin of a time in the world, made if there is none.
    fn bin_at(&mut self, at: Time) -> usize {
        let since = at.since(self.zero).as_micros();
        while since / self.width.as_micros() >= BINS_MAX as u64 {
            self.halve();
        }
        let bin = (since / self.width.as_micros()) as usize;
        if bin >= self.bins.len() {
            self.bins.resize_with(bin + 1, Bin::default);
        }
        bin
    }

    fn halve(&mut self) {
        let mut bins = std::mem::take(&mut self.bins).into_iter();
        while let Some(mut one) = bins.next() {
            if let Some(other) = bins.next() {
                one.asked += other.asked;
                one.busy += other.busy;
                for (kind, messages) in other.sent {
                    *one.sent.entry(kind).or_default() += messages;
                }
            }
            self.bins.push(one);
        }
        self.width = self.width * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mins: u64) -> Time {
        Time::ZERO + Span::from_mins(mins)
    }

    fn busy(course: &Course) -> Vec<u128> {
        course.bins.iter().map(|bin| bin.busy / 60_000_000).collect()
    }

    #[test]
    fn work_is_spread_over_the_bins_it_touches() {
        let mut course = Course::new(at(10), 1_000);
        course.work(at(11), at(13));
        course.work(at(12), at(13));
        course.ask(at(12), 7);
        course.finish(at(14));
        assert_eq!(busy(&course), [0, 1, 2, 0]);
        assert_eq!(course.bins[2].asked, 7);
        assert_eq!(course.length_s(3), 60.0);
    }

    #[test]
    fn what_was_before_zero_is_left_out_in_proportion() {
        let mut course = Course::new(at(10), 1_000);
        course.say(at(0), at(20), "Hello", 20);
        course.say(at(0), at(9), "Hello", 9);
        assert_eq!(course.bins.iter().filter_map(|bin| bin.sent.get("Hello")).sum::<u128>(), 10);
    }

    #[test]
    fn bins_are_bounded_and_nothing_is_lost() {
        let mut course = Course::new(Time::ZERO, 1_000);
        for hour in 0..20_000 {
            course.work(at(60 * hour), at(60 * hour + 61));
            course.say(at(60 * hour), at(60 * hour + 60), "Hello", 7);
        }
        assert!(course.bins.len() <= BINS_MAX);
        assert_eq!(course.bins.iter().map(|bin| bin.busy).sum::<u128>(), 20_000 * 61 * 60_000_000);
        assert_eq!(course.bins.iter().map(|bin| bin.sent["Hello"]).sum::<u128>(), 140_000);
    }

    #[test]
    fn a_course_ends_with_its_run() {
        let mut course = Course::new(Time::ZERO, 1_000);
        course.ask(at(90), 5);
        course.finish(at(2) + Span::from_secs(30));
        assert_eq!(course.bins.len(), 3);
        assert_eq!((course.length_s(0), course.length_s(2), course.length_s(7)), (60.0, 30.0, 0.0));
    }
}
