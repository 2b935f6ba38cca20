//! How an owner looks after the nodes that run its jobs: who is silent, who has not begun, who should have ended.
//!
//! When a rank is lost, the others stop within ten seconds of when the owner can know. It can know while it is up and
//! messages come through: a silent node is suspected within 8 s of its last sign of life
//! ([`heartbeat::Config::suspects_within`]), a node that lost its task says so at once and again in answer to each
//! ping, and one that has no such task any more, or never had, does not say that it runs and is asked. The word to stop takes one message more. While it is lost or the
//! owner is away a rank runs on, and asks by itself whether it is wanted (see [`super::runner`]).

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId, NodeId, Rank, Span, Time};

use super::message::{Event, Exit, JobMessage, Message, Task, Timer};
use super::owned::{Owned, Phase};
use super::{Node, START_GRACE, WANTED_EVERY};
use crate::commit::two_phase::Placement;
use crate::guard::heartbeat;
use crate::protocol::{Ctx, Input};

/// How long after its planned end a placement is asked after; doubles each time, up to a bound.
const OVERDUE: Span = Span::from_secs(30);
/// The longest pause between two such questions.
const OVERDUE_MOST: Span = Span::from_mins(10);
/// What a message and its answer may take before a node that has said nothing is asked.
const A_MOMENT: Span = Span::from_secs(1);
/// The pause between two questions after a job that waits in a queue, and should have started by now.
const IN_QUEUE: Span = Span::from_secs(20);

/// When a task that was to start then, and has not said that it runs, is asked after.
fn late(start: Time) -> Time {
    start + START_GRACE + A_MOMENT
}

impl Node {
    pub(super) fn watch(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        self.unwatch(job, ctx);
        for &node in &placement.nodes {
            self.tell_heartbeat(Input::Command(heartbeat::Command::Watch { node, reason: job }), ctx);
        }
        if let Some(owned) = self.unended(job) {
            owned.watched.clone_from(&placement.nodes);
            // What it lacked while it sought is over, and it may wait for long.
            owned.tidy();
        }
        self.note_waiting(job, placement.start, ctx);
        if !self.work.as_ref().is_some_and(|work| work.heartbeat.is_on()) {
            // Where nobody is watched, nobody is asked from time to time whether it runs.
            let over = placement.start + placement.span + OVERDUE;
            ctx.wake_at(over, Timer::Overdue(job, placement.epoch, 0));
        } else if late(placement.start) < ctx.now + A_MOMENT {
            self.ask_at(ctx.now + A_MOMENT, job, placement.epoch, ctx);
        } else {
            if let Some(owned) = self.unended(job) {
                owned.ask_at = Some(late(placement.start));
            }
            self.look_for_late(late(placement.start), ctx);
        }
        // Who is suspected already is not suspected anew.
        let suspects =
            |node: &&NodeId| self.work.as_ref().is_some_and(|work| work.heartbeat.suspects(**node));
        if let Some(&node) = placement.nodes.iter().find(suspects) {
            self.lose(job, node, ctx);
        }
    }

