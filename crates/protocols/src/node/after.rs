//! Jobs that start after others: their owner asks the owners of those, and is told when they end.
//!
//! ```text
//! owner of the one that waits      owner of the other
//!     │── Await ──────────────────────▶│  ours waits for yours (asked again, ever more seldom)
//!     │◀──────────────────────── Over ─│  it has ended, so
//! ```

use std::collections::BTreeSet;

use shoal_model::job::Ended;
use shoal_model::{JobId, NodeId, Span};

use super::message::{End, JobMessage, Message, Timer};
use super::owned::Phase;
use super::{Node, Work};
use crate::protocol::Ctx;

/// The first pause before another job's owner is asked again; doubles each time.
const ASK_LEAST: Span = Span::from_secs(2);
/// The longest such pause.
pub(super) const ASK_MOST: Span = Span::from_mins(1);
/// How many pairs of a job and a node that waits for it are remembered; others have to ask again.
pub(super) const AWAITED_MAX: usize = 10_000;

/// The least and the greatest of all ids.
const FIRST: JobId = JobId([0; 16]);
const LAST: JobId = JobId([0xff; 16]);

impl Work {
    /// Whether a job waits for this one, here or elsewhere.
    pub(super) fn is_awaited(&self, job: JobId) -> bool {
        let elsewhere = (job, NodeId(0))..=(job, NodeId(u64::MAX));
        let here = (job, FIRST)..=(job, LAST);
        self.awaited.range(elsewhere).next().is_some() || self.waiting_for.range(here).next().is_some()
    }
}

impl Node {
    /// Asks how the jobs have ended that a job waits for; of its own jobs the owner knows.
    pub(super) fn ask_after(&mut self, job: JobId, question: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        let after: Vec<(JobId, NodeId)> = owned.after.iter().map(|(&other, &owner)| (other, owner)).collect();
        for (other, owner) in after {
            if let Some(heir) = self.heir_of(other).filter(|_| owner == ctx.me) {
                self.on_moved(ctx.me, other, heir, ctx);
                return;
            }
            if owner != ctx.me {
                ctx.send(owner, Message::Job(JobMessage::Await(other)));
            } else if let Some(end) = self.end_of(other) {
                self.note_over(job, other, end, ctx);
            }
        }
        if self.unended(job).is_some_and(|owned| owned.after.values().any(|&owner| owner != ctx.me)) {
            let pause = (ASK_LEAST * (1 << question.min(20))).min(ASK_MOST);
            ctx.wake_after(pause, Timer::Await(job, question.saturating_add(1)));
        }
    }

    /// A job is another node's now: that one is asked from now on.
    pub(super) fn on_moved(&mut self, from: NodeId, other: JobId, to: NodeId, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let waiting = work.waiting_for.range((other, FIRST)..=(other, LAST));
        let waiting: Vec<JobId> = waiting.map(|&(_, job)| job).collect();
        for job in waiting {
            let owner = self.unended(job).and_then(|owned| owned.after.get_mut(&other));
            if let Some(owner) = owner.filter(|owner| **owner == from) {
                *owner = to;
                if let Some(owned) = self.unended(job) {
                    ctx.save(owned.record());
                }
                self.ask_after(job, 0, ctx);
            }
        }
    }

    /// A node has a job that waits for one of ours.
    pub(super) fn on_await(&mut self, from: NodeId, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if let Some(heir) = self.heir_of(job) {
            ctx.send(from, Message::Job(JobMessage::Moved(job, heir)));
            return;
        }
        if let Some(end) = self.end_of(job) {
            ctx.send(from, Message::Job(JobMessage::Over(job, end)));
            return;
        }
        let Some(work) = &mut self.work else { return };
        if work.awaited.len() < AWAITED_MAX {
            work.awaited.insert((job, from));
        }
    }

    /// A job has ended that jobs of ours wait for.
    pub(super) fn on_over(&mut self, from: NodeId, other: JobId, end: Option<End>, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let waiting = work.waiting_for.range((other, FIRST)..=(other, LAST));
        let waiting: Vec<JobId> = waiting.map(|&(_, job)| job).collect();
        for job in waiting {
            if self.unended(job).is_some_and(|owned| owned.after.get(&other) == Some(&from)) {
                self.note_over(job, other, end, ctx);
            }
        }
    }

    /// Tells all that wait for a job of ours that it has ended.
    pub(super) fn tell_over(&mut self, job: JobId, end: End, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let all = (job, NodeId(0))..=(job, NodeId(u64::MAX));
        let nodes: BTreeSet<NodeId> = work.awaited.range(all).map(|&(_, node)| node).collect();
        for node in nodes {
            work.awaited.remove(&(job, node));
            ctx.send(node, Message::Job(JobMessage::Over(job, Some(end))));
        }
        // A message of its own, so that a long chain of jobs does not end in one breath.
        if work.waiting_for.range((job, FIRST)..=(job, LAST)).next().is_some() {
            ctx.send(ctx.me, Message::Job(JobMessage::Over(job, Some(end))));
        }
    }

    fn note_over(&mut self, job: JobId, other: JobId, end: Option<End>, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.unended(job) else { return };
        let must = owned.envelope().job().after.as_ref().and_then(|after| after.0.get(&other).copied());
        let met = match must.unwrap_or_default() {
            Ended::Ok => end == Some(End::Finished),
            Ended::Any => end.is_some(),
        };
        owned.after.remove(&other);
        let last = owned.after.is_empty();
        if let Some(work) = &mut self.work {
            work.waiting_for.remove(&(other, job));
        }
        if !met {
            self.end(job, End::Unmet(other), ctx);
        } else if last && let Some(owned) = self.unended(job) {
            // From here on it may run, and whoever has lost what it knew of the other must not end it.
            ctx.save(owned.record());
            self.seek(job, ctx);
        }
    }

    /// How a job of ours has ended; none inside if there is no such job, none at all if it has not.
    fn end_of(&self, job: JobId) -> Option<Option<End>> {
        match self.work.as_ref()?.owned.get(&job).map(|owned| &owned.phase) {
            Some(Phase::Ended(end)) => Some(Some(*end)),
            Some(Phase::Seeking | Phase::Placed { .. }) => None,
            None => Some(None),
        }
    }
}
