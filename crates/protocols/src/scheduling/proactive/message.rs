//! What nodes that follow the recipe `proactive` say to each other.

use minicbor::{CborLen, Decode, Encode};
use shoal_model::calendar::{Snapshot, View};
use shoal_model::{JobId, Name, Needs, NodeId, Resources, Speed};

use crate::overlay::cyclon::Entry;
use crate::overlay::helpers::{self, Kind, Profile};
use crate::protocol;

/// Labels that a criterion may name.
pub const LABELS_MAX: usize = 8;
/// Nodes that an answer may name.
pub const KNOWN_MAX: usize = 128;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Of the helper overlays.
    #[n(0)]
    Helpers(#[n(0)] Box<helpers::Message>),
    /// When could you run this, and whom do you know? Answered by [`Message::Tell`].
    #[n(1)]
    Ask(#[n(0)] Box<Ask>),
    /// That is what I am, when I am free, and whom I know.
    #[n(2)]
    Tell(#[n(0)] Box<Tell>),
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Ask {
    /// For which job.
    #[n(0)]
    pub job: JobId,
    /// In which iteration.
    #[n(1)]
    pub round: u32,
    /// What it needs.
    #[n(2)]
    pub needs: Needs,
    /// Whom to name: the nearest by this, or random ones.
    #[n(3)]
    pub overlay: Option<Kind>,
    /// The labels that its criterion names.
    #[n(4)]
    pub labels: Vec<Name>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Tell {
    /// For which job.
    #[n(0)]
    pub job: JobId,
    /// In which iteration.
    #[n(1)]
    pub round: u32,
    /// What the node says of itself.
    #[n(2)]
    pub profile: Profile,
    /// When it could run the job; or why not.
    #[n(3)]
    pub answer: Answer,
    /// Whom it knows.
    #[n(4)]
    pub known: Known,
}

/// Whether a node would run a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Answer {
    /// When I am free.
    #[n(0)]
    Yes(#[n(0)] Offer),
    /// My machine will not do, or its owner does not serve that organisation.
    #[n(1)]
    Unfit,
    /// This clause of the constraint excludes me.
    #[n(2)]
    Excluded(#[n(0)] u8),
}

/// When a node could run a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Offer {
    /// My calendar without what I may have promised to this job before.
    #[n(0)]
    pub calendar: Snapshot<Resources>,
    /// How fast I am.
    #[n(1)]
    pub speed: Speed,
    /// What I ask for, in thousandths.
    #[n(2)]
    pub price: u32,
    /// A number for the value of each label that was asked for.
    #[n(3)]
    pub labels: Vec<u32>,
}

/// Whom a node knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Known {
    /// Random ones.
    #[n(0)]
    Random(#[n(0)] Box<[NodeId]>),
    /// Those nearest to it.
    #[n(1)]
    Near(#[n(0)] Box<[Entry<Profile>]>),
}

/// What a question is accounted for: job, round, needs and headers.
const ASK_BYTES: u64 = 176;
/// What an answer is accounted for besides calendar and names: headers, profile, speed, price.
const TELL_BYTES: u64 = 112;
/// What each step of a calendar is accounted for: a time and what is used from then on.
const STEP_BYTES: u64 = 24;
/// What a random node is accounted for that an answer names.
const NODE_BYTES: u64 = 8;
/// What a near node is accounted for: with its profile.
const ENTRY_BYTES: u64 = 60;

const HELPERS: usize = <helpers::Message as protocol::Message>::KINDS.len();

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &KINDS;

    fn kind(&self) -> usize {
        match self {
            Message::Helpers(message) => message.kind(),
            Message::Ask(_) => HELPERS,
            Message::Tell(_) => HELPERS + 1,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Helpers(message) => message.bytes(),
            Message::Ask(_) => ASK_BYTES,
            Message::Tell(tell) => {
                let steps = match &tell.answer {
                    Answer::Yes(offer) => offer.calendar.steps(View::Firm).count() as u64,
                    Answer::Unfit | Answer::Excluded(_) => 0,
                };
                let known = match &tell.known {
                    Known::Random(nodes) => NODE_BYTES * nodes.len() as u64,
                    Known::Near(entries) => ENTRY_BYTES * entries.len() as u64,
                };
                TELL_BYTES + STEP_BYTES * steps + known
            }
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Helpers(message) => message.mentions(mention),
            Message::Ask(_) => {}
            Message::Tell(tell) => match &tell.known {
                Known::Random(nodes) => nodes.iter().for_each(|&node| mention(node)),
                Known::Near(entries) => entries.iter().for_each(|entry| mention(entry.node)),
            },
        }
    }
}

/// The kinds of the helper overlays, and ours behind them.
const KINDS: [&str; HELPERS + 2] = {
    let helpers = <helpers::Message as protocol::Message>::KINDS;
    let mut all = [""; HELPERS + 2];
    let mut place = 0;
    while place < HELPERS {
        all[place] = helpers[place];
        place += 1;
    }
    all[HELPERS] = "ask_candidate";
    all[HELPERS + 1] = "tell_candidate";
    all
};

/// What the recipe wants to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// By the helper overlays.
    Helpers(helpers::Timer),
    /// Who has not answered in this iteration?
    Patience(JobId, u32),
    /// Time for the next iteration, if no other has begun since this many.
    Next(JobId, u32),
}
