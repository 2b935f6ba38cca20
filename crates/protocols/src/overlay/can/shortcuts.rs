//! Shortcuts: who lies 2, 4, 8 … places away in the virtual dimension, so that ways past many equal machines are short.
//!
//! Equal machines differ in the virtual dimension alone: from neighbour to neighbour a way leads past a third of them. Who
//! lies 2^i places away knows who lies 2^i places away from itself, and that is twice as far.
//!
//! ```text
//! node            who is 2^i places away
//!   │── Leap ──────────▶│
//!   │◀─────── Landed ───│   my zones, and who is 2^i places away from me
//! ```
//!
//! One is asked in each direction with each heartbeat. Who has not answered by the next is forgotten, and for a while not
//! heard of from others; but a word that was sent there meanwhile is lost: only what is sent again another way goes by
//! shortcuts. Not of the papers: ours.

use shoal_model::{NodeId, Time};

use super::message::{Claim, Message, Peer};
use super::zone::{Point, SIDE};
use super::{CLAIMS_MAX, Can, Hop, VIRTUAL};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// How often the distance can be doubled.
const LEVELS_MAX: usize = 20;
/// The furthest is asked at least once in so many heartbeats whether it knows somebody further by now.
const PAUSE_MAX: u8 = 16;

/// Others may speak for so many heartbeats of who has not answered; and of how many that is known, at most.
const SPOKEN_OF: u64 = 16;
const SILENT_MAX: usize = 32;

/// The shortcuts of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shortcuts {
    /// Downwards and upwards.
    ways: [Way; 2],
    /// Who has not answered, and when that was found out; the last is the latest.
    silent: Vec<(NodeId, Time)>,
}

/// Those in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Way {
    /// Who lies 2, 4, 8 … places away, as far as is known.
    far: Vec<Option<Peer>>,
    /// Who was asked last and has not answered, and how often its distance was doubled.
    asked: Option<(NodeId, usize)>,
    /// Who is asked next to see whether it is still there: of how many doublings.
    next: usize,
    /// How many heartbeats the furthest is not asked, and how many the next time that it knows nobody.
    rests: u8,
    pause: u8,
}

impl Way {
    /// Whom to ask with this heartbeat: the furthest, so that the way grows by one with each while it can; once that knows
    /// nobody further, all in turn.
    fn whom(&mut self) -> usize {
        let last = self.far.len();
        if self.rests == 0 {
            self.pause = self.pause.max(1);
            self.rests = self.pause - 1;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            return last;
        }
        self.rests -= 1;
        let level = if self.next > last { 0 } else { self.next };
        self.next = level + 1;
        level
    }

    /// Takes note of who lies so many doublings away, or that nobody does.
    fn set(&mut self, level: usize, peer: Option<Peer>) {
        if level >= LEVELS_MAX {
            return;
        }
        if self.far.len() <= level {
            self.far.resize(level + 1, None);
        }
        self.far[level] = peer;
        while self.far.last().is_some_and(Option::is_none) {
            self.far.pop();
        }
    }
}

impl Can {
    /// The shortcuts that are known.
    pub fn shortcuts(&self) -> impl Iterator<Item = &Peer> {
        self.shortcuts.ways.iter().flat_map(|way| way.far.iter().flatten())
    }

    /// Where something that is meant for a point goes from here, by a shortcut if that is nearer: for what is sent again
    /// another way if it gets lost.
    pub fn next_leap(&self, point: &Point) -> Hop {
        let hop = self.next_hop(point);
        let Hop::To(neighbour) = hop else { return hop };
        let distance =
            |claims: &[Claim]| claims.iter().map(|claim| claim.zone.distance(point, self.space)).min();
        let near = self.neighbours.get(neighbour).and_then(|neighbour| distance(&neighbour.claims));
        let far = self
            .shortcuts()
            .filter(|peer| !self.dead.contains_key(&peer.node))
            .filter_map(|peer| Some((distance(&peer.claims)?, peer.node)))
            .min();
        match (near, far) {
            (Some(near), Some((far, node))) if far < near => Hop::To(node),
            _ => hop,
        }
    }

