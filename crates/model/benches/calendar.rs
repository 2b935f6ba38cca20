//! The calendar beside a sorted `Vec` of steps, so that ratios can be read from one run.
//!
//! Reservation i takes 16 of 64 from 10 i to 10 i + 25 seconds: use is 48 and 32 in turn, to the last.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use shoal_model::calendar::{Against, Booking, Calendar, Capacity, Interval, Key};
use shoal_model::{Amount, Epoch, JobId, Resources, Size, Span, Time};

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
    fill(Capacity::constant(ROOM).expect("small"), TAKEN, size)
}

fn fill<A: Amount>(capacity: Capacity<A>, taken: A, size: u64) -> Calendar<A> {
    let mut calendar = Calendar::new(capacity);
    for number in 0..size {
        calendar
            .book(key(number), place(number), taken.clone(), Booking::Firm, Against::Firm)
            .expect("there is room");
    }
    calendar
}

/// A vector with as many cores, and as many times 1 GiB.
fn vector(count: u32) -> Resources {
    Resources::cores(count).with_memory(Size::from_gib(u64::from(count)))
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

/// Too short a gap after each reservation, as in "n stretches", for other amounts, capacities and views.
fn stretches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("n stretches");
    let (from, span) = (Time::from_secs(20), Span::from_secs(8));
    for size in SIZES {
        let vectors = fill(Capacity::constant(vector(ROOM)).expect("small"), vector(TAKEN), size);
        let amount = vector(32);
        group.bench_function(BenchmarkId::new("vectors", size), |bench| {
            bench.iter(|| vectors.earliest_fit(black_box(from), span, &amount, Against::Firm));
        });
        // One core less every night makes no difference to who needs 32, but has to be looked at.
        let nights = (0..7).flat_map(|day| [(day * 24 + 6, ROOM), (day * 24 + 22, ROOM - 1)]);
        let nights = nights.map(|(hour, amount)| (Span::from_hours(hour), amount)).collect();
        let weekly = fill(Capacity::weekly(Time::ZERO, nights).expect("it makes sense"), TAKEN, size);
        group.bench_function(BenchmarkId::new("weekly capacity", size), |bench| {
            bench.iter(|| weekly.earliest_fit(black_box(from), span, &32, Against::Firm));
        });
        let mut both = calendar(size);
        both.book(key(size), place(size + 9), TAKEN, Booking::Soft, Against::Whole).expect("there is room");
        group.bench_function(BenchmarkId::new("both views", size), |bench| {
            bench.iter(|| both.earliest_fit(black_box(from), span, &32, Against::Both));
        });
        // The worst for vectors: what is missing is cores and memory in turn, so that no part of a stretch is short of all
        // the time, and each of its changes has to be looked at.
        let mut turns = Calendar::new(Capacity::constant(vector(ROOM)).expect("small"));
        for number in 0..size {
            let taken = if number % 2 == 0 {
                Resources::cores(40)
            } else {
                Resources::default().with_memory(Size::from_gib(40))
            };
            let interval = Interval::starting(Time::from_secs(10 * number), Span::from_secs(10));
            let interval = interval.expect("it ends");
            turns.book(key(number), interval, taken, Booking::Firm, Against::Firm).expect("there is room");
        }
        group.bench_function(BenchmarkId::new("vectors that lack in turn", size), |bench| {
            bench.iter(|| turns.earliest_fit(black_box(from), span, &amount, Against::Firm));
        });
        let calendar = calendar(size);
        group.bench_function(BenchmarkId::new("windows of an instant", size), |bench| {
            bench.iter(|| {
                let windows =
                    calendar.timeline().fit_windows(black_box(from), Span::ZERO, &32, Against::Firm);
                windows.count()
            });
        });
    }
    group.finish();
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
        let mut vectors = fill(Capacity::constant(vector(ROOM)).expect("small"), vector(TAKEN), size);
        group.bench_function(BenchmarkId::new("calendar of vectors", size), |bench| {
            bench.iter(|| {
                vectors.hold(new, interval, vector(8), Time::NEVER, Against::Firm).expect("there is room");
                vectors.release(new)
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

    others(criterion);
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

/// What is done to single reservations, and a look whether a stretch is free: each on a clone, where it can be done once.
fn others(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("single reservations");
    for size in SIZES {
        let calendar = calendar(size);
        let middle = size / 2;
        let stretch =
            Interval::starting(Time::from_secs(5 * size + 3), Span::from_secs(size)).expect("it ends");
        group.bench_function(BenchmarkId::new("free_during", size), |bench| {
            bench.iter(|| calendar.free_during(black_box(stretch), &8, Against::Firm));
        });
        let at = place(middle).start() + Span::from_secs(12);
        group.bench_function(BenchmarkId::new("cut_short", size), |bench| {
            bench.iter_batched(
                || calendar.clone(),
                |mut calendar| {
                    calendar.cut_short(key(middle), at).expect("it is there");
                    calendar
                },
                BatchSize::SmallInput,
            );
        });
        let (start, end) = (place(middle).start(), place(middle).end());
        let mut running = calendar.clone();
        let hard_end = end + Span::from_secs(10);
        running.start(key(middle), start, end, hard_end).expect("there is room");
        group.bench_function(BenchmarkId::new("extend", size), |bench| {
            bench.iter_batched(
                || running.clone(),
                |mut running| {
                    running.extend(key(middle), hard_end).expect("it runs");
                    running
                },
                BatchSize::SmallInput,
            );
        });
        let mut soft = calendar.clone();
        let new = key(u64::MAX);
        soft.book(new, place(size + 9), TAKEN, Booking::Soft, Against::Whole).expect("there is room");
        group.bench_function(BenchmarkId::new("shift", size), |bench| {
            bench.iter_batched(
                || soft.clone(),
                |mut soft| {
                    soft.shift(new, start, Against::Firm).expect("it is soft");
                    soft
                },
                BatchSize::SmallInput,
            );
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

criterion_group! { name = benches; config = quick(); targets = searches, stretches, changes, snapshots }
criterion_main!(benches);
