//! What ARiA can be told.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shoal_model::{NodeId, Span};

use crate::queue::{Policy, UnknownPolicy};

/// What the recipe can be told. The defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// In which order the jobs of a node run (section IV-B).
    pub queue: Order,
    /// Whether a node runs one job at a time, whatever it asks for (section III-A).
    pub exclusive: bool,
    /// How far a REQUEST goes (IV-E).
    pub request_hops: u8,
    /// How much further it goes in each further round (ours; the paper's rounds are all alike). `accept_wait_ms` has to
    /// leave time for offers from that far.
    pub round_hops: u8,
    /// To how many neighbours each node passes it on (IV-E).
    pub request_fan_out: u8,
    /// How far an INFORM goes (IV-E).
    pub inform_hops: u8,
    /// To how many neighbours each node passes it on (IV-E).
    pub inform_fan_out: u8,
    /// How long offers are waited for, in milliseconds ("predefined" in III-B; ours).
    pub accept_wait_ms: u32,
    /// Whether offers close earlier when nothing better is likely: for real use.
    pub adaptive: bool,
    /// How often a job that nobody offers to take is asked for.
    pub rounds: u8,
    /// The pause between two rounds, in milliseconds.
    pub round_pause_ms: u32,
    /// How many waiting jobs a node looks for better places for at a time; 0 for no rescheduling (IV-E).
    pub inform_jobs: u8,
    /// How often it does, in milliseconds (IV-E).
    pub inform_period_ms: u32,
    /// What a better place must gain, in milliseconds (IV-E).
    pub threshold_ms: u32,
    /// What it must gain, in hundredths of the cost; the larger of the two counts (named as future work).
    pub threshold_percent: u8,
    /// Whether a node that will do passes a word on all the same (III-C: it does not).
    pub forward_on_match: bool,
    /// Whether the running job counts in NAL (III-D leaves it open).
    pub nal_counts_running: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            queue: Order::Each(Policy::Fcfs),
            exclusive: true,
            request_hops: 9,
            round_hops: 0,
            request_fan_out: 4,
            inform_hops: 8,
            inform_fan_out: 2,
            accept_wait_ms: 60_000,
            adaptive: false,
            rounds: 10,
            round_pause_ms: 60_000,
            inform_jobs: 2,
            inform_period_ms: 300_000,
            threshold_ms: 180_000,
            threshold_percent: 0,
            forward_on_match: false,
            nal_counts_running: true,
        }
    }
}

/// In which order jobs run on each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "&'static str")]
pub enum Order {
    /// The same policy everywhere.
    Each(Policy),
    /// FCFS on one half of the nodes, SJF on the other: by the node's id, as good as chance.
    Mixed,
}

/// The name of [`Order::Mixed`].
const MIXED: &str = "mixed";

impl Order {
    /// The policy of a node.
    pub fn of(self, node: NodeId) -> Policy {
        match self {
            Order::Each(policy) => policy,
            // A few rounds of multiplication and folding: neighbouring ids differ in their highest bit half the time.
            Order::Mixed => {
                let mixed = (node.0 ^ node.0 >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                if mixed >> 63 == 0 { Policy::Fcfs } else { Policy::Sjf }
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Each(policy) => policy.name(),
            Order::Mixed => MIXED,
        }
    }
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Order, UnknownOrder> {
        match name {
            MIXED => Ok(Order::Mixed),
            name => name.parse().map(Order::Each).map_err(UnknownOrder),
        }
    }
}

/// A name that no order has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}, or {MIXED}")]
pub struct UnknownOrder(UnknownPolicy);

impl TryFrom<Box<str>> for Order {
    type Error = UnknownOrder;

    fn try_from(name: Box<str>) -> Result<Order, UnknownOrder> {
        name.parse()
    }
}

impl From<Order> for &'static str {
    fn from(order: Order) -> &'static str {
        order.name()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = 0: must be at least 1")]
pub struct ConfigError {
    /// What must not be nothing.
    pub field: &'static str,
}

impl Config {
    /// For real grids: quick offers, several jobs at a time, better places sought more often.
    pub fn real() -> Config {
        Config {
            queue: Order::Each(Policy::Easy),
            exclusive: false,
            accept_wait_ms: 200,
            adaptive: true,
            round_pause_ms: 5_000,
            inform_period_ms: 30_000,
            threshold_ms: 5_000,
            threshold_percent: 10,
            ..Config::default()
        }
    }

    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        let informs = self.inform_jobs > 0;
        let least = [
            ("request_hops", u32::from(self.request_hops), true),
            ("request_fan_out", u32::from(self.request_fan_out), true),
            ("rounds", u32::from(self.rounds), true),
            ("round_pause_ms", self.round_pause_ms, true),
            ("inform_hops", u32::from(self.inform_hops), informs),
            ("inform_fan_out", u32::from(self.inform_fan_out), informs),
            ("inform_period_ms", self.inform_period_ms, informs),
        ];
        match least.into_iter().find(|&(_, value, counts)| counts && value == 0) {
            Some((field, ..)) => Err(ConfigError { field }),
            None => Ok(()),
        }
    }

    /// How far a REQUEST of this round goes; of one beyond the last, no further than of that.
    pub(super) fn request_hops_in(&self, round: u32) -> u8 {
        let further = round.saturating_sub(1).min(u32::from(self.rounds).saturating_sub(1));
        let further = further * u32::from(self.round_hops);
        self.request_hops.saturating_add(u8::try_from(further).unwrap_or(u8::MAX))
    }

    pub(super) fn accept_wait(&self) -> Span {
        Span::from_millis(u64::from(self.accept_wait_ms))
    }

    pub(super) fn round_pause(&self) -> Span {
        Span::from_millis(u64::from(self.round_pause_ms))
    }

    pub(super) fn inform_period(&self) -> Span {
        Span::from_millis(u64::from(self.inform_period_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_mixed_grid_is_fcfs() {
        let fcfs = (1..=10_000).filter(|&node| Order::Mixed.of(NodeId(node)) == Policy::Fcfs).count();
        assert!((4_800..=5_200).contains(&fcfs), "{fcfs}");
        let runs =
            (1..10_000).filter(|&node| Order::Mixed.of(NodeId(node)) != Order::Mixed.of(NodeId(node + 1)));
        assert!((4_500..=5_500).contains(&runs.count()), "neighbouring ids are as good as chance");
    }

    #[test]
    fn what_must_not_be_nothing_is_named() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::real().check(), Ok(()));
        let told = |config: Config| config.check().unwrap_err().to_string();
        let usual = Config::default();
        assert_eq!(told(Config { request_hops: 0, ..usual }), "request_hops = 0: must be at least 1");
        assert_eq!(told(Config { inform_hops: 0, ..usual }), "inform_hops = 0: must be at least 1");
        assert_eq!(Config { inform_hops: 0, inform_jobs: 0, ..usual }.check(), Ok(()));
    }

    #[test]
    fn orders_are_read_by_name() {
        assert_eq!("mixed".parse(), Ok(Order::Mixed));
        assert_eq!("edf".parse(), Ok(Order::Each(Policy::Edf)));
        assert!("lifo".parse::<Order>().unwrap_err().to_string().contains("backfill-estimates, or mixed"));
    }
}
