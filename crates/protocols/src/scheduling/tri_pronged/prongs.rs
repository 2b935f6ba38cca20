//! Internode scheduling and queue balancing, pushed or pulled: which job goes where.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::matching::matches;
use shoal_model::{Amount, JobId, NodeId, Resources, Span};

use super::config::Mode;
use super::message::{Message, Offer};
use super::{Event, Here, Hold, Sent, TriPronged, Waiting};
use crate::overlay::can::Vitals;
use crate::protocol::Ctx;
use crate::queue::backfill::{Shares, misfit, used_with};
use crate::shared::Shared;

/// How long room is kept for a job that was accepted, and an offer waits for its answer.
const KEPT_FOR: Span = Span::from_secs(5);
/// The most jobs that room is kept for at a time.
pub const HOLDS_MAX: usize = 256;
/// Only so many waiting jobs are looked at for balancing.
const BALANCED_MOST: usize = 64;

/// A question round for jobs to start here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pulling {
    asked: BTreeSet<NodeId>,
    open: Option<NodeId>,
}

impl TriPronged {
    /// One round of redistribution.
    pub(super) fn redistribute(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        self.sent.retain(|_, sent| sent.until > ctx.now);
        self.pulling = None;
        match self.config.variant.internode() {
            None => {}
            Some(Mode::Push) => {
                self.push_to_start(here, ctx);
                if self.config.variant.balances() {
                    self.push_to_balance(here, ctx);
                }
            }
            Some(Mode::Pull) => {
                self.pulling = Some(Pulling::default());
                self.ask_next(here, ctx);
            }
        }
    }

    /// Each waiting job goes to the neighbour that it fits best and where it starts at once.
    fn push_to_start(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        let mut picture: BTreeMap<NodeId, Resources> = BTreeMap::new();
        for waiting in self.movable(here).collect::<Vec<_>>() {
            let Waiting { needs, overtaken, .. } = waiting;
            let best = here
                .can
                .vitals()
                .filter(|(_, vitals)| overtaken >= vitals.bar && matches(needs, &vitals.machine))
                .filter_map(|(node, vitals)| {
                    let left = picture.get(&node).unwrap_or(&vitals.residual);
                    let fits = needs.resources.fits_in(left);
                    fits.then(|| (fit(&needs.resources, left, vitals, true), node))
                })
                .min();
            let Some((_, node)) = best else { continue };
            if let Some(vitals) = here.can.vitals_of(node) {
                let left = picture.entry(node).or_insert_with(|| vitals.residual.clone());
                *left = left.minus(&needs.resources);
            }
            self.offer(waiting, node, true, ctx);
        }
    }

