//! Single ants, in a scripted world; what comes of many is tested in large grids.

use shoal_model::{NodeId, Span};

use super::*;
use crate::testing::World;

const DELAY: Span = Span::from_millis(50);

fn met(config: Config, links: &[(u64, u64)]) -> World<BlatantS> {
    let nodes = links.iter().map(|&(one, other)| one.max(other)).max().expect("some links");
    let mut world = World::<BlatantS>::new(nodes, config, DELAY);
    for me in 1..=nodes {
        let of = |&(one, other): &(u64, u64)| match me {
            _ if me == one => Some(NodeId(other)),
            _ if me == other => Some(NodeId(one)),
            _ => None,
        };
        world.command(NodeId(me), Command::Meet(links.iter().filter_map(of).collect()));
    }
    world
}

fn links(world: &World<BlatantS>, nodes: u64) -> Vec<(u64, u64)> {
    let of =
        |me: u64| world.core(NodeId(me)).neighbours().map(move |other| (me, other.0)).collect::<Vec<_>>();
    let mut links: Vec<(u64, u64)> = (1..=nodes).flat_map(of).collect();
    links.sort_unstable();
    links
}

fn are_symmetric(links: &[(u64, u64)]) -> bool {
    links.iter().all(|&(one, other)| links.contains(&(other, one)))
}

#[test]
fn newcomer_is_linked_by_its_introducer() {
    let mut world = met(Config::default(), &[(1, 2), (2, 3), (3, 1), (4, 4)]);
    world.command(NodeId(4), Command::Join(NodeId(1)));
    world.run_for(Span::from_secs(60));
    assert!(world.core(NodeId(4)).degree() >= 2, "{}", world.story());
    assert!(are_symmetric(&links(&world, 4)));
}

#[test]
fn who_knows_of_several_ways_in_needs_one_of_them_and_who_is_in_needs_none() {
    let ring: Vec<(u64, u64)> = (1..=8).map(|node| (node, node % 8 + 1)).collect();
    let mut world = met(Config::default(), &ring);
    for known in (1..=8).map(NodeId) {
        world.command(NodeId(4), Command::Join(known));
    }
    world.run_for(Span::from_mins(30));
    assert_eq!(world.core(NodeId(4)).degree(), 2, "it has links enough");
    world.crash(NodeId(3));
    world.crash(NodeId(4));
    world.run_for(Span::from_mins(10));
    world.restart(NodeId(4));
    for known in [1, 3].map(NodeId) {
        world.command(NodeId(4), Command::Join(known));
    }
    world.run_for(Span::from_mins(10));
    assert!(world.core(NodeId(4)).degree() >= 2, "the last way in is dead: {}", world.story());
}

#[test]
fn ends_of_a_long_chain_are_linked() {
    let chain: Vec<(u64, u64)> = (1..=11).map(|node| (node, node + 1)).collect();
    let mut world = met(Config::default(), &chain);
    world.run_for(Span::from_mins(20));
    let links = links(&world, 12);
    assert!(links.len() > 22 && are_symmetric(&links), "{links:?}");
}

#[test]
fn one_link_of_a_short_ring_is_cut_and_the_ring_stays_together() {
    // A ring of four in which every node has another neighbour, so that all may spare a link.
    let mut world = met(
        Config::default(),
        &[(1, 2), (2, 3), (3, 4), (4, 1), (1, 5), (2, 6), (3, 7), (4, 8), (5, 6), (7, 8)],
    );
    world.run_for(Span::from_mins(30));
    let links = links(&world, 8);
    let ring = links.iter().filter(|&&(one, other)| one <= 4 && other <= 4).count() / 2;
    assert!(ring < 4 && are_symmetric(&links), "{links:?}");
    let mut reached = vec![1];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        next += 1;
        let new: Vec<u64> = links.iter().filter(|link| link.0 == at).map(|link| link.1).collect();
        new.into_iter().for_each(|node| {
            if !reached.contains(&node) {
                reached.push(node)
            }
        });
    }
    assert_eq!(reached.len(), 8, "{links:?}");
}

#[test]
fn nodes_with_two_links_make_a_third_before_a_short_ring_is_cut() {
    // A ring of three at the end of a chain.
    let chain = (3..12).map(|node| (node, node + 1));
    let mut world =
        met(Config::default(), &[(1, 2), (2, 3), (3, 1)].into_iter().chain(chain).collect::<Vec<_>>());
    let mut least = 2;
    for _ in 0..30 {
        world.run_for(Span::from_mins(1));
        least = least.min(world.core(NodeId(1)).degree()).min(world.core(NodeId(2)).degree());
    }
    let links = links(&world, 12);
    let ring = links.iter().filter(|&&(one, other)| one <= 3 && other <= 3).count() / 2;
    assert!(ring < 3 && are_symmetric(&links), "{links:?}");
    assert_eq!(least, 2, "never fewer");
}

