//! Drives Shoal nodes in virtual time: a world of machines, a network between them, and what befalls both.

pub mod ants;
pub mod baseline;
pub mod bench;
pub mod checks;
pub mod clock;
pub mod explore;
pub mod faults;
pub mod graph;
pub mod grid;
pub mod measures;
pub mod network;
pub mod plot;
pub mod processes;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod streams;
pub mod study;
pub mod timetable;
pub mod workload;
pub mod world;
