//! The participant's side: holds, promises, asks when in doubt, lets go.

use std::collections::btree_map::Entry;

use shoal_model::calendar::{self, Against, Booking, Interval, Refusal};
use shoal_model::{Amount, Epoch, JobId, NodeId, Span, Time};

use super::{
    Brief, Event, Key, LOCKS_MAX, LOCKS_PER_PEER_MAX, Lock, Message, Prepare, Record, Timer, TwoPhase, Vote,
};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// A part of this node that a placement has taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Locked<A, B> {
    pub lock: Lock<A, B>,
    pub stage: Stage,
    /// When it is dropped unless the coordinator says more; a confirmed one stays.
    pub until: Time,
}

impl<A, B> Locked<A, B> {
    pub(super) fn restore(lock: Lock<A, B>) -> Locked<A, B> {
        let stage = if lock.confirmed { Stage::Confirmed } else { Stage::Committed };
        Locked { lock, stage, until: Time::NEVER }
    }
}

/// Locks in the order in which they are booked after a crash: by start, which is quick where there are very many, but those
/// of one job by epoch, since a calendar that has a later one takes no earlier one.
pub(super) fn in_turn<A, B>(
    mut locks: Vec<Box<Locked<A, B>>>,
) -> impl Iterator<Item = Box<Locked<A, B>>> + use<A, B> {
    let name = |locked: &Locked<A, B>| (locked.lock.job, locked.lock.epoch);
    locks.sort_unstable_by_key(|locked| name(locked));
    let mut turns: Vec<(Time, Box<Locked<A, B>>)> = Vec::with_capacity(locks.len());
    for locked in locks.into_iter().rev() {
        let later = turns.last().filter(|(_, later)| later.lock.job == locked.lock.job);
        let turn = later.map_or(locked.lock.start, |(turn, _)| locked.lock.start.min(*turn));
        turns.push((turn, locked));
    }
    turns.sort_unstable_by_key(|(turn, locked)| (*turn, name(locked)));
    turns.into_iter().map(|(_, locked)| locked)
}

/// How firmly something is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Held in memory.
    Held,
    /// On disk, but the others may still refuse.
    Committed,
    /// Everybody has it on disk: it starts at its time.
    Confirmed,
}

impl<A: Amount, B: Brief> TwoPhase<A, B> {
    pub(super) fn on_prepare(&mut self, from: NodeId, prepare: Prepare<A>, ctx: &mut Ctx<'_, Self>) {
        let Prepare { job, epoch, .. } = prepare;
        let vote = match self.locks.get(&(job, epoch)) {
            // The question came twice, or our answer was lost. A coordinator that has lost its disk counts its epochs
            // anew, and may ask for something else by the same name.
            Some(locked) if locked.lock.answers(from, &prepare) => Vote::Yes,
            Some(_) => Vote::No(None),
            None => self.hold(from, prepare, ctx),
        };
        ctx.send(from, Message::Vote { job, epoch, vote });
    }

    fn hold(&mut self, coordinator: NodeId, prepare: Prepare<A>, ctx: &mut Ctx<'_, Self>) -> Vote {
        let Prepare { job, epoch, start, span, amount } = prepare;
        // A job has one coordinator: nobody else may push its reservation aside.
        let of_job = self.locks.range((job, Epoch(0))..=(job, Epoch(u32::MAX)));
        let others = of_job.map(|(_, locked)| locked.lock.coordinator).any(|other| other != coordinator);
        let share = if coordinator == ctx.me { LOCKS_MAX } else { LOCKS_PER_PEER_MAX };
        let has = self.locks_of.get(&coordinator).copied().unwrap_or_default();
        if others || has >= share || self.locks.len() + self.finished.len() >= LOCKS_MAX {
            return Vote::No(None);
        }
        // What should have begun already can only begin late.
        let begin = start.max(ctx.now);
        let fits_from = |next: Option<Time>| Vote::No(next);
        if begin > start {
            return fits_from(self.calendar.without(job).earliest_fit(begin, span, &amount, Against::Firm));
        }
        let Some(interval) = Interval::starting(start, span) else { return Vote::No(None) };
        let until = ctx.now + self.config.hold();
        let key = calendar::Key { job, epoch };
        match self.calendar.hold(key, interval, amount.clone(), until, Against::Firm) {
            Ok(_) => {}
            Err(Refusal::NoRoom { next }) => return fits_from(next),
            Err(_) => return Vote::No(None),
        }
        let lock = Lock {
            job,
            epoch,
            coordinator,
            start,
            span,
            amount,
            confirmed: false,
            brief: None,
            longer_by: None,
        };
        self.keep_lock(Locked { lock, stage: Stage::Held, until });
        ctx.wake_at(self.ask_at(until), Timer::Doubt(job, epoch));
        Vote::Yes
    }

