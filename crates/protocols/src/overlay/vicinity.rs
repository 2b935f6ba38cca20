//! VICINITY: keeps in every node links to those that are nearest to it by some metric.
//!
//! ```text
//! P, once per period         the oldest of its view, Q
//!     │── Ask ─────────────────▶│  myself, and those of mine that are nearest to you
//!     │◀───────────────── Tell ─│  likewise; both keep the nearest to themselves of all they know
//! ```
//!
//! Paper: Voulgaris, van Steen, 2005 and 2013. It runs on CYCLON, whose random entries are candidates in every step and
//! keep clusters from parting; any number of instances run side by side, each with a metric of its own. Done otherwise:
//! a partner that answered is a candidate again; the sender's own entry is always among those sent, since the answer
//! depends on it. [`Rule::TMan`] is T-Man (Jelasity, Montresor, Babaoglu), for comparison: a random one of the nearest
//! is asked, entries have no age, and whoever does not answer stays until others push it out.
//!
//! This is the bookkeeping of one node and one metric; timers and messages are its host's ([`super::helpers`]).

use std::cmp::Reverse;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::NodeId;

use super::cyclon::{Entry, Payload};
use crate::protocol::Chance;

/// The most entries that a view can have.
pub const VIEW_MAX: u8 = 128;

/// How far one node is from another; the less the better. It need not be symmetric.
pub trait Metric<X> {
    /// How far `to` is from `from`.
    fn distance(&self, from: &X, to: &X) -> u64;
}

/// Which protocol keeps the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// VICINITY.
    #[default]
    Vicinity,
    /// T-Man.
    TMan,
}

/// What it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Entries in a view (K_v); public configurations of the authors' simulator have 20.
    pub view: u8,
    /// Entries that are sent each way (g), the sender's own included; 10 there, which makes the paper's 1,280 bytes.
    pub gossip: u8,
    /// Whether it is VICINITY or T-Man.
    pub rule: Rule,
    /// Of a thousand exchanges so many are with a random node instead of the oldest of the view; off in 2005.
    pub random_per_mille: u16,
}

impl Default for Config {
    fn default() -> Config {
        Config { view: 20, gossip: 10, rule: Rule::Vicinity, random_per_mille: 0 }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No entries, or too many.
    #[error("view = {0}: must be 1 to {VIEW_MAX}")]
    View(u8),
    /// Nothing is sent, or more than anybody can know.
    #[error("gossip = {0}: must be 1 to {VIEW_MAX}")]
    Gossip(u8),
    /// More than always.
    #[error("random_per_mille = {0}: must be at most 1000")]
    Random(u16),
}

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        let within = |entries: u8| (1..=VIEW_MAX).contains(&entries);
        if !within(self.view) {
            return Err(ConfigError::View(self.view));
        }
        if !within(self.gossip) {
            return Err(ConfigError::Gossip(self.gossip));
        }
        if self.random_per_mille > 1_000 {
            return Err(ConfigError::Random(self.random_per_mille));
        }
        Ok(())
    }
}

/// Whom to send what.
pub type Question<X> = (NodeId, Box<[Entry<X>]>);

/// T-Man asks a random one of so many nearest (ψ).
const NEAREST_ASKED: usize = 10;

/// One node's view by one metric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vicinity<X, M> {
    config: Config,
    metric: M,
    me: NodeId,
    /// The nearest first.
    view: Vec<Entry<X>>,
    /// Whom this node awaits an answer from.
    partner: Option<NodeId>,
}

impl<X: Payload, M: Metric<X>> Vicinity<X, M> {
    /// A node that knows nobody.
    pub fn new(config: Config, metric: M, me: NodeId) -> Vicinity<X, M> {
        Vicinity { config, metric, me, view: Vec::new(), partner: None }
    }

    /// Those known to be nearest, the nearest first.
    pub fn view(&self) -> &[Entry<X>] {
        &self.view
    }

    /// The metric.
    pub fn metric(&self) -> &M {
        &self.metric
    }

    /// Whom this node awaits an answer from.
    pub fn awaits(&self) -> Option<NodeId> {
        self.partner
    }

    /// A node found dead by other means makes room.
    pub fn forget(&mut self, node: NodeId) {
        self.view.retain(|entry| entry.node != node);
    }

    /// How far all of the view are, in sum.
    pub fn sum_of_distances(&self, own: &X) -> u64 {
        self.view.iter().map(|entry| self.metric.distance(own, &entry.payload)).sum()
    }

