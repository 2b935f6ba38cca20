//! The calendar beside a sorted `Vec` of steps, so that ratios can be read from one run.
//!
//! Reservation i takes 16 of 64 from 10 i to 10 i + 25 seconds: use is 48 and 32 in turn, to the last.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use shoal_model::calendar::{Against, Booking, Calendar, Capacity, Interval, Key};
use shoal_model::{Epoch, JobId, Span, Time};

const SIZES: [u64; 3] = [10, 1_000, 100_000];
const ROOM: u32 = 64;
const TAKEN: u32 = 16;

fn key(number: u64) -> Key {
    Key { job: JobId::from_number(number), epoch: Epoch(0) }
}

fn place(number: u64) -> Interval {
    Interval::starting(Time::from_secs(10 * number), Span::from_secs(25)).expect("it ends")
}

fn calendar(size: u64) -> Calendar<u32> {
    let mut calendar = Calendar::new(Capacity::constant(ROOM).expect("small"));
    for number in 0..size {
        calendar
            .book(key(number), place(number), TAKEN, Booking::Firm, Against::Firm)
            .expect("there is room");
    }
    calendar
}

/// The baseline: every step of use in a sorted `Vec`, and keys in another.
#[derive(Clone)]
struct Sorted {
    /// From each instant on, this much is used.
    steps: Vec<(Time, u32)>,
    /// Whether each is firm yet.
    keys: Vec<(Key, bool)>,
}

impl Sorted {
    fn new(size: u64) -> Sorted {
        let mut sorted = Sorted { steps: vec![(Time::ZERO, 0)], keys: Vec::new() };
        for number in 0..size {
            sorted.take(place(number), TAKEN);
            sorted.keys.push((key(number), false));
        }
        sorted
    }

    fn cut(&mut self, time: Time) -> usize {
        self.steps.binary_search_by_key(&time, |step| step.0).unwrap_or_else(|at| {
            let used = self.steps[at - 1].1;
            self.steps.insert(at, (time, used));
            at
        })
    }

    fn take(&mut self, interval: Interval, amount: u32) {
        let start = self.cut(interval.start());
        let end = self.cut(interval.end());
        self.steps[start..end].iter_mut().for_each(|step| step.1 += amount);
    }

    fn give(&mut self, interval: Interval, amount: u32) {
        let start = self.cut(interval.start());
        let end = self.cut(interval.end());
        self.steps[start..end].iter_mut().for_each(|step| step.1 -= amount);
        for at in [end, start] {
            if at > 0 && self.steps[at - 1].1 == self.steps[at].1 {
                self.steps.remove(at);
            }
        }
    }

    fn hold(&mut self, key: Key, interval: Interval, amount: u32) -> bool {
        if self.earliest_fit(interval.start(), interval.span(), amount) != interval.start() {
            return false;
        }
        let Err(at) = self.keys.binary_search_by_key(&key, |known| known.0) else { return false };
        self.keys.insert(at, (key, false));
        self.take(interval, amount);
        true
    }

    fn release(&mut self, key: Key, interval: Interval, amount: u32) {
        if let Ok(at) = self.keys.binary_search_by_key(&key, |known| known.0) {
            self.keys.remove(at);
            self.give(interval, amount);
        }
    }

    fn commit(&mut self, key: Key) {
        if let Ok(at) = self.keys.binary_search_by_key(&key, |known| known.0) {
            self.keys[at].1 = true;
        }
    }

    fn earliest_fit(&self, from: Time, span: Span, amount: u32) -> Time {
        let first = self.steps.partition_point(|step| step.0 <= from) - 1;
        let mut start = from;
        let mut blocked = false;
        for &(time, used) in &self.steps[first..] {
            if !blocked && time >= start + span {
                return start;
            }
            let now = used + amount > ROOM;
            if blocked && !now {
                start = time.max(from);
            }
            blocked = now;
        }
        start
    }
}

fn searches(criterion: &mut Criterion) {
    // Amount and seconds: free at once; one busy stretch to the end; too short a gap after each reservation.
    for (name, amount, secs) in [("no stretch", 8, 100), ("one long stretch", 40, 8), ("n stretches", 32, 8)]
    {
        let mut group = criterion.benchmark_group(format!("earliest_fit, {name}"));
        for size in SIZES {
            let (calendar, sorted) = (calendar(size), Sorted::new(size));
            let (from, span) = (Time::from_secs(20), Span::from_secs(secs));
            let expected = sorted.earliest_fit(from, span, amount);
            assert_eq!(calendar.earliest_fit(from, span, &amount, Against::Firm), Some(expected));
            group.bench_function(BenchmarkId::new("calendar", size), |bench| {
                bench.iter(|| calendar.earliest_fit(black_box(from), span, &amount, Against::Firm));
            });
            group.bench_function(BenchmarkId::new("sorted vec", size), |bench| {
                bench.iter(|| sorted.earliest_fit(black_box(from), span, amount));
            });
        }
        group.finish();
    }
}

fn changes(criterion: &mut Criterion) {
    let new = key(u64::MAX);
    // From the middle on, over a tenth of all.
    let stretch = |size: u64| {
        let start = Time::from_secs(5 * size + 3);
        Interval::starting(start, Span::from_secs(size)).expect("it ends")
    };
    let mut group = criterion.benchmark_group("hold and release");
    for size in SIZES {
        let (mut calendar, mut sorted, interval) = (calendar(size), Sorted::new(size), stretch(size));
        group.bench_function(BenchmarkId::new("calendar", size), |bench| {
            bench.iter(|| {
                calendar.hold(new, interval, 8, Time::NEVER, Against::Firm).expect("there is room");
                calendar.release(new)
            });
        });
        group.bench_function(BenchmarkId::new("calendar, snapshot kept", size), |bench| {
            bench.iter(|| {
                let kept = calendar.snapshot();
                calendar.hold(new, interval, 8, Time::NEVER, Against::Firm).expect("there is room");
                calendar.release(new).expect("it was held");
                kept
            });
        });
        group.bench_function(BenchmarkId::new("sorted vec", size), |bench| {
            bench.iter(|| {
                assert!(sorted.hold(new, interval, 8));
                sorted.release(new, interval, 8);
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("commit");
    for size in SIZES {
        let (mut held, mut sorted) = (calendar(size), Sorted::new(size));
        held.hold(new, stretch(size), 8, Time::NEVER, Against::Firm).expect("there is room");
        // A commit can be done once, so each works on a clone: the figure includes copying the shared paths.
        group.bench_function(BenchmarkId::new("calendar", size), |bench| {
            bench.iter_batched(
                || held.clone(),
                |mut held| {
                    held.commit(new, Time::ZERO).expect("it is held");
                    held
                },
                BatchSize::SmallInput,
            );
        });
        group.bench_function(BenchmarkId::new("sorted vec", size), |bench| {
            bench.iter(|| sorted.commit(black_box(key(size / 2))));
        });
    }
    group.finish();
}

fn snapshots(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    for size in SIZES {
        let (calendar, sorted) = (calendar(size), Sorted::new(size));
        group.bench_function(BenchmarkId::new("calendar", size), |bench| bench.iter(|| calendar.snapshot()));
        group.bench_function(BenchmarkId::new("sorted vec", size), |bench| {
            bench.iter(|| sorted.steps.clone());
        });
    }
    group.finish();
}

fn quick() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(600))
}

criterion_group! { name = benches; config = quick(); targets = searches, changes, snapshots }
criterion_main!(benches);
