//! What holds for single nodes, each time for a while, all of it known from the start.

use std::collections::BTreeMap;

use shoal_model::Time;

/// A while during which something holds for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spell<V> {
    /// The node.
    pub node: usize,
    /// When it begins.
    pub from: Time,
    /// When it is over.
    pub until: Time,
    /// What holds; of several at a time, the largest counts.
    pub value: V,
}

/// All spells of a world's life.
///
/// Asked for every message of a world with slow nodes, hence flat: two reads find a node's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable<V> {
    /// From each of these instants to the next of the same node, this holds; sorted by node and time.
    stretches: Vec<(Time, Option<V>)>,
    /// Where the stretches of each node begin, and at the end where the last ones end; empty if there are none.
    begins: Vec<u32>,
    end: Time,
}

impl<V> Default for Timetable<V> {
    fn default() -> Timetable<V> {
        Timetable { stretches: Vec::new(), begins: Vec::new(), end: Time::ZERO }
    }
}

impl<V: Copy + Ord> Timetable<V> {
    /// The timetable of these spells, in any order.
    pub fn new(spells: impl IntoIterator<Item = Spell<V>>) -> Timetable<V> {
        let mut by_node: BTreeMap<usize, Vec<Spell<V>>> = BTreeMap::new();
        for spell in spells {
            by_node.entry(spell.node).or_default().push(spell);
        }
        let mut table = Timetable::default();
        for (node, spells) in by_node {
            table.begins.resize(node + 1, table.stretches.len() as u32);
            table.end = spells.iter().map(|spell| spell.until).fold(table.end, Time::max);
            table.stretches.extend(stretches(spells));
        }
        if !table.begins.is_empty() {
            table.begins.push(table.stretches.len() as u32);
        }
        table
    }

    /// What holds for this node now, if anything.
    #[inline]
    pub fn at(&self, node: usize, now: Time) -> Option<V> {
        if now >= self.end {
            return None;
        }
        let &[begin, end] = self.begins.get(node..node + 2)? else { return None };
        let stretches = &self.stretches[begin as usize..end as usize];
        let after = stretches.partition_point(|&(from, _)| from <= now);
        stretches[after.checked_sub(1)?].1
    }

    /// When the last spell is over.
    pub fn end(&self) -> Time {
        self.end
    }
}

fn stretches<V: Copy + Ord>(mut spells: Vec<Spell<V>>) -> Vec<(Time, Option<V>)> {
    let mut edges: Vec<Time> = spells.iter().flat_map(|spell| [spell.from, spell.until]).collect();
    edges.sort_unstable();
    edges.dedup();
    spells.sort_by_key(|spell| spell.from);

    let mut spells = spells.into_iter().peekable();
    let mut holding: Vec<Spell<V>> = Vec::new();
    edges
        .into_iter()
        .map(|at| {
            while let Some(spell) = spells.next_if(|spell| spell.from <= at) {
                holding.push(spell);
            }
            holding.retain(|spell| at < spell.until);
            (at, holding.iter().map(|spell| spell.value).max())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spell_holds_from_its_begin_to_just_before_its_end() {
        let spell = Spell { node: 1, from: Time::from_secs(10), until: Time::from_secs(20), value: 7 };
        let table = Timetable::new([spell]);
        let at = |micros| table.at(1, Time::from_micros(micros));
        assert_eq!(at(9_999_999), None);
        assert_eq!(at(10_000_000), Some(7));
        assert_eq!(at(19_999_999), Some(7));
        assert_eq!(at(20_000_000), None);
        assert_eq!(table.at(2, Time::from_secs(15)), None);
        assert_eq!(table.end(), Time::from_secs(20));
    }

    proptest! {
        #[test]
        fn the_largest_of_what_holds_counts(
            spells in prop::collection::vec((0usize..3, 0u64..30, 0u64..10, 0u32..5), 0..20),
        ) {
            let spells: Vec<Spell<u32>> = spells
                .into_iter()
                .map(|(node, from, length, value)| {
                    Spell { node, from: Time::from_secs(from), until: Time::from_secs(from + length), value }
                })
                .collect();
            let table = Timetable::new(spells.clone());
            for node in 0..3 {
                for now in (0..45).map(Time::from_secs) {
                    let holds = |spell: &&Spell<u32>| spell.node == node && spell.from <= now && now < spell.until;
                    let expected = spells.iter().filter(holds).map(|spell| spell.value).max();
                    prop_assert_eq!(table.at(node, now), expected);
                }
            }
        }
    }
}
