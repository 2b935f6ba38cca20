//! A node that is about to leave: it ends what it has begun, and takes nothing more from others.
//!
//! What it has not begun goes to others where the recipe has jobs wait in queues (see [`super::handover`]). A start that
//! was promised stays promised. Its own jobs may still find a place on it: in a grid of one there is no other, and it
//! leaves once they are over. Who asks is told at once, and looks elsewhere.

use shoal_model::NodeId;

use super::Node;
use super::gate::Denial;
use super::message::Message;
use crate::commit::two_phase::{self, Vote};
use crate::protocol::Ctx;
use crate::scheduling::{aria, sample};

impl Node {
    pub(super) fn drain(&mut self, ctx: &mut Ctx<'_, Node>) {
        if let Some(work) = &mut self.work
            && !std::mem::replace(&mut work.draining, true)
        {
            self.hand_over_all(ctx);
        }
    }

    /// Whether this was a question for a place that is refused; then it was answered.
    pub(super) fn refuses(&self, from: NodeId, message: &Message, ctx: &mut Ctx<'_, Node>) -> bool {
        let draining = self.work.as_ref().is_some_and(|work| work.draining);
        if !draining || from == ctx.me {
            return false;
        }
        match message {
            Message::Commit(two_phase::Message::Prepare(prepare)) => {
                let (job, epoch) = (prepare.job, prepare.epoch);
                let known = self.commit().is_some_and(|commit| commit.lock(job, epoch).is_some());
                if !known {
                    let vote = two_phase::Message::Vote { job, epoch, vote: Vote::No(None) };
                    ctx.send(from, Message::Commit(vote));
                }
                !known
            }
            Message::Sample(sample::Message::Probe { job, round, .. }) => {
                let offer = sample::Message::Offer { job: *job, round: *round, calendar: None };
                ctx.send(from, Message::Sample(offer));
                true
            }
            // Its offers bind nobody; who takes one up is told, asks the next best, and leaves this node out for a while.
            Message::Aria(aria::Message::Assign { job, epoch, .. }) => {
                let (job, epoch) = (*job, *epoch);
                let known = self.aria().is_some_and(|aria| aria.holds(job, epoch));
                if !known {
                    self.deny(from, job, epoch, Denial::Leaves, ctx);
                }
                !known
            }
            Message::Overlay(_)
            | Message::BlatantS(_)
            | Message::Can(_)
            | Message::Secondary(_)
            | Message::TriPronged(_)
            | Message::Proactive(_)
            | Message::Aria(_)
            | Message::Commit(_)
            | Message::Heartbeat(_)
            | Message::Sample(_)
            | Message::Asap(_)
            | Message::HandOver(_)
            | Message::Job(_) => false,
        }
    }
}
