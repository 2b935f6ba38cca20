//! A node's clock: monotonic, and close to Unix time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shoal_model::{Span, Time};

/// A monotonic clock with the offset to Unix time that it had at its making.
///
/// The system's wall clock is read once: whoever sets it later moves no timer and turns no node's time back.
/// What a new life of a node reads may lie before what the last one read, if the wall clock was set back between.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    start_unix: Time,
}

impl Clock {
    /// A clock that agrees with the system's now; a system set before 1970 counts as 1970.
    pub fn new() -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: Instant::now(), start_unix: Time::from_micros(micros(unix)) }
    }

    /// The same clock, wrong: so far ahead of the system's.
    pub fn ahead_by(self, span: Span) -> Clock {
        Clock { start_unix: self.start_unix + span, ..self }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::from_micros(self.start_unix.as_micros().saturating_add(micros(self.start.elapsed())))
    }

    /// When [`Clock::now`] will have reached a time; `None` if that is later than the system can count.
    pub fn instant(&self, at: Time) -> Option<Instant> {
        self.start.checked_add(Duration::from_micros(at.since(self.start_unix).as_micros()))
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_has_reached_a_time_at_its_instant() {
        let clock = Clock::new();
        let at = clock.now() + Span::from_micros(1_500);
        let instant = clock.instant(at).expect("soon");
        while Instant::now() < instant {
            std::hint::spin_loop();
        }
        assert!(clock.now() >= at);
    }

    #[test]
    fn clock_agrees_with_the_system() {
        let system = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let now = Clock::new().now();
        assert!(now.as_secs().abs_diff(system.as_secs()) <= 5, "{now} is not {system:?}");
    }

    #[test]
    fn times_out_of_reach_have_an_instant_or_none_but_never_wrap() {
        let clock = Clock::new();
        assert!(clock.instant(Time::ZERO).is_some_and(|instant| instant <= Instant::now()));
        assert!(clock.instant(Time::NEVER).is_none_or(|instant| instant > Instant::now()));
    }
}
