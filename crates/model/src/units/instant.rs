//! Points in time as RFC 3339 writes them: `2026-11-15T18:00:00Z`, `2026-11-15T18:00+01:00`.
//!
//! Only with a zone: a grid spans zones, and a deadline must not depend on who reads it. Words that need a clock
//! (`+2h`, `tomorrow`) are the client's to resolve.

use std::fmt;
use std::str::FromStr;

use super::{Problem, Quantity, Reader, UnitError, serde_as_text};
use crate::time::Time;

/// The latest point in time that is read: the last second of the year 9999, UTC.
pub const MAX_TIME: Time = Time::from_secs(253_402_300_799);

/// A point in time in the words of people: prints RFC 3339 in UTC, and reads what [`parse_time`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeText(pub Time);

/// Reads a point in time between 1970 and 9999; seconds may be left out, the zone may not.
pub fn parse_time(text: &str) -> Result<Time, UnitError> {
    let mut reader = Reader::new(Quantity::Time, text);
    let year = part(&mut reader, 4, "year", 1970, 9999)?;
    expect(&mut reader, '-', "`-`")?;
    let month = part(&mut reader, 2, "month", 1, 12)?;
    expect(&mut reader, '-', "`-`")?;
    let day = part(&mut reader, 2, "day", 1, days_of(year, month))?;
    if !(reader.eat('T') || reader.eat('t') || reader.eat(' ')) {
        return Err(reader.wrong(Problem::Expected("`T` and a time")));
    }
    let hour = part(&mut reader, 2, "hour", 0, 23)?;
    expect(&mut reader, ':', "`:`")?;
    let minute = part(&mut reader, 2, "minute", 0, 59)?;
    let second = if reader.eat(':') { part(&mut reader, 2, "second", 0, 59)? } else { 0 };
    let micros = if reader.eat('.') { fraction(&mut reader)? } else { 0 };
    let offset_at = reader.at;
    let offset_minutes = zone(&mut reader)?;
    if !reader.is_done() {
        return Err(reader.wrong(Problem::Expected("the end")));
    }
    let minutes = (days_before(year, month, day) * 24 + hour) * 60 + minute;
    let Some(minutes) = minutes.checked_add_signed(-offset_minutes) else {
        return Err(reader.wrong_at(offset_at, Problem::OutOfRange("time before 1970")));
    };
    let time = Time::from_micros((minutes * 60 + second) * 1_000_000 + micros);
    if time > MAX_TIME {
        return Err(reader.wrong_at(0, Problem::TooLarge("the year 9999")));
    }
    Ok(time)
}

fn part(
    reader: &mut Reader<'_>,
    digits: usize,
    name: &'static str,
    least: u64,
    most: u64,
) -> Result<u64, UnitError> {
    let at = reader.at;
    let value = reader.whole()?;
    if reader.at - at != digits || !(least..=most).contains(&value) {
        return Err(reader.wrong_at(at, Problem::OutOfRange(name)));
    }
    Ok(value)
}

fn expect(reader: &mut Reader<'_>, wanted: char, name: &'static str) -> Result<(), UnitError> {
    if reader.eat(wanted) { Ok(()) } else { Err(reader.wrong(Problem::Expected(name))) }
}

fn fraction(reader: &mut Reader<'_>) -> Result<u64, UnitError> {
    let at = reader.at;
    let digits = reader.take_while(|c| c.is_ascii_digit());
    match digits.trim_end_matches('0') {
        _ if digits.is_empty() => Err(reader.wrong(Problem::NoNumber)),
        "" => Ok(0),
        kept if kept.len() <= 6 => Ok(kept.parse().unwrap_or(0) * 10_u64.pow(6 - kept.len() as u32)),
        _ => Err(reader.wrong_at(at, Problem::TooPrecise)),
    }
}

/// Minutes east of Greenwich.
fn zone(reader: &mut Reader<'_>) -> Result<i64, UnitError> {
    if reader.eat('Z') || reader.eat('z') {
        return Ok(0);
    }
    let sign = match (reader.eat('+'), reader.eat('-')) {
        (true, _) => 1,
        (_, true) => -1,
        _ => return Err(reader.wrong(Problem::Expected("a zone: `Z`, or hours and minutes as in `+01:00`"))),
    };
    let hours = part(reader, 2, "hour of the zone", 0, 23)?;
    expect(reader, ':', "`:`")?;
    let minutes = part(reader, 2, "minute of the zone", 0, 59)?;
    Ok(sign * (hours * 60 + minutes) as i64)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of January of this year.
fn days_before_year(year: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

fn days_before(year: u64, month: u64, day: u64) -> u64 {
    days_before_year(year) + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day - 1
}

impl fmt::Display for TimeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > MAX_TIME {
            return f.write_str("never");
        }
        let (days, in_day) = (self.0.as_secs() / 86_400, self.0.as_secs() % 86_400);
        // Never too late by construction (no year is longer than 366 days), so the loop only moves forward.
        let mut year = 1970 + days / 366;
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let mut rest = days - days_before_year(year);
        let mut month = 1;
        while rest >= days_of(year, month) {
            rest -= days_of(year, month);
            month += 1;
        }
        let (hour, minute, second) = (in_day / 3_600, in_day / 60 % 60, in_day % 60);
        write!(f, "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}", rest + 1)?;
        match self.0.as_micros() % 1_000_000 {
            0 => {}
            micros => write!(f, ".{}", format!("{micros:06}").trim_end_matches('0'))?,
        }
        f.write_str("Z")
    }
}

impl FromStr for TimeText {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<TimeText, UnitError> {
        parse_time(text).map(TimeText)
    }
}

serde_as_text!(TimeText, "a point in time in quotes, as in \"2026-11-15T18:00:00Z\"");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn instants_agree_with_the_unix_clock() {
        for (text, secs) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-11-15T18:00Z", 1_794_765_600),
            ("2026-11-15T19:00:00+01:00", 1_794_765_600),
            ("2026-11-15 12:30:00-05:30", 1_794_765_600),
        ] {
            assert_eq!(parse_time(text), Ok(Time::from_secs(secs)), "{text}");
        }
        assert_eq!(parse_time("9999-12-31T23:59:59Z"), Ok(MAX_TIME));
        assert_eq!(TimeText(Time::from_millis(1_500)).to_string(), "1970-01-01T00:00:01.5Z");
    }

    #[test]
    fn dates_that_do_not_exist_or_lack_a_zone_are_refused_with_their_column() {
        let refused = [
            ("2026-02-29T00:00:00Z", 9, Problem::OutOfRange("day")),
            ("2026-13-01T00:00:00Z", 6, Problem::OutOfRange("month")),
            ("26-01-01T00:00:00Z", 1, Problem::OutOfRange("year")),
            ("2026-01-01", 11, Problem::Expected("`T` and a time")),
            (
                "2026-01-01T00:00:00",
                20,
                Problem::Expected("a zone: `Z`, or hours and minutes as in `+01:00`"),
            ),
            ("1970-01-01T00:00:00+01:00", 20, Problem::OutOfRange("time before 1970")),
            ("9999-12-31T23:59:59-01:00", 1, Problem::TooLarge("the year 9999")),
            ("tomorrow", 1, Problem::NoNumber),
        ];
        for (text, column, problem) in refused {
            let error = parse_time(text).unwrap_err();
            assert_eq!((error.column(), error.problem()), (column, &problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn instants_read_back_what_they_print(micros in 0..=MAX_TIME.as_micros()) {
            let time = Time::from_micros(micros);
            prop_assert_eq!(parse_time(&TimeText(time).to_string()), Ok(time));
        }
    }
}
