//! The owner's side of a job's life: accepted, placed, watched, ended.
//!
//! ```text
//! Submit ─▶ Seeking ──Placed──▶ Placed ──all tasks ended──▶ Ended
//!             ▲ ▲                 │ │
//!             │ └── node lost ────┘ │  the next epoch
//!             └──── task failed ────┘  while retries are left
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shoal_model::{Envelope, Epoch, JobId, NodeId, Rank, Span, Time, refuse_unhonoured};

use super::gate::{DENIED_MAX, Denial};
use super::message::{Brief, End, Event, Exit, JobMessage, Message, Record, Refusal, Task, Timer, Usage};
use super::owned::{Owned, Parting, Phase};
use super::train::Train;
use super::{Node, Recipe, Work};
use crate::commit::two_phase::{self, Failure, Placement, Proposal};
use crate::protocol::{Ctx, Input};
use crate::scheduling::{self, CLOCKS_APART_MOST, Stuck};
use crate::shared::Shared;

/// The most jobs that a node owns, those that have ended included: it knows them again when they are submitted anew.
pub const OWNED_MAX: usize = 1_000_000;
/// The first pause before a job without a place is looked after again; doubles each time.
pub(super) const AGAIN_LEAST: Span = Span::from_secs(5);
/// The first such pause of a job that others were quicker than: there are places.
const AGAIN_OUTRUN: Span = Span::from_millis(100);
/// The longest such pause.
const AGAIN_MOST: Span = Span::from_mins(5);
/// How often the files of a job may fail to get to the nodes of a placement before the job fails.
const UNSTAGED_MAX: u8 = 3;
/// How often a job may fail to start before the node that did not start it is left out for a while.
const UNSTARTED_MAX: u8 = 3;

impl Work {
    /// Whether there is room for a job, and the recipe can honour it.
    pub(super) fn has_room_for(&self, owned: &Owned) -> Result<(), Refusal> {
        let jobs = 1 + owned.array().map_or(0, |array| array.tasks() as usize);
        if self.owned.len() + self.unlaunched() + jobs > OWNED_MAX {
            return Err(Refusal::Full(OWNED_MAX));
        }
        refuse_unhonoured(owned.envelope.job(), self.recipe.name(), self.recipe.honours())
            .map_err(|error| Refusal::Unhonoured(error.to_string()))
    }

    /// Whether a job can be taken; notes whose the jobs are that it waits for.
    fn take(&self, owned: &mut Owned, whose: &[(JobId, NodeId)], me: NodeId) -> Result<(), Refusal> {
        self.has_room_for(owned)?;
        let job = owned.envelope.job();
        for &other in job.after.iter().flat_map(|after| after.0.keys()) {
            let owner = whose.iter().find(|(job, _)| *job == other).map(|&(_, owner)| owner);
            let known = || self.owned.get(&other).map(|known| known.from.unwrap_or(me));
            let owner = owner.or_else(known);
            owned.after.insert(other, owner.ok_or(Refusal::Unknown(other))?);
        }
        Ok(())
    }
}

impl Node {
    /// Takes a job; those that it is to start after belong to the nodes given with them, or to this one.
    pub(super) fn submit(
        &mut self,
        envelope: Shared<Envelope>,
        whose: &[(JobId, NodeId)],
        ctx: &mut Ctx<'_, Node>,
    ) {
        let job = envelope.id();
        let Some(work) = &mut self.work else {
            ctx.report(Event::Refused(job, Refusal::NoWork));
            return;
        };
        // The same envelope is the same job, however often it comes.
        if work.owned.contains_key(&job) {
            if let Some(from) = self.job(job).and_then(|owned| owned.from) {
                ctx.report(Event::Refused(job, Refusal::HandedOver(from)));
                return;
            }
            self.renew(job, &envelope, ctx);
            ctx.report(Event::Accepted(job));
            return;
        }
        let mut owned = Owned::new(envelope, work.limit_default);
        if !matches!(work.recipe, Recipe::Aria(_) | Recipe::TriPronged(_)) {
            owned.leave_time_to_travel(ctx.now);
        }
        if let Err(refusal) = work.take(&mut owned, whose, ctx.me) {
            ctx.report(Event::Refused(job, refusal));
            return;
        }
        ctx.save(owned.record());
        work.waiting_for.extend(owned.after.keys().map(|&other| (other, job)));
        if owned.array().is_some() {
            work.arrays.insert(job, Default::default());
        }
        work.owned.insert(job, Box::new(owned));
        ctx.report(Event::Accepted(job));
        self.take_on(job, ctx);
    }

