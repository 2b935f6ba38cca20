//! Drives Shoal nodes in virtual time: a world of machines, a network between them, and what befalls both.

pub mod clock;
pub mod explore;
pub mod network;
pub mod world;
