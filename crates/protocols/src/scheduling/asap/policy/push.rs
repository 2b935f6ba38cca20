//! Push: a node tells whoever holds it in its cache of every change of its calendar.
//!
//! ```text
//! holder B                 x
//!     │── Hold ──────────▶│  x has entered B's cache
//!     │◀───────── Update ─│  its schedule, then and at every change
//!     │── Unhold ────────▶│  x has left B's cache
//! ```
//!
//! A lost Unhold is said again in answer to the next Update, a lost Hold with one of the next shuffles. A holder that
//! died says nothing more: it is told until its lease runs out, which the living renew. A lost Update leaves B with an
//! old schedule until the next, or until the entry is shuffled away: the commit finds out.
//!
//! With an audience that is only counted ([`Audience::Counted`](super::Audience::Counted)) none of this is said.

use std::collections::BTreeMap;

use shoal_model::{NodeId, Span, Time};

use super::super::message::{Message, Timer};
use super::super::tally::Tally;
use super::{Asap, Cache, Config, Overlay, Purpose, Schedule, Source};
use crate::protocol::Ctx;
use crate::scheduling::asap::cache::Change;

/// The most holders that are told; further ones get no answer.
pub(super) const HOLDERS_MAX: usize = 4_096;

/// Whom to tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Push {
    /// Who said so.
    Told {
        cache: Cache,
        /// With the time when they last did.
        holders: BTreeMap<NodeId, Time>,
        lease: Option<Span>,
    },
    /// Nobody; the overlay counts them.
    Counted,
}

impl Push {
    pub(super) fn told(config: &Config) -> Push {
        Push::Told { cache: Cache::default(), holders: BTreeMap::new(), lease: config.lease() }
    }

    pub(super) fn counted() -> Push {
        Push::Counted
    }

    pub(super) fn boot(&mut self, ctx: &mut Ctx<'_, Asap>) {
        if let Push::Told { lease: Some(lease), .. } = self {
            ctx.wake_after(half(*lease), Timer::Renew);
        }
    }

    pub(super) fn source(&self) -> Source<'_> {
        match self {
            Push::Told { cache, .. } => Source::Cache(cache),
            Push::Counted => Source::Ask { searching: Purpose::Counted, answering: Purpose::Counted },
        }
    }

    /// How many are told.
    pub(super) fn holders(&self) -> usize {
        match self {
            Push::Told { holders, .. } => holders.len(),
            Push::Counted => 0,
        }
    }

    pub(super) fn on_overlay(&mut self, overlay: &Overlay, ctx: &mut Ctx<'_, Asap>) {
        let Push::Told { cache, lease, .. } = self else { return };
        let renew_before = lease.map_or(Time::ZERO, |lease| ctx.now - half(lease));
        for (node, change) in cache.follow(overlay, ctx.now, renew_before) {
            match change {
                Change::Ask => ctx.send(node, Message::Hold),
                Change::Left => ctx.send(node, Message::Unhold),
            }
        }
    }

    pub(in super::super) fn on_renew(&mut self, overlay: &Overlay, ctx: &mut Ctx<'_, Asap>) {
        self.boot(ctx);
        self.on_overlay(overlay, ctx);
    }

    /// Tells all holders, or counts them.
    pub(in super::super) fn publish(
        &mut self,
        schedule: &Schedule,
        overlay: &Overlay,
        tally: &mut Tally,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        match self {
            Push::Told { holders, lease, .. } => {
                if let Some(lease) = *lease {
                    holders.retain(|_, held_at| *held_at + lease > ctx.now);
                }
                tally.pushed += holders.len() as u64;
                for &holder in holders.keys() {
                    ctx.send(holder, Message::Update(schedule.clone()));
                }
            }
            Push::Counted => tally.pushed += u64::from(overlay.holders().unwrap_or(0)),
        }
    }

    pub(in super::super) fn on_hold(
        &mut self,
        from: NodeId,
        schedule: Schedule,
        tally: &mut Tally,
        ctx: &mut Ctx<'_, Asap>,
    ) {
        let Push::Told { holders, .. } = self else { return };
        if holders.len() < HOLDERS_MAX || holders.contains_key(&from) {
            holders.insert(from, ctx.now);
            tally.entered += 1;
            ctx.send(from, Message::Update(schedule));
        }
    }

    pub(in super::super) fn on_unhold(&mut self, from: NodeId) {
        if let Push::Told { holders, .. } = self {
            holders.remove(&from);
        }
    }

    pub(in super::super) fn on_update(&mut self, from: NodeId, schedule: Schedule, ctx: &mut Ctx<'_, Asap>) {
        if let Push::Told { cache, .. } = self
            && !cache.put(from, schedule)
        {
            ctx.send(from, Message::Unhold);
        }
    }
}

fn half(span: Span) -> Span {
    Span::from_micros(span.as_micros() / 2)
}
