//! Counts with fractions: `4` cores, `0.25` of a GPU.

use std::fmt;
use std::str::FromStr;

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Problem, Quantity, Reader, UnitError, write_decimal};

/// The largest count that is read: a million.
pub const MAX_COUNT: Thousandths = Thousandths(1_000_000_000);

/// A count of something that can be shared, in thousandths, so that sums are exact.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Thousandths(#[n(0)] u32);

impl Thousandths {
    /// Nothing.
    pub const ZERO: Thousandths = Thousandths(0);
    /// One whole.
    pub const ONE: Thousandths = Thousandths(1_000);

    /// So many thousandths.
    pub const fn new(thousandths: u32) -> Thousandths {
        Thousandths(thousandths)
    }

    /// So many wholes; stops at the largest count there is.
    pub const fn whole(count: u32) -> Thousandths {
        Thousandths(count.saturating_mul(1_000))
    }

    /// The number of thousandths.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Thousandths {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Thousandths, UnitError> {
        let mut reader = Reader::new(Quantity::Count, text);
        let number = reader.decimal()?;
        if !reader.is_done() {
            return Err(reader.wrong(Problem::Expected("the end")));
        }
        match number.times(1_000) {
            (_, true) => Err(reader.wrong_at(0, Problem::TooPrecise)),
            (count, false) if count > u128::from(MAX_COUNT.0) => {
                Err(reader.wrong_at(0, Problem::TooLarge("a million")))
            }
            (count, false) => Ok(Thousandths(count as u32)),
        }
    }
}

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, u64::from(self.0), 3)
    }
}

impl fmt::Debug for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A plain number: whole where it can be.
impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 1_000 {
            0 => serializer.serialize_u32(self.0 / 1_000),
            _ => serializer.serialize_f64(f64::from(self.0) / 1e3),
        }
    }
}

/// From a number or a text.
impl<'de> Deserialize<'de> for Thousandths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Thousandths, D::Error> {
        struct Count;
        impl de::Visitor<'_> for Count {
            type Value = Thousandths;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, as in 4 or 0.5")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Thousandths, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Thousandths, E> {
                self.visit_str(&count.to_string())
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Thousandths, E> {
                self.visit_str(&count.to_string())
            }

            // A float prints as the shortest text that reads back as itself: 0.1 is `0.1`, one tenth exactly.
            fn visit_f64<E: de::Error>(self, count: f64) -> Result<Thousandths, E> {
                self.visit_str(&count.to_string())
            }
        }
        deserializer.deserialize_any(Count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_keep_three_decimals_and_refuse_more() {
        assert_eq!("0.25".parse(), Ok(Thousandths(250)));
        assert_eq!("0.2500".parse(), Ok(Thousandths(250)));
        assert_eq!(" 4 ".parse(), Ok(Thousandths(4_000)));
        let refused = [
            ("", 1, Problem::NoNumber),
            ("four", 1, Problem::NoNumber),
            ("0.0001", 1, Problem::TooPrecise),
            ("1000001", 1, Problem::TooLarge("a million")),
            ("4 cores", 2, Problem::Expected("the end")),
        ];
        for (text, column, problem) in refused {
            let error = text.parse::<Thousandths>().unwrap_err();
            assert_eq!((error.column(), error.problem()), (column, &problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn counts_read_back_what_they_print(count in 0..=MAX_COUNT.0) {
            let count = Thousandths(count);
            prop_assert_eq!(count.to_string().parse(), Ok(count));
            let json = serde_json::to_string(&count).unwrap();
            prop_assert_eq!(serde_json::from_str::<Thousandths>(&json).unwrap(), count);
        }
    }
}
