//! What nodes of a CAN say to each other.

use std::fmt;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::machine::Machine;
use shoal_model::units::Thousandths;
use shoal_model::{NodeId, Resources, Span, Time};

use super::zone::{DIMENSIONS_MAX, Point, Zone};
use crate::protocol;
use crate::shared::Shared;

/// A zone that somebody says is its own. Of two that overlap the one with the larger version is right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Claim {
    /// What is claimed.
    #[n(0)]
    pub zone: Zone,
    /// Larger each time that a zone changes hands.
    #[n(1)]
    pub version: u32,
}

/// A node and what it claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Peer {
    /// Who.
    #[n(0)]
    pub node: NodeId,
    /// What it claims.
    #[n(1)]
    pub claims: Shared<Vec<Claim>>,
}

/// What a node says of the work it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Vitals {
    /// What it is.
    #[n(0)]
    pub machine: Shared<Machine>,
    /// What no running job has.
    #[n(1)]
    pub residual: Resources,
    /// How many jobs run.
    #[n(2)]
    pub running: u32,
    /// How many wait.
    #[n(3)]
    pub waiting: u32,
    /// How often the first in its queue was overtaken (NBC).
    #[n(4)]
    pub bar: u32,
    /// What running and waiting jobs ask for (W), as parts of its capacity.
    #[n(5)]
    pub load: [u64; 4],
    /// The cores that running and waiting jobs ask for, in thousandths.
    #[n(6)]
    pub required: u64,
    /// How long its cores would take for all that runs and waits there, by limits and estimates; none if these do not
    /// count.
    #[n(7)]
    #[cbor(default)]
    pub backlog: Option<Span>,
}

/// What lies ahead along a dimension: sums over all nodes there, in thousandths, each counted about once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Ahead {
    /// Nodes.
    #[n(0)]
    pub nodes: u64,
    /// Their cores.
    #[n(1)]
    pub cores: u64,
    /// The cores that their jobs ask for, running and waiting.
    #[n(2)]
    pub required: u64,
    /// Nodes that run nothing.
    #[n(3)]
    pub free: u64,
}

/// A node's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Update {
    /// By its clock; of two, the later counts.
    #[n(0)]
    pub at: Time,
    /// What it claims.
    #[n(1)]
    pub claims: Shared<Vec<Claim>>,
    /// Where it lies.
    #[n(2)]
    pub point: Point,
    /// What it has to do, if it works at all.
    #[n(3)]
    pub vitals: Option<Vitals>,
    /// What it knows to lie ahead of it, by dimension.
    #[n(4)]
    pub ahead: [Ahead; DIMENSIONS_MAX],
    /// Its neighbours.
    #[n(5)]
    pub peers: Shared<Vec<Peer>>,
}

