//! How fast the simulator is: the work of a gossip overlay through nodes in a world, beside the same as a bare loop;
//! and a published simulation at its full size.

pub mod asap;
pub mod bare;
pub mod cyclon;
pub mod memory;
