//! Columns of a line and the numbers in them, read without a copy.

use super::error::Fault;

/// Seconds beyond this (30,000 years) are a mistake, and would not fit once counted in microseconds.
const SECS_MAX: u64 = 1_000_000_000_000;
/// How much of a bad field an error shows.
const SHOWN_CHARS_MAX: usize = 40;

/// A number with up to six decimals; both parts bear its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    whole: i64,
    micros: i32,
}

/// One column of a line.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// The column, from 1.
    pub(crate) column: usize,
    /// What the format calls it.
    pub(crate) name: &'static str,
    /// What stands there, without blanks around it.
    pub(crate) text: &'a [u8],
}

/// Takes the next column off a line whose columns blanks or tabs part.
#[inline]
pub(crate) fn split_blank<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|&byte| !is_blank(byte))?;
    let word = &rest[start..];
    let end = word.iter().position(|&byte| is_blank(byte)).unwrap_or(word.len());
    *rest = &word[end..];
    Some(&word[..end])
}

impl Field<'_> {
    /// The number in it.
    #[inline]
    pub(crate) fn number(self) -> Result<Decimal, Fault> {
        parse(self.text).ok_or_else(|| self.not_a_number())
    }

    /// The whole number in it.
    #[inline]
    pub(crate) fn whole(self) -> Result<i64, Fault> {
        match self.number()? {
            Decimal { whole, micros: 0 } => Ok(whole),
            Decimal { .. } => Err(self.out_of_range("a whole number")),
        }
    }

    /// The seconds in it, as microseconds.
    #[inline]
    pub(crate) fn micros(self) -> Result<i64, Fault> {
        let Decimal { whole, micros } = self.number()?;
        if whole.unsigned_abs() > SECS_MAX {
            return Err(self.out_of_range("at most 10^12 seconds"));
        }
        Ok(whole * 1_000_000 + i64::from(micros))
    }

    /// The error that says so.
    pub(crate) fn not_a_number(self) -> Fault {
        Fault::NotANumber { column: self.column, name: self.name, text: shown(self.text) }
    }

    /// The error that says what the field could be.
    pub(crate) fn out_of_range(self, range: &'static str) -> Fault {
        Fault::OutOfRange { column: self.column, name: self.name, text: shown(self.text), range }
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Digits with a sign and decimals, as nearly all are; what else a float may look like goes to [`parse_rare`].
#[inline]
fn parse(text: &[u8]) -> Option<Decimal> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    // 18 digits always fit.
    if digits.is_empty() || digits.len() > 18 {
        return parse_rare(text);
    }
    let mut whole = 0;
    for (place, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => whole = whole * 10 + i64::from(byte - b'0'),
            b'.' if place > 0 => {
                let Some(micros) = parse_decimals(&digits[place + 1..]) else { return parse_rare(text) };
                return Some(signed(negative, whole, micros));
            }
            _ => return parse_rare(text),
        }
    }
    Some(signed(negative, whole, 0))
}

fn signed(negative: bool, whole: i64, micros: i32) -> Decimal {
    match negative {
        true => Decimal { whole: -whole, micros: -micros },
        false => Decimal { whole, micros },
    }
}

/// What follows the point, cut to microseconds.
fn parse_decimals(digits: &[u8]) -> Option<i32> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let place = |index| digits.get(index).map_or(0, |&byte| i32::from(byte - b'0'));
    Some((0..6).fold(0, |sum, index| sum * 10 + place(index)))
}

/// `+5`, `.5`, `1.17e+09`, and long runs of digits.
#[cold]
fn parse_rare(text: &[u8]) -> Option<Decimal> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(whole) = text.parse() {
        return Some(Decimal { whole, micros: 0 });
    }
    let value: f64 = text.parse().ok()?;
    // Beyond 2^53 a float is no longer exact to the unit.
    if !value.is_finite() || value.abs() > 9e15 {
        return None;
    }
    let micros = (value.fract() * 1e6) as i32;
    Some(Decimal { whole: value.trunc() as i64, micros })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Option<(i64, i32)> {
        parse(text.as_bytes()).map(|number| (number.whole, number.micros))
    }

    #[test]
    fn numbers_of_every_writing_are_read() {
        for (text, expected) in [
            ("0", (0, 0)),
            ("-1", (-1, 0)),
            ("142.00", (142, 0)),
            ("-0.5", (0, -500_000)),
            ("3.1234567", (3, 123_456)),
            ("7.", (7, 0)),
            ("+5", (5, 0)),
            (".25", (0, 250_000)),
            ("1.5e3", (1_500, 0)),
            ("1234567890123456789", (1_234_567_890_123_456_789, 0)),
        ] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".", "1x", "x", "1.2.3", "--1", "nan", "inf", "1e400", "0x10", "1_000", "é"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn error_shows_a_piece_of_a_long_field() {
        let field = Field { column: 4, name: "run time", text: &[b'x'; 300] };
        let message = field.number().unwrap_err().to_string();
        assert!(message.starts_with("field 4 (run time): `xxx") && message.len() < 100, "{message}");
    }

    #[test]
    fn columns_are_parted_by_any_run_of_blanks() {
        let mut rest = &b"  1\t 2   3 "[..];
        let words: Vec<_> = std::iter::from_fn(|| split_blank(&mut rest)).collect();
        assert_eq!(words, [b"1", b"2", b"3"]);
    }

    proptest! {
        #[test]
        fn whole_numbers_read_back(value: i64) {
            prop_assert_eq!(number(&value.to_string()), Some((value, 0)));
        }

        #[test]
        fn any_bytes_are_a_number_or_not(bytes: Vec<u8>) {
            let _ = Field { column: 1, name: "x", text: &bytes }.micros();
        }
    }
}
