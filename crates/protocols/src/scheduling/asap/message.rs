//! What nodes that follow the recipe `asap` say to each other, and what they ask to be reminded of.

use shoal_model::{JobId, Needs, NodeId, Span, Time};

use super::schedule::Schedule;
use crate::protocol;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// From an entry node: search; answered by [`Message::SearchReply`].
    Search(Box<Search>),
    /// To the entry node: what was found.
    SearchReply {
        /// For which job.
        job: JobId,
        /// In which round.
        round: u32,
        /// What was found.
        answer: Answer,
    },
    /// From a searcher: whom do you know? Answered by [`Message::CacheReply`], within the given time. With the job that a
    /// place is looked for.
    CacheRequest(Ticket, Span, JobId),
    /// To the searcher: my neighbours, with their schedules.
    CacheReply(Ticket, Box<[(NodeId, Schedule)]>),
    /// When are you free? Answered by [`Message::ScheduleReply`]; where a place is looked for, as if that job had none yet.
    ScheduleRequest(Ticket, Purpose, Option<JobId>),
    /// Then.
    ScheduleReply(Ticket, Schedule),
    /// To a holder: my schedule has changed, or you are new. Who does not hold me says [`Message::Unhold`].
    Update(Schedule),
    /// You have entered my cache; answered by [`Message::Update`].
    Hold,
    /// You have left my cache.
    Unhold,
}

/// What an entry node has searched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    /// For which job.
    pub job: JobId,
    /// In which round of the entry node.
    pub round: u32,
    /// What it needs.
    pub needs: Needs,
    /// The earliest start.
    pub from: Time,
    /// How long the entry node waits.
    pub patience: Span,
    /// Nodes that have not answered the entry node, and are no candidates.
    pub avoid: Vec<NodeId>,
}

/// What a searcher has found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A place.
    Found {
        /// The earliest start.
        start: Time,
        /// Where, by rank.
        nodes: Vec<NodeId>,
    },
    /// Not enough nodes that will do.
    TooFew {
        /// How many were looked at.
        known: u32,
        /// How many of them will do.
        fit: u32,
    },
    /// Enough nodes, but they are never free together.
    NeverFree,
}

/// Which question an answer is to: each node numbers its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// No search asks.
    pub const NONE: Ticket = Ticket(0);
}

/// What a schedule is asked for; decides how the paper counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Pull: to search.
    Search,
    /// Pull: to answer a searcher.
    Answer,
    /// Poll: because it is time.
    Poll,
    /// Poll: because the node is new in a cache.
    Enter,
    /// Push to an audience that is only counted: in place of what was not sent.
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
}
