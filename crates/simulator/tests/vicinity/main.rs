//! VICINITY on CYCLON in a simulated world: the properties V1 to V5, T-Man beside it, and Vivaldi on top.
//!
//! The figures of docs/protocols/vicinity.md: `cargo test -p shoal-simulator --test vicinity -- --nocapture`. With a
//! matrix of measured round trips in `LATENCIES`, Vivaldi is tried on its hosts as well.

use std::collections::BTreeSet;

use rand::RngExt;
use shoal_model::{Coordinates, NodeId, Span, Time};
use shoal_protocols::Never;
use shoal_protocols::overlay::cyclon::{self, Entry};
use shoal_protocols::overlay::helpers::{Config, Helpers, Kind, Kinds, Profile};
use shoal_protocols::overlay::vicinity::{self, Metric, Rule, Vicinity};
use shoal_simulator::clock::Clock;
use shoal_simulator::graph::Graph;
use shoal_simulator::network::{self, Network, latency};
use shoal_simulator::streams::{Purpose, stream};
use shoal_simulator::world::{Executor, Setup, World};

/// Nothing is ever done.
struct Idle;

impl Executor<Helpers> for Idle {
    fn perform(&mut self, _: Time, _: &Clock, action: Never) -> Vec<(Span, Never)> {
        match action {}
    }

    fn holds(&mut self, _: Time, outcome: &Never) -> bool {
        match *outcome {}
    }
}

/// Nodes in a plane that only gossip.
struct Swarm {
    world: World<Helpers>,
    places: Vec<Coordinates>,
}

/// Nodes all over a square of 100 ms.
fn square(nodes: usize, seed: u64) -> Vec<Coordinates> {
    let mut chance = stream(seed, Purpose::Placement, 1);
    let mut part = || chance.random_range(0..100_000);
    (0..nodes).map(|_| Coordinates::in_plane(part(), part())).collect()
}

/// As many clusters of 2 ms in a square of 100 ms.
fn clusters(nodes: usize, count: usize, seed: u64) -> Vec<Coordinates> {
    let mut chance = stream(seed, Purpose::Placement, 2);
    let mut part = |most: i64| chance.random_range(0..most);
    let centres: Vec<_> = (0..count).map(|_| (part(100_000), part(100_000))).collect();
    (0..nodes)
        .map(|node| {
            let (x, y) = centres[node % count];
            Coordinates::in_plane(x + part(2_000), y + part(2_000))
        })
        .collect()
}

impl Swarm {
    fn new(places: Vec<Coordinates>, near: vicinity::Config, seed: u64) -> Swarm {
        let latency = latency::Config::Uniform(latency::Uniform { min_ms: 10.0, max_ms: 200.0 });
        let network = network::Config::calm(latency);
        let count = places.len();
        let network = Network::build(&network, count, seed).expect("the network makes sense");
        let known = places.clone();
        let configure = move |node: NodeId| Config {
            near,
            overlays: Kinds::of(&[Kind::Coordinates]),
            coordinates: Some(known[node.0 as usize - 1]),
            ..Config::default()
        };
        let mut world = World::new(Setup::calm(seed, network, configure, |_| Box::new(Idle)), 1);
        // A random graph to begin with, as CYCLON makes one of any.
        let mut chance = stream(seed, Purpose::Placement, 3);
        for node in world.nodes() {
            world.boot(Time::ZERO, node);
            let known = (0..20).map(|_| NodeId(chance.random_range(1..=count as u64)));
            let known: Box<[NodeId]> = known.filter(|&other| other != node).collect();
            world.command(Time::ZERO, node, cyclon::Command::Meet(known));
        }
        Swarm { world, places }
    }

    fn cycles(&mut self, count: u64) {
        self.world.run_before(self.world.now() + Span::from_secs(10) * count);
    }

    fn vicinity(&self, node: NodeId) -> &Vicinity<Profile, Kind> {
        self.world.core(node).vicinity(Kind::Coordinates).expect("such an overlay")
    }

    fn sum(&self, node: NodeId) -> u64 {
        self.vicinity(node).sum_of_distances(self.world.core(node).profile())
    }

    /// The sum of distances of all views beside the least that there is, over the nodes whose view is whole.
    fn beside_optimum(&self, view: usize) -> f64 {
        let (mut found, mut least) = (0, 0);
        for node in self.world.nodes() {
            if self.vicinity(node).view().len() < view {
                continue;
            }
            let here = &self.places[node.0 as usize - 1];
            let mut distances: Vec<u64> = self.places.iter().map(|place| here.distance(place)).collect();
            distances.sort_unstable();
            least += distances[1..=view].iter().sum::<u64>();
            found += self.sum(node);
        }
        found as f64 / least as f64
    }

