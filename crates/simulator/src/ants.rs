//! Overlays that the ants of BLATANT-S have built: from the first node on, until they are steady.
//!
//! Ants never come to rest where no node knows all others: what looks far from one place is not far from another, so
//! here and there a link is made and cut again. Steady means that their number stays within 2 % for ten minutes.
//!
//! The same nodes, seed and settings give the same links; so many runs on one overlay build it once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::overlay;
use shoal_protocols::overlay::blatant_s::{self, BlatantS, Command};
use shoal_protocols::{Never, Protocol};

use crate::clock::Clock;
use crate::graph::Graph;
use crate::grid::JOIN_GAP;
use crate::network::{self, Network, latency};
use crate::world::{Executor, Setup, Traffic, World};

/// How often links are counted.
const STEP: Span = Span::from_mins(1);
/// For so many counts they must have differed by at most this part.
const STEADY_STEPS: usize = 10;
const STEADY_PART: usize = 50;
/// When they are given up on.
const PATIENCE: Span = Span::from_hours(3);
/// How many overlays are kept for others that want the same.
const KEPT_MAX: usize = 64;

/// An overlay as the ants left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The neighbours of each node.
    pub links: Vec<Box<[NodeId]>>,
    /// How long it took to become steady; none if it never did.
    pub settled_after: Option<Span>,
    /// What the ants said.
    pub traffic: BTreeMap<&'static str, Traffic>,
}

impl Settled {
    /// The overlay as a graph.
    pub fn graph(&self) -> Graph {
        let nodes: Vec<NodeId> = (1..=self.links.len() as u64).map(NodeId).collect();
        Graph::among(&nodes, |node| self.links[node.0 as usize - 1].iter().copied())
    }
}

type Key = (usize, u64, String);

/// The overlay that ants build for those who will use this one: BLATANT-S as it is set, or as it is for any other.
pub fn settle_for(nodes: usize, seed: u64, overlay: &overlay::Config) -> Arc<Settled> {
    let config = match overlay {
        overlay::Config::BlatantS(config) => *config,
        overlay::Config::Cyclon(_) | overlay::Config::Can(_) => Default::default(),
    };
    settle(nodes, seed, config)
}

/// The overlay that ants build with these settings.
pub fn settle(nodes: usize, seed: u64, config: blatant_s::Config) -> Arc<Settled> {
    // Its pace, and whether it is frozen, are for afterwards.
    let blatant_s::Config { ant_ms, evaporate_ms, rules_ms, .. } = blatant_s::Config::default();
    let config = blatant_s::Config { ant_ms, evaporate_ms, rules_ms, ..config };
    static KEPT: Mutex<BTreeMap<Key, Arc<OnceLock<Arc<Settled>>>>> = Mutex::new(BTreeMap::new());
    let key = (nodes, seed, format!("{config:?}"));
    let place = {
        let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.len() >= KEPT_MAX && !kept.contains_key(&key) {
            kept.clear();
        }
        Arc::clone(kept.entry(key).or_default())
    };
    Arc::clone(place.get_or_init(|| Arc::new(build(nodes, seed, config))))
}

/// A world in which ants are at work, from the first node on.
pub fn world(nodes: usize, seed: u64, config: blatant_s::Config) -> World<BlatantS> {
    let network =
        network::Config::calm(latency::Config::Uniform(latency::Uniform { min_ms: 20.0, max_ms: 200.0 }));
    let network = Network::build(&network, nodes, seed).expect("the network makes sense");
    let mut world = World::new(Setup::calm(seed, network, move |_| config, |_| Box::new(Idle)), 1);
    for node in world.nodes() {
        let at = Time::ZERO + JOIN_GAP * node.0;
        world.boot(at, node);
        let introducer = NodeId((node.0 / 2).max(1));
        if introducer != node {
            world.command(at, node, Command::Join(introducer));
        }
    }
    world
}

/// When a link of a node that is up last changed.
pub fn changed_at(world: &World<BlatantS>) -> Time {
    let up = world.nodes().filter(|&node| world.is_up(node));
    up.map(|node| world.core(node).changed_at()).max().unwrap_or_default()
}

fn build(nodes: usize, seed: u64, config: blatant_s::Config) -> Settled {
    let mut world = world(nodes, seed, config);
    let started = Time::ZERO + JOIN_GAP * nodes as u64;
    let (mut settled_after, mut counts) = (None, Vec::new());
    while settled_after.is_none() && world.now() < started + PATIENCE {
        world.run_before(world.now() + STEP);
        counts.push(world.nodes().map(|node| world.core(node).degree()).sum::<usize>());
        let lately = &counts[counts.len().saturating_sub(STEADY_STEPS)..];
        let (least, most) = (lately.iter().min().copied(), lately.iter().max().copied());
        let steady = least.zip(most).is_some_and(|(least, most)| (most - least) * STEADY_PART <= most);
        if lately.len() == STEADY_STEPS && steady && world.now() > started {
            settled_after = Some(world.now().since(Time::ZERO));
        }
    }
    // What one end does not know of is no link.
    let has = |node: NodeId, other: NodeId| world.core(node).neighbours().any(|known| known == other);
    let links =
        world.nodes().map(|node| world.core(node).neighbours().filter(|&other| has(other, node)).collect());
    Settled { links: links.collect(), settled_after, traffic: world.traffic() }
}

/// Ants have nothing done.
struct Idle;

impl<P: Protocol<Action = Never, Outcome = Never>> Executor<P> for Idle {
    fn perform(&mut self, _now: Time, _clock: &Clock, action: Never) -> Vec<(Span, Never)> {
        match action {}
    }

    fn holds(&mut self, _now: Time, outcome: &Never) -> bool {
        match *outcome {}
    }
}
