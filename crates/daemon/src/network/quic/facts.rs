//! What is known of a peer from speaking with it: how far it is, how late its clock, how much was said.

use std::collections::VecDeque;

use shoal_model::envelope::PublicKey;
use shoal_model::{Name, NodeId, Span, Time};

/// Samples of a peer's clock that are looked at.
const SAMPLES: usize = 8;

/// One exchange of clock readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// There and back, without the time that the peer took.
    pub round_trip: Span,
    /// By how many microseconds the peer's clock is ahead of ours; off by at most half the round trip.
    pub ahead_us: i64,
}

impl Sample {
    /// Of four readings: ours at the start, the peer's two, ours at the end. `None` if they cannot belong together.
    pub fn of(said: Time, heard: Time, answered: Time, now: Time) -> Option<Sample> {
        let [said, heard, answered, now] =
            [said, heard, answered, now].map(|time| i128::from(time.as_micros()));
        let round_trip = (now - said) - (answered - heard);
        let ahead = ((heard - said) + (answered - now)) / 2;
        if now < said || answered < heard {
            return None;
        }
        // Clocks tick in whole microseconds, and not all at once.
        let round_trip = Span::from_micros(u64::try_from(round_trip.max(0)).ok()?);
        Some(Sample { round_trip, ahead_us: i64::try_from(ahead).ok()? })
    }
}

/// The last samples of one peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(VecDeque<Sample>);

impl Samples {
    pub fn add(&mut self, sample: Sample) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// The quickest exchange: it waited least on its way, so its clock reading is the best.
    pub fn best(&self) -> Option<Sample> {
        self.0.iter().min_by_key(|sample| sample.round_trip).copied()
    }
}

/// What is known of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFacts {
    /// Who.
    pub node: NodeId,
    /// Its key.
    pub key: Option<PublicKey>,
    /// Whose it is.
    pub organisation: Option<Name>,
    /// Where it is.
    pub addresses: Vec<std::net::SocketAddr>,
    /// Whether there is a connection now.
    pub connected: bool,
    /// There and back, of the quickest of the last exchanges.
    pub round_trip: Option<Span>,
    /// By how many microseconds its clock is ahead of ours.
    pub ahead_us: Option<i64>,
    /// Bytes of datagrams received from it.
    pub bytes_in: u64,
    /// Bytes of datagrams sent to it.
    pub bytes_out: u64,
    /// When something was last heard of it.
    pub last_heard: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_readings_tell_the_round_trip_and_the_clock() {
        let at = Time::from_millis;
        // The peer is 500 ms ahead, each way takes 10 ms, and it thinks for 5 ms.
        let sample = Sample::of(at(1_000), at(1_510), at(1_515), at(1_025)).unwrap();
        assert_eq!(sample, Sample { round_trip: Span::from_millis(20), ahead_us: 500_000 });
        let behind = Sample::of(at(1_000), at(510), at(515), at(1_025)).unwrap();
        assert_eq!(behind.ahead_us, -500_000);
    }

    #[test]
    fn readings_that_cannot_be_are_no_sample() {
        let at = Time::from_millis;
        assert_eq!(Sample::of(at(2), at(1), at(1), at(1)), None);
        assert_eq!(Sample::of(at(1), at(2), at(1), at(2)), None);
        assert!(Sample::of(Time::ZERO, Time::NEVER, Time::NEVER, at(1)).is_none_or(|far| far.ahead_us > 0));
    }

    #[test]
    fn quickest_of_the_last_exchanges_counts() {
        let mut samples = Samples::default();
        assert_eq!(samples.best(), None);
        let sample = |millis, ahead_us| Sample { round_trip: Span::from_millis(millis), ahead_us };
        for one in [sample(1, 1), sample(50, 2), sample(20, 3)] {
            samples.add(one);
        }
        assert_eq!(samples.best(), Some(sample(1, 1)));
        for _ in 0..SAMPLES - 1 {
            samples.add(sample(30, 4));
        }
        assert_eq!(samples.best(), Some(sample(20, 3)), "an old one is forgotten");
    }
}
