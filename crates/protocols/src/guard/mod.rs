//! Guards: how a node looks after what it has promised.

pub mod heartbeat;
