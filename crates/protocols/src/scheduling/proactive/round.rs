//! One iteration of a search: whom it has met, whom it waits for, and what it was offered.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{NodeId, Time};

use super::message::{Answer, Offer};
use crate::overlay::cyclon::Entry;
use crate::overlay::helpers::{Kind, Profile};
use crate::overlay::vicinity::Metric;
use crate::scheduling::Stuck;

/// Nodes that an iteration remembers to have met.
pub(super) const MET_MAX: usize = 1 << 16;

/// One iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Round {
    /// The random node that it begins with, and what that says of itself.
    pub start: Option<NodeId>,
    pub origin: Option<Profile>,
    /// Whom to ask next: the nearest to the origin, then in the order in which they were met.
    pub frontier: BTreeSet<(u64, u32, NodeId)>,
    pub met: BTreeSet<NodeId>,
    pub awaited: BTreeMap<NodeId, Time>,
    pub asked: u32,
    pub offers: Vec<Found>,
    /// How many each clause of the constraint excludes.
    pub excluded: BTreeMap<u8, u32>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub node: NodeId,
    pub profile: Profile,
    pub offer: Offer,
}

impl Round {
    pub fn meet(&mut self, distance: u64, node: NodeId) {
        if self.met.len() < MET_MAX && self.met.insert(node) {
            self.frontier.insert((distance, self.met.len() as u32, node));
        }
    }

    pub fn meet_near(&mut self, kind: Option<Kind>, entry: &Entry<Profile>) {
        let distance = match (&self.origin, kind) {
            (Some(origin), Some(kind)) => kind.distance(origin, &entry.payload),
            (None, _) | (_, None) => 0,
        };
        self.meet(distance, entry.node);
    }

    pub fn hear(&mut self, node: NodeId, profile: Profile, answer: Answer) {
        match answer {
            Answer::Yes(offer) => self.offers.push(Found { node, profile, offer }),
            Answer::Unfit => {}
            Answer::Excluded(clause) => *self.excluded.entry(clause).or_default() += 1,
        }
    }

    /// Why there are too few.
    pub fn too_few(&self, needed: u32) -> Stuck {
        let (asked, fit) = (self.asked, self.offers.len() as u32);
        match self.excluded.iter().max_by_key(|(_, count)| **count) {
            Some((&clause, &excluded)) => {
                Stuck::Excluded { needed, asked, fit, clause: u32::from(clause) + 1, excluded }
            }
            None => Stuck::TooFew { needed, asked, fit },
        }
    }
}
