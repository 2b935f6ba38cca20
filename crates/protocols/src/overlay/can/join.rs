//! How a node gets a zone, and how it gives its zones away.

use rand::RngExt;
use shoal_model::{NodeId, Span, Time};

use super::message::{Claim, Message, Peer};
use super::zone::{Point, SIDE, Zone};
use super::{Can, Event, Hop, Kind, LEAVE_WITHIN, Place, Timer, VIRTUAL};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// How long a part of a zone is kept for the newcomer that it was promised to.
const PROMISED_FOR: Span = Span::from_secs(5);
/// The least pause before a node without a zone asks again; up to twice as long.
const AGAIN: Span = Span::from_secs(2);
/// A word that was passed on more often than this is dropped.
pub(super) const HOPS_MAX: u16 = 4_096;
/// After so many questions to no avail, a node that is asked itself by one with a larger id takes all of the space.
const FRUITLESS_MOST: u32 = 10;

/// What a node knows of its own entry and of those that enter through it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Join {
    /// The part of a zone that was promised to a newcomer, and until when.
    promised: Option<(NodeId, Claim, Time)>,
    /// How often this node has asked for a zone in a row.
    asked: u32,
    /// Whether it will look whether it has one.
    looking: bool,
}

impl Can {
    pub(super) fn enter_through(&mut self, introducer: NodeId, ctx: &mut Ctx<'_, Can>) {
        self.introducer = Some(introducer).filter(|&node| node != self.me);
        let alone = self.neighbours.is_empty() && self.claims.len() == 1;
        if alone && self.introducer.is_some() {
            self.claims = Shared::new(Vec::new());
        }
        if !self.has_home() {
            self.ask_for_zone(ctx);
            self.look_for_home(AGAIN, ctx);
        }
    }

    /// A newcomer has claimed what it was promised.
    pub(super) fn promise_kept(&mut self, to: NodeId) {
        self.join.promised.take_if(|(promised, ..)| *promised == to);
    }

    /// A zone without any question.
    pub(super) fn settle(&mut self, place: Place, ctx: &mut Ctx<'_, Can>) {
        self.point = place.point;
        self.claims = Shared::new(vec![place.claim]);
        self.learn(&place.around, false, ctx);
    }

    /// Without a zone to lie in, asks for one from time to time.
    pub(super) fn look_for_home(&mut self, pause: Span, ctx: &mut Ctx<'_, Can>) {
        if !self.leaving && !self.has_home() && !std::mem::replace(&mut self.join.looking, true) {
            ctx.wake_after(pause, Timer::Enter);
        }
    }

    pub(super) fn on_enter(&mut self, ctx: &mut Ctx<'_, Can>) {
        self.join.looking = false;
        if self.leaving || self.has_home() {
            return;
        }
        if self.introducer.is_none() && self.neighbours.is_empty() && !self.second {
            self.take_all(ctx);
            return;
        }
        self.ask_for_zone(ctx);
        let pause = AGAIN.as_micros();
        let pause = Span::from_micros(ctx.chance.random_range(pause..2 * pause));
        self.look_for_home(pause, ctx);
    }

    pub(super) fn take_all(&mut self, ctx: &mut Ctx<'_, Can>) {
        // Who has known others gives way to whatever they own.
        let version = u32::from(self.neighbours.is_empty());
        self.claims = Shared::new(vec![Claim { zone: Zone::WHOLE, version }]);
        self.peers = None;
        self.tell(ctx);
        let update = self.update(ctx.now);
        for &node in self.introducer.iter().chain(&self.ways_back) {
            ctx.send(node, Message::Update(update.clone(), false));
        }
    }

