//! Holding a job: as long as its user wants, it gives back its place and looks for none.

use shoal_model::JobId;

use super::Node;
use super::message::{Event, Refusal, Timer};
use super::owned::Phase;
use super::owner::AGAIN_LEAST;
use crate::protocol::Ctx;
use crate::scheduling::{self, CLOCKS_APART_MOST};

impl Node {
    /// The job, or all of the array that have not started, are not to start.
    pub(super) fn hold(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_another_s(job) {
            return;
        }
        self.get_off_before_it_starts(job, ctx);
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
        let of = owned.of;
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
            // Others may look for a place instead.
            if let Some((array, _)) = of {
                ctx.wake_at(ctx.now, Timer::Launch(array));
            }
        }
        ctx.report(Event::Held(job, true));
        for element in self.elements(job) {
            self.hold(element, ctx);
        }
    }

    /// What was held may start: an array, with those of it that are.
    pub(super) fn release(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.is_another_s(job) {
            return;
        }
        let elements = self.elements(job);
        let mut released = Vec::new();
        // All of them first, the array last: they share places, and come before those that are launched next.
        for job in elements.into_iter().chain([job]) {
            let Some(owned) = self.unended(job) else { continue };
            if std::mem::take(&mut owned.held) {
                ctx.save(owned.record());
                released.push(job);
            }
            ctx.report(Event::Held(job, false));
        }
        match released[..] {
            // Of an array that is held.
            [only] if only == job => self.seek(job, ctx),
            _ => self.seek_all(&released, ctx),
        }
    }
}
