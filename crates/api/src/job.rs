//! Jobs as the interface shows them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shoal_model::JobId;
use shoal_model::units::{SpanText, TimeText};
use utoipa::ToSchema;

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its user holds it back.
    Held,
    /// It has no place yet.
    Waiting,
    /// It has a place, and its time has not come.
    Planned,
    /// It runs.
    Running,
    /// It ended well.
    Finished,
    /// A task of it did not end well, and no retry was left.
    Failed,
    /// A node was lost, and it must not run twice.
    Lost,
    /// Its user took it back.
    Cancelled,
    /// Its deadline passed before it could start.
    Expired,
    /// No place was found, and none is waited for.
    NoPlace,
    /// It was to start after a job that did not end as it must have.
    Unmet,
    /// Its node leaves, and another owns it: that one knows how far it is.
    HandedOver,
}

/// A word that is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a state: expected {known}", known = State::ALL.map(State::name).join(", "))]
pub struct UnknownState(String);

impl State {
    /// All states, in the order of a job's life.
    pub const ALL: [State; 12] = [
        State::Held,
        State::Waiting,
        State::Planned,
        State::Running,
        State::Finished,
        State::Failed,
        State::Lost,
        State::Cancelled,
        State::Expired,
        State::NoPlace,
        State::Unmet,
        State::HandedOver,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Waiting => "waiting",
            State::Planned => "planned",
            State::Running => "running",
            State::Finished => "finished",
            State::Failed => "failed",
            State::Lost => "lost",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
            State::NoPlace => "no-place",
            State::Unmet => "unmet",
            State::HandedOver => "handed-over",
        }
    }

    /// Whether nothing comes after it.
    pub const fn is_over(self) -> bool {
        match self {
            State::Held | State::Waiting | State::Planned | State::Running | State::HandedOver => false,
            State::Finished
            | State::Failed
            | State::Lost
            | State::Cancelled
            | State::Expired
            | State::NoPlace
            | State::Unmet => true,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<State, UnknownState> {
        State::ALL
            .into_iter()
            .find(|state| state.name() == text)
            .ok_or_else(|| UnknownState(text.chars().take(40).collect()))
    }
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStatus {
    /// Its id.
    #[schema(value_type = String, example = "2793b214ecf2bdc3611fb1f42d3b8360")]
    pub id: JobId,
    /// What its user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How far it has come.
    pub state: State,
    /// Why it waits, or how it ended, in plain words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it runs, on one line.
    pub command: String,
    /// How many nodes it starts on together.
    pub nodes: u32,
    /// What it takes of each node.
    pub resources: String,
    /// Its hard limit, at which it is stopped.
    #[schema(value_type = String, example = "1h30m")]
    pub limit: SpanText,
    /// The node that accepted it, and sees to it that it ends.
    #[schema(example = "n3f")]
    pub owner: String,
    /// On how many disks its acceptance is.
    pub durability: u32,
    /// Of a job of an array: which array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub array: Option<JobId>,
    /// Of a job of an array: for which index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Of an array: how many of its jobs are in each state; not if they are very many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub counts: BTreeMap<State, u64>,
    /// When it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accepted: Option<TimeText>,
    /// The start that was promised first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub promised: Option<TimeText>,
    /// Where and when it runs, or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// When it started: its last task to do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started: Option<TimeText>,
    /// How far apart its tasks started, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "3ms")]
    pub skew: Option<SpanText>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended: Option<TimeText>,
    /// What `shoal run` ends with for it, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
    /// What those of its tasks took that have ended, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<JobUsage>,
    /// Its tasks, as far as something is known of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskStatus>,
    /// What is kept of what it left behind, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<OutputsView>,
}

/// What the tasks of a job's last placement took of their machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobUsage {
    /// How many of them have ended.
    pub tasks: u32,
    /// Processor time of their own code, of all of them together, in milliseconds.
    pub user_ms: u64,
    /// Processor time of the system on their behalf, in milliseconds.
    pub system_ms: u64,
    /// The most memory that one process of any of them had, in bytes; none where it is less than what starts tasks has
    /// itself, some MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_max: Option<u64>,
    /// Percent of their time on the granted cores that they were busy, where they ran for a second or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<u32>,
}

/// What is kept of what a job left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputsView {
    /// How many files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Patterns that matched nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// How many things matched and were left out: links, pipes, names that are no text.
    #[serde(default)]
    pub left_out: u64,
}

/// A placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Planned {
    /// Counts the placements of the job.
    pub epoch: u32,
    /// When it starts.
    #[schema(value_type = String, format = DateTime)]
    pub start: TimeText,
    /// When it is stopped at the latest.
    #[schema(value_type = String, format = DateTime)]
    pub end: TimeText,
    /// Where, by rank.
    pub nodes: Vec<String>,
}

