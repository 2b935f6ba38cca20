//! What the heartbeat can be told, and the bounds that follow from it.

use serde::{Deserialize, Serialize};
use shoal_model::Span;

/// The most unanswered pings that are remembered for one node, to know their answers by.
pub const PINGS_MAX: usize = 8;

/// What the heartbeat can be told. With the defaults a dead node is suspected within 8 s, so that a gang which has
/// lost a node can stop within 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether anybody is watched at all. Off in simulations of months in which nobody dies: a ping to each node of
    /// each placed job every two seconds would be billions of messages.
    pub watch: bool,
    /// The longest silence of a watched node before it is pinged, in milliseconds.
    pub period_ms: u32,
    /// The shortest wait for an answer, however quick the earlier ones were: room for a stall of the other side.
    pub timeout_least_ms: u32,
    /// The longest wait for an answer, however slow the earlier ones were; also the wait before any is known.
    pub timeout_most_ms: u32,
    /// Pings in a row without a sign of life that make a node suspected.
    pub misses: u8,
    /// The longest gap between two pings to a suspected node: the gaps double from one period up to this.
    pub probe_most_ms: u32,
    /// How late a timer may come before this node holds itself, not the others, to have been away.
    pub late_ms: u32,
    /// Nodes that can be watched at once; a watch beyond is refused.
    pub nodes_max: u32,
    /// Reasons for watching, counted over all nodes; a watch beyond is refused.
    pub reasons_max: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            watch: true,
            period_ms: 2_000,
            timeout_least_ms: 250,
            timeout_most_ms: 2_000,
            misses: 3,
            probe_most_ms: 60_000,
            late_ms: 500,
            nodes_max: 1_024,
            reasons_max: 16_384,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A period of no time.
    #[error("period_ms = 0: must be at least 1")]
    Period,
    /// No wait at all, or a shortest wait above the longest.
    #[error("timeout_least_ms = {least}: must be 1 to timeout_most_ms ({most})")]
    Timeout {
        /// The shortest wait asked for.
        least: u32,
        /// The longest.
        most: u32,
    },
    /// Suspicion without a question, or after more pings than are remembered.
    #[error("misses = {0}: must be 1 to {PINGS_MAX}")]
    Misses(u8),
    /// A suspected node that would be pinged more often than a living one.
    #[error("probe_most_ms = {probe_most}: must be at least period_ms ({period})")]
    Probe {
        /// The longest gap asked for.
        probe_most: u32,
        /// The period.
        period: u32,
    },
    /// No timer comes at the very microsecond.
    #[error("late_ms = 0: must be at least 1")]
    Late,
    /// Nobody could be watched.
    #[error("nodes_max = 0: must be at least 1")]
    Nodes,
    /// Fewer reasons than nodes, though every watched node has one.
    #[error("reasons_max = {reasons}: must be at least nodes_max ({nodes})")]
    Reasons {
        /// The reasons asked for.
        reasons: u32,
        /// The nodes.
        nodes: u32,
    },
}

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.period_ms == 0 {
            return Err(ConfigError::Period);
        }
        if self.timeout_least_ms == 0 || self.timeout_least_ms > self.timeout_most_ms {
            let (least, most) = (self.timeout_least_ms, self.timeout_most_ms);
            return Err(ConfigError::Timeout { least, most });
        }
        if self.misses == 0 || usize::from(self.misses) > PINGS_MAX {
            return Err(ConfigError::Misses(self.misses));
        }
        if self.probe_most_ms < self.period_ms {
            return Err(ConfigError::Probe { probe_most: self.probe_most_ms, period: self.period_ms });
        }
        if self.late_ms == 0 {
            return Err(ConfigError::Late);
        }
        if self.nodes_max == 0 {
            return Err(ConfigError::Nodes);
        }
        if self.reasons_max < self.nodes_max {
            return Err(ConfigError::Reasons { reasons: self.reasons_max, nodes: self.nodes_max });
        }
        Ok(())
    }

    /// How long after its last sign of life a dead node is suspected at the latest, by a node that is itself awake.
    pub fn suspects_within(&self) -> Span {
        self.period() + self.timeout_most() * u64::from(self.misses)
    }

    /// How long after its return a suspected node is pinged at the latest; its answer makes it [`Back`].
    ///
    /// [`Back`]: super::Event::Back
    pub fn probes_within(&self) -> Span {
        millis(self.probe_most_ms)
    }

    /// A node whose answers never take as long as this is never suspected, unless one is lost.
    pub fn tolerates(&self) -> Span {
        millis(self.timeout_least_ms) * u64::from(self.misses)
    }

    pub(super) fn period(&self) -> Span {
        millis(self.period_ms)
    }

    pub(super) fn timeout_least(&self) -> Span {
        millis(self.timeout_least_ms)
    }

    pub(super) fn timeout_most(&self) -> Span {
        millis(self.timeout_most_ms)
    }

    pub(super) fn late(&self) -> Span {
        millis(self.late_ms)
    }

    /// The gap before the next ping to a node that was suspected this many pings ago.
    pub(super) fn gap(&self, probes: u8) -> Span {
        // Gaps of 2^32 ms and more are cut by any `probe_most_ms`.
        (self.period() * (1 << probes.min(32))).min(self.probes_within())
    }
}

fn millis(millis: u32) -> Span {
    Span::from_millis(u64::from(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_make_sense_and_leave_a_gang_two_seconds_to_stop() {
        assert_eq!(Config::default().check(), Ok(()));
        assert_eq!(Config::default().suspects_within(), Span::from_secs(8));
    }

    #[test]
    fn nonsense_is_refused_by_the_name_of_its_field() {
        let base = Config::default();
        let nonsense = [
            ("period_ms", Config { period_ms: 0, ..base }),
            ("timeout_least_ms", Config { timeout_least_ms: 0, ..base }),
            ("timeout_least_ms", Config { timeout_least_ms: 3_000, ..base }),
            ("misses", Config { misses: 0, ..base }),
            ("misses", Config { misses: 9, ..base }),
            ("probe_most_ms", Config { probe_most_ms: 1_999, ..base }),
            ("late_ms", Config { late_ms: 0, ..base }),
            ("nodes_max", Config { nodes_max: 0, ..base }),
            ("reasons_max", Config { reasons_max: 1_023, ..base }),
        ];
        for (field, config) in nonsense {
            let error = config.check().expect_err(field).to_string();
            assert!(error.starts_with(&format!("{field} = ")), "{error}");
        }
    }

    #[test]
    fn gaps_double_up_to_their_bound_however_many_there_were() {
        let config = Config { period_ms: 2_000, probe_most_ms: 15_000, ..Config::default() };
        let gaps = [0, 1, 2, 3, 4, 255].map(|probes| config.gap(probes).as_secs());
        assert_eq!(gaps, [2, 4, 8, 15, 15, 15]);
    }
}
