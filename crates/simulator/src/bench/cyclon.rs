//! CYCLON through [`Node`] in a [`World`], with the settings of its authors' PeerSim configurations.

use std::time::{Duration, Instant};

use rand::RngExt;
use serde::Serialize;
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::{Command, Config, Node};
use shoal_protocols::overlay::cyclon;

use super::bare::Bare;
use super::events::Events;
use super::memory;
use super::tuned::Tuned;
use crate::network::{self, Network, latency};
use crate::processes::Processes;
use crate::streams::{Purpose, stream};
use crate::world::{Setup, World};

/// Entries in a cache.
pub const CACHE: usize = 20;
/// Entries that change hands.
pub const SHUFFLE: usize = 8;
/// The time between two shuffles of a node.
pub const PERIOD: Span = Span::from_secs(10);

/// How long a message takes, at least and at most.
pub const DELAY_MS: [u64; 2] = [10, 200];

/// How many nodes are told of their first neighbours at once: few, so that the telling takes no memory to speak of.
const BATCH: usize = 4_096;

/// How large a benchmark is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Nodes; more than a cache has entries.
    pub nodes: u32,
    /// Shuffles that each of them begins.
    pub cycles: u32,
    /// From which all chance flows.
    pub seed: u64,
}

/// What a benchmark showed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Shuffles begun in a second, over all nodes.
    pub node_cycles_per_s: f64,
    /// Memory taken at most, by node; none where the system does not tell.
    pub bytes_per_node: Option<f64>,
    /// How long it took, building not counted.
    pub elapsed_s: f64,
    /// How long building took.
    pub build_s: f64,
}

/// Runs it through nodes in a world.
pub fn world(size: Size, threads: usize) -> Speed {
    measure(
        size,
        || build(size, threads),
        |world| world.run_before(Time::ZERO + PERIOD * u64::from(size.cycles)),
    )
}

/// Runs the loop over events.
pub fn events(size: Size) -> Speed {
    let neighbours = |node| acquaintances(size, node);
    measure(
        size,
        || Events::new(size.nodes, size.seed, neighbours),
        |events| events.run_before(Time::ZERO + PERIOD * u64::from(size.cycles)),
    )
}

/// Runs the bare loop.
pub fn bare(size: Size) -> Speed {
    let neighbours = |node| acquaintances(size, node);
    measure(
        size,
        || Bare::new(size.nodes, size.seed, neighbours),
        |bare| {
            for _ in 0..size.cycles {
                bare.cycle();
            }
        },
    )
}

/// Runs the loop that is squeezed as far as it goes.
pub fn tuned(size: Size) -> Speed {
    let neighbours = |node| acquaintances(size, node);
    measure(
        size,
        || Tuned::new(size.nodes, size.seed, neighbours),
        |tuned| {
            for _ in 0..size.cycles {
                tuned.cycle();
            }
        },
    )
}

fn measure<T>(size: Size, build: impl FnOnce() -> T, run: impl FnOnce(&mut T)) -> Speed {
    let resident = memory::resident();
    let begun = Instant::now();
    let mut subject = build();
    let built = Instant::now();
    run(&mut subject);
    let elapsed = built.elapsed();
    let taken = memory::peak().zip(resident).map(|(peak, before)| peak.saturating_sub(before));
    // Until now, or the memory of what is freed on the way would count for less than it was.
    drop(subject);
    Speed {
        node_cycles_per_s: f64::from(size.nodes) * f64::from(size.cycles) / seconds(elapsed),
        bytes_per_node: taken.map(|bytes| bytes as f64 / f64::from(size.nodes)),
        elapsed_s: seconds(elapsed),
        build_s: seconds(built - begun),
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().max(1e-9)
}

/// Nodes that only gossip, with full caches of random neighbours.
fn build(size: Size, threads: usize) -> World<Node> {
    let overlay = cyclon::Config {
        cache: CACHE as u8,
        shuffle: SHUFFLE as u8,
        period_ms: (PERIOD.as_micros() / 1_000) as u32,
        ..cyclon::Config::default()
    };
    let [min_ms, max_ms] = DELAY_MS.map(|ms| ms as f64);
    let network = network::Config::calm(latency::Config::Uniform(latency::Uniform { min_ms, max_ms }));
    let network =
        Network::build(&network, size.nodes as usize, size.seed).expect("a network that makes sense");
    let configure = move |_| Config { overlay: overlay.into(), work: None };
    let setup = Setup::calm(size.seed, network, configure, |_| Box::new(Processes::default()));
    let mut world = World::new(setup, threads);
    let nodes: Vec<NodeId> = world.nodes().collect();
    for (batch, at) in nodes.chunks(BATCH).zip((0..).map(Time::from_micros)) {
        for &node in batch {
            world.boot(at, node);
            let met = acquaintances(size, (node.0 - 1) as u32);
            world.command(at, node, Command::Meet(met.map(|other| NodeId(u64::from(other) + 1)).into()));
        }
        world.run_before(at + Span::from_micros(1));
    }
    world
}

/// Whom a node knows from the start: others, each once.
fn acquaintances(size: Size, node: u32) -> [u32; CACHE] {
    let mut chance = stream(size.seed, Purpose::Acquaintance, u64::from(node));
    let mut met = [node; CACHE];
    let mut count = 0;
    while count < CACHE {
        let other = chance.random_range(0..size.nodes);
        if other != node && !met[..count].contains(&other) {
            met[count] = other;
            count += 1;
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size { nodes: 200, cycles: 5, seed: 1 };

    #[test]
    fn every_node_shuffles_once_a_cycle() {
        let mut world = build(SMALL, 1);
        world.run_before(Time::ZERO + PERIOD * 5);
        assert_eq!(world.traffic()["shuffle"].messages, 5 * 200);
    }

    #[test]
    fn caches_are_full_from_the_start() {
        let world = build(SMALL, 2);
        for node in world.nodes() {
            assert!(world.core(node).overlay().degree() >= CACHE - 1, "{node}");
        }
    }

    #[test]
    fn figures_are_above_nothing() {
        for speed in [world(SMALL, 1), bare(SMALL), tuned(SMALL), events(SMALL)] {
            assert!(speed.node_cycles_per_s > 0.0 && speed.elapsed_s > 0.0);
        }
    }
}