    /// Begins an exchange (steps 1 to 4): whom to send what. `own` is what this node says of itself, `random` the
    /// entries of CYCLON. Returns also who has not answered the last one.
    pub fn begin(
        &mut self,
        own: &X,
        random: &[Entry<X>],
        chance: &mut Chance,
    ) -> (Option<Question<X>>, Option<NodeId>) {
        let silent = self.partner.take();
        for entry in &mut self.view {
            entry.age = entry.age.saturating_add(1);
        }
        if self.view.is_empty() {
            self.keep(own, &[], random);
        }
        let Some(partner) = self.draw_partner(random, chance) else { return (None, silent) };
        let entries = self.nearest_to(partner.node, &partner.payload, own, random);
        self.partner = Some(partner.node);
        (Some((partner.node, entries)), silent)
    }

    /// Answers an exchange (steps 5 and 6); none if it makes no sense.
    pub fn answer(
        &mut self,
        from: NodeId,
        received: &[Entry<X>],
        own: &X,
        random: &[Entry<X>],
    ) -> Option<Box<[Entry<X>]>> {
        let sender = received.first().filter(|entry| entry.node == from)?;
        let entries = self.nearest_to(from, &sender.payload, own, random);
        self.merge(received, own, random);
        Some(entries)
    }

    /// The partner's answer is there (step 6); a late or doubled one finds its exchange closed.
    pub fn finish(&mut self, from: NodeId, received: &[Entry<X>], own: &X, random: &[Entry<X>]) {
        if self.partner == Some(from) && received.first().is_some_and(|entry| entry.node == from) {
            self.partner = None;
            self.merge(received, own, random);
        }
    }

    fn draw_partner(&mut self, random: &[Entry<X>], chance: &mut Chance) -> Option<Entry<X>> {
        let stray = self.config.random_per_mille > 0
            && !random.is_empty()
            && chance.random_range(0..1_000) < self.config.random_per_mille;
        if stray {
            let partner = random[chance.random_range(0..random.len())].clone();
            self.forget(partner.node);
            return Some(partner);
        }
        let places = self.view.len();
        match self.config.rule {
            _ if places == 0 => None,
            Rule::Vicinity => {
                // Of several as old the nearest.
                let oldest = (0..places).max_by_key(|&place| (self.view[place].age, Reverse(place)))?;
                Some(self.view.remove(oldest))
            }
            Rule::TMan => Some(self.view[chance.random_range(0..places.min(NEAREST_ASKED))].clone()),
        }
    }

    /// What is sent to a node: this node, and the nearest to the other of all that are known.
    fn nearest_to(&self, node: NodeId, other: &X, own: &X, random: &[Entry<X>]) -> Box<[Entry<X>]> {
        let known =
            self.view.iter().chain(random).filter(|entry| entry.node != node && entry.node != self.me);
        let others = select(&self.metric, other, known, usize::from(self.config.gossip) - 1);
        let me = Entry { node: self.me, age: 0, payload: own.clone() };
        std::iter::once(me).chain(others).collect()
    }

    fn merge(&mut self, received: &[Entry<X>], own: &X, random: &[Entry<X>]) {
        self.keep(own, &received[..received.len().min(usize::from(VIEW_MAX))], random);
    }

    /// Keeps the nearest of those in the view and these.
    fn keep(&mut self, own: &X, received: &[Entry<X>], random: &[Entry<X>]) {
        let known = self.view.iter().chain(received).chain(random).filter(|entry| entry.node != self.me);
        self.view = select(&self.metric, own, known, usize::from(self.config.view));
    }
}

