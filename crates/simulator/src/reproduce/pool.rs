//! Independent runs spread over all cores; the result does not depend on how many there are.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The parts that a run is divided into when it tells how far it is.
const PARTS: u64 = 1_000;

/// How far many runs are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Runs that are done.
    pub done: usize,
    /// Runs that there are.
    pub runs: usize,
    /// How much of the work is done, 0 to 1.
    pub share: f64,
}

/// What is to be told how far many runs are.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// What came of a run, and how long it took.
pub(crate) struct Timed<S> {
    pub seen: S,
    pub took: Duration,
}

/// Carries out all runs, the heaviest first; of several errors that of the first run in order is returned.
pub(crate) fn carry_out<C, S, E>(
    cases: &[C],
    threads: usize,
    weigh: impl Fn(&C) -> f64,
    work: impl Fn(&C, &dyn Fn(f64)) -> Result<S, E> + Sync,
    tell: Tell<'_>,
) -> Result<BTreeMap<C, Timed<S>>, E>
where
    C: Ord + Clone + Sync,
    S: Send,
    E: Send,
{
    let weights: Vec<f64> = cases.iter().map(weigh).collect();
    let whole: f64 = weights.iter().sum();
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by(|&one, &other| weights[other].total_cmp(&weights[one]));
    let parts: Vec<AtomicU64> = cases.iter().map(|_| AtomicU64::new(0)).collect();
    let done = AtomicUsize::new(0);
    let say = || {
        let shares = parts.iter().zip(&weights);
        let share: f64 =
            shares.map(|(part, weight)| part.load(Ordering::Relaxed) as f64 / PARTS as f64 * weight).sum();
        let share = if whole > 0.0 { share / whole } else { 1.0 };
        tell(Progress { done: done.load(Ordering::Relaxed), runs: cases.len(), share });
    };
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Mutex<BTreeMap<usize, Result<Timed<S>, E>>> = Mutex::new(BTreeMap::new());
    let take = || {
        while !failed.load(Ordering::Relaxed) {
            let Some(&place) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let begun = Instant::now();
            let so_far = |share: f64| {
                let part = (share * PARTS as f64) as u64;
                if parts[place].swap(part, Ordering::Relaxed) != part {
                    say();
                }
            };
            let result = work(&cases[place], &so_far).map(|seen| Timed { seen, took: begun.elapsed() });
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            parts[place].store(PARTS, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
            say();
            results.lock().expect("no run panics and lives on").insert(place, result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, cases.len().max(1)) {
            scope.spawn(take);
        }
    });
    let results = results.into_inner().expect("no run panics and lives on");
    results.into_iter().map(|(place, result)| Ok((cases[place].clone(), result?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(threads: usize) -> Result<BTreeMap<u64, u64>, u64> {
        let work = |case: &u64, so_far: &dyn Fn(f64)| {
            so_far(0.5);
            if *case == 77 { Err(*case) } else { Ok(case * case) }
        };
        let cases: Vec<u64> = (0..50).collect();
        let seen = carry_out(&cases, threads, |&case| case as f64, work, &|_| {})?;
        Ok(seen.into_iter().map(|(case, timed)| (case, timed.seen)).collect())
    }

    #[test]
    fn every_run_is_carried_out_once_whatever_the_number_of_threads() {
        let one = squares(1).unwrap();
        assert_eq!(one.len(), 50);
        assert!(one.iter().all(|(case, square)| *square == case * case));
        assert_eq!(one, squares(3).unwrap());
    }

    #[test]
    fn an_error_ends_it() {
        let work = |case: &u64, _: &dyn Fn(f64)| if *case >= 20 { Err(*case) } else { Ok(()) };
        let cases: Vec<u64> = (0..30).collect();
        let error = carry_out(&cases, 1, |&case| case as f64, work, &|_| {}).err();
        assert_eq!(error, Some(29), "the heaviest comes first, and nothing after it");
    }

    #[test]
    fn progress_ends_with_all_of_it() {
        let last = Mutex::new(None);
        let tell = |progress: Progress| *last.lock().unwrap() = Some(progress);
        let work = |_: &u64, so_far: &dyn Fn(f64)| {
            so_far(0.3);
            Ok::<(), ()>(())
        };
        carry_out(&[1_u64, 2, 3], 1, |_| 2.0, work, &tell).unwrap();
        assert_eq!(last.into_inner().unwrap(), Some(Progress { done: 3, runs: 3, share: 1.0 }));
    }
}
