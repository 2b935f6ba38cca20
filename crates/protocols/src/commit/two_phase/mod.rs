//! Two-phase commit over calendars: n nodes reserve the same time together, or none does.
//!
//! ```text
//! coordinator            each participant
//!     │── Prepare ────────────▶│  could you?                      (epoch saved before)
//!     │◀──────────────── Vote ─│  yes, held for 30 s; or no
//!     │── Commit ─────────────▶│  all said yes
//!     │◀─────────── Committed ─│  on my disk                      (lock saved before)
//!     │                        │  … nodes only in the old placement: Release, Released
//!     │── Confirm ────────────▶│  on everybody's disk: start it   (placement saved before)
//!     │◀─────────── Confirmed ─│
//!     │
//!     │── Abort ──────────────▶│  somebody said no, or nothing
//!     │◀───────────────── Ask ─│  I am in doubt
//! ```
//!
//! The point of no return is the coordinator's saved placement, just before Confirm. Before it a crash of the
//! coordinator means abort: its saved epoch tells it whom to tell. A participant promises nothing durable before
//! Commit, so a crash between Prepare and Commit makes it refuse the Commit, and all others let go.
//!
//! - **A lock that is not confirmed lasts 30 s from the coordinator's last word**, then it is dropped, the
//!   coordinator is told, and a Commit or Confirm that comes later is refused. A node in doubt asks before it drops.
//! - **Make before break**: a job that is placed can be placed anew with the next epoch. Nodes ignore the job's
//!   own older reservation when they vote, and keep it until the new one is confirmed. Nodes that are only in the
//!   old placement are released before Confirm, so that the two do not both start.
//! - **A job has one coordinator** as long as a node has promised something to it; others are refused.
//! - **Epochs only grow**, are saved before they are used, and are used for one set of nodes each.
//!
//! Specification: Fiscato, Costa, Pierre 2008, "two-phase commit over reservations". Done otherwise: the decision
//! is recorded after the acknowledgements of Commit instead of before Commit. A hold may expire under a Commit, so
//! only acknowledged commits make a placement, and recording the decision once, after them, saves a write.
//! And Confirm is answered and repeated: a node that let go and crashed before it could say so would otherwise be
//! missed when the others start. A placement costs 6 n messages, and 2 for each node released.

mod coordinator;
mod message;
mod participant;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use shoal_model::calendar::{Calendar, Capacity};
use shoal_model::job::MAX_NODES_PER_JOB;
use shoal_model::{Amount, Epoch, JobId, NodeId, Span, Time};

use crate::protocol::{Ctx, Input, Layer, Never, Protocol};
use crate::shared::Shared;
use coordinator::Coordinated;
pub use message::{Brief, Key, Lock, Message, Placement, Prepare, Record, Tenure, Vote};
use participant::Locked;
pub use participant::Stage;

/// The most locks that a node keeps, with those that have ended and whose coordinator does not know; beyond it votes no.
pub const LOCKS_MAX: usize = 100_000;
/// The most of them for one coordinator other than the node itself, so that none can keep out the others.
pub const LOCKS_PER_PEER_MAX: usize = LOCKS_MAX / 4;
/// The most nodes that a job can be placed on.
pub const NODES_MAX: usize = MAX_NODES_PER_JOB as usize;

/// What the commit can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long a lock lasts after the coordinator's last word, in milliseconds.
    pub hold_ms: u32,
    /// How long to wait for an answer before asking again, in milliseconds.
    pub patience_ms: u32,
    /// How often to ask again before giving up.
    pub tries: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config { hold_ms: 30_000, patience_ms: 2_000, tries: 3 }
    }
}

impl Config {
    fn hold(&self) -> Span {
        Span::from_millis(u64::from(self.hold_ms))
    }

    fn patience(&self) -> Span {
        Span::from_millis(u64::from(self.patience_ms))
    }
}

/// What a node is told at its making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<A: Amount> {
    /// How patient to be.
    pub config: Config,
    /// What the node has to give.
    pub capacity: Capacity<A>,
}

/// What the layer above asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<A, B> {
    /// Place a job; ends in [`Event::Placed`] or [`Event::Failed`].
    Propose(Proposal<A, B>),
    /// Take a job off all nodes; it may be proposed again.
    Release(JobId),
    /// A job is over: take it off all nodes and forget it.
    Forget(JobId),
}

