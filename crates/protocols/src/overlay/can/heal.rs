//! What a node hears of others' zones: who gives way where two overlap, who takes what the dead have left.

use shoal_model::{NodeId, Span, Time};

use super::around::Neighbour;
use super::message::{Claim, Message, Peer, Update};
use super::zone::Zone;
use super::{Can, Event, Timer};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The most neighbours that a node keeps.
pub const NEIGHBOURS_MAX: usize = 4_096;
/// The most zones of the dead that a node keeps in mind.
pub const GHOSTS_MAX: usize = 256;
/// The most zones that a node may claim.
pub const CLAIMS_MAX: usize = 64;
/// A zone that is taken over gets so much of a version more than it was last known with: its owner may have made some
/// that nobody heard of.
const TAKEOVER_STEP: u32 = 16;
/// Before anybody takes over a zone.
const TAKEOVER_LEAST: Span = Span::from_secs(1);
/// For each bit of the own volume a node waits so much longer: the smallest is the first.
const TAKEOVER_PER_BIT: Span = Span::from_millis(50);
/// Whoever has lost the zone that it lies in asks for another after this.
const HOMELESS_FOR: Span = Span::from_millis(500);
/// Something around must be missing for so many heartbeats in a row before it counts as a hole.
const HOLE_AFTER: u8 = 5;

/// A zone whose owner is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ghost {
    claim: Claim,
    /// The neighbours of its owner.
    around: Shared<Vec<Peer>>,
    /// When it is taken over here, if nobody else has by then.
    due: Time,
}

impl Can {
    pub(super) fn on_update(
        &mut self,
        from: NodeId,
        update: Shared<Update>,
        ask: bool,
        ctx: &mut Ctx<'_, Can>,
    ) {
        let known = self.neighbours.speaker(from);
        // Nearly always its zones are beyond doubt, and only how its sender does is news.
        if let Some(neighbour) = known
            && neighbour.still_claims(&update.claims, &self.claims)
            && self.ghosts.is_empty()
            && let Some(about) = &mut neighbour.about
            && about.at <= update.at
        {
            let told = (about.peers != update.peers).then(|| update.peers.clone());
            *about = update;
            neighbour.heard = ctx.now;
            self.heard_again(from, told.as_ref(), ask, ctx);
            return;
        }
        self.on_new_claims(from, &update, ask, ctx);
    }

    /// A neighbour has said no news of zones, except perhaps of others'.
    fn heard_again(
        &mut self,
        from: NodeId,
        told: Option<&Shared<Vec<Peer>>>,
        ask: bool,
        ctx: &mut Ctx<'_, Can>,
    ) {
        self.dead.remove(&from);
        if let Some(peers) = told {
            self.learn(peers, true, ctx);
        }
        if ask {
            self.answer(from, ctx);
        }
    }

    fn on_new_claims(&mut self, from: NodeId, update: &Shared<Update>, ask: bool, ctx: &mut Ctx<'_, Can>) {
        let sound = update.claims.len() <= CLAIMS_MAX
            && update.claims.iter().all(|claim| claim.zone.is_sound(self.space));
        let before = self.neighbours.get(from);
        let late = before.and_then(|before| before.about.as_ref()).is_some_and(|about| about.at > update.at);
        if !sound || late {
            return;
        }
        self.dead.remove(&from);
        let same_claims = before.is_some_and(|before| before.claims == update.claims);
        let same_peers =
            before.and_then(|before| before.about.as_ref()).is_some_and(|about| about.peers == update.peers);
        let contested = update.claims.iter().any(|claim| self.overlaps(&claim.zone));
        if same_claims && !contested && self.ghosts.is_empty() {
            let neighbour = self.neighbours.speaker(from).expect("it has claimed the same before");
            neighbour.claims = update.claims.clone();
            neighbour.apart_from = Some(self.claims.clone());
            neighbour.about = Some(update.clone());
            neighbour.heard = ctx.now;
            self.heard_again(from, (!same_peers).then_some(&update.peers), ask, ctx);
            return;
        }
        let (lost, won) = self.contest(from, &update.claims);
        if lost {
            self.promise_kept(from);
        }
        self.trim_others(from, &update.claims);
        let old = self.neighbours.remove(from);
        self.peers = None;
        if update.claims.iter().any(|claim| self.touches(&claim.zone)) {
            let neighbour = Neighbour {
                claims: update.claims.clone(),
                about: Some(update.clone()),
                heard: ctx.now,
                apart_from: None,
            };
            if self.neighbours.len() < NEIGHBOURS_MAX {
                self.neighbours.insert(from, neighbour);
            }
        }
        if let Some(old) = old {
            let around = old.about.map_or_else(|| update.peers.clone(), |about| about.peers.clone());
            for claim in old.claims.iter() {
                let left = update.claims.iter().fold(vec![claim.zone], |left, now| subtract(left, &now.zone));
                self.haunt(left, claim.version, &around, ctx);
            }
        }
        self.learn(&update.peers, true, ctx);
        if lost {
            self.announce(&[from], ctx);
            self.look_for_home(HOMELESS_FOR, ctx);
        } else if ask || won || self.is_mistaken_for_neighbour(from, update) {
            self.answer(from, ctx);
        }
    }

