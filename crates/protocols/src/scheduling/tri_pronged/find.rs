//! Matchmaking: a job goes to the owner of its point, and is pushed on to where more is idle until chance stops it.

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::collections::BTreeSet;

use rand::RngExt;
use shoal_model::matching::{Needs, matches};
use shoal_model::{Amount, JobId, NodeId};

use super::message::{Aside, Message, Passed, Search, Trail};
use super::{Event, Here, TriPronged};
use crate::overlay::can::{Hop, SIDE, VIRTUAL, Vitals};
use crate::protocol::Ctx;
use crate::queue::backfill::{Shares, WHOLE, misfit, used_with};
use crate::shared::Shared;

/// A search that was passed on more often than this is dropped; its owner begins anew.
const HOPS_MAX: u16 = 4_096;
/// A search that was passed on more often uses no shortcuts any more: those that it has used led astray.
const LEAPS_MAX: u16 = 128;
/// So many nodes are looked at before a search ends without result.
pub const SEEN_MAX: usize = 2_048;

impl TriPronged {
    /// Looks for a place for a job of this node's.
    pub fn find(
        &mut self,
        job: JobId,
        round: u32,
        needs: Needs,
        avoid: BTreeSet<NodeId>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let virtual_at = ctx.chance.random_range(0..SIDE);
        let point = here.can.config().place(&needs.resources, None, virtual_at);
        let search = Shared::new(Search {
            job,
            round,
            owner: ctx.me,
            needs,
            point,
            avoid: avoid.into_iter().collect(),
        });
        // What is made again is made short: on a long way it is lost more easily.
        let anew = if round > 1 { self.config.anew } else { 0 };
        self.on_find(search, Box::new(Trail { anew, ..Trail::default() }), here, ctx);
    }

    pub(super) fn on_found(&mut self, job: JobId, round: u32, node: Option<NodeId>, ctx: &mut Ctx<'_, Self>) {
        ctx.report(Event::Found { job, round, node });
    }

    pub(super) fn on_find(
        &mut self,
        search: Shared<Search>,
        mut trail: Box<Trail>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        trail.hops = trail.hops.saturating_add(1);
        if trail.hops > HOPS_MAX || trail.seen.len() > SEEN_MAX || trail.back.len() > SEEN_MAX {
            return;
        }
        let Some(pushes) = trail.pushes else {
            // Who has no zone knows nobody, and its word that there is no place would be wrong.
            if here.can.claims().is_empty() && search.owner != ctx.me {
                return;
            }
            // A shortcut may lead to somebody who is gone: every second round goes from neighbour to neighbour.
            let leaps = !search.round.is_multiple_of(2) && trail.hops <= LEAPS_MAX;
            let hop =
                if leaps { here.can.next_leap(&search.point) } else { here.can.next_hop(&search.point) };
            match hop {
                Hop::To(next) => {
                    ctx.send(next, Message::Find(search, trail));
                    return;
                }
                Hop::Here | Hop::Stuck => trail.pushes = Some(0),
            }
            self.push(search, trail, 0, here, ctx);
            return;
        };
        if trail.seen.is_empty() {
            self.push(search, trail, pushes, here, ctx);
        } else {
            self.walk(&search, trail, here, ctx);
        }
    }

    fn push(
        &mut self,
        search: Shared<Search>,
        mut trail: Box<Trail>,
        pushes: u8,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let onward = direction(here).filter(|_| pushes < self.config.pushes);
        let stops = onward.is_none_or(|(_, nodes)| {
            ctx.chance.random_range(0..1u64 << 32) < stop_below(nodes, self.config.stop)
        });
        let found = self.choose(&search, here, ctx);
        let passed = trail.passed.filter(|passed| !search.avoid.contains(&passed.node));
        let otherwise = trail.otherwise.map(|node| (Rank::Busy, node));
        if stops && let Some(found) = better(found, passed).or(otherwise) {
            // What is left of machines is found at once where that has a CAN of its own.
            let again = trail.anew < self.config.anew && here.secondary.is_none();
            if found.0 == Rank::Busy && again {
                self.begin_anew(&search, Trail { otherwise: Some(found.1), ..*trail }, here, ctx);
            } else {
                self.settle_for(search, found, here, ctx);
            }
            return;
        }
        match onward {
            Some((next, _)) => {
                trail.passed = remember(found, passed);
                trail.pushes = Some(pushes + 1);
                ctx.send(next, Message::Find(search, trail));
            }
            None => self.walk(&search, trail, here, ctx),
        }
    }

