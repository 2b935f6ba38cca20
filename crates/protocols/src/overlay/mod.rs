//! Overlays: how a node comes to know some of the others.

pub mod cyclon;
pub mod helpers;
pub mod vicinity;
pub mod vivaldi;
