//! Round trips: how long an answer takes, and how long to wait for the next one.

use shoal_model::Span;

/// What the answers of one node have taught: Jacobson and Karels, 1988, appendix A, in its scaled integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RoundTrip {
    /// Eight times the smoothed round trip, in microseconds.
    smoothed_8: u64,
    /// Four times the smoothed deviation from it, in microseconds.
    deviation_4: u64,
    /// Whether there has been any answer at all.
    known: bool,
}

impl RoundTrip {
    /// Takes in how long one answer took.
    pub(super) fn learn(&mut self, sample: Span) {
        // An hour is far above any sane timeout, and far below where the scaled sums could overflow.
        let sample = sample.min(Span::from_hours(1)).as_micros();
        if !self.known {
            *self = RoundTrip { smoothed_8: sample * 8, deviation_4: sample * 2, known: true };
            return;
        }
        let smoothed = self.smoothed_8 / 8;
        self.smoothed_8 = self.smoothed_8 - smoothed + sample;
        self.deviation_4 = self.deviation_4 - self.deviation_4 / 4 + sample.abs_diff(smoothed);
    }

    /// How long to wait for an answer, smoothed round trip and four deviations; nothing before the first answer.
    pub(super) fn patience(&self) -> Option<Span> {
        self.known.then(|| Span::from_micros(self.smoothed_8 / 8 + self.deviation_4))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    fn taught(samples: &[u64]) -> RoundTrip {
        let mut round_trip = RoundTrip::default();
        samples.iter().for_each(|&sample| round_trip.learn(Span::from_micros(sample)));
        round_trip
    }

    #[test]
    fn first_answer_asks_for_three_times_its_length() {
        assert_eq!(RoundTrip::default().patience(), None);
        assert_eq!(taught(&[100]).patience(), Some(Span::from_micros(300)));
    }

    #[test]
    fn steady_answers_wear_the_deviation_down() {
        let patience = taught(&[100_000; 64]).patience().unwrap().as_micros();
        assert!((100_000..100_010).contains(&patience), "{patience} µs for a steady 100,000 µs");
    }

    #[test]
    fn longest_possible_answers_overflow_nothing() {
        assert_eq!(taught(&[u64::MAX; 64]).patience(), taught(&[3_600_000_000; 64]).patience());
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// The scaled integers stay within their rounding of the textbook's formula.
        #[test]
        fn integers_follow_the_textbook(samples in prop::collection::vec(1..10_000_000u64, 1..50)) {
            let first = samples[0] as f64;
            let (mut smoothed, mut deviation) = (first, first / 2.0);
            for &sample in &samples[1..] {
                deviation += ((sample as f64 - smoothed).abs() - deviation) / 4.0;
                smoothed += (sample as f64 - smoothed) / 8.0;
            }
            let textbook = smoothed + 4.0 * deviation;
            let ours = taught(&samples).patience().unwrap().as_micros() as f64;
            prop_assert!((ours - textbook).abs() < 50.0, "{ours} against {textbook}");
        }
    }
}
