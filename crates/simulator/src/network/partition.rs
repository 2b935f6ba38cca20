//! Cuts of the network: for a time, messages across are lost, both ways or one.

use std::ops::Range;

use serde::Deserialize;
use shoal_model::Time;

use super::error::Error;
use super::quantity::{self, Odds};
use crate::streams::{Purpose, key, mix};

/// A cut as a scenario names it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What reports call it.
    pub name: String,
    /// When it begins, in seconds.
    pub from_s: f64,
    /// When it is over, in seconds.
    pub until_s: f64,
    /// The nodes on one side of it.
    pub group: Group,
    /// Which messages it stops.
    #[serde(default)]
    pub direction: Direction,
}

/// Some of the nodes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Group {
    /// This part of all nodes, drawn by seed.
    Share(f64),
    /// Nodes by index, first and last of each range.
    Ranges(Vec<(usize, usize)>),
    /// Nodes by index.
    Nodes(Vec<usize>),
}

/// Which of the messages that cross a cut are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// All: neither side hears the other.
    #[default]
    Both,
    /// Those out of the group: it hears the others, and they do not hear it.
    Out,
    /// Those into the group: the others hear it, and it does not hear them.
    In,
}

/// A cut with its nodes settled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// What reports call it.
    pub name: String,
    /// When it begins.
    pub from: Time,
    /// When it is over: messages sent from then on pass.
    pub until: Time,
    /// The nodes on one side.
    pub side: Side,
    /// Which messages it stops.
    pub direction: Direction,
}

/// A set of nodes that takes no memory per node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Those whose number, mixed with the key, is below the limit.
    Drawn {
        /// What tells one draw from another.
        key: u64,
        /// How small the mixed number must be.
        below: u64,
    },
    /// Those in one of these ranges, which are sorted and do not touch.
    Listed(Vec<Range<usize>>),
}

impl Config {
    /// The cut among so many nodes; `index` sets its draw apart from those of other cuts.
    pub(crate) fn build(&self, index: u64, nodes: usize, seed: u64) -> Result<Cut, Error> {
        let field = |name: &str| format!("network.partitions.{}.{name}", self.name);
        let from = quantity::instant(&field("from_s"), self.from_s)?;
        let until = quantity::instant(&field("until_s"), self.until_s)?;
        if until <= from {
            let what = format!("must be later than from_s, which is {}, not {}", self.from_s, self.until_s);
            return Err(Error::field(field("until_s"), what));
        }
        // Drawn cuts of the faults count up; these count down.
        let side = self.group.build(&field("group"), nodes, key(seed, Purpose::Partitions, !index))?;
        Ok(Cut { name: self.name.clone(), from, until, side, direction: self.direction })
    }
}

impl Group {
    pub(crate) fn build(&self, field: &str, nodes: usize, key: u64) -> Result<Side, Error> {
        let known = |node: usize| {
            let what = || format!("node {node} is not among the {nodes}, which count from 0");
            if node < nodes { Ok(node) } else { Err(Error::field(field, what())) }
        };
        match self {
            Group::Share(share) => {
                Odds::parse(field, *share)?;
                Ok(Side::draw(nodes, *share, key))
            }
            Group::Ranges(ranges) => {
                let ranges = ranges.iter().map(|&(first, last)| {
                    if first > last {
                        return Err(Error::field(field, format!("range {first} to {last} is backwards")));
                    }
                    Ok(known(first)?..known(last)? + 1)
                });
                Ok(Side::listed(ranges.collect::<Result<_, _>>()?))
            }
            Group::Nodes(list) => {
                let ranges = list.iter().map(|&node| Ok(known(node)?..node + 1));
                Ok(Side::listed(ranges.collect::<Result<_, Error>>()?))
            }
        }
    }
}

impl Side {
    /// This share of the nodes, to the nearest whole node. One node more changes at most one other's side.
    pub fn draw(nodes: usize, share: f64, key: u64) -> Side {
        let count = (nodes as f64 * share).round() as usize;
        let below = if count >= nodes {
            u64::MAX
        } else {
            let mut ranks: Vec<u64> = (0..nodes).map(|node| Side::rank(key, node)).collect();
            *ranks.select_nth_unstable(count).1
        };
        Side::Drawn { key, below }
    }

    fn listed(mut ranges: Vec<Range<usize>>) -> Side {
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Side::Listed(joined)
    }

    /// Whether this node is in it.
    pub fn has(&self, node: usize) -> bool {
        match self {
            Side::Drawn { key, below } => Side::rank(*key, node) < *below,
            Side::Listed(ranges) => {
                let after = ranges.partition_point(|range| range.start <= node);
                after > 0 && node < ranges[after - 1].end
            }
        }
    }

    fn rank(key: u64, node: usize) -> u64 {
        mix(key ^ node as u64)
    }
}

impl Cut {
    fn stops(&self, from: usize, to: usize) -> bool {
        match (self.side.has(from), self.side.has(to)) {
            (true, false) => self.direction != Direction::In,
            (false, true) => self.direction != Direction::Out,
            (true, true) | (false, false) => false,
        }
    }
}

/// All cuts of a world's life, by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    cuts: Vec<Cut>,
    /// From each of these instants to the next, these cuts hold; sorted.
    stretches: Vec<(Time, Vec<u32>)>,
}