/// The entries of least distance from a node, the nearest first: of two for one node the younger, of two as far the
/// younger, then the lower id.
pub fn select<'a, X: Clone + 'a, M: Metric<X>>(
    metric: &M,
    from: &X,
    entries: impl Iterator<Item = &'a Entry<X>>,
    count: usize,
) -> Vec<Entry<X>> {
    let entries: Vec<&Entry<X>> = entries.collect();
    // Entries are large and most are not kept: their keys are sorted, and the chosen ones copied.
    let mut keys: Vec<(NodeId, u16, u32)> =
        entries.iter().zip(0..).map(|(entry, place)| (entry.node, entry.age, place)).collect();
    keys.sort_unstable_by_key(|&(node, age, _)| (node, age));
    keys.dedup_by_key(|key| key.0);
    let mut ranked: Vec<(u64, u16, NodeId, u32)> = keys
        .into_iter()
        .map(|(node, age, place)| (metric.distance(from, &entries[place as usize].payload), age, node, place))
        .collect();
    if ranked.len() > count && count > 0 {
        ranked.select_nth_unstable(count - 1);
    }
    ranked.truncate(count);
    ranked.sort_unstable();
    ranked.into_iter().map(|(.., place)| entries[place as usize].clone()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::testing::cases;

    /// A place on a line.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    struct Place(u32);

    impl Payload for Place {
        fn bytes(&self) -> u64 {
            4
        }
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct OnLine;

    impl Metric<Place> for OnLine {
        fn distance(&self, from: &Place, to: &Place) -> u64 {
            u64::from(from.0.abs_diff(to.0))
        }
    }

    fn entry(node: u64, age: u16, place: u32) -> Entry<Place> {
        Entry { node: NodeId(node), age, payload: Place(place) }
    }

    fn node(me: u64, view: u8) -> Vicinity<Place, OnLine> {
        let config = Config { view, gossip: 3, ..Config::default() };
        Vicinity::new(config, OnLine, NodeId(me))
    }

    #[test]
    fn the_oldest_is_asked_and_told_of_its_own_nearest() {
        let mut chance = Chance::seed_from_u64(1);
        let mut node = node(1, 4);
        let random = [entry(2, 0, 90), entry(3, 5, 80), entry(4, 1, 10), entry(5, 0, 79)];
        let (asked, silent) = node.begin(&Place(0), &random, &mut chance);
        let (partner, sent) = asked.unwrap();
        assert_eq!((partner, silent), (NodeId(3), None));
        let sent: Vec<u64> = sent.iter().map(|entry| entry.node.0).collect();
        assert_eq!(sent, [1, 5, 2], "itself, then the nearest to the one asked");
        assert!(node.view().iter().all(|entry| entry.node != NodeId(3)), "out of the view until it answers");

        node.finish(NodeId(3), &[entry(3, 0, 80), entry(6, 2, 1)], &Place(0), &random);
        let view: Vec<u64> = node.view().iter().map(|entry| entry.node.0).collect();
        assert_eq!(view, [6, 4, 5, 3]);
    }

    #[test]
    fn silent_partner_stays_out_and_a_stranger_is_not_heard() {
        let mut chance = Chance::seed_from_u64(1);
        let mut node = node(1, 4);
        let random = [entry(2, 7, 90), entry(3, 5, 80)];
        node.begin(&Place(0), &random, &mut chance);
        node.finish(NodeId(9), &[entry(9, 0, 1)], &Place(0), &[]);
        assert!(node.view().iter().all(|entry| entry.node != NodeId(9)));
        let (_, silent) = node.begin(&Place(0), &[], &mut chance);
        assert_eq!(silent, Some(NodeId(2)));
        assert!(node.view().iter().all(|entry| entry.node != NodeId(2)));
    }

    #[test]
    fn t_man_asks_one_of_the_nearest_and_keeps_it() {
        let mut chance = Chance::seed_from_u64(1);
        let config = Config { view: 20, gossip: 20, rule: Rule::TMan, random_per_mille: 0 };
        let mut node = Vicinity::new(config, OnLine, NodeId(1));
        let random: Vec<_> = (2..40).map(|n| entry(n, 0, n as u32)).collect();
        for _ in 0..50 {
            let (asked, _) = node.begin(&Place(0), &random, &mut chance);
            let (partner, _) = asked.unwrap();
            assert!(partner.0 < 2 + NEAREST_ASKED as u64, "{partner}");
            assert!(node.view().iter().any(|entry| entry.node == partner));
        }
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// V1, and V2 in the small: a merge keeps the nearest, so a full view's sum never rises.
        #[test]
        fn views_stay_sound_and_never_get_worse(
            own in 0u32..1_000,
            rounds in prop::collection::vec(
                prop::collection::vec((1u64..30, 0u16..9), 0..12), 1..12,
            ),
        ) {
            let place = |node: u64| (node * 7_919 % 1_000) as u32;
            let mut node = node(1, 5);
            let mut best = u64::MAX;
            for received in rounds {
                let received: Vec<_> =
                    received.into_iter().map(|(node, age)| entry(node, age, place(node))).collect();
                node.merge(&received, &Place(own), &[]);
                let mut known: Vec<NodeId> = node.view().iter().map(|entry| entry.node).collect();
                prop_assert!(known.len() <= 5 && !known.contains(&NodeId(1)));
                known.sort_unstable();
                known.dedup();
                prop_assert_eq!(known.len(), node.view().len());
                if known.len() == 5 {
                    let sum = node.sum_of_distances(&Place(own));
                    prop_assert!(sum <= best);
                    best = sum;
                }
            }
        }

        #[test]
        fn selection_is_that_of_a_whole_sort(
            entries in prop::collection::vec((1u64..20, 0u16..5, 0u32..50), 0..40), count in 0usize..12,
        ) {
            let entries: Vec<_> = entries.into_iter().map(|(n, age, _)| entry(n, age, (n * 13 % 50) as u32)).collect();
            let mut naive: std::collections::BTreeMap<NodeId, Entry<Place>> = Default::default();
            for entry in &entries {
                let kept = naive.entry(entry.node).or_insert_with(|| entry.clone());
                kept.age = kept.age.min(entry.age);
            }
            let mut naive: Vec<_> = naive.into_values().collect();
            naive.sort_by_key(|entry| (OnLine.distance(&Place(25), &entry.payload), entry.age, entry.node));
            naive.truncate(count);
            prop_assert_eq!(select(&OnLine, &Place(25), entries.iter(), count), naive);
        }
    }
}
