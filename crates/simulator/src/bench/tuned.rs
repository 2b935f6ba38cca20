//! CYCLON as a loop over one flat array, squeezed as far as it goes: how much is left to gain.
//!
//! The work of [`super::bare`] with ids of four bytes, one stream of chance for all nodes and no allocation.

use rand::Rng;

use super::cyclon::{CACHE, SHUFFLE};
use crate::streams::{Purpose, Stream, stream};

/// All nodes of the loop.
pub struct Tuned {
    caches: Vec<Cache>,
    chance: Stream,
}

/// A node's neighbours, on two cache lines of their own.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Cache {
    nodes: [u32; CACHE],
    ages: [u16; CACHE],
    /// How many there are; they come first.
    len: u8,
}

/// An entry that changes hands.
type Entry = (u32, u16);

/// Stands in empty places: no node has this number.
const NOBODY: u32 = u32::MAX;

impl Tuned {
    /// Nodes that know these neighbours.
    pub fn new(nodes: u32, seed: u64, neighbours: impl Fn(u32) -> [u32; CACHE]) -> Tuned {
        let cache = |node| Cache { nodes: neighbours(node), ages: [0; CACHE], len: CACHE as u8 };
        Tuned { caches: (0..nodes).map(cache).collect(), chance: stream(seed, Purpose::Node, 0) }
    }

    /// Has every node shuffle once.
    pub fn cycle(&mut self) {
        let Tuned { caches, chance } = self;
        for me in 0..caches.len() {
            let cache = &mut caches[me];
            for age in &mut cache.ages {
                *age = age.saturating_add(1);
            }
            let Some(partner) = cache.take_oldest() else { continue };
            let lent = cache.to_front(SHUFFLE - 1, chance);
            let mut sent: [Entry; SHUFFLE] = [(me as u32, 0); SHUFFLE];
            cache.copy_front(&mut sent[1..=lent]);

            let other = &mut caches[partner as usize];
            let given = other.to_front(SHUFFLE, chance);
            let mut reply: [Entry; SHUFFLE] = [(NOBODY, 0); SHUFFLE];
            other.copy_front(&mut reply[..given]);
            other.merge(partner, &sent[..=lent], given);
            caches[me].merge(me as u32, &reply[..given], lent);
        }
    }

    /// Whom each node knows.
    #[cfg(test)]
    pub fn known(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let known =
            |cache: &Cache| cache.nodes[..usize::from(cache.len)].iter().map(|&node| node as usize).collect();
        self.caches.iter().map(known)
    }
}

impl Cache {
    /// Takes the oldest neighbour out.
    fn take_oldest(&mut self) -> Option<u32> {
        let last = usize::from(self.len).checked_sub(1)?;
        let mut oldest = 0;
        for slot in 1..=last {
            if self.ages[slot] > self.ages[oldest] {
                oldest = slot;
            }
        }
        let node = self.nodes[oldest];
        self.swap(oldest, last);
        self.nodes[last] = NOBODY;
        self.len = last as u8;
        Some(node)
    }

    /// Moves a random choice of at most `count` neighbours to the front, and says how many.
    fn to_front(&mut self, count: usize, chance: &mut Stream) -> usize {
        let len = usize::from(self.len);
        let count = count.min(len);
        for slot in 0..count {
            // A multiplication instead of a division; the bias is below one in a hundred million.
            let pick = (u64::from(chance.next_u32()) * (len - slot) as u64) >> 32;
            self.swap(slot, slot + pick as usize);
        }
        count
    }

    fn copy_front(&self, entries: &mut [Entry]) {
        for (entry, (&node, &age)) in entries.iter_mut().zip(self.nodes.iter().zip(&self.ages)) {
            *entry = (node, age);
        }
    }

    /// Takes what is new: into empty places first, then over the `given` ones at the front.
    fn merge(&mut self, me: u32, entries: &[Entry], mut given: usize) {
        for &(node, age) in entries {
            if node == me || self.nodes.contains(&node) {
                continue;
            }
            let slot = if usize::from(self.len) < CACHE {
                self.len += 1;
                usize::from(self.len) - 1
            } else if given > 0 {
                given -= 1;
                given
            } else {
                return;
            };
            self.nodes[slot] = node;
            self.ages[slot] = age;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.nodes.swap(one, other);
        self.ages.swap(one, other);
    }
}
