//! The owner's side of a job's life: accepted, placed, watched, ended.
//!
//! ```text
//! Submit ─▶ Seeking ──Placed──▶ Placed ──all tasks ended──▶ Ended
//!             ▲ ▲                 │ │
//!             │ └── node lost ────┘ │  the next epoch
//!             └──── task failed ────┘  while retries are left
//! ```

use std::collections::BTreeMap;

use shoal_model::job::Mode;
use shoal_model::{Envelope, Epoch, JobId, Needs, NodeId, Rank, Span, Time, refuse_unhonoured};

use super::message::{
    Brief, End, Event, Exit, JobMessage, Key, Message, OwnedRecord, Record, Refusal, Task, Timer,
};
use super::{Commit, Node};
use crate::commit::two_phase::{self, Failure, Placement, Proposal};
use crate::guard::heartbeat;
use crate::protocol::{Ctx, Input};
use crate::scheduling::{self, Stuck};
use crate::shared::Shared;

/// The most jobs that a node owns, those that have ended included: it knows them again when they are submitted anew.
pub const OWNED_MAX: usize = 1_000_000;
/// The first pause before a job without a place is looked after again; doubles each time.
const AGAIN_LEAST: Span = Span::from_secs(5);
/// The longest such pause.
const AGAIN_MOST: Span = Span::from_mins(5);
/// How long after its planned end a placement is asked after; doubles each time, up to a bound.
const OVERDUE: Span = Span::from_secs(30);
/// The longest pause between two such questions.
const OVERDUE_MOST: Span = Span::from_mins(10);

