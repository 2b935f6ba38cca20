//! Selective flooding: a word goes to a few random neighbours, who pass it on, and is handled once by each node.

use rand::RngExt;
use shoal_model::NodeId;

use crate::protocol::Chance;

/// The floods that a node remembers having handled. A flood lives for seconds; whoever has forgotten it meanwhile
/// handles it twice, and its hops end it all the same.
pub const SEEN_MAX: usize = 128;

/// The floods that were handled lately.
///
/// Those whose numbers end in the same eight bits form a chain, from the newest to the oldest: most are as short as one, so a
/// word that comes by is compared with one number or two, and not with all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Where the newest flood of each chain lies; or somebody of another chain who has taken its place.
    newest: [u8; CHAINS],
    /// Where the one before each in its chain lies. What has been written over since is newer than whoever points at it.
    before: [u8; SEEN_MAX],
    /// Numbers of floods, round and round.
    floods: Vec<u64>,
    next: usize,
}

const CHAINS: usize = 256;
/// The end of a chain.
const NOWHERE: u8 = u8::MAX;
const _: () = assert!(SEEN_MAX <= NOWHERE as usize);

impl Default for Seen {
    fn default() -> Seen {
        Seen { newest: [NOWHERE; CHAINS], before: [NOWHERE; SEEN_MAX], floods: Vec::new(), next: 0 }
    }
}

impl Seen {
    /// Takes note of a flood; false if it was noted before.
    pub fn note(&mut self, flood: u64) -> bool {
        if self.remembers(flood) {
            return false;
        }
        let place = self.next;
        match self.floods.get_mut(place) {
            Some(oldest) => *oldest = flood,
            None => self.floods.push(flood),
        }
        self.next = (place + 1) % SEEN_MAX;
        let newest = &mut self.newest[flood as usize % CHAINS];
        self.before[place] = *newest;
        *newest = place as u8;
        true
    }

    fn remembers(&self, flood: u64) -> bool {
        let age = |place: u8| (self.next + SEEN_MAX - 1 - usize::from(place)) % SEEN_MAX;
        let mut place = self.newest[flood as usize % CHAINS];
        let mut older_than = None;
        // A chain ends where it leads to somebody newer or of another chain, who has taken the place of one that is forgotten.
        while let Some(&known) = self.floods.get(usize::from(place))
            && (known ^ flood).is_multiple_of(CHAINS as u64)
            && older_than.is_none_or(|newer| age(place) > newer)
        {
            if known == flood {
                return true;
            }
            older_than = Some(age(place));
            place = self.before[usize::from(place)];
        }
        false
    }

    /// Reads where to look for what the next word will be compared with.
    pub fn glance(&self) -> u64 {
        let lines = self.newest.as_chunks::<64>().0;
        lines.iter().fold(0, |seen, line| seen ^ u64::from(line[0]))
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

        /// Against a plain list; few numbers, so that many come again, with the same last bits as few or many others.
        #[test]
        fn the_last_floods_are_remembered_and_no_others(
            floods in prop::collection::vec((any::<u64>(), any::<u64>()), 0..800),
            (ends, above) in prop::sample::select(vec![(150, 2), (3, 90), (256, 1), (40, 9)]),
        ) {
            let mut seen = Seen::default();
            let mut naive: Vec<u64> = Vec::new();
            for (number, high) in floods {
                let flood = ((high % above) << 32) | (number % ends);
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
