//! Overlays: how a node comes to know some of the others.

pub mod can;
pub mod cyclon;