    fn ask_for_zone(&mut self, ctx: &mut Ctx<'_, Can>) {
        self.join.asked = self.join.asked.saturating_add(1);
        // Neighbours of a zone that was lost know the way as well as anybody.
        let known = self.neighbours.len();
        // So do those further away, if whoever let it in is gone.
        let ways: Vec<NodeId> = self.introducer.iter().chain(&self.ways_back).copied().collect();
        let turn = (self.join.asked / 2) as usize;
        let way = ways.get(turn.checked_rem(ways.len()).unwrap_or(0)).copied();
        let through = match way {
            Some(way) if known == 0 || self.join.asked.is_multiple_of(2) => Some(way),
            Some(_) | None if known > 0 => {
                self.neighbours.nodes().get(ctx.chance.random_range(0..known)).copied()
            }
            Some(_) | None => None,
        };
        if let Some(node) = through {
            ctx.send(node, Message::Join { newcomer: self.me, point: self.point, hops: 0 });
        }
    }

    pub(super) fn on_join(&mut self, newcomer: NodeId, point: Point, hops: u16, ctx: &mut Ctx<'_, Can>) {
        let sound = (0..point.len()).all(|d| point[d] < SIDE && (d < self.space.dimensions || point[d] == 0));
        if newcomer == self.me || !sound || hops >= HOPS_MAX || self.leaving {
            return;
        }
        if self.claims.is_empty() {
            // Two that sent each other would wait forever.
            let mutual = self.introducer == Some(newcomer);
            if !self.second && self.me < newcomer && (mutual || self.join.asked > FRUITLESS_MOST) {
                self.take_all(ctx);
            }
            return;
        }
        if self.neighbours.contains(newcomer) {
            // It may have lost its zones: then its answer says so, and the next attempt finds them free.
            let update = self.update(ctx.now);
            ctx.send(newcomer, Message::Update(update, true));
        }
        match self.next_hop(&point) {
            Hop::Here => self.split_with(newcomer, point, ctx),
            Hop::To(next) if next != newcomer => {
                ctx.send(next, Message::Join { newcomer, point, hops: hops + 1 });
            }
            Hop::To(_) | Hop::Stuck => {}
        }
    }

    fn split_with(&mut self, newcomer: NodeId, point: Point, ctx: &mut Ctx<'_, Can>) {
        let Some(claim) = self.claims.iter().find(|claim| claim.zone.contains(&point)).copied() else {
            return;
        };
        let promise = match self.join.promised.filter(|(_, _, until)| *until > ctx.now) {
            Some((to, ..)) if to != newcomer => return,
            // The same again, unless what we own has more right by now, or is another zone.
            Some((_, promised, _))
                if promised.version > claim.version
                    && promised.zone.contains(&point)
                    && promised.zone.without(&claim.zone).is_empty() =>
            {
                promised
            }
            Some(_) | None => match self.part_for(&point, &claim) {
                Some(promised) => promised,
                None => {
                    ctx.send(newcomer, Message::Taken);
                    return;
                }
            },
        };
        self.join.promised = Some((newcomer, promise, ctx.now + PROMISED_FOR));
        let mut around: Vec<Peer> = self.update(ctx.now).peers.to_vec();
        around.retain(|peer| peer.node != newcomer);
        let rest = self.claims.iter().flat_map(|claim| {
            let left = claim.zone.without(&promise.zone);
            left.into_iter().map(|zone| Claim { zone, version: claim.version })
        });
        around.push(Peer { node: self.me, claims: Shared::new(rest.collect()) });
        ctx.send(newcomer, Message::Welcome { claim: Box::new(promise), around });
    }

    /// The part of a claim of ours for a newcomer at a point; none if it lies where we do.
    fn part_for(&self, point: &Point, claim: &Claim) -> Option<Claim> {
        let version = claim.version.saturating_add(1);
        let zone = match self.config.space {
            Kind::Torus(_) => halves(&claim.zone, self.space.dimensions, point)?,
            Kind::Resources if claim.zone.contains(&self.point) => {
                between(&claim.zone, &self.point, point, self.space.dimensions)?
            }
            // A zone that only waits for somebody.
            Kind::Resources => claim.zone,
        };
        Some(Claim { zone, version })
    }