    /// Keeps another pass of a job that has not ended, with those of an array: the next placement travels with it.
    fn renew(&mut self, job: JobId, envelope: &Shared<Envelope>, ctx: &mut Ctx<'_, Node>) {
        let elements = self.elements(job);
        let Some(work) = &mut self.work else { return };
        for id in elements.into_iter().chain([job]) {
            let Some(owned) = work.owned.get_mut(&id) else { continue };
            let over = matches!(owned.phase, Phase::Ended(_));
            // Nobody takes a job's pass away by sending it without.
            if over || envelope.pass().is_none() || owned.envelope.pass() == envelope.pass() {
                continue;
            }
            owned.envelope = envelope.clone();
            ctx.save(owned.record());
        }
    }

    /// Looks for a place for a job, now or once those have ended that it waits for.
    pub(super) fn take_on(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.hand_over(job, ctx) {
            return;
        }
        if self.unended(job).is_some_and(|owned| owned.after.is_empty()) {
            self.seek(job, ctx);
        } else {
            self.ask_after(job, 0, ctx);
        }
    }

    pub(super) fn cancel(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_another_s(job) {
            return;
        }
        let elements = self.elements(job);
        // The array first, and of a train who leads it last: nobody is to look for a place in between.
        for job in std::iter::once(job).chain(elements.into_iter().rev()) {
            self.stop_riding(job, ctx);
            self.end(job, End::Cancelled, ctx);
        }
    }

    pub(super) fn on_propose(
        &mut self,
        job: JobId,
        start: Time,
        nodes: Vec<NodeId>,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let placed = self.unended(job).is_some_and(|owned| owned.phase != Phase::Seeking);
        if placed && self.proactive().is_some() {
            if !self.may_move(job, ctx.now) {
                self.tell_proactive(|proactive, _, _| proactive.stay(job), ctx);
                return;
            }
        } else if placed && !self.is_better(job, start, ctx.now) {
            self.stop_looking(job, ctx);
            return;
        }
        self.refresh_train(job, ctx);
        let Some(owned) = self.unended(job) else { return };
        let (span, resources) = (owned.limit, &owned.envelope.job().resources);
        let shares = nodes.iter().map(|&node| (node, resources.clone())).collect();
        let brief = Shared::new(Brief {
            envelope: owned.envelope.clone(),
            nodes: nodes.into(),
            index: owned.of.map(|(_, index)| index),
            riders: owned.train.riders().map(Box::from),
        });
        // From then on it may have started where it is.
        let leave_by = owned.runs_from.map_or(Time::NEVER, |from| from - CLOCKS_APART_MOST);
        let leave_by = owned.runs_once().then_some(leave_by);
        let after = owned.numbered;
        let proposal = Proposal { job, start, span, shares, after, leave_by, brief };
        self.tell_commit(Input::Command(two_phase::Command::Propose(proposal)), ctx);
    }

