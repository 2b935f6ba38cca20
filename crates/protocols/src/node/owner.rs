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

use shoal_model::job::Mode;
use shoal_model::{Envelope, Epoch, JobId, Needs, NodeId, Rank, Span, Time, refuse_unhonoured};

use super::Node;
use super::message::{
    Brief, End, Event, Exit, JobMessage, Key, Message, OwnedRecord, Record, Refusal, Task, Timer,
};
use crate::commit::two_phase::{self, Failure, Placement, Proposal};
use crate::protocol::{Ctx, Input};
use crate::scheduling::{self, Stuck};
use crate::shared::Shared;

/// The most jobs that a node owns, those that have ended included: it knows them again when they are submitted anew.
pub const OWNED_MAX: usize = 1_000_000;
/// The first pause before a job without a place is looked after again; doubles each time.
const AGAIN_LEAST: Span = Span::from_secs(5);
/// The longest such pause.
const AGAIN_MOST: Span = Span::from_mins(5);
/// No two clocks of a grid are further apart.
const CLOCKS_APART_MOST: Span = Span::from_secs(5);

/// A job that was accepted here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    envelope: Shared<Envelope>,
    needs: Needs,
    pub(super) phase: Phase,
    retried: u16,
    /// The last placement that failed.
    failed: Option<Epoch>,
    /// Of a job that must not run twice: from when on nodes may start it, unless all of them have let go before.
    runs_from: Option<Time>,
    /// Whether exits of a placement are on disk.
    exits_saved: bool,
    /// Whom this node watches for it.
    pub(super) watched: Vec<NodeId>,
    /// The tasks of its placement that have said that they run, and when they last did.
    pub(super) started: BTreeMap<Rank, Time>,
    /// Why it waits, as last told.
    why: Option<Stuck>,
    /// How often in a row no place was found.
    stuck: u8,
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It has no place yet.
    Seeking,
    /// It has a place; how its tasks have ended so far.
    Placed {
        /// Which of its placements.
        epoch: Epoch,
        /// The tasks that have ended.
        exits: BTreeMap<Rank, Exit>,
    },
    /// It has ended.
    Ended(End),
}

impl Owned {
    fn new(envelope: Shared<Envelope>, limit_default: Span) -> Owned {
        let needs = Needs::of(envelope.job(), limit_default);
        Owned {
            envelope,
            needs,
            phase: Phase::Seeking,
            retried: 0,
            failed: None,
            runs_from: None,
            exits_saved: false,
            watched: Vec::new(),
            started: BTreeMap::new(),
            why: None,
            stuck: 0,
        }
    }

    pub(super) fn restore(record: OwnedRecord, limit_default: Span) -> Owned {
        let OwnedRecord { envelope, retried, end, failed, runs_from } = record;
        let phase = end.map_or(Phase::Seeking, Phase::Ended);
        Owned { phase, retried, failed, runs_from, ..Owned::new(envelope, limit_default) }
    }

    /// Whether these exits still count is known once the commit has been restored too.
    pub(super) fn restore_exits(&mut self, epoch: Epoch, ended: Vec<(Rank, Exit)>) {
        self.exits_saved = true;
        if self.phase == Phase::Seeking {
            self.phase = Phase::Placed { epoch, exits: ended.into_iter().collect() };
        }
    }

    /// How far it has come.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Why it waits, if it does and a reason is known.
    pub fn why(&self) -> Option<Stuck> {
        self.why.filter(|_| self.phase == Phase::Seeking)
    }

    /// What was accepted.
    pub fn envelope(&self) -> &Shared<Envelope> {
        &self.envelope
    }

    fn record(&self) -> Record {
        let end = match &self.phase {
            Phase::Seeking | Phase::Placed { .. } => None,
            Phase::Ended(end) => Some(*end),
        };
        let Owned { ref envelope, retried, failed, runs_from, .. } = *self;
        Record::Owned(OwnedRecord { envelope: envelope.clone(), retried, end, failed, runs_from })
    }

    fn runs_once(&self) -> bool {
        self.envelope.job().mode() == Mode::AtMostOnce
    }

    /// Saved before any node of the placement can be lost: from then on the job may have run.
    fn note_start(&mut self, start: Time, ctx: &mut Ctx<'_, Node>) {
        if self.runs_once() && self.runs_from != Some(start) {
            self.runs_from = Some(start);
            ctx.save(self.record());
        }
    }

    fn erase_exits(&mut self, ctx: &mut Ctx<'_, Node>) {
        if std::mem::take(&mut self.exits_saved) {
            ctx.erase(Key::Exits(self.envelope.id()));
        }
    }
}

