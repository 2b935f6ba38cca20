//! The recipe `proactive` in the node: it goes on looking for better sets once a job is placed, and has them committed.

use shoal_model::{JobId, Needs, NodeId, Time, constraint, matches};

use super::message::{Brief, Message};
use super::owned::Phase;
use super::{Node, Recipe, Work};
use crate::commit::two_phase::{self, Placement};
use crate::protocol::{Ctx, Input};
use crate::scheduling::proactive::Proactive;
use crate::scheduling::{self, Here, STAYS_WITHIN};

impl Node {
    /// The recipe `proactive`, if this node follows it.
    pub fn proactive(&self) -> Option<&Proactive> {
        match &self.work.as_ref()?.recipe {
            Recipe::Proactive(proactive) => Some(proactive),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Aria(_) | Recipe::TriPronged(_) => None,
        }
    }

    pub(super) fn tell_proactive(
        &mut self,
        tell: impl FnOnce(&mut Proactive, &Here<'_>, &mut Ctx<'_, Proactive>),
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(work) = &mut self.work else { return };
        let Work { recipe, commit, machine, .. } = work.as_mut();
        let here = Here { overlay: &self.overlay, calendar: commit.calendar(), machine };
        let Recipe::Proactive(proactive) = recipe else { return };
        let heard = ctx.layer(|ctx| tell(proactive, &here, ctx));
        self.on_plan(heard, ctx);
    }

    /// A job is placed: most recipes are done with it.
    pub(super) fn note_placed(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.proactive().is_some() {
            self.tell_proactive(|proactive, here, ctx| proactive.placed(job, here, ctx), ctx);
        } else {
            self.plan(scheduling::Command::Leave(job), ctx);
        }
    }

    /// A job had its place before this node went down: better ones are looked for again, unless it may have been told to
    /// start.
    pub(super) fn resume(&mut self, job: JobId, placement: &Placement, ctx: &mut Ctx<'_, Node>) {
        if self.proactive().is_none() {
            return;
        }
        let Some(owned) = self.unended(job) else { return };
        // It may have been lost again at once.
        if !matches!(owned.phase, Phase::Placed { epoch, .. } if epoch == placement.epoch) {
            return;
        }
        if owned.going || placement.start <= ctx.now + STAYS_WITHIN {
            return;
        }
        let needs = owned.needs();
        self.tell_proactive(|proactive, _, ctx| proactive.resume(job, needs, placement, ctx), ctx);
    }

    /// Whether a job that has a place can still be moved: it has not started, and will not before it has moved.
    pub(super) fn may_move(&mut self, job: JobId, now: Time) -> bool {
        let waits = self.placement(job).is_some_and(|placement| placement.start > now + STAYS_WITHIN);
        let placing = self.is_placing(job);
        waits && !placing && self.unended(job).is_some_and(|owned| !owned.going && owned.started.is_empty())
    }

    /// What a coordinator wants to have committed here is judged once more: what it was told may be old, or a lie.
    pub(super) fn on_commit_message(
        &mut self,
        from: NodeId,
        message: two_phase::Message<shoal_model::Resources, Brief>,
        ctx: &mut Ctx<'_, Node>,
    ) {
        if let two_phase::Message::Commit { job, epoch, brief } = &message
            && !self.will_do(brief)
        {
            let (job, epoch) = (*job, *epoch);
            self.tell_commit(Input::Message { from, message: two_phase::Message::Abort { job, epoch } }, ctx);
            ctx.send(from, Message::Commit(two_phase::Message::Refuse { job, epoch }));
            return;
        }
        self.tell_commit(Input::Message { from, message }, ctx);
    }

    /// Whether this machine will do for a job, and its owner serves whom it runs for.
    fn will_do(&self, brief: &Brief) -> bool {
        let Some(work) = &self.work else { return false };
        let needs = Needs::of(brief.envelope.job(), work.limit_default);
        matches(&needs, &work.machine) && constraint::refusal(needs.constraint(), &work.machine).is_none()
    }
}