    pub(super) fn on_stuck(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        if owned.looking {
            self.stop_looking(job, ctx);
            return;
        }
        let why = self.why_stuck(job, why);
        let Some(owned) = self.unended(job) else { return };
        owned.why = Some(why);
        let (limit, deadline) = (owned.limit, owned.envelope.job().deadline);
        let least = if why == Stuck::Outrun { AGAIN_OUTRUN } else { AGAIN_LEAST };
        let pause = (least * (1 << owned.stuck.min(10))).min(AGAIN_MOST);
        owned.stuck = owned.stuck.saturating_add(1);
        if deadline.is_some_and(|deadline| ctx.now + limit > deadline) {
            self.end(job, End::Expired, ctx);
            return;
        }
        owned.again_at = Some(ctx.now + pause);
        ctx.report(Event::Waiting(job, why));
        ctx.wake_after(pause, Timer::Again(job));
        if matches!(why, Stuck::TooFew { .. }) {
            self.note_short(job);
        }
    }

    /// The job waits, and the recipe goes on looking.
    pub(super) fn note_why(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        let why = self.why_stuck(job, why);
        if let Some(owned) = self.unended(job) {
            owned.why = Some(why);
            ctx.report(Event::Waiting(job, why));
        }
    }

    /// The recipe does not wait for a place.
    pub(super) fn on_given_up(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        if owned.looking {
            self.stop_looking(job, ctx);
            return;
        }
        let why = self.why_stuck(job, why);
        let Some(owned) = self.unended(job) else { return };
        owned.why = Some(why);
        ctx.report(Event::Waiting(job, why));
        self.end(job, End::NoPlace, ctx);
    }

    pub(super) fn on_again(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        // Of two reminders the one that was set last counts.
        let due = |owned: &mut Owned| owned.again_at.is_some_and(|at| at <= ctx.now);
        let seeking = self.unended(job).is_some_and(|owned| owned.phase == Phase::Seeking && due(owned));
        if seeking && !self.is_placing(job) {
            self.seek(job, ctx);
        }
    }

    pub(super) fn on_failed(&mut self, job: JobId, why: Failure, ctx: &mut Ctx<'_, Node>) {
        if self.unended(job).is_some_and(|owned| owned.looking) {
            self.stop_looking(job, ctx);
            return;
        }
        let avoid = self.avoided(job, ctx.now);
        let denied = matches!(&why, Failure::Refused { by, .. } if avoid.contains(by));
        // A search that knows whom to leave out begins anew; where very many deny, it ends as any other does.
        match self.unended(job).filter(|_| denied && avoid.len() < DENIED_MAX) {
            Some(owned) => {
                let needs = owned.needs();
                self.plan(scheduling::Command::Plan { job, needs, avoid }, ctx);
            }
            None => self.plan(scheduling::Command::Failed { job, why }, ctx),
        }
    }

    pub(super) fn on_placed(&mut self, job: JobId, placement: Placement, ctx: &mut Ctx<'_, Node>) {
        let start = self.may_run_from(placement.start, ctx.now);
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Placed { epoch: placement.epoch, exits: BTreeMap::new() };
        owned.stuck = 0;
        owned.started.clear();
        (owned.going, owned.looking, owned.ask_at) = (false, false, None);
        owned.note_start(start, ctx);
        if let Some((array, _)) = owned.of {
            ctx.wake_at(ctx.now, Timer::Launch(array));
        }
        ctx.report(Event::Placed(job, placement.clone()));
        self.seat_riders(job, &placement, ctx);
        // Before the watch, which may find that a node is lost already, and have another place looked for.
        self.note_placed(job, ctx);
        self.watch(job, &placement, ctx);
    }

    pub(super) fn on_unplaced(
        &mut self,
        job: JobId,
        epoch: Epoch,
        by: Option<NodeId>,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(owned) = self.unended(job) else { return };
        // A placement that this owner had already given up is no news.
        if matches!(owned.phase, Phase::Placed { epoch: current, .. } if current > epoch) {
            return;
        }
        ctx.report(Event::Unplaced { job, epoch, by });
        let alone = self.leave_placement(job, ctx);
        self.seek(job, ctx);
        self.seek_all(&alone, ctx);
    }

