//! Who is met: the overlay gets to know them, and jobs that lacked nodes look again.

use shoal_model::{JobId, NodeId, Span};

use super::{Event, Node, Phase, Timer};
use crate::overlay::{Overlay, blatant_s, can, cyclon};
use crate::protocol::{Ctx, Input};

/// Jobs that lack nodes and are told when somebody is met, at most; the others look again by the clock.
const SHORT_MAX: usize = 64;
/// How soon they look again: those who come to a grid often come together.
const SOON: Span = Span::from_millis(250);

impl Node {
    /// Whether the overlay can do without this node.
    pub fn has_left(&self) -> bool {
        match &self.overlay {
            Overlay::Can(can) => can.has_left(),
            Overlay::Cyclon(_) | Overlay::BlatantS(_) => true,
        }
    }

    /// What the overlay has this node look after goes to others; where it has nothing, that is done already.
    pub(super) fn leave(&mut self, ctx: &mut Ctx<'_, Node>) {
        match &self.overlay {
            Overlay::Can(_) => self.tell_can(Input::Command(can::Command::Leave), ctx),
            Overlay::Cyclon(_) | Overlay::BlatantS(_) => ctx.report(Event::Left),
        }
    }

    pub(super) fn join(&mut self, introducer: NodeId, ctx: &mut Ctx<'_, Node>) {
        match &self.overlay {
            Overlay::Cyclon(_) => self.tell_cyclon(Input::Command(cyclon::Command::Join(introducer)), ctx),
            Overlay::BlatantS(_) => {
                self.tell_blatant_s(Input::Command(blatant_s::Command::Join(introducer)), ctx);
            }
            Overlay::Can(_) => self.tell_can(Input::Command(can::Command::Join(introducer)), ctx),
        }
    }

    pub(super) fn meet(&mut self, nodes: Box<[NodeId]>, ctx: &mut Ctx<'_, Node>) {
        let known = self.overlay.neighbours().count();
        match &self.overlay {
            Overlay::Cyclon(_) => self.tell_cyclon(Input::Command(cyclon::Command::Meet(nodes)), ctx),
            Overlay::BlatantS(_) => {
                self.tell_blatant_s(Input::Command(blatant_s::Command::Meet(nodes)), ctx);
            }
            // Whoever is met knows the way to a zone.
            Overlay::Can(_) => {
                if let Some(&introducer) = nodes.first() {
                    self.join(introducer, ctx);
                }
            }
        }
        if self.overlay.neighbours().count() > known {
            self.look_again(ctx);
        }
    }

    pub(super) fn take_place(&mut self, place: can::Place, ctx: &mut Ctx<'_, Node>) {
        if matches!(self.overlay, Overlay::Can(_)) {
            self.tell_can(Input::Command(can::Command::Settle(place)), ctx);
            self.look_again(ctx);
        }
    }

    /// A job found too few nodes that would do.
    pub(super) fn note_short(&mut self, job: JobId) {
        if let Some(work) = self.work.as_mut().filter(|work| work.short.len() < SHORT_MAX) {
            work.short.insert(job);
        }
    }

    /// A job looks for nodes again, or is over.
    pub(super) fn note_not_short(&mut self, job: JobId) {
        if let Some(work) = &mut self.work {
            work.short.remove(&job);
        }
    }

    fn look_again(&mut self, ctx: &mut Ctx<'_, Node>) {
        let short = self.work.as_mut().map(|work| std::mem::take(&mut work.short)).unwrap_or_default();
        let soon = ctx.now + SOON;
        for job in short {
            let Some(owned) = self.unended(job).filter(|owned| owned.phase == Phase::Seeking) else {
                continue;
            };
            if owned.again_at.is_some_and(|at| at > soon) {
                owned.again_at = Some(soon);
                ctx.wake_after(SOON, Timer::Again(job));
            }
        }
    }
}