    /// If this node has most to do of all around, the one job moves that evens loads out most.
    fn push_to_balance(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        let Some(own) = here.can.own_vitals() else { return };
        let most = load(&own.load);
        if here.can.vitals().any(|(_, vitals)| load(&vitals.load) >= most) {
            return;
        }
        let around = Around::new(here, ctx.me, own);
        let before = around.product(&[]);
        let mut best: Option<(u128, Waiting<'_>, NodeId)> = None;
        for waiting in self.movable(here).take(BALANCED_MOST) {
            let less = minus(&own.load, &waiting.needs.resources.shares(&own.machine.capacity));
            for (node, vitals) in here.can.vitals() {
                if !matches(waiting.needs, &vitals.machine) || load(&less) >= most {
                    continue;
                }
                let more = plus(&vitals.load, &waiting.needs.resources.shares(&vitals.machine.capacity));
                let after = around.product(&[(ctx.me, less), (node, more)]);
                if after < before && best.as_ref().is_none_or(|(least, ..)| after < *least) {
                    best = Some((after, waiting, node));
                }
            }
        }
        if let Some((_, waiting, node)) = best {
            self.offer(waiting, node, false, ctx);
        }
    }

    /// Who has room asks the neighbour with the longest queue that it has not asked yet in this round.
    fn ask_next(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        let Some(own) = here.can.own_vitals() else { return };
        let Some(pulling) = &mut self.pulling else { return };
        let room = own.residual.cores > shoal_model::units::Thousandths::ZERO && !here.seats.is_leaving();
        let next = here
            .can
            .vitals()
            .filter(|(node, vitals)| room && vitals.waiting > 0 && !pulling.asked.contains(node))
            .max_by_key(|&(node, vitals)| (vitals.waiting, std::cmp::Reverse(node)))
            .map(|(node, _)| node);
        match next {
            Some(node) => {
                pulling.asked.insert(node);
                pulling.open = Some(node);
                ctx.send(node, Message::Pull { vitals: Shared::new(own.clone()), balance: false });
            }
            None => {
                self.pulling = None;
                if self.config.variant.balances() && !here.seats.is_leaving() {
                    pull_to_balance(here, own, ctx);
                }
            }
        }
    }

    pub(super) fn on_nothing(&mut self, from: NodeId, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        if self.pulling.as_ref().is_some_and(|pulling| pulling.open == Some(from)) {
            self.ask_next(here, ctx);
        }
    }

    pub(super) fn on_pull(
        &mut self,
        from: NodeId,
        vitals: &Vitals,
        balance: bool,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let found = if balance {
            self.job_to_balance(from, vitals, here, ctx.me)
        } else {
            self.movable(here)
                .filter(|waiting| {
                    waiting.overtaken >= vitals.bar
                        && matches(waiting.needs, &vitals.machine)
                        && waiting.needs.resources.fits_in(&vitals.residual)
                })
                .min_by_key(|waiting| fit(&waiting.needs.resources, &vitals.residual, vitals, false))
        };
        match found {
            Some(waiting) => self.offer(waiting, from, !balance, ctx),
            None => ctx.send(from, Message::Nothing),
        }
    }

    /// Of the jobs here the one that evens loads out most if it moves to the node that asks.
    fn job_to_balance<'a>(
        &self,
        asks: NodeId,
        vitals: &Vitals,
        here: &'a Here<'_>,
        me: NodeId,
    ) -> Option<Waiting<'a>> {
        let own = here.can.own_vitals()?;
        let mut around = Around::new(here, me, own);
        around.set(asks, vitals.load);
        let before = around.product(&[]);
        self.movable(here)
            .take(BALANCED_MOST)
            .filter(|waiting| matches(waiting.needs, &vitals.machine))
            .map(|waiting| {
                let less = minus(&own.load, &waiting.needs.resources.shares(&own.machine.capacity));
                let more = plus(&vitals.load, &waiting.needs.resources.shares(&vitals.machine.capacity));
                (around.product(&[(me, less), (asks, more)]), waiting)
            })
            .filter(|(after, _)| *after < before)
            .min_by_key(|(after, _)| *after)
            .map(|(_, waiting)| waiting)
    }

    fn offer(&mut self, waiting: Waiting<'_>, to: NodeId, at_once: bool, ctx: &mut Ctx<'_, Self>) {
        let Waiting { job, needs, overtaken, entered } = waiting;
        self.sent.insert(job, Sent { to, until: ctx.now + KEPT_FOR });
        ctx.send(
            to,
            Message::Offer(Shared::new(Offer { job, needs: needs.clone(), overtaken, entered, at_once })),
        );
    }

    /// The jobs that wait here and are not on offer.
    fn movable<'a>(&self, here: &'a Here<'_>) -> impl Iterator<Item = Waiting<'a>> {
        here.waiting().filter(|waiting| !self.sent.contains_key(&waiting.job))
    }

    pub(super) fn on_offer(&mut self, from: NodeId, offer: &Offer, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        if self.pulling.as_ref().is_some_and(|pulling| pulling.open == Some(from)) {
            self.pulling = None;
        }
        let Offer { job, ref needs, overtaken, entered, at_once } = *offer;
        let capable = matches(needs, here.machine) && needs.nodes.get() == 1;
        // With what is true now, not with what was told some time ago.
        let queue = here.seats.queue();
        // An offer that was doubled is answered as before: its own room is not another's.
        let others = self.holds.iter().filter(|&(&other, _)| other != job);
        let held = others.fold(Resources::NONE, |sum, (_, hold)| sum.plus(&hold.resources));
        let startable = needs.resources.plus(&held).fits_in(queue.free()) && overtaken >= queue.bar();
        let room = self.holds.contains_key(&job) || self.holds.len() < HOLDS_MAX;
        let yes = capable && !here.seats.is_leaving() && room && (!at_once || startable);
        // One that is here by now needs no room kept.
        if yes && !here.seats.has_confirmed(job) {
            let resources = if at_once { needs.resources.clone() } else { Resources::NONE };
            self.holds.insert(job, Hold { resources, overtaken, entered, until: ctx.now + KEPT_FOR });
            ctx.wake_after(KEPT_FOR, super::Timer::Holds);
            ctx.report(Event::Expect { job, overtaken, entered, at_once });
            self.tell_held(ctx);
        }
        ctx.send(from, Message::Answer { job, yes });
    }

    pub(super) fn on_answer(
        &mut self,
        from: NodeId,
        job: JobId,
        yes: bool,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let Some(sent) = self.sent.get(&job).filter(|sent| sent.to == from) else { return };
        let in_time = sent.until > ctx.now;
        self.sent.remove(&job);
        let waits = here.waiting().any(|waiting| waiting.job == job);
        if yes && in_time && waits {
            self.moves += 1;
            ctx.report(Event::Move { job, to: from });
        }
    }

    /// Room is no longer kept for jobs that have come, or have not in time.
    pub(super) fn drop_holds(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        let before = self.holds.len();
        self.holds.retain(|&job, &mut Hold { overtaken, entered, until, .. }| {
            if here.seats.has_confirmed(job) {
                return false;
            }
            let late = until <= ctx.now;
            if late {
                // Its room may be another's by the time it comes: then it waits its turn.
                ctx.report(Event::Expect { job, overtaken, entered, at_once: false });
            }
            !late
        });
        if self.holds.len() < before {
            self.tell_held(ctx);
        }
    }

    fn tell_held(&self, ctx: &mut Ctx<'_, Self>) {
        let held = self.holds.values().fold(Resources::NONE, |sum, hold| sum.plus(&hold.resources));
        ctx.report(Event::Hold(held));
    }
}

