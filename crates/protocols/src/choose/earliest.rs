//! The earliest time at which enough candidates are free together, exactly.
//!
//! Each candidate offers windows of possible starts. The earliest common start is the beginning of some window, so
//! one sweep over beginnings in order of time finds it: O(w log c) for w windows begun before the answer, of c
//! candidates.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::calendar::{Against, Steps, Timeline, View, Window};
use shoal_model::{Amount, Span, Time};

use crate::protocol::Chance;

/// No start further ahead than this is worth a plan. It also ends the search among machines whose hours never meet.
pub const HORIZON: Span = Span::from_hours(2 * 365 * 24);

/// When and where a job can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When.
    pub start: Time,
    /// Which of the candidates, by their places in the list.
    pub chosen: Vec<usize>,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, A> {
    /// How many candidates must be free together.
    pub count: usize,
    /// From when on.
    pub from: Time,
    /// For how long.
    pub span: Span,
    /// How much of each.
    pub amount: &'a A,
    /// Beside what.
    pub against: Against,
    /// Starts are multiples of this; at any instant if it is nothing.
    pub slot: Span,
}

/// Which candidates are taken where more are free than needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Those that stand first in the list.
    #[default]
    Discovery,
    /// Any.
    Random,
    /// Those with the least idle time left before and after.
    Tight,
}

/// The earliest start from `from` on at which `count` of the candidates have `amount` free for `span`; the first that
/// are free then.
pub fn earliest<A: Amount>(
    candidates: &[&Timeline<A>],
    count: usize,
    from: Time,
    span: Span,
    amount: &A,
    against: Against,
) -> Option<Slot> {
    let request = Request { count, from, span, amount, against, slot: Span::ZERO };
    let (start, mut chosen) = free_together(candidates, &request)?;
    chosen.truncate(count);
    Some(Slot { start, chosen })
}

/// The earliest common start, with the candidates that the rule picks among those free then.
pub fn earliest_by<A: Amount>(
    candidates: &[&Timeline<A>],
    request: &Request<'_, A>,
    pick: Pick,
    chance: &mut Chance,
) -> Option<Slot> {
    let (start, mut chosen) = free_together(candidates, request)?;
    match pick {
        Pick::Discovery => {}
        Pick::Random => {
            for drawn in 0..request.count {
                let other = chance.random_range(drawn..chosen.len());
                chosen.swap(drawn, other);
            }
        }
        Pick::Tight => chosen.sort_by_cached_key(|&place| idle_around(candidates[place], request, start)),
    }
    chosen.truncate(request.count);
    Some(Slot { start, chosen })
}

/// The time rounded up to a whole number of slots.
pub fn round_up(time: Time, slot: Span) -> Time {
    match slot.as_micros() {
        0 => time,
        slot => time.as_micros().checked_next_multiple_of(slot).map_or(Time::NEVER, Time::from_micros),
    }
}

/// The earliest common start, and all who are free then, in order.
fn free_together<A: Amount>(
    candidates: &[&Timeline<A>],
    request: &Request<'_, A>,
) -> Option<(Time, Vec<usize>)> {
    let Request { count, from, slot, .. } = *request;
    if count == 0 || candidates.len() < count {
        return None;
    }
    let mut windows: Vec<_> = candidates.iter().map(|candidate| windows(candidate, request)).collect();
    // The next window of each candidate, the earliest first; one without a slot's beginning in it is none.
    let mut next: BinaryHeap<Reverse<(Time, usize, Time)>> = BinaryHeap::with_capacity(candidates.len());
    let mut push = |next: &mut BinaryHeap<_>, place: usize| {
        let within = windows[place].by_ref().take_while(|window| window.first <= from + HORIZON);
        let mut windows =
            within.map(|window| (round_up(window.first, slot), window.last.unwrap_or(Time::NEVER)));
        if let Some((first, last)) = windows.find(|(first, last)| first <= last) {
            next.push(Reverse((first, place, last)));
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
            let mut free: Vec<usize> = open.into_iter().map(|(_, place)| place).collect();
            free.sort_unstable();
            return Some((start, free));
        }
    }
    None
}

/// What stays idle of the gap that a start is in: what lies before `from` is lost in any case.
fn idle_around<A: Amount>(candidate: &Timeline<A>, request: &Request<'_, A>, start: Time) -> Span {
    let mut windows = windows(candidate, request);
    let around = windows.find(|window| window.last.is_none_or(|last| last >= start));
    around.map_or(Span::MAX, |window| window.last.map_or(Span::MAX, |last| last.since(window.first)))
}

