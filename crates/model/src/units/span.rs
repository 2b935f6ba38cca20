//! Lengths of time: `1h30m`, `90s`, `1.5h`, and Slurm's `1:30:00` and `2-12:00:00`.

use std::fmt;
use std::str::FromStr;

use super::{Problem, Quantity, Reader, UnitError, serde_as_text, write_decimal};
use crate::time::Span;

/// The longest span that is read: ten years. What is longer is a slip of the pen.
pub const MAX_SPAN: Span = Span::from_hours(10 * 366 * 24);

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A span in the words of people: prints `1h30m`, and reads what [`parse_span`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanText(pub Span);

/// Reads a span; a bare number and `1:30` are refused, since their unit would be a guess.
pub fn parse_span(text: &str) -> Result<Span, UnitError> {
    let mut reader = Reader::new(Quantity::Span, text);
    let micros = if text.contains([':', '-']) { clock(&mut reader)? } else { parts(&mut reader)? };
    if micros > u128::from(MAX_SPAN.as_micros()) {
        return Err(reader.wrong_at(0, Problem::TooLarge("ten years")));
    }
    // The bound just checked fits in 64 bits.
    Ok(Span::from_micros(micros as u64))
}

/// Numbers with units, from large to small.
fn parts(reader: &mut Reader<'_>) -> Result<u128, UnitError> {
    let mut sum = 0;
    let mut unit_before = u64::MAX;
    loop {
        let start = reader.at;
        let number = reader.decimal()?;
        reader.skip_spaces();
        let unit_at = reader.at;
        let name = reader.take_while(char::is_alphabetic);
        let unit = match name {
            "" if reader.is_done() => return Err(reader.wrong(Problem::NoUnit)),
            "" => return Err(reader.wrong(Problem::Expected("a unit"))),
            "us" | "µs" => 1,
            "ms" => 1_000,
            "s" | "sec" => SECOND,
            "m" | "min" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            "w" => 7 * DAY,
            _ => return Err(reader.wrong_at(unit_at, Problem::UnknownUnit(super::clipped(name)))),
        };
        if unit >= unit_before {
            return Err(reader.wrong_at(unit_at, Problem::UnitOrder(name.into())));
        }
        unit_before = unit;
        let (micros, rest) = number.times(unit);
        if rest {
            return Err(reader.wrong_at(start, Problem::TooPrecise));
        }
        sum += micros;
        reader.skip_spaces();
        if reader.is_done() {
            return Ok(sum);
        }
    }
}

/// `[days-]hours:minutes:seconds`, `days-hours` and `days-hours:minutes`.
fn clock(reader: &mut Reader<'_>) -> Result<u128, UnitError> {
    let first = reader.whole()?;
    let (days, hours) = if reader.eat('-') {
        let at = reader.at;
        let hours = reader.whole()?;
        if hours > 23 {
            return Err(reader.wrong_at(at, Problem::OutOfRange("hours of a day")));
        }
        (Some(first), hours)
    } else {
        (None, first)
    };
    let minutes = colon_part(reader, "minutes")?;
    let seconds = colon_part(reader, "seconds")?;
    if !reader.is_done() {
        return Err(reader.wrong(Problem::Expected("the end")));
    }
    if days.is_none() && seconds.is_none() {
        return Err(reader.wrong_at(0, Problem::Unclear));
    }
    let units = [(days, DAY), (Some(hours), HOUR), (minutes, MINUTE), (seconds, SECOND)];
    Ok(units.iter().map(|&(count, unit)| u128::from(count.unwrap_or(0)) * u128::from(unit)).sum())
}

fn colon_part(reader: &mut Reader<'_>, name: &'static str) -> Result<Option<u64>, UnitError> {
    if !reader.eat(':') {
        return Ok(None);
    }
    let at = reader.at;
    match reader.whole()? {
        part @ 0..60 => Ok(Some(part)),
        _ => Err(reader.wrong_at(at, Problem::OutOfRange(name))),
    }
}

impl fmt::Display for SpanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        for (unit, within, name) in [(DAY, u64::MAX, "d"), (HOUR, DAY, "h"), (MINUTE, HOUR, "m")] {
            let count = micros % within / unit;
            if count > 0 {
                write!(f, "{count}{name}")?;
            }
        }
        let rest = micros % MINUTE;
        if rest > 0 || micros == 0 {
            write_decimal(f, rest, 6)?;
            f.write_str("s")?;
        }
        Ok(())
    }
}

