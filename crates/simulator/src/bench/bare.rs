//! CYCLON as a plain loop over a list of nodes: what the simulator is measured against.
//!
//! The same work with the same types, as anybody would write it by hand: each cycle every node ages its cache and
//! trades entries with its oldest neighbour. There is no time, no message on its way, no other protocol, and nothing
//! that could go wrong: both sides of a trade happen at once. ([`super::tuned`] is the same, squeezed as far as it goes;
//! [`super::events`] has time as well.)

use rand::seq::SliceRandom;
use shoal_model::NodeId;
use shoal_protocols::overlay::cyclon::Entry;

use super::cyclon::{CACHE, SHUFFLE};
use crate::streams::{Purpose, Stream, stream};

/// All nodes of a bare loop.
pub struct Bare(Vec<Peer>);

/// A node: its neighbours, and its own chance.
struct Peer {
    cache: Vec<Entry>,
    chance: Stream,
}

impl Bare {
    /// Nodes that know these neighbours.
    pub fn new(nodes: u32, seed: u64, neighbours: impl Fn(u32) -> [u32; CACHE]) -> Bare {
        let peer = |node| Peer {
            cache: neighbours(node).map(|other| entry(other as usize)).into(),
            chance: stream(seed, Purpose::Node, u64::from(node)),
        };
        Bare((0..nodes).map(peer).collect())
    }

    /// Has every node shuffle once.
    pub fn cycle(&mut self) {
        let Bare(peers) = self;
        for me in 0..peers.len() {
            let peer = &mut peers[me];
            let Some(partner) = take_oldest(&mut peer.cache) else { continue };
            let lent = peer.choose(SHUFFLE - 1);
            let mut sent = vec![entry(me)];
            sent.extend_from_slice(&peer.cache[..lent]);

            let other = &mut peers[partner.0 as usize];
            let given = other.choose(SHUFFLE);
            let reply = other.cache[..given].to_vec();
            other.merge(partner, sent, given);
            peers[me].merge(NodeId(me as u64), reply, lent);
        }
    }

    /// Whom each node knows.
    #[cfg(test)]
    pub fn known(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        self.0.iter().map(|peer| nodes(&peer.cache))
    }
}

impl Peer {
    /// Moves a random choice of at most `count` neighbours to the front, and says how many.
    fn choose(&mut self, count: usize) -> usize {
        let count = count.min(self.cache.len());
        // The chosen come last there.
        let _ = self.cache.partial_shuffle(&mut self.chance, count);
        self.cache.rotate_right(count);
        count
    }

    /// Takes what is new: into empty places first, then over the `given` ones at the front.
    fn merge(&mut self, me: NodeId, entries: Vec<Entry>, mut given: usize) {
        for entry in entries {
            if entry.node == me || self.cache.iter().any(|known| known.node == entry.node) {
                continue;
            }
            if self.cache.len() < CACHE {
                self.cache.push(entry);
            } else if given > 0 {
                given -= 1;
                self.cache[given] = entry;
            }
        }
    }
}

/// A neighbour of which was just heard.
pub(super) fn entry(node: usize) -> Entry {
    Entry { node: NodeId(node as u64), age: 0, payload: () }
}

/// Has all neighbours age, and takes the oldest out.
pub(super) fn take_oldest(cache: &mut Vec<Entry>) -> Option<NodeId> {
    for entry in &mut *cache {
        entry.age = entry.age.saturating_add(1);
    }
    let oldest = (0..cache.len()).max_by_key(|&place| cache[place].age)?;
    Some(cache.swap_remove(oldest).node)
}

/// Who the neighbours are.
#[cfg(test)]
pub(super) fn nodes(cache: &[Entry]) -> Vec<usize> {
    cache.iter().map(|entry| entry.node.0 as usize).collect()
}