    pub(super) fn on_started(&mut self, from: NodeId, task: Task, at: Time, ctx: &mut Ctx<'_, Node>) {
        if self.is_current(from, task) {
            self.note_confirmed(from, task);
            let Some(owned) = self.unended(task.job) else { return };
            let news = owned.started.insert(task.rank, ctx.now).is_none();
            let of = owned.of.filter(|_| owned.train.leader().is_none());
            if news {
                if let Some((array, index)) = of {
                    self.note_begun(array, index, at, ctx);
                }
                // By its own clock: what is far from ours is nonsense, and would be shown.
                let at = at.min(ctx.now + CLOCKS_APART_MOST);
                ctx.report(Event::Started(task, at));
                self.note_not_waiting(task.job);
                self.ask_from_now(task.job, task.epoch, ctx);
                self.stop_ended_riders(from, task.job, task.epoch, ctx);
            }
        }
    }

    pub(super) fn on_ended(
        &mut self,
        from: NodeId,
        task: Task,
        exit: Exit,
        usage: Option<Box<Usage>>,
        ctx: &mut Ctx<'_, Node>,
    ) {
        if self.was_done(from, task, exit) {
            self.end(task.job, End::Finished, ctx);
        }
        if !self.is_current(from, task) {
            self.note_parted(from, task, usage, ctx);
            // Of an older placement: it does not count, but the run node need not tell it again.
            ctx.send(from, Message::Job(JobMessage::Noted(task)));
            return;
        }
        if self.misses_riders(from, task, exit, ctx) {
            return;
        }
        self.note_confirmed(from, task);
        self.note_gone(task);
        self.note_pace(task, exit, ctx.now);
        let Task { job, epoch, rank } = task;
        let Some(owned) = self.unended(job) else { return };
        let rides = owned.train.leader().is_some();
        let is_news = rides && !owned.started.contains_key(&rank);
        let nodes = owned.nodes();
        let Phase::Placed { exits, .. } = &mut owned.phase else { return };
        let is_first = !exits.contains_key(&rank);
        // Told twice, or told again by a node that has forgotten it since: what was noted stays.
        if let Entry::Vacant(vacant) = exits.entry(rank) {
            vacant.insert(exit);
            // Of those that ride and are quick nobody says that they have begun.
            if is_news && exit.has_run() {
                let wall = usage.as_ref().map_or(Span::ZERO, |usage| usage.wall);
                ctx.report(Event::Started(task, ctx.now - wall.min(owned.limit)));
            }
            let took = usage.map(|usage| Event::Took(task, usage));
            let all = exits.len() == nodes;
            let ended = exits.iter().map(|(&rank, &exit)| (rank, exit)).collect();
            // What is saved is not heard again after a crash: it is told once it is on disk, and nothing is counted twice.
            let saves = exit == Exit::Code(0) && !all;
            if saves {
                owned.exits_saved = true;
                ctx.save(Record::Exits(job, epoch, ended));
            }
            if let Some(took) = took {
                ctx.report(took);
            }
            match (exit, all) {
                (Exit::Code(0), false) => {}
                (Exit::Code(0), true) => self.end(job, End::Finished, ctx),
                (Exit::Lost | Exit::CutShort, _) => self.lose(job, from, ctx),
                (Exit::GivenBack, _) => {
                    // It has said that it never will: so nobody has begun it.
                    if nodes == 1 && owned.runs_from.take().is_some() {
                        ctx.save(owned.record());
                    }
                    owned.note_denied(from, ctx.now, Denial::Leaves);
                    self.lose(job, from, ctx);
                }
                // Its turn did not come in time: that is no fault of the node's.
                (Exit::NotStarted, _) if rides => self.lose(job, from, ctx),
                (Exit::NotStarted, _) => {
                    owned.unstarted = owned.unstarted.saturating_add(1);
                    // Not at once again and again where it cannot be.
                    if owned.unstarted >= UNSTARTED_MAX {
                        owned.note_denied(from, ctx.now, Denial::CannotStart);
                        self.tell_aria(|aria, _, _| aria.avoid(job, from), ctx);
                    }
                    self.lose(job, from, ctx);
                }
                (Exit::Unstaged, _) => {
                    owned.unstaged = owned.unstaged.saturating_add(1);
                    if owned.unstaged < UNSTAGED_MAX {
                        self.lose(job, from, ctx);
                    } else {
                        self.end(job, End::Failed(rank, exit), ctx);
                    }
                }
                (Exit::Code(_) | Exit::Signal(_) | Exit::Overran | Exit::Stopped, _) => {
                    self.fail(job, from, rank, exit, ctx);
                }
            }
        }
        // Of those that ride that is said with their leader's end, unless they ask again.
        if !(rides && is_first && exit.has_run()) {
            ctx.send(from, Message::Job(JobMessage::Noted(task)));
        }
    }