/// Where and when a job could run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal<A, B> {
    /// Which job.
    pub job: JobId,
    /// When it starts.
    pub start: Time,
    /// How long it may run.
    pub span: Span,
    /// Where, by rank, and what it takes there.
    pub shares: Vec<(NodeId, A)>,
    /// Placements up to this number are known elsewhere: those of the job are numbered on from there.
    pub after: Epoch,
    /// By when all nodes of the old placement must have let go, because the job must never run twice. The new one stands
    /// only after that; if they do not in time, neither stands.
    pub leave_by: Option<Time>,
    /// What the nodes must know for the start.
    pub brief: Shared<B>,
}

/// What the node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// As coordinator: who has not answered?
    Retry(JobId, Epoch),
    /// As coordinator: who has not confirmed? With the number of the reminder.
    Remind(JobId, Epoch, u8),
    /// As coordinator: who has not let go of the placements up to this one? With the number of the reminder.
    Chase(JobId, Epoch, u8),
    /// As participant: what has become of this lock?
    Doubt(JobId, Epoch),
}

/// What the layer above gets to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// As coordinator: the job is placed, durably and everywhere.
    Placed(JobId, Placement),
    /// As coordinator: this attempt came to nothing; an older placement stands.
    Failed {
        /// Which job.
        job: JobId,
        /// Which attempt.
        epoch: Epoch,
        /// Because of what.
        why: Failure,
    },
    /// As coordinator: the placement no longer stands, or never did: a node let go, or one that had to did not, or we
    /// crashed on the way.
    Unplaced {
        /// Which job.
        job: JobId,
        /// Which of its placements.
        epoch: Epoch,
        /// Who let go, if somebody did.
        by: Option<NodeId>,
    },
    /// As participant: this is to be started here at its time.
    Confirmed(JobId, Epoch),
    /// As participant: this is no longer to run here; stop it if it does.
    Released(JobId, Epoch),
}

/// Why an attempt came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// A node said no.
    Refused {
        /// Which.
        by: NodeId,
        /// When it could.
        next: Option<Time>,
    },
    /// Nodes did not answer.
    Silent(Vec<NodeId>),
}

/// A node's part in all commits: as coordinator of some jobs, as participant of others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TwoPhase<A: Amount, B> {
    config: Config,
    calendar: Calendar<A>,
    /// Boxed, as what is coordinated is: a third of a map's room is empty, and there may be very many.
    locks: BTreeMap<(JobId, Epoch), Box<Locked<A, B>>>,
    /// Placements that have ended here, until the layer above says that their coordinator knows.
    finished: BTreeSet<(JobId, Epoch)>,
    /// How many of the locks each coordinator has.
    locks_of: BTreeMap<NodeId, usize>,
    coordinated: BTreeMap<JobId, Box<Coordinated<A, B>>>,
    /// Saved locks for which there is no longer room, because the owner gives less than before.
    unfit: Vec<Lock<A, B>>,
}