    /// Elsewhere in the virtual dimension other nodes are as capable, and may have less to do.
    fn begin_anew(&mut self, search: &Search, trail: Trail, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        let mut search = search.clone();
        search.point[VIRTUAL] = ctx.chance.random_range(0..SIDE);
        let trail = Trail { pushes: None, anew: trail.anew + 1, ..trail };
        self.on_find(Shared::new(search), Box::new(trail), here, ctx);
    }

    /// Whoever is free or has room gets the job; else what is left of machines is looked at first, if that has a CAN.
    fn settle_for(
        &mut self,
        search: Shared<Search>,
        (rank, node): (Rank, NodeId),
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        match rank {
            Rank::Busy if here.secondary.is_some() => {
                self.on_find_residue(search, Box::new(Aside::new(node)), here, ctx);
            }
            Rank::Free | Rank::Room | Rank::Busy => {
                let Search { job, round, owner, ref needs, .. } = *search;
                let of_balloon = || here.can.balloons().find(|balloon| balloon.node == node);
                let said = here.can.vitals_of(node).or_else(|| of_balloon().map(|balloon| &balloon.vitals));
                if let Some(said) = said {
                    let until = ctx.now + here.can.config().period();
                    self.given.note(job, needs, (node, said), until, ctx.now);
                }
                ctx.send(owner, Message::Found { job, round, node: Some(node) });
            }
        }
    }

    /// The best of this node and its neighbours, as far as they will do at all: a free one, then one with room for it right
    /// now, then the one with the least to do.
    fn choose(&self, search: &Search, here: &Here<'_>, ctx: &Ctx<'_, Self>) -> Option<(Rank, NodeId)> {
        let own = here.can.own_vitals().map(|vitals| (ctx.me, vitals));
        let own = own.filter(|_| !here.seats.is_leaving() || search.owner == ctx.me);
        let balloons = here.can.balloons().map(|balloon| (balloon.node, &balloon.vitals));
        let others = here.can.vitals().chain(balloons);
        let others = others.map(|(node, vitals)| (node, self.given.counted(node, vitals, ctx.now)));
        best(search, own.map(|(me, vitals)| (me, Cow::Borrowed(vitals))).into_iter().chain(others))
    }

    /// Completeness: one after the other, all nodes that reach above the job's point.
    fn walk(
        &mut self,
        search: &Shared<Search>,
        mut trail: Box<Trail>,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let Search { job, round, owner, .. } = **search;
        if !trail.seen.contains(&ctx.me) {
            trail.seen.push(ctx.me);
            if let Some(found) = self.choose(search, here, ctx) {
                self.settle_for(search.clone(), found, here, ctx);
                return;
            }
        }
        if trail.seen.len() >= SEEN_MAX {
            ctx.send(owner, Message::Found { job, round, node: None });
            return;
        }
        let next = here.can.reaching(&search.point).find(|node| !trail.seen.contains(node));
        let next = match next {
            Some(next) => {
                trail.back.push(ctx.me);
                Some(next)
            }
            None => trail.back.pop(),
        };
        match next {
            Some(next) => ctx.send(next, Message::Find(search.clone(), trail)),
            None => ctx.send(owner, Message::Found { job, round, node: None }),
        }
    }
}

/// The upper neighbour with the largest idle region ahead, and how many nodes are there, in thousandths. Not along the
/// virtual dimension: there all would end up at its upper edge, and a job's place in it is chance anyway.
fn direction(here: &Here<'_>) -> Option<(NodeId, u64)> {
    let upper = (0..VIRTUAL).flat_map(|dimension| here.can.upper(dimension));
    upper
        .filter(|(_, _, ahead)| ahead.cores > 0)
        .map(|(node, _, ahead)| {
            // F = required / cores², in fixed point; a region without any work is as good as it is large.
            let cores = u128::from(ahead.cores);
            let f = ((u128::from(ahead.required) + 1) << 64) / (cores * cores);
            (f, node, ahead.nodes)
        })
        .min()
        .map(|(_, node, nodes)| (node, nodes))
}

/// P(stop) = 1 / (1 + nodes)^SF, of 2^32; nodes in thousandths.
fn stop_below(nodes: u64, stop: u8) -> u64 {
    let mut below = 1u128 << 32;
    for _ in 0..stop {
        below = below * 1_000 / (1_000 + u128::from(nodes));
    }
    below as u64
}

/// The better of what was found where a search stops and what it came past: whoever is free, then whoever has room.
fn better(found: Option<(Rank, NodeId)>, passed: Option<Passed>) -> Option<(Rank, NodeId)> {
    let passed = passed.map(|Passed { node, free }| (if free { Rank::Free } else { Rank::Room }, node));
    match (found, passed) {
        (Some(found), Some(passed)) => Some(if passed.0 < found.0 { passed } else { found }),
        (found, passed) => found.or(passed),
    }
}

