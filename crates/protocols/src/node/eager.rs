//! How plans get better while jobs wait: room that comes up is offered, and owners look for better places.
//!
//! ```text
//! run node              owner
//!     │── Sooner ────────▶│  a task ended early: I could start yours now
//!     │◀────────────── Go │  it stays with you, then          (when it must not run twice: saved before)
//! ```
//!
//! The run node does not move a job by itself, because its owner may be moving it elsewhere at the same time. It keeps
//! nothing free for the answer either: if the room is gone by then, the job stays at its time. A word that is lost
//! costs nothing but the chance.
//!
//! The ranks of a gang cannot start early one by one. There the owner looks for an earlier time for all of them, as it
//! does from time to time for every job that waits long; a better placement is committed before the old one is
//! broken. A planned start moves to a later time only when a node is lost.

use std::collections::BTreeSet;
use std::ops::Bound;

use shoal_model::calendar::{Calendar, Key, State};
use shoal_model::{Epoch, JobId, NodeId, Rank, Resources, Span, Time};

use super::message::{JobMessage, Message, Task, Timer};
use super::{Node, Recipe, Work};
use crate::commit::two_phase::{Placement, Stage};
use crate::protocol::Ctx;
use crate::scheduling;

/// How many waiting tasks are looked at, by start: so many at all, and so many that could not be offered room.
struct Looks {
    all: usize,
    misses: usize,
}

/// What is left of a node's room while it is offered.
struct Room {
    /// With what was offered taken, so that no more is offered than there is.
    trial: Calendar<Resources>,
    /// So many gangs may still be asked: each of them looks for a place on several nodes.
    gangs: usize,
}

impl Room {
    fn of(calendar: &Calendar<Resources>) -> Room {
        Room { trial: calendar.clone(), gangs: GANGS_ASKED }
    }
}

/// When room comes up: enough to find some that fit, however many wait.
const ROOM_CAME_UP: Looks = Looks { all: 64, misses: 16 };
/// When a node is back.
const NODE_IS_BACK: Looks = Looks { all: 4_096, misses: 1_024 };
/// How many gangs are asked to look for a better place when room comes up.
const GANGS_ASKED: usize = 8;
/// A job that starts sooner than this stays where it is: to find a place and to agree on it takes a second or two, and
/// what has started meanwhile would start anew.
const TOO_LATE_TO_MOVE: Span = Span::from_secs(5);
/// How often an owner looks for better places.
const LOOK_EVERY: Span = Span::from_secs(10);
/// For how many jobs at once, in turn: what an owner asks of others does not grow with its queue.
const LOOKS_MAX: usize = 8;
/// A gang is not looked after again within this, however many nodes offer room.
const LOOK_PAUSE: Span = Span::from_secs(1);
/// A place is better if it saves this part of the wait, and at least a second: a move is not free.
const BETTER_BY: u64 = 20;

impl Work {
    /// Asks a task's owner whether it may start now, if there is room for it; says whether it was asked.
    fn offer(&self, key: Key, room: &mut Room, ctx: &mut Ctx<'_, Node>) -> bool {
        let Key { job, epoch } = key;
        let Some((lock, Stage::Confirmed)) = self.commit.lock(job, epoch) else { return false };
        let Some(brief) = &lock.brief else { return false };
        let begin = brief.envelope.job().begin;
        let gang = brief.nodes.len() > 1;
        if lock.start <= ctx.now || begin.is_some_and(|begin| begin > ctx.now) || (gang && room.gangs == 0) {
            return false;
        }
        let Some(rank) = brief.rank_of(ctx.me) else { return false };
        // Room first: the gate looks at signatures.
        let end = ctx.now + lock.span;
        let mut taken = room.trial.clone();
        if taken.start(key, ctx.now, end, end).is_err() {
            return false;
        }
        // What may start at its time may not before, where the owner has hours: it would lose its place.
        let may = self.may_start_now(brief, lock.time(), ctx.now);
        if may {
            // A gang needs others, too: as long as it has not moved, who comes after it may have this room.
            if gang {
                room.gangs -= 1;
            } else {
                room.trial = taken;
            }
            ctx.send(lock.coordinator, Message::Job(JobMessage::Sooner(Task { job, epoch, rank })));
        }
        may
    }