    pub(super) fn on_commit(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        brief: Shared<B>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let until = ctx.now + self.config.hold();
        let Some(locked) = self.locked_by(from, job, epoch, ctx.now) else {
            ctx.send(from, Message::Refuse { job, epoch });
            return;
        };
        // A coordinator that has lost its disk may mean another set by the same name.
        if locked.lock.brief.as_ref().is_some_and(|known| *known != brief) {
            ctx.send(from, Message::Refuse { job, epoch });
            return;
        }
        if locked.stage == Stage::Held {
            if !brief.suits(job, ctx.me) {
                self.drop_lock(job, epoch, ctx);
                ctx.send(from, Message::Refuse { job, epoch });
                return;
            }
            locked.stage = Stage::Committed;
            locked.lock.brief = Some(brief);
            ctx.save(Record::Lock(locked.lock.clone()));
            let firm = self.calendar.commit(calendar::Key { job, epoch }, ctx.now);
            assert_eq!(firm, Ok(()), "a lock that stands is held in the calendar: {job:?}");
        }
        if let Some(locked) = self.locks.get_mut(&(job, epoch))
            && locked.stage == Stage::Committed
        {
            locked.until = until;
        }
        ctx.send(from, Message::Committed { job, epoch });
    }

    pub(super) fn on_confirm(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        if self.finished.contains(&(job, epoch)) {
            ctx.send(from, Message::Confirmed { job, epoch });
            return;
        }
        let Some(locked) = self.locked_by(from, job, epoch, ctx.now) else {
            ctx.send(from, Message::Refuse { job, epoch });
            return;
        };
        match locked.stage {
            Stage::Confirmed => ctx.send(from, Message::Confirmed { job, epoch }),
            // We never said Committed in this life; what stands there is another promise.
            Stage::Held => ctx.send(from, Message::Refuse { job, epoch }),
            Stage::Committed => {
                locked.stage = Stage::Confirmed;
                locked.until = Time::NEVER;
                locked.lock.confirmed = true;
                ctx.save(Record::Lock(locked.lock.clone()));
                ctx.send(from, Message::Confirmed { job, epoch });
                ctx.report(Event::Confirmed(job, epoch));
                if let Some(before) = epoch.0.checked_sub(1) {
                    self.drop_locks(job, Epoch(before), ctx);
                }
            }
        }
    }

    pub(super) fn on_abort(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        if self.locks.get(&(job, epoch)).is_some_and(|locked| locked.lock.coordinator == from) {
            self.drop_lock(job, epoch, ctx);
        }
    }

    pub(super) fn on_release(&mut self, from: NodeId, job: JobId, upto: Epoch, ctx: &mut Ctx<'_, Self>) {
        let theirs = |locked: &Locked<A, B>| locked.lock.coordinator == from;
        if self.locks.range((job, Epoch(0))..=(job, upto)).all(|(_, locked)| theirs(locked)) {
            self.drop_locks(job, upto, ctx);
        }
        ctx.send(from, Message::Released { job, upto });
    }

    pub(super) fn on_doubt(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(locked) = self.locks.get(&(job, epoch)) else { return };
        let (coordinator, until) = (locked.lock.coordinator, locked.until);
        if locked.stage == Stage::Confirmed {
            return;
        }
        if until <= ctx.now {
            self.drop_lock(job, epoch, ctx);
            ctx.send(coordinator, Message::Dropped { job, epoch });
            return;
        }
        // One reminder serves a lock for all its life: the coordinator's word may have put the doubt off.
        let ask_at = self.ask_at(until);
        if ctx.now < ask_at {
            ctx.wake_at(ask_at, Timer::Doubt(job, epoch));
            return;
        }
        ctx.send(coordinator, Message::Ask { job, epoch });
        ctx.wake_at(until, Timer::Doubt(job, epoch));
    }

    /// What was promised before a crash still is; the coordinator tells what has become of it.
    pub(super) fn boot_participant(&mut self, ctx: &mut Ctx<'_, Self>) {
        for Lock { job, epoch, coordinator, .. } in std::mem::take(&mut self.unfit) {
            ctx.erase(Key::Lock(job, epoch));
            ctx.send(coordinator, Message::Dropped { job, epoch });
            ctx.report(Event::Released(job, epoch));
        }
        let until = ctx.now + self.config.hold();
        for (&(job, epoch), locked) in &self.locks {
            if !self.stands(locked, ctx.me) {
                ctx.send(locked.lock.coordinator, Message::Ask { job, epoch });
            }
            if locked.stage == Stage::Confirmed {
                ctx.report(Event::Confirmed(job, epoch));
            } else {
                ctx.wake_at(until, Timer::Doubt(job, epoch));
            }
        }
        for locked in self.locks.values_mut().filter(|locked| locked.stage != Stage::Confirmed) {
            locked.until = until;
        }
    }

    /// Books what was promised before a crash; none if there is no room for it any more.
    pub(super) fn restore_lock(&mut self, locked: Box<Locked<A, B>>) -> Option<Box<Locked<A, B>>> {
        let lock = &locked.lock;
        let booked = Interval::starting(lock.start, lock.span).is_some_and(|interval| {
            let (key, amount) = (calendar::Key { job: lock.job, epoch: lock.epoch }, lock.amount.clone());
            self.calendar.book(key, interval, amount, Booking::Firm, Against::Firm).is_ok()
        });
        if booked {
            return Some(locked);
        }
        self.unfit.push(locked.lock);
        None
    }

