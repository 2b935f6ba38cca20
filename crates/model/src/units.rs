//! Quantities as people write them: spans, instants, sizes and counts with fractions.
//!
//! One grammar for the command line, job files and the HTTP API. What is printed reads back as the same value;
//! what could be read in two ways is refused, and the error says how to write it.

mod count;
mod instant;
mod size;
mod span;

use std::fmt;

pub use count::{MAX_COUNT, Thousandths};
pub use instant::{MAX_TIME, TimeText, parse_time};
pub use size::{About, MAX_SIZE, Size};
pub use span::{MAX_SPAN, SpanText, parse_span};

/// What is wrong with a text that should be a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {quantity}: {problem} at column {column}; expected {}", .quantity.example())]
pub struct UnitError {
    text: Box<str>,
    quantity: Quantity,
    /// Counts characters from 1.
    column: usize,
    problem: Problem,
}

impl UnitError {
    /// What is wrong, apart from where.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Where it is wrong: the number of the character, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

/// What a text should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A length of time.
    Span,
    /// An instant.
    Time,
    /// Bytes.
    Size,
    /// A count with up to three decimals.
    Count,
}

/// The ways in which a text can fail to be a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing, where a number should be, or something that is no digit.
    #[error("no number")]
    NoNumber,
    /// A number without its unit.
    #[error("no unit after the number")]
    NoUnit,
    /// A unit that nobody knows here.
    #[error("unknown unit `{0}`")]
    UnknownUnit(Box<str>),
    /// Units that do not go from large to small.
    #[error("`{0}` after a unit that is not larger")]
    UnitOrder(Box<str>),
    /// More decimals than the quantity can hold.
    #[error("more decimals than can be kept")]
    TooPrecise,
    /// A number that no grid can mean.
    #[error("more than {0}")]
    TooLarge(&'static str),
    /// Minutes and seconds, or hours and minutes.
    #[error("two numbers could be hours and minutes or minutes and seconds,")]
    Unclear,
    /// A part beyond what it counts up to: 61 minutes, the 31st of June.
    #[error("{0} out of range")]
    OutOfRange(&'static str),
    /// A character that does not belong there.
    #[error("expected {0}")]
    Expected(&'static str),
}

impl Quantity {
    fn example(self) -> &'static str {
        match self {
            Quantity::Span => {
                "a number and a unit (d, h, m, s, ms, us) or hours:minutes:seconds, as in 1h30m, 90s or 1:30:00"
            }
            Quantity::Time => {
                "a date, a time and a zone, as in 2026-11-15T18:00:00Z or 2026-11-15T18:00+01:00"
            }
            Quantity::Size => {
                "a number and a unit (K, M, G, T; KiB, MiB, GiB, TiB; kB, MB, GB, TB), as in 8GiB"
            }
            Quantity::Count => "a number with at most three decimals, as in 4 or 0.5",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantity::Span => "length of time",
            Quantity::Time => "point in time",
            Quantity::Size => "size",
            Quantity::Count => "count",
        })
    }
}

/// How much of a wrong text an error repeats, in characters.
const TEXT_IN_ERRORS_MAX: usize = 60;

/// A text that may be too long to repeat.
pub(crate) fn clipped(text: &str) -> Box<str> {
    match text.char_indices().nth(TEXT_IN_ERRORS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Reads a text from left to right and knows where it stands when something is wrong.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    quantity: Quantity,
}

impl<'a> Reader<'a> {
    fn new(quantity: Quantity, text: &'a str) -> Reader<'a> {
        let at = text.len() - text.trim_start().len();
        Reader { text: text.trim_end(), at, quantity }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_done(&self) -> bool {
        self.rest().is_empty()
    }

    fn wrong(&self, problem: Problem) -> UnitError {
        self.wrong_at(self.at, problem)
    }

    fn wrong_at(&self, at: usize, problem: Problem) -> UnitError {
        let column = self.text.get(..at).unwrap_or_default().chars().count() + 1;
        UnitError { text: clipped(self.text), quantity: self.quantity, column, problem }
    }

    /// The longest run of such characters from here on; it may be empty.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip_spaces(&mut self) {
        self.take_while(|c| c == ' ');
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// A whole number of at most 18 digits: more is absurd for everything measured here, and 18 fit in 64 bits.
    fn whole(&mut self) -> Result<u64, UnitError> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.wrong(Problem::NoNumber));
        }
        let significant = digits.trim_start_matches('0');
        if significant.len() > 18 {
            return Err(self.wrong_at(start, Problem::TooLarge("18 digits")));
        }
        Ok(significant.parse().unwrap_or(0))
    }

    fn decimal(&mut self) -> Result<Decimal, UnitError> {
        let whole = self.whole()?;
        let start = self.at;
        if !self.eat('.') {
            return Ok(Decimal { whole, fraction: 0, decimals: 0 });
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.wrong(Problem::NoNumber));
        }
        let kept = digits.trim_end_matches('0');
        if kept.len() > 12 {
            return Err(self.wrong_at(start, Problem::TooPrecise));
        }
        Ok(Decimal { whole, fraction: kept.parse().unwrap_or(0), decimals: kept.len() as u32 })
    }
}

/// A number as written: `1.05` is 1 and 5 of 10².
#[derive(Clone, Copy)]
struct Decimal {
    whole: u64,
    fraction: u64,
    decimals: u32,
}

impl Decimal {
    /// How many of the small unit, and whether a part of one is left over.
    fn times(self, unit: u64) -> (u128, bool) {
        let scale = 10_u128.pow(self.decimals);
        let fraction = u128::from(self.fraction) * u128::from(unit);
        (u128::from(self.whole) * u128::from(unit) + fraction / scale, fraction % scale != 0)
    }
}

/// Writes `value / 10^decimals` without trailing zeros.
fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, decimals: u32) -> fmt::Result {
    let scale = 10_u64.pow(decimals);
    write!(f, "{}", value / scale)?;
    if value.is_multiple_of(scale) {
        return Ok(());
    }
    let fraction = format!("{:0width$}", value % scale, width = decimals as usize);
    write!(f, ".{}", fraction.trim_end_matches('0'))
}

/// Serde for what is written as a text: its `Display` and its `FromStr`.
macro_rules! serde_as_text {
    ($type:ty, $expected:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;