impl Cuts {
    pub(crate) fn new(cuts: Vec<Cut>) -> Cuts {
        let mut edges: Vec<(Time, bool, u32)> = Vec::new();
        for (index, cut) in (0..).zip(&cuts) {
            edges.push((cut.from, true, index));
            edges.push((cut.until, false, index));
        }
        edges.sort_unstable();
        let mut holding: Vec<u32> = Vec::new();
        let mut stretches: Vec<(Time, Vec<u32>)> = Vec::new();
        for (at, begins, index) in edges {
            if begins {
                holding.push(index);
            } else {
                holding.retain(|&other| other != index);
            }
            match stretches.last_mut() {
                Some((last, held)) if *last == at => held.clone_from(&holding),
                _ => stretches.push((at, holding.clone())),
            }
        }
        Cuts { cuts, stretches }
    }

    pub(crate) fn into_vec(self) -> Vec<Cut> {
        self.cuts
    }

    /// When the last cut is over.
    pub(crate) fn end(&self) -> Time {
        self.stretches.last().map_or(Time::ZERO, |&(at, _)| at)
    }

    #[inline]
    pub(crate) fn stop(&self, now: Time, from: usize, to: usize) -> bool {
        !self.cuts.is_empty() && self.stop_now(now, from, to)
    }

    fn stop_now(&self, now: Time, from: usize, to: usize) -> bool {
        let after = self.stretches.partition_point(|&(at, _)| at <= now);
        let Some(stretch) = after.checked_sub(1) else { return false };
        self.stretches[stretch].1.iter().any(|&cut| self.cuts[cut as usize].stops(from, to))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(group: Group, direction: Direction) -> Config {
        Config { name: "atlantic".into(), from_s: 10.0, until_s: 20.0, group, direction }
    }

    fn cuts(group: Group, direction: Direction) -> Cuts {
        Cuts::new(vec![config(group, direction).build(0, 10, 1).unwrap()])
    }

    #[test]
    fn cut_holds_from_its_begin_to_just_before_its_end() {
        let cuts = cuts(Group::Ranges(vec![(0, 4)]), Direction::Both);
        let stopped = |micros: u64| cuts.stop(Time::from_micros(micros), 4, 5);
        assert!(!stopped(9_999_999));
        assert!(stopped(10_000_000));
        assert!(stopped(19_999_999));
        assert!(!stopped(20_000_000));
    }

    #[test]
    fn only_messages_across_a_symmetric_cut_are_lost_both_ways() {
        let cuts = cuts(Group::Nodes(vec![7, 2]), Direction::Both);
        let now = Time::from_secs(15);
        assert!(cuts.stop(now, 2, 3) && cuts.stop(now, 3, 2));
        assert!(!cuts.stop(now, 2, 7) && !cuts.stop(now, 3, 4));
    }

    #[test]
    fn one_way_cuts_leave_the_other_way_open() {
        let now = Time::from_secs(15);
        let out = cuts(Group::Nodes(vec![2]), Direction::Out);
        assert!(out.stop(now, 2, 3) && !out.stop(now, 3, 2));
        let into = cuts(Group::Nodes(vec![2]), Direction::In);
        assert!(!into.stop(now, 2, 3) && into.stop(now, 3, 2));
    }

    #[test]
    fn overlapping_cuts_each_hold_for_their_own_time() {
        let early = config(Group::Nodes(vec![0]), Direction::Both);
        let late = Config { from_s: 15.0, until_s: 30.0, group: Group::Nodes(vec![1]), ..early.clone() };
        let cuts = Cuts::new(vec![late.build(0, 10, 1).unwrap(), early.build(1, 10, 1).unwrap()]);
        let stopped = |secs, from| cuts.stop(Time::from_secs(secs), from, 5);
        assert_eq!([stopped(12, 0), stopped(17, 0), stopped(25, 0)], [true, true, false]);
        assert_eq!([stopped(12, 1), stopped(17, 1), stopped(25, 1)], [false, true, true]);
        assert_eq!(cuts.end(), Time::from_secs(30));
    }

    #[test]
    fn share_is_met_to_the_nearest_node() {
        for (nodes, share, count) in [(2, 0.5, 1), (10, 0.3, 3), (1_000, 0.25, 250), (7, 1.0, 7), (7, 0.0, 0)]
        {
            let side = Side::draw(nodes, share, 99);
            assert_eq!((0..nodes).filter(|&node| side.has(node)).count(), count, "{share} of {nodes}");
        }
    }

    #[test]
    fn one_more_node_changes_at_most_one_other_side() {
        for nodes in 2..60 {
            let (few, more) = (Side::draw(nodes, 0.3, 5), Side::draw(nodes + 1, 0.3, 5));
            assert!((0..nodes).filter(|&node| few.has(node) != more.has(node)).count() <= 1);
        }
    }

    #[test]
    fn nonsense_is_refused_by_name_of_the_cut() {
        let refused = |config: Config| config.build(0, 10, 1).unwrap_err().to_string();
        assert_eq!(
            refused(config(Group::Nodes(vec![10]), Direction::Both)),
            "network.partitions.atlantic.group: node 10 is not among the 10, which count from 0"
        );
        assert_eq!(
            refused(config(Group::Ranges(vec![(5, 2)]), Direction::Both)),
            "network.partitions.atlantic.group: range 5 to 2 is backwards"
        );
        assert_eq!(
            refused(config(Group::Share(2.0), Direction::Both)),
            "network.partitions.atlantic.group: must be a probability from 0 to 1, not 2"
        );
        assert_eq!(
            refused(Config { until_s: 10.0, ..config(Group::Share(0.5), Direction::Both) }),
            "network.partitions.atlantic.until_s: must be later than from_s, which is 10, not 10"
        );
    }

    proptest! {
        #[test]
        fn listed_side_has_what_was_listed(list in prop::collection::vec(0usize..50, 0..30)) {
            let side = Group::Nodes(list.clone()).build("group", 50, 0).unwrap();
            for node in 0..60 {
                prop_assert_eq!(side.has(node), list.contains(&node));
            }
        }
    }
}
