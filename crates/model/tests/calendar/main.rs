//! The calendar against one that counts slot by slot, on random sequences of every operation.

mod cases;
mod naive;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use naive::{Naive, WEEK_SLOTS, interval, slot, time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use shoal_model::calendar::{
    Against, Booking, Calendar, Capacity, Key, Reservation, Snapshot, State, View, Window,
};
use shoal_model::{Amount, Epoch, JobId, Time};

/// Three resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Three([u64; 3]);

impl Three {
    fn zip(&self, other: &Three, with: impl Fn(u64, u64) -> u64) -> Three {
        Three(std::array::from_fn(|at| with(self.0[at], other.0[at])))
    }
}

impl Amount for Three {
    fn plus(&self, other: &Three) -> Three {
        self.zip(other, u64::wrapping_add)
    }

    fn minus(&self, other: &Three) -> Three {
        self.zip(other, u64::wrapping_sub)
    }

    fn fits_in(&self, room: &Three) -> bool {
        self.0.iter().zip(&room.0).all(|(mine, room)| mine <= room)
    }

    fn most(&self, other: &Three) -> Three {
        self.zip(other, |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned())
    }

    fn least(&self, other: &Three) -> Three {
        self.zip(other, |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned())
    }

    fn in_range(&self) -> bool {
        self.0.iter().all(|&one| one.cast_signed() >= 0)
    }
}

/// What a random operation is made of.
#[derive(Clone, Debug)]
struct Step<A> {
    what: u8,
    key: Key,
    start: usize,
    span: usize,
    extra: usize,
    amount: A,
    against: Against,
}

fn step<A: Amount + 'static>(jobs: u64, amount: BoxedStrategy<A>) -> impl Strategy<Value = Step<A>> {
    let against = prop_oneof![Just(Against::Firm), Just(Against::Whole), Just(Against::Both)];
    let span = prop_oneof![6 => 1usize..9, 1 => 9usize..70];
    (0u8..24, 0..jobs, 0u32..3, 0usize..50, span, 0usize..9, amount, against).prop_map(
        |(what, job, epoch, start, span, extra, amount, against)| Step {
            what,
            key: Key { job: JobId::from_number(job), epoch: Epoch(epoch) },
            start,
            span,
            extra,
            amount,
            against,
        },
    )
}

/// A week by slots: constant, or of a few stretches.
fn week<A: Amount + 'static>(amount: BoxedStrategy<A>) -> impl Strategy<Value = Vec<A>> {
    let stretch = (amount, 1usize..20);
    prop::collection::vec(stretch, 1..5).prop_map(|stretches| {
        let slots = stretches.into_iter().flat_map(|(amount, length)| vec![amount; length]);
        slots.collect::<Vec<_>>().into_iter().cycle().take(WEEK_SLOTS).collect()
    })
}

fn capacity<A: Amount>(week: &[A], week_start: usize) -> Capacity<A> {
    let at = |slot: usize| week[(slot + week_start) % WEEK_SLOTS].clone();
    let steps = (0..WEEK_SLOTS).map(|slot| (time(slot).since(Time::ZERO), at(slot))).collect();
    Capacity::weekly(time(week_start), steps).unwrap()
}

fn scalar() -> BoxedStrategy<u32> {
    (0u32..6).boxed()
}

fn scalar_room() -> BoxedStrategy<u32> {
    (0u32..9).boxed()
}

fn vector() -> BoxedStrategy<Three> {
    prop::array::uniform3(0u64..4).prop_map(Three).boxed()
}

fn vector_room() -> BoxedStrategy<Three> {
    prop::array::uniform3(0u64..7).prop_map(Three).boxed()
}