    /// Takes up what the records left open.
    pub(super) fn boot_owner(&mut self, ctx: &mut Ctx<'_, Node>) {
        self.dissolve_unplaced(ctx);
        let Some(work) = &self.work else { return };
        let owned = |job: &JobId| work.owned.contains_key(job);
        let strays: Vec<JobId> = self.placed_jobs().into_iter().filter(|job| !owned(job)).collect();
        let jobs: Vec<JobId> = work.owned.keys().copied().collect();
        for job in strays {
            self.forget(job, ctx);
        }
        let mut alone = Vec::new();
        for job in jobs {
            match self.placement(job) {
                _ if self.unended(job).is_none() => self.tidy(job, ctx),
                _ if self.is_another_s(job) => self.ask_whether_ours(job, 0, ctx),
                None => {
                    // Those that rode with it have their turns here, too.
                    let _ = self.leave_placement(job, ctx);
                    match self.work.as_ref().is_some_and(|work| work.may_board(job)) {
                        true => alone.push(job),
                        false => self.take_on(job, ctx),
                    }
                }
                // With the one that leads.
                Some(_) if self.job(job).is_some_and(|owned| owned.train.leader().is_some()) => {}
                Some(placement) => self.take_up(job, &placement, ctx),
            }
        }
        // Very many of an array may have lost their places: they share some again. After all others, for none is to be looked
        // for twice.
        self.seek_all(&alone, ctx);
    }

    /// The placement stands, and so do the exits that were noted of it.
    fn take_up(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        self.remember_brief(job, ctx);
        let start = self.may_run_from(placement.start, ctx.now);
        let Some(owned) = self.unended(job) else { return };
        let exits = match &mut owned.phase {
            Phase::Placed { epoch, exits } if *epoch == placement.epoch => std::mem::take(exits),
            Phase::Placed { .. } | Phase::Seeking | Phase::Ended(_) => {
                owned.erase_exits(ctx);
                BTreeMap::new()
            }
        };
        let ended: Vec<Rank> = exits.keys().copied().collect();
        owned.phase = Phase::Placed { epoch: placement.epoch, exits };
        // Before the crash it may have been told to start before its time.
        owned.going = owned.runs_from.is_some_and(|noted| noted < start);
        owned.note_start(owned.runs_from.map_or(start, |noted| noted.min(start)), ctx);
        for rank in ended {
            if let Some(&node) = placement.nodes.get(rank.0 as usize) {
                self.note_confirmed(node, Task { job, epoch: placement.epoch, rank });
            }
        }
        // The crash may have come between the placement on disk and the word of it. Told twice, it is the same.
        ctx.report(Event::Placed(job, placement.clone()));
        self.seat_riders(job, placement, ctx);
        self.watch(job, placement, ctx);
        self.ask_if_begun(job, placement, ctx);
        self.resume(job, placement, ctx);
    }

    /// Does what a crash may have kept from being done at the end of a job.
    fn tidy(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if let Some(owned) = self.work.as_mut().and_then(|work| work.owned.get_mut(&job)) {
            owned.erase_exits(ctx);
        }
        if self.is_open(job) {
            self.forget(job, ctx);
        }
    }

