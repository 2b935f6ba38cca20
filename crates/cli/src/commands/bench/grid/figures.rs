//! What is read of processes and of times.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Error;
use crate::grid::Member;

/// Times of the same thing done often.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// How often.
    pub count: usize,
    /// The least.
    pub least_ms: f64,
    /// Half of them took no longer.
    pub p50_ms: f64,
    /// Of a hundred of them, one took longer.
    pub p99_ms: f64,
}

impl Spread {
    /// The spread of some times; of none it is none.
    pub fn of(mut times: Vec<Duration>) -> Spread {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
        };
        Spread { count: times.len(), least_ms: at(0), p50_ms: at(50), p99_ms: at(99) }
    }
}

/// Waits for a command that must end well.
pub fn ends_well(child: &mut Child, what: &str) -> Result<(), Error> {
    match child.wait()? {
        status if status.success() => Ok(()),
        status => Err(Error::internal(format!("{what} ended with {status}"))),
    }
}

/// How long `shoal submit` of a job that does nothing takes, one after the other.
pub fn submits(member: &Member, words: &[&str], count: u32, mut step: impl FnMut()) -> Result<Spread, Error> {
    let mut times = Vec::new();
    for _ in 0..count {
        let words = [&["submit"], words, &["--", shoal_daemon::executor::raw::NOTHING]].concat();
        let mut command = member.command(&words)?;
        let began = Instant::now();
        ends_well(&mut command.spawn()?, "shoal submit")?;
        times.push(began.elapsed());
        step();
    }
    Ok(Spread::of(times))
}

/// The megabytes of memory that a process holds.
pub fn resident_mb(pid: u32) -> Result<f64, Error> {
    status_mb(pid, "VmRSS:")
}

/// What of it is no part of a file, which others that have it open share.
pub fn own_mb(pid: u32) -> Result<f64, Error> {
    status_mb(pid, "RssAnon:")
}

fn status_mb(pid: u32, name: &str) -> Result<f64, Error> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib * 1_024.0 / 1e6).ok_or_else(|| Error::internal(format!("process {pid} has ended")))
}

/// The processor time of a process so far, without that of its children.
pub fn processor_time(pid: u32) -> Result<Duration, Error> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        text.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
    // The system counts in hundredths of a second.
    let time = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok(Duration::from_millis(10 * (time(11) + time(12))))
}

/// The bytes that left this network namespace so far, to wherever; none where the system does not say.
pub fn bytes_sent() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/net/netstat").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split(' ').position(|name| name == "OutOctets")?;
    values.split(' ').nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_names_the_middle_and_the_end() {
        let spread = Spread::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!((spread.count, spread.least_ms, spread.p50_ms, spread.p99_ms), (200, 1.0, 100.0, 198.0));
        let one = Spread::of(vec![Duration::from_millis(7)]);
        assert_eq!((one.p50_ms, one.p99_ms), (7.0, 7.0));
        assert_eq!(Spread::of(Vec::new()).p50_ms, 0.0);
    }
}
