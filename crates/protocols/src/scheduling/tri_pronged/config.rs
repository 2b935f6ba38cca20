//! What the recipe can be told.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

use crate::queue::Policy;
use crate::scheduling::aria;

/// What the recipe can be told. The paper names few values; those it does not are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which of the three prongs are used, and how.
    pub variant: Variant,
    /// How often jobs are redistributed, besides at each end of a job, in milliseconds.
    pub round_ms: u32,
    /// The stopping factor: the larger, the further a job is pushed.
    pub stop: u8,
    /// How often a job is pushed before every node that might do is looked at.
    pub pushes: u8,
    /// How often a search that would have its job wait begins anew, elsewhere in the virtual dimension (ours; the paper's
    /// stops where it stops).
    pub anew: u8,
    /// How long a search may take before it is made again, in milliseconds.
    pub search_ms: u32,
    /// How often a job that no node will do for is searched for; searches that were lost on their way do not count.
    pub searches: u8,
    /// The pause between two searches, in milliseconds.
    pub pause_ms: u32,
    /// Whether running times are used that users have estimated: to backfill without delay for the first in a queue, and
    /// to tell how long a queue is. The paper has none.
    pub estimates: bool,
}

/// Which of the prongs are used: local scheduling, internode scheduling, queue balancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// None: first come, first served.
    Vanilla,
    /// Local.
    L,
    /// Local and internode; who has too much offers.
    LiPush,
    /// Local and internode; who has room asks.
    LiPull,
    /// All three; who has too much offers.
    LiqPush,
    /// All three; who has room asks.
    LiqPull,
}

/// Who begins when jobs move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// Who has too much.
    Push,
    /// Who has room.
    Pull,
}

impl Variant {
    /// Every variant.
    pub const ALL: [Variant; 6] =
        [Variant::Vanilla, Variant::L, Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull];

    /// What it is called in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Vanilla => "vanilla",
            Variant::L => "l",
            Variant::LiPush => "li_push",
            Variant::LiPull => "li_pull",
            Variant::LiqPush => "liq_push",
            Variant::LiqPull => "liq_pull",
        }
    }

    pub(super) fn internode(self) -> Option<Mode> {
        match self {
            Variant::Vanilla | Variant::L => None,
            Variant::LiPush | Variant::LiqPush => Some(Mode::Push),
            Variant::LiPull | Variant::LiqPull => Some(Mode::Pull),
        }
    }

    pub(super) fn balances(self) -> bool {
        match self {
            Variant::Vanilla | Variant::L | Variant::LiPush | Variant::LiPull => false,
            Variant::LiqPush | Variant::LiqPull => true,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            variant: Variant::LiqPull,
            round_ms: 60_000,
            stop: 2,
            pushes: 20,
            anew: 8,
            search_ms: 30_000,
            searches: 10,
            pause_ms: 60_000,
            estimates: false,
        }
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
    /// For real grids: all is quicker.
    pub fn real() -> Config {
        Config { round_ms: 5_000, search_ms: 5_000, pause_ms: 5_000, ..Config::default() }
    }

    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        let least = [
            ("round_ms", self.round_ms),
            ("search_ms", self.search_ms),
            ("searches", u32::from(self.searches)),
            ("pause_ms", self.pause_ms),
        ];
        match least.into_iter().find(|(_, value)| *value == 0) {
            Some((field, _)) => Err(ConfigError { field }),
            None => Ok(()),
        }
    }

    pub(super) fn round(&self) -> Span {
        Span::from_millis(u64::from(self.round_ms))
    }

    /// How the seats that jobs have on nodes are kept: see [`crate::scheduling::aria`].
    pub fn seats(&self) -> aria::Config {
        let policy = match (self.variant, self.estimates) {
            (Variant::Vanilla, _) => Policy::Fcfs,
            (
                Variant::L | Variant::LiPush | Variant::LiPull | Variant::LiqPush | Variant::LiqPull,
                estimates,
            ) => {
                if estimates {
                    Policy::BackfillEstimates
                } else {
                    Policy::Backfill
                }
            }
        };
        aria::Config {
            queue: aria::Order::Each(policy),
            exclusive: false,
            accept_wait_ms: self.search_ms,
            adaptive: false,
            rounds: self.searches,
            round_pause_ms: self.pause_ms,
            inform_jobs: 0,
            ..aria::Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_be_nothing_is_named() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::real().check(), Ok(()));
        let none = Config { round_ms: 0, ..Config::default() };
        assert_eq!(none.check().unwrap_err().to_string(), "round_ms = 0: must be at least 1");
    }
}
