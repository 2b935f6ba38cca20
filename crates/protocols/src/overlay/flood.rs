//! Selective flooding: a word goes to a few random neighbours, who pass it on, and is handled once by each node.

use rand::RngExt;
use shoal_model::NodeId;

use crate::protocol::Chance;

/// The floods that a node remembers having handled. A flood lives for seconds; whoever has forgotten it meanwhile
/// handles it twice, and its hops end it all the same.
pub const SEEN_MAX: usize = 128;

/// The floods that were handled lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Of each the last bits, in whole blocks, a cache line each: many words that come by have been heard before, from
    /// somebody else, and these tell where to look.
    tags: [[u16; BLOCK]; SEEN_MAX / BLOCK],
    /// Numbers of floods, round and round.
    floods: Vec<u64>,
    next: usize,
}

/// Tags that are compared at once, without a branch for each.
const BLOCK: usize = 32;

impl Seen {
    /// Takes note of a flood; false if it was noted before.
    pub fn note(&mut self, flood: u64) -> bool {
        if self.remembers(flood) {
            return false;
        }
        let place = if self.floods.len() < SEEN_MAX {
            let place = self.floods.len();
            self.floods.push(flood);
            place
        } else {
            let place = self.next;
            self.floods[place] = flood;
            self.next = (place + 1) % SEEN_MAX;
            place
        };
        self.tags[place / BLOCK][place % BLOCK] = flood as u16;
        true
    }

    fn remembers(&self, flood: u64) -> bool {
        let tag = flood as u16;
        let is_here = |block: usize| {
            let tags = &self.tags[block];
            let may = tags.iter().fold(false, |found, &known| found | (known == tag));
            // The numbers lie elsewhere: only those are looked at whose tag is the same.
            may && (0..BLOCK)
                .any(|place| tags[place] == tag && self.floods.get(block * BLOCK + place) == Some(&flood))
        };
        // What was heard before was mostly heard just now.
        let last = (self.floods.len() + self.next).saturating_sub(1) / BLOCK;
        (0..self.tags.len()).map(|back| (last + self.tags.len() - back) % self.tags.len()).any(is_here)
    }

    /// Reads what the next word will be compared with.
    pub fn glance(&self) -> u64 {
        self.tags.iter().fold(0, |seen, tags| seen ^ u64::from(tags[0]))
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.floods.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.floods.is_empty()
    }
}

/// The most neighbours that are looked at.
const LOOKED_AT_MAX: usize = 64;

/// Draws whom to say something to: at most `fan_out` of these, but not who said it or who began it. They are written over
/// what is in `told`, since floods are frequent.
pub fn spread(
    neighbours: impl Iterator<Item = NodeId>,
    not: [NodeId; 2],
    fan_out: usize,
    chance: &mut Chance,
    told: &mut Vec<NodeId>,
) {
    told.clear();
    told.extend(neighbours.take(LOOKED_AT_MAX).filter(|node| !not.contains(node)));
    // If all are taken, none is drawn.
    if fan_out < told.len() {
        for drawn in 0..fan_out {
            let pick = chance.random_range(drawn as u32..told.len() as u32) as usize;
            told.swap(drawn, pick);
        }
        told.truncate(fan_out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::testing::cases;

    #[test]
    fn flood_is_handled_once_while_it_is_remembered() {
        let mut seen = Seen::default();
        assert!(seen.note(7) && !seen.note(7));
        for other in 100..100 + SEEN_MAX as u64 {
            assert!(seen.note(other));
        }
        assert_eq!(seen.len(), SEEN_MAX);
        assert!(seen.note(7), "long forgotten");
        assert!(!seen.note(100 + SEEN_MAX as u64 - 1));
    }

    #[test]
    fn floods_with_the_same_last_bits_are_told_apart() {
        let mut seen = Seen::default();
        for number in 0..SEEN_MAX as u64 {
            assert!(seen.note(number << 16 | 7));
        }
        assert!((0..SEEN_MAX as u64).all(|number| !seen.note(number << 16 | 7)));
        assert!(seen.note(1 << 40 | 7), "a new one");
        assert!(seen.note(7), "which took the place of the first");
    }

    proptest! {
        #![proptest_config(cases(200))]

        /// Against a plain list; few numbers, so that many come again, and some with the same last bits.
        #[test]
        fn the_last_floods_are_remembered_and_no_others(floods in prop::collection::vec((0u64..150, 0u64..2), 0..800)) {
            let mut seen = Seen::default();
            let mut naive: Vec<u64> = Vec::new();
            for (number, above) in floods {
                let flood = above << 32 | number;
                let new = !naive.contains(&flood);
                prop_assert_eq!(seen.note(flood), new);
                if new {
                    naive.push(flood);
                    naive.drain(..naive.len().saturating_sub(SEEN_MAX));
                }
                prop_assert_eq!(seen.len(), naive.len());
            }
        }
    }

    #[test]
    fn each_neighbour_hears_as_often_as_the_others_and_the_sender_never() {
        let mut chance = Chance::seed_from_u64(1);
        let mut heard = [0u32; 8];
        for _ in 0..10_000 {
            let mut told = Vec::new();
            let not = [NodeId(3), NodeId(5)];
            spread((0..8).map(NodeId), not, 2, &mut chance, &mut told);
            assert_eq!(told.len(), 2);
            assert_ne!(told[0], told[1]);
            told.into_iter().for_each(|node| heard[node.0 as usize] += 1);
        }
        assert_eq!((heard[3], heard[5]), (0, 0));
        // 20,000 over six: 3,333 each, five deviations are 270.
        let fair = heard.iter().enumerate().filter(|(node, _)| ![3, 5].contains(node));
        assert!(fair.clone().all(|(_, &count)| count.abs_diff(3_333) < 270), "{heard:?}");
    }

    #[test]
    fn all_hear_where_there_are_few() {
        let mut told = Vec::new();
        let mut chance = Chance::seed_from_u64(1);
        spread((1..4).map(NodeId), [NodeId(2); 2], 4, &mut chance, &mut told);
        assert_eq!(told, [NodeId(1), NodeId(3)]);
    }
}