    /// A task failed: so does the job, unless it may try again.
    fn fail(&mut self, job: JobId, node: NodeId, rank: Rank, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        let Some(epoch) = self.placement(job).map(|placement| placement.epoch) else { return };
        let Some(owned) = self.unended(job) else { return };
        // After a crash the same failure may be told again, and counts once.
        if owned.failed != Some(epoch) {
            let retries = owned.envelope.job().retry.map_or(0, |retries| retries.get());
            if owned.retried >= retries {
                self.end(job, End::Failed(rank, exit), ctx);
                return;
            }
            owned.retried += 1;
            owned.failed = Some(epoch);
            ctx.save(owned.record());
        }
        self.unplace(job, epoch, node, ctx);
    }

    /// The placement is broken: the job is taken off its nodes, and looks for others.
    pub(super) fn unplace(&mut self, job: JobId, epoch: Epoch, by: NodeId, ctx: &mut Ctx<'_, Node>) {
        ctx.report(Event::Unplaced { job, epoch, by: Some(by) });
        let rode = self.job(job).is_some_and(|owned| owned.train.leader().is_some());
        let mut alone = self.leave_placement(job, ctx);
        self.let_go(job, ctx);
        match rode {
            true => alone.push(job),
            false => self.seek(job, ctx),
        }
        self.seek_all(&alone, ctx);
    }

    /// Nothing that was noted of a placement counts any more; gives back those that rode with the job, which need places of
    /// their own now.
    #[must_use]
    pub(super) fn leave_placement(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) -> Vec<JobId> {
        self.unwatch(job, ctx);
        self.note_not_waiting(job);
        self.note_not_short(job);
        self.stop_looking(job, ctx);
        self.tell_proactive(|proactive, _, _| proactive.unplaced(job), ctx);
        let alone = self.dissolve(job, ctx);
        self.get_off(job, ctx);
        let Some(owned) = self.unended(job) else { return alone };
        owned.erase_exits(ctx);
        owned.started.clear();
        (owned.going, owned.ask_at) = (false, None);
        owned.phase = Phase::Seeking;
        if let Some((array, index)) = owned.of {
            self.note_not_begun(array, index);
        }
        alone
    }

    /// Looks for a place for a job, if nothing else is missing; has an array's jobs do so.
    pub(super) fn seek(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        self.note_not_short(job);
        self.note_sought(job);
        let Some(owned) = self.unended(job).filter(|owned| owned.phase == Phase::Seeking) else { return };
        owned.again_at = None;
        if !self.is_clear(job, ctx) {
            return;
        }
        let Some(owned) = self.unended(job) else { return };
        if owned.phase != Phase::Seeking || !owned.may_seek() {
            return;
        }
        if owned.array().is_some() {
            self.launch(job, ctx);
            return;
        }
        if self.hand_over(job, ctx) {
            return;
        }
        let Some(owned) = self.unended(job) else { return };
        let needs = owned.needs();
        let avoid = self.avoided(job, ctx.now);
        self.plan(scheduling::Command::Plan { job, needs, avoid }, ctx);
    }

    /// Whether a job can be placed: one that must not run twice only once all nodes of its last placement have let go
    /// of it, and that before any of them could have started it. Until then it waits; after that it may have run.
    fn is_clear(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) -> bool {
        let lingers_on = self.lingers_on(job);
        let Some(owned) = self.unended(job) else { return false };
        let Some(runs_from) = owned.runs_from else { return true };
        if ctx.now + CLOCKS_APART_MOST >= runs_from {
            self.end(job, End::Lost, ctx);
            return false;
        }
        let Some(node) = lingers_on else {
            (owned.runs_from, owned.why) = (None, None);
            ctx.save(owned.record());
            return true;
        };
        let why = Stuck::Lingers(node);
        if owned.why.replace(why) != Some(why) {
            ctx.report(Event::Waiting(job, why));
        }
        owned.again_at = Some(ctx.now + AGAIN_LEAST);
        ctx.wake_after(AGAIN_LEAST, Timer::Again(job));
        false
    }

