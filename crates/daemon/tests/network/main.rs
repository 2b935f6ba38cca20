//! Nodes that speak over real sockets on loopback: tickets, hellos, messages, deaths, questions, ways, and bad company.

mod bytes;
mod company;
mod life;
mod questions;
mod station;
mod tickets;
mod ways;
