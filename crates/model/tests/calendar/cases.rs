//! Single claims, where a name says more than a random sequence.

use shoal_model::calendar::{
    Against, Booking, Calendar, Capacity, Interval, Key, Moved, Refusal, Reservation, Snapshot, State,
    StepsError, View, WEEK, Window,
};
use shoal_model::{Epoch, JobId, Span, Time};

use crate::naive::{interval, time};

fn key(job: u64, epoch: u32) -> Key {
    Key { job: JobId::from_number(job), epoch: Epoch(epoch) }
}

fn four() -> Calendar<u32> {
    Calendar::new(Capacity::constant(4).unwrap())
}

/// Four in the first half of each week, two in the second.
fn week() -> Capacity<u32> {
    Capacity::weekly(Time::ZERO, vec![(Span::ZERO, 4), (Span::from_hours(84), 2)]).unwrap()
}

#[test]
fn empty_span_asks_for_an_instant() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(0, 2), 4, Booking::Firm, Against::Firm).unwrap();
    assert_eq!(calendar.earliest_fit(time(1), Span::ZERO, &1, Against::Firm), Some(time(2)));
}

#[test]
fn commit_after_expiry_is_refused_even_before_the_sweep() {
    let mut calendar = four();
    calendar.hold(key(1, 0), interval(5, 2), 4, time(3), Against::Firm).unwrap();
    assert_eq!(calendar.commit(key(1, 0), time(3)), Err(Refusal::Expired { until: time(3) }));
    assert_eq!(calendar.expire(time(3)).len(), 1);
    assert_eq!(calendar.commit(key(1, 0), time(3)), Err(Refusal::Unknown));
}

#[test]
fn refused_hold_names_the_next_free_start() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(2, 5), 3, Booking::Firm, Against::Firm).unwrap();
    let refusal = calendar.hold(key(2, 0), interval(1, 3), 2, time(9), Against::Firm).unwrap_err();
    assert_eq!(refusal, Refusal::NoRoom { next: Some(time(7)) });
    let refusal = calendar.hold(key(2, 0), interval(1, 3), 5, time(9), Against::Firm).unwrap_err();
    assert_eq!(refusal.to_string(), "no room then: it never fits here");
    let refusal = calendar.hold(key(2, 0), interval(1, 3), u32::MAX, time(9), Against::Firm).unwrap_err();
    assert_eq!(refusal, Refusal::NoRoom { next: None }, "an amount from outside cannot wrap around");
}

#[test]
fn new_placement_is_held_over_the_old_one_and_shares_with_it() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(0, 10), 4, Booking::Firm, Against::Firm).unwrap();
    calendar.hold(key(1, 1), interval(5, 10), 4, time(3), Against::Firm).unwrap();
    assert!(calendar.hold(key(2, 0), interval(9, 2), 1, time(3), Against::Firm).is_err());

    calendar.release(key(1, 0)).unwrap();
    assert!(calendar.free_during(interval(0, 5), &4, Against::Firm));
    assert!(!calendar.free_during(interval(5, 1), &1, Against::Firm), "the new one keeps its own");
    let late = calendar.hold(key(1, 0), interval(30, 1), 1, time(3), Against::Firm);
    assert_eq!(late, Err(Refusal::Superseded { current: Epoch(1) }));
}

#[test]
fn overrun_moves_who_has_no_room_beside_it_behind_the_hard_end() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(0, 4), 4, Booking::Firm, Against::Firm).unwrap();
    calendar.start(key(1, 0), time(0), time(4), time(8)).unwrap();
    calendar.book(key(2, 0), interval(4, 3), 2, Booking::Soft, Against::Whole).unwrap();

    let moved = calendar.extend(key(1, 0), time(5)).unwrap();

    assert_eq!(moved, [Moved { key: key(2, 0), from: time(4), to: Some(time(8)) }]);
    assert_eq!(calendar.extend(key(1, 0), time(8)), Ok(vec![]), "nobody is left to move");
    assert_eq!(calendar.extend(key(1, 0), time(9)), Err(Refusal::PastHardEnd { hard_end: time(8) }));
    calendar.cut_short(key(1, 0), time(6)).unwrap();
    let pulled = calendar.pull_forward(key(2, 0), time(5), Against::Both).unwrap();
    assert_eq!(pulled, Some(Moved { key: key(2, 0), from: time(8), to: Some(time(6)) }));
}

