//! What the recipe `asap` can be told: the paper's values, and those for real use.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

use super::pace::Pace;
use crate::choose::earliest::Pick;

/// What the recipe can be told. The defaults reproduce the paper (numbers in brackets are sections of the
/// specification, *ours* is a choice of our own); [`Config::real`] is for real use. Degree and shuffles are the overlay's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Neighbours that search for a job at once (5: "typically" 5).
    pub fwd: u8,
    /// How far from a searcher candidates may be (5: 2); 0 for as far as a wide job takes.
    pub max_hops: u16,
    /// Whether searchers count themselves, and the entry node searches too (4B: false to reproduce).
    pub include_self: bool,
    /// How calendars get from node to node (5: push is the paper's conclusion).
    pub policy: Policy,
    /// Push: how a node knows whom to tell.
    pub audience: Audience,
    /// Pull: whether the calendars that a neighbour pulls to answer a searcher count (4C: the paper does not say).
    pub pull_counts_second_hop: bool,
    /// Poll: the time between two questions to a neighbour, in milliseconds (5: 120 s).
    pub poll_period_ms: u32,
    /// Whether the calendar of a new cache entry counts as carried by the shuffle, at no cost (4D).
    pub shuffle_carries_schedule: bool,
    /// Starts are multiples of this, in milliseconds (5: 60 s, ours); 0 for any instant.
    pub slot_ms: u32,
    /// How long the entry node waits for searchers, in milliseconds (4A: 10 s, ours).
    pub search_timeout_ms: u32,
    /// Whether to wait only for three times the slowest recent answer, at least `search_timeout_least_ms` (14).
    pub adaptive: bool,
    /// The shortest adaptive wait, in milliseconds (14: 200 ms).
    pub search_timeout_least_ms: u32,
    /// How far ahead the earliest start lies, in milliseconds: the search and the commit have to end before it, ours.
    pub lead_ms: u32,
    /// How often to start again when every place found was taken (4A: 3, ours).
    pub retries: u8,
    /// Whether the next best answer is tried when the best one fails (4C: off to count first attempts only).
    pub alternatives: bool,
    /// Whether a job without a place is over (4A: "then report failure"), or waits and is looked after again.
    pub give_up: bool,
    /// Which nodes are taken where more are free (4B6: in the order of discovery, ours).
    pub pick: Pick,
    /// Push to an audience that is told: how long a holder is told without renewing, in milliseconds; 0 for ever.
    pub lease_ms: u32,
}

/// How calendars get from node to node (4C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// A node tells whoever holds it of every change.
    #[default]
    Push,
    /// A searcher asks its neighbours when it searches.
    Pull,
    /// Every node asks its neighbours once in a while.
    Poll,
}

/// How a node that pushes knows whom to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// Holders say so, with Hold and Unhold, and get each change as a message.
    #[default]
    Told,
    /// For reproduction on an overlay that is shuffled for months: holders are only counted, by the overlay, and a
    /// change costs as many schedules as there are. Nothing is sent; instead a searcher asks when it needs a calendar,
    /// at no cost, and so finds it current, as push would have it. Messages and bytes are then not those of push.
    Counted,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            fwd: 5,
            max_hops: 2,
            include_self: false,
            policy: Policy::Push,
            audience: Audience::Told,
            pull_counts_second_hop: false,
            poll_period_ms: 120_000,
            shuffle_carries_schedule: true,
            slot_ms: 60_000,
            search_timeout_ms: 10_000,
            adaptive: false,
            search_timeout_least_ms: 200,
            lead_ms: 1_000,
            retries: 3,
            alternatives: true,
            give_up: true,
            pick: Pick::Discovery,
            lease_ms: 0,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody would search.
    #[error("fwd = 0 without include_self: nobody would search; set fwd to at least 1")]
    Fwd,
    /// Nobody's neighbours would be candidates.
    #[error("max_hops = 1: must be 0 (as far as it takes) or at least 2")]
    Hops,
    /// A period of no time.
    #[error("poll_period_ms = 0: must be at least 1")]
    PollPeriod,
    /// No wait at all, or a shortest wait above the longest.
    #[error("search_timeout_least_ms = {least}: must be 1 to search_timeout_ms ({most})")]
    Timeout {
        /// The shortest wait asked for.
        least: u32,
        /// The longest.
        most: u32,
    },
}

