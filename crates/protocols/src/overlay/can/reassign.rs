//! Background reassignment: who holds more zones than the one that it lies in hands them to those that they make larger.

use shoal_model::NodeId;

use super::heal::CLAIMS_MAX;
use super::message::{Claim, Message};
use super::zone::{Face, Space, Zone};
use super::{Can, Kind};
use crate::protocol::Ctx;
use crate::shared::Shared;

impl Can {
    /// Two zones of ours that are one box become one.
    pub(super) fn make_whole(&mut self) {
        let mut claims = self.claims.to_vec();
        let found = |claims: &[Claim]| {
            (0..claims.len()).find_map(|a| {
                (a + 1..claims.len())
                    .find_map(|b| claims[a].zone.joined(&claims[b].zone).map(|zone| (a, b, zone)))
            })
        };
        while let Some((a, b, zone)) = found(&claims) {
            let other = claims.remove(b);
            claims[a] = Claim { zone, version: claims[a].version.max(other.version) };
        }
        if matches!(self.config.space, Kind::Resources) {
            claims.sort_by_key(|claim| !claim.zone.contains(&self.point));
        }
        if *claims != self.claims[..] {
            self.claims = Shared::new(claims);
        }
    }

    /// Background reassignment: zones other than the first go to those that they make larger.
    pub(super) fn hand_on_extras(&mut self, ctx: &mut Ctx<'_, Can>) {
        let extras = match self.config.space {
            Kind::Torus(_) => 1,
            Kind::Resources => usize::from(self.has_home()),
        };
        if !self.leaving && self.claims.len() > extras {
            self.hand_on(extras, ctx);
        }
    }

    /// All zones go to those that they make larger.
    pub(super) fn hand_on_all(&mut self, ctx: &mut Ctx<'_, Can>) {
        self.hand_on(0, ctx);
    }

    fn hand_on(&mut self, from: usize, ctx: &mut Ctx<'_, Can>) {
        let mut claims: Vec<Claim> = self.claims.iter().take(from).copied().collect();
        let mut grants = Vec::new();
        for claim in self.claims.iter().skip(from) {
            let mut heirs = self.heirs(&claim.zone);
            if heirs.is_empty() {
                // As much as somebody can have is better than nothing; the rest waits.
                let part = self.largest_part(&claim.zone);
                let rest = part.map_or_else(|| vec![claim.zone], |(_, part)| claim.zone.without(&part));
                claims.extend(rest.into_iter().map(|zone| Claim { zone, version: claim.version }));
                heirs.extend(part);
            }
            for (heir, zone) in heirs {
                claims.push(Claim { zone, version: claim.version });
                grants.extend(
                    heir.map(|heir| (heir, Claim { zone, version: claim.version.saturating_add(1) })),
                );
            }
        }
        if claims.len() > CLAIMS_MAX {
            return;
        }
        let before = self.claims.clone();
        self.claims = Shared::new(claims);
        if !self.leaving {
            self.make_whole();
        }
        if self.claims != before {
            self.announce(&[], ctx);
        }
        for (heir, claim) in grants {
            ctx.send(heir, Message::Grant(Box::new(claim)));
        }
    }

    /// Who could have which part of a zone: whoever lies behind one of its faces, if none of them sticks out. Of
    /// such faces the one with the deepest cut; none is ours' own (`None`) while we leave.
    fn heirs(&self, zone: &Zone) -> Vec<(Option<NodeId>, Zone)> {
        let plain = Space { torus: false, ..self.space };
        let mut faces: Vec<Face> = plain.faces().filter(|&face| !zone.is_bound(face, plain)).collect();
        faces.sort_by_key(|&face| std::cmp::Reverse(zone.depth_of(face)));
        let others = || {
            self.neighbours
                .iter()
                .flat_map(|(node, other)| other.claims.iter().map(move |claim| (Some(node), claim)))
        };
        let mine = || self.claims.iter().filter(|_| !self.leaving).map(|claim| (None, claim));
        for face in faces {
            let behind = others().chain(mine()).filter(|(_, claim)| zone.faces(face, &claim.zone, plain));
            let parts: Option<Vec<(Option<NodeId>, Zone)>> =
                behind.map(|(heir, claim)| Some((heir, zone.part_behind(face, &claim.zone)?))).collect();
            let Some(parts) = parts else { continue };
            if parts.iter().map(|(_, part)| part.area(face)).sum::<super::Volume>() == zone.area(face) {
                return parts;
            }
        }
        Vec::new()
    }

    /// The largest part of a zone that somebody behind one of its faces could have.
    fn largest_part(&self, zone: &Zone) -> Option<(Option<NodeId>, Zone)> {
        let plain = Space { torus: false, ..self.space };
        let others = self
            .neighbours
            .iter()
            .flat_map(|(node, other)| other.claims.iter().map(move |claim| (Some(node), claim)));
        others
            .filter_map(|(heir, claim)| {
                let face = zone.face_towards(&claim.zone, plain)?;
                Some((heir, zone.part_behind(face, &claim.zone)?))
            })
            .max_by_key(|(_, part)| part.volume())
    }

    pub(super) fn on_grant(&mut self, from: NodeId, claim: Claim, ctx: &mut Ctx<'_, Can>) {
        if self.leaving || !claim.zone.is_sound(self.space) {
            return;
        }
        let joined = self
            .claims
            .iter()
            .enumerate()
            .find_map(|(at, mine)| mine.zone.joined(&claim.zone).map(|zone| (at, zone)));
        let Some((at, zone)) = joined else { return };
        let grown = Claim { zone, version: self.claims[at].version.max(claim.version) };
        let others = self.claims.iter().enumerate().filter(|(other, _)| *other != at);
        let rest = others.flat_map(|(_, other)| {
            let left = other.zone.without(&zone);
            left.into_iter().map(|zone| Claim { zone, version: other.version })
        });
        self.claims = Shared::new([grown].into_iter().chain(rest).collect());
        self.trim_others(self.me, &self.claims.clone());
        if let Some(giver) = self.neighbours.get(from) {
            let around = giver.about.as_ref().map(|about| about.peers.clone());
            self.learn(&around.map_or_else(Vec::new, |around| around.to_vec()), false, ctx);
        }
        self.make_whole();
        self.announce(&[from], ctx);
    }
}
