//! Columns of a line and the numbers in them, read without a copy.

use super::error::Fault;
use super::names::Label;

/// Seconds beyond this (30,000 years) are a mistake, and would not fit once counted in microseconds.
const SECS_MAX: u64 = 1_000_000_000_000;
/// This many digits always fit.
const DIGITS_MAX: usize = 18;
/// How much of a bad field an error shows.
const SHOWN_CHARS_MAX: usize = 40;

/// A number with up to six decimals; both parts bear its sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Where the fields stand that a job can be refused for after its line was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) submit: Place,
    pub(crate) allocated: Place,
    pub(crate) requested_width: Place,
}

/// A column, whatever stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The column, from 1.
    pub(crate) column: usize,
    /// What the format calls it.
    pub(crate) name: &'static str,
}

/// A column with a number in it.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    /// Where it stands.
    pub(crate) field: Field<'a>,
    /// Its value.
    pub(crate) value: Decimal,
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

/// Takes the next column off such a line, together with the number in it if there is one.
///
/// Nearly all columns of a trace are short whole numbers: those are read on the way to their end.
#[inline]
pub(crate) fn split_number<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<Decimal>)> {
    let start = rest.iter().position(|&byte| !is_blank(byte))?;
    let word = &rest[start..];
    let negative = word[0] == b'-';
    let mut end = usize::from(negative);
    let mut whole: i64 = 0;
    while let Some(digit @ 0..=9) = word.get(end).map(|byte| byte.wrapping_sub(b'0')) {
        whole = whole.wrapping_mul(10).wrapping_add(i64::from(digit));
        end += 1;
    }
    let digits = end - usize::from(negative);
    if (1..=DIGITS_MAX).contains(&digits) && word.get(end).is_none_or(|&byte| is_blank(byte)) {
        *rest = &word[end..];
        return Some((&word[..end], Some(signed(negative, whole, 0))));
    }
    split_blank(rest).map(|text| (text, parse(text)))
}

impl<'a> Field<'a> {
    /// The number in it.
    #[inline]
    pub(crate) fn number(self) -> Result<Number<'a>, Fault> {
        match parse(self.text) {
            Some(value) => Ok(Number { field: self, value }),
            None => Err(self.not_a_number()),
        }
    }

    /// The error that says that it is none.
    #[cold]
    pub(crate) fn not_a_number(self) -> Fault {
        Fault::NotANumber { column: self.column, name: self.name, text: shown(self.text) }
    }
}

impl Number<'_> {
    /// As a whole number.
    #[inline]
    pub(crate) fn whole(self) -> Result<i64, Fault> {
        match self.value {
            Decimal { whole, micros: 0 } => Ok(whole),
            Decimal { .. } => Err(self.out_of_range("a whole number")),
        }
    }

    /// As seconds, in microseconds.
    #[inline]
    pub(crate) fn micros(self) -> Result<i64, Fault> {
        let Decimal { whole, micros } = self.value;
        if whole.unsigned_abs() > SECS_MAX {
            return Err(self.out_of_range("at most 10^12 seconds"));
        }
        Ok(whole * 1_000_000 + i64::from(micros))
    }

    /// As a submit time: every job has one.
    #[inline]
    pub(crate) fn submit(self) -> Result<i64, Fault> {
        match self.micros()? {
            micros @ 0.. => Ok(micros),
            _ => Err(self.out_of_range("0 or later")),
        }
    }

    /// As a run time: -1 if unknown, else not negative.
    #[inline]
    pub(crate) fn run(self) -> Result<i64, Fault> {
        match self.micros()? {
            micros @ (0.. | -1_000_000) => Ok(micros),
            _ => Err(self.out_of_range("0 or more, or -1 for unknown")),
        }
    }

    /// As a number that stands for somebody or something; below 0 it is unknown.
    #[inline]
    pub(crate) fn label(self) -> Result<Label, Fault> {
        let number = self.whole()?;
        match u32::try_from(number) {
            Ok(number) => Ok(Label::new(number)),
            Err(_) if number < 0 => Ok(Label::UNKNOWN),
            Err(_) => Err(self.out_of_range("below 2^32")),
        }
    }

    #[cold]
    fn out_of_range(self, range: &'static str) -> Fault {
        let Field { column, name, text } = self.field;
        Fault::OutOfRange { column, name, text: shown(text), range }
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
    if digits.is_empty() {
        return None;
    }
    let mut whole = 0;
    for (place, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if place < DIGITS_MAX => whole = whole * 10 + i64::from(byte - b'0'),
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
            // More digits than a float keeps.
            ("160448888888.100000", (160_448_888_888, 100_000)),
            ("-123456789012345678.0000015", (-123_456_789_012_345_678, -1)),
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
        let message = field.not_a_number().to_string();
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
            let field = Field { column: 1, name: "x", text: &bytes };
            let _ = field.number().and_then(Number::micros);
        }

        #[test]
        fn number_read_on_the_way_is_that_of_the_column(text in "[ \t]{0,2}(-?[0-9]{0,20}(\\.[0-9]{0,8})?|[-+.e0-9x]{1,6})[ \t]?5?") {
            let (mut plain, mut on_the_way) = (text.as_bytes(), text.as_bytes());
            while let Some(column) = split_blank(&mut plain) {
                prop_assert_eq!(split_number(&mut on_the_way), Some((column, parse(column))));
                prop_assert_eq!(plain, on_the_way);
            }
            prop_assert_eq!(split_number(&mut on_the_way), None);
        }
    }
}
