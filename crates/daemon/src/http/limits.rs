//! How often may somebody ask? Who shows the token far more often than any program does, and who does not, seldom.
//!
//! A bucket for all who show the token, and one for each address of those who do not: who floods without it slows down
//! nobody who has it, on whatever machine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Requests with the token in a second, where nobody says: no disk writes so many jobs down.
pub const REQUESTS_PER_SECOND: u32 = 20_000;
/// Requests with the token that may come at once, in seconds of the rate.
const BURST_SECONDS: f64 = 2.0;
/// Refused requests of one address in a second.
pub const REFUSALS_PER_SECOND: u32 = 5;
/// Refused requests of one address that may come at once.
pub const REFUSALS_BURST: u32 = 50;
/// Addresses that are counted; of more, those that were quiet longest are forgotten.
pub const ADDRESSES_MAX: usize = 4_096;

const UNPOISONED: &str = "nothing panics while it counts";

/// Fills at a rate, up to a level; each request takes one.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: f64,
    at: Instant,
}

impl Bucket {
    /// Takes one, or says how long to wait for it.
    fn take(&mut self, rate: f64, most: f64, now: Instant) -> Result<(), Duration> {
        let more = now.saturating_duration_since(self.at).as_secs_f64() * rate;
        (self.level, self.at) = ((self.level + more).min(most), now);
        if self.level >= 1.0 {
            self.level -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.level) / rate))
    }
}

/// Counts requests.
pub(super) struct Limits {
    rate: f64,
    known: Mutex<Bucket>,
    strangers: Mutex<BTreeMap<IpAddr, Bucket>>,
}

impl Limits {
    pub fn new(requests_per_second: u32) -> Limits {
        let rate = f64::from(requests_per_second.max(1));
        let full = Bucket { level: rate * BURST_SECONDS, at: Instant::now() };
        Limits { rate, known: Mutex::new(full), strangers: Mutex::default() }
    }

    /// Counts a request with the token.
    pub fn known(&self, now: Instant) -> Result<(), Duration> {
        let most = self.rate * BURST_SECONDS;
        self.known.lock().expect(UNPOISONED).take(self.rate, most, now)
    }

    /// Counts a request that is refused, of this address.
    pub fn refused(&self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut strangers = self.strangers.lock().expect(UNPOISONED);
        if strangers.len() >= ADDRESSES_MAX && !strangers.contains_key(&from) {
            let quietest = strangers.iter().min_by_key(|(_, bucket)| bucket.at).map(|(&address, _)| address);
            quietest.and_then(|address| strangers.remove(&address));
        }
        let full = Bucket { level: f64::from(REFUSALS_BURST), at: now };
        let bucket = strangers.entry(from).or_insert(full);
        bucket.take(f64::from(REFUSALS_PER_SECOND), f64::from(REFUSALS_BURST), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn who_is_refused_again_and_again_is_told_to_wait_and_others_are_not() {
        let (limits, now) = (Limits::new(100), Instant::now());
        for _ in 0..REFUSALS_BURST {
            assert_eq!(limits.refused(address(1), now), Ok(()));
        }
        let wait = limits.refused(address(1), now).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(limits.refused(address(2), now), Ok(()), "another address");
        assert_eq!(limits.known(now), Ok(()), "who has the token");
        let later = now + Duration::from_secs(1);
        for _ in 0..REFUSALS_PER_SECOND {
            assert_eq!(limits.refused(address(1), later), Ok(()));
        }
        assert!(limits.refused(address(1), later).is_err());
    }

    #[test]
    fn token_is_good_for_its_rate_and_a_burst() {
        let (limits, now) = (Limits::new(10), Instant::now());
        let taken = (0..100).filter(|_| limits.known(now).is_ok()).count();
        assert_eq!(taken, 20);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| limits.known(later).is_ok()).count(), 10);
    }

    #[test]
    fn more_addresses_than_are_counted_forget_the_quietest() {
        let (limits, now) = (Limits::new(10), Instant::now());
        for number in 0..ADDRESSES_MAX as u32 + 100 {
            let at = now + Duration::from_micros(u64::from(number));
            assert_eq!(limits.refused(address(number), at), Ok(()));
        }
        let strangers = limits.strangers.lock().unwrap();
        assert_eq!(strangers.len(), ADDRESSES_MAX);
        assert!(!strangers.contains_key(&address(0)) && strangers.contains_key(&address(100)));
    }
}