    fn overlaps(&self, zone: &Zone) -> bool {
        self.claims.iter().any(|mine| mine.zone.overlaps(zone))
    }

    /// Whether somebody thinks that we touch, and is told better by an answer.
    fn is_mistaken_for_neighbour(&self, from: NodeId, update: &Update) -> bool {
        !self.neighbours.contains(from) && update.peers.iter().any(|peer| peer.node == self.me)
    }

    fn answer(&mut self, to: NodeId, ctx: &mut Ctx<'_, Can>) {
        let update = self.update(ctx.now);
        ctx.send(to, Message::Update(update, false));
    }

    /// Gives way where a claim of another has more right; whether some of ours was lost, and whether some has more.
    fn contest(&mut self, from: NodeId, theirs: &[Claim]) -> (bool, bool) {
        let (mut lost, mut won) = (false, false);
        let mut claims = self.claims.to_vec();
        for their in theirs {
            if !claims.iter().any(|mine| mine.zone.overlaps(&their.zone)) {
                continue;
            }
            let mut kept = Vec::with_capacity(claims.len());
            for mine in claims {
                if !mine.zone.overlaps(&their.zone) {
                    kept.push(mine);
                } else if their.beats(from, &mine, self.me) {
                    lost = true;
                    let left = mine.zone.without(&their.zone);
                    kept.extend(left.into_iter().map(|zone| Claim { zone, version: mine.version }));
                } else {
                    won = true;
                    kept.push(mine);
                }
            }
            claims = kept;
        }
        if lost {
            self.claims = Shared::new(claims);
            self.make_whole();
        }
        (lost, won)
    }

    /// What others, alive or dead, were thought to own is `from`'s now.
    pub(super) fn trim_others(&mut self, from: NodeId, theirs: &[Claim]) {
        for (node, neighbour) in self.neighbours.iter_mut() {
            let beaten = |claim: &Claim, their: &Claim| {
                their.zone.overlaps(&claim.zone) && their.beats(from, claim, node)
            };
            let any = neighbour.claims.iter().any(|claim| theirs.iter().any(|their| beaten(claim, their)));
            if node == from || !any {
                continue;
            }
            let mut claims = neighbour.claims.to_vec();
            for their in theirs {
                claims = claims
                    .iter()
                    .flat_map(|claim| {
                        let zones = if beaten(claim, their) {
                            claim.zone.without(&their.zone)
                        } else {
                            vec![claim.zone]
                        };
                        zones.into_iter().map(|zone| Claim { zone, version: claim.version })
                    })
                    .collect();
            }
            neighbour.claims = Shared::new(claims);
            self.peers = None;
        }
        let (mine, space) = (&self.claims, self.space);
        self.neighbours.retain(|neighbour| {
            let touches = |claim: &Claim| mine.iter().any(|mine| mine.zone.touches(&claim.zone, space));
            neighbour.claims.iter().any(touches)
        });
        let mut ghosts = std::mem::take(&mut self.ghosts);
        for their in theirs {
            ghosts = ghosts
                .into_iter()
                .flat_map(|ghost| {
                    let zones = ghost.claim.zone.without(&their.zone);
                    zones.into_iter().map(move |zone| Ghost {
                        claim: Claim { zone, version: ghost.claim.version },
                        around: ghost.around.clone(),
                        due: ghost.due,
                    })
                })
                .collect();
        }
        ghosts.truncate(GHOSTS_MAX);
        self.ghosts = ghosts;
    }

