//! Sizes of memory and disk: `8GiB`, `512M`, `1.5TB`.
//!
//! Kept in bytes, so that `1.5TB` asked for and `1.5TB` offered are the same number; mebibytes would have to be
//! rounded up for the one and down for the other. `K`, `M`, `G`, `T`, `P` alone count in 1024s as in Slurm, and so
//! do `KiB`, `MiB` …; `kB`, `MB` … count in 1000s. Upper and lower case are alike.

use std::fmt;
use std::str::FromStr;

use minicbor::{CborLen, Decode, Encode};

use super::{Problem, Quantity, Reader, UnitError, serde_as_text, write_decimal};

/// The largest size that is read: 8 PiB, which JSON readers can still count exactly.
pub const MAX_SIZE: Size = Size(1 << 53);

/// A number of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Size(#[n(0)] u64);

/// A size rounded to hundredths of its binary unit, for messages in which the exact bytes would be noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Rounded up: what a job needs.
    Up(Size),
    /// Rounded down: what a machine has.
    Down(Size),
}

const BINARY: [(u64, &str); 6] =
    [(1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
const DECIMAL: [(u64, &str); 5] = [
    (1_000_000_000_000_000, "PB"),
    (1_000_000_000_000, "TB"),
    (1_000_000_000, "GB"),
    (1_000_000, "MB"),
    (1_000, "kB"),
];

impl Size {
    /// No bytes.
    pub const ZERO: Size = Size(0);

    /// This many bytes.
    pub const fn from_bytes(bytes: u64) -> Size {
        Size(bytes)
    }

    /// This many mebibytes; stops at the largest 64-bit number of bytes.
    pub const fn from_mib(mib: u64) -> Size {
        Size(mib.saturating_mul(1 << 20))
    }

    /// This many gibibytes; stops at the largest 64-bit number of bytes.
    pub const fn from_gib(gib: u64) -> Size {
        Size(gib.saturating_mul(1 << 30))
    }

    /// The number of bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Size, UnitError> {
        let mut reader = Reader::new(Quantity::Size, text);
        let number = reader.decimal()?;
        reader.skip_spaces();
        let unit_at = reader.at;
        let name = reader.take_while(char::is_alphabetic);
        if !reader.is_done() {
            return Err(reader.wrong(Problem::Expected("the end")));
        }
        let unit = match name.to_ascii_lowercase().as_str() {
            "" if number.whole == 0 && number.fraction == 0 => 1,
            "" => return Err(reader.wrong(Problem::NoUnit)),
            "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "p" | "pib" => 1 << 50,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "pb" => 1_000_000_000_000_000,
            _ => return Err(reader.wrong_at(unit_at, Problem::UnknownUnit(super::clipped(name)))),
        };
        let (bytes, rest) = number.times(unit);
        // `0.1GiB` is not a whole number of bytes: a byte more, so that what was asked for is there.
        let bytes = bytes + u128::from(rest);
        if bytes > u128::from(MAX_SIZE.0) {
            return Err(reader.wrong_at(0, Problem::TooLarge("8 PiB")));
        }
        Ok(Size(bytes as u64))
    }
}

/// Exact, in the largest unit that needs at most three decimals: `8 GiB`, `1.5 TB`, `16309249 KiB`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |&(unit, _): &(u64, &str)| {
            self.0 >= unit && (u128::from(self.0) * 1_000).is_multiple_of(u128::from(unit))
        };
        let pairs = BINARY.iter().zip(DECIMAL.iter().map(Some).chain([None]));
        let found =
            pairs.flat_map(|(binary, decimal)| [Some(binary), decimal]).flatten().find(|unit| exact(unit));
        let &(unit, name) = found.unwrap_or(&(1, "B"));
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        write!(f, "{whole}")?;
        if rest > 0 {
            let thousandths = u128::from(rest) * 1_000 / u128::from(unit);
            write!(f, ".{}", format!("{thousandths:03}").trim_end_matches('0'))?;
        }
        write!(f, " {name}")
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Size(bytes), up) = match *self {
            About::Up(size) => (size, true),
            About::Down(size) => (size, false),
        };
        let &(unit, name) = BINARY.iter().find(|(unit, _)| bytes >= *unit).unwrap_or(&(1, "B"));
        let hundredfold = u128::from(bytes) * 100;
        let unit = u128::from(unit);
        let hundredths = if up { hundredfold.div_ceil(unit) } else { hundredfold / unit };
        write_decimal(f, u64::try_from(hundredths).unwrap_or(u64::MAX), 2)?;
        write!(f, " {name}")
    }
}

serde_as_text!(Size, "a size in quotes, as in \"8GiB\"");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_read_as_people_and_slurm_write_them() {
        let bytes = |text: &str| text.parse::<Size>().unwrap().as_bytes();
        assert_eq!(bytes("8GiB"), 8 << 30);
        assert_eq!(bytes("8 gib"), 8 << 30);
        assert_eq!(bytes("512M"), 512 << 20);
        assert_eq!(bytes("1.5TB"), 1_500_000_000_000);
        assert_eq!(bytes("0"), 0);
        assert_eq!(bytes("1.1KiB"), 1_127, "rounded up to a whole byte");
        assert_eq!(bytes("8PiB"), MAX_SIZE.as_bytes());
    }

    #[test]
    fn sizes_without_sense_are_refused_with_their_column() {
        let refused = [
            ("8", 2, Problem::NoUnit),
            ("GiB", 1, Problem::NoNumber),
            ("8 bananas", 3, Problem::UnknownUnit("bananas".into())),
            ("8GiB!", 5, Problem::Expected("the end")),
            ("-1G", 1, Problem::NoNumber),
            ("9PiB", 1, Problem::TooLarge("8 PiB")),
            ("0.0000000000001G", 2, Problem::TooPrecise),
        ];
        for (text, column, problem) in refused {
            let error = text.parse::<Size>().unwrap_err();
            assert_eq!((error.column(), error.problem()), (column, &problem), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_print_in_the_unit_they_were_meant_in() {
        for text in ["8 GiB", "1.5 TB", "1000 MiB", "16309249 KiB", "0 B", "7 B", "3 kB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        let odd: Size = "16309249 KiB".parse().unwrap();
        assert_eq!(About::Up(odd).to_string(), "15.56 GiB");
        assert_eq!(About::Down(odd).to_string(), "15.55 GiB");
        assert_eq!(About::Up(Size::from_gib(64)).to_string(), "64 GiB");
    }

    proptest! {
        #[test]
        fn sizes_read_back_what_they_print(mantissa in 0..=MAX_SIZE.0, shift in 0_u32..53) {
            let size = Size(mantissa >> shift);
            prop_assert_eq!(size.to_string().parse::<Size>(), Ok(size));
            let rounded = Size(mantissa >> shift << shift);
            prop_assert_eq!(rounded.to_string().parse::<Size>(), Ok(rounded));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9.kKMGTPiB ]{0,20}|\\PC{0,20}") {
            if let Ok(size) = text.parse::<Size>() {
                prop_assert!(size <= MAX_SIZE);
            }
        }
    }
}
