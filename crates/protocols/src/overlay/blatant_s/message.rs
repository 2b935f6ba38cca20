//! What ants carry, and what they are accounted for.

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{NodeId, Time};

use crate::protocol;
use crate::shared::Shared;

/// A node and whom it had as neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Known {
    /// Who it is.
    #[n(0)]
    pub node: NodeId,
    /// When it said so, by its own clock.
    #[n(1)]
    pub at: Time,
    /// Whom it had.
    #[n(2)]
    pub neighbours: Shared<Vec<NodeId>>,
}

/// Ants, by their species, and the answers to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Discovery: wanders about, tells what it has seen, and looks at what there is.
    #[n(0)]
    Discovery {
        /// The last nodes that it has seen, the oldest first.
        #[n(0)]
        seen: Vec<Known>,
        /// Hops left.
        #[n(1)]
        hops: u8,
    },
    /// Construction-Link: finds a neighbour for a node that has too few; answered by [`Message::Linked`].
    #[n(1)]
    Construct {
        /// For whom.
        #[n(0)]
        newcomer: NodeId,
        /// How often it may be passed on to somebody with fewer links.
        #[n(1)]
        passes: u8,
    },
    /// Optimisation-Link: links a node that is far away; answered by [`Message::Linked`].
    #[n(2)]
    Optimise {
        /// Who is.
        #[n(0)]
        far: NodeId,
        /// How often it may be passed on to somebody with fewer links.
        #[n(1)]
        passes: u8,
        /// By how many hops at least.
        #[n(2)]
        apart: u8,
    },
    /// You are my neighbour; answered by [`Message::Unlinked`] by whoever has no room.
    #[n(3)]
    Linked,
    /// Unlink: there is another way; answered by [`Message::Unlinked`] by whoever sees it too.
    #[n(4)]
    Unlink,
    /// You are not my neighbour.
    #[n(5)]
    Unlinked,
    /// Update-Neighbours: what has changed.
    #[n(6)]
    Update {
        /// Whose neighbours, and who they are.
        #[n(0)]
        known: Known,
        /// Hops left.
        #[n(1)]
        hops: u8,
    },
    /// Are you there? Answered by [`Message::Pong`].
    #[n(7)]
    Ping,
    /// I am.
    #[n(8)]
    Pong,
}

/// What any message is accounted for besides its content.
const HEADER_BYTES: u64 = 32;
/// A node with a signed address record.
const NODE_BYTES: u64 = 64;
/// A neighbour in a list: id and what is needed to reach it.
const NEIGHBOUR_BYTES: u64 = 16;

impl Known {
    fn bytes(&self) -> u64 {
        NODE_BYTES + NEIGHBOUR_BYTES * self.neighbours.len() as u64
    }

    fn mention(&self, mention: &mut dyn FnMut(NodeId)) {
        mention(self.node);
        self.neighbours.iter().for_each(|&node| mention(node));
    }
}

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &[
        "discovery",
        "construct",
        "optimise",
        "linked",
        "unlink",
        "unlinked",
        "update",
        "ant_ping",
        "ant_pong",
    ];

    fn kind(&self) -> usize {
        match self {
            Message::Discovery { .. } => 0,
            Message::Construct { .. } => 1,
            Message::Optimise { .. } => 2,
            Message::Linked => 3,
            Message::Unlink => 4,
            Message::Unlinked => 5,
            Message::Update { .. } => 6,
            Message::Ping => 7,
            Message::Pong => 8,
        }
    }

    fn bytes(&self) -> u64 {
        HEADER_BYTES
            + match self {
                Message::Discovery { seen, .. } => seen.iter().map(Known::bytes).sum(),
                Message::Construct { .. } | Message::Optimise { .. } => NODE_BYTES,
                Message::Linked | Message::Unlink | Message::Unlinked => 0,
                Message::Update { known, .. } => known.bytes(),
                Message::Ping | Message::Pong => 0,
            }
    }
    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Discovery { seen, .. } => seen.iter().for_each(|known| known.mention(mention)),
            Message::Construct { newcomer: node, .. } | Message::Optimise { far: node, .. } => mention(*node),
            Message::Update { known, .. } => known.mention(mention),
            Message::Linked | Message::Unlink | Message::Unlinked | Message::Ping | Message::Pong => {}
        }
    }
}
