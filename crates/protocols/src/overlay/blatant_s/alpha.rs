//! The α-table: what a node remembers of others, as they said it themselves.

use shoal_model::{NodeId, Time};

use super::message::Known;

/// Known nodes with their neighbour lists, by id; of too many, the one heard of longest ago goes.
///
/// Ants tell of ten nodes at each step, most of them unknown: what is known stays in its slot until it goes, only the
/// numbers of slots are moved about, and ids lie close together, where they are looked through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alpha {
    most: u8,
    slots: Vec<Known>,
    /// The ids of all slots.
    ids: Vec<NodeId>,
    /// All slots, by id; and by when they were said, those of one time by id.
    by_id: Vec<u8>,
    by_age: Vec<u8>,
}

impl Alpha {
    pub fn new(most: u8) -> Alpha {
        Alpha { most, slots: Vec::new(), ids: Vec::new(), by_id: Vec::new(), by_age: Vec::new() }
    }

    /// Takes what is newer than what is known; tells whether a list is new.
    pub fn learn(&mut self, news: &Known) -> bool {
        if let Some(slot) = self.slot_of(news.node) {
            return self.renew(slot, news);
        }
        if self.slots.len() < usize::from(self.most) {
            let slot = self.slots.len() as u8;
            self.slots.push(news.clone());
            self.ids.push(news.node);
            self.put(slot);
            return true;
        }
        let oldest = self.by_age.first().copied();
        let Some(slot) = oldest.filter(|&slot| self.slots[usize::from(slot)].at < news.at) else {
            return false;
        };
        take(&mut self.by_age, slot);
        take(&mut self.by_id, slot);
        self.slots[usize::from(slot)] = news.clone();
        self.ids[usize::from(slot)] = news.node;
        self.put(slot);
        true
    }

    fn renew(&mut self, slot: u8, news: &Known) -> bool {
        let known = &mut self.slots[usize::from(slot)];
        if known.at >= news.at {
            return false;
        }
        known.at = news.at;
        let changed = known.neighbours != news.neighbours;
        if changed {
            known.neighbours = news.neighbours.clone();
        }
        take(&mut self.by_age, slot);
        self.put_by_age(slot);
        changed
    }

    /// Gives a slot its place in both orders.
    fn put(&mut self, slot: u8) {
        let id = |slot: u8| self.ids[usize::from(slot)];
        let place = self.by_id.partition_point(|&other| id(other) < id(slot));
        self.by_id.insert(place, slot);
        self.put_by_age(slot);
    }

    /// Most news are the newest of all.
    fn put_by_age(&mut self, slot: u8) {
        let age = |slot: u8| {
            let known = &self.slots[usize::from(slot)];
            (known.at, known.node)
        };
        let older = self.by_age.iter().rposition(|&other| age(other) < age(slot));
        self.by_age.insert(older.map_or(0, |older| older + 1), slot);
    }

    fn slot_of(&self, node: NodeId) -> Option<u8> {
        // All are compared, without a branch for each: most are not there.
        let there = self.ids.iter().fold(false, |there, &id| there | (id == node));
        let slot = there.then(|| self.ids.iter().position(|&id| id == node))??;
        Some(slot as u8)
    }

    /// A node that is gone.
    pub fn forget(&mut self, node: NodeId) -> Option<Known> {
        let slot = self.slot_of(node)?;
        take(&mut self.by_id, slot);
        take(&mut self.by_age, slot);
        self.ids.swap_remove(usize::from(slot));
        let known = self.slots.swap_remove(usize::from(slot));
        // The last one has come into its place.
        let last = self.slots.len() as u8;
        for number in self.by_id.iter_mut().chain(&mut self.by_age).filter(|number| **number == last) {
            *number = slot;
        }
        Some(known)
    }

    pub fn get(&self, node: NodeId) -> Option<&Known> {
        Some(&self.slots[usize::from(self.slot_of(node)?)])
    }

