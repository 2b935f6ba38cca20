//! Carries messages between nodes: of one process, or of a grid.

pub mod local;
pub mod quic;
pub mod tickets;
pub mod wire;

use shoal_model::NodeId;

/// A node's way to its peers.
pub trait Network<M>: Send {
    /// Sends a message without waiting: it may be lost, doubled or late, and nobody says so.
    fn send(&mut self, to: NodeId, message: M);
}