/// A node with something but least to do among those that are no stronger asks the one around with most to do.
fn pull_to_balance(here: &Here<'_>, own: &Vitals, ctx: &mut Ctx<'_, TriPronged>) {
    let mine = load(&own.load);
    let weaker = |vitals: &Vitals| {
        vitals.machine.capacity.fits_in(&own.machine.capacity) && vitals.machine.speed <= own.machine.speed
    };
    let least =
        here.can.vitals().filter(|(_, vitals)| weaker(vitals)).all(|(_, other)| mine <= load(&other.load));
    let most = here
        .can
        .vitals()
        .filter(|(_, vitals)| vitals.waiting > 0)
        .max_by_key(|&(node, vitals)| (load(&vitals.load), std::cmp::Reverse(node)));
    if let Some((node, vitals)) = most
        && mine > 0
        && least
        && load(&vitals.load) > mine
    {
        ctx.send(node, Message::Pull { vitals: Shared::new(own.clone()), balance: true });
    }
}

/// BM·FM with a job on a node that has so much left, if asked for by its speed.
fn fit(job: &Resources, left: &Resources, vitals: &Vitals, by_speed: bool) -> u64 {
    let capacity = &vitals.machine.capacity;
    let misfit = misfit(&used_with(capacity, left, job), capacity.components());
    let speed = if by_speed { u64::from(vitals.machine.speed.thousandths()) } else { 1_000 };
    misfit.saturating_mul(1_000) / speed
}

/// L: the largest part of W.
fn load(parts: &[u64; 4]) -> u64 {
    parts.iter().copied().max().unwrap_or(0)
}

fn plus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    std::array::from_fn(|at| a[at].saturating_add(b[at]))
}

fn minus(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    std::array::from_fn(|at| a[at].saturating_sub(b[at]))
}

/// The loads of a node and its neighbours.
struct Around(BTreeMap<NodeId, [u64; 4]>);

impl Around {
    fn new(here: &Here<'_>, me: NodeId, own: &Vitals) -> Around {
        let others = here.can.vitals().map(|(node, vitals)| (node, vitals.load));
        Around(others.chain([(me, own.load)]).collect())
    }

    fn set(&mut self, node: NodeId, load: [u64; 4]) {
        self.0.insert(node, load);
    }

    /// TLL · MLL with some loads changed.
    fn product(&self, changed: &[(NodeId, [u64; 4])]) -> u128 {
        let loads = self.0.iter().map(|(node, parts)| {
            let changed = changed.iter().find(|(other, _)| other == node);
            u128::from(load(changed.map_or(parts, |(_, parts)| parts)))
        });
        let (total, most) =
            loads.fold((0, 0), |(total, most): (u128, u128), load| (total + load, most.max(load)));
        total.saturating_mul(most)
    }
}

#[cfg(test)]
mod tests;
