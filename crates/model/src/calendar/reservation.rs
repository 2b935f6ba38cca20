//! What a calendar holds: who takes how much, when, and how surely.

use std::fmt;

use minicbor::{CborLen, Decode, Decoder, Encode, decode};

use crate::id::{Epoch, JobId};
use crate::time::{Span, Time};

/// Whose a reservation is: one placement of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub struct Key {
    /// The job.
    #[n(0)]
    pub job: JobId,
    /// The placement.
    #[n(1)]
    pub epoch: Epoch,
}

/// A stretch of time with a beginning and, later, an end that no longer belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, CborLen)]
pub struct Interval {
    #[n(0)]
    start: Time,
    #[n(1)]
    end: Time,
}

/// How sure a reservation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum State {
    /// Kept for a commit, which is refused from `until` on.
    #[n(0)]
    Held {
        /// When the hold ends.
        #[n(0)]
        until: Time,
    },
    /// Does not move: a gang's, or promised.
    #[n(1)]
    Firm,
    /// Waits in the queue, and may shift.
    #[n(2)]
    Soft,
    /// Runs; the interval's end is the planned one.
    #[n(3)]
    Running {
        /// When the job is stopped if it has not ended.
        #[n(0)]
        hard_end: Time,
    },
}

/// An amount taken during an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Reservation<A> {
    /// Whose it is.
    #[n(0)]
    pub key: Key,
    /// When it is planned.
    #[n(1)]
    pub interval: Interval,
    /// How much it takes.
    #[n(2)]
    pub amount: A,
    /// How sure it is.
    #[n(3)]
    pub state: State,
}

impl Interval {
    /// The stretch from `start` to `end`; none if it were empty, or ended [never](Time::NEVER).
    pub fn new(start: Time, end: Time) -> Option<Interval> {
        (start < end && end < Time::NEVER).then_some(Interval { start, end })
    }

    /// The stretch of length `span` from `start` on; none if it were empty, or ended [never](Time::NEVER).
    pub fn starting(start: Time, span: Span) -> Option<Interval> {
        Interval::new(start, start + span)
    }

    /// Its first instant.
    pub const fn start(self) -> Time {
        self.start
    }

    /// The first instant after it.
    pub const fn end(self) -> Time {
        self.end
    }

    /// How long it is.
    pub const fn span(self) -> Span {
        self.end.since(self.start)
    }

    /// Whether an instant belongs to it.
    pub fn contains(self, time: Time) -> bool {
        self.start <= time && time < self.end
    }
}

impl<A> Reservation<A> {
    /// When it takes its amount whatever happens: all of it, or up to the hard end; a soft one, never.
    pub fn firm_interval(&self) -> Option<Interval> {
        match self.state {
            State::Held { .. } | State::Firm => Some(self.interval),
            State::Soft => None,
            State::Running { .. } => Some(Interval { start: self.interval.start, end: self.last_end() }),
        }
    }

    /// When it is over whatever happens.
    pub fn last_end(&self) -> Time {
        match self.state {
            State::Held { .. } | State::Firm | State::Soft => self.interval.end,
            State::Running { hard_end } => hard_end.max(self.interval.end),
        }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

impl<'b, C> Decode<'b, C> for Interval {
    fn decode(decoder: &mut Decoder<'b>, ctx: &mut C) -> Result<Interval, decode::Error> {
        #[derive(Decode)]
        struct Told {
            #[n(0)]
            start: Time,
            #[n(1)]
            end: Time,
        }
        let Told { start, end } = Told::decode(decoder, ctx)?;
        Interval::new(start, end).ok_or_else(|| decode::Error::message("interval: must end after its start"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_read_back_what_they_write() {
        let key = Key { job: JobId::from_number(7), epoch: Epoch(2) };
        let interval = Interval::new(Time::from_secs(1), Time::from_secs(2)).unwrap();
        let until = Time::from_secs(9);
        for state in [State::Held { until }, State::Firm, State::Soft, State::Running { hard_end: until }] {
            let reservation = Reservation { key, interval, amount: 5u32, state };
            let bytes = minicbor::to_vec(&reservation).unwrap();
            assert_eq!(bytes.len(), minicbor::len(&reservation));
            assert_eq!(decode::<Reservation<u32>>(&bytes).unwrap(), reservation);
        }
    }

    #[test]
    fn interval_that_does_not_end_after_its_start_is_refused_from_the_wire() {
        for (start, end) in [(2, 2), (3, 2), (0, u64::MAX)] {
            let bytes = minicbor::to_vec((start, end)).unwrap();
            assert!(decode::<Interval>(&bytes).is_err(), "{start}..{end}");
        }
    }
}
