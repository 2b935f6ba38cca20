//! Balloons: what is left of a machine that runs jobs, tied to the node in whose zone it lies.

use std::collections::BTreeMap;

use shoal_model::{NodeId, Time};

use super::join::HOPS_MAX;
use super::message::{Balloon, Message, Vitals};
use super::zone::Point;
use super::{Can, Hop, Kind, Residue, VIRTUAL};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The most balloons that a node holds for others.
pub const BALLOONS_MAX: usize = 4_096;

/// What a node knows of balloons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Balloons {
    /// Those that are tied here, with when they expire.
    held: BTreeMap<NodeId, (Shared<Balloon>, Time)>,
    /// Who holds ours.
    holder: Option<NodeId>,
    /// When the one that they hold was said to be.
    tied: Time,
    /// When ours was last said to be.
    last: Option<Time>,
    /// What ours last said was left.
    told: Option<shoal_model::Resources>,
}

impl Can {
    /// The balloons that are tied here.
    pub fn balloons(&self) -> impl Iterator<Item = &Balloon> {
        self.balloons.held.values().map(|(balloon, _)| &**balloon)
    }

    /// Who holds this node's balloon.
    pub fn balloon_holder(&self) -> Option<NodeId> {
        self.balloons.holder
    }

    /// Where what is left of this node lies, if something runs and something is left.
    pub(super) fn residue_of(&self, vitals: &Vitals) -> Option<Point> {
        let speed = Some(vitals.machine.speed);
        vitals.is_partly_used().then(|| self.config.place(&vitals.residual, speed, self.point[VIRTUAL]))
    }

    /// Where this node's balloon lies, if it has one: something runs, and something is left.
    pub fn balloon_point(&self) -> Option<Point> {
        let vitals = self.vitals.as_ref()?;
        let resource = matches!(self.config.space, Kind::Resources);
        let balloons = matches!(self.config.residue, Residue::Balloon);
        self.residue_of(vitals).filter(|_| resource && balloons)
    }

    /// What is left has changed: the balloon moves, and only it.
    pub fn move_balloon(&mut self, ctx: &mut Ctx<'_, Can>) {
        let left = self.balloon_point().and(self.vitals.as_ref()).map(|vitals| vitals.residual.clone());
        if left != self.balloons.told {
            self.refresh_balloon(ctx);
        }
    }

    /// Ties the balloon where it lies; it would expire otherwise.
    pub(super) fn refresh_balloon(&mut self, ctx: &mut Ctx<'_, Can>) {
        self.balloons.held.retain(|_, (_, until)| *until > ctx.now);
        let (Some(point), Some(vitals)) = (self.balloon_point(), self.vitals.clone()) else {
            self.untie_ours(ctx);
            self.balloons.told = None;
            return;
        };
        if self.claims.is_empty() {
            return;
        }
        self.balloons.told = Some(vitals.residual.clone());
        self.balloons.last = Some(ctx.now);
        let balloon = Shared::new(Balloon { node: self.me, at: ctx.now, point, vitals });
        self.on_tie(balloon, 0, ctx);
    }

    fn untie_ours(&mut self, ctx: &mut Ctx<'_, Can>) {
        if let (Some(holder), Some(last)) = (self.balloons.holder.take(), self.balloons.last) {
            self.let_go(holder, last, ctx);
        }
    }

    pub(super) fn drop_balloons(&mut self, ctx: &mut Ctx<'_, Can>) {
        self.untie_ours(ctx);
        self.vitals = None;
    }

    pub(super) fn on_tie(&mut self, balloon: Shared<Balloon>, hops: u16, ctx: &mut Ctx<'_, Can>) {
        match self.next_hop(&balloon.point) {
            Hop::Here => {
                let Balloon { node, at, .. } = *balloon;
                let held = &mut self.balloons.held;
                let late = held.get(&node).is_some_and(|(held, _)| held.at > at);
                if late || held.len() >= BALLOONS_MAX && !held.contains_key(&node) {
                    return;
                }
                let until = ctx.now + self.config.silence();
                held.insert(node, (balloon, until));
                if node == self.me {
                    self.on_tied(self.me, at, ctx);
                } else {
                    ctx.send(node, Message::Tied(at));
                }
            }
            Hop::To(next) if hops < HOPS_MAX => ctx.send(next, Message::Tie(balloon, hops + 1)),
            Hop::To(_) | Hop::Stuck => {}
        }
    }

    /// Our balloon has a new holder; the old one lets go.
    pub(super) fn on_tied(&mut self, from: NodeId, at: Time, ctx: &mut Ctx<'_, Can>) {
        // Word of one that was never let go; if of another life, it expires.
        let Some(last) = self.balloons.last.filter(|&last| at <= last) else { return };
        let before = self.balloons.holder;
        // Words overtake each other: an older one, tied elsewhere, is not ours any more.
        if before.is_some() && before != Some(from) && at < self.balloons.tied {
            self.let_go(from, at, ctx);
            return;
        }
        self.balloons.holder = Some(from);
        self.balloons.tied = self.balloons.tied.max(at);
        if let Some(before) = before.filter(|&before| before != from) {
            self.let_go(before, last, ctx);
        }
        // It was tied while the job that it was left by ended.
        if self.balloons.told.is_none() {
            self.untie_ours(ctx);
        }
    }

    /// Unties ours, up to the one of then, from who holds it.
    fn let_go(&mut self, holder: NodeId, at: Time, ctx: &mut Ctx<'_, Can>) {
        if holder == self.me {
            self.on_untie(holder, at);
        } else {
            ctx.send(holder, Message::Untie(at));
        }
    }

    pub(super) fn on_untie(&mut self, from: NodeId, at: Time) {
        let held = &mut self.balloons.held;
        if held.get(&from).is_some_and(|(balloon, _)| balloon.at <= at) {
            held.remove(&from);
        }
    }

    /// Balloons that no longer lie in our zones follow theirs.
    pub(super) fn pass_balloons_on(&mut self, ctx: &mut Ctx<'_, Can>) {
        let gone: Vec<NodeId> = self
            .balloons
            .held
            .iter()
            .filter(|(_, (balloon, _))| !self.claims.iter().any(|claim| claim.zone.contains(&balloon.point)))
            .map(|(&node, _)| node)
            .collect();
        for node in gone {
            if let Some((balloon, _)) = self.balloons.held.remove(&node) {
                self.on_tie(balloon, 0, ctx);
            }
        }
    }
}
