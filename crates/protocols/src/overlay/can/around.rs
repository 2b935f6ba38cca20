//! The nodes around: in the order of their ids, and how they lie.
//!
//! A node hears from some hundred neighbours in every period, and its own heartbeat looks at all of them; zones change
//! thousands of times less often. So what follows from zones alone is worked out once for each change of them.

use shoal_model::{NodeId, Time};

use super::message::{Claim, Update};
use super::volume::Volume;
use super::zone::{Face, Space, Zone};
use crate::shared::Shared;

/// A node that touches one of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Neighbour {
    /// What it claims, without what others claim with more right.
    pub claims: Shared<Vec<Claim>>,
    /// What it last said; nothing if it is only known from others.
    pub about: Option<Shared<Update>>,
    /// When it last spoke, or was heard of.
    pub heard: Time,
    /// What we owned when its own word for its claims was last found to be sound and not to overlap ours.
    pub apart_from: Option<Shared<Vec<Claim>>>,
}

/// The nodes around.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Neighbours {
    /// Apart from what is known of them: a search touches little memory.
    nodes: Vec<NodeId>,
    them: Vec<Neighbour>,
    /// While no zone changes.
    lie: Option<Lie>,
}

/// How the nodes around lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lie {
    /// Around these zones of ours.
    ours: Shared<Vec<Claim>>,
    uppers: Vec<Upper>,
    /// Faces behind which something belongs to nobody known.
    holes: Vec<(Zone, Face)>,
}

/// A neighbour that lies behind an upper face of our first zone; no zone lies behind two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Upper {
    place: usize,
    dimension: usize,
    /// The part of its face that we cover.
    share: u64,
}

impl Neighbour {
    /// Whether its claims are those that were looked at before, and we own what we did then: nothing can be wrong with them.
    pub fn still_claims(&self, theirs: &Shared<Vec<Claim>>, ours: &Shared<Vec<Claim>>) -> bool {
        self.claims.is(theirs) && self.apart_from.as_ref().is_some_and(|before| before.is(ours))
    }
}

impl Neighbours {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Reads where a search begins.
    pub fn glance(&self) -> u64 {
        self.nodes.get(self.nodes.len() / 2).map_or(0, |node| node.0)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    pub fn get(&self, node: NodeId) -> Option<&Neighbour> {
        let place = self.nodes.binary_search(&node).ok()?;
        self.them.get(place)
    }

    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Neighbour)> {
        self.nodes.iter().copied().zip(&self.them)
    }

    pub fn all(&self) -> &[Neighbour] {
        &self.them
    }

    /// A neighbour that has spoken: its claims stay as they are.
    pub fn speaker(&mut self, node: NodeId) -> Option<&mut Neighbour> {
        let place = self.nodes.binary_search(&node).ok()?;
        self.them.get_mut(place)
    }

    pub fn insert(&mut self, node: NodeId, neighbour: Neighbour) {
        self.lie = None;
        match self.nodes.binary_search(&node) {
            Ok(place) => self.them[place] = neighbour,
            Err(place) => {
                self.nodes.insert(place, node);
                self.them.insert(place, neighbour);
            }
        }
    }

    pub fn remove(&mut self, node: NodeId) -> Option<Neighbour> {
        let place = self.nodes.binary_search(&node).ok()?;
        self.lie = None;
        self.nodes.remove(place);
        Some(self.them.remove(place))
    }

    /// All of them, to change what they claim.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Neighbour)> {
        self.lie = None;
        self.nodes.iter().copied().zip(&mut self.them)
    }

    pub fn retain(&mut self, keep: impl Fn(&Neighbour) -> bool) {
        self.lie = None;
        let mut kept = self.them.iter().map(&keep);
        self.nodes.retain(|_| kept.next().unwrap_or(false));
        self.them.retain(keep);
    }

    pub fn clear(&mut self) {
        *self = Neighbours::default();
    }

    /// The neighbours behind the upper faces of our first zone: along which dimension, and which part of their opposite
    /// face we cover.
    pub fn uppers(
        &mut self,
        ours: &Shared<Vec<Claim>>,
        space: Space,
    ) -> impl Iterator<Item = (usize, u64, &Neighbour)> {
        self.survey(ours, space);
        let uppers = self.lie.iter().flat_map(|lie| &lie.uppers);
        uppers.map(|upper| (upper.dimension, upper.share, &self.them[upper.place]))
    }

    /// The faces of ours behind which something belongs to nobody known.
    pub fn holes(&mut self, ours: &Shared<Vec<Claim>>, space: Space) -> &[(Zone, Face)] {
        self.survey(ours, space);
        self.lie.as_ref().map_or(&[], |lie| &lie.holes)
    }

    fn survey(&mut self, ours: &Shared<Vec<Claim>>, space: Space) {
        if self.lie.as_ref().is_some_and(|lie| lie.ours.is(ours)) {
            return;
        }
        let upper = |(place, neighbour): (usize, &Neighbour)| {
            (0..space.dimensions).find_map(|dimension| {
                let share = share_of(ours, neighbour, Face { dimension, upper: true }, space)?;
                Some(Upper { place, dimension, share })
            })
        };
        let holes = ours
            .iter()
            .flat_map(|claim| space.faces().map(|face| (claim.zone, face)))
            .filter(|(zone, face)| !self.is_covered(zone, *face, ours, space));
        self.lie = Some(Lie {
            ours: ours.clone(),
            uppers: self.them.iter().enumerate().filter_map(upper).collect(),
            holes: holes.collect(),
        });
    }

    fn is_covered(&self, zone: &Zone, face: Face, ours: &[Claim], space: Space) -> bool {
        if zone.is_bound(face, space) {
            return true;
        }
        let others = self.them.iter().flat_map(|neighbour| neighbour.claims.iter());
        let behind = others
            .chain(ours)
            .filter(|claim| zone.faces(face, &claim.zone, space))
            .map(|claim| zone.area_shared(face, &claim.zone));
        behind.sum::<Volume>() >= zone.area(face)
    }
}

