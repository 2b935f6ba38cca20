//! Jobs in the order in which they were accepted: a list, which takes half the room of a tree.
//!
//! Nearly all come last, and those that are forgotten are among the first: the list moves a few of its ends for that.

use std::collections::VecDeque;

use super::history::Cursor;

/// Jobs by time; each once.
#[derive(Debug, Default)]
pub(super) struct ByTime(VecDeque<Cursor>);

/// From all at once: one by one and in another order, each would move many.
impl FromIterator<Cursor> for ByTime {
    fn from_iter<I: IntoIterator<Item = Cursor>>(cursors: I) -> ByTime {
        let mut cursors = Vec::from_iter(cursors);
        cursors.sort_unstable();
        cursors.dedup();
        ByTime(cursors.into())
    }
}

impl ByTime {
    pub fn insert(&mut self, cursor: Cursor) {
        let Err(place) = self.0.binary_search(&cursor) else { return };
        if self.0.len() == self.0.capacity() {
            // Twice as much room would be megabytes of nothing.
            self.0.reserve_exact(self.0.len() / 8 + 64);
        }
        self.0.insert(place, cursor);
    }

    pub fn remove(&mut self, cursor: &Cursor) {
        if let Ok(place) = self.0.binary_search(cursor) {
            self.0.remove(place);
        }
    }

    /// Those before one, the last first.
    pub fn before(&self, end: Cursor) -> impl Iterator<Item = Cursor> {
        let count = self.0.partition_point(|cursor| *cursor < end);
        self.0.range(..count).rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shoal_model::{JobId, Time};

    use super::*;

    #[test]
    fn list_by_time_is_an_ordered_set() {
        let (mut list, mut set) = (ByTime::default(), BTreeSet::new());
        let mut next = 1_u64;
        for round in 0..3_000_u64 {
            // Any numbers will do, as long as some come again.
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let cursor = Cursor(Time::from_secs((next >> 40) % 40), JobId::from_number((next >> 50) % 20));
            if round % 3 == 2 {
                list.remove(&cursor);
                set.remove(&cursor);
            } else {
                list.insert(cursor);
                set.insert(cursor);
            }
            assert!(list.before(cursor).eq(set.range(..cursor).rev().copied()), "round {round}");
        }
        assert!(set.len() > 100);
        let mut mixed: Vec<Cursor> = set.iter().chain(&set).copied().collect();
        mixed.sort_by_key(|cursor| cursor.1);
        assert_eq!(ByTime::from_iter(mixed).0, list.0, "made at once");
    }
}
