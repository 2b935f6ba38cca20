//! Questions to other nodes: what a user asks about a job is answered by the node that knows, through any node.
//!
//! ```text
//! user ──▶ this node ── Find ──▶ all others     whose is it?
//!              │◀── ids ─────────┘
//!              │── Status, Cancel, Output … ──▶ the owner, or the node that runs the task
//! user ◀───────┘◀── head, then parts ──────────┘  passed on as they come
//! ```
//!
//! A question is JSON, so that nodes of two versions understand each other: what one does not know, it passes over. The
//! answer is a head ([`Head`], JSON) and then the bytes that the interface would have answered with.
//!
//! How bytes get there is for an [`Elsewhere`] to say: the network's ([`grid::Peers`]), or [`local::Exchange`] between nodes of one process.
//! What arrives is answered by a [`Responder`].

pub mod grid;
pub mod local;
mod parts;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use serde::{Deserialize, Serialize};
use shoal_api::{LogQuery, Problem, Until};
use shoal_model::units::TimeText;
use shoal_model::{Digest, Epoch, JobId, NodeId, Rank, Resources};
use tokio::sync::mpsc;

use crate::network::quic::Counts;
use crate::service::{By, ListQuery, Order};
pub use parts::{Breaker, BrokeOff, Parts};

/// The most bytes of a question.
pub const QUESTION_MAX: usize = 64 << 10;
/// The most bytes of one part of an answer.
pub const PART_MAX: usize = 64 << 10;
/// The most bytes of an answer that is read as a whole.
pub const WHOLE_MAX: usize = 16 << 20;
/// Parts of an answer that wait for who reads them.
pub const PARTS_WAITING_MAX: usize = 8;
/// How long another node may take to begin its answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long another node may take to have all outputs of a task.
pub const KEPT_WITHIN: Duration = Duration::from_mins(30);

/// What comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The way to the other nodes of the grid.
pub trait Elsewhere: Send + Sync {
    /// The others, as far as they are known.
    fn members(&self) -> Vec<NodeId>;

    /// Those of them that can be asked without a new connection.
    fn connected(&self) -> Vec<NodeId> {
        self.members()
    }

    /// Whether one of them has said that it stops, and has not been heard since.
    fn has_stopped(&self, node: NodeId) -> bool {
        let _ = node;
        false
    }

    /// What was counted of all that was said and heard.
    fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Asks one of them; its answer comes in parts.
    fn ask(&self, to: NodeId, question: Bytes) -> Later<'_, Result<Parts, Unreachable>>;
}

/// Answers the questions of other nodes.
pub trait Responder: Send + Sync {
    /// Answers in parts; who asks has gone when they can no longer be sent.
    fn respond(&self, from: NodeId, question: Bytes, answer: mpsc::Sender<Bytes>) -> Later<'_, ()>;
}

/// A node that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node} cannot be reached: {why}")]
pub struct Unreachable {
    /// The node.
    pub node: NodeId,
    /// Why.
    pub why: String,
}

