//! Times in this machine's zone.

use std::cell::OnceCell;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use shoal_model::Time;
use shoal_model::units::TimeText;

use crate::job::now;

/// This machine's clock and zone.
pub struct Clock {
    now: Time,
    /// Found out when it is first needed: that may take many files.
    zone: OnceCell<TimeZone>,
}

impl Clock {
    /// As of now.
    pub fn read() -> Clock {
        Clock { now: now(), zone: OnceCell::new() }
    }

    /// The time when it was read.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A time as people here write it: without the day if it is today's.
    pub fn show(&self, time: Time) -> String {
        let stamp = |time: Time| {
            i64::try_from(time.as_micros()).ok().and_then(|at| Timestamp::from_microsecond(at).ok())
        };
        let (Some(at), Some(now)) = (stamp(time), stamp(self.now)) else { return TimeText(time).to_string() };
        let zone = self.zone.get_or_init(TimeZone::system);
        let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
        let form = match (at.date() == now.date(), at.year() == now.year()) {
            (true, _) => "%H:%M:%S",
            (false, true) => "%b %d %H:%M",
            (false, false) => "%Y-%m-%d %H:%M",
        };
        at.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_today_have_no_day_and_absurd_ones_are_still_shown() {
        let clock = Clock { now: Time::from_secs(1_794_765_600), zone: OnceCell::from(TimeZone::UTC) };
        assert_eq!(clock.show(Time::from_secs(1_794_765_660)), "18:01:00");
        assert_eq!(clock.show(Time::from_secs(1_794_765_600 + 86_400)), "Nov 16 18:00");
        assert_eq!(clock.show(Time::from_secs(1_894_765_600)), "2030-01-16 03:46");
        assert!(!clock.show(Time::NEVER).is_empty());
    }
}