/// A job that was accepted here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    envelope: Shared<Envelope>,
    needs: Needs,
    phase: Phase,
    retried: u16,
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
        Owned { envelope, needs, phase: Phase::Seeking, retried: 0, why: None, stuck: 0 }
    }

    pub(super) fn restore(record: OwnedRecord, limit_default: Span) -> Owned {
        let OwnedRecord { envelope, retried, end } = record;
        let phase = end.map_or(Phase::Seeking, Phase::Ended);
        Owned { phase, retried, ..Owned::new(envelope, limit_default) }
    }

    /// Whether these exits still count is known once the commit has been restored too.
    pub(super) fn restore_exits(&mut self, epoch: Epoch, ended: Vec<(Rank, Exit)>) {
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
        Record::Owned(OwnedRecord { envelope: self.envelope.clone(), retried: self.retried, end })
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
        let strict = owned.envelope.job().mode() == Mode::AtMostOnce;
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
        if seeking && !self.commit().is_some_and(|commit| commit.is_placing(job)) {
            self.seek(job, ctx);
        }
    }

    pub(super) fn on_failed(&mut self, job: JobId, why: Failure, ctx: &mut Ctx<'_, Node>) {
        self.plan(scheduling::Command::Failed { job, why }, ctx);
    }

    pub(super) fn on_placed(&mut self, job: JobId, placement: Placement, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Placed { epoch: placement.epoch, exits: BTreeMap::new() };
        owned.stuck = 0;
        self.plan(scheduling::Command::Leave(job), ctx);
        self.watch(job, &placement, ctx);
        ctx.report(Event::Placed(job, placement));
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
        self.seek(job, ctx);
    }

    pub(super) fn on_started(&mut self, from: NodeId, task: Task, at: Time, ctx: &mut Ctx<'_, Node>) {
        if self.is_current(from, task) {
            self.note_confirmed(from, task);
            ctx.report(Event::Started(task, at));
        }
    }

    pub(super) fn on_ended(&mut self, from: NodeId, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        if !self.is_current(from, task) {
            // Of an older placement: it does not count, but the run node need not tell it again.
            ctx.send(from, Message::Job(JobMessage::Noted(task)));
            return;
        }
        self.note_confirmed(from, task);
        let Task { job, epoch, rank } = task;
        let Some(owned) = self.unended(job) else { return };
        let Phase::Placed { exits, .. } = &mut owned.phase else { return };
        if exits.insert(rank, exit).is_none() {
            let all = exits.len() == owned.needs.nodes.get() as usize;
            let ended = exits.iter().map(|(&rank, &exit)| (rank, exit)).collect();
            match (exit, all) {
                (Exit::Code(0), false) => ctx.save(Record::Exits(job, epoch, ended)),
                (Exit::Code(0), true) => self.end(job, End::Finished, ctx),
                (Exit::Lost | Exit::NotStarted, _) => self.lose(job, from, ctx),
                (Exit::Code(_) | Exit::Signal(_) | Exit::Overran | Exit::Stopped, _) => {
                    self.fail(job, from, rank, exit, ctx);
                }
            }
        }
        ctx.send(from, Message::Job(JobMessage::Noted(task)));
    }

    pub(super) fn on_suspected(&mut self, node: NodeId, ctx: &mut Ctx<'_, Node>) {
        ctx.report(Event::Suspected(node));
        let Some(work) = &self.work else { return };
        let jobs: Vec<JobId> = work.heartbeat.reasons(node).copied().collect();
        for job in jobs {
            // A task that has ended there is not lost with its node.
            let done = self.placed_on(job, node).is_some_and(|(rank, exits)| exits.contains_key(&rank));
            if !done {
                self.lose(job, node, ctx);
            }
        }
    }

    /// The placement should be over: whoever has not told how it ended is asked.
    pub(super) fn on_overdue(&mut self, job: JobId, epoch: Epoch, reminder: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(Owned { phase: Phase::Placed { epoch: current, exits }, .. }) = self.unended(job) else {
            return;
        };
        if *current != epoch {
            return;
        }
        let ended: Vec<Rank> = exits.keys().copied().collect();
        let Some(placement) = self.commit().and_then(|commit| commit.placement(job)) else { return };
        for (rank, &node) in (0..).map(Rank).zip(&placement.nodes) {
            if !ended.contains(&rank) {
                ctx.send(node, Message::Job(JobMessage::Inquire(Task { job, epoch, rank })));
            }
        }
        let pause = (OVERDUE * (1 << reminder.min(10))).min(OVERDUE_MOST);
        ctx.wake_after(pause, Timer::Overdue(job, epoch, reminder.saturating_add(1)));
    }

    /// Takes up what the records left open.
    pub(super) fn boot_owner(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        // A crash came between a job's end and what follows from it.
        let ended =
            |job: &JobId| work.owned.get(job).is_none_or(|owned| matches!(owned.phase, Phase::Ended(_)));
        let over: Vec<JobId> = work.commit.jobs().filter(ended).collect();
        for job in over {
            self.tell_commit(Input::Command(two_phase::Command::Forget(job)), ctx);
        }
        let Some(work) = &self.work else { return };
        let open: Vec<JobId> = work
            .owned
            .iter()
            .filter(|(_, owned)| !matches!(owned.phase, Phase::Ended(_)))
            .map(|(&job, _)| job)
            .collect();
        for job in open {
            let placement = self.commit().and_then(|commit| commit.placement(job)).cloned();
            let Some(owned) = self.unended(job) else { continue };
            match placement {
                None => {
                    owned.phase = Phase::Seeking;
                    self.seek(job, ctx);
                }
                Some(placement) => {
                    let kept = match &mut owned.phase {
                        Phase::Placed { epoch, exits } if *epoch == placement.epoch => std::mem::take(exits),
                        Phase::Placed { .. } | Phase::Seeking | Phase::Ended(_) => BTreeMap::new(),
                    };
                    let ended: Vec<Rank> = kept.keys().copied().collect();
                    owned.phase = Phase::Placed { epoch: placement.epoch, exits: kept };
                    for rank in ended {
                        if let Some(&node) = placement.nodes.get(rank.0 as usize) {
                            self.note_confirmed(node, Task { job, epoch: placement.epoch, rank });
                        }
                    }
                    self.watch(job, &placement, ctx);
                }
            }
        }
    }

    /// A node was lost, with its part of the job.
    fn lose(&mut self, job: JobId, node: NodeId, ctx: &mut Ctx<'_, Node>) {
        let Some(placement) = self.commit().and_then(|commit| commit.placement(job)).cloned() else {
            return;
        };
        let Some(owned) = self.unended(job) else { return };
        let may_have_run = ctx.now >= placement.start;
        if may_have_run && owned.envelope.job().mode() == Mode::AtMostOnce {
            self.end(job, End::Lost, ctx);
            return;
        }
        ctx.report(Event::Unplaced { job, epoch: placement.epoch, by: Some(node) });
        self.give_up_placement(job, &placement, ctx);
        self.seek(job, ctx);
    }

    /// A task failed: so does the job, unless it may try again.
    fn fail(&mut self, job: JobId, node: NodeId, rank: Rank, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        let Some(placement) = self.commit().and_then(|commit| commit.placement(job)).cloned() else {
            return;
        };
        let Some(owned) = self.unended(job) else { return };
        let retries = owned.envelope.job().retry.map_or(0, |retries| retries.get());
        if owned.retried >= retries {
            self.end(job, End::Failed(rank, exit), ctx);
            return;
        }
        owned.retried += 1;
        ctx.save(owned.record());
        ctx.report(Event::Unplaced { job, epoch: placement.epoch, by: Some(node) });
        self.give_up_placement(job, &placement, ctx);
        self.seek(job, ctx);
    }

    fn give_up_placement(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        self.unwatch(job, placement, ctx);
        ctx.erase(Key::Exits(job));
        self.tell_commit(Input::Command(two_phase::Command::Release(job)), ctx);
    }

    fn seek(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Seeking;
        let needs = owned.needs.clone();
        self.plan(scheduling::Command::Plan { job, needs }, ctx);
    }

    /// The one place where a job ends.
    fn end(&mut self, job: JobId, end: End, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        owned.phase = Phase::Ended(end);
        ctx.save(owned.record());
        ctx.report(Event::Ended(job, end));
        if let Some(placement) = self.commit().and_then(|commit| commit.placement(job)).cloned() {
            self.unwatch(job, &placement, ctx);
            ctx.erase(Key::Exits(job));
        }
        self.plan(scheduling::Command::Leave(job), ctx);
        self.tell_commit(Input::Command(two_phase::Command::Forget(job)), ctx);
    }

    fn watch(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        for &node in &placement.nodes {
            self.tell_heartbeat(Input::Command(heartbeat::Command::Watch { node, reason: job }), ctx);
        }
        let over = placement.start + placement.span + OVERDUE;
        ctx.wake_at(over, Timer::Overdue(job, placement.epoch, 0));
    }

    fn unwatch(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        for &node in &placement.nodes {
            self.tell_heartbeat(Input::Command(heartbeat::Command::Unwatch { node, reason: job }), ctx);
        }
    }

    /// Whether this is a task of the job's placement as it stands, and that node's.
    fn is_current(&self, from: NodeId, task: Task) -> bool {
        let Some(placement) = self.commit().and_then(|commit: &Commit| commit.placement(task.job)) else {
            return false;
        };
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

    /// The rank of a node in a job's placement, and the exits so far.
    fn placed_on(&self, job: JobId, node: NodeId) -> Option<(Rank, &BTreeMap<Rank, Exit>)> {
        let work = self.work.as_ref()?;
        let rank = work.commit.placement(job)?.nodes.iter().position(|&other| other == node)?;
        match &work.owned.get(&job)?.phase {
            Phase::Placed { exits, .. } => Some((Rank(rank as u32), exits)),
            Phase::Seeking | Phase::Ended(_) => None,
        }
    }

    pub(super) fn unended(&mut self, job: JobId) -> Option<&mut Owned> {
        let owned = self.work.as_mut()?.owned.get_mut(&job)?;
        (!matches!(owned.phase, Phase::Ended(_))).then_some(owned)
    }
}
