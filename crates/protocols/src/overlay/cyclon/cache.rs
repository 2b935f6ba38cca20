//! A node's cache: who is known, since how long, and what they said of themselves.
//!
//! The search for duplicates is the hot loop of the whole simulator, and a million caches have to fit in memory. So
//! slots lie in groups of four, ids beside ids and ages beside ages: one allocation without padding, and four
//! comparisons at a time without a branch. Sets of slots are bit masks.

use rand::RngExt;
use shoal_model::NodeId;

use super::Entry;
use crate::protocol::Chance;

/// The most entries that a cache can have: one per bit of a mask.
pub const CACHE_MAX: usize = 64;

/// Slots of a group.
const GROUP: usize = 4;

/// A set of slots.
pub type Slots = u64;

/// A node's cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cache<X> {
    /// An empty slot names the node itself, so that one search finds self and duplicates.
    groups: Box<[Group<X>]>,
    me: NodeId,
    full: Slots,
    len: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group<X> {
    nodes: [NodeId; GROUP],
    ages: [u16; GROUP],
    payloads: [X; GROUP],
}

impl<X: Clone + Default> Cache<X> {
    /// An empty cache of the node `me` with this many slots.
    pub fn new(me: NodeId, len: u8) -> Cache<X> {
        let group = Group { nodes: [me; GROUP], ages: [0; GROUP], payloads: Default::default() };
        Cache { groups: vec![group; usize::from(len).div_ceil(GROUP)].into(), me, full: 0, len }
    }

    /// Whose cache this is.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The slots that hold a neighbour.
    pub fn full(&self) -> Slots {
        self.full
    }

    /// The slots that hold none.
    pub fn empty(&self) -> Slots {
        !self.full & (Slots::MAX >> (CACHE_MAX - self.len()))
    }

    /// How many neighbours there are.
    pub fn degree(&self) -> usize {
        self.full.count_ones() as usize
    }

    /// Whether this is a neighbour; of the node itself it says nothing.
    pub fn contains(&self, node: NodeId) -> bool {
        contains(&self.groups, node)
    }

    /// Where this neighbour is.
    pub fn find(&self, node: NodeId) -> Option<usize> {
        bits(self.full).find(|&slot| self.node(slot) == node)
    }

    /// The neighbour in a slot.
    pub fn node(&self, slot: usize) -> NodeId {
        self.groups[slot / GROUP].nodes[slot % GROUP]
    }

    /// A copy of what a slot holds.
    pub fn entry(&self, slot: usize) -> Entry<X> {
        entry(&self.groups, slot)
    }

    /// Puts an entry into a slot, in place of what it held.
    pub fn put(&mut self, slot: usize, entry: Entry<X>) {
        self.open().put(slot, entry);
    }

    /// The cache, laid open to be changed in many places.
    pub fn open(&mut self) -> Open<'_, X> {
        let all = Slots::MAX >> (CACHE_MAX - self.len());
        let mut filter = Filter::default();
        for group in &self.groups {
            for &node in &group.nodes {
                filter.add(node);
            }
        }
        Open { groups: &mut self.groups, full: &mut self.full, all, filter }
    }

    /// Empties a slot.
    pub fn clear(&mut self, slot: usize) {
        let Group { nodes, payloads, .. } = &mut self.groups[slot / GROUP];
        nodes[slot % GROUP] = self.me;
        payloads[slot % GROUP] = X::default();
        self.full &= !(1 << slot);
    }

    /// All entries grow older by a shuffle.
    pub fn grow_older(&mut self) {
        for group in &mut self.groups {
            for age in &mut group.ages {
                *age = age.saturating_add(1);
            }
        }
    }

    /// The slot of the oldest entry; of several as old, the first.
    pub fn oldest(&self) -> Option<usize> {
        let mut oldest = 0;
        for (index, group) in self.groups.iter().enumerate() {
            for (lane, &age) in group.ages.iter().enumerate() {
                let slot = index * GROUP + lane;
                // Age first, then the lowest slot, in one number: the greatest of all is found without a branch.
                let key = (u32::from(age) + 1) << 6 | (CACHE_MAX - 1 - slot) as u32;
                oldest = oldest.max(if self.full >> slot & 1 != 0 { key } else { 0 });
            }
        }
        (oldest != 0).then(|| CACHE_MAX - 1 - (oldest as usize & (CACHE_MAX - 1)))
    }

    /// Copies of what these slots hold, behind `first` if there is one.
    pub fn copy(&self, first: Option<Entry<X>>, mut slots: Slots) -> Box<[Entry<X>]> {
        let count = slots.count_ones() as usize;
        // Made to measure: growing a list by halves and trimming it costs more than the rest of an answer.
        let mut copies = Vec::with_capacity(count + usize::from(first.is_some()));
        copies.extend(first);
        copies.extend((0..count).map(|_| {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            entry(&self.groups, slot)
        }));
        copies.into_boxed_slice()
    }

    /// A random set of at most `count` of these slots.
    pub fn sample(&self, slots: Slots, count: usize, chance: &mut Chance) -> Slots {
        let mut left = count;
        if left >= slots.count_ones() as usize {
            return slots;
        }
        let mut chosen = 0;
        // Most slots are there to be chosen, so few draws are in vain; to make a list of them would cost more.
        while left > 0 {
            let drawn = 1 << chance.random_range(0..u32::from(self.len)) & slots & !chosen;
            chosen |= drawn;
            left -= usize::from(drawn != 0);
        }
        chosen
    }

    /// Reads all of it; what it returns means nothing.
    pub fn glance(&self) -> u64 {
        self.groups.iter().fold(self.full, |seen, group| seen ^ group.nodes[0].0)
    }
}