impl Config {
    /// The values for real use (14): any instant, any distance, this node included, waits that adapt.
    pub fn real() -> Config {
        Config {
            max_hops: 0,
            include_self: true,
            slot_ms: 0,
            adaptive: true,
            lead_ms: 200,
            give_up: false,
            lease_ms: 1_800_000,
            ..Config::default()
        }
    }

    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.fwd == 0 && !self.include_self {
            return Err(ConfigError::Fwd);
        }
        if self.max_hops == 1 {
            return Err(ConfigError::Hops);
        }
        if self.poll_period_ms == 0 {
            return Err(ConfigError::PollPeriod);
        }
        let (least, most) = (self.search_timeout_least_ms, self.search_timeout_ms);
        if least == 0 || least > most {
            return Err(ConfigError::Timeout { least, most });
        }
        Ok(())
    }

    pub(super) fn poll_period(&self) -> Span {
        millis(self.poll_period_ms)
    }

    pub(super) fn slot(&self) -> Span {
        millis(self.slot_ms)
    }

    pub(super) fn lead(&self) -> Span {
        millis(self.lead_ms)
    }

    pub(super) fn lease(&self) -> Option<Span> {
        (self.lease_ms > 0).then(|| millis(self.lease_ms))
    }

    /// How long to wait for searchers, given how slow they were lately.
    pub(super) fn search_timeout(&self, pace: Pace) -> Span {
        let most = millis(self.search_timeout_ms);
        match pace.slowest() {
            Some(slowest) if self.adaptive => {
                (slowest * ANSWERS_WAITED).max(millis(self.search_timeout_least_ms)).min(most)
            }
            Some(_) | None => most,
        }
    }

    /// How long a searcher waits for one answer, if the entry node waits for `patience` in all.
    pub(super) fn step_timeout(&self, patience: Span, pace: Pace) -> Span {
        let part = |parts: u64| Span::from_micros(patience.as_micros() / parts);
        match pace.slowest() {
            _ if !self.adaptive => part(8),
            Some(slowest) => (slowest * ANSWERS_WAITED).max(STEP_LEAST).min(part(2)),
            None => part(2),
        }
    }

    /// Whether a node so many hops from a searcher is asked for its neighbours.
    pub(super) fn asks_at(&self, hop: u16) -> bool {
        self.max_hops == 0 || hop < self.max_hops
    }
}

/// How many times the slowest recent answer an adaptive wait is (14).
const ANSWERS_WAITED: u64 = 3;
/// The shortest wait for one answer: room for a stall of the other side.
const STEP_LEAST: Span = Span::from_millis(100);

fn millis(millis: u32) -> Span {
    Span::from_millis(u64::from(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_values_and_the_real_ones_make_sense() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::real().check(), Ok(()));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let error = |config: Config| config.check().unwrap_err();
        let base = Config::default();
        assert_eq!(error(Config { fwd: 0, ..base }), ConfigError::Fwd);
        assert_eq!(Config { fwd: 0, include_self: true, ..base }.check(), Ok(()));
        assert_eq!(error(Config { max_hops: 1, ..base }), ConfigError::Hops);
        assert_eq!(error(Config { poll_period_ms: 0, ..base }), ConfigError::PollPeriod);
        let timeout = ConfigError::Timeout { least: 200, most: 100 };
        assert_eq!(error(Config { search_timeout_ms: 100, ..base }), timeout);
    }

    #[test]
    fn waits_adapt_within_bounds() {
        let real = Config::real();
        let pace = |millis| {
            let mut pace = Pace::default();
            pace.answered_after(Span::from_millis(millis));
            pace
        };
        let after = |millis| real.search_timeout(pace(millis));
        assert_eq!(real.search_timeout(Pace::default()), Span::from_secs(10));
        assert_eq!(after(1), Span::from_millis(200));
        assert_eq!(after(300), Span::from_millis(900));
        assert_eq!(after(9_000), Span::from_secs(10));
        assert_eq!(Config::default().search_timeout(pace(1)), Span::from_secs(10));
        let step = |millis| real.step_timeout(Span::from_secs(1), pace(millis));
        assert_eq!([step(1), step(100), step(900)].map(|span| span.as_micros() / 1_000), [100, 300, 500]);
    }
}