fn hash<T: std::hash::Hash>(value: &T) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Does one operation to both; answers and refusals must agree.
fn apply<A: Amount>(calendar: &mut Calendar<A>, naive: &mut Naive<A>, step: &Step<A>) {
    let Step { key, start, span, extra, against, .. } = *step;
    let amount = || step.amount.clone();
    let place = interval(start, span);
    match step.what {
        0..4 => {
            let until = time(start + extra);
            let held = Reservation { key, interval: place, amount: amount(), state: State::Held { until } };
            assert_eq!(calendar.hold(key, place, amount(), until, against), naive.place(held, against));
        }
        4..10 => {
            let booking = if step.what < 6 { Booking::Firm } else { Booking::Soft };
            assert_eq!(
                calendar.book(key, place, amount(), booking, against),
                naive.book(key, place, amount(), booking, against)
            );
        }
        10 | 11 => assert_eq!(calendar.commit(key, time(extra * 4)), naive.commit(key, time(extra * 4))),
        12..15 => {
            // Where it is planned, more often than not: elsewhere there is seldom room.
            let at =
                naive.get(key).filter(|_| extra % 3 != 0).map_or(start, |one| slot(one.interval.start()));
            // Now and then the hard end comes first, which is refused.
            let (planned, hard) = (at + span, (at + span + extra).saturating_sub(1));
            assert_eq!(
                calendar.start(key, time(at), time(planned), time(hard)),
                naive.start(key, at, planned, hard)
            );
        }
        15 => assert_eq!(calendar.release(key), naive.release(key)),
        16 => assert_eq!(calendar.cut_short(key, time(start)), naive.cut_short(key, start)),
        17..20 => {
            let end = naive.get(key).map_or(start, |one| slot(one.interval.end())) + extra;
            assert_eq!(calendar.extend(key, time(end)), naive.extend(key, end));
        }
        20 => {
            let moved = calendar.shift(key, time(start), against);
            assert_eq!(moved, naive.shift(key, start, against, false));
        }
        21 => {
            let moved = calendar.pull_forward(key, time(start), against);
            assert_eq!(moved, naive.shift(key, start, against, true));
        }
        22 => {
            let now = time(extra);
            let until = |one: &Reservation<A>| match one.state {
                State::Held { until } => until,
                _ => Time::NEVER,
            };
            let expired = naive.drain(|one| until(one) <= now, |one| (until(one), one.key));
            assert_eq!(calendar.expire(now), expired);
        }
        _ => {
            let now = time(extra * 2);
            let over = naive.drain(|one| one.last_end() <= now, |one| (one.interval.start(), one.key));
            assert_eq!(calendar.forget_before(now), over);
        }
    }
}

/// Both must say the same of every slot, and use must stay within capacity.
fn compare<A: Amount>(calendar: &Calendar<A>, naive: &Naive<A>) {
    assert!(calendar.iter().eq(&naive.sorted()), "{calendar:?}");
    for at in 0..naive.last_end() + 2 {
        let (capacity, _) = calendar.capacity().at(time(at));
        assert_eq!(capacity, &naive.week[at % WEEK_SLOTS]);
        for view in [View::Firm, View::Whole] {
            let used = naive.used(at, view, None);
            assert_eq!(calendar.timeline().used_at(time(at), view), used, "{view:?} in slot {at}");
            assert!(used.fits_in(capacity), "{view:?} in slot {at} is over capacity");
        }
    }
    let until = |one: &Reservation<A>| match one.state {
        State::Held { until } => Some(until),
        _ => None,
    };
    assert_eq!(calendar.next_expiry(), naive.reservations.iter().filter_map(until).min());
}

/// Both must answer questions alike.
fn ask<A: Amount>(calendar: &Calendar<A>, naive: &Naive<A>, step: &Step<A>) {
    let Step { key, start, span, extra, against, ref amount, .. } = *step;
    let length = time(span).since(Time::ZERO);
    let found = calendar.earliest_fit(time(start), length, amount, against);
    assert_eq!(found, naive.earliest(start, span, amount, against, None).map(time));
    let without = calendar.without(key.job).earliest_fit(time(start), length, amount, against);
    assert_eq!(without, naive.earliest(start, span, amount, against, Some(key.job)).map(time));
    let free = calendar.free_during(interval(start, span), amount, against);
    assert_eq!(free, naive.free(start, start + span, amount, against, None));

    let until = start + 20 * extra;
    let snapshot = calendar.snapshot();
    let windows = snapshot.fit_windows(time(start), length, amount, against);
    let windows: Vec<Window> = windows.take_while(|window| window.first < time(until)).collect();
    assert_eq!(windows, naive.windows(start, until, span, amount, against));

    assert_eq!(calendar.get(key), naive.get(key));
    let sorted = naive.sorted();
    let from = sorted.iter().filter(|one| one.interval.start() >= time(start));
    assert!(calendar.starting_from(time(start)).eq(from));
    let mut of_job: Vec<_> = sorted.iter().filter(|one| one.key.job == key.job).collect();
    of_job.sort_by_key(|one| one.key);
    assert!(calendar.of_job(key.job).eq(of_job));
}