/// Of several the last counts, since it is nearest to where most is idle; but who has room does not hide who is free.
fn remember(found: Option<(Rank, NodeId)>, passed: Option<Passed>) -> Option<Passed> {
    match found {
        Some((Rank::Free, node)) => Some(Passed { node, free: true }),
        Some((Rank::Room, node)) if !passed.is_some_and(|passed| passed.free) => {
            Some(Passed { node, free: false })
        }
        Some((Rank::Room | Rank::Busy, _)) | None => passed,
    }
}

/// The best of some nodes, as far as they will do at all.
pub(super) fn best<V: Borrow<Vitals>>(
    search: &Search,
    nodes: impl Iterator<Item = (NodeId, V)>,
) -> Option<(Rank, NodeId)> {
    let Search { needs, avoid, .. } = search;
    nodes
        .filter(|(node, vitals)| !avoid.contains(node) && matches(needs, &vitals.borrow().machine))
        .map(|(node, vitals)| (standing(needs, vitals.borrow()), node))
        .min()
        .map(|((rank, ..), node)| (rank, node))
}

/// What a node can do for a job; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Nothing runs or waits there.
    Free,
    /// The job would start at once.
    Room,
    /// The job would wait.
    Busy,
}

/// Less is better.
fn standing(needs: &Needs, vitals: &Vitals) -> (Rank, u64, Reverse<u32>, u64) {
    let capacity = &vitals.machine.capacity;
    let beyond: u64 = needs.resources.shares(capacity).iter().map(|share| WHOLE - share.min(&WHOLE)).sum();
    let speed = Reverse(vitals.machine.speed.thousandths());
    if vitals.running == 0 && vitals.waiting == 0 {
        return (Rank::Free, 0, speed, beyond);
    }
    if vitals.waiting == 0 && needs.resources.fits_in(&vitals.residual) {
        let used = used_with(capacity, &vitals.residual, &needs.resources);
        return (Rank::Room, misfit(&used, capacity.components()), speed, beyond);
    }
    let busy = match vitals.backlog {
        Some(backlog) => backlog.as_micros(),
        None => vitals.required.saturating_mul(1 << 10) / u64::from(capacity.cores.get().max(1)),
    };
    (Rank::Busy, busy, speed, beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_is_likelier_the_fewer_lie_ahead() {
        let all = 1u64 << 32;
        assert_eq!(stop_below(5_000, 0), all, "by the formula, without a factor every job stops at once");
        assert_eq!(stop_below(0, 2), all, "at the edge too");
        assert_eq!(stop_below(1_000, 2), all / 4, "one node ahead: a quarter");
        assert!(stop_below(9_000, 2) <= all / 100);
        assert_eq!(stop_below(1_000, u8::MAX), 0, "with a large one it goes to the edge");
    }

    #[test]
    fn who_was_passed_gets_the_job_if_nobody_better_is_found_at_the_end() {
        let (free, room, busy) = (Rank::Free, Rank::Room, Rank::Busy);
        let passed = |free| Some(Passed { node: NodeId(9), free });
        let end = |rank| Some((rank, NodeId(1)));
        assert_eq!(better(end(busy), passed(false)), Some((room, NodeId(9))));
        assert_eq!(better(end(room), passed(false)), end(room), "what is near counts");
        assert_eq!(better(end(room), passed(true)), Some((free, NodeId(9))));
        assert_eq!(better(end(free), passed(true)), end(free));
        assert_eq!(better(end(busy), None), end(busy));
        assert_eq!(better(None, passed(false)), Some((room, NodeId(9))), "nobody here will do at all");
        assert_eq!(better(None, None), None);
    }

    #[test]
    fn of_those_passed_the_last_that_is_free_is_remembered() {
        let way = [
            (Some((Rank::Busy, NodeId(1))), None),
            (Some((Rank::Room, NodeId(2))), Some((2, false))),
            (None, Some((2, false))),
            (Some((Rank::Room, NodeId(3))), Some((3, false))),
            (Some((Rank::Free, NodeId(4))), Some((4, true))),
            (Some((Rank::Room, NodeId(5))), Some((4, true))),
            (Some((Rank::Free, NodeId(6))), Some((6, true))),
        ];
        let mut passed = None;
        for (found, expected) in way {
            passed = remember(found, passed);
            assert_eq!(passed.map(|passed| (passed.node.0, passed.free)), expected);
        }
    }
}