/// What one node asks another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Question {
    /// Which jobs that you accepted have ids that begin so? Answered by a list of ids.
    Find {
        /// How they begin.
        prefix: String,
    },
    /// See [`shoal_api::JobStatus`].
    Status {
        /// Of which job.
        job: JobId,
    },
    /// Take it back.
    Cancel {
        /// Which job.
        job: JobId,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// Do not start it.
    Hold {
        /// Which job.
        job: JobId,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// It may start.
    Release {
        /// Which job.
        job: JobId,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// See [`shoal_api::Why`].
    Why {
        /// Of which job.
        job: JobId,
    },
    /// Answer when it is so far, or when the time is up.
    Wait {
        /// Which job.
        job: JobId,
        /// How far.
        until: Until,
        /// How long at most.
        most_ms: u64,
    },
    /// What happened to it, and what happens from now on.
    Events {
        /// To which job.
        job: JobId,
    },
    /// The output of a job; asked of its owner, which passes on what the node says that runs the task.
    Logs {
        /// Of which job.
        job: JobId,
        /// Which part of which output.
        query: LogQuery,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// The output of a task that ran or runs where this is asked.
    Output {
        /// Of which job.
        job: JobId,
        /// Which part of which output, with an epoch.
        query: LogQuery,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// The bytes of a file that is here. Before them, unless they are to come plain: its size (8 bytes), the length of
    /// its outline (4 bytes) and its outline; all numbers little-endian.
    Blob {
        /// Its hash.
        digest: Digest,
        /// From which byte on.
        from: u64,
        /// Without what comes before.
        #[serde(default)]
        plain: bool,
    },
    /// The bytes of small files that are all here, one after the other.
    Blobs {
        /// Their hashes.
        digests: Vec<Digest>,
    },
    /// Keep the outputs of a task too; answered once they are there.
    Keep {
        /// Of which job.
        job: JobId,
        /// Of which of its placements.
        epoch: Epoch,
        /// Which part.
        rank: Rank,
        /// The list of its outputs.
        outputs: Digest,
        /// Who has them.
        holder: NodeId,
    },
    /// The list of the outputs of a task that ran here, or is kept here; answered by its hash.
    Outputs {
        /// Of which job.
        job: JobId,
        /// Of which of its placements.
        epoch: Epoch,
        /// Which part.
        rank: Rank,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// The secrets of a job for a task that was placed on who asks; answered by a box that only its key opens.
    Secrets {
        /// Of which job.
        job: JobId,
        /// Of which of its placements.
        epoch: Epoch,
        /// Which part.
        rank: Rank,
        /// The key of who asks.
        key: String,
    },
    /// See [`shoal_api::FileList`].
    Files {
        /// Of which job.
        job: JobId,
        /// Who asks.
        #[serde(default)]
        by: By,
    },
    /// See [`shoal_api::NodeView`].
    Node,
    /// See [`shoal_model::Machine`].
    Machine,
    /// Which jobs have you accepted? Answered by a [`Listing`](crate::service::Listing).
    List {
        /// In which order.
        order: Order,
        /// Which of them.
        query: ListQuery,
    },
    /// From when on do you have room for this? Answered by a time, or none.
    Free {
        /// The job, whose own place does not count.
        job: JobId,
        /// What it takes of each node.
        resources: Resources,
        /// For how long.
        limit_us: u64,
        /// Not before.
        begin: Option<TimeText>,
    },
    /// Which notices do you have, if they are not those with this digest? Answered by a list of texts.
    Notices {
        /// Of all of ours.
        digest: String,
    },
    /// See [`shoal_api::HostUsage`].
    Usage,
    /// Something new.
    Notice {
        /// The notice.
        text: String,
    },
    /// See [`shoal_api::CalendarView`].
    Calendar {
        /// From now on, for so long.
        span_ms: u64,
    },
}

/// What an answer begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// How it went, as HTTP counts.
    pub status: u16,
    /// What kind of bytes follow.
    pub kind: String,
}

/// An answer, of this node or of another.
#[derive(Debug)]
pub struct Reply {
    /// How it went, and what kind of answer it is.
    pub head: Head,
    /// The answer.
    pub body: Body,
}

/// The bytes of an answer.
#[derive(Debug)]
pub enum Body {
    /// All at once.
    Whole(Bytes),
    /// As they come.
    Parts(Parts),
}

/// The kind of an answer for programs.
pub const JSON: &str = "application/json";
/// The kind of an output.
pub const PLAIN: &str = "application/octet-stream";
/// The kind of events as they happen.
pub const EVENTS: &str = "text/event-stream";

impl Reply {
    /// An answer for programs.
    pub fn json(status: u16, data: &impl Serialize) -> Reply {
        let (status, bytes) = match serde_json::to_vec(data) {
            Ok(bytes) => (status, bytes),
            Err(error) => (500, format!("{{\"error\":\"cannot write the answer: {error}\"}}").into_bytes()),
        };
        Reply { head: Head { status, kind: JSON.to_owned() }, body: Body::Whole(bytes.into()) }
    }

    /// An answer that comes in parts.
    pub fn parts(kind: &str, parts: impl Into<Parts>) -> Reply {
        Reply { head: Head { status: 200, kind: kind.to_owned() }, body: Body::Parts(parts.into()) }
    }

    /// No.
    pub fn problem(status: u16, problem: &Problem) -> Reply {
        Reply::json(status, problem)
    }

    /// Sends the answer to who asked.
    pub async fn send(self, to: mpsc::Sender<Bytes>) {
        let Ok(head) = serde_json::to_vec(&self.head) else { return };
        if to.send(head.into()).await.is_err() {
            return;
        }
        match self.body {
            Body::Whole(bytes) => {
                for part in bytes.chunks(PART_MAX) {
                    if to.send(Bytes::copy_from_slice(part)).await.is_err() {
                        return;
                    }
                }
            }
            Body::Parts(mut parts) => loop {
                tokio::select! {
                    part = parts.recv() => {
                        let Some(part) = part else { return };
                        if to.send(part).await.is_err() {
                            return;
                        }
                    }
                    // Who asked has gone; the one who makes the parts learns it when `parts` is dropped.
                    () = to.closed() => return,
                }
            },
        }
    }

    /// Reads an answer of another node: its head now, the rest as it comes.
    pub async fn receive(from: NodeId, mut parts: Parts, patience: Duration) -> Result<Reply, Unreachable> {
        let nonsense = |why: &str| Unreachable { node: from, why: why.to_owned() };
        let head = tokio::time::timeout(patience, parts.recv()).await;
        let head = head.map_err(|_| nonsense("it does not answer"))?;
        let head = head.ok_or_else(|| nonsense("it broke off"))?;
        let head: Head = serde_json::from_slice(&head).map_err(|_| nonsense("its answer makes no sense"))?;
        Ok(Reply { head, body: Body::Parts(parts) })
    }

    /// Reads the rest, and what it says; `None` if it is no such thing, or too long.
    pub async fn read<T: serde::de::DeserializeOwned>(self) -> Option<T> {
        if !(200..300).contains(&self.head.status) {
            return None;
        }
        let mut all = Vec::new();
        match self.body {
            Body::Whole(bytes) => all.extend_from_slice(&bytes),
            Body::Parts(mut parts) => {
                while let Ok(Some(part)) = tokio::time::timeout(PATIENCE, parts.recv()).await {
                    if all.len() + part.len() > WHOLE_MAX {
                        return None;
                    }
                    all.extend_from_slice(&part);
                }
            }
        }
        serde_json::from_slice(&all).ok()
    }
}

impl Question {
    /// How long its answer may take to begin.
    pub fn patience(&self) -> Duration {
        match self {
            Question::Wait { most_ms, .. } => PATIENCE.saturating_add(Duration::from_millis(*most_ms)),
            Question::Keep { .. } => KEPT_WITHIN,
            Question::Find { .. }
            | Question::Blob { .. }
            | Question::Blobs { .. }
            | Question::Outputs { .. }
            | Question::Files { .. }
            | Question::Secrets { .. }
            | Question::Status { .. }
            | Question::Cancel { .. }
            | Question::Hold { .. }
            | Question::Release { .. }
            | Question::Why { .. }
            | Question::Events { .. }
            | Question::Logs { .. }
            | Question::Output { .. }
            | Question::Node
            | Question::Machine
            | Question::List { .. }
            | Question::Free { .. }
            | Question::Notices { .. }
            | Question::Notice { .. }
            | Question::Usage
            | Question::Calendar { .. } => PATIENCE,
        }
    }

    /// The question as bytes.
    pub fn write(&self) -> Bytes {
        serde_json::to_vec(self).expect("a question is plain data").into()
    }

    /// The question that bytes stand for; why not, if they do not.
    pub fn read(bytes: &[u8]) -> Result<Question, String> {
        if bytes.len() > QUESTION_MAX {
            return Err(format!("a question of {} bytes, at most {QUESTION_MAX}", bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|error| format!("a question that makes no sense: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_read_back_what_they_write_and_pass_over_what_is_new() {
        let job = JobId([7; 16]);
        let query = LogQuery { follow: true, epoch: Some(2), ..LogQuery::default() };
        let questions = [
            Question::Find { prefix: "7f".to_owned() },
            Question::Wait { job, until: Until::Started, most_ms: 5 },
            Question::Output { job, query, by: By { user: Some("me".to_owned()), ..By::default() } },
            Question::Node,
        ];
        for question in questions {
            assert_eq!(Question::read(&question.write()), Ok(question));
        }
        let newer = format!("{{\"ask\":\"status\",\"job\":\"{job}\",\"colour\":3}}");
        assert_eq!(Question::read(newer.as_bytes()), Ok(Question::Status { job }));
    }

    #[test]
    fn questions_without_sense_or_bound_are_refused() {
        for bytes in [&b""[..], b"{}", b"{\"ask\":\"dance\"}", b"[1,2", &vec![b' '; QUESTION_MAX + 1]] {
            assert!(Question::read(bytes).is_err());
        }
    }
}
