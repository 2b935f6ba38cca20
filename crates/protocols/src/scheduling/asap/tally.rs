//! The paper's message cost: how many schedules were carried, counted by the node that sent them.

use minicbor::{Decode, Encode};

use super::config::{Config, Policy};

/// Schedules that a node has carried to others since it was started, by what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Tally {
    /// Push: to each holder at each change of the calendar.
    #[n(0)]
    pub pushed: u64,
    /// Pull: to searchers, one's own and, by a searcher's neighbour, those of its neighbours.
    #[n(1)]
    pub pulled: u64,
    /// Pull: to a searcher's neighbour, for it to answer the searcher.
    #[n(2)]
    pub pulled_second: u64,
    /// Poll: to whoever asked in turn.
    #[n(3)]
    pub polled: u64,
    /// Push and poll: from a cache to a searcher. The paper does not count these.
    #[n(4)]
    pub fetched: u64,
    /// To whoever has this node newly in its cache. Not in the paper's costs either (see
    /// [`Config::shuffle_carries_schedule`]).
    #[n(5)]
    pub entered: u64,
}

impl Tally {
    /// The paper's message cost (section 6).
    pub fn cost(&self, config: &Config) -> u64 {
        let second = if config.pull_counts_second_hop { self.pulled_second } else { 0 };
        let entered = if config.shuffle_carries_schedule { 0 } else { self.entered };
        entered
            + match config.policy {
                Policy::Push => self.pushed,
                Policy::Pull => self.pulled + second,
                Policy::Poll => self.polled,
            }
    }

    /// What both have carried.
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            pushed: self.pushed + other.pushed,
            pulled: self.pulled + other.pulled,
            pulled_second: self.pulled_second + other.pulled_second,
            polled: self.polled + other.polled,
            fetched: self.fetched + other.fetched,
            entered: self.entered + other.entered,
        }
    }
}