impl Node {
    pub(super) fn submit(&mut self, envelope: Shared<Envelope>, ctx: &mut Ctx<'_, Node>) {
        let job = envelope.id();
        let Some(work) = &mut self.work else {
            ctx.report(Event::Refused(job, Refusal::NoWork));
            return;
        };
        // The same envelope is the same job, however often it comes.
        if work.owned.contains_key(&job) {
            ctx.report(Event::Accepted(job));
            return;
        }
        if work.owned.len() >= OWNED_MAX {
            ctx.report(Event::Refused(job, Refusal::Full(OWNED_MAX)));
            return;
        }
        if let Err(error) = refuse_unhonoured(envelope.job(), work.recipe.name(), work.recipe.honours()) {
            ctx.report(Event::Refused(job, Refusal::Unhonoured(error.to_string())));
            return;
        }
        let owned = Owned::new(envelope, work.limit_default);
        ctx.save(owned.record());
        work.owned.insert(job, owned);
        ctx.report(Event::Accepted(job));
        self.seek(job, ctx);
    }

    pub(super) fn cancel(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.unended(job).is_some() {
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
        let Some(owned) = self.unended(job) else { return };
        let Needs { limit, ref resources, .. } = owned.needs;
        let shares = nodes.iter().map(|&node| (node, resources.clone())).collect();
        let brief = Shared::new(Brief { envelope: owned.envelope.clone(), nodes });
        let strict = owned.runs_once();
        let proposal = Proposal { job, start, span: limit, shares, strict, brief };
        self.tell_commit(Input::Command(two_phase::Command::Propose(proposal)), ctx);
    }

    pub(super) fn on_stuck(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        owned.why = Some(why);
        let Needs { limit, deadline, .. } = owned.needs;
        let pause = (AGAIN_LEAST * (1 << owned.stuck.min(10))).min(AGAIN_MOST);
        owned.stuck = owned.stuck.saturating_add(1);
        if deadline.is_some_and(|deadline| ctx.now + limit > deadline) {
            self.end(job, End::Expired, ctx);
            return;
        }
        ctx.report(Event::Waiting(job, why));
        ctx.wake_after(pause, Timer::Again(job));
    }

    /// The job waits, and the recipe goes on looking.
    pub(super) fn note_why(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        if let Some(owned) = self.unended(job) {
            owned.why = Some(why);
            ctx.report(Event::Waiting(job, why));
        }
    }

    /// What there is to run, for a recipe that has to say so.
    pub(super) fn wanted(&self, job: JobId) -> Option<(Shared<Envelope>, Needs)> {
        let owned = self.work.as_ref()?.owned.get(&job)?;
        Some((owned.envelope.clone(), owned.needs.clone()))
    }

    /// The recipe does not wait for a place.
    pub(super) fn on_given_up(&mut self, job: JobId, why: Stuck, ctx: &mut Ctx<'_, Node>) {
        if let Some(owned) = self.unended(job) {
            owned.why = Some(why);
            ctx.report(Event::Waiting(job, why));
            self.end(job, End::NoPlace, ctx);
        }
    }

    pub(super) fn on_again(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let seeking = self.unended(job).is_some_and(|owned| owned.phase == Phase::Seeking);
        if seeking && !self.is_placing(job) {
            self.seek(job, ctx);
        }
    }

    pub(super) fn on_failed(&mut self, job: JobId, why: Failure, ctx: &mut Ctx<'_, Node>) {
        self.plan(scheduling::Command::Failed { job, why }, ctx);
    }

    pub(super) fn on_placed(&mut self, job: JobId, placement: Placement, ctx: &mut Ctx<'_, Node>) {
        let start = self.may_run_from(placement.start, ctx.now);
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Placed { epoch: placement.epoch, exits: BTreeMap::new() };
        owned.stuck = 0;
        owned.started.clear();
        owned.note_start(start, ctx);
        self.plan(scheduling::Command::Leave(job), ctx);
        ctx.report(Event::Placed(job, placement.clone()));
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
        self.leave_placement(job, ctx);
        self.seek(job, ctx);
    }

    pub(super) fn on_started(&mut self, from: NodeId, task: Task, at: Time, ctx: &mut Ctx<'_, Node>) {
        if self.is_current(from, task) {
            self.note_confirmed(from, task);
            let news = self
                .unended(task.job)
                .is_some_and(|owned| owned.started.insert(task.rank, ctx.now).is_none());
            if news {
                ctx.report(Event::Started(task, at));
            }
        }
    }

    pub(super) fn on_ended(&mut self, from: NodeId, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        if !self.is_current(from, task) {
            // Of an older placement: it does not count, but the run node need not tell it again.
            ctx.send(from, Message::Job(JobMessage::Noted(task)));
            return;
        }
        self.note_confirmed(from, task);
        self.note_gone(task);
        let Task { job, epoch, rank } = task;
        let Some(owned) = self.unended(job) else { return };
        let Phase::Placed { exits, .. } = &mut owned.phase else { return };
        // Told twice, or told again by a node that has forgotten it since: what was noted stays.
        if let Entry::Vacant(vacant) = exits.entry(rank) {
            vacant.insert(exit);
            let all = exits.len() == owned.needs.nodes.get() as usize;
            let ended = exits.iter().map(|(&rank, &exit)| (rank, exit)).collect();
            match (exit, all) {
                (Exit::Code(0), false) => {
                    owned.exits_saved = true;
                    ctx.save(Record::Exits(job, epoch, ended));
                }
                (Exit::Code(0), true) => self.end(job, End::Finished, ctx),
                (Exit::Lost | Exit::NotStarted | Exit::CutShort, _) => self.lose(job, from, ctx),
                (Exit::Code(_) | Exit::Signal(_) | Exit::Overran | Exit::Stopped, _) => {
                    self.fail(job, from, rank, exit, ctx);
                }
            }
        }
        ctx.send(from, Message::Job(JobMessage::Noted(task)));
    }

    /// Takes up what the records left open.
    pub(super) fn boot_owner(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let owned = |job: &JobId| work.owned.contains_key(job);
        let strays: Vec<JobId> = self.placed_jobs().into_iter().filter(|job| !owned(job)).collect();
        let jobs: Vec<JobId> = work.owned.keys().copied().collect();
        for job in strays {
            self.forget(job, ctx);
        }
        for job in jobs {
            match self.placement(job) {
                _ if self.unended(job).is_none() => self.tidy(job, ctx),
                None => {
                    self.leave_placement(job, ctx);
                    self.seek(job, ctx);
                }
                Some(placement) => self.take_up(job, &placement, ctx),
            }
        }
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
        owned.note_start(start, ctx);
        for rank in ended {
            if let Some(&node) = placement.nodes.get(rank.0 as usize) {
                self.note_confirmed(node, Task { job, epoch: placement.epoch, rank });
            }
        }
        // The crash may have come between the placement on disk and the word of it. Told twice, it is the same.
        ctx.report(Event::Placed(job, placement.clone()));
        self.watch(job, placement, ctx);
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
        self.leave_placement(job, ctx);
        self.release(job, ctx);
        self.seek(job, ctx);
    }

    /// Nothing that was noted of a placement counts any more.
    fn leave_placement(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        self.unwatch(job, ctx);
        let Some(owned) = self.unended(job) else { return };
        owned.erase_exits(ctx);
        owned.started.clear();
        owned.phase = Phase::Seeking;
    }

    fn seek(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_clear(job, ctx) {
            let Some(owned) = self.unended(job) else { return };
            let needs = owned.needs.clone();
            self.plan(scheduling::Command::Plan { job, needs }, ctx);
        }
    }

    /// Whether a job can be placed: one that must not run twice only once all nodes of its last placement have let go
    /// of it, and that before any of them could have started it. Until then it waits; after that it may have run.
    fn is_clear(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) -> bool {
        let let_go = !self.is_releasing(job);
        let Some(owned) = self.unended(job) else { return false };
        let Some(runs_from) = owned.runs_from else { return true };
        if ctx.now + CLOCKS_APART_MOST >= runs_from {
            self.end(job, End::Lost, ctx);
            return false;
        }
        if let_go {
            owned.runs_from = None;
            ctx.save(owned.record());
            return true;
        }
        ctx.wake_after(AGAIN_LEAST, Timer::Again(job));
        false
    }

    /// The one place where a job ends.
    pub(super) fn end(&mut self, job: JobId, end: End, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Ended(end);
        owned.started = BTreeMap::new();
        ctx.save(owned.record());
        ctx.report(Event::Ended(job, end));
        owned.erase_exits(ctx);
        self.unwatch(job, ctx);
        self.plan(scheduling::Command::Leave(job), ctx);
        self.forget(job, ctx);
    }

    /// Whether this is a task of the job's placement as it stands, and that node's.
    fn is_current(&self, from: NodeId, task: Task) -> bool {
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
