//! The calendar of one node: what is reserved when.
//!
//! ```text
//! hold ──▶ Held ──commit──▶ Firm ──┐
//!            │                     ├─start──▶ Running ──cut_short──▶ over
//!            └─expire    book ──▶ Soft       extend ↺
//!                                  ↺ shift, pull_forward, or pushed aside
//! ```
//!
//! Two views of use (see [`Timeline`]): *firm* counts what cannot move, *whole* what is planned. Always, at every
//! instant, neither exceeds the capacity.
//!
//! - A hold or a firm booking must fit the firm view; soft reservations in its way are pushed aside. By choice of
//!   the caller ([`Against::Both`]) it must fit the whole view too, and then pushes nobody.
//! - A soft booking must fit the whole view and, with [`Against::Both`], leave running jobs their time up to the
//!   hard end. [`Against::Whole`] is hopeful: it counts on jobs to end as planned.
//! - Pushed aside are those that start last among the soft ones in the way, no more than needed. Each is placed
//!   anew, in order of their starts, not before its old start and against both views: who met one overrun does not
//!   count on a planned end again. It counts on no other soft one staying, so a further overrun may move it further.
//! - Placements of one job share where they overlap (see [`Calendar::without`]).
//!
//! Every operation is O(log n), times one more than the reservations it moves, drops or returns; searches as said
//! at [`Timeline`]. A clone or a snapshot is O(1). For `u32`, an empty calendar is 80 bytes; a reservation takes
//! 88 on the heap, a hold 32 more, and each of its two changes of use 16, twice where the two views differ. That is
//! kept in nodes with room for some more; nodes take 160, 64 and 88 bytes themselves, for up to 64 each.

mod capacity;
mod finger;
mod plan;
mod profile;
mod refusal;
mod reservation;
mod share;
mod snapshot;
mod timeline;
mod tree;

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use crate::amount::Amount;
use crate::id::JobId;
use crate::time::{Span, Time};

pub use capacity::{Capacity, CapacityError, WEEK, WEEK_STEPS_MAX};
use plan::Plan;
pub use profile::Steps;
pub use refusal::{Kind, Refusal, RestoreError};
pub use reservation::{Interval, Key, Reservation, State};
pub use snapshot::{STEPS_MAX, Snapshot, StepsError};
pub use timeline::{Against, Timeline, View, Window};

/// What is reserved on one node, when and by whom.
///
/// Two calendars are equal if capacity and reservations are. The version is not looked at, or a world that comes
/// back to where it was would never be recognised; who compares versions of snapshots keeps them in its own state.
#[derive(Clone, Debug)]
pub struct Calendar<A: Amount> {
    timeline: Timeline<A>,
    plan: Plan<A>,
    version: u64,
}

/// A soft reservation that changed its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moved {
    /// Whose it is.
    pub key: Key,
    /// Where it was.
    pub from: Time,
    /// Where it is now; none if it fits nowhere before the end of time and is gone.
    pub to: Option<Time>,
}

/// How surely a booking is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Booking {
    /// It does not move.
    Firm,
    /// It may shift.
    Soft,
}

impl<A: Amount> Calendar<A> {
    /// A calendar without reservations.
    pub fn new(capacity: Capacity<A>) -> Calendar<A> {
        Calendar { timeline: Timeline::new(capacity), plan: Plan::default(), version: 0 }
    }

    /// The calendar with these reservations, in any order; refused if they are more than there is room for.
    ///
    /// Its version begins anew.
    pub fn restore(
        capacity: Capacity<A>,
        reservations: impl IntoIterator<Item = Reservation<A>>,
    ) -> Result<Calendar<A>, RestoreError> {
        let mut calendar = Calendar::new(capacity);
        let mut reservations: Vec<_> = reservations.into_iter().collect();
        reservations.sort_by_key(|reservation| reservation.key);
        for reservation in reservations {
            let key = reservation.key;
            calendar.admit(reservation).map_err(|refusal| RestoreError { key, refusal })?;
        }
        Ok(calendar)
    }

