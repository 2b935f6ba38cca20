//! What ants carry, and what they are accounted for.

use shoal_model::{NodeId, Time};

use crate::protocol;
use crate::shared::Shared;

/// A node and whom it had as neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    /// Who it is.
    pub node: NodeId,
    /// When it said so, by its own clock.
    pub at: Time,
    /// Whom it had.
    pub neighbours: Shared<Vec<NodeId>>,
}

/// Ants, by their species, and the answers to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Discovery: wanders about, tells what it has seen, and looks at what there is.
    Discovery {
        /// The last nodes that it has seen, the oldest first.
        seen: Vec<Known>,
        /// Hops left.
        hops: u8,
    },
    /// Construction-Link: finds a neighbour for a node that has too few; answered by [`Message::Linked`].
    Construct {
        /// For whom.
        newcomer: NodeId,
        /// How often it may be passed on to somebody with fewer links.
        passes: u8,
    },
    /// Optimisation-Link: links a node that is far away; answered by [`Message::Linked`].
    Optimise {
        /// Who is.
        far: NodeId,
        /// How often it may be passed on to somebody with fewer links.
        passes: u8,
    },
    /// You are my neighbour; answered by [`Message::Unlinked`] by whoever has no room.
    Linked,
    /// Unlink: there is another way; answered by [`Message::Unlinked`] by whoever sees it too.
    Unlink,
    /// You are not my neighbour.
    Unlinked,
    /// Update-Neighbours: what has changed.
    Update {
        /// Whose neighbours, and who they are.
        known: Known,
        /// Hops left.
        hops: u8,
    },
    /// Are you there? Answered by [`Message::Pong`].
    Ping,
    /// I am.
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
}
