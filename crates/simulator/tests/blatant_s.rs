//! What the ants of BLATANT-S build, and keep: properties B1 to B7, in grids of some hundred nodes.

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::overlay::blatant_s::{BlatantS, Config};
use shoal_simulator::ants::{changed_at, settle, world};
use shoal_simulator::graph::Graph;
use shoal_simulator::world::World;

const NODES: usize = 300;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

fn living(world: &World<BlatantS>) -> Graph {
    let up: Vec<NodeId> = world.nodes().filter(|&node| world.is_up(node)).collect();
    Graph::among(&up, |node| {
        world.core(node).neighbours().filter(|&other| world.is_up(other)).collect::<Vec<_>>()
    })
}

fn degrees(links: &[Box<[NodeId]>]) -> (f64, usize) {
    let sum: usize = links.iter().map(|links| links.len()).sum();
    (sum as f64 / links.len() as f64, links.iter().map(|links| links.len()).max().unwrap_or(0))
}

/// How many links close a ring of at most so many.
fn in_short_rings(links: &[Box<[NodeId]>], most: usize) -> usize {
    let of = |node: NodeId| links[node.0 as usize - 1].iter().copied();
    let mut count = 0;
    for one in (1..=links.len() as u64).map(NodeId) {
        for other in of(one).filter(|&other| other > one) {
            let mut reached = vec![one];
            let mut edge = vec![one];
            for _ in 0..most - 1 {
                let next: Vec<NodeId> =
                    edge.iter().flat_map(|&at| of(at).filter(move |&to| (at, to) != (one, other))).collect();
                edge = next.into_iter().filter(|node| !reached.contains(node)).collect();
                edge.sort_unstable();
                edge.dedup();
                reached.extend(&edge);
            }
            count += usize::from(reached.contains(&other));
        }
    }
    count
}

#[test]
fn settled_overlay_is_connected_short_sparse_even_and_symmetric_b1_b2_b3_b4_b5() {
    let config = Config::default();
    for seed in SEEDS {
        let settled = settle(NODES, seed, config);
        let graph = settled.graph();
        let paths = graph.paths(0..NODES);
        let (mean, most) = degrees(&settled.links);
        let links: usize = settled.links.iter().map(|links| links.len()).sum::<usize>() / 2;
        let rings = in_short_rings(&settled.links, usize::from(config.bound) + 1);
        println!(
            "seed {seed}: steady after {:?}, degree {mean:.2} (most {most}), path {:.2}, diameter {}, {rings} of {links} links in short rings",
            settled.settled_after,
            paths.mean(),
            paths.longest
        );
        assert!(graph.is_connected(), "B1, seed {seed}");
        assert!(paths.longest <= u32::from(config.far()), "B2: {} hops, seed {seed}", paths.longest);
        assert!((most as f64) <= 5.0 * mean, "B5: {most} links, {mean:.2} on average, seed {seed}");
        for (index, links) in settled.links.iter().enumerate() {
            let node = NodeId(index as u64 + 1);
            let back = |other: &NodeId| settled.links[other.0 as usize - 1].contains(&node);
            assert!(links.iter().all(back), "B3: {node} of seed {seed}");
        }
    }
}

#[test]
fn links_come_to_rest_and_no_short_ring_is_left_where_each_knows_all_others_b4() {
    let config = Config { alpha: 255, ..Config::default() };
    for seed in SEEDS {
        let mut world = world(120, seed, config);
        world.run_before(Time::from_secs(1_200));
        assert!(changed_at(&world) < Time::from_secs(600), "links have come to rest, seed {seed}");
        let links: Vec<Box<[NodeId]>> =
            world.nodes().map(|node| world.core(node).neighbours().collect()).collect();
        let left = in_short_rings(&links, usize::from(config.bound) + 1);
        let (mean, most) = degrees(&links);
        let paths = living(&world).paths(0..120);
        println!(
            "seed {seed}: degree {mean:.2} (most {most}), diameter {}, {left} links in short rings",
            paths.longest
        );
        assert_eq!(left, 0, "B4, seed {seed}");
        assert!(links.iter().all(|links| links.len() >= 2), "nobody is left with one link, seed {seed}");
        assert!(paths.longest <= u32::from(config.far()), "B2: {} hops, seed {seed}", paths.longest);
    }
}

#[test]
fn overlay_is_connected_again_five_minutes_after_a_tenth_has_crashed_b6() {
    for seed in SEEDS {
        let mut world = world(NODES, seed, Config::default());
        world.run_before(Time::from_secs(3_600));
        let crash = world.now();
        for node in (1..=NODES as u64).filter(|node| node % 10 == 3) {
            world.crash(crash, NodeId(node));
        }
        world.run_before(crash + Span::from_mins(5));
        let graph = living(&world);
        assert!(graph.is_connected(), "seed {seed}: {:?}", graph.components());
        assert!(changed_at(&world) > crash);
    }
}

#[test]
fn traffic_of_a_node_does_not_grow_with_the_grid_b7() {
    let rate = |nodes: usize| {
        let mut world = world(nodes, 1, Config::default());
        world.run_before(Time::from_secs(1_800));
        let bytes =
            |world: &World<BlatantS>| world.traffic().values().map(|traffic| traffic.bytes).sum::<u64>();
        let before = bytes(&world);
        world.run_before(Time::from_secs(2_400));
        (bytes(&world) - before) as f64 / nodes as f64 / 600.0
    };
    let (small, large) = (rate(100), rate(400));
    println!("{small:.1} and {large:.1} bytes/s of a node");
    assert!(large < small * 1.5, "{small:.1} bytes/s of 100 nodes, {large:.1} of 400");
}
