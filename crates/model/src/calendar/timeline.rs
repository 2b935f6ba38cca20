//! Use against capacity: when something fits, in either view of what is reserved.
//!
//! **Firm** use is what cannot move: held, firm, and running up to its hard end. **Whole** use is what is planned:
//! held, firm, soft, and running up to its planned end. They differ only while something is soft or runs with a
//! planned end before its hard end; else one profile is both.
//!
//! A search that skips k busy stretches takes O(log n) for scalars and as much again for each of them, less where
//! they are short: O(k + log n) if they have a few changes each (for vectors see the profile's caveat). With weekly capacity, a step of the week that is crossed while use alone does not decide counts as a stretch.
//! There is no horizon: after the last change of use the week repeats, so a request that found no place within a
//! week of unchanging use finds none in that stretch, and after the last change, none ever.

use std::hash::{Hash, Hasher};

use crate::amount::Amount;
use crate::calendar::capacity::{Capacity, WEEK};
use crate::calendar::finger::Finger;
use crate::calendar::profile::{Profile, Steps};
use crate::calendar::reservation::Interval;
use crate::time::{Span, Time};

/// Which use leaves no room for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Against {
    /// What cannot move: soft reservations do not count, running ones count up to their hard end.
    Firm,
    /// What is planned: soft reservations count, running ones up to their planned end.
    Whole,
    /// Either: soft reservations count, and no job is trusted to end before its hard end.
    Both,
}

/// One of the two views of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// What cannot move.
    Firm,
    /// What is planned.
    Whole,
}

/// Possible starts: every instant from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The earliest start.
    pub first: Time,
    /// The latest start; none if there is no end to them.
    pub last: Option<Time>,
}

/// Use over time in both views, and what there is to use.
#[derive(Clone, Debug)]
pub struct Timeline<A: Amount> {
    pub(super) capacity: Capacity<A>,
    pub(super) firm: Profile<A>,
    /// None while it is the same as `firm`.
    pub(super) whole: Option<Profile<A>>,
}

impl<A: Amount> Timeline<A> {
    pub(super) fn new(capacity: Capacity<A>) -> Timeline<A> {
        Timeline { capacity, firm: Profile::default(), whole: None }
    }

    /// What there is to use.
    pub fn capacity(&self) -> &Capacity<A> {
        &self.capacity
    }

    /// What is used at an instant.
    pub fn used_at(&self, time: Time, view: View) -> A {
        self.profile(view).used_at(time)
    }

    /// Each instant where use changes, with the use from there on.
    pub fn steps(&self, view: View) -> Steps<'_, A> {
        self.profile(view).steps()
    }

    /// The earliest start, from `from` on, with `amount` free for `span`; none if it never is.
    ///
    /// An empty span looks for a free instant.
    pub fn earliest_fit(&self, from: Time, span: Span, amount: &A, against: Against) -> Option<Time> {
        self.search(amount, against).earliest_fit(from, span)
    }

    /// Whether `amount` is free throughout `interval`.
    pub fn free_during(&self, interval: Interval, amount: &A, against: Against) -> bool {
        self.first_blocked(interval, amount, against).is_none()
    }

    /// The first instant of `interval` when `amount` is not free.
    pub(super) fn first_blocked(&self, interval: Interval, amount: &A, against: Against) -> Option<Time> {
        self.search(amount, against).first_blocked(interval.start(), interval.end())
    }

    /// The windows of possible starts from `from` on, in order, each as wide as it can be.
    ///
    /// With weekly capacity there may be no last one: take as many as needed.
    pub fn fit_windows<'a>(
        &'a self,
        from: Time,
        span: Span,
        amount: &'a A,
        against: Against,
    ) -> impl Iterator<Item = Window> + use<'a, A> {
        let mut search = self.search(amount, against);
        let span = span.max(INSTANT);
        let mut from = Some(from);
        std::iter::from_fn(move || {
            let first = search.earliest_fit(from.take()?, span)?;
            let blocked = search.first_blocked(first + span, Time::NEVER);
            from = blocked;
            Some(Window { first, last: blocked.map(|blocked| blocked - span) })
        })
    }

    pub(super) fn profile(&self, view: View) -> &Profile<A> {
        match view {
            View::Firm => &self.firm,
            View::Whole => self.whole.as_ref().unwrap_or(&self.firm),
        }
    }

    fn search<'a>(&'a self, amount: &'a A, against: Against) -> Search<'a, A> {
        let (first, second) = match (against, &self.whole) {
            (Against::Firm, _) | (_, None) => (&self.firm, None),
            (Against::Whole, Some(whole)) => (whole, None),
            (Against::Both, Some(whole)) => (&self.firm, Some(whole)),
        };
        let second = second.map(|whole| Second { finger: whole.finger(), first_before: first.finger() });
        let room = |capacity: &A| room(capacity, amount);
        Search {
            capacity: &self.capacity,
            amount,
            most_room: room(self.capacity.most()),
            least_room: room(self.capacity.least()),
            fingers: Fingers { first: first.finger(), second },
        }
    }
}

impl<A: Amount> PartialEq for Timeline<A> {
    fn eq(&self, other: &Timeline<A>) -> bool {
        let same_whole = self.whole.is_none() && other.whole.is_none()
            || self.profile(View::Whole) == other.profile(View::Whole);
        self.capacity == other.capacity && self.firm == other.firm && same_whole
    }
}

impl<A: Amount> Eq for Timeline<A> {}

/// By what equality always looks at: the firm view and the capacity.
impl<A: Amount> Hash for Timeline<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.capacity.hash(state);
        self.firm.hash(state);
    }
}

/// The shortest span.
const INSTANT: Span = Span::from_micros(1);