    /// Offers room to some of the tasks that wait, by start.
    fn offer_all(
        &self,
        now: Time,
        looks: &Looks,
        skipped: &BTreeSet<Key>,
        mut offer: impl FnMut(Key) -> bool,
    ) {
        let waiting = self.commit.calendar().starting_from(now + Span::from_micros(1));
        let firm = waiting.filter(|reservation| reservation.state == State::Firm);
        let keys = firm.map(|reservation| reservation.key).filter(|key| !skipped.contains(key));
        let mut misses = 0;
        for key in keys.take(looks.all) {
            misses += usize::from(!offer(key));
            if misses >= looks.misses {
                return;
            }
        }
    }
}

impl Node {
    /// Room has come up here: the owners of tasks that wait are asked whether they may start now, first come first served.
    pub(super) fn offer_room(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = self.work.as_ref().filter(|work| work.eager) else { return };
        let mut room = Room::of(work.commit.calendar());
        work.offer_all(ctx.now, &ROOM_CAME_UP, &BTreeSet::new(), |key| work.offer(key, &mut room, ctx));
    }

    /// The node is back: who waits here is asked whether it may start now, but for these, which cannot yet. Each as if it
    /// were the only one, since some of the owners may be gone.
    pub(super) fn offer_again(&mut self, unready: &BTreeSet<Key>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = self.work.as_ref().filter(|work| work.eager) else { return };
        let calendar = work.commit.calendar();
        work.offer_all(ctx.now, &NODE_IS_BACK, unready, |key| work.offer(key, &mut Room::of(calendar), ctx));
    }

    /// A task is to start here later: what was in its way when it was planned may have ended since.
    pub(super) fn offer_to(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = self.work.as_ref().filter(|work| work.eager) else { return };
        work.offer(Key { job, epoch }, &mut Room::of(work.commit.calendar()), ctx);
    }

    /// A node could start a task of ours now.
    pub(super) fn on_sooner(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        if !self.is_current(from, task) || self.is_placing(task.job) {
            return;
        }
        let Some(owned) = self.unended(task.job) else { return };
        if owned.started.contains_key(&task.rank) {
            return;
        }
        if owned.is_gang() {
            self.look_soon(task.job, ctx);
            return;
        }
        owned.going = true;
        owned.note_start(ctx.now, ctx);
        self.stop_looking(task.job, ctx);
        ctx.send(from, Message::Job(JobMessage::Go(task)));
    }

    /// The owner wants the task started before its time.
    pub(super) fn on_go(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Work { commit, tasks, .. } = work.as_mut();
        if !tasks.get(&task).is_some_and(|running| running.waits_for(from)) {
            return;
        }
        let mut moved = false;
        let heard = ctx.layer(|ctx| moved = commit.advance(task.job, task.epoch, ctx.now, ctx));
        assert!(heard.is_empty(), "an earlier reservation is no news");
        if moved {
            self.calendar_changed(ctx);
            self.on_start(task, ctx);
        }
    }

    /// A job has a place and waits for its time; if that is far off, better places are looked for.
    pub(super) fn note_waiting(&mut self, job: JobId, start: Time, ctx: &mut Ctx<'_, Node>) {
        self.note_not_waiting(job);
        let Some(owned) = self.unended(job) else { return };
        owned.planned = Some(start);
        let Some(work) = &mut self.work else { return };
        work.waiting.insert((start, job));
        // A recipe with queues or searches of its own moves jobs itself.
        let queued = matches!(work.recipe, Recipe::Aria(_) | Recipe::TriPronged(_) | Recipe::Proactive(_));
        if work.eager && !queued && !work.improving && start > ctx.now + TOO_LATE_TO_MOVE {
            work.improving = true;
            ctx.wake_after(LOOK_EVERY, Timer::Improve);
        }
    }

    /// The job runs, or has lost its place, or is over.
    pub(super) fn note_not_waiting(&mut self, job: JobId) {
        let Some(work) = &mut self.work else { return };
        if let Some(start) = work.owned.get_mut(&job).and_then(|owned| owned.planned.take()) {
            work.waiting.remove(&(start, job));
        }
    }

