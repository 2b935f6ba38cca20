//! Configured numbers, checked once and turned into integers that are quick to use: spans, odds, factors.

use rand::Rng;
use shoal_model::{Span, Time};

use super::error::Error;

/// The longest delay that a latency model may give: it keeps delays in 32 bits.
pub const DELAY_MAX: Span = Span::from_hours(1);
/// The latest instant that a configuration may name: a thousand years.
pub const TIME_MAX: Time = Time::from_secs(1_000 * 365 * 86_400);
/// The most that anything may be slowed down.
pub const FACTOR_MAX: f64 = 10_000.0;

/// A probability, in steps of 2⁻³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Odds(u64);

impl Odds {
    /// What never happens.
    pub const NEVER: Odds = Odds(0);
    const ALWAYS: u64 = 1 << 32;

    /// The odds of a configured probability.
    pub fn parse(field: &str, probability: f64) -> Result<Odds, Error> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::field(field, format!("must be a probability from 0 to 1, not {probability}")));
        }
        Ok(Odds((probability * Odds::ALWAYS as f64).round() as u64))
    }

    /// Whether it happens this time; odds of zero draw nothing.
    pub fn hit(self, chance: &mut impl Rng) -> bool {
        self.0 != 0 && u64::from(chance.next_u32()) < self.0
    }

    /// The odds that this or the other happens, where neither knows of the other.
    pub fn or(self, other: Odds) -> Odds {
        Odds(self.0 + other.0 - ((self.0 * (other.0 >> 1)) >> 31))
    }
}

/// A factor of at least one, in steps of 2⁻¹⁶.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u32);

impl Factor {
    /// The factor that changes nothing.
    pub const ONE: Factor = Factor(1 << 16);

    /// The factor of a configured number.
    pub fn parse(field: &str, factor: f64) -> Result<Factor, Error> {
        if !(1.0..=FACTOR_MAX).contains(&factor) {
            return Err(Error::field(
                field,
                format!("must be a factor from 1 to {FACTOR_MAX}, not {factor}"),
            ));
        }
        Ok(Factor((factor * f64::from(Factor::ONE.0)).round() as u32))
    }

    /// The span made longer by this factor.
    pub fn of(self, span: Span) -> Span {
        // Wide enough for any span: a disk may be slow for long.
        let stretched = (u128::from(span.as_micros()) * u128::from(self.0)) >> 16;
        Span::from_micros(u64::try_from(stretched).unwrap_or(u64::MAX))
    }
}

/// A delay of the network from configured milliseconds: microseconds in 32 bits.
pub(crate) fn delay(field: &str, millis: f64) -> Result<u32, Error> {
    let max = DELAY_MAX.as_micros() as f64 / 1e3;
    if !(0.0..=max).contains(&millis) {
        return Err(Error::field(field, format!("must be from 0 to {max} milliseconds, not {millis}")));
    }
    Ok((millis * 1e3).round() as u32)
}

/// An instant from configured seconds.
pub(crate) fn instant(field: &str, secs: f64) -> Result<Time, Error> {
    let max = TIME_MAX.as_secs_f64();
    if !(0.0..=max).contains(&secs) {
        return Err(Error::field(field, format!("must be from 0 to {max} seconds, not {secs}")));
    }
    Ok(Time::from_micros((secs * 1e6).round() as u64))
}

/// A span of more than nothing from configured seconds.
pub(crate) fn span(field: &str, secs: f64) -> Result<Span, Error> {
    let span = instant(field, secs)?.since(Time::ZERO);
    if span == Span::ZERO {
        return Err(Error::field(field, format!("must be longer than nothing, not {secs} seconds")));
    }
    Ok(span)
}

/// A number of the `0..=width` that are equally likely, but for one part in 2³²: no division, no retry.
#[inline]
pub(crate) fn up_to(width: u32, chance: &mut impl Rng) -> u32 {
    scale(width, chance.next_u32())
}

fn scale(width: u32, drawn: u32) -> u32 {
    (((u64::from(width) + 1) * u64::from(drawn)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::streams::{Purpose, stream};

    #[test]
    fn odds_are_met_in_the_long_run() {
        let mut chance = stream(1, Purpose::Carriage, 0);
        let odds = Odds::parse("loss", 0.1).unwrap();
        let hits = (0..100_000).filter(|_| odds.hit(&mut chance)).count();
        assert!((9_700..10_300).contains(&hits), "{hits} of 100,000");
    }

    #[test]
    fn certain_odds_always_hit_and_zero_odds_draw_nothing() {
        let mut chance = stream(1, Purpose::Carriage, 0);
        let certain = Odds::parse("loss", 1.0).unwrap();
        assert!((0..10_000).all(|_| certain.hit(&mut chance)));

        let before = chance.clone();
        assert!(!Odds::NEVER.hit(&mut chance));
        assert_eq!(chance, before);
    }

    #[test]
    fn either_of_two_odds_is_their_sum_without_the_overlap() {
        let half = Odds::parse("loss", 0.5).unwrap();
        let certain = Odds::parse("loss", 1.0).unwrap();
        assert_eq!(half.or(half), Odds::parse("loss", 0.75).unwrap());
        assert_eq!(half.or(certain), certain);
        assert_eq!(certain.or(certain), certain);
        assert_eq!(half.or(Odds::NEVER), half);
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_field() {
        let refusals = [
            Odds::parse("network.loss", 1.5).unwrap_err(),
            Odds::parse("network.loss", f64::NAN).unwrap_err(),
            Factor::parse("faults.slow.factor", 0.5).unwrap_err(),
            delay("network.latency.min_ms", -1.0).unwrap_err(),
            instant("network.partitions.until_s", f64::INFINITY).unwrap_err(),
            span("faults.churn.mean_time_to_repair_s", 0.0).unwrap_err(),
        ];
        let refusals: Vec<String> = refusals.iter().map(Error::to_string).collect();
        assert_eq!(
            refusals,
            [
                "network.loss: must be a probability from 0 to 1, not 1.5",
                "network.loss: must be a probability from 0 to 1, not NaN",
                "faults.slow.factor: must be a factor from 1 to 10000, not 0.5",
                "network.latency.min_ms: must be from 0 to 3600000 milliseconds, not -1",
                "network.partitions.until_s: must be from 0 to 31536000000 seconds, not inf",
                "faults.churn.mean_time_to_repair_s: must be longer than nothing, not 0 seconds",
            ]
        );
    }

    #[test]
    fn factor_stretches_without_wrapping() {
        let factor = Factor::parse("factor", 2.5).unwrap();
        assert_eq!(factor.of(Span::from_millis(10)), Span::from_millis(25));
        assert_eq!(Factor::ONE.of(Span::MAX), Span::MAX);
        assert_eq!(factor.of(Span::MAX), Span::MAX);
    }

    #[test]
    fn every_number_up_to_the_width_comes_up_equally_often() {
        let mut chance = stream(3, Purpose::Carriage, 0);
        let mut counts = [0; 6];
        for _ in 0..60_000 {
            counts[up_to(5, &mut chance) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(up_to(0, &mut chance), 0);
    }

    proptest! {
        #[test]
        fn no_draw_leaves_the_range(width in any::<u32>(), drawn in any::<u32>()) {
            prop_assert!(scale(width, drawn) <= width);
            prop_assert_eq!(scale(width, 0), 0);
            prop_assert_eq!(scale(width, u32::MAX), width);
        }
    }
}