    fn near(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.vicinity(node).view().iter().map(|entry| entry.node)
    }
}

/// V3, and T-Man beside it.
#[test]
fn views_come_close_to_the_nearest_there_are() {
    let course = |nodes, near, cycles: &[u64]| -> Vec<f64> {
        let mut swarm = Swarm::new(square(nodes, 1), near, 1);
        let mut done = 0;
        let mut ratios = Vec::new();
        for &cycle in cycles {
            swarm.cycles(cycle - done);
            done = cycle;
            ratios.push(swarm.beside_optimum(20));
        }
        ratios
    };
    let plain = vicinity::Config::default();
    let small = course(800, plain, &[3, 10, 20]);
    println!("800 nodes, after 3, 10, 20 cycles: {small:.3?} (definition: 1.65, 1.04, 1.02)");
    // A third of what is above the optimum as a margin, and messages take time here.
    assert!(small[1] < 1.10 && small[2] < 1.03, "{small:?}");
    let t_man = course(800, vicinity::Config { rule: Rule::TMan, gossip: 20, ..plain }, &[3, 10, 20]);
    println!("T-Man with 800 nodes: {t_man:.3?}");
    assert!(t_man[2] < 1.05, "{t_man:?}");
    let large = course(5_000, plain, &[10, 20, 40]);
    println!("5000 nodes, after 10, 20, 40 cycles: {large:.3?} (definition: 1.43, 1.05, 1.03)");
    assert!(large[1] < 1.15 && large[2] < 1.05, "{large:?}");
}

/// V1 and V2.
#[test]
fn views_are_sound_and_full_ones_never_get_worse() {
    let mut swarm = Swarm::new(square(300, 2), vicinity::Config::default(), 2);
    let mut best = vec![u64::MAX; 301];
    for _ in 0..25 {
        swarm.cycles(1);
        for node in swarm.world.nodes() {
            let view: Vec<NodeId> = swarm.near(node).collect();
            let known: BTreeSet<NodeId> = view.iter().copied().collect();
            assert!(!known.contains(&node) && known.len() == view.len() && view.len() <= 20, "{view:?}");
            // While an exchange is open its partner is out of the view.
            if view.len() == 20 && swarm.vicinity(node).awaits().is_none() {
                let sum = swarm.sum(node);
                assert!(sum <= best[node.0 as usize], "{node}: {sum} after {}", best[node.0 as usize]);
                best[node.0 as usize] = sum;
            }
        }
    }
    // A node whose exchange is open whenever we look is one entry short.
    assert!(swarm.world.nodes().all(|node| swarm.near(node).count() >= 19), "all views fill");
}

/// V4: with CYCLON beneath, the union of both overlays is connected; without it, clusters part.
#[test]
fn clusters_part_without_the_random_layer_and_never_with_it() {
    let places = clusters(200, 4, 3);
    let mut swarm = Swarm::new(places.clone(), vicinity::Config::default(), 3);
    swarm.cycles(40);
    let nodes: Vec<NodeId> = swarm.world.nodes().collect();
    let near = Graph::among(&nodes, |node| swarm.near(node));
    assert_eq!(near.components().len(), 4, "the views lead nowhere but into one's own cluster");
    let both = Graph::among(&nodes, |node| {
        let random: Vec<NodeId> = swarm.world.core(node).random().neighbours().collect();
        swarm.near(node).chain(random)
    });
    assert!(both.is_connected());

    // Alone, from the same random start: nobody hears of a new node of a cluster that has been pushed out everywhere.
    let mut chance = stream(3, Purpose::Placement, 4);
    let profile = |node: NodeId| Profile { coordinates: places[node.0 as usize - 1], ..Profile::default() };
    let mut alone: Vec<Vicinity<Profile, Kind>> = nodes
        .iter()
        .map(|&node| Vicinity::new(vicinity::Config::default(), Kind::Coordinates, node))
        .collect();
    for cycle in 0..40 {
        for node in 0..nodes.len() {
            let own = profile(nodes[node]);
            let start: Vec<Entry<Profile>> = match cycle {
                0 => (0..20)
                    .map(|_| NodeId(chance.random_range(1..=200)))
                    .filter(|&n| n != nodes[node])
                    .map(|node| Entry { node, age: 0, payload: profile(node) })
                    .collect(),
                _ => Vec::new(),
            };
            let (asked, _) = alone[node].begin(&own, &start, &mut chance);
            let Some((partner, entries)) = asked else { continue };
            let other = partner.0 as usize - 1;
            if let Some(answer) = alone[other].answer(nodes[node], &entries, &profile(partner), &[]) {
                alone[node].finish(partner, &answer, &own, &[]);
            }
        }
    }
    let graph = Graph::among(&nodes, |node| {
        alone[node.0 as usize - 1].view().iter().map(|entry| entry.node).collect::<Vec<_>>()
    });
    assert!(!graph.is_connected(), "{:?}", graph.components());
}

