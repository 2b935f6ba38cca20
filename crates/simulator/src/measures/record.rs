//! One job of a run, from submission to end.

use std::fmt;

use shoal_model::{JobId, NodeId, Rank, Span, Time};
use shoal_protocols::node::Exit;

/// Shorter runs count as this long in a bounded slowdown, so that short jobs do not rule the mean.
const SLOWDOWN_BOUND: Span = Span::from_secs(10);

/// What became of a job; times count from the workload's zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub job: JobId,
    /// Its number in the workload.
    pub number: i64,
    /// How many nodes it wanted.
    pub width: u32,
    /// How long it was allowed to run.
    pub requested: Span,
    /// When its user submitted it.
    pub submit: Time,
    /// When it was on its owner's disk.
    pub accepted: Option<Time>,
    /// The start that its user was told first.
    pub promised: Option<Time>,
    /// When its last member started, in the placement that counts.
    pub start: Option<Time>,
    /// When its last member ended; of a job that did not finish, when that was settled.
    pub finish: Option<Time>,
    /// Where it ran, or was last to run, by rank.
    pub nodes: Vec<NodeId>,
    /// How many placements it had, one after the other.
    pub placements: u32,
    /// How long after the first of its members the last one started.
    pub skew: Span,
    /// Of a job for which no place was found: why.
    pub why: Option<String>,
    /// How far it came.
    pub state: State,
}

/// How far a job came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The node that was asked died before it had the job on its disk.
    Unaccepted,
    /// It was not taken.
    Refused(String),
    /// It had not started when the run ended.
    Waiting,
    /// It had not ended when the run ended.
    Running,
    /// All its members ended well.
    Finished,
    /// A member did not.
    Failed(Rank, Exit),
    /// A node was lost, and it must not run twice.
    Lost,
    /// Its user took it back.
    Cancelled,
    /// Its deadline passed.
    Expired,
    /// No place was found for it, and it was not to wait.
    NoPlace,
    /// It was to start after a job that did not end as it must have.
    Unmet,
}

impl Record {
    /// Why nobody would have it, in the words that its user gets.
    pub fn reason(&self) -> Option<&str> {
        match &self.state {
            State::Refused(why) => Some(why),
            State::NoPlace => self.why.as_deref(),
            State::Unaccepted
            | State::Waiting
            | State::Running
            | State::Finished
            | State::Failed(..)
            | State::Lost
            | State::Cancelled
            | State::Expired
            | State::Unmet => None,
        }
    }

    /// From submission to start.
    pub fn wait(&self) -> Option<Span> {
        Some(self.start?.since(self.submit))
    }

    /// From start to end.
    pub fn execution(&self) -> Option<Span> {
        Some(self.finish?.since(self.start?))
    }

    /// From submission to end.
    pub fn turnaround(&self) -> Option<Span> {
        Some(self.finish?.since(self.submit))
    }

    /// How many times longer it took than it ran, in millionths; runs below ten seconds count as ten, and no job is
    /// faster than itself.
    pub fn bounded_slowdown(&self) -> Option<u64> {
        let ran = self.execution()?.max(SLOWDOWN_BOUND).as_micros();
        let slowdown = u128::from(self.turnaround()?.as_micros()) * 1_000_000 / u128::from(ran);
        Some(u64::try_from(slowdown).unwrap_or(u64::MAX).max(1_000_000))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Unaccepted => f.write_str("unaccepted"),
            State::Refused(why) => write!(f, "refused: {why}"),
            State::Waiting => f.write_str("waiting"),
            State::Running => f.write_str("running"),
            State::Finished => f.write_str("finished"),
            State::Failed(rank, exit) => write!(f, "failed: rank {} {exit:?}", rank.0),
            State::Lost => f.write_str("lost"),
            State::Cancelled => f.write_str("cancelled"),
            State::Expired => f.write_str("expired"),
            State::NoPlace => f.write_str("no place"),
            State::Unmet => f.write_str("unmet"),
        }
    }
}