    /// Looks for better places for some of the jobs that wait: those that start next after the last one looked at, so
    /// that room goes to whoever has waited for it longest.
    pub(super) fn on_improve(&mut self, last: Option<(Time, JobId)>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let soonest = (ctx.now + TOO_LATE_TO_MOVE, JobId([0xff; 16]));
        let after = last.map_or(soonest, |last| last.max(soonest));
        let mut rest = work.waiting.range((Bound::Excluded(after), Bound::Unbounded));
        let next: Vec<(Time, JobId)> = rest.by_ref().take(LOOKS_MAX).copied().collect();
        let more = rest.next().is_some();
        // Once nobody is left whose time is far off, it is over.
        work.improving = more || last.is_some() || !next.is_empty();
        if work.improving {
            let last = next.last().filter(|_| more);
            let timer = last.map_or(Timer::Improve, |&(start, job)| Timer::ImproveAfter(start, job));
            ctx.wake_after(LOOK_EVERY, timer);
        }
        for (_, job) in next {
            self.look_for_better(job, ctx);
        }
    }

    /// A node of a gang has room now: its others may say so a moment later, so the last of them counts, too.
    fn look_soon(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        match owned.looked.map(|looked| looked + LOOK_PAUSE).filter(|&next| next > ctx.now) {
            Some(_) if owned.look_again => {}
            Some(next) => {
                owned.look_again = true;
                ctx.wake_at(next, Timer::Look(job));
            }
            None => self.look_for_better(job, ctx),
        }
    }

    /// Nodes of a gang had room when it had just been looked after.
    pub(super) fn on_look(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.unended(job).is_some_and(|owned| std::mem::take(&mut owned.look_again)) {
            self.look_for_better(job, ctx);
        }
    }

    /// Has the recipe look for a place for a job that has one.
    fn look_for_better(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = self.work.as_ref().filter(|work| work.eager) else { return };
        if matches!(work.recipe, Recipe::Proactive(_)) {
            return;
        }
        let start = work.commit.placement(job).map(|placement| placement.start);
        if work.commit.is_placing(job) || start.is_none_or(|start| start <= ctx.now + TOO_LATE_TO_MOVE) {
            return;
        }
        let Some(owned) = self.unended(job) else { return };
        let lately = owned.looked.is_some_and(|looked| ctx.now.since(looked) < LOOK_PAUSE);
        if owned.looking || owned.going || lately || !owned.started.is_empty() {
            return;
        }
        owned.looking = true;
        owned.looked = Some(ctx.now);
        let needs = owned.needs();
        let avoid = self.avoided(job, ctx.now);
        self.plan(scheduling::Command::Plan { job, needs, avoid }, ctx);
    }

    /// Whether a job that has a place should move to another that was found.
    pub(super) fn is_better(&mut self, job: JobId, start: Time, now: Time) -> bool {
        let Some(planned) = self.commit().and_then(|commit| commit.placement(job)).map(|p| p.start) else {
            return false;
        };
        let still =
            self.unended(job).is_some_and(|owned| owned.looking && !owned.going && owned.started.is_empty());
        let wait = planned.since(now);
        let worth = Span::from_micros(wait.as_micros() / BETTER_BY).max(Span::from_secs(1));
        still && wait > TOO_LATE_TO_MOVE && start + worth <= planned
    }

    /// After a restart of its owner: what was told to start before its time, and runs, is not to be moved.
    pub(super) fn ask_if_begun(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        let eager = self.work.as_ref().is_some_and(|work| work.eager);
        let alone = self.unended(job).is_some_and(|owned| !owned.is_gang());
        if !eager || !alone || placement.start <= ctx.now {
            return;
        }
        // Very many jobs may wait here: what this node knows itself it is not asked in so many words.
        if placement.nodes == [ctx.me] {
            self.on_inquire(ctx.me, Task { job, epoch: placement.epoch, rank: Rank(0) }, ctx);
        } else {
            self.inquire(job, placement.epoch, &BTreeSet::new(), ctx);
        }
    }

    /// Nothing better was found, or it is no longer wanted: the job stays where it is.
    pub(super) fn stop_looking(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.unended(job).is_some_and(|owned| std::mem::take(&mut owned.looking)) {
            self.plan(scheduling::Command::Leave(job), ctx);
        }
    }
}
