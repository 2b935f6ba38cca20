//! What coordinators and participants say to each other, and what each must remember.

use std::fmt::Debug;
use std::hash::Hash;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Amount, Epoch, JobId, NodeId, Span, Time};

use crate::nodes::Nodes;
use crate::protocol;
use crate::shared::Shared;

/// What the nodes of a placement must know to start the job; the commit carries it and does not look.
pub trait Brief: Clone + Debug + Eq + Hash + Send + Sync {
    /// What it is accounted for on the wire.
    fn bytes(&self) -> u64;

    /// Whether it tells this node how to start this job, and not another.
    fn suits(&self, job: JobId, node: NodeId) -> bool;

    /// Calls `mention` with each node that it speaks of.
    fn mentions(&self, mention: &mut dyn FnMut(NodeId));
}

impl Brief for () {
    fn bytes(&self) -> u64 {
        0
    }

    fn suits(&self, _job: JobId, _node: NodeId) -> bool {
        true
    }

    fn mentions(&self, _mention: &mut dyn FnMut(NodeId)) {}
}

/// What coordinator (C) and participant (P) say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message<A, B> {
    /// C → P: can you? Answered by [`Message::Vote`].
    #[n(0)]
    Prepare(#[n(0)] Box<Prepare<A>>),
    /// P → C: yes, held; or no, and when it could be.
    #[n(1)]
    Vote {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// Yes or no.
        #[n(2)]
        vote: Vote,
    },
    /// C → P: everybody can; make it durable. Answered by [`Message::Committed`] or [`Message::Refuse`].
    #[n(2)]
    Commit {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// What to know for the start.
        #[n(2)]
        brief: Shared<B>,
    },
    /// P → C: it is on my disk.
    #[n(3)]
    Committed {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// P → C: I do not have what you want committed or confirmed.
    #[n(4)]
    Refuse {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// P → C: I had it, and let go: its time ran out, or there is no room any more.
    #[n(5)]
    Dropped {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// C → P: it is on everybody's disk; start it when its time comes. Answered by [`Message::Confirmed`] or
    /// [`Message::Refuse`], and repeated until then.
    #[n(6)]
    Confirm {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// P → C: it will start here.
    #[n(7)]
    Confirmed {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// C → P: it will not be; let go.
    #[n(8)]
    Abort {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// C → P: let go of all placements of the job up to this one, even confirmed ones. Answered by
    /// [`Message::Released`].
    #[n(9)]
    Release {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// The last placement that is over.
        #[n(1)]
        upto: Epoch,
    },
    /// P → C: gone.
    #[n(10)]
    Released {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// The last placement that is over.
        #[n(1)]
        upto: Epoch,
    },
    /// P → C: I am in doubt. Answered by whichever of Commit, Confirm and Abort is true.
    #[n(11)]
    Ask {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
}

/// What a node is asked to hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub struct Prepare<A> {
    /// Which job.
    #[n(0)]
    pub job: JobId,
    /// Which of its placements.
    #[n(1)]
    pub epoch: Epoch,
    /// When it starts.
    #[n(2)]
    pub start: Time,
    /// How long it may run.
    #[n(3)]
    pub span: Span,
    /// What it takes of the node.
    #[n(4)]
    pub amount: A,
}

/// A participant's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub enum Vote {
    /// Held.
    #[n(0)]
    Yes,
    /// Not free then; perhaps from this time on.
    #[n(1)]
    No(#[n(0)] Option<Time>),
}

/// Where and when a job is to run; a node's rank is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub struct Placement {
    /// Which of the job's placements this is.
    #[n(0)]
    pub epoch: Epoch,
    /// When it starts.
    #[n(1)]
    pub start: Time,
    /// How long it may run.
    #[n(2)]
    pub span: Span,
    /// Where, by rank.
    #[n(3)]
    pub nodes: Nodes,
}

/// What must survive a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Record<A, B> {
    /// A coordinator's view of a job.
    #[n(0)]
    Tenure(#[n(0)] Tenure),
    /// A participant's promise.
    #[n(1)]
    Lock(#[n(0)] Lock<A, B>),
}

/// What a coordinator must know of a job after a crash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub struct Tenure {
    /// Which job.
    #[n(0)]
    pub job: JobId,
    /// The last epoch that was ever used for it.
    #[n(1)]
    pub last: Epoch,
    /// Who may hold or have committed the placement under way.
    #[n(2)]
    pub asked: Vec<NodeId>,
    /// Where it is placed, confirmed.
    #[n(3)]
    pub placed: Option<Placement>,
    /// Who has yet to let go, and up to which placement.
    #[n(4)]
    pub releasing: Vec<(NodeId, Epoch)>,
    /// Whether the job has ended: nothing of it stays once all have let go.
    #[n(5)]
    pub over: bool,
}

/// What a participant has promised on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Lock<A, B> {
    /// Which job.
    #[n(0)]
    pub job: JobId,
    /// Which of its placements.
    #[n(1)]
    pub epoch: Epoch,
    /// Who decides on it.
    #[n(2)]
    pub coordinator: NodeId,
    /// When it starts.
    #[n(3)]
    pub start: Time,
    /// How long it is reserved.
    #[n(4)]
    pub span: Span,
    /// What it takes.
    #[n(5)]
    pub amount: A,
    /// Whether all the others have promised too.
    #[n(6)]
    pub confirmed: bool,
    /// What to know for the start; comes with the commit.
    #[n(7)]
    pub brief: Option<Shared<B>>,
    /// By how much it was made longer, because it started late.
    #[n(8)]
    pub longer_by: Option<Span>,
}

impl<A, B> Lock<A, B> {
    /// How long it may run.
    pub fn time(&self) -> Span {
        self.span.saturating_sub(self.longer_by.unwrap_or_default())
    }

    /// Whether it is what a coordinator asks for.
    pub(super) fn answers(&self, coordinator: NodeId, prepare: &Prepare<A>) -> bool
    where
        A: PartialEq,
    {
        let Prepare { job, epoch, start, span, ref amount } = *prepare;
        self.coordinator == coordinator
            && (self.job, self.epoch, self.start, self.span) == (job, epoch, start, span)
            && self.amount == *amount
    }
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub enum Key {
    /// A job that this node coordinates.
    #[n(0)]
    Tenure(#[n(0)] JobId),
    /// A placement that this node is part of.
    #[n(1)]
    Lock(#[n(0)] JobId, #[n(1)] Epoch),
}

impl<A: Amount, B: Brief> protocol::Record for Record<A, B> {
    type Key = Key;

    fn key(&self) -> Key {
        match self {
            Record::Tenure(tenure) => Key::Tenure(tenure.job),
            Record::Lock(lock) => Key::Lock(lock.job, lock.epoch),
        }
    }
}

/// What a message that names a job and an epoch is accounted for, headers and signature included.
const SHORT_BYTES: u64 = 64;
/// What a request to hold adds: two times and a vector of resources.
const PREPARE_BYTES: u64 = 64;

impl<A: Amount, B: Brief> protocol::Message for Message<A, B> {
    const KINDS: &'static [&'static str] = &[
        "prepare",
        "vote",
        "commit",
        "committed",
        "refuse",
        "dropped",
        "confirm",
        "confirmed",
        "abort",
        "release",
        "released",
        "ask",
    ];

    fn kind(&self) -> usize {
        match self {
            Message::Prepare(_) => 0,
            Message::Vote { .. } => 1,
            Message::Commit { .. } => 2,
            Message::Committed { .. } => 3,
            Message::Refuse { .. } => 4,
            Message::Dropped { .. } => 5,
            Message::Confirm { .. } => 6,
            Message::Confirmed { .. } => 7,
            Message::Abort { .. } => 8,
            Message::Release { .. } => 9,
            Message::Released { .. } => 10,
            Message::Ask { .. } => 11,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Prepare(_) => SHORT_BYTES + PREPARE_BYTES,
            Message::Commit { brief, .. } => SHORT_BYTES + brief.bytes(),
            Message::Vote { .. }
            | Message::Committed { .. }
            | Message::Refuse { .. }
            | Message::Dropped { .. }
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Abort { .. }
            | Message::Release { .. }
            | Message::Released { .. }
            | Message::Ask { .. } => SHORT_BYTES,
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Commit { brief, .. } => brief.mentions(mention),
            Message::Prepare(_)
            | Message::Vote { .. }
            | Message::Committed { .. }
            | Message::Refuse { .. }
            | Message::Dropped { .. }
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Abort { .. }
            | Message::Release { .. }
            | Message::Released { .. }
            | Message::Ask { .. } => {}
        }
    }
}