type Steps<A> = Vec<(Time, A)>;

fn told<A: Amount>(snapshot: &Snapshot<A>) -> (Steps<A>, Steps<A>) {
    (snapshot.steps(View::Firm).collect(), snapshot.steps(View::Whole).collect())
}

/// Does all steps, and compares after every so many of them.
fn run<A: Amount>(week: Vec<A>, week_start: usize, steps: Vec<Step<A>>, compare_every: usize) {
    let capacity = capacity(&week, week_start);
    let mut calendar = Calendar::new(capacity.clone());
    let mut naive = Naive { week, reservations: Vec::new() };
    let mut kept = Vec::new();
    for (count, step) in steps.iter().enumerate() {
        let before = calendar.clone();
        apply(&mut calendar, &mut naive, step);
        if count % compare_every == 0 {
            compare(&calendar, &naive);
            ask(&calendar, &naive, step);
        }
        assert!(calendar == before || calendar.version() > before.version());
        assert!(calendar.version() != before.version() || calendar == before);
        if count % (5 * compare_every) == 0 {
            let snapshot = calendar.snapshot();
            kept.push((told(&snapshot), snapshot, calendar.clone(), naive.clone()));
        }
    }
    for ((firm, whole), snapshot, calendar, naive) in kept {
        assert_eq!(told(&snapshot), (firm.clone(), whole.clone()), "a snapshot changed");
        let rebuilt =
            Snapshot::from_steps(snapshot.version(), capacity.clone(), &firm, Some(&whole)).unwrap();
        assert_eq!(rebuilt, snapshot);
        assert_eq!(hash(&rebuilt), hash(&snapshot));

        compare(&calendar, &naive);
        let restored = Calendar::restore(capacity.clone(), naive.reservations).unwrap();
        assert_eq!(restored, calendar);
        assert_eq!(hash(&restored), hash(&calendar));
        assert_eq!(restored.timeline(), calendar.timeline());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn scalars_under_constant_capacity_are_kept_as_slot_by_slot(
        room in 1u32..9,
        steps in prop::collection::vec(step(7, scalar()), 1..60),
    ) {
        run(vec![room; WEEK_SLOTS], 0, steps, 1);
    }

    #[test]
    fn scalars_under_weekly_capacity_are_kept_as_slot_by_slot(
        week in week(scalar_room()),
        week_start in 0usize..100,
        steps in prop::collection::vec(step(7, scalar()), 1..60),
    ) {
        run(week, week_start, steps, 1);
    }

    #[test]
    fn vectors_under_constant_capacity_are_kept_as_slot_by_slot(
        room in vector_room(),
        steps in prop::collection::vec(step(7, vector()), 1..60),
    ) {
        run(vec![room; WEEK_SLOTS], 0, steps, 1);
    }

    #[test]
    fn vectors_under_weekly_capacity_are_kept_as_slot_by_slot(
        week in week(vector_room()),
        week_start in 0usize..100,
        steps in prop::collection::vec(step(7, vector()), 1..60),
    ) {
        run(week, week_start, steps, 1);
    }
}

// As many reservations and changes of use as need several nodes of a tree.
proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::with_cases(3) })]

    #[test]
    fn many_scalars_are_kept_as_slot_by_slot(
        room in 60u32..90,
        steps in prop::collection::vec(step(70, scalar()), 300),
    ) {
        run(vec![room; WEEK_SLOTS], 0, steps, 10);
    }

    #[test]
    fn many_vectors_under_weekly_capacity_are_kept_as_slot_by_slot(
        week in week(prop::array::uniform3(30u64..50).prop_map(Three).boxed()),
        steps in prop::collection::vec(step(70, vector()), 300),
    ) {
        run(week, 0, steps, 10);
    }
}
