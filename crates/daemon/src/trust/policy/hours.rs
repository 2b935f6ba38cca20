//! Hours of the week, as a machine's owner writes them: `mon-fri 18:00-08:00`, `sat-sun`, `09:00-17:00`.

use shoal_model::{Span, Time};

const DAY: usize = 24 * 60;
const WEEK: usize = 7 * DAY;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// A start is never exact: a job may end this much after its hours.
const GRACE: Span = Span::from_secs(10);

/// Minutes of a week, from Monday 00:00 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    minutes: Vec<bool>,
}

impl Hours {
    /// Reads hours; each line adds some.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Hours, String> {
        let mut hours = Hours { minutes: vec![false; WEEK] };
        let mut any = false;
        for line in lines {
            hours.add(line)?;
            any = true;
        }
        if any { Ok(hours) } else { Err("no hours: leave `hours` out, or name some".to_owned()) }
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let wrong =
            || format!("`{line}` are no hours: expected `mon-fri 18:00-08:00`, `sat-sun` or `09:00-17:00`");
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().ok_or_else(wrong)?, words.next());
        if words.next().is_some() {
            return Err(wrong());
        }
        let (days, times) = match second {
            Some(times) => (Some(first), Some(times)),
            None if first.starts_with(|c: char| c.is_ascii_digit()) => (None, Some(first)),
            None => (Some(first), None),
        };
        let days = days.map_or(Some((0, 6)), read_days).ok_or_else(wrong)?;
        let (from, to) = times.map_or(Some((0, DAY)), read_times).ok_or_else(wrong)?;
        let mut day = days.0;
        loop {
            // Past midnight they belong to the day on which they began.
            let length = if to > from { to - from } else { to + DAY - from };
            for minute in 0..length {
                self.minutes[(day * DAY + from + minute) % WEEK] = true;
            }
            if day == days.1 {
                return Ok(());
            }
            day = (day + 1) % 7;
        }
    }

    /// Whether all of this time is within the hours; `offset` is that of the zone in which they are written, in minutes.
    pub fn hold(&self, start: Time, span: Span, offset: i64) -> bool {
        self.minutes_of(start, span, offset).all(|minute| self.minutes[minute])
    }

    /// Whether any of this time is.
    pub fn touch(&self, start: Time, span: Span, offset: i64) -> bool {
        self.minutes_of(start, span, offset).any(|minute| self.minutes[minute])
    }

    fn minutes_of(&self, start: Time, span: Span, offset: i64) -> impl Iterator<Item = usize> + use<> {
        let minute = |time: Time| (time.as_micros() / 60_000_000).saturating_add_signed(offset);
        let (first, end) = (minute(start), (start + span.saturating_sub(GRACE)).max(start));
        let count = usize::try_from(minute(end) - first).unwrap_or(WEEK).min(WEEK - 1) + 1;
        // The first of January 1970 was a Thursday.
        let of_week = first.wrapping_add(3 * DAY as u64) % WEEK as u64;
        (0..count).map(move |more| (of_week as usize + more) % WEEK)
    }

    /// Whether every minute of `other` is one of these.
    pub fn cover(&self, other: &Hours) -> bool {
        self.minutes.iter().zip(&other.minutes).all(|(ours, theirs)| *ours || !theirs)
    }
}

fn read_days(text: &str) -> Option<(usize, usize)> {
    let day = |name: &str| DAYS.iter().position(|day| *day == name);
    match text.split_once('-') {
        Some((from, to)) => Some((day(from)?, day(to)?)),
        None => day(text).map(|day| (day, day)),
    }
}

fn read_times(text: &str) -> Option<(usize, usize)> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (read_time(from)?, read_time(to)?);
    (from < DAY && from != to).then_some((from, to))
}

/// Minutes since midnight; 24:00 is the end of the day.
fn read_time(text: &str) -> Option<usize> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (hours.parse::<usize>().ok()?, minutes.parse::<usize>().ok()?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY).then_some(all)
}

/// Reads the offset of a zone, as in `+01:00`, in minutes.
pub fn read_zone(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let minutes = read_time(rest).filter(|minutes| *minutes <= 14 * 60)?;
    Some(sign * i64::try_from(minutes).ok()?)
}

#[cfg(test)]
mod tests {
    use shoal_model::units::parse_time;

    use super::*;

    fn at(text: &str) -> Time {
        parse_time(text).unwrap()
    }

    #[test]
    fn nights_and_weekends_are_what_they_say() {
        let hours = Hours::read(["mon-fri 18:00-08:00", "sat-sun"]).unwrap();
        let hour = Span::from_hours(1);
        // The 15th of November 2026 is a Sunday.
        for (time, within) in [
            ("2026-11-15T12:00:00Z", true),
            ("2026-11-16T12:00:00Z", false),
            ("2026-11-16T17:30:00Z", false),
            ("2026-11-16T18:00:00Z", true),
            ("2026-11-17T06:59:00Z", true),
            ("2026-11-17T07:30:00Z", false),
            // Friday's night ends where Saturday's day goes on.
            ("2026-11-21T07:30:00Z", true),
        ] {
            assert_eq!(hours.hold(at(time), hour, 0), within, "{time}");
        }
        assert!(
            hours.hold(at("2026-11-16T17:00:00Z"), hour, 60),
            "in a zone an hour ahead it is six already"
        );
        assert!(hours.touch(at("2026-11-16T17:30:00Z"), hour, 0));
        assert!(!hours.hold(Time::ZERO, Span::MAX, 0), "a week and more is too long");
    }

    #[test]
    fn hours_that_make_no_sense_are_refused() {
        for text in
            ["", "monday", "mon-fri 18-08", "25:00-26:00", "mon 10:00-10:00", "mon tue wed", "1:00-2:00"]
        {
            assert!(Hours::read([text]).is_err(), "{text}");
        }
        assert!(Hours::read([]).is_err());
        assert_eq!(read_zone("-05:30"), Some(-330));
        assert_eq!([read_zone("01:00"), read_zone("+25:00"), read_zone("")], [None, None, None]);
    }
}
