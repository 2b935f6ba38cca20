//! What nodes that follow the recipe `asap` say to each other, and what they ask to be reminded of.

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{JobId, Needs, NodeId, Span, Time};

use super::schedule::Schedule;
use crate::protocol;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// From an entry node: search; answered by [`Message::SearchReply`].
    #[n(0)]
    Search(#[n(0)] Box<Search>),
    /// To the entry node: what was found.
    #[n(1)]
    SearchReply {
        /// For which job.
        #[n(0)]
        job: JobId,
        /// In which round.
        #[n(1)]
        round: u32,
        /// What was found.
        #[n(2)]
        answer: Answer,
    },
    /// From a searcher: whom do you know? Answered by [`Message::CacheReply`], within the given time. With the job that a
    /// place is looked for.
    #[n(2)]
    CacheRequest(#[n(0)] Ticket, #[n(1)] Span, #[n(2)] JobId),
    /// To the searcher: my neighbours, with their schedules.
    #[n(3)]
    CacheReply(#[n(0)] Ticket, #[n(1)] Box<[(NodeId, Schedule)]>),
    /// When are you free? Answered by [`Message::ScheduleReply`]; where a place is looked for, as if that job had none yet.
    #[n(4)]
    ScheduleRequest(#[n(0)] Ticket, #[n(1)] Purpose, #[n(2)] Option<JobId>),
    /// Then.
    #[n(5)]
    ScheduleReply(#[n(0)] Ticket, #[n(1)] Schedule),
    /// To a holder: my schedule has changed, or you are new. Who does not hold me says [`Message::Unhold`].
    #[n(6)]
    Update(#[n(0)] Schedule),
    /// You have entered my cache; answered by [`Message::Update`].
    #[n(7)]
    Hold,
    /// You have left my cache.
    #[n(8)]
    Unhold,
}

/// What an entry node has searched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Search {
    /// For which job.
    #[n(0)]
    pub job: JobId,
    /// In which round of the entry node.
    #[n(1)]
    pub round: u32,
    /// What it needs.
    #[n(2)]
    pub needs: Needs,
    /// The earliest start.
    #[n(3)]
    pub from: Time,
    /// How long the entry node waits.
    #[n(4)]
    pub patience: Span,
    /// Nodes that have not answered the entry node, and are no candidates.
    #[n(5)]
    pub avoid: Vec<NodeId>,
}

/// What a searcher has found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Answer {
    /// A place.
    #[n(0)]
    Found {
        /// The earliest start.
        #[n(0)]
        start: Time,
        /// Where, by rank.
        #[n(1)]
        nodes: Box<[NodeId]>,
    },
    /// Not enough nodes that will do.
    #[n(1)]
    TooFew {
        /// How many were looked at.
        #[n(0)]
        known: u32,
        /// How many of them will do.
        #[n(1)]
        fit: u32,
    },
    /// Enough nodes, but they are never free together.
    #[n(2)]
    NeverFree,
}

/// Which question an answer is to: each node numbers its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Ticket(#[n(0)] pub u64);

impl Ticket {
    /// No search asks.
    pub const NONE: Ticket = Ticket(0);
}

/// What a schedule is asked for; decides how the paper counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Purpose {
    /// Pull: to search.
    #[n(0)]
    Search,
    /// Pull: to answer a searcher.
    #[n(1)]
    Answer,
    /// Poll: because it is time.
    #[n(2)]
    Poll,
    /// Poll: because the node is new in a cache.
    #[n(3)]
    Enter,
    /// Push to an audience that is only counted: in place of what was not sent.
    #[n(4)]
    Counted,
}

/// What a node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// As entry node: choose among the answers of a round.
    Close(JobId, u32),
    /// As searcher: whoever was asked in this step is silent. With the number of the step.
    Silent(Ticket, u32),
    /// As searcher: the entry node waits no longer.
    Stop(Ticket),
    /// Ask all neighbours.
    Poll,
    /// Renew what is held.
    Renew,
}

/// What any message is accounted for besides its content.
const HEADER_BYTES: u64 = 32;
/// What a job and a round, or a ticket, are accounted for.
const SUBJECT_BYTES: u64 = 24;
/// What the needs of a job are accounted for.
const NEEDS_BYTES: u64 = 120;
/// What a node is accounted for: its id and address.
const NODE_BYTES: u64 = 64;

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &[
        "search",
        "search_reply",
        "cache_request",
        "cache_reply",
        "schedule_request",
        "schedule_reply",
        "schedule_update",
        "hold",
        "unhold",
    ];

    fn kind(&self) -> usize {
        match self {
            Message::Search(_) => 0,
            Message::SearchReply { .. } => 1,
            Message::CacheRequest(..) => 2,
            Message::CacheReply(..) => 3,
            Message::ScheduleRequest(..) => 4,
            Message::ScheduleReply(..) => 5,
            Message::Update(_) => 6,
            Message::Hold => 7,
            Message::Unhold => 8,
        }
    }

    fn bytes(&self) -> u64 {
        let nodes = |count: usize| NODE_BYTES * count as u64;
        HEADER_BYTES
            + match self {
                Message::Search(search) => SUBJECT_BYTES + NEEDS_BYTES + nodes(1 + search.avoid.len()),
                Message::SearchReply { answer: Answer::Found { nodes: found, .. }, .. } => {
                    SUBJECT_BYTES + nodes(found.len())
                }
                Message::SearchReply { answer: Answer::TooFew { .. } | Answer::NeverFree, .. } => {
                    SUBJECT_BYTES
                }
                Message::CacheReply(_, entries) => {
                    let schedules: u64 = entries.iter().map(|(_, schedule)| schedule.bytes()).sum();
                    SUBJECT_BYTES + nodes(entries.len()) + schedules
                }
                Message::CacheRequest(..) | Message::ScheduleRequest(..) => SUBJECT_BYTES,
                Message::ScheduleReply(_, schedule) => SUBJECT_BYTES + schedule.bytes(),
                Message::Update(schedule) => schedule.bytes(),
                Message::Hold | Message::Unhold => 0,
            }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Search(search) => search.avoid.iter().for_each(|&node| mention(node)),
            Message::SearchReply { answer: Answer::Found { nodes, .. }, .. } => {
                nodes.iter().for_each(|&node| mention(node));
            }
            Message::CacheReply(_, entries) => entries.iter().for_each(|(node, _)| mention(*node)),
            Message::SearchReply { answer: Answer::TooFew { .. } | Answer::NeverFree, .. }
            | Message::CacheRequest(..)
            | Message::ScheduleRequest(..)
            | Message::ScheduleReply(..)
            | Message::Update(_)
            | Message::Hold
            | Message::Unhold => {}
        }
    }
}
