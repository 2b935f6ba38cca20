//! Carries messages between nodes.

pub mod local;
pub mod tickets;

use shoal_model::NodeId;

/// A node's way to its peers.
pub trait Network<M>: Send {
    /// Sends a message without waiting: it may be lost, doubled or late, and nobody says so.
    fn send(&mut self, to: NodeId, message: M);
}