    /// Asks one in each direction how it goes on from there.
    pub(super) fn look_further(&mut self, ctx: &mut Ctx<'_, Can>) {
        if !self.config.shortcuts || self.second {
            return;
        }
        // Whoever has lost its zone will lie elsewhere.
        if self.claims.is_empty() {
            self.shortcuts = Shortcuts::default();
            return;
        }
        let long_ago = ctx.now - self.config.period() * SPOKEN_OF;
        let Shortcuts { silent: quiet, .. } = &mut self.shortcuts;
        quiet.retain(|&(_, since)| since > long_ago);
        for up in [false, true] {
            let Shortcuts { ways, silent: quiet } = &mut self.shortcuts;
            let way = &mut ways[usize::from(up)];
            // Whoever is next to us is watched by heartbeats.
            if let Some((silent, level)) = way.asked.take()
                && level > 0
                && way
                    .far
                    .get(level - 1)
                    .is_some_and(|far| far.as_ref().is_some_and(|far| far.node == silent))
            {
                way.set(level - 1, None);
                quiet.truncate(SILENT_MAX - 1);
                quiet.insert(0, (silent, ctx.now));
            }
            let first = way.whom();
            let last = way.far.len();
            // Where somebody is missing, whoever comes next.
            let levels = (first..=last).chain(0..first);
            let asked = levels.filter_map(|level| Some((self.far(up, level)?.node, level))).next();
            self.shortcuts.ways[usize::from(up)].asked = asked;
            if let Some((node, level)) = asked {
                ctx.send(node, Message::Leap { up, level: level as u8 });
            }
        }
    }

    pub(super) fn on_leap(&mut self, from: NodeId, up: bool, level: u8, ctx: &mut Ctx<'_, Can>) {
        let next = self.far(up, usize::from(level)).filter(|peer| peer.node != from);
        ctx.send(from, Message::Landed { up, level, claims: self.claims.clone(), next });
    }

    pub(super) fn on_landed(
        &mut self,
        from: NodeId,
        (up, level): (bool, u8),
        claims: Shared<Vec<Claim>>,
        next: Option<Peer>,
    ) {
        let sound = |claims: &[Claim]| {
            !claims.is_empty()
                && claims.len() <= CLAIMS_MAX
                && claims.iter().all(|claim| claim.zone.is_sound(self.space))
        };
        let here = sound(&claims);
        let next = next.filter(|peer| peer.node != self.me && here && sound(&peer.claims));
        let Shortcuts { ways, silent } = &mut self.shortcuts;
        let way = &mut ways[usize::from(up)];
        let level = usize::from(level);
        if way.asked != Some((from, level)) {
            return;
        }
        way.asked = None;
        silent.retain(|&(node, _)| node != from);
        let next = next.filter(|peer| silent.iter().all(|&(node, _)| node != peer.node));
        if level > 0 {
            way.set(level - 1, here.then_some(Peer { node: from, claims }));
        }
        if next.is_some() && way.far.len() <= level {
            (way.rests, way.pause) = (0, 1);
        }
        way.set(level, next);
    }

    /// Who lies 2^level places away.
    fn far(&self, up: bool, level: usize) -> Option<Peer> {
        match level {
            0 => self.beside(up),
            _ => self.shortcuts.ways[usize::from(up)].far.get(level - 1)?.clone(),
        }
    }

    /// Who lies next to this node in the virtual dimension.
    fn beside(&self, up: bool) -> Option<Peer> {
        let home = self.claims.iter().find(|claim| claim.zone.contains(&self.point))?;
        let mut point = self.point;
        point[VIRTUAL] = if up {
            Some(home.zone.high()[VIRTUAL]).filter(|&high| high < SIDE)?
        } else {
            home.zone.low()[VIRTUAL].checked_sub(1)?
        };
        let (node, neighbour) = self
            .neighbours
            .iter()
            .find(|(_, neighbour)| neighbour.claims.iter().any(|claim| claim.zone.contains(&point)))?;
        Some(Peer { node, claims: neighbour.claims.clone() })
    }
}
