//! What holds while nobody fails: N1 to N4, N6, and what they cost.

use rand::SeedableRng;
use shoal_model::NodeId;
use shoal_protocols::Chance;
use shoal_protocols::overlay::can::{Can, Config, Kind, lay_out};

use crate::swarm::{Mix, Swarm, machine};

fn torus(dimensions: u8) -> Config {
    Config { space: Kind::Torus(dimensions), ..Config::default() }
}

#[test]
fn torus_that_nodes_have_joined_is_covered_known_and_routable() {
    let mut swarm = Swarm::joined(300, 1, torus(2), Mix::Alike);
    swarm.beats(2);
    assert_eq!(swarm.check(1), Ok(()));
    assert_eq!(swarm.zones_per_node(), 1.0);

    let mut chance = Chance::seed_from_u64(2);
    let hops: Vec<usize> = swarm
        .up()
        .into_iter()
        .map(|node| swarm.route(node, &swarm.random_point(&mut chance)).unwrap())
        .collect();
    let mean = hops.iter().sum::<usize>() as f64 / hops.len() as f64;
    let expected = 2.0 / 4.0 * 300f64.sqrt();
    println!("torus of 2 dimensions, 300 nodes: {mean:.1} hops, (d/4)·N^(1/d) = {expected:.1}");
    assert!(mean < expected * 4.0 / 3.0, "{mean}");
}

#[test]
fn resource_can_that_nodes_have_joined_is_covered_known_and_routable() {
    for (mix, seed) in [(Mix::Mixed, 3), (Mix::Clustered, 4), (Mix::Alike, 5)] {
        let mut swarm = Swarm::joined(300, seed, Config::default(), mix);
        swarm.beats(2);
        assert_eq!(swarm.check(seed), Ok(()));
        assert_eq!(swarm.zones_per_node(), 1.0);
    }
}

#[test]
fn neighbours_are_as_few_as_expected() {
    let config = Config::default();
    // With a margin of a third, as the figures were seen in one simulation of the definition.
    for (name, mix, most) in [("clustered", Mix::Clustered, 14.0), ("mixed", Mix::Mixed, 17.0)] {
        let mean = |seed: u64| {
            let nodes: Vec<_> = (1..=1000)
                .map(NodeId)
                .map(|node| (node, Can::point_of(&config, node, &machine(seed, node, mix))))
                .collect();
            let places = lay_out(&config, &nodes);
            places.iter().map(|place| place.around.len()).sum::<usize>() as f64 / 1000.0
        };
        let means: Vec<f64> = (1..=5).map(mean).collect();
        println!("{name}: {means:?} neighbours on average");
        let all = means.iter().sum::<f64>() / 5.0;
        assert!(all < most * 4.0 / 3.0, "{name}: {all}");
    }
}
