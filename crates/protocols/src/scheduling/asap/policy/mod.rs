//! The messaging policies: how the schedules of neighbours come to a searcher.

mod poll;
mod pull;
mod push;

use shoal_model::NodeId;

use super::Asap;
use super::cache::Cache;
use super::config::{Audience, Config, Policy};
use super::message::Purpose;
use super::schedule::Schedule;
use crate::overlay::Overlay;
use crate::overlay::cyclon::CACHE_MAX;
use crate::protocol::Ctx;
use poll::Poll;
use pull::Pull;
use push::Push;

/// The policy in force, with what it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sharing {
    Push(Push),
    Pull(Pull),
    Poll(Poll),
}

/// Where a node finds its neighbours' schedules when it needs them.
pub(super) enum Source<'a> {
    /// Here.
    Cache(&'a Cache),
    /// With the neighbours, to be asked to this end by a searcher and by a searcher's neighbour.
    Ask { searching: Purpose, answering: Purpose },
}

impl Sharing {
    pub fn new(config: &Config) -> Sharing {
        match (config.policy, config.audience) {
            (Policy::Push, Audience::Told) => Sharing::Push(Push::told(config)),
            (Policy::Push, Audience::Counted) => Sharing::Push(Push::counted()),
            (Policy::Pull, _) => Sharing::Pull(Pull),
            (Policy::Poll, _) => Sharing::Poll(Poll::new(config)),
        }
    }

    pub fn boot(&mut self, ctx: &mut Ctx<'_, Asap>) {
        match self {
            Sharing::Push(push) => push.boot(ctx),
            Sharing::Pull(_) => {}
            Sharing::Poll(poll) => poll.boot(ctx),
        }
    }

    pub fn source(&self) -> Source<'_> {
        match self {
            Sharing::Push(push) => push.source(),
            Sharing::Pull(pull) => pull.source(),
            Sharing::Poll(poll) => poll.source(),
        }
    }

    /// What peers can fill: what it is called, how many there are, and how many there may be.
    pub fn queues(&self) -> impl Iterator<Item = (&'static str, usize, usize)> {
        let schedules = match self.source() {
            Source::Cache(cache) => Some(("schedules", cache.schedules().count(), CACHE_MAX + 1)),
            Source::Ask { .. } => None,
        };
        let holders = match self {
            Sharing::Push(push) => Some(("holders", push.holders(), push::HOLDERS_MAX)),
            Sharing::Pull(_) | Sharing::Poll(_) => None,
        };
        schedules.into_iter().chain(holders)
    }

    /// The neighbours may have changed.
    pub fn on_overlay(&mut self, overlay: &Overlay, ctx: &mut Ctx<'_, Asap>) {
        match self {
            Sharing::Push(push) => push.on_overlay(overlay, ctx),
            Sharing::Pull(_) => {}
            Sharing::Poll(poll) => poll.on_overlay(overlay, ctx),
        }
    }

    /// A neighbour's schedule has come, asked for by no search.
    pub fn on_schedule(&mut self, from: NodeId, schedule: Schedule) {
        match self {
            Sharing::Push(_) | Sharing::Pull(_) => {}
            Sharing::Poll(poll) => poll.on_schedule(from, schedule),
        }
    }
}