#[test]
fn link_that_only_one_end_knows_goes() {
    let mut world = met(Config::default(), &[(1, 2), (2, 3), (3, 1)]);
    world.command(NodeId(1), Command::Meet(Box::new([NodeId(4)])));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.core(NodeId(1)).degree(), 3);
    let mut world = World::<BlatantS>::new(5, Config::default(), DELAY);
    world.command(NodeId(1), Command::Meet(Box::new([NodeId(2), NodeId(3)])));
    world.run_for(Span::from_mins(5));
    assert!(are_symmetric(&links(&world, 5)), "{:?}", links(&world, 5));
}

#[test]
fn dead_neighbour_is_found_and_those_around_it_are_linked() {
    // Node 1 holds four others together, two and two.
    let mut world = met(Config::default(), &[(1, 2), (1, 3), (1, 4), (1, 5), (2, 3), (4, 5)]);
    world.run_for(Span::from_mins(2));
    world.crash(NodeId(1));
    world.run_for(Span::from_mins(5));
    let links = links(&world, 5);
    let across = |&(one, other): &(u64, u64)| one > 1 && (one <= 3) != (other <= 3) && other > 1;
    assert!(links.iter().any(across), "{links:?}");
    let told = |(_, _, event): &(_, _, Event)| *event == Event::Silent(NodeId(1));
    assert!(world.reports().iter().any(told));
}

#[test]
fn halves_that_were_cut_apart_meet_again() {
    let ring = [(1, 2), (2, 3), (3, 1), (4, 5), (5, 6), (6, 4), (3, 4)];
    let mut world = met(Config::default(), &ring);
    let across = |from: NodeId, to: NodeId| (from.0 <= 3) != (to.0 <= 3);
    let are_linked = |world: &World<BlatantS>| {
        links(world, 6).iter().any(|&(one, other)| across(NodeId(one), NodeId(other)))
    };
    world.network(move |sent| if across(sent.from, sent.to) { Vec::new() } else { vec![DELAY] });
    world.run_for(Span::from_mins(10));
    assert!(!are_linked(&world), "each half has given the other up");
    world.network(|_| vec![DELAY]);
    world.run_for(Span::from_mins(30));
    assert!(are_linked(&world), "{}", world.story());
}

#[test]
fn frozen_overlay_stays_as_it_was_and_says_nothing() {
    let chain: Vec<(u64, u64)> = (1..=19).map(|node| (node, node + 1)).collect();
    let mut world = met(Config::default().frozen(), &chain);
    let before = links(&world, 20);
    world.run_for(Span::from_hours(24));
    assert_eq!(links(&world, 20), before);
    assert!(world.sent().is_empty());
}

#[test]
fn no_peer_makes_more_links_or_memories_than_there_is_room_for() {
    let mut world = World::<BlatantS>::new(1, Config::default(), DELAY);
    for peer in 2..500 {
        let from = NodeId(peer);
        let message = Message::Construct { newcomer: from, passes: 200 };
        world.tell(NodeId(1), Input::Message { from, message });
        world.tell(NodeId(1), Input::Message { from, message: Message::Linked });
        let list = (1_000..3_000).map(NodeId).collect();
        let known = Known { node: NodeId(peer), at: Time::NEVER, neighbours: Shared::new(list) };
        let seen = vec![known; 300];
        world.tell(NodeId(1), Input::Message { from, message: Message::Discovery { seen, hops: 255 } });
    }
    let core = world.core(NodeId(1));
    assert_eq!(core.degree(), LINKS_MAX);
    let (remembered, most) = core.remembers();
    assert!(remembered <= most);
}

#[test]
fn settings_that_cannot_be_are_named() {
    let usual = Config::default();
    let told = |config: Config| config.check().unwrap_err().to_string();
    assert_eq!(usual.check(), Ok(()));
    assert_eq!(told(Config { bound: 1, ..usual }), "bound = 1: must be 2 to 60");
    assert_eq!(told(Config { ant_hops: 0, ..usual }), "ant_hops = 0: must be at least 1");
    assert_eq!(told(Config { alpha: 0, ..usual }), "alpha = 0: must be at least 1");
}
