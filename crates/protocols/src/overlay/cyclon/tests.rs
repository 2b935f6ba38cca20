//! How many hold a node, and overlays that are never shuffled; the paper's own claims are tested in large grids.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shoal_model::{NodeId, Span, Time};

use super::*;
use crate::testing::{World, cases};

const DELAY: Span = Span::from_millis(100);

/// A world that counts holders, in which everybody has met the next few.
fn ring(nodes: u64, config: Config) -> World<Cyclon> {
    let mut world = World::<Cyclon>::new(nodes, config, DELAY);
    for me in 1..=nodes {
        world.speak(NodeId(me), |core, _| core.count_holders());
    }
    for me in 1..=nodes {
        let next = (1..=u64::from(config.cache)).map(|step| NodeId((me + step - 1) % nodes + 1));
        world.command(NodeId(me), Command::Meet(next.collect()));
    }
    world
}

fn in_degrees(world: &World<Cyclon>, nodes: u64) -> BTreeMap<NodeId, u32> {
    let mut degrees: BTreeMap<NodeId, u32> = (1..=nodes).map(|node| (NodeId(node), 0)).collect();
    for me in (1..=nodes).map(NodeId) {
        for neighbour in world.core(me).neighbours() {
            *degrees.get_mut(&neighbour).unwrap() += 1;
        }
    }
    degrees
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn holders_that_are_counted_are_those_there_are(
        nodes in 3u64..24,
        cache in 1u8..9,
        shuffle in 1u8..9,
        joined in any::<bool>(),
        periods in 1u64..12,
        rests in 0u8..3,
    ) {
        let config = Config { cache, shuffle: shuffle.min(cache), walk: 2, period_ms: 10_000, rests };
        let mut world = ring(nodes, config);
        if joined {
            world.command(NodeId(nodes), Command::Join(NodeId(1)));
        }
        world.run_for(Span::from_secs(10 * periods));
        // What is on its way is not counted yet: wait until nothing is.
        while world.sent().last().is_some_and(|sent| sent.at + DELAY >= world.now()) {
            world.run_for(DELAY);
        }
        let counted: BTreeMap<NodeId, u32> =
            (1..=nodes).map(|node| (NodeId(node), world.core(NodeId(node)).holders().unwrap())).collect();
        prop_assert_eq!(counted, in_degrees(&world, nodes));
    }
}

#[test]
fn a_static_overlay_stays_as_it_was_drawn() {
    let mut world = ring(9, Config { cache: 3, shuffle: 2, walk: 2, period_ms: 0, rests: 0 });
    let drawn: Vec<Vec<NodeId>> =
        (1..=9).map(|node| world.core(NodeId(node)).neighbours().collect()).collect();
    world.run_for(Span::from_hours(24));
    let still: Vec<Vec<NodeId>> =
        (1..=9).map(|node| world.core(NodeId(node)).neighbours().collect()).collect();
    assert_eq!(drawn, still);
    assert!(world.sent().iter().all(|sent| matches!(sent.message, Message::Held(_))));
}

#[test]
fn nobody_is_told_what_nobody_counts() {
    let mut world = World::<Cyclon>::new(5, Config { cache: 3, shuffle: 2, ..Config::default() }, DELAY);
    for me in 2..=5 {
        world.command(NodeId(me), Command::Join(NodeId(1)));
    }
    world.run_for(Span::from_secs(100));
    assert!(world.sent().iter().all(|sent| !matches!(sent.message, Message::Held(_))));
    assert_eq!(world.core(NodeId(1)).holders(), None);
}

#[test]
fn the_partner_of_an_open_exchange_is_still_known() {
    let mut world = ring(4, Config { cache: 2, shuffle: 1, walk: 1, period_ms: 1_000, rests: 0 });
    world.network(|_| vec![]);
    world.run_for(Span::from_secs(1));
    for me in (1..=4).map(NodeId) {
        assert_eq!(world.core(me).degree(), 1);
        assert_eq!(world.core(me).neighbours_and_partner().count(), 2);
    }
}

const RESTFUL: Config = Config { cache: 20, shuffle: 8, walk: 4, period_ms: 10_000, rests: 5 };

/// A world of so many that have met all others and then had half an hour of peace; the last knows nobody.
fn at_peace(nodes: u64) -> World<Cyclon> {
    let mut world = World::<Cyclon>::new(nodes, RESTFUL, DELAY);
    for me in 1..nodes {
        let others = (1..nodes).filter(|&other| other != me).map(NodeId);
        world.command(NodeId(me), Command::Meet(others.collect()));
    }
    world.run_for(Span::from_mins(30));
    world
}

/// When a node has begun shuffles.
fn shuffles(world: &World<Cyclon>, node: NodeId) -> Vec<Time> {
    let began = |message: &Message| matches!(message, Message::Shuffle(_));
    world.sent().iter().filter(|sent| sent.from == node && began(&sent.message)).map(|sent| sent.at).collect()
}

#[test]
fn a_node_around_which_nothing_changes_shuffles_ever_more_rarely() {
    let world = at_peace(9);
    for me in (1..9).map(NodeId) {
        let at = shuffles(&world, me);
        let pauses: Vec<u64> = at.windows(2).map(|two| two[1].since(two[0]).as_secs()).collect();
        assert_eq!(pauses[..6], [10, 10, 10, 10, 20, 40]);
        assert!(pauses[6..].iter().all(|&pause| pause == 60), "{pauses:?}");
        assert_eq!(world.core(me).degree() + usize::from(world.core(me).awaits().is_some()), 7);
    }
}

#[test]
fn a_newcomer_is_known_to_all_within_a_minute_also_where_all_rest() {
    let mut world = at_peace(13);
    let newcomer = NodeId(13);
    world.command(newcomer, Command::Join(NodeId(1)));
    world.run_for(Span::from_mins(1));
    for me in (1..13).map(NodeId) {
        assert!(world.core(me).neighbours_and_partner().any(|node| node == newcomer), "{me}");
        assert!(world.core(newcomer).neighbours_and_partner().any(|node| node == me), "{me}");
    }
}

#[test]
fn whoever_finds_somebody_silent_looks_at_the_others_at_once() {
    let mut world = at_peace(9);
    world.crash(NodeId(1));
    world.run_for(Span::from_mins(15));
    let Some(&(at, finder, Event::Silent(silent))) = world.reports().first() else { panic!("nobody saw it") };
    assert_eq!(silent, NodeId(1));
    let next = shuffles(&world, finder).into_iter().find(|&began| began >= at);
    assert_eq!(next, Some(at), "the period that sees it is none of rest");
    for me in (2..9).map(NodeId) {
        assert!(world.core(me).neighbours_and_partner().all(|node| node != NodeId(1)), "{me}");
    }
}

#[test]
fn who_is_not_let_in_asks_in_every_period() {
    let mut world = World::<Cyclon>::new(2, RESTFUL, DELAY);
    world.network(|_| vec![]);
    world.command(NodeId(2), Command::Join(NodeId(1)));
    world.run_for(Span::from_mins(10));
    assert!(world.sent().iter().filter(|sent| sent.message == Message::Join).count() >= 60);
}