/// A cache, laid open to be changed in many places: what each change would have to look up again is looked up once.
pub struct Open<'a, X> {
    groups: &'a mut [Group<X>],
    full: &'a mut Slots,
    all: Slots,
    /// Tells most strangers from neighbours at a glance.
    filter: Filter,
}

impl<X: Clone> Open<'_, X> {
    /// The slots that hold no neighbour.
    pub fn empty(&self) -> Slots {
        self.all & !*self.full
    }

    /// Whether this is a neighbour; of the node itself it says nothing.
    pub fn contains(&self, node: NodeId) -> bool {
        self.filter.may_contain(node) && contains(self.groups, node)
    }

    /// The neighbour in a slot.
    pub fn node(&self, slot: usize) -> NodeId {
        self.groups[slot / GROUP].nodes[slot % GROUP]
    }

    /// Puts an entry into a slot, in place of what it held.
    pub fn put(&mut self, slot: usize, entry: Entry<X>) {
        let Group { nodes, ages, payloads } = &mut self.groups[slot / GROUP];
        let lane = slot % GROUP;
        self.filter.add(entry.node);
        nodes[lane] = entry.node;
        ages[lane] = entry.age;
        payloads[lane] = entry.payload;
        *self.full |= 1 << slot;
    }
}

fn entry<X: Clone>(groups: &[Group<X>], slot: usize) -> Entry<X> {
    let Group { nodes, ages, payloads } = &groups[slot / GROUP];
    let lane = slot % GROUP;
    Entry { node: nodes[lane], age: ages[lane], payload: payloads[lane].clone() }
}

fn contains<X>(groups: &[Group<X>], node: NodeId) -> bool {
    // All four of a group, whatever the first one says: a branch costs more than a comparison.
    let found = |group: &Group<X>| group.nodes.iter().fold(false, |found, &known| found | (known == node));
    groups.iter().any(found)
}

/// A set of nodes that may find some in it that are not, but never the other way round.
#[derive(Clone, Copy, Debug, Default)]
struct Filter([u64; 4]);

impl Filter {
    fn add(&mut self, node: NodeId) {
        self.0[(node.0 >> 6 & 3) as usize] |= 1 << (node.0 & 63);
    }

    fn may_contain(&self, node: NodeId) -> bool {
        self.0[(node.0 >> 6 & 3) as usize] >> (node.0 & 63) & 1 != 0
    }
}

/// The slots of a set, lowest first.
pub fn bits(mut slots: Slots) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = (slots != 0).then(|| slots.trailing_zeros() as usize)?;
        slots &= slots - 1;
        Some(slot)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::testing::cases;

    fn aged(node: u64, age: u16) -> Entry {
        Entry { node: NodeId(node), age, payload: () }
    }

    /// Each pair of slots as often as any other: 45 pairs, 90,000 draws, 2,000 each within five deviations.
    #[test]
    fn samples_are_fair() {
        let cache = Cache::<()>::new(NodeId(1), 20);
        let slots = 0b1010_1110_0100_1001_1000;
        let places: Vec<usize> = bits(slots).collect();
        let mut chance = Chance::seed_from_u64(7);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..90_000 {
            let drawn = cache.sample(slots, 2, &mut chance);
            assert!(drawn & !slots == 0 && drawn.count_ones() == 2);
            *seen.entry(drawn).or_insert(0) += 1;
        }
        let pairs = places.len() * (places.len() - 1) / 2;
        assert_eq!(seen.len(), pairs);
        let (mean, deviation) = (90_000 / pairs, (90_000.0 / pairs as f64).sqrt());
        assert!(
            seen.values().all(|&count: &usize| (count.abs_diff(mean) as f64) < 5.0 * deviation),
            "{seen:?}"
        );
    }

    proptest! {
        #![proptest_config(cases(200))]

        /// Against a plain list of places.
        #[test]
        fn a_cache_is_a_list_of_places(
            len in 1u8..=64,
            steps in prop::collection::vec((0usize..64, 2u64..40, 0u16..50, 0u8..4), 0..80),
        ) {
            let me = NodeId(1);
            let mut cache = Cache::new(me, len);
            let mut naive: Vec<Option<Entry>> = vec![None; usize::from(len)];
            for (slot, node, age, what) in steps {
                let slot = slot % usize::from(len);
                match what {
                    0 => {
                        cache.clear(slot);
                        naive[slot] = None;
                    }
                    1 => {
                        cache.grow_older();
                        naive.iter_mut().flatten().for_each(|entry| entry.age += 1);
                    }
                    _ => {
                        cache.put(slot, aged(node, age));
                        naive[slot] = Some(aged(node, age));
                    }
                }
                let kept: Vec<Entry> = bits(cache.full()).map(|slot| cache.entry(slot)).collect();
                prop_assert_eq!(&kept, &naive.iter().flatten().cloned().collect::<Vec<_>>());
                prop_assert_eq!(cache.degree(), kept.len());
                prop_assert_eq!(cache.empty().count_ones() as usize, usize::from(len) - kept.len());
                let known = |node| kept.iter().any(|entry| entry.node == node);
                for node in (2..40).map(NodeId) {
                    prop_assert_eq!(cache.contains(node), known(node));
                    prop_assert_eq!(cache.open().contains(node), known(node));
                    let place = naive.iter().position(|entry| entry.as_ref().is_some_and(|e| e.node == node));
                    prop_assert_eq!(cache.find(node), place);
                }
                let age = |slot: &usize| naive[*slot].as_ref().map(|entry| entry.age);
                let oldest = (0..naive.len()).filter(|slot| age(slot).is_some());
                prop_assert_eq!(cache.oldest(), oldest.rev().max_by_key(age));
            }
        }
    }
}
