//! Shortcuts: ways past many equal machines are short, and whoever is gone is forgotten.

use rand::SeedableRng;
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::Chance;
use shoal_protocols::overlay::can::{Can, Command, Config, Hop, Point, VIRTUAL, lay_out};

use crate::swarm::{Mix, Swarm, machine};

fn with_shortcuts() -> Config {
    Config { period_ms: 2_000, shortcuts: true, ..Config::default() }
}

/// A swarm of which nobody has to join.
fn laid_out(nodes: usize, seed: u64, config: Config, mix: Mix) -> Swarm {
    let mut swarm = Swarm::dark(nodes, seed, config, mix, 0.0);
    let all: Vec<NodeId> = swarm.world.nodes().collect();
    let points: Vec<(NodeId, Point)> =
        all.iter().map(|&node| (node, Can::point_of(&config, node, &machine(seed, node, mix)))).collect();
    for (node, place) in all.into_iter().zip(lay_out(&config, &points)) {
        swarm.world.boot(Time::ZERO, node);
        swarm.world.command(Time::ZERO, node, Command::Settle(place));
    }
    swarm
}

/// The hops to a point by a rule, or that the way ends elsewhere.
fn hops(swarm: &Swarm, from: NodeId, point: &Point, rule: fn(&Can, &Point) -> Hop) -> Option<usize> {
    let mut at = from;
    for hops in 0..4_000 {
        match rule(swarm.world.core(at), point) {
            Hop::Here => return Some(hops),
            Hop::To(next) if swarm.world.is_up(next) => at = next,
            Hop::To(_) | Hop::Stuck => return None,
        }
    }
    None
}

/// The mean number of hops to random points, and how many of a hundred ways ended elsewhere.
fn ways(swarm: &Swarm, seed: u64, rule: fn(&Can, &Point) -> Hop) -> (f64, usize) {
    let mut chance = Chance::seed_from_u64(seed);
    let up = swarm.up();
    let found: Vec<Option<usize>> = (0..100)
        .map(|number| hops(swarm, up[number * up.len() / 100], &swarm.random_point(&mut chance), rule))
        .collect();
    let there: Vec<usize> = found.iter().flatten().copied().collect();
    (there.iter().sum::<usize>() as f64 / there.len().max(1) as f64, found.len() - there.len())
}

#[test]
fn ways_past_equal_machines_are_as_long_as_their_logarithm() {
    for (mix, seed) in [(Mix::Alike, 1), (Mix::Clustered, 2)] {
        let mut swarm = laid_out(1_000, seed, with_shortcuts(), mix);
        swarm.beats(14);
        let (plain, astray) = ways(&swarm, seed, Can::next_hop);
        assert_eq!(astray, 0, "seed {seed}");
        let (short, astray) = ways(&swarm, seed, Can::next_leap);
        assert_eq!(astray, 0, "seed {seed}");
        // A third of a row of a thousand or of 125, against about as many as its number has bits.
        assert!(plain > 15.0 && short < 12.0 && short < plain / 2.0, "seed {seed}: {plain} and {short}");
    }
}

#[test]
fn without_them_nobody_asks() {
    let config = Config { shortcuts: false, ..with_shortcuts() };
    let mut swarm = laid_out(200, 1, config, Mix::Alike);
    swarm.beats(5);
    let traffic = swarm.world.traffic();
    assert!(!traffic.contains_key("leap") || traffic["leap"].messages == 0);
    assert!(swarm.up().into_iter().all(|node| swarm.world.core(node).shortcuts().count() == 0));
}

#[test]
fn shortcuts_lead_twice_as_far_each_and_two_are_asked_with_each_heartbeat() {
    let mut swarm = laid_out(256, 3, with_shortcuts(), Mix::Alike);
    swarm.beats(12);
    let mut row: Vec<(u32, NodeId)> =
        swarm.claims().into_iter().map(|(node, claim)| (claim.zone.low()[VIRTUAL], node)).collect();
    row.sort_unstable();
    let place = |node: NodeId| row.iter().position(|&(_, other)| other == node).expect("in the row");
    for (at, &(_, node)) in row.iter().enumerate() {
        let far = |step: &usize| [at.checked_sub(*step), Some(at + step).filter(|&far| far < row.len())];
        let mut expected: Vec<usize> = (1..8)
            .map(|doublings| 1usize << doublings)
            .collect::<Vec<_>>()
            .iter()
            .flat_map(far)
            .flatten()
            .collect();
        let mut known: Vec<usize> = swarm.world.core(node).shortcuts().map(|peer| place(peer.node)).collect();
        expected.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, expected, "of the one at {at}");
    }
    let before = swarm.world.traffic()["leap"].messages;
    swarm.beats(10);
    let asked = swarm.world.traffic()["leap"].messages - before;
    // Two for each but at the ends of the row, of whom there are two.
    assert!((2 * 10 * 254..=2 * 10 * 256).contains(&asked), "{asked} questions");
}

#[test]
fn whoever_is_gone_is_forgotten_and_ways_are_whole_again() {
    let seed = 5;
    let mut swarm = laid_out(400, seed, with_shortcuts(), Mix::Alike);
    swarm.beats(14);
    let gone: Vec<NodeId> = swarm.world.nodes().filter(|node| node.0 % 10 == 3).collect();
    for &node in &gone {
        swarm.world.crash(swarm.world.now(), node);
    }
    // Nine doublings, one asked with each heartbeat; and the neighbours of the dead have to close the ranks.
    swarm.run_for(Span::from_secs(2 * 40));
    for node in swarm.up() {
        let dead = swarm.world.core(node).shortcuts().find(|peer| gone.contains(&peer.node));
        assert_eq!(dead, None, "known to {node}");
    }
    let (short, astray) = ways(&swarm, seed, Can::next_leap);
    assert!(astray == 0 && short < 12.0, "{short} hops, {astray} astray");
}
