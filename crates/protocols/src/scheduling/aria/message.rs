//! What initiators and assignees say, remember and are reminded of.

use std::fmt;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Epoch, JobId, NodeId, Span, Time};

use super::cost::Cost;
use crate::commit::two_phase::Placement;
use crate::node::Brief;
use crate::protocol;
use crate::shared::Shared;
use shoal_model::Needs;

/// A word that goes round: who could take this job?
#[derive(Clone, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Ask {
    /// Who wants to know, and gets the offers: the initiator, or the assignee.
    #[n(0)]
    pub from: NodeId,
    /// For which job.
    #[n(1)]
    pub job: JobId,
    /// Which time it asks.
    #[n(2)]
    pub round: u32,
    /// What the job needs.
    #[n(3)]
    pub needs: Needs,
    /// How important it is.
    #[n(4)]
    pub priority: i16,
    /// What it costs where it is; none for a job without a place.
    #[n(5)]
    pub cost: Option<Cost>,
}

impl Ask {
    /// A number for the flood: the same for all copies of it.
    pub fn flood(&self) -> u64 {
        let [a, b] = [0, 8].map(|at| {
            let half = self.job.0.as_chunks::<8>().0.get(at / 8).copied().unwrap_or_default();
            u64::from_be_bytes(half)
        });
        let kind = u64::from(self.cost.is_some());
        let round = u64::from(self.round) << 1 | kind;
        (a ^ b.rotate_left(17) ^ self.from.0.rotate_left(40))
            .wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} round {}", self.job, self.from, self.round)?;
        self.cost.map_or(Ok(()), |cost| write!(f, " at {cost}"))
    }
}

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// REQUEST: who could take a new job? Goes round; with the hops that it has come. Answered by [`Message::Accept`].
    #[n(0)]
    Request(#[n(0)] Shared<Ask>, #[n(1)] u8),
    /// INFORM: who could take a waiting job at less? Goes round; answered by [`Message::Accept`].
    #[n(1)]
    Inform(#[n(0)] Shared<Ask>, #[n(1)] u8),
    /// ACCEPT: I could, at this cost. Binds nobody.
    #[n(2)]
    Accept {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which time it was asked for.
        #[n(1)]
        round: u32,
        /// Whether by an INFORM.
        #[n(2)]
        informed: bool,
        /// What it would cost.
        #[n(3)]
        cost: Cost,
    },
    /// ASSIGN: it is yours, once that is confirmed. Answered by [`Message::Assigned`] or [`Message::Refused`].
    #[n(3)]
    Assign {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// What to run.
        #[n(2)]
        brief: Shared<Brief>,
        /// Its hard limit.
        #[n(3)]
        limit: Span,
    },
    /// I have it on my disk; and later: I have it still. Answered by [`Message::Confirm`], or [`Message::Cancel`].
    #[n(4)]
    Assigned {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// Drawn when it came: whoever has lost its disk since draws another.
        #[n(2)]
        token: u32,
        /// When it would start as things stand.
        #[n(3)]
        start: Time,
    },
    /// There is no room for it, or it does not fit here.
    #[n(5)]
    Refused {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// You may start it when its turn comes.
    #[n(6)]
    Confirm {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// As it was drawn.
        #[n(2)]
        token: u32,
    },
    /// NOTIFY: somebody would take this job at less; I leave it alone until I hear. Answered by [`Message::Stay`] or
    /// [`Message::Cancel`].
    #[n(7)]
    Notify {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// How often its place has been in question.
        #[n(2)]
        turn: u32,
        /// Who.
        #[n(3)]
        to: NodeId,
    },
    /// It stays with you.
    #[n(8)]
    Stay {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Which of its placements.
        #[n(1)]
        epoch: Epoch,
        /// Which question this answers.
        #[n(2)]
        turn: u32,
    },
    /// CANCEL: let go of this placement and any before. Answered by [`Message::Cancelled`].
    #[n(9)]
    Cancel {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Up to which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
    /// I have.
    #[n(10)]
    Cancelled {
        /// Which job.
        #[n(0)]
        job: JobId,
        /// Up to which of its placements.
        #[n(1)]
        epoch: Epoch,
    },
}

/// REQUEST, INFORM and ASSIGN carry a job's profile (IV-E).
const PROFILE_BYTES: u64 = 1_024;
/// Everything else is short (IV-E for ACCEPT).
const SHORT_BYTES: u64 = 128;
/// What an ASSIGN carries besides its brief.
const ASSIGN_BYTES: u64 = 64;

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &[
        "request",
        "inform",
        "accept",
        "assign",
        "assigned",
        "refused",
        "confirm",
        "notify",
        "stay",
        "cancel",
        "cancelled",
    ];

    fn kind(&self) -> usize {
        match self {
            Message::Request(..) => 0,
            Message::Inform(..) => 1,
            Message::Accept { .. } => 2,
            Message::Assign { .. } => 3,
            Message::Assigned { .. } => 4,
            Message::Refused { .. } => 5,
            Message::Confirm { .. } => 6,
            Message::Notify { .. } => 7,
            Message::Stay { .. } => 8,
            Message::Cancel { .. } => 9,
            Message::Cancelled { .. } => 10,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Request(..) | Message::Inform(..) => PROFILE_BYTES,
            // A large script does not fit into the paper's bytes.
            Message::Assign { brief, .. } => PROFILE_BYTES.max(ASSIGN_BYTES + minicbor::len(brief) as u64),
            Message::Accept { .. }
            | Message::Assigned { .. }
            | Message::Refused { .. }
            | Message::Confirm { .. }
            | Message::Notify { .. }
            | Message::Stay { .. }
            | Message::Cancel { .. }
            | Message::Cancelled { .. } => SHORT_BYTES,
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Request(ask, _) | Message::Inform(ask, _) => mention(ask.from),
            Message::Assign { brief, .. } => brief.nodes.iter().for_each(|&node| mention(node)),
            Message::Notify { to, .. } => mention(*to),
            Message::Accept { .. }
            | Message::Assigned { .. }
            | Message::Refused { .. }
            | Message::Confirm { .. }
            | Message::Stay { .. }
            | Message::Cancel { .. }
            | Message::Cancelled { .. } => {}
        }
    }
}

/// What a node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// As initiator: the offers of this round close.
    Close(JobId, u32),
    /// As initiator: ask again, or for the first time.
    Round(JobId),
    /// As initiator: has the ASSIGN been answered? With the number of the reminder.
    Again(JobId, Epoch, u8),
    /// As initiator: has everybody let go? With the number of the reminder.
    Remind(JobId, u8),
    /// As assignee: has it been confirmed? With the number of the reminder.
    Held(JobId, Epoch, u8),
    /// As assignee: look for better places.
    Inform,
    /// As assignee: the offers for this job close.
    CloseInform(JobId, u32),
    /// As assignee: has the move been answered? With the number of the reminder.
    Moving(JobId, u32, u8),
    /// As assignee: a job's planned start has come.
    Turn,
}

/// What must survive a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Record {
    /// As initiator: where a job is.
    #[n(0)]
    Tenure(#[n(0)] Tenure),
    /// As assignee: a job that is here.
    #[n(1)]
    Seat(#[n(0)] SeatRecord),
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
pub enum Key {
    /// As initiator: where a job is.
    #[n(0)]
    Tenure(#[n(0)] JobId),
    /// As assignee: a job that is here.
    #[n(1)]
    Seat(#[n(0)] JobId),
}

/// Where a job is, and who may still think that it has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Tenure {
    /// Which job.
    #[n(0)]
    pub job: JobId,
    /// The last epoch that was ever used for it.
    #[n(1)]
    pub last: Epoch,
    /// Who was asked to take it, and has not said that it has.
    #[n(2)]
    pub asked: Option<(Epoch, NodeId)>,
    /// Who has it, confirmed.
    #[n(3)]
    pub placed: Option<Placed>,
    /// The last question of its assignee that was acted upon.
    #[n(4)]
    pub turn: u32,
    /// Who has yet to let go, and up to which placement.
    #[n(5)]
    pub leaving: Vec<(Epoch, NodeId)>,
    /// Whether the job has ended: nothing of it stays once all have let go.
    #[n(6)]
    pub over: bool,
}

impl Tenure {
    /// Where the job is, if somebody has it.
    pub fn placement(&self) -> Option<Placement> {
        let Placed { epoch, node, start, span, .. } = self.placed?;
        Some(Placement { epoch, start, span, nodes: vec![node].into() })
    }
}

/// Who has a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Placed {
    /// Which of its placements.
    #[n(0)]
    pub epoch: Epoch,
    /// The assignee.
    #[n(1)]
    pub node: NodeId,
    /// What it drew when the job came.
    #[n(2)]
    pub token: u32,
    /// When it would start, as was said then.
    #[n(3)]
    pub start: Time,
    /// How long it may run.
    #[n(4)]
    pub span: Span,
}

/// A job that is here, on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct SeatRecord {
    /// Which of its placements.
    #[n(0)]
    pub epoch: Epoch,
    /// Its initiator.
    #[n(1)]
    pub owner: NodeId,
    /// Drawn when it came.
    #[n(2)]
    pub token: u32,
    /// What to run.
    #[n(3)]
    pub brief: Shared<Brief>,
    /// Its hard limit.
    #[n(4)]
    pub limit: Span,
    /// Since when it has waited here.
    #[n(5)]
    pub since: Time,
    /// Whether it may start.
    #[n(6)]
    pub confirmed: bool,
    /// How often its place has been in question.
    #[n(7)]
    pub turns: u32,
    /// Who would take it, and has not been asked or has not answered.
    #[n(8)]
    pub moving: Option<NodeId>,
}

impl protocol::Record for Record {
    type Key = Key;

    fn key(&self) -> Key {
        match self {
            Record::Tenure(tenure) => Key::Tenure(tenure.job),
            Record::Seat(seat) => Key::Seat(seat.brief.job()),
        }
    }
}