    /// The one place where a job ends.
    pub(super) fn end(&mut self, job: JobId, end: End, ctx: &mut Ctx<'_, Node>) {
        // Before its own end is on disk: until then it says that they are with it.
        let alone = self.dissolve(job, ctx);
        let parting = self.parting(job);
        let Some(owned) = self.unended(job) else { return };
        if !parting.is_empty() {
            owned.parting = parting;
        }
        owned.phase = Phase::Ended(end);
        owned.started = BTreeMap::new();
        let rides = owned.train.leader().is_some();
        (owned.train, owned.why, owned.again_at) = (Train::Alone, None, None);
        owned.tidy();
        let (of, after) = (owned.of, owned.after.clone());
        // Its heir has to know what it waits for.
        if !matches!(end, End::HandedOver(_)) {
            owned.after = BTreeMap::new();
        }
        ctx.save(owned.record());
        ctx.report(Event::Ended(job, end));
        owned.erase_exits(ctx);
        if let Some(work) = &mut self.work {
            work.arrays.remove(&job);
            work.handover.forget(job);
            for other in after.into_keys() {
                work.waiting_for.remove(&(other, job));
            }
        }
        self.unwatch(job, ctx);
        self.note_not_waiting(job);
        self.plan(scheduling::Command::Leave(job), ctx);
        self.forget(job, ctx);
        self.tell_over(job, end, ctx);
        if let Some((array, index)) = of {
            self.on_element_ended(array, index, end, rides, ctx);
        }
        self.seek_all(&alone, ctx);
    }

    /// The tasks of a job that run while it ends: they are stopped, and may say what they took.
    fn parting(&self, job: JobId) -> Parting {
        let (Some(owned), Some(placement)) = (self.job(job), self.placement(job)) else {
            return Parting::new();
        };
        let Phase::Placed { epoch, exits } = &owned.phase else { return Parting::new() };
        let open = owned.started.keys().filter(|rank| *epoch == placement.epoch && !exits.contains_key(rank));
        let on = |&rank: &Rank| Some(((*epoch, rank), *placement.nodes.get(rank.0 as usize)?));
        open.filter_map(on).collect()
    }

    /// A task has ended whose job had ended before: what it took is told, once.
    fn note_parted(&mut self, from: NodeId, task: Task, usage: Option<Box<Usage>>, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.work.as_mut().and_then(|work| work.owned.get_mut(&task.job)) else { return };
        let key = (task.epoch, task.rank);
        if owned.parting.get(&key) != Some(&from) {
            return;
        }
        owned.parting.remove(&key);
        owned.tidy();
        if let Some(usage) = usage {
            ctx.report(Event::Took(task, usage));
        }
    }

    /// Whether this is a task of the job's placement as it stands, and that node's.
    pub(super) fn is_current(&self, from: NodeId, task: Task) -> bool {
        let Some(placement) = self.placement(task.job) else { return false };
        let current =
            self.work.as_ref().and_then(|work| work.owned.get(&task.job)).is_some_and(
                |owned| matches!(owned.phase, Phase::Placed { epoch, .. } if epoch == task.epoch),
            );
        current && placement.epoch == task.epoch && placement.nodes.get(task.rank.0 as usize) == Some(&from)
    }

    /// What a node does shows that the placement stands there.
    fn note_confirmed(&mut self, from: NodeId, task: Task) {
        if let Some(work) = &mut self.work {
            work.commit.note_confirmed(from, task.job, task.epoch);
        }
    }

    pub(super) fn unended(&mut self, job: JobId) -> Option<&mut Owned> {
        let owned = self.work.as_mut()?.owned.get_mut(&job)?;
        (!matches!(owned.phase, Phase::Ended(_))).then_some(owned)
    }
}