    /// Zones whose owner is gone, as far as nobody else is known to have them and they touch ours.
    fn haunt(
        &mut self,
        mut left: Vec<Zone>,
        version: u32,
        around: &Shared<Vec<Peer>>,
        ctx: &mut Ctx<'_, Can>,
    ) {
        let others = self.neighbours.all().iter().flat_map(|neighbour| neighbour.claims.iter());
        for claim in others.chain(self.claims.iter()) {
            left = subtract(left, &claim.zone);
        }
        left.retain(|zone| self.touches(zone));
        if left.is_empty() {
            return;
        }
        let bits = self.claims.iter().map(|claim| claim.zone.volume()).sum::<super::Volume>().bits();
        let due = ctx.now + TAKEOVER_LEAST + TAKEOVER_PER_BIT * u64::from(bits);
        let room = GHOSTS_MAX.saturating_sub(self.ghosts.len());
        self.ghosts.extend(left.into_iter().take(room).map(|zone| Ghost {
            claim: Claim { zone, version },
            around: around.clone(),
            due,
        }));
        ctx.wake_at(due, Timer::Ghosts);
    }

    /// Takes over what nobody else has taken.
    pub(super) fn on_ghosts(&mut self, ctx: &mut Ctx<'_, Can>) {
        let (due, later): (Vec<Ghost>, Vec<Ghost>) =
            std::mem::take(&mut self.ghosts).into_iter().partition(|ghost| ghost.due <= ctx.now);
        self.ghosts = later;
        if self.leaving || self.claims.is_empty() {
            return;
        }
        let mut taken = Vec::new();
        for Ghost { claim, around, .. } in due {
            // A guess gives way to anybody who really owns it.
            let version = if claim.version == 0 { 0 } else { claim.version.saturating_add(TAKEOVER_STEP) };
            let left = self.claims.iter().fold(vec![claim.zone], |left, mine| subtract(left, &mine.zone));
            for zone in left {
                if self.touches(&zone) && self.claims.len() < CLAIMS_MAX {
                    let mut claims = self.claims.to_vec();
                    claims.push(Claim { zone, version });
                    self.claims = Shared::new(claims);
                    taken.push(around.clone());
                }
            }
        }
        if taken.is_empty() {
            return;
        }
        for around in &taken {
            self.learn(around, false, ctx);
        }
        self.make_whole();
        self.announce(&[], ctx);
    }

    /// Takes note of nodes that others speak of and that touch, or claim, what is ours.
    pub(super) fn learn(&mut self, peers: &[Peer], greet: bool, ctx: &mut Ctx<'_, Can>) {
        for peer in peers.iter().take(NEIGHBOURS_MAX) {
            let known = peer.node == self.me
                || self.neighbours.contains(peer.node)
                || self.dead.contains_key(&peer.node);
            if known || self.neighbours.len() >= NEIGHBOURS_MAX || peer.claims.len() > CLAIMS_MAX {
                continue;
            }
            let near = |claim: &Claim| {
                let meets = |mine: &Claim| {
                    mine.zone.overlaps(&claim.zone) || mine.zone.touches(&claim.zone, self.space)
                };
                claim.zone.is_sound(self.space) && self.claims.iter().any(meets)
            };
            if !peer.claims.iter().any(near) {
                continue;
            }
            let mut left = peer.claims.to_vec();
            left.retain(|claim| claim.zone.is_sound(self.space));
            let mine = self.claims.iter().map(|claim| (self.me, claim));
            let others = self
                .neighbours
                .iter()
                .flat_map(|(node, other)| other.claims.iter().map(move |claim| (node, claim)));
            for (node, known) in mine.chain(others) {
                let beaten =
                    |claim: &Claim| known.zone.overlaps(&claim.zone) && known.beats(node, claim, peer.node);
                if !left.iter().any(beaten) {
                    continue;
                }
                left = left
                    .iter()
                    .flat_map(|claim| {
                        let zones =
                            if beaten(claim) { claim.zone.without(&known.zone) } else { vec![claim.zone] };
                        zones.into_iter().map(|zone| Claim { zone, version: claim.version })
                    })
                    .collect();
            }
            if !left.iter().any(near) {
                continue;
            }
            let neighbour =
                Neighbour { claims: Shared::new(left), about: None, heard: ctx.now, apart_from: None };
            self.neighbours.insert(peer.node, neighbour);
            self.peers = None;
            if greet {
                let update = self.update(ctx.now);
                ctx.send(peer.node, Message::Update(update, true));
            }
        }
    }