/// What is left of a machine that runs jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Balloon {
    /// Whose.
    #[n(0)]
    pub node: NodeId,
    /// As of then, by that node's clock; of two, the later counts.
    #[n(1)]
    pub at: Time,
    /// Where it lies.
    #[n(2)]
    pub point: Point,
    /// What is left, and all else of that node.
    #[n(3)]
    pub vitals: Vitals,
}

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Somebody wants a zone; goes to the owner of the point. Answered by [`Message::Welcome`] or [`Message::Taken`].
    #[n(0)]
    Join {
        /// Who.
        #[n(0)]
        newcomer: NodeId,
        /// Where it lies.
        #[n(1)]
        point: Point,
        /// How often this was passed on.
        #[n(2)]
        hops: u16,
    },
    /// This is yours if you claim it; these are around it.
    #[n(1)]
    Welcome {
        /// What to claim; apart, because a message is as large as its largest word.
        #[n(0)]
        claim: Box<Claim>,
        /// Who may be a neighbour.
        #[n(1)]
        around: Vec<Peer>,
    },
    /// I lie where you do: lie somewhere else in the virtual dimension.
    #[n(2)]
    Taken,
    /// The heartbeat; and whether one is asked for in return.
    #[n(3)]
    Update(#[n(0)] Shared<Update>, #[n(1)] bool),
    /// This part of a zone of mine would make yours larger: claim it.
    #[n(4)]
    Grant(#[n(0)] Box<Claim>),
    /// What is left of a machine; goes to the owner of the point. Answered by [`Message::Tied`].
    #[n(5)]
    Tie(#[n(0)] Shared<Balloon>, #[n(1)] u16),
    /// Your balloon of then is here.
    #[n(6)]
    Tied(#[n(0)] Time),
    /// My balloon is no longer at yours; with the time of the last that was.
    #[n(7)]
    Untie(#[n(0)] Time),
    /// Who lies as far from you as you from me? Answered by [`Message::Landed`].
    #[n(8)]
    Leap {
        /// Upwards in the virtual dimension, or downwards.
        #[n(0)]
        up: bool,
        /// How often the distance was doubled.
        #[n(1)]
        level: u8,
    },
    /// My zones, and who lies there.
    #[n(9)]
    Landed {
        /// As was asked.
        #[n(0)]
        up: bool,
        /// As was asked.
        #[n(1)]
        level: u8,
        /// What I claim.
        #[n(2)]
        claims: Shared<Vec<Claim>>,
        /// Who lies there, if anybody is known to.
        #[n(3)]
        next: Option<Peer>,
    },
}

/// NodeUpdate, by the specification's account.
const UPDATE_BYTES: u64 = 256;
/// A short message.
const SHORT_BYTES: u64 = 64;
/// What a peer adds to a welcome: id, zone, version.
const PEER_BYTES: u64 = 64;

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] =
        &["join", "welcome", "taken", "update", "grant", "tie", "tied", "untie", "leap", "landed"];

    fn kind(&self) -> usize {
        match self {
            Message::Join { .. } => 0,
            Message::Welcome { .. } => 1,
            Message::Taken => 2,
            Message::Update(..) => 3,
            Message::Grant(_) => 4,
            Message::Tie(..) => 5,
            Message::Tied(_) => 6,
            Message::Untie(_) => 7,
            Message::Leap { .. } => 8,
            Message::Landed { .. } => 9,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Update(..) | Message::Tie(..) => UPDATE_BYTES,
            Message::Welcome { around, .. } => SHORT_BYTES * 2 + PEER_BYTES * around.len() as u64,
            Message::Landed { .. } => SHORT_BYTES + PEER_BYTES,
            Message::Join { .. }
            | Message::Taken
            | Message::Grant(_)
            | Message::Tied(_)
            | Message::Untie(_)
            | Message::Leap { .. } => SHORT_BYTES,
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Join { newcomer, .. } => mention(*newcomer),
            Message::Welcome { around, .. } => around.iter().for_each(|peer| mention(peer.node)),
            Message::Update(update, _) => update.peers.iter().for_each(|peer| mention(peer.node)),
            Message::Tie(balloon, _) => mention(balloon.node),
            Message::Landed { next, .. } => next.iter().for_each(|peer| mention(peer.node)),
            Message::Taken
            | Message::Grant(_)
            | Message::Tied(_)
            | Message::Untie(_)
            | Message::Leap { .. } => {}
        }
    }
}

impl Vitals {
    /// Whether something runs there, and something is left.
    pub fn is_partly_used(&self) -> bool {
        self.running > 0 && self.residual.cores > Thousandths::ZERO
    }
}

impl Claim {
    /// Whether this claim of `mine` stands against one of `theirs` on the same cells.
    pub(super) fn beats(&self, mine: NodeId, other: &Claim, theirs: NodeId) -> bool {
        (self.version, std::cmp::Reverse(mine)) > (other.version, std::cmp::Reverse(theirs))
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} v{}", self.zone, self.version)
    }
}