/// V5.
#[test]
fn an_exchange_takes_no_more_bytes_than_the_papers() {
    let nodes = 300;
    let mut swarm = Swarm::new(square(nodes, 4), vicinity::Config::default(), 4);
    swarm.cycles(10);
    let bytes = |swarm: &Swarm| {
        let traffic = swarm.world.traffic();
        traffic["vicinity_ask"].bytes + traffic["vicinity_tell"].bytes
    };
    let before = bytes(&swarm);
    swarm.cycles(20);
    let per_cycle = (bytes(&swarm) - before) as f64 / 20.0 / nodes as f64;
    println!("{per_cycle:.0} bytes per node, overlay and cycle");
    assert!(per_cycle <= 1_280.0, "{per_cycle}");
    assert!(per_cycle > 1_200.0, "views are full by then: {per_cycle}");
}

/// A view heals: half the nodes die, and after a while nobody lists them.
#[test]
fn dead_nodes_leave_the_views() {
    let mut swarm = Swarm::new(square(300, 5), vicinity::Config::default(), 5);
    swarm.cycles(20);
    let now = swarm.world.now();
    for node in swarm.world.nodes().step_by(2) {
        swarm.world.crash(now, node);
    }
    let dead = |swarm: &Swarm| {
        let up: Vec<NodeId> = swarm.world.nodes().filter(|&node| swarm.world.is_up(node)).collect();
        let known: Vec<NodeId> = up.iter().flat_map(|&node| swarm.near(node)).collect();
        known.iter().filter(|&&node| !swarm.world.is_up(node)).count() as f64 / known.len() as f64
    };
    swarm.cycles(1);
    let at_first = dead(&swarm);
    swarm.cycles(100);
    let at_last = dead(&swarm);
    println!("dead entries: {at_first:.2} at first, {at_last:.3} after 100 cycles");
    assert!(at_first > 0.3 && at_last < 0.02, "{at_first} {at_last}");
}

/// Coordinates found by Vivaldi tell the delays of the network that they were measured in; those of real hosts less well,
/// since no plane has their delays.
#[test]
fn measured_coordinates_foretell_delays() {
    let made_up = latency::Config::Clustered(latency::Clustered {
        sites: 20,
        side_ms: 100.0,
        spread_ms: 2.0,
        least_ms: 0.1,
        jitter: 0.0,
    });
    let median = median_error(made_up, 200);
    println!("median error of measured coordinates: {:.1} %", 100.0 * median);
    assert!(median < 0.15, "{median}");
    if let Some(file) = std::env::var_os("LATENCIES") {
        let file = std::path::PathBuf::from(file);
        let real =
            latency::Config::Matrix(latency::Matrix { file, share_hosts: false, least_ms: 0.1, jitter: 0.0 });
        let median = median_error(real, 490);
        println!("median error on measured hosts: {:.1} %", 100.0 * median);
        assert!(median < 0.12, "{median}");
    }
}

/// Between how far apart nodes take each other to be and how far they are, as a part of that, over all pairs.
fn median_error(latency: latency::Config, nodes: usize) -> f64 {
    let config = network::Config::calm(latency);
    let network = Network::build(&config, nodes, 6).expect("the network makes sense");
    let configure = |_| Config { overlays: Kinds::of(&[Kind::Coordinates]), ..Config::default() };
    let mut world = World::<Helpers>::new(Setup::calm(6, network, configure, |_| Box::new(Idle)), 1);
    for node in world.nodes() {
        world.boot(Time::ZERO, node);
        let known = (1..=20).map(|step| NodeId((node.0 + step * 37) % nodes as u64 + 1));
        let known: Box<[NodeId]> = known.filter(|&other| other != node).collect();
        world.command(Time::ZERO, node, cyclon::Command::Meet(known));
    }
    // A hundred measurements of two nodes each.
    world.run_before(Time::from_secs(2_000));
    let network = Network::build(&config, nodes, 6).expect("the network makes sense");
    let mut chance = stream(6, Purpose::Carriage, 1);
    let mut errors = Vec::new();
    for a in 0..nodes {
        for b in 0..a {
            let there = network
                .carry(Time::ZERO, a, b, &mut chance)
                .delays()
                .next()
                .expect("nothing is lost")
                .as_micros();
            let truth = 2.0 * there as f64 / 1e3;
            let profile = |node: usize| *world.core(NodeId(node as u64 + 1)).profile();
            let guess = Kind::Coordinates.distance(&profile(a), &profile(b)) as f64 / 1e4;
            errors.push((guess - truth).abs() / truth);
        }
    }
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}
