//! What nodes say lies ahead of them, against a sum over all zones from outside.

use shoal_model::machine::Machine;
use shoal_model::{NodeId, Time};
use shoal_protocols::node::Node;
use shoal_protocols::overlay::can::{Ahead, VIRTUAL, Zone};
use shoal_protocols::scheduling::tri_pronged::{Config, Variant};
use shoal_simulator::grid::Grid;
use shoal_simulator::workload::profiles::{Profiles, machines};

use crate::scene::{can_of, job, laid_out};

/// Nodes, cores, required cores, free nodes, each in thousandths.
type Sums = [f64; 4];

fn sums(ahead: &Ahead) -> Sums {
    [ahead.nodes, ahead.cores, ahead.required, ahead.free].map(|sum| sum as f64)
}

fn plus(a: &Sums, b: &Sums, share: f64) -> Sums {
    std::array::from_fn(|at| a[at] + b[at] * share)
}

/// A node by itself.
fn own(grid: &Grid<Node>, node: NodeId) -> Sums {
    let vitals = can_of(grid, node).own_vitals().expect("it works");
    let cores = f64::from(grid.machine(node).capacity.cores.get());
    [1_000.0, cores, vitals.required as f64, if vitals.running == 0 { 1_000.0 } else { 0.0 }]
}

/// Which part of the lower face of `above` across a dimension lies on `below`, if any.
fn share(below: &Zone, above: &Zone, dimension: usize) -> Option<f64> {
    if below.high()[dimension] != above.low()[dimension] {
        return None;
    }
    let along = |d: usize| {
        let (from, to) = (below.low()[d].max(above.low()[d]), below.high()[d].min(above.high()[d]));
        f64::from(to.saturating_sub(from)) / f64::from(above.length(d))
    };
    let part = (0..=VIRTUAL).filter(|&d| d != dimension).map(along).product::<f64>();
    (part > 0.0).then_some(part)
}

/// What lies ahead of each node along a dimension, by handing each node down, bit by bit, to those below it, and how much of
/// each figure may be missing where parts of thousandths are dropped: less than one for each neighbour above, handed down too.
fn from_outside(grid: &Grid<Node>, zones: &[(NodeId, Zone)], dimension: usize) -> Vec<(Sums, f64)> {
    let below: Vec<Vec<(usize, f64)>> = zones
        .iter()
        .map(|(_, above)| {
            let others = zones.iter().enumerate();
            others.filter_map(|(at, (_, zone))| Some((at, share(zone, above, dimension)?))).collect()
        })
        .collect();
    let mut order: Vec<usize> = (0..zones.len()).collect();
    // Whoever is above somebody comes first.
    order.sort_by_key(|&at| std::cmp::Reverse(zones[at].1.low()[dimension]));
    let mut ahead = vec![([0.0; 4], 0.0); zones.len()];
    for at in order {
        let (beyond, missing) = ahead[at];
        let handed = plus(&beyond, &own(grid, zones[at].0), 1.0);
        for &(lower, share) in &below[at] {
            ahead[lower].0 = plus(&ahead[lower].0, &handed, share);
            ahead[lower].1 += missing * share + 1.0;
        }
    }
    ahead
}

/// A grid of mixed machines, of which some work, that has been quiet for as many heartbeats as word needs from edge to edge.
fn quiet(seed: u64) -> (Grid<Node>, Vec<(NodeId, Zone)>) {
    let kinds: Vec<Machine> = machines(Profiles::Desktop, 120, seed);
    let recipe = Config { variant: Variant::L, ..Config::real() };
    let mut grid = laid_out(seed, kinds, recipe);
    for number in 0..90 {
        let at = Time::from_secs(30 + u64::from(number) / 2);
        grid.submit(at, NodeId(1 + u64::from(number)), job(number, 1 + u32::from(number) % 2, 3_000));
    }
    grid.world().run_before(Time::from_secs(500));
    let zones = grid.look().nodes().map(|node| match can_of(&grid, node).claims() {
        [claim] => (node, claim.zone),
        other => panic!("{node} has {other:?}"),
    });
    let zones = zones.collect();
    (grid, zones)
}

#[test]
fn what_each_node_says_lies_ahead_is_what_a_sum_over_all_zones_says() {
    for seed in 1..=3 {
        let (grid, zones) = quiet(seed);
        for dimension in 0..=VIRTUAL {
            let expected = from_outside(&grid, &zones, dimension);
            for ((node, _), (expected, missing)) in zones.iter().zip(&expected) {
                let said = sums(can_of(&grid, *node).ahead(dimension).expect("a dimension"));
                for (said, expected) in said.iter().zip(expected) {
                    assert!(
                        (expected - missing - 0.5..expected + 0.5).contains(said),
                        "seed {seed}: {node} along {dimension}: {said} instead of {expected}, to {missing}"
                    );
                }
            }
        }
    }
}

#[test]
fn nobody_counts_twice_ahead_of_those_at_the_lower_edge() {
    for seed in 1..=3 {
        let (grid, zones) = quiet(seed);
        let all = zones.iter().fold([0.0; 4], |all, (node, _)| plus(&all, &own(&grid, *node), 1.0));
        assert!(all[2] > 20_000.0 && all[3] > 20_000.0, "seed {seed}: some work and some do not: {all:?}");
        for dimension in 0..=VIRTUAL {
            let edge = zones.iter().filter(|(_, zone)| zone.low()[dimension] == 0);
            let told = edge.fold([0.0; 4], |told, (node, _)| {
                let ahead = sums(can_of(&grid, *node).ahead(dimension).expect("a dimension"));
                plus(&plus(&told, &own(&grid, *node), 1.0), &ahead, 1.0)
            });
            for (told, all) in told.iter().zip(&all) {
                // Parts of thousandths are dropped at each step down.
                let near = told <= all && *told >= all * 0.98;
                assert!(near, "seed {seed}, along {dimension}: {told} of {all}");
            }
        }
    }
}
