//! CYCLON as a plain loop over events: what a simulator written by hand for this one protocol would do.
//!
//! Every node shuffles each period, what it says takes its time to arrive, and a heap says what comes next. There is no other
//! protocol, nobody fails, nothing is counted, and nobody waits for an answer that does not come. ([`super::bare`] leaves
//! out time as well.)

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rand::RngExt;
use rand::seq::SliceRandom;
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::overlay::cyclon::Entry;

#[cfg(test)]
use super::bare::nodes;
use super::bare::{entry, take_oldest};
use super::cyclon::{CACHE, DELAY_MS, PERIOD, SHUFFLE};
use crate::streams::{Purpose, Stream, stream};

/// All nodes of a loop, and what is due.
pub struct Events {
    peers: Vec<Peer>,
    agenda: BinaryHeap<Reverse<Due>>,
    /// How many events there were: of two at one time the earlier made comes first.
    made: u64,
}

/// A node: its neighbours, what it has lent and to whom, and its own chance.
struct Peer {
    cache: Vec<Entry>,
    lent: Vec<Entry>,
    chance: Stream,
}

struct Due {
    at: Time,
    number: u64,
    what: What,
}

enum What {
    /// A node's next shuffle.
    Shuffle(usize),
    /// Entries for a node, from another.
    Request(usize, usize, Vec<Entry>),
    /// What a node gets for its own.
    Reply(usize, Vec<Entry>),
}

impl Events {
    /// Nodes that know these neighbours.
    pub fn new(nodes: u32, seed: u64, neighbours: impl Fn(u32) -> [u32; CACHE]) -> Events {
        let peer = |node| Peer {
            cache: neighbours(node).map(|other| entry(other as usize)).into(),
            lent: Vec::new(),
            chance: stream(seed, Purpose::Node, u64::from(node)),
        };
        let peers = (0..nodes).map(peer).collect();
        let mut events = Events { peers, agenda: BinaryHeap::new(), made: 0 };
        for node in 0..events.peers.len() {
            let first = events.peers[node].chance.random_range(0..PERIOD.as_micros());
            events.put(Time::from_micros(first), What::Shuffle(node));
        }
        events
    }

    /// Has all happen that is due before `until`.
    pub fn run_before(&mut self, until: Time) {
        while let Some(Reverse(Due { at, .. })) = self.agenda.peek()
            && *at < until
        {
            let Some(Reverse(Due { at, what, .. })) = self.agenda.pop() else { break };
            match what {
                What::Shuffle(me) => {
                    self.put(at + PERIOD, What::Shuffle(me));
                    let Some((partner, sent)) = self.peers[me].begin(me) else { continue };
                    self.send(at, me, What::Request(partner, me, sent));
                }
                What::Request(me, from, entries) => {
                    let peer = &mut self.peers[me];
                    let given = peer.choose(SHUFFLE);
                    peer.merge(me, entries, given.clone());
                    self.send(at, me, What::Reply(from, given));
                }
                What::Reply(me, entries) => {
                    let peer = &mut self.peers[me];
                    let lent = std::mem::take(&mut peer.lent);
                    peer.merge(me, entries, lent);
                }
            }
        }
    }

    fn send(&mut self, now: Time, from: usize, what: What) {
        let [least, most] = DELAY_MS.map(|ms| ms * 1_000);
        let delay = self.peers[from].chance.random_range(least..most);
        self.put(now + Span::from_micros(delay), what);
    }

    fn put(&mut self, at: Time, what: What) {
        self.made += 1;
        self.agenda.push(Reverse(Due { at, number: self.made, what }));
    }

    /// Whom each node knows.
    #[cfg(test)]
    pub fn known(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        self.peers.iter().map(|peer| nodes(&peer.cache))
    }
}

impl Peer {
    /// Takes the oldest out and lends it some of the others.
    fn begin(&mut self, me: usize) -> Option<(usize, Vec<Entry>)> {
        let partner = take_oldest(&mut self.cache)?;
        self.lent = self.choose(SHUFFLE - 1);
        let mut sent = vec![entry(me)];
        sent.extend_from_slice(&self.lent);
        Some((partner.0 as usize, sent))
    }

    /// A random choice of neighbours.
    fn choose(&mut self, count: usize) -> Vec<Entry> {
        let (chosen, _) = self.cache.partial_shuffle(&mut self.chance, count);
        chosen.to_vec()
    }

    /// Takes what is new: into empty places first, then over what was given for it.
    fn merge(&mut self, me: usize, entries: Vec<Entry>, mut given: Vec<Entry>) {
        for entry in entries {
            if entry.node == NodeId(me as u64) || self.cache.iter().any(|known| known.node == entry.node) {
                continue;
            }
            if self.cache.len() < CACHE {
                self.cache.push(entry);
                continue;
            }
            // What was given may have gone meanwhile, for something else.
            while let Some(gone) = given.pop() {
                if let Some(place) = self.cache.iter().position(|known| known.node == gone.node) {
                    self.cache[place] = entry;
                    break;
                }
            }
        }
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