/// A question about one amount, and how far it has been answered: what is asked next is not about earlier instants.
struct Search<'a, A: Amount> {
    capacity: &'a Capacity<A>,
    amount: &'a A,
    /// What others may use of the week's most capacity.
    most_room: Option<A>,
    /// What others may use of the week's least capacity.
    least_room: Option<A>,
    fingers: Fingers<'a, A>,
}

impl<A: Amount> Search<'_, A> {
    fn earliest_fit(&mut self, from: Time, span: Span) -> Option<Time> {
        let span = span.max(INSTANT);
        self.most_room.as_ref()?;
        let mut start = from;
        let mut lap = self.lap(from);
        loop {
            let end = Some(start + span).filter(|&end| end < Time::NEVER)?;
            let Some(blocked) = self.first_blocked(start, end) else { return Some(start) };
            start = self.first_free(blocked)?;
            // A week of starts failed under unchanging use: so does every later one whose own span, or first
            // week if that is shorter, still lies in the same use.
            if let Some(end) = lap.as_mut().and_then(|lap| lap.completed_at(start, &mut self.fingers)) {
                let later = end? - span.min(WEEK);
                start = start.max(later);
                lap = self.lap(start);
            }
        }
    }

    /// The first instant from `from`, before `until`, when the amount does not fit.
    fn first_blocked(&mut self, from: Time, until: Time) -> Option<Time> {
        let mut at = from;
        while at < until {
            // Where there is room even in the week's least capacity, its steps need no look.
            if let Some(room) = &self.least_room {
                at = self.fingers.first_over(at, until, room)?;
                if !self.capacity.is_weekly() {
                    return Some(at);
                }
            }
            let (capacity, change) = self.capacity.at(at);
            let Some(room) = room(capacity, self.amount) else { return Some(at) };
            if let Some(blocked) = self.fingers.first_over(at, change.min(until), &room) {
                return Some(blocked);
            }
            at = change;
        }
        None
    }

    /// The first instant from `from` when the amount fits.
    fn first_free(&mut self, from: Time) -> Option<Time> {
        let mut at = from;
        let mut lap = self.lap(from);
        while at < Time::NEVER {
            // Where there is no room even in the week's most capacity, its steps need no look.
            at = self.fingers.first_within(at, Time::NEVER, self.most_room.as_ref()?)?;
            if !self.capacity.is_weekly() {
                return Some(at);
            }
            // Each component alone may have its hours, and all together none.
            if let Some(end) = lap.as_mut().and_then(|lap| lap.completed_at(at, &mut self.fingers)) {
                at = end?;
                lap = self.lap(at);
                continue;
            }
            let (capacity, change) = self.capacity.at(at);
            if let Some(room) = room(capacity, self.amount)
                && let Some(free) = self.fingers.first_within(at, change, &room)
            {
                return Some(free);
            }
            at = change;
        }
        None
    }

    /// Begins to watch for a week of unchanging use; nothing to watch if no week differs from another.
    fn lap(&mut self, start: Time) -> Option<Lap> {
        self.capacity.is_weekly().then(|| Lap { start, end: self.fingers.next_change(start) })
    }
}

/// What others may use of `capacity` so that the amount still fits; none if it does not fit at all.
fn room<A: Amount>(capacity: &A, amount: &A) -> Option<A> {
    amount.fits_in(capacity).then(|| capacity.minus(amount))
}

/// Where a search is, in one profile or two that must both leave room.
struct Fingers<'a, A: Amount> {
    first: Finger<'a, A>,
    second: Option<Second<'a, A>>,
}

struct Second<'a, A: Amount> {
    finger: Finger<'a, A>,
    /// Where the first finger was before it went too far.
    first_before: Finger<'a, A>,
}

impl<A: Amount> Fingers<'_, A> {
    /// The first instant from `from`, before `until`, where use does not fit in `room`.
    fn first_over(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let Some(Second { finger, first_before }) = &mut self.second else {
            return self.first.first_over(from, until, room);
        };
        first_before.copy(&self.first);
        let first = self.first.first_over(from, until, room);
        let earlier = finger.first_over(from, first.unwrap_or(until), room);
        if earlier.is_some() {
            std::mem::swap(&mut self.first, first_before);
        }
        earlier.or(first)
    }

    /// The first instant from `from`, before `until`, where use fits in `room`.
    fn first_within(&mut self, from: Time, until: Time, room: &A) -> Option<Time> {
        let mut at = self.first.first_within(from, until, room)?;
        let Some(Second { finger, .. }) = &mut self.second else { return Some(at) };
        loop {
            let there = finger.first_within(at, until, room)?;
            at = self.first.first_within(there, until, room)?;
            if at == there {
                return Some(at);
            }
        }
    }

    /// The first instant after `time` where use changes.
    fn next_change(&mut self, time: Time) -> Option<Time> {
        let next = self.first.next_change(time);
        let second = self.second.as_mut().and_then(|second| second.finger.next_change(time));
        next.into_iter().chain(second).min()
    }
}

/// A stretch of unchanging use in which a search has found nothing so far.
struct Lap {
    start: Time,
    /// Where use changes next; none if it never does.
    end: Option<Time>,
}

impl Lap {
    /// The end of the stretch, once a week of it is behind; begins anew when `at` has left the stretch.
    fn completed_at<A: Amount>(&mut self, at: Time, fingers: &mut Fingers<'_, A>) -> Option<Option<Time>> {
        if self.end.is_some_and(|end| at >= end) {
            *self = Lap { start: at, end: fingers.next_change(at) };
            return None;
        }
        (at.since(self.start) >= WEEK).then_some(self.end)
    }
}
