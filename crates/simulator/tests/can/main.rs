//! CAN in a simulated world: the properties that its papers promise, in quiet and under churn.
//!
//! The figures of docs/protocols/can.md: `cargo test -p shoal-simulator --test can -- --nocapture`.

mod churn;
mod laws;
mod shortcuts;
mod swarm;
