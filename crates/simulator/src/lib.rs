//! Drives nodes in virtual time.

pub mod clock;
pub mod faults;
pub mod network;
pub mod streams;
pub mod timetable;