    /// All, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Known> {
        self.by_id.iter().map(|&slot| &self.slots[usize::from(slot)])
    }

    /// Whether a node has more neighbours than those known here have on average.
    pub fn exceeds_mean(&self, degree: usize) -> bool {
        let sum: usize = self.slots.iter().map(|known| known.neighbours.len()).sum();
        degree * self.slots.len() > sum
    }

    /// What nobody has confirmed since then.
    pub fn drop_before(&mut self, at: Time) {
        while let Some(oldest) = self.by_age.first().map(|&slot| &self.slots[usize::from(slot)])
            && oldest.at < at
        {
            self.forget(oldest.node);
        }
    }
}

/// Takes a slot out of an order.
fn take(order: &mut Vec<u8>, slot: u8) {
    if let Some(place) = order.iter().position(|&other| other == slot) {
        order.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shared::Shared;
    use crate::testing::cases;

    fn known(node: u64, at: u64) -> Known {
        Known { node: NodeId(node), at: Time::from_secs(at), neighbours: Shared::new(vec![NodeId(at)]) }
    }

    #[test]
    fn oldest_makes_room_wherever_it_is_and_the_order_stays() {
        // The one that goes comes after the new one, before it, and is next to it on either side.
        for (gone, new) in [(8, 1), (2, 9), (4, 5), (6, 5), (2, 1), (8, 9)] {
            let mut alpha = Alpha::new(4);
            for node in [2, 4, 6, 8] {
                assert!(alpha.learn(&known(node, if node == gone { 10 } else { 20 + node })));
            }
            assert!(!alpha.learn(&known(new, 10)), "no newer than the oldest");
            assert!(alpha.learn(&known(new, 11)));
            let mut expected: Vec<u64> =
                [2, 4, 6, 8].into_iter().filter(|&node| node != gone).chain([new]).collect();
            expected.sort_unstable();
            assert_eq!(alpha.iter().map(|known| known.node.0).collect::<Vec<_>>(), expected);
        }
    }

    /// The same as a plain list by id.
    #[derive(Default)]
    struct Plain(Vec<Known>);

    impl Plain {
        fn learn(&mut self, news: &Known, most: usize) -> bool {
            let Plain(all) = self;
            if let Some(known) = all.iter_mut().find(|known| known.node == news.node) {
                let changed = known.at < news.at && known.neighbours != news.neighbours;
                if known.at < news.at {
                    *known = news.clone();
                }
                return changed;
            }
            if all.len() == most {
                let oldest = all.iter().min_by_key(|known| (known.at, known.node)).expect("some").clone();
                if oldest.at >= news.at {
                    return false;
                }
                all.retain(|known| *known != oldest);
            }
            all.push(news.clone());
            all.sort_by_key(|known| known.node);
            true
        }
    }

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn table_holds_what_a_plain_list_would(
            steps in prop::collection::vec((0u8..20, 0u64..12, 0u64..30), 0..120),
            most in 1u8..8,
        ) {
            let (mut alpha, mut plain) = (Alpha::new(most), Plain::default());
            for (kind, node, at) in steps {
                match kind {
                    0 => {
                        let gone = plain.0.iter().position(|known| known.node == NodeId(node));
                        prop_assert_eq!(alpha.forget(NodeId(node)), gone.map(|place| plain.0.remove(place)));
                    }
                    1 => {
                        alpha.drop_before(Time::from_secs(at));
                        plain.0.retain(|known| known.at >= Time::from_secs(at));
                    }
                    _ => {
                        let news = known(node, at);
                        prop_assert_eq!(alpha.learn(&news), plain.learn(&news, usize::from(most)));
                    }
                }
                prop_assert_eq!(alpha.iter().cloned().collect::<Vec<_>>(), plain.0.clone());
                prop_assert_eq!(alpha.get(NodeId(node)), plain.0.iter().find(|known| known.node == NodeId(node)));
            }
        }
    }
}
