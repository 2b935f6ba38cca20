//! Poll: every node asks each of its neighbours once per period; a search uses what is there.
//!
//! The cost is known beforehand: nodes × degree × duration / period. To meet it exactly the partner of an open shuffle,
//! which is out of the cache for a moment, is asked as well. A schedule in a neighbour's cache may be two periods old
//! when a searcher gets it; a node that is no longer free says so when it is asked to commit.

use rand::RngExt;
use shoal_model::{NodeId, Span, Time};

use super::super::message::{Message, Ticket, Timer};
use super::{Asap, Cache, Config, Overlay, Purpose, Schedule, Source};
use crate::protocol::Ctx;
use crate::scheduling::asap::cache::Change;

/// The neighbours' schedules as they were when last asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Poll {
    period: Span,
    cache: Cache,
}

impl Poll {
    pub(super) fn new(config: &Config) -> Poll {
        Poll { period: config.poll_period(), cache: Cache::default() }
    }

    /// A random phase keeps the nodes from asking in step.
    pub(super) fn boot(&mut self, ctx: &mut Ctx<'_, Asap>) {
        let phase = ctx.chance.random_range(0..self.period.as_micros());
        ctx.wake_after(Span::from_micros(phase), Timer::Poll);
    }

    pub(super) fn source(&self) -> Source<'_> {
        Source::Cache(&self.cache)
    }

    pub(super) fn on_overlay(&mut self, overlay: &Overlay, ctx: &mut Ctx<'_, Asap>) {
        for (node, change) in self.cache.follow(overlay, ctx.now, Time::ZERO) {
            match change {
                Change::Ask => ctx.send(node, Message::ScheduleRequest(Ticket::NONE, Purpose::Enter, None)),
                Change::Left => {}
            }
        }
    }

    pub(in super::super) fn on_timer(&mut self, overlay: &Overlay, ctx: &mut Ctx<'_, Asap>) {
        ctx.wake_after(self.period, Timer::Poll);
        for node in overlay.neighbours_and_partner() {
            ctx.send(node, Message::ScheduleRequest(Ticket::NONE, Purpose::Poll, None));
        }
    }

    pub(super) fn on_schedule(&mut self, from: NodeId, schedule: Schedule) {
        self.cache.put(from, schedule);
    }
}
