//! What befalls a grid: newcomers, loners, churn, a bad network, a network in two.

use shoal_model::{NodeId, Span, Time};
use shoal_simulator::streams::mix;

use crate::swarm::{Plan, Swarm};

/// When [`Plan::joined`] hands a swarm over.
const SETTLED: Time = Time::from_secs(400);

#[test]
fn newcomer_is_soon_known_by_as_many_as_anybody() {
    let mut swarm = Plan::calm(520, 3).joined(500);
    let newcomers = || (501..=520).map(NodeId);
    for node in newcomers() {
        swarm.enter(SETTLED, node, NodeId(node.0 - 500));
    }
    swarm.world.run_before(SETTLED + Span::from_secs(2));

    assert_eq!(swarm.unsound(), None);
    let known = |swarm: &Swarm, node| swarm.links(|known| known == node);
    let (mut knowing, mut known_by) = (0, 0);
    for node in newcomers() {
        assert!((13..=24).contains(&known(&swarm, node)), "{node} is known by {}", known(&swarm, node));
        knowing += swarm.cache(node).degree();
        known_by += known(&swarm, node);
    }
    println!(
        "2 s after joining, a newcomer knows {} and is known by {}",
        knowing as f64 / 20.0,
        known_by as f64 / 20.0
    );
    // What newcomers took of others' in-degree they gave back by knowing them, but for walks that met.
    assert!(knowing.abs_diff(known_by) <= 20, "20 newcomers know {knowing} and are known by {known_by}");

    // Its links are all young and outlive those of others by some 20 cycles, while it makes one more in each.
    let mut known_after = |cycles: u64| {
        swarm.cycles(cycles);
        newcomers().map(|node| known(&swarm, node)).sum::<usize>() as f64 / 20.0
    };
    let (soon, late) = (known_after(20), known_after(40));
    println!("20 cycles later it is known by {soon}, after 40 more by {late}");
    assert!((18.0..32.0).contains(&soon), "{soon}");
    assert!((17.0..23.0).contains(&late), "{late}");
}

#[test]
fn walks_leave_the_in_degree_of_the_others_as_it_was() {
    let mut swarm = Plan::calm(501, 4).joined(500);
    let newcomer = NodeId(501);
    // Each cache is full but for what an exchange has out.
    let lent =
        |swarm: &Swarm| swarm.world.nodes().take(500).map(|n| 20 - swarm.cache(n).degree()).sum::<usize>();
    let others = |swarm: &Swarm| swarm.links(|known| known != newcomer) + lent(swarm);
    assert_eq!(others(&swarm), 20 * 500);

    swarm.enter(SETTLED, newcomer, NodeId(1));
    swarm.world.run_before(SETTLED + Span::from_secs(2));
    let (now, known_by) = (others(&swarm), swarm.links(|known| known == newcomer));
    println!("one newcomer: others' in-degree in all {now} of 10000, its own {known_by}");
    assert!(now.abs_diff(10_000) <= 3, "{now}");
}

#[test]
fn loner_rejoins_through_its_introducer() {
    let cut_off = SETTLED + Span::from_mins(10);
    let mut swarm = Plan::calm(200, 5).cut(1, SETTLED, cut_off).joined(200);
    swarm.world.run_before(cut_off);
    assert_eq!(swarm.graph().components(), [199, 1]);
    assert_eq!(swarm.cache(NodeId(1)).degree(), 0, "it has tried all that it knew");

    swarm.cycles(2);
    assert_eq!(swarm.graph().components(), [200]);
    assert!(swarm.cache(NodeId(1)).degree() >= 12);
    assert!(swarm.links(|known| known == NodeId(1)) >= 12);
}

#[test]
fn overlay_survives_churn() {
    let mut swarm = Plan::calm(300, 6).joined(300);
    let draw = |number: u64| NodeId(1 + mix(number) % 300);
    let mut dead = Vec::new();
    for cycle in 0..80 {
        let now = swarm.world.now();
        // Each crashes about once in 100 cycles, is down for 5, and enters through whoever it finds.
        for number in 3 * cycle..3 * cycle + 3 {
            let back = now + Span::from_secs(50);
            swarm.world.crash(now, draw(number));
            swarm.enter(back, draw(number), draw(number + 1_000));
        }
        swarm.cycles(1);
        assert_eq!(swarm.unsound(), None);
        assert!(swarm.graph().is_connected(), "apart in cycle {cycle}: {:?}", swarm.graph().components());
        dead.push(swarm.dead());
    }
    let most = dead.iter().copied().fold(0.0, f64::max);
    println!("churn of 1 % per cycle: at most {:.1} % of links are dead", 100.0 * most);
    assert!(most < 0.10, "{most} of the links are dead");
}

#[test]
fn bad_network_does_not_corrupt_caches() {
    let mut plan = Plan::calm(300, 7);
    plan.network.loss = 0.1;
    plan.network.duplication = 0.1;
    plan.network.reorder = 0.1;
    plan.network.reorder_ms = 30_000.0;
    let mut swarm = plan.joined(300);
    for cycle in 0..80 {
        swarm.cycles(1);
        assert_eq!(swarm.unsound(), None);
        assert!(swarm.graph().is_connected(), "apart in cycle {cycle}");
    }
    let mean = swarm.links(|_| true) as f64 / 300.0;
    println!("a tenth lost, doubled and late each: {mean:.2} entries in a cache");
    assert!(mean > 19.0, "{mean} entries in a cache");
}

#[test]
fn overlay_cut_in_two_for_two_minutes_is_one_again() {
    let healed = SETTLED + Span::from_mins(2);
    let mut swarm = Plan::calm(500, 8).cut(250, SETTLED, healed).joined(500);
    swarm.world.run_before(healed);
    let across = links_across(&swarm);
    println!("after a cut of 2 min, {:.1} % of links lead across", 100.0 * across);
    assert!(across > 0.1, "{across} of the links lead across");

    swarm.cycles(30);
    assert!(swarm.graph().is_connected());
    let across = links_across(&swarm);
    println!("30 cycles later, {:.1} %", 100.0 * across);
    assert!(across > 0.4, "{across} of the links lead across");
}

/// CYCLON's weakness: each half forgets the other within some 40 cycles, has full caches, and asks nobody.
#[test]
fn overlay_cut_in_two_for_ten_minutes_stays_two_until_somebody_joins_across() {
    let healed = SETTLED + Span::from_mins(10);
    let mut swarm = Plan::calm(500, 9).cut(250, SETTLED, healed).joined(500);
    swarm.world.run_before(healed);
    swarm.cycles(60);
    assert_eq!(swarm.graph().components(), [250, 250]);

    // One node of one half starts anew and enters through the other half.
    let now = swarm.world.now();
    swarm.enter(now, NodeId(3), NodeId(400));
    swarm.cycles(40);
    assert!(swarm.graph().is_connected());
    let across = links_across(&swarm);
    println!("40 cycles after one join across, {:.1} % of links lead across", 100.0 * across);
    assert!(across > 0.4, "{across} of the links lead across");
}

/// The share of links between the first 250 nodes and the others.
fn links_across(swarm: &Swarm) -> f64 {
    let half = |node: NodeId| node.0 <= 250;
    let across = swarm
        .up()
        .into_iter()
        .flat_map(|node| swarm.cache(node).neighbours().filter(move |&known| half(known) != half(node)));
    across.count() as f64 / swarm.links(|_| true) as f64
}
