//! Time as integers: instants and spans in microseconds, so that sums are exact and the same everywhere.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

/// An instant: microseconds since the driver's zero (the Unix epoch on a real node, the start of a simulation).
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    CborLen,
    Serialize,
    Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Time(#[n(0)] u64);

/// A length of time in microseconds, never negative.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    CborLen,
    Serialize,
    Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Span(#[n(0)] u64);

impl Time {
    /// The driver's zero.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant this many microseconds after zero.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// The instant this many milliseconds after zero.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis * 1_000)
    }

    /// The instant this many seconds after zero.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs * 1_000_000)
    }

    /// Microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since zero.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since zero, for figures and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything lasts.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of this many microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    /// A span of this many milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis * 1_000)
    }

    /// A span of this many seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs * 1_000_000)
    }

    /// A span of this many minutes.
    pub const fn from_mins(mins: u64) -> Span {
        Span::from_secs(mins * 60)
    }

    /// A span of this many hours.
    pub const fn from_hours(hours: u64) -> Span {
        Span::from_mins(hours * 60)
    }

    /// The length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The length in whole seconds.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The length in seconds, for figures and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// What is left after taking `other` away; nothing if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

/// Stops at [`Time::NEVER`].
impl Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Stops at [`Time::ZERO`].
impl Sub<Span> for Time {
    type Output = Time;

    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

/// Stops at [`Span::MAX`].
impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

/// Stops at [`Span::MAX`].
impl Mul<u64> for Span {
    type Output = Span;

    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

/// Seconds with as many decimals as needed, at least one: `0.0s`, `12.5s`, `1.000001s`.
fn write_secs(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let kept = text.trim_end_matches('0');
    let zero = if kept.ends_with('.') { "0" } else { "" };
    write!(f, "{kept}{zero}s")
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::NEVER => f.write_str("never"),
            Time(micros) => write_secs(f, micros),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_secs(f, self.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_ends_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::from_secs(1) - Span::from_secs(2), Time::ZERO);
        assert_eq!(Time::from_secs(1).since(Time::from_secs(2)), Span::ZERO);
        assert_eq!(Span::MAX * 2, Span::MAX);
    }

    #[test]
    fn seconds_print_with_the_decimals_they_need() {
        assert_eq!(Time::from_secs(1).to_string(), "1.0s");
        assert_eq!(Time::from_micros(1_000_001).to_string(), "1.000001s");
        assert_eq!(Span::from_millis(12_500).to_string(), "12.5s");
    }
}