    /// Counts the changes: a larger version is a later state.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What there is to reserve.
    pub fn capacity(&self) -> &Capacity<A> {
        &self.timeline.capacity
    }

    /// Use and capacity as of now, for others.
    pub fn snapshot(&self) -> Snapshot<A> {
        Snapshot::new(self.version, self.timeline.clone())
    }

    /// The same as if a job had no reservations: what is shown to who looks for a place for it.
    pub fn snapshot_without(&self, job: JobId) -> Snapshot<A> {
        Snapshot::new(self.version, self.without(job).into_owned())
    }

    /// Use and capacity.
    pub fn timeline(&self) -> &Timeline<A> {
        &self.timeline
    }

    /// Use and capacity as if a job had no reservations: what a new placement of it is fitted against.
    pub fn without(&self, job: JobId) -> Cow<'_, Timeline<A>> {
        if self.plan.of_job(job).next().is_none() {
            return Cow::Borrowed(&self.timeline);
        }
        let mut timeline = self.timeline.clone();
        share::give(&mut timeline, self.plan.of_job(job));
        Cow::Owned(timeline)
    }

    /// See [`Timeline::earliest_fit`].
    pub fn earliest_fit(&self, from: Time, span: Span, amount: &A, against: Against) -> Option<Time> {
        self.timeline.earliest_fit(from, span, amount, against)
    }

    /// See [`Timeline::free_during`].
    pub fn free_during(&self, interval: Interval, amount: &A, against: Against) -> bool {
        self.timeline.free_during(interval, amount, against)
    }

    /// How many reservations there are.
    pub fn len(&self) -> usize {
        self.plan.len()
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The reservation of one placement of a job.
    pub fn get(&self, key: Key) -> Option<&Reservation<A>> {
        self.plan.get(key)
    }

    /// The reservations of a job, by epoch.
    pub fn of_job(&self, job: JobId) -> impl Iterator<Item = &Reservation<A>> {
        self.plan.of_job(job)
    }

    /// All reservations, by start and then by key.
    pub fn iter(&self) -> impl Iterator<Item = &Reservation<A>> {
        self.plan.iter()
    }

    /// The reservations that start at `time` or later, by start; the first of them starts next.
    pub fn starting_from(&self, time: Time) -> impl Iterator<Item = &Reservation<A>> {
        self.plan.iter_from(time)
    }

    /// The first start at `time` or later.
    pub fn next_start(&self, time: Time) -> Option<Time> {
        self.plan.first_from(time).map(|reservation| reservation.interval.start())
    }

    /// When the next hold expires.
    pub fn next_expiry(&self) -> Option<Time> {
        self.plan.first_expiry().map(|(until, _)| until)
    }

    /// Holds a place until `until`, for a commit to come; what had to make way moves.
    pub fn hold(
        &mut self,
        key: Key,
        interval: Interval,
        amount: A,
        until: Time,
        against: Against,
    ) -> Result<Vec<Moved>, Refusal> {
        self.place(Reservation { key, interval, amount, state: State::Held { until } }, against)
    }

    /// Makes a hold firm, unless it has expired.
    pub fn commit(&mut self, key: Key, now: Time) -> Result<(), Refusal> {
        let held = self.plan.get(key).ok_or(Refusal::Unknown)?;
        let State::Held { until } = held.state else { return Err(wrong_state(held, Kind::Held)) };
        if until <= now {
            return Err(Refusal::Expired { until });
        }
        // Held and firm count alike, so use does not change.
        self.plan.put(Reservation { state: State::Firm, ..held.clone() });
        self.version += 1;
        Ok(())
    }

    /// Books a place, firm or soft; what had to make way for a firm one moves.
    pub fn book(
        &mut self,
        key: Key,
        interval: Interval,
        amount: A,
        booking: Booking,
        against: Against,
    ) -> Result<Vec<Moved>, Refusal> {
        let state = match booking {
            Booking::Firm => State::Firm,
            Booking::Soft => State::Soft,
        };
        self.place(Reservation { key, interval, amount, state }, against)
    }

    /// Starts a booked job at `at`, wherever it was planned; what had to make way moves.
    ///
    /// There must be room up to the hard end, whatever is planned.
    pub fn start(
        &mut self,
        key: Key,
        at: Time,
        planned_end: Time,
        hard_end: Time,
    ) -> Result<Vec<Moved>, Refusal> {
        let booked = self.plan.get(key).ok_or(Refusal::Unknown)?;
        match booked.state {
            State::Firm | State::Soft => {}
            State::Held { .. } | State::Running { .. } => return Err(wrong_state(booked, Kind::Booked)),
        }
        self.refuse_superseded(key)?;
        let interval = Interval::new(at, planned_end).ok_or(Refusal::Empty)?;
        let running = Reservation { interval, state: State::Running { hard_end }, ..booked.clone() };
        self.refuse_no_room(&running, Against::Firm)?;
        self.edit(key.job, |plan| plan.remove(key));
        Ok(self.push_in(running))
    }

    /// Takes a reservation out, whatever its state.
    pub fn release(&mut self, key: Key) -> Result<Reservation<A>, Refusal> {
        self.plan.get(key).ok_or(Refusal::Unknown)?;
        self.edit(key.job, |plan| plan.remove(key)).ok_or(Refusal::Unknown)
    }

    /// Ends a reservation at `at`, if it would last longer: the rest is free at once.
    ///
    /// What lies before stays, until it is [forgotten](Calendar::forget_before); if nothing does, it is gone.
    pub fn cut_short(&mut self, key: Key, at: Time) -> Result<(), Refusal> {
        let current = self.plan.get(key).ok_or(Refusal::Unknown)?;
        if at >= current.last_end() {
            return Ok(());
        }
        let Some(interval) = Interval::new(current.interval.start(), at.min(current.interval.end())) else {
            return self.release(key).map(drop);
        };
        let state = match current.state {
            State::Running { .. } => State::Running { hard_end: at },
            other => other,
        };
        let shorter = Reservation { interval, state, ..current.clone() };
        self.edit(key.job, |plan| plan.put(shorter));
        Ok(())
    }

    /// Plans the end of a running job later, at most at its hard end; what had to make way moves.
    ///
    /// A planned end that is not later than the current one changes nothing.
    pub fn extend(&mut self, key: Key, planned_end: Time) -> Result<Vec<Moved>, Refusal> {
        let running = self.plan.get(key).ok_or(Refusal::Unknown)?;
        let State::Running { hard_end } = running.state else {
            return Err(wrong_state(running, Kind::Running));
        };
        if planned_end > hard_end {
            return Err(Refusal::PastHardEnd { hard_end });
        }
        if planned_end <= running.interval.end() {
            return Ok(Vec::new());
        }
        let interval = Interval::new(running.interval.start(), planned_end).ok_or(Refusal::Empty)?;
        let longer = Reservation { interval, ..running.clone() };
        Ok(self.push_in(longer))
    }

    /// Plans a soft reservation anew: at the first start from `from` on where it fits; tells if it moved.
    pub fn shift(&mut self, key: Key, from: Time, against: Against) -> Result<Option<Moved>, Refusal> {
        let (soft, to) = self.refit(key, from, against)?;
        let old = soft.interval.start();
        Ok((to != old).then(|| self.move_to(soft, to)))
    }

    /// Plans a soft reservation anew as [`Calendar::shift`] does, but only if it then starts earlier.
    pub fn pull_forward(&mut self, key: Key, from: Time, against: Against) -> Result<Option<Moved>, Refusal> {
        let (soft, to) = self.refit(key, from, against)?;
        let old = soft.interval.start();
        Ok((to < old).then(|| self.move_to(soft, to)))
    }

    /// Drops the holds that have expired by `now`, and returns them in the order they did.
    pub fn expire(&mut self, now: Time) -> Vec<Reservation<A>> {
        let mut expired = Vec::new();
        while let Some((until, key)) = self.plan.first_expiry()
            && until <= now
        {
            expired.extend(self.edit(key.job, |plan| plan.remove(key)));
        }
        expired
    }

    /// Drops every reservation that is over by `time` whatever happens, and returns them by start.
    ///
    /// From then on, use before `time` tells only of what also reaches beyond.
    pub fn forget_before(&mut self, time: Time) -> Vec<Reservation<A>> {
        let mut forgotten = Vec::new();
        while let Some(key) = self.plan.any_over(time) {
            forgotten.extend(self.edit(key.job, |plan| plan.remove(key)));
        }
        forgotten.sort_by_key(|reservation| (reservation.interval.start(), reservation.key));
        forgotten
    }

    /// Puts a new reservation in, or says why not.
    fn place(&mut self, new: Reservation<A>, against: Against) -> Result<Vec<Moved>, Refusal> {
        if self.plan.get(new.key).is_some() {
            return Err(Refusal::Taken);
        }
        self.refuse_superseded(new.key)?;
        let own = if new.state == State::Soft { Against::Whole } else { Against::Firm };
        self.refuse_no_room(&new, if against == own { own } else { Against::Both })?;
        Ok(self.push_in(new))
    }

    /// Puts a record in where it says, if it fits.
    fn admit(&mut self, record: Reservation<A>) -> Result<(), Refusal> {
        if self.plan.get(record.key).is_some() {
            return Err(Refusal::Taken);
        }
        if record.state != State::Soft {
            self.refuse_no_room(&record, Against::Firm)?;
        }
        let others = self.without(record.key.job);
        if !others.free_during(record.interval, &record.amount, Against::Whole) {
            return Err(no_room(&others, record.interval, &record.amount, Against::Both));
        }
        self.edit(record.key.job, |plan| plan.put(record));
        Ok(())
    }

    fn refuse_superseded(&self, key: Key) -> Result<(), Refusal> {
        match self.plan.of_job(key.job).last().map(|latest| latest.key.epoch) {
            Some(current) if current > key.epoch => Err(Refusal::Superseded { current }),
            _ => Ok(()),
        }
    }

    /// Whether other jobs leave no room; a running job needs it up to its hard end.
    fn refuse_no_room(&self, wanted: &Reservation<A>, against: Against) -> Result<(), Refusal> {
        let interval = match wanted.state {
            State::Running { hard_end } if hard_end < wanted.interval.end() => {
                return Err(Refusal::PastHardEnd { hard_end });
            }
            State::Running { hard_end } => {
                Interval::new(wanted.interval.start(), hard_end).ok_or(Refusal::Empty)?
            }
            State::Held { .. } | State::Firm | State::Soft => wanted.interval,
        };
        let others = self.without(wanted.key.job);
        if others.free_during(interval, &wanted.amount, against) {
            return Ok(());
        }
        Err(no_room(&others, interval, &wanted.amount, against))
    }

    /// Puts in what fits the firm view, pushing soft reservations aside where the whole view is full.
    fn push_in(&mut self, new: Reservation<A>) -> Vec<Moved> {
        let mut aside = Vec::new();
        while let Some(key) = self.in_the_way(&new) {
            aside.extend(self.edit(key.job, |plan| plan.remove(key)));
        }
        self.edit(new.key.job, |plan| plan.put(new));
        aside.sort_by_key(|soft| (soft.interval.start(), soft.key));
        aside.into_iter().map(|soft| self.place_anew(soft)).collect()
    }

    /// A soft reservation that has to make way: the last to start of those that take what is missing.
    fn in_the_way(&self, new: &Reservation<A>) -> Option<Key> {
        if !self.plan.has_views_apart() {
            return None;
        }
        let others = self.without(new.key.job);
        let at = others.first_blocked(new.interval, &new.amount, Against::Whole)?;
        let (capacity, _) = others.capacity.at(at);
        let used = others.used_at(at, View::Whole).plus(&new.amount);
        let missing = |used: &A| used.minus(capacity).most(&A::default());
        let soft = self.plan.last_soft_at(at, |soft| {
            soft.key.job != new.key.job && missing(&used.minus(&soft.amount)) != missing(&used)
        });
        Some(soft.expect("what fits the firm view is only ever in the way of soft reservations"))
    }

    fn place_anew(&mut self, soft: Reservation<A>) -> Moved {
        let (key, from) = (soft.key, soft.interval.start());
        let to = self.without(key.job).earliest_fit(from, soft.interval.span(), &soft.amount, Against::Both);
        match to {
            Some(to) => self.move_to(soft, to),
            None => Moved { key, from, to },
        }
    }

    /// A soft reservation, and where it would go.
    fn refit(&self, key: Key, from: Time, against: Against) -> Result<(Reservation<A>, Time), Refusal> {
        let soft = self.plan.get(key).ok_or(Refusal::Unknown)?;
        if soft.state != State::Soft {
            return Err(wrong_state(soft, Kind::Soft));
        }
        let against = if against == Against::Whole { Against::Whole } else { Against::Both };
        let to = self.without(key.job).earliest_fit(from, soft.interval.span(), &soft.amount, against);
        Ok((soft.clone(), to.ok_or(Refusal::NoRoom { next: None })?))
    }

    /// Puts a soft reservation where a search found room for it.
    fn move_to(&mut self, soft: Reservation<A>, to: Time) -> Moved {
        let (key, from) = (soft.key, soft.interval.start());
        let interval = Interval::starting(to, soft.interval.span()).expect("a search ends before time does");
        self.edit(key.job, |plan| plan.put(Reservation { interval, ..soft }));
        Moved { key, from, to: Some(to) }
    }

    /// Changes the plan of one job, and use with it.
    fn edit<R>(&mut self, job: JobId, change: impl FnOnce(&mut Plan<A>) -> R) -> R {
        share::give(&mut self.timeline, self.plan.of_job(job));
        let result = change(&mut self.plan);
        match (&self.timeline.whole, self.plan.has_views_apart()) {
            (None, true) => self.timeline.whole = Some(self.timeline.firm.clone()),
            (Some(_), false) => self.timeline.whole = None,
            (None, false) | (Some(_), true) => {}
        }
        share::take(&mut self.timeline, self.plan.of_job(job));
        self.version += 1;
        result
    }
}

impl<A: Amount> PartialEq for Calendar<A> {
    fn eq(&self, other: &Calendar<A>) -> bool {
        self.timeline.capacity == other.timeline.capacity && self.plan == other.plan
    }
}

impl<A: Amount> Eq for Calendar<A> {}

impl<A: Amount> Hash for Calendar<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.timeline.capacity.hash(state);
        self.plan.hash(state);
    }
}

fn no_room<A: Amount>(others: &Timeline<A>, wanted: Interval, amount: &A, against: Against) -> Refusal {
    Refusal::NoRoom { next: others.earliest_fit(wanted.start(), wanted.span(), amount, against) }
}

fn wrong_state<A>(reservation: &Reservation<A>, needs: Kind) -> Refusal {
    let is = match reservation.state {
        State::Held { .. } => Kind::Held,
        State::Firm => Kind::Firm,
        State::Soft => Kind::Soft,
        State::Running { .. } => Kind::Running,
    };
    Refusal::State { is, needs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_documented() {
        let heap = (plan::bytes_per_reservation::<u32>(), profile::bytes_per_change::<u32>());
        assert_eq!((size_of::<Calendar<u32>>(), heap), (80, ((88, 32, 160, 64), (16, 88))));
    }
}
