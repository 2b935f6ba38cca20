//! The earliest time at which enough candidates are free together, exactly.
//!
//! Each candidate offers windows of possible starts. The earliest common start is the beginning of some window, so
//! one sweep over beginnings in order of time finds it: O(w log c) for w windows begun before the answer, of c
//! candidates.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use shoal_model::calendar::{Against, Interval, Timeline};
use shoal_model::{Amount, Span, Time};

/// No start further ahead than this is worth a plan. It also ends the search among machines whose hours never meet.
pub const HORIZON: Span = Span::from_hours(2 * 365 * 24);

/// When and where a job can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When.
    pub start: Time,
    /// Which of the candidates, by their places in the list; the first that are free then.
    pub chosen: Vec<usize>,
}

/// The earliest start from `from` on at which `count` of the candidates have `amount` free for `span`.
pub fn earliest<A: Amount>(
    candidates: &[&Timeline<A>],
    count: usize,
    from: Time,
    span: Span,
    amount: &A,
    against: Against,
) -> Option<Slot> {
    if count == 0 || candidates.len() < count {
        return None;
    }
    free_at(candidates, count, from, span, amount, against)
        .or_else(|| sweep(candidates, count, from, span, amount, against))
}

/// The candidates that are free at `start` itself, if they are enough: no need then to look any further.
fn free_at<A: Amount>(
    candidates: &[&Timeline<A>],
    count: usize,
    start: Time,
    span: Span,
    amount: &A,
    against: Against,
) -> Option<Slot> {
    let interval = Interval::starting(start, span)?;
    let free =
        (0..candidates.len()).filter(|&place| candidates[place].free_during(interval, amount, against));
    let chosen: Vec<usize> = free.take(count).collect();
    (chosen.len() == count).then_some(Slot { start, chosen })
}

fn sweep<A: Amount>(
    candidates: &[&Timeline<A>],
    count: usize,
    from: Time,
    span: Span,
    amount: &A,
    against: Against,
) -> Option<Slot> {
    let mut windows: Vec<_> =
        candidates.iter().map(|candidate| candidate.fit_windows(from, span, amount, against)).collect();
    // The next window of each candidate, the earliest first.
    let mut next: BinaryHeap<Reverse<(Time, usize, Time)>> = BinaryHeap::with_capacity(candidates.len());
    let mut push = |next: &mut BinaryHeap<_>, place: usize| {
        if let Some(window) = windows[place].next() {
            next.push(Reverse((window.first, place, window.last.unwrap_or(Time::NEVER))));
        }
    };
    (0..candidates.len()).for_each(|place| push(&mut next, place));
    // The windows that are open, the one that closes first in front.
    let mut open: BTreeSet<(Time, usize)> = BTreeSet::new();
    while let Some(Reverse((start, place, last))) = next.pop() {
        if start > from + HORIZON {
            return None;
        }
        push(&mut next, place);
        while open.first().is_some_and(|&(last, _)| last < start) {
            open.pop_first();
        }
        open.insert((last, place));
        // Others may open at the same time, and stand earlier in the list.
        let more = next.peek().is_some_and(|Reverse((other, ..))| *other == start);
        if open.len() >= count && !more {
            let mut chosen: Vec<usize> = open.into_iter().map(|(_, place)| place).collect();
            chosen.sort_unstable();
            chosen.truncate(count);
            return Some(Slot { start, chosen });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shoal_model::calendar::{Booking, Calendar, Capacity, Key, WEEK};
    use shoal_model::{Epoch, JobId};

    use super::*;

    fn calendar(busy: &[(u64, u64)]) -> Calendar<u32> {
        let mut calendar = Calendar::new(Capacity::constant(1).unwrap());
        for (number, &(start, length)) in busy.iter().enumerate() {
            let key = Key { job: JobId::from_number(number as u64), epoch: Epoch(1) };
            let interval = Interval::starting(Time::from_secs(start), Span::from_secs(length)).unwrap();
            // What overlaps is refused, which leaves the calendar as busy as before.
            let _ = calendar.book(key, interval, 1, Booking::Firm, Against::Firm);
        }
        calendar
    }

    proptest! {
        #[test]
        fn start_is_the_first_second_at_which_enough_are_free(
            busy in prop::collection::vec(prop::collection::vec((0u64..60, 1u64..10), 0..6), 1..7),
            count in 1usize..5,
            from in 0u64..30,
            length in 1u64..12,
        ) {
            let calendars: Vec<_> = busy.iter().map(|busy| calendar(busy)).collect();
            let lines: Vec<_> = calendars.iter().map(Calendar::timeline).collect();
            let free = |second: u64| -> Vec<usize> {
                let interval = Interval::starting(Time::from_secs(second), Span::from_secs(length)).unwrap();
                (0..lines.len()).filter(|&place| lines[place].free_during(interval, &1, Against::Firm)).collect()
            };
            let naive = (from..200).find(|&second| free(second).len() >= count).map(|second| {
                let mut chosen = free(second);
                chosen.truncate(count);
                Slot { start: Time::from_secs(second), chosen }
            });
            let found = earliest(&lines, count, Time::from_secs(from), Span::from_secs(length), &1, Against::Firm);
            prop_assert_eq!(found, naive);
        }
    }

    #[test]
    fn machines_whose_hours_never_meet_have_no_common_start() {
        let half = Span::from_micros(WEEK.as_micros() / 2);
        let first = Calendar::new(Capacity::weekly(Time::ZERO, vec![(Span::ZERO, 1), (half, 0)]).unwrap());
        let second = Calendar::new(Capacity::weekly(Time::ZERO, vec![(Span::ZERO, 0), (half, 1)]).unwrap());
        let lines = [first.timeline(), second.timeline()];
        assert_eq!(earliest(&lines, 2, Time::ZERO, Span::from_secs(1), &1, Against::Firm), None);
        assert!(earliest(&lines, 1, Time::ZERO, Span::from_secs(1), &1, Against::Firm).is_some());
    }
}
