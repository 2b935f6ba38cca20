//! Time as integers: instants and spans in microseconds, so that sums are exact and the same everywhere.

mod micros;

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

use micros::Micros;

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
pub struct Time(#[n(0)] Micros);

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
pub struct Span(#[n(0)] Micros);

impl Time {
    /// The driver's zero.
    pub const ZERO: Time = Time(Micros::new(0));
    /// Later than anything that happens.
    pub const NEVER: Time = Time(Micros::new(u64::MAX));

    /// The instant this many microseconds after zero.
    #[inline]
    pub const fn from_micros(micros: u64) -> Time {
        Time(Micros::new(micros))
    }

    /// The instant this many milliseconds after zero.
    #[inline]
    pub const fn from_millis(millis: u64) -> Time {
        Time(Micros::new(millis * 1_000))
    }

    /// The instant this many seconds after zero.
    #[inline]
    pub const fn from_secs(secs: u64) -> Time {
        Time(Micros::new(secs * 1_000_000))
    }

    /// Microseconds since zero.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0.get()
    }

    /// Whole seconds since zero.
    #[inline]
    pub const fn as_secs(self) -> u64 {
        self.0.get() / 1_000_000
    }

    /// Seconds since zero, for figures and plots only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0.get() as f64 / 1e6
    }

    /// How long after `earlier` this is; nothing if it is before.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(Micros::new(self.0.get().saturating_sub(earlier.0.get())))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(Micros::new(0));
    /// Longer than anything lasts.
    pub const MAX: Span = Span(Micros::new(u64::MAX));

    /// A span of this many microseconds.
    #[inline]
    pub const fn from_micros(micros: u64) -> Span {
        Span(Micros::new(micros))
    }

    /// A span of this many milliseconds.
    #[inline]
    pub const fn from_millis(millis: u64) -> Span {
        Span(Micros::new(millis * 1_000))
    }

    /// A span of this many seconds.
    #[inline]
    pub const fn from_secs(secs: u64) -> Span {
        Span(Micros::new(secs * 1_000_000))
    }

    /// A span of this many minutes.
    #[inline]
    pub const fn from_mins(mins: u64) -> Span {
        Span::from_secs(mins * 60)
    }

    /// A span of this many hours.
    #[inline]
    pub const fn from_hours(hours: u64) -> Span {
        Span::from_mins(hours * 60)
    }

    /// The length in microseconds.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0.get()
    }

    /// The length in whole seconds.
    #[inline]
    pub const fn as_secs(self) -> u64 {
        self.0.get() / 1_000_000
    }

    /// The length in seconds, for figures and plots only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0.get() as f64 / 1e6
    }

    /// What is left after taking `other` away; nothing if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(Micros::new(self.0.get().saturating_sub(other.0.get())))
    }
}

/// Stops at [`Time::NEVER`].
impl Add<Span> for Time {
    type Output = Time;

    #[inline]
    fn add(self, span: Span) -> Time {
        Time(Micros::new(self.0.get().saturating_add(span.0.get())))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Stops at [`Time::ZERO`].
impl Sub<Span> for Time {
    type Output = Time;

    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(Micros::new(self.0.get().saturating_sub(span.0.get())))
    }
}

/// Stops at [`Span::MAX`].
impl Add for Span {
    type Output = Span;

    #[inline]
    fn add(self, other: Span) -> Span {
        Span(Micros::new(self.0.get().saturating_add(other.0.get())))
    }
}

/// Stops at [`Span::MAX`].
impl Mul<u64> for Span {
    type Output = Span;

    #[inline]
    fn mul(self, times: u64) -> Span {
        Span(Micros::new(self.0.get().saturating_mul(times)))
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
            Time(micros) => write_secs(f, micros.get()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_secs(f, self.0.get())
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