    /// Whether a placement of this node's own making stands here too: then it has nothing to ask itself.
    pub(super) fn stands_here(&self, job: JobId, epoch: Epoch, me: NodeId) -> bool {
        self.locks.get(&(job, epoch)).is_some_and(|locked| self.stands(locked, me))
    }

    fn stands(&self, locked: &Locked<A, B>, me: NodeId) -> bool {
        let Lock { job, epoch, coordinator, .. } = locked.lock;
        locked.stage == Stage::Confirmed
            && coordinator == me
            && self.placement(job).is_some_and(|placed| placed.epoch == epoch && placed.nodes.contains(&me))
    }

    /// Ends a job's stay here: its time is free at once. That it was confirmed is remembered until
    /// [`TwoPhase::forget_finished`], for a coordinator that has not heard of it.
    pub fn finish(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        self.finished.insert((job, epoch));
        if self.forget_lock(job, epoch).is_some() {
            ctx.erase(Key::Lock(job, epoch));
        }
    }

    /// Makes a confirmed reservation longer than was asked for, where there is room after it; tells whether there was.
    pub fn lengthen(&mut self, job: JobId, epoch: Epoch, by: Span, ctx: &mut Ctx<'_, Self>) -> bool {
        let Some(locked) = self.locks.get_mut(&(job, epoch)) else { return false };
        if locked.stage != Stage::Confirmed {
            return false;
        }
        // A crash may have come after the last time, and before it was of use.
        let (start, span) = (locked.lock.start, locked.lock.time() + by);
        let end = start + span;
        let longer = self.calendar.start(calendar::Key { job, epoch }, start, end, end).is_ok();
        if longer {
            locked.lock.span = span;
            locked.lock.longer_by = Some(by);
            ctx.save(Record::Lock(locked.lock.clone()));
        }
        longer
    }

    /// Moves a confirmed reservation to an earlier time, if there is room; tells whether there was.
    ///
    /// Only the coordinator can know that nobody else has to start with it: it is asked before.
    pub fn advance(&mut self, job: JobId, epoch: Epoch, to: Time, ctx: &mut Ctx<'_, Self>) -> bool {
        let Some(locked) = self.locks.get_mut(&(job, epoch)) else { return false };
        if locked.stage != Stage::Confirmed || to >= locked.lock.start {
            return false;
        }
        let end = to + locked.lock.span;
        let moved = self.calendar.start(calendar::Key { job, epoch }, to, end, end).is_ok();
        if moved {
            locked.lock.start = to;
            ctx.save(Record::Lock(locked.lock.clone()));
        }
        moved
    }

    /// The coordinator knows that the placement has ended here.
    pub fn forget_finished(&mut self, job: JobId, epoch: Epoch) {
        self.finished.remove(&(job, epoch));
    }

    /// Drops all locks of a job up to an epoch.
    fn drop_locks(&mut self, job: JobId, upto: Epoch, ctx: &mut Ctx<'_, Self>) {
        while let Some((&(_, epoch), _)) = self.locks.range((job, Epoch(0))..=(job, upto)).next() {
            self.drop_lock(job, epoch, ctx);
        }
    }

    fn drop_lock(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(locked) = self.forget_lock(job, epoch) else { return };
        match locked.stage {
            Stage::Held => {}
            Stage::Committed => ctx.erase(Key::Lock(job, epoch)),
            Stage::Confirmed => {
                ctx.erase(Key::Lock(job, epoch));
                ctx.report(Event::Released(job, epoch));
            }
        }
    }

    fn keep_lock(&mut self, locked: Locked<A, B>) {
        *self.locks_of.entry(locked.lock.coordinator).or_default() += 1;
        self.locks.insert((locked.lock.job, locked.lock.epoch), Box::new(locked));
    }

    fn forget_lock(&mut self, job: JobId, epoch: Epoch) -> Option<Locked<A, B>> {
        let locked = *self.locks.remove(&(job, epoch))?;
        if let Entry::Occupied(mut count) = self.locks_of.entry(locked.lock.coordinator) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        let released = self.calendar.release(calendar::Key { job, epoch });
        assert!(released.is_ok(), "a lock stands in the calendar: {job:?}");
        Some(locked)
    }

    /// The lock that this coordinator may decide on, if it has not expired.
    fn locked_by(&mut self, from: NodeId, job: JobId, epoch: Epoch, now: Time) -> Option<&mut Locked<A, B>> {
        self.locks
            .get_mut(&(job, epoch))
            .map(|locked| &mut **locked)
            .filter(|locked| locked.lock.coordinator == from && locked.until > now)
    }

    /// When to ask about a lock that is dropped at `until`: early enough for an answer.
    fn ask_at(&self, until: Time) -> Time {
        until - Span::from_micros(self.config.hold().as_micros() / 3)
    }
}