/// The windows of possible starts of one candidate.
///
/// Many are asked for in a sweep, so where capacity never changes one walk over the steps of use is quicker than a
/// search for each.
fn windows<'a, A: Amount>(
    candidate: &'a Timeline<A>,
    request: &Request<'a, A>,
) -> Windows<Walk<'a, A>, impl Iterator<Item = Window> + use<'a, A>> {
    let Request { from, span, amount, against, .. } = *request;
    let capacity = candidate.capacity();
    if against != Against::Firm || capacity.is_weekly() {
        return Windows::Search(candidate.fit_windows(from, span, amount, against));
    }
    let fits = amount.fits_in(capacity.most());
    Windows::Walk(Walk {
        steps: candidate.steps(View::Firm),
        room: if fits { capacity.most().minus(amount) } else { A::default() },
        from,
        span: span.max(Span::from_micros(1)),
        // Nothing is used before the first step.
        free_since: fits.then_some(Time::ZERO),
        over: !fits,
    })
}

enum Windows<W, S> {
    Walk(W),
    Search(S),
}

impl<W: Iterator<Item = Window>, S: Iterator<Item = Window>> Iterator for Windows<W, S> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        match self {
            Windows::Walk(walk) => walk.next(),
            Windows::Search(search) => search.next(),
        }
    }
}

/// A walk over the steps of use, from the first.
struct Walk<'a, A: Amount> {
    steps: Steps<'a, A>,
    /// What others may use so that the amount still fits.
    room: A,
    from: Time,
    span: Span,
    /// When the stretch began in which the amount fits, if it does at this step.
    free_since: Option<Time>,
    over: bool,
}

impl<A: Amount> Iterator for Walk<'_, A> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        while !self.over {
            let Some((time, used)) = self.steps.next() else {
                self.over = true;
                let first = self.free_since?.max(self.from);
                return (first + self.span < Time::NEVER).then_some(Window { first, last: None });
            };
            if used.fits_in(&self.room) {
                self.free_since.get_or_insert(time);
            } else if let Some(since) = self.free_since.take() {
                let first = since.max(self.from);
                if first + self.span <= time {
                    return Some(Window { first, last: Some(time - self.span) });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use shoal_model::calendar::{Booking, Calendar, Capacity, Interval, Key, WEEK};
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

    proptest! {
        #[test]
        fn a_walk_finds_the_windows_that_a_search_finds(
            busy in prop::collection::vec((0u64..60, 1u64..10, 1u32..4), 0..12),
            amount in 1u32..5,
            from in 0u64..40,
            length in 0u64..12,
        ) {
            let mut calendar = Calendar::new(Capacity::constant(4).unwrap());
            for (number, &(start, length, amount)) in busy.iter().enumerate() {
                let key = Key { job: JobId::from_number(number as u64), epoch: Epoch(1) };
                let interval = Interval::starting(Time::from_secs(start), Span::from_secs(length)).unwrap();
                let _ = calendar.book(key, interval, amount, Booking::Firm, Against::Firm);
            }
            let (from, span, against) = (Time::from_secs(from), Span::from_secs(length), Against::Firm);
            let line = calendar.timeline();
            let request = Request { count: 1, from, span, amount: &amount, against, slot: Span::ZERO };
            let walked: Vec<Window> = windows(line, &request).collect();
            let searched: Vec<Window> = line.fit_windows(from, span, &amount, against).collect();
            prop_assert_eq!(walked, searched);
        }
    }

    #[test]
    fn starts_are_whole_slots_and_a_gap_without_one_is_no_gap() {
        // Free from 61 to 119 and from 125 on.
        let calendar = calendar(&[(0, 61), (119, 6)]);
        let line = calendar.timeline();
        let request = |length, slot| Request {
            count: 1,
            from: Time::from_secs(1),
            span: Span::from_secs(length),
            amount: &1,
            against: Against::Firm,
            slot: Span::from_secs(slot),
        };
        let start = |length, slot| {
            let chance = &mut Chance::seed_from_u64(1);
            earliest_by(&[line], &request(length, slot), Pick::Discovery, chance).unwrap().start
        };
        assert_eq!(start(30, 0), Time::from_secs(61));
        assert_eq!(start(30, 60), Time::from_secs(180));
        assert_eq!(start(30, 80), Time::from_secs(80));
        assert_eq!(start(40, 80), Time::from_secs(160));
    }

    #[test]
    fn rules_pick_among_those_that_are_free() {
        // Busy until 50; free for ever; free for 8 seconds; free for 20.
        let calendars = [calendar(&[(0, 50)]), calendar(&[]), calendar(&[(8, 9)]), calendar(&[(20, 9)])];
        let lines: Vec<_> = calendars.iter().map(Calendar::timeline).collect();
        let (from, span, against) = (Time::ZERO, Span::from_secs(5), Against::Firm);
        let request = Request { count: 2, from, span, amount: &1, against, slot: Span::ZERO };
        let chosen = |pick, seed| {
            let slot = earliest_by(&lines, &request, pick, &mut Chance::seed_from_u64(seed)).unwrap();
            assert_eq!(slot.start, from);
            slot.chosen
        };
        assert_eq!(chosen(Pick::Discovery, 1), [1, 2]);
        assert_eq!(chosen(Pick::Tight, 1), [2, 3]);
        let random: BTreeSet<Vec<usize>> = (0..50).map(|seed| chosen(Pick::Random, seed)).collect();
        assert_eq!(random.len(), 6, "all ordered pairs of the three that are free: {random:?}");
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