    pub(super) fn unwatch(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let owned = self.work.as_mut().and_then(|work| work.owned.get_mut(&job));
        for node in owned.map(|owned| std::mem::take(&mut owned.watched)).unwrap_or_default() {
            self.tell_heartbeat(Input::Command(heartbeat::Command::Unwatch { node, reason: job }), ctx);
        }
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

    /// A task runs, maybe long before its time: from now on it is looked after.
    pub(super) fn ask_from_now(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let at = ctx.now + WANTED_EVERY + A_MOMENT;
        if let Some(ask_at) = self.unended(job).and_then(|owned| owned.ask_at) {
            self.ask_at(at.min(ask_at), job, epoch, ctx);
        }
    }

    /// Very many jobs may wait for their time: of these, one reminder for the next that should run is enough.
    fn look_for_late(&mut self, at: Time, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        if work.late_at.is_none_or(|late_at| at < late_at) {
            work.late_at = Some(at);
            ctx.wake_at(at, Timer::AnyLate);
        }
    }

    /// Asks after all that wait and should run by now, and that nobody has asked after yet.
    pub(super) fn on_any_late(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        // Of two reminders the one that was set for the earlier time counts.
        if work.late_at.is_none_or(|late_at| ctx.now < late_at) {
            return;
        }
        work.late_at = None;
        let due = work.waiting.iter().take_while(|(start, _)| late(*start) <= ctx.now);
        let due: Vec<JobId> = due.map(|&(_, job)| job).collect();
        let next = work.waiting.iter().nth(due.len()).map(|&(start, _)| late(start));
        for job in due {
            let Some(owned) = self.unended(job) else { continue };
            let Phase::Placed { epoch, .. } = owned.phase else { continue };
            // Whoever was asked after before has a reminder of its own.
            if owned.planned.is_some_and(|start| owned.ask_at == Some(late(start))) {
                self.on_late(job, epoch, ctx);
            }
        }
        if let Some(at) = next {
            self.look_for_late(at, ctx);
        }
    }

    fn ask_at(&mut self, at: Time, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        if let Some(owned) = self.unended(job) {
            owned.ask_at = Some(at);
            ctx.wake_at(at, Timer::Late(job, epoch));
        }
    }

    /// All tasks should run by now, and say so from time to time: whoever has not is asked. A node that has no such task,
    /// because it never began or went with the disk, says that it is lost, and the others stop.
    pub(super) fn on_late(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        let Owned { phase: Phase::Placed { epoch: current, exits }, ask_at, .. } = &*owned else { return };
        // Of two reminders the one that was set last counts.
        if *current != epoch || ask_at.is_some_and(|at| ctx.now < at) {
            return;
        }
        let lately = owned.started.iter().filter(|(_, at)| ctx.now.since(**at) <= WANTED_EVERY + A_MOMENT);
        let heard: BTreeSet<Rank> = exits.keys().copied().chain(lately.map(|(&rank, _)| rank)).collect();
        self.inquire(job, epoch, &heard, ctx);
        // In a queue its turn comes when it comes; that it is there still is asked all the same.
        let pause = if self.aria().is_some() { IN_QUEUE } else { A_MOMENT * 2 };
        self.ask_at(ctx.now + pause, job, epoch, ctx);
    }

    /// A node says of a task that it still runs.
    pub(super) fn note_running(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(placement) = self.placement(job) else { return };
        let rank = placement.nodes.iter().position(|&node| node == from);
        let Some(rank) = rank.filter(|_| placement.epoch == epoch) else { return };
        let rank = Rank(rank as u32);
        // It is told of every placement that stands: only what has started is written to, or all would take room for it.
        if let Some(owned) = self.unended(job).filter(|owned| owned.started.contains_key(&rank)) {
            owned.started.insert(rank, ctx.now);
            self.stop_ended_riders(from, job, epoch, ctx);
        }
    }

    /// Asks those ranks of the placement that have not been heard of.
    pub(super) fn inquire(&self, job: JobId, epoch: Epoch, heard: &BTreeSet<Rank>, ctx: &mut Ctx<'_, Node>) {
        let Some(placement) = self.placement(job) else { return };
        let open = (0..).map(Rank).zip(&placement.nodes).filter(|(rank, _)| !heard.contains(rank));
        for (rank, &node) in open {
            ctx.send(node, Message::Job(JobMessage::Inquire(Task { job, epoch, rank })));
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
        let ended: BTreeSet<Rank> = exits.keys().copied().collect();
        self.inquire(job, epoch, &ended, ctx);
        let pause = (OVERDUE * (1 << reminder.min(10))).min(OVERDUE_MOST);
        ctx.wake_after(pause, Timer::Overdue(job, epoch, reminder.saturating_add(1)));
    }

    /// A node was lost, with its part of the job.
    pub(super) fn lose(&mut self, job: JobId, node: NodeId, ctx: &mut Ctx<'_, Node>) {
        let Some(epoch) = self.placement(job).map(|placement| placement.epoch) else { return };
        if self.unended(job).is_some() {
            self.unplace(job, epoch, node, ctx);
        }
    }

    /// The rank of a node in a job's placement, and the exits so far.
    fn placed_on(&self, job: JobId, node: NodeId) -> Option<(Rank, &BTreeMap<Rank, Exit>)> {
        let work = self.work.as_ref()?;
        let rank = self.placement(job)?.nodes.iter().position(|&other| other == node)?;
        match &work.owned.get(&job)?.phase {
            Phase::Placed { exits, .. } => Some((Rank(rank as u32), exits)),
            Phase::Seeking | Phase::Ended(_) => None,
        }
    }
}