impl<A: Amount, B: Brief> Layer for TwoPhase<A, B> {
    type Command = Command<A, B>;
    type Message = Message<A, B>;
    type Timer = Timer;
    type Record = Record<A, B>;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl<A: Amount, B: Brief> Protocol for TwoPhase<A, B> {
    type Config = Setting<A>;

    fn restore(
        setting: &Setting<A>,
        _me: NodeId,
        records: impl Iterator<Item = Record<A, B>>,
    ) -> TwoPhase<A, B> {
        let mut commit = TwoPhase {
            config: setting.config,
            calendar: Calendar::new(setting.capacity.clone()),
            locks: BTreeMap::new(),
            finished: BTreeSet::new(),
            locks_of: BTreeMap::new(),
            coordinated: BTreeMap::new(),
            unfit: Vec::new(),
        };
        let (mut coordinated, mut locks) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Tenure(tenure) => {
                    coordinated.push((tenure.job, Box::new(Coordinated::restore(tenure))));
                }
                Record::Lock(lock) => locks.push(Box::new(Locked::restore(lock))),
            }
        }
        let locks = participant::in_turn(locks).filter_map(|locked| commit.restore_lock(locked));
        let locks: Vec<_> = locks.map(|locked| ((locked.lock.job, locked.lock.epoch), locked)).collect();
        // Made from all at once: one by one and in order, they would leave nodes half empty.
        commit.coordinated = coordinated.into_iter().collect();
        commit.locks = locks.into_iter().collect();
        for locked in commit.locks.values() {
            *commit.locks_of.entry(locked.lock.coordinator).or_default() += 1;
        }
        commit
    }

    fn handle(&mut self, input: Input<Self>, ctx: &mut Ctx<'_, Self>) {
        match input {
            Input::Boot => {
                self.boot_coordinator(ctx);
                self.boot_participant(ctx);
            }
            Input::Command(Command::Propose(proposal)) => self.propose(proposal, ctx),
            Input::Command(Command::Release(job)) => self.release(job, false, ctx),
            Input::Command(Command::Forget(job)) => self.release(job, true, ctx),
            Input::Message { from, message } => match message {
                Message::Prepare(prepare) => self.on_prepare(from, *prepare, ctx),
                Message::Vote { job, epoch, vote } => self.on_vote(from, job, epoch, vote, ctx),
                Message::Commit { job, epoch, brief } => self.on_commit(from, job, epoch, brief, ctx),
                Message::Committed { job, epoch } => self.on_committed(from, job, epoch, ctx),
                Message::Refuse { job, epoch } => self.on_refuse(from, job, epoch, ctx),
                Message::Dropped { job, epoch } => self.on_dropped(from, job, epoch, ctx),
                Message::Confirmed { job, epoch } => self.on_confirmed(from, job, epoch, ctx),
                Message::Confirm { job, epoch } => self.on_confirm(from, job, epoch, ctx),
                Message::Abort { job, epoch } => self.on_abort(from, job, epoch, ctx),
                Message::Release { job, upto } => self.on_release(from, job, upto, ctx),
                Message::Released { job, upto } => self.on_released(from, job, upto, ctx),
                Message::Ask { job, epoch } => self.on_ask(from, job, epoch, ctx),
            },
            Input::Timer(Timer::Retry(job, epoch)) => self.on_retry(job, epoch, ctx),
            Input::Timer(Timer::Remind(job, epoch, reminder)) => self.on_remind(job, epoch, reminder, ctx),
            Input::Timer(Timer::Chase(job, upto, reminder)) => self.on_chase(job, upto, reminder, ctx),
            Input::Timer(Timer::Doubt(job, epoch)) => self.on_doubt(job, epoch, ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl<A: Amount, B: Brief> TwoPhase<A, B> {
    /// What is reserved on this node.
    pub fn calendar(&self) -> &Calendar<A> {
        &self.calendar
    }

    /// The jobs that this node coordinates, those not counted that it was told to forget.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.coordinated.iter().filter(|(_, coordinated)| !coordinated.over).map(|(&job, _)| job)
    }

    /// Where a job that this node coordinates is placed.
    pub fn placement(&self, job: JobId) -> Option<&Placement> {
        self.coordinated.get(&job)?.placed.as_ref()
    }

    /// The number of the last placement of a job that this node coordinates, or of what was to be one.
    pub fn last_epoch(&self, job: JobId) -> Epoch {
        self.coordinated.get(&job).map(|coordinated| coordinated.last).unwrap_or_default()
    }

    /// Whether an attempt at placing the job is under way.
    pub fn is_placing(&self, job: JobId) -> bool {
        self.coordinated.get(&job).is_some_and(|coordinated| coordinated.attempt().is_some())
    }

    /// A node that has yet to let go of a job that this node coordinates, if there is one.
    pub fn lingers_on(&self, job: JobId) -> Option<NodeId> {
        self.coordinated.get(&job)?.releasing().first().map(|&(node, _)| node)
    }

    /// Whether this node coordinates the job, and has not been told that it is over.
    pub fn is_open(&self, job: JobId) -> bool {
        self.coordinated.get(&job).is_some_and(|coordinated| !coordinated.over)
    }

    /// What this node has promised of a placement, and how firmly.
    pub fn lock(&self, job: JobId, epoch: Epoch) -> Option<(&Lock<A, B>, Stage)> {
        self.locks.get(&(job, epoch)).map(|locked| (&locked.lock, locked.stage))
    }

    /// All that this node has promised.
    pub fn locks(&self) -> impl Iterator<Item = (&Lock<A, B>, Stage)> {
        self.locks.values().map(|locked| (&locked.lock, locked.stage))
    }

    /// Until when this node holds time for jobs whose coordinators have not committed yet.
    pub fn holds(&self) -> impl Iterator<Item = (JobId, Epoch, Time)> {
        let held = self.locks.values().filter(|locked| locked.stage == Stage::Held);
        held.map(|locked| (locked.lock.job, locked.lock.epoch, locked.until))
    }

    /// How many parts of this node are promised.
    pub fn promised(&self) -> usize {
        self.locks.len()
    }

    /// How many placements have ended here without their coordinator's knowing.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// When the oldest lock that is not confirmed must be gone.
    pub fn oldest_doubt(&self) -> Option<Time> {
        self.locks.values().filter(|locked| locked.stage != Stage::Confirmed).map(|locked| locked.until).min()
    }
}