/// A task of a job's last placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskStatus {
    /// Which part of the job.
    pub rank: u32,
    /// Where.
    pub node: String,
    /// How it ended, in plain words.
    pub exit: String,
}

/// A page of a list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobStatus>,
    /// What to give as `cursor` for the next page; none if this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Of a list of the whole grid: how many nodes did not answer in time, whose jobs are not in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub silent: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: TimeText,
    /// To which job, if to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub job: Option<JobId>,
    /// What, in one word.
    pub kind: String,
    /// What, in plain words.
    pub text: String,
}

/// Why a job is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The job.
    pub job: JobStatus,
    /// The answer in one sentence.
    pub answer: String,
    /// What each node that was looked at says.
    pub nodes: Vec<Refusals>,
    /// What happened to it so far, oldest first.
    pub story: Vec<EventView>,
}

/// What stands against a job on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusals {
    /// The node.
    pub node: String,
    /// Each reason by name; none if the node would do.
    pub reasons: Vec<String>,
    /// Of one that would do: from when on it has room for the job, as far as it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub free_from: Option<TimeText>,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// It has a place, or it is known why not.
    Planned,
    /// It runs, or is over.
    Started,
    /// It is over.
    #[default]
    Ended,
}

/// A job as it is submitted in JSON or TOML, in the words of a job file; one of `command` and `script` must be there.
///
/// Only for the document of the interface: jobs are read by [`shoal_model::Job`].
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JobForm {
    /// A program and its arguments, run without a shell.
    pub command: Option<Vec<String>>,
    /// The text of a script, run by the interpreter of its first line.
    pub script: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// How many nodes start together.
    pub nodes: Option<u32>,
    /// Cores of each node, with at most three decimals.
    pub cores: Option<String>,
    /// Memory of each node, as in `8GiB`.
    pub memory: Option<String>,
    /// Disk of each node, as in `8GiB`.
    pub disk: Option<String>,
    /// GPUs of each node, with at most three decimals.
    pub gpus: Option<String>,
    /// Resources by name, of each node.
    pub resources: Option<BTreeMap<String, String>>,
    /// The hard limit, as in `1h30m`.
    pub time: Option<String>,
    /// How long it is thought to take.
    pub estimate: Option<String>,
    /// When it must have ended, as in `2026-11-15T18:00:00Z`.
    pub deadline: Option<String>,
    /// When it may start at the earliest.
    pub begin: Option<String>,
    /// What is best, as an expression.
    pub optimise: Option<String>,
    /// Which nodes will do, as an expression.
    #[serde(rename = "where")]
    pub constraint: Option<String>,
    /// Nodes of this architecture.
    pub architecture: Option<String>,
    /// Nodes of this operating system.
    pub system: Option<String>,
    /// Nodes with these labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Nodes of these organisations.
    pub within: Option<Vec<String>>,
    /// A run for each index, as in `1-1000%50`.
    pub array: Option<String>,
    /// A start after other jobs, as in `ID:ok` or `ID:any`.
    pub after: Option<Vec<String>>,
    /// Further attempts when it fails.
    pub retry: Option<u16>,
    /// `rerun` or `at-most-once`.
    pub mode: Option<String>,
    /// Before or after the user's other jobs.
    pub priority: Option<i16>,
    /// Environment variables.
    pub environment: Option<BTreeMap<String, String>>,
    /// Files brought along.
    #[serde(rename = "in")]
    pub inputs: Option<Vec<String>>,
    /// Files taken back.
    #[serde(rename = "out")]
    pub outputs: Option<Vec<String>>,
    /// What nobody but its tasks is told, by name; the node is told before: `PUT /v1/jobs/{job}/secrets`.
    pub secrets: Option<Vec<String>>,
    /// The file system that it is to find instead of the machine's.
    pub image: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// On whose behalf its user asks.
    pub organisation: Option<String>,
}

#[cfg(test)]
mod tests {
    use shoal_model::Field;
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn states_read_back_what_they_print_and_name_what_they_are_not() {
        for state in State::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        let error = "runing".parse::<State>().unwrap_err().to_string();
        assert!(error.contains("`runing`") && error.contains("running"), "{error}");
    }

    #[test]
    fn every_field_of_a_job_is_in_the_document() {
        let schema = serde_json::to_value(JobForm::schema()).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        for field in Field::ALL {
            let name = field.name().split(' ').next().unwrap();
            assert!(properties.contains_key(name), "{name} is not in the document");
        }
    }
}