    /// Our zones have changed: everybody around hears it, those too that are no neighbours any more.
    pub(super) fn announce(&mut self, also: &[NodeId], ctx: &mut Ctx<'_, Can>) {
        let told = self.neighbours.all().iter().filter_map(|neighbour| neighbour.about.as_ref());
        let told: Vec<Shared<Vec<Peer>>> = told.map(|about| about.peers.clone()).collect();
        for peers in &told {
            self.learn(peers, false, ctx);
        }
        self.peers = None;
        let apart: Vec<NodeId> = self
            .neighbours
            .iter()
            .filter(|(_, neighbour)| !neighbour.claims.iter().any(|claim| self.touches(&claim.zone)))
            .map(|(node, _)| node)
            .collect();
        for &node in &apart {
            self.neighbours.remove(node);
        }
        self.ghosts = std::mem::take(&mut self.ghosts)
            .into_iter()
            .filter(|ghost| self.touches(&ghost.claim.zone))
            .collect();
        let update = self.update(ctx.now);
        let also = also.iter().filter(|node| !apart.contains(node) && !self.neighbours.contains(**node));
        for (node, neighbour) in self.neighbours.iter() {
            // Who is only known from others may have no such zone any more.
            ctx.send(node, Message::Update(update.clone(), neighbour.about.is_none()));
        }
        for &node in apart.iter().chain(also) {
            ctx.send(node, Message::Update(update.clone(), false));
        }
        self.pass_balloons_on(ctx);
    }

    /// Neighbours that have been silent for too long are dead.
    pub(super) fn bury(&mut self, ctx: &mut Ctx<'_, Can>) {
        let silence = self.config.silence();
        let memory = silence * 2;
        self.dead.retain(|_, since| ctx.now.since(*since) <= memory);
        let silent: Vec<NodeId> = self
            .neighbours
            .iter()
            .filter(|(_, neighbour)| ctx.now.since(neighbour.heard) > silence)
            .map(|(node, _)| node)
            .collect();
        for node in silent {
            let Some(gone) = self.neighbours.remove(node) else { continue };
            self.peers = None;
            self.keep_in_mind(node);
            if self.dead.len() < NEIGHBOURS_MAX {
                self.dead.insert(node, ctx.now);
            }
            let around = gone.about.map_or_else(|| Shared::new(Vec::new()), |about| about.peers.clone());
            for claim in gone.claims.iter() {
                self.haunt(vec![claim.zone], claim.version, &around, ctx);
            }
            // A last chance to say that all of this is a mistake, before anybody takes over.
            let update = self.update(ctx.now);
            ctx.send(node, Message::Update(update, true));
            ctx.report(Event::Silent(node));
        }
    }

    /// If nobody is known behind a face for long, there is a hole: what lies straight behind it, as far as nobody is
    /// known there, is claimed with the least right.
    pub(super) fn check_cover(&mut self, ctx: &mut Ctx<'_, Can>) {
        let holes = self.neighbours.holes(&self.claims, self.space).to_vec();
        if holes.is_empty() || !self.ghosts.is_empty() {
            self.uncovered = 0;
            return;
        }
        self.uncovered += 1;
        if self.uncovered < HOLE_AFTER {
            return;
        }
        self.uncovered = 0;
        let nobody = Shared::new(Vec::new());
        for (zone, face) in holes {
            if let Some(beyond) = zone.beyond(face, self.space) {
                self.haunt(vec![beyond], 0, &nobody, ctx);
            }
        }
    }
}

fn subtract(zones: Vec<Zone>, taken: &Zone) -> Vec<Zone> {
    if !zones.iter().any(|zone| zone.overlaps(taken)) {
        return zones;
    }
    zones.iter().flat_map(|zone| zone.without(taken)).collect()
}
