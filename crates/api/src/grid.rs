//! The grid as the interface shows it: nodes, calendars, the node itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shoal_model::JobId;
use shoal_model::units::{SpanText, TimeText};
use utoipa::ToSchema;

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachineView {
    /// What it has to give, in plain words.
    pub capacity: String,
    /// Its cores, in thousandths.
    pub cores_thousandths: u64,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its GPUs, in thousandths.
    pub gpus_thousandths: u64,
    /// Its instruction set.
    pub architecture: String,
    /// Its operating system.
    pub system: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
    /// What its owner says of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its id.
    #[schema(example = "n3f")]
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Whether it answered.
    pub up: bool,
    /// What it is; none if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineView>,
    /// What its tasks take of it now, in plain words.
    #[serde(default)]
    pub used: String,
    /// Its cores that are taken now, in thousandths.
    #[serde(default)]
    pub used_cores_thousandths: u64,
    /// Tasks that run there.
    #[serde(default)]
    pub running: u64,
    /// Jobs that it accepted and that have not ended.
    #[serde(default)]
    pub open: u64,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
}

/// The nodes that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The one that was asked first.
    pub nodes: Vec<NodeView>,
}

/// What is reserved on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarView {
    /// The node.
    pub node: String,
    /// What it has to give, in plain words.
    pub capacity: String,
    /// Its cores, in thousandths.
    pub cores_thousandths: u64,
    /// From when on.
    #[schema(value_type = String, format = DateTime)]
    pub from: TimeText,
    /// Until when.
    #[schema(value_type = String, format = DateTime)]
    pub until: TimeText,
    /// What is reserved, by start.
    pub reservations: Vec<ReservationView>,
    /// Whether there is more than is shown.
    pub more: bool,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationView {
    /// For this job.
    #[schema(value_type = String)]
    pub job: JobId,
    /// For this of its placements.
    pub epoch: u32,
    /// From when on.
    #[schema(value_type = String, format = DateTime)]
    pub start: TimeText,
    /// Until when.
    #[schema(value_type = String, format = DateTime)]
    pub end: TimeText,
    /// How much, in plain words.
    pub amount: String,
    /// How many cores, in thousandths.
    pub cores_thousandths: u64,
    /// How surely: held, firm, soft or running.
    pub surely: String,
}

/// The node that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// The version of the program.
    pub version: String,
    /// The version of this interface.
    pub interface: String,
    /// The node.
    pub node: NodeView,
    /// How jobs find their places here.
    pub recipe: String,
    /// How nodes come to know each other here; nodes of versions that leave no choice do not say.
    #[serde(default)]
    pub overlay: String,
    /// Its folder.
    pub home: String,
    /// Its process.
    pub pid: u32,
    /// On how many disks an accepted job is.
    pub durability: u32,
    /// Since when it runs.
    #[schema(value_type = String, format = DateTime)]
    pub started: TimeText,
    /// For how long it has run.
    #[schema(value_type = String)]
    pub up: SpanText,
    /// Whether it takes no more jobs, since it is about to leave.
    pub leaving: bool,
}

/// A ticket for another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// What to give to `shoal node --join`.
    pub ticket: String,
    /// Until when it can be used.
    #[schema(value_type = String, format = DateTime)]
    pub expires: TimeText,
}

/// A node that is about to leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leaving {
    /// Tasks that still run there.
    pub running: u64,
    /// Jobs that it accepted and that have not ended.
    pub open: u64,
    /// Whether it has nothing left to wait for, and ends now.
    pub done: bool,
}

/// How a node feels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Doctor {
    /// What was looked at.
    pub checks: Vec<Check>,
    /// What it keeps, and the limit of each.
    pub queues: Vec<QueueLevel>,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it is well.
    pub well: bool,
    /// What was seen.
    pub found: String,
}

/// Something that a node keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueLevel {
    /// What it is called.
    pub name: String,
    /// How many there are.
    pub len: u64,
    /// How many there may be.
    pub most: u64,
}
