//! CYCLON through whole nodes in a simulated world: the paper's claims, and what befalls a grid.
//!
//! The figures of docs/protocols/cyclon.md: `cargo test -p shoal-simulator --test cyclon -- --nocapture`.

mod life;
mod paper;
mod swarm;