/// How much of a neighbour's opposite face we cover, if it lies behind ours; never around the end of a torus.
pub(super) fn share_of(ours: &[Claim], neighbour: &Neighbour, face: Face, space: Space) -> Option<u64> {
    let plain = Space { torus: false, ..space };
    let mine = ours.first()?;
    let theirs = neighbour.claims.first()?;
    mine.zone.faces(face, &theirs.zone, plain).then(|| mine.zone.share_of_face(face, &theirs.zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Space = Space { dimensions: 2, torus: false };

    fn claims(zone: Zone) -> Shared<Vec<Claim>> {
        Shared::new(vec![Claim { zone, version: 1 }])
    }

    fn neighbour(zone: Zone) -> Neighbour {
        Neighbour { claims: claims(zone), about: None, heard: Time::ZERO, apart_from: None }
    }

    /// Along which dimension those of these neighbours lie that are above us.
    fn above(neighbours: &mut Neighbours, ours: &Shared<Vec<Claim>>) -> Vec<usize> {
        neighbours.uppers(ours, PLANE).map(|(dimension, ..)| dimension).collect()
    }

    #[test]
    fn what_is_known_of_the_lie_follows_every_change_of_a_zone() {
        let (left, right) = Zone::WHOLE.cut(0, 100);
        let (low, high) = right.cut(1, 50);
        let ours = claims(left);
        let mut around = Neighbours::default();
        assert_eq!(around.holes(&ours, PLANE).len(), 1, "nobody behind the only face within the space");

        around.insert(NodeId(2), neighbour(low));
        assert_eq!((above(&mut around, &ours), around.holes(&ours, PLANE).len()), (vec![0], 1));
        around.insert(NodeId(1), neighbour(high));
        assert_eq!((above(&mut around, &ours), around.holes(&ours, PLANE).len()), (vec![0, 0], 0));

        around.iter_mut().for_each(|(_, neighbour)| neighbour.claims = claims(low));
        assert_eq!(around.holes(&ours, PLANE).len(), 1, "the upper one is nobody's now");
        around.insert(NodeId(1), neighbour(high));
        assert!(around.holes(&ours, PLANE).is_empty());
        let ours = claims(low);
        assert_eq!(above(&mut around, &ours), [1], "seen from another zone, only one lies above");

        let ours = claims(left);
        around.retain(|neighbour| neighbour.claims[0].zone == low);
        assert_eq!(around.nodes(), [NodeId(2)]);
        assert_eq!(around.holes(&ours, PLANE).len(), 1);
        assert!(around.remove(NodeId(2)).is_some() && above(&mut around, &ours).is_empty());
    }

    #[test]
    fn neighbours_are_found_by_id_whatever_the_order_they_came_in() {
        let mut around = Neighbours::default();
        for id in [5, 1, 9, 3, 7] {
            around.insert(NodeId(id), neighbour(Zone::WHOLE));
        }
        around.remove(NodeId(3));
        assert_eq!(around.nodes(), [1, 5, 7, 9].map(NodeId));
        assert!(around.iter().map(|(node, _)| node).eq(around.nodes().iter().copied()));
        assert!(
            around.get(NodeId(3)).is_none() && around.get(NodeId(7)).is_some() && !around.contains(NodeId(2))
        );
    }

    #[test]
    fn claims_are_looked_at_again_when_either_side_has_others() {
        let (ours, theirs) = (claims(Zone::WHOLE), claims(Zone::WHOLE));
        let mut known = neighbour(Zone::WHOLE);
        known.claims = theirs.clone();
        assert!(!known.still_claims(&theirs, &ours), "never looked at");
        known.apart_from = Some(ours.clone());
        assert!(known.still_claims(&theirs, &ours));
        assert!(!known.still_claims(&claims(Zone::WHOLE), &ours), "equal, but not the same word");
        assert!(!known.still_claims(&theirs, &claims(Zone::WHOLE)), "we may own something else");
    }
}