    pub(super) fn on_welcome(&mut self, from: NodeId, claim: Claim, around: &[Peer], ctx: &mut Ctx<'_, Can>) {
        let fits = match self.config.space {
            Kind::Torus(_) => true,
            Kind::Resources => claim.zone.contains(&self.point),
        };
        if self.has_home() || self.leaving || !claim.zone.is_sound(self.space) || !fits {
            return;
        }
        self.join.asked = 0;
        self.dead.remove(&from);
        let mut claims = vec![claim];
        claims.extend(self.claims.iter().flat_map(|other| {
            let left = other.zone.without(&claim.zone);
            left.into_iter().map(|zone| Claim { zone, version: other.version })
        }));
        self.claims = Shared::new(claims);
        self.learn(around, false, ctx);
        self.announce(&[from], ctx);
        if self.second {
            self.hand_on_extras(ctx);
        }
    }

    /// Lies there from now on: without a zone there it asks for one, and keeps those it has until it is in.
    pub(super) fn lie_at(&mut self, point: Point, ctx: &mut Ctx<'_, Can>) {
        self.leaving = false;
        self.point = point;
        self.make_whole();
        if self.has_home() {
            self.tell(ctx);
            return;
        }
        if !self.neighbours.is_empty() {
            // Whoever let it in may be gone by now; those around are not.
            self.introducer = None;
            self.ask_for_zone(ctx);
        }
        self.look_for_home(AGAIN, ctx);
    }

    pub(super) fn on_taken(&mut self, ctx: &mut Ctx<'_, Can>) {
        if self.has_home() {
            return;
        }
        let along = match self.config.space {
            Kind::Torus(_) => 0,
            Kind::Resources => VIRTUAL,
        };
        self.point[along] = ctx.chance.random_range(0..SIDE);
        self.shortcuts = Default::default();
        self.ask_for_zone(ctx);
    }

    pub(super) fn leave(&mut self, ctx: &mut Ctx<'_, Can>) {
        if self.leaving {
            return;
        }
        self.leaving = true;
        ctx.wake_after(LEAVE_WITHIN, Timer::Left);
        self.drop_balloons(ctx);
        self.hand_on_all(ctx);
        if self.claims.is_empty() {
            self.on_left(ctx);
        }
    }

    /// Whether this node has left, and has nothing more to do with the others.
    pub fn has_left(&self) -> bool {
        self.leaving && self.claims.is_empty() && self.neighbours.is_empty()
    }

    /// Whatever nobody took is left to those around, as after a crash.
    pub(super) fn on_left(&mut self, ctx: &mut Ctx<'_, Can>) {
        if !self.leaving || self.neighbours.is_empty() && self.claims.is_empty() && self.peers.is_none() {
            return;
        }
        self.claims = Shared::new(Vec::new());
        self.tell(ctx);
        self.neighbours.clear();
        self.ghosts.clear();
        self.peers = None;
        ctx.report(Event::Left);
    }
}

/// Half of a zone: cut in the middle along the next dimension in turn.
pub(super) fn halves(zone: &Zone, dimensions: usize, point: &Point) -> Option<Zone> {
    let first = usize::from(zone.depth()) % dimensions;
    let along = (0..dimensions).map(|d| (first + d) % dimensions).find(|&d| zone.length(d) >= 2)?;
    let (below, above) = zone.cut(along, zone.low()[along] + zone.length(along) / 2);
    Some(if below.contains(point) { below } else { above })
}

/// The part of a zone around `theirs`: cut in the middle between the two along the dimension in which they differ most.
pub(super) fn between(zone: &Zone, mine: &Point, theirs: &Point, dimensions: usize) -> Option<Zone> {
    let (along, apart) = (0..dimensions)
        .map(|d| (d, mine[d].abs_diff(theirs[d])))
        .rev()
        .max_by_key(|&(_, apart)| apart)
        .filter(|&(_, apart)| apart > 0)?;
    let at = mine[along].min(theirs[along]) + apart / 2 + 1;
    let (below, above) = zone.cut(along, at);
    Some(if below.contains(theirs) { below } else { above })
}
