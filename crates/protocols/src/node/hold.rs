//! Holding a job: as long as its user wants, it gives back its place and looks for none.

use shoal_model::JobId;

use super::Node;
use super::message::{Event, Refusal};
use super::owned::Phase;
use super::owner::{AGAIN_LEAST, CLOCKS_APART_MOST};
use crate::protocol::Ctx;
use crate::scheduling;

impl Node {
    /// The job, or all of the array that have not started, are not to start.
    pub(super) fn hold(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_another_s(job) {
            return;
        }
        let starts = self.placement(job).map(|placement| placement.start);
        let queued = self.aria().is_some();
        let Some(owned) = self.unended(job) else { return };
        // What its nodes may have begun is not held, since that would end it.
        let placed = matches!(owned.phase, Phase::Placed { .. });
        // In a queue its turn may come at any time; only a job that may run twice is taken out of it.
        let soon = match queued {
            true => owned.runs_once(),
            // Its nodes have to let go before it may have begun, and their answers are looked at from time to time.
            false => starts.is_some_and(|start| ctx.now + CLOCKS_APART_MOST + AGAIN_LEAST >= start),
        };
        // What rides with another begins when that one does, or right after.
        let rides = owned.train.leader().is_some();
        if rides || placed && (owned.going || !owned.started.is_empty() || soon) {
            ctx.report(Event::Refused(job, Refusal::Started));
            return;
        }
        if !owned.held {
            owned.held = true;
            ctx.save(owned.record());
            let alone = if placed { self.leave_placement(job, ctx) } else { self.dissolve(job, ctx) };
            self.plan(scheduling::Command::Leave(job), ctx);
            self.let_go(job, ctx);
            // One that must not run twice has to know that all nodes have let go before its time.
            self.seek(job, ctx);
            self.seek_all(&alone, ctx);
        }
        ctx.report(Event::Held(job, true));
        for element in self.elements(job) {
            self.hold(element, ctx);
        }
    }

    /// What was held may start.
    pub(super) fn release(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_another_s(job) {
            return;
        }
        let Some(owned) = self.unended(job) else { return };
        let was_held = std::mem::take(&mut owned.held);
        if was_held {
            ctx.save(owned.record());
        }
        ctx.report(Event::Held(job, false));
        for element in self.elements(job) {
            self.release(element, ctx);
        }
        if was_held {
            self.seek(job, ctx);
        }
    }
}