#[test]
fn overrun_moves_only_the_last_of_those_in_its_way() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(0, 4), 2, Booking::Firm, Against::Firm).unwrap();
    calendar.start(key(1, 0), time(0), time(4), time(8)).unwrap();
    for job in [2, 3] {
        calendar.book(key(job, 0), interval(4, 3), 2, Booking::Soft, Against::Whole).unwrap();
    }

    let moved = calendar.extend(key(1, 0), time(5)).unwrap();

    assert_eq!(moved, [Moved { key: key(3, 0), from: time(4), to: Some(time(5)) }]);
}

#[test]
fn one_profile_is_kept_while_the_views_are_equal() {
    let mut calendar = four();
    calendar.book(key(1, 0), interval(0, 4), 2, Booking::Firm, Against::Firm).unwrap();
    assert!(!calendar.snapshot().has_views_apart());
    calendar.book(key(2, 0), interval(0, 4), 2, Booking::Soft, Against::Both).unwrap();
    assert!(calendar.snapshot().has_views_apart());
    calendar.release(key(2, 0)).unwrap();
    assert!(!calendar.snapshot().has_views_apart());
}

#[test]
fn overbooked_records_are_refused_by_name() {
    let record =
        |job, amount| Reservation { key: key(job, 0), interval: interval(0, 4), amount, state: State::Firm };
    let capacity = Capacity::constant(4u32).unwrap();
    let error = Calendar::restore(capacity.clone(), [record(2, 3), record(1, 2)]).unwrap_err();
    assert_eq!((error.key, error.refusal), (key(2, 0), Refusal::NoRoom { next: Some(time(4)) }));
    assert_eq!(
        Calendar::restore(capacity, [record(1, 1), record(1, 1)]).unwrap_err().refusal,
        Refusal::Taken
    );
}

#[test]
fn steps_from_outside_are_checked() {
    let made = |steps: &[(usize, u32)]| {
        let steps: Vec<_> = steps.iter().map(|&(slot, used)| (time(slot), used)).collect();
        Snapshot::from_steps(1, week(), &steps, None)
    };
    assert!(made(&[(0, 4), (14, 2), (20, 0)]).is_ok());
    assert_eq!(made(&[(0, 4), (0, 0)]), Err(StepsError::Time { step: 1 }));
    assert_eq!(made(&[(0, 4)]), Err(StepsError::Endless));
    assert_eq!(made(&[(0, u32::MAX), (1, 0)]), Err(StepsError::OverCapacity { step: 0, at: time(0) }));
    assert_eq!(made(&[(0, 1), (2, 3), (15, 0)]), Err(StepsError::OverCapacity { step: 1, at: time(14) }));
}

#[test]
fn search_ends_however_long_the_use_and_the_span() {
    let mut calendar = Calendar::new(week());
    let far = Time::from_micros(u64::MAX / 2);
    let long = Interval::new(time(1), far).unwrap();
    calendar.book(key(1, 0), long, 1, Booking::Firm, Against::Firm).unwrap();

    let fit = |span, amount| calendar.earliest_fit(time(1), span, &amount, Against::Firm);
    assert_eq!(fit(WEEK * 1_000_000, 1), Some(time(1)));
    let last_week = far - Span::from_micros(far.as_micros() % WEEK.as_micros());
    assert_eq!(fit(WEEK * 1_000_000, 2), Some(last_week), "in the half week of four in which the use ends");
    assert_eq!(fit(WEEK, 3), None, "no week has room for three throughout");
    assert_eq!(fit(Span::from_hours(84), 3), Some(Time::ZERO + WEEK));
    assert!(fit(Span::from_hours(84), 4).is_some_and(|start| start >= far));
    assert_eq!(fit(Span::MAX, 1), None, "nothing lasts for ever");
}

#[test]
fn weekly_windows_go_on_for_ever() {
    let snapshot = Calendar::new(week()).snapshot();
    let mut windows = snapshot.fit_windows(time(0), Span::from_hours(80), &3, Against::Both);
    for week in 0..1_000 {
        let first = Time::ZERO + WEEK * week;
        assert_eq!(windows.next(), Some(Window { first, last: Some(first + Span::from_hours(4)) }));
    }
    let all: Vec<_> = snapshot.fit_windows(time(3), WEEK, &2, Against::Both).collect();
    assert_eq!(all, [Window { first: time(3), last: None }]);
}

#[test]
fn forgetting_bounds_memory_and_keeps_what_reaches_on() {
    let mut calendar = four();
    for job in 0..100 {
        calendar.book(key(job, 0), interval(job as usize, 2), 2, Booking::Firm, Against::Firm).unwrap();
    }
    assert_eq!(calendar.forget_before(time(50)).len(), 49);
    assert_eq!(calendar.next_start(time(0)), Some(time(49)));
    assert_eq!(calendar.timeline().steps(View::Firm).next(), Some((time(49), 2)));
}
