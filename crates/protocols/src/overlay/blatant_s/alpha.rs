//! The α-table: what a node remembers of others, as they said it themselves.

use shoal_model::{NodeId, Time};

use super::message::Known;

/// Known nodes with their neighbour lists, by id; of too many, the one heard of longest ago goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alpha {
    most: usize,
    known: Vec<Known>,
}

impl Alpha {
    pub fn new(most: u8) -> Alpha {
        Alpha { most: usize::from(most), known: Vec::new() }
    }

    /// Takes what is newer than what is known; tells whether a list is new.
    pub fn learn(&mut self, news: &Known) -> bool {
        match self.known.binary_search_by_key(&news.node, |known| known.node) {
            Ok(place) => {
                let known = &mut self.known[place];
                if known.at >= news.at {
                    return false;
                }
                known.at = news.at;
                let changed = known.neighbours != news.neighbours;
                if changed {
                    known.neighbours = news.neighbours.clone();
                }
                changed
            }
            Err(place) if self.known.len() < self.most => {
                self.known.insert(place, news.clone());
                true
            }
            Err(place) => self.replace_oldest(place, news),
        }
    }

    /// Puts a new one before a place, and moves only what lies between that and the one that goes.
    fn replace_oldest(&mut self, place: usize, news: &Known) -> bool {
        let oldest = self.known.iter().enumerate().min_by_key(|(_, known)| known.at);
        let Some((oldest, known)) = oldest else { return false };
        if known.at >= news.at {
            return false;
        }
        let place = if oldest < place {
            self.known[oldest..place].rotate_left(1);
            place - 1
        } else {
            self.known[place..=oldest].rotate_right(1);
            place
        };
        self.known[place] = news.clone();
        true
    }

    /// A node that is gone.
    pub fn forget(&mut self, node: NodeId) -> Option<Known> {
        let place = self.known.binary_search_by_key(&node, |known| known.node).ok()?;
        Some(self.known.remove(place))
    }

    pub fn get(&self, node: NodeId) -> Option<&Known> {
        let place = self.known.binary_search_by_key(&node, |known| known.node).ok()?;
        Some(&self.known[place])
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Known> {
        self.known.iter()
    }

    /// Whether a node has more neighbours than those known here have on average.
    pub fn exceeds_mean(&self, degree: usize) -> bool {
        let sum: usize = self.known.iter().map(|known| known.neighbours.len()).sum();
        degree * self.known.len() > sum
    }

    /// What nobody has confirmed since then.
    pub fn drop_before(&mut self, at: Time) {
        self.known.retain(|known| known.at >= at);
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