impl FromStr for SpanText {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<SpanText, UnitError> {
        parse_span(text).map(SpanText)
    }
}

serde_as_text!(SpanText, "a length of time in quotes, as in \"1h30m\"");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_read_as_people_and_slurm_write_them() {
        let secs = |text: &str| parse_span(text).unwrap().as_secs();
        assert_eq!(secs("90s"), 90);
        assert_eq!(secs("1h30m"), 5_400);
        assert_eq!(secs(" 1h 30 min "), 5_400);
        assert_eq!(secs("1.5h"), 5_400);
        assert_eq!(secs("2d"), 172_800);
        assert_eq!(secs("1w"), 604_800);
        assert_eq!(secs("1:30:00"), 5_400);
        assert_eq!(secs("100:00:00"), 360_000);
        assert_eq!(secs("1-12"), 129_600);
        assert_eq!(secs("1-12:30"), 131_400);
        assert_eq!(secs("1-12:30:05"), 131_405);
        assert_eq!(parse_span("250ms").unwrap(), Span::from_millis(250));
        assert_eq!(parse_span("3660d").unwrap(), MAX_SPAN);
    }

    #[test]
    fn what_could_mean_two_things_or_nothing_is_refused_with_its_column() {
        let refused = [
            ("", 1, Problem::NoNumber),
            ("h", 1, Problem::NoNumber),
            ("-5s", 1, Problem::NoNumber),
            ("90", 3, Problem::NoUnit),
            ("1:30", 1, Problem::Unclear),
            ("1:", 3, Problem::NoNumber),
            ("1:60:00", 3, Problem::OutOfRange("minutes")),
            ("1-24", 3, Problem::OutOfRange("hours of a day")),
            ("1:30:00x", 8, Problem::Expected("the end")),
            ("5 parsecs", 3, Problem::UnknownUnit("parsecs".into())),
            ("5m 2h", 5, Problem::UnitOrder("h".into())),
            ("5m2m", 4, Problem::UnitOrder("m".into())),
            ("1.", 3, Problem::NoNumber),
            ("0.0000001s", 1, Problem::TooPrecise),
            ("1e9s", 2, Problem::UnknownUnit("e".into())),
            ("3661d", 1, Problem::TooLarge("ten years")),
            ("99999999999999999999999s", 1, Problem::TooLarge("18 digits")),
            ("999999999999999999w", 1, Problem::TooLarge("ten years")),
        ];
        for (text, column, problem) in refused {
            let error = parse_span(text).unwrap_err();
            assert_eq!((error.column(), error.problem()), (column, &problem), "{text}: {error}");
        }
        assert_eq!(
            parse_span("5 parsecs").unwrap_err().to_string(),
            "`5 parsecs` is not a length of time: unknown unit `parsecs` at column 3; expected a number and a unit \
             (d, h, m, s, ms, us) or hours:minutes:seconds, as in 1h30m, 90s or 1:30:00"
        );
    }

    proptest! {
        #[test]
        fn spans_read_back_what_they_print(micros in 0..=MAX_SPAN.as_micros()) {
            let span = Span::from_micros(micros);
            prop_assert_eq!(parse_span(&SpanText(span).to_string()), Ok(span));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9wdhmsuµ:. \\-]{0,20}|\\PC{0,20}") {
            if let Err(error) = parse_span(&text) {
                prop_assert!(error.column() <= text.chars().count() + 1);
            }
        }
    }
}
