//! Laws of zones, and a CAN among a few nodes; large ones are the simulator's.

use proptest::prelude::*;
use shoal_model::machine::Machine;
use shoal_model::{NodeId, Resources, Span};

use super::*;
use crate::testing::{World, cases};

const FLAT: Space = Space { dimensions: 3, torus: false };
const DELAY: Span = Span::from_millis(50);

/// Zones as a sequence of cuts leaves them: each splits one of those there are.
fn tiling() -> impl Strategy<Value = Vec<Zone>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, 1u32..1000), 0..24).prop_map(|cuts| {
        let mut zones = vec![Zone::WHOLE];
        for (which, along, part) in cuts {
            let at = which.index(zones.len());
            let zone = zones[at];
            let cut = zone.low()[along] + (u64::from(zone.length(along)) * u64::from(part) / 1000) as u32;
            if cut > zone.low()[along] && cut < zone.high()[along] {
                let (below, above) = zone.cut(along, cut);
                zones[at] = below;
                zones.push(above);
            }
        }
        zones
    })
}

fn point() -> impl Strategy<Value = Point> {
    [0..SIDE, 0..SIDE, 0..SIDE].prop_map(|[a, b, c]| [a, b, c, 0, 0, 0])
}

fn volume(zones: &[Zone]) -> Volume {
    zones.iter().map(Zone::volume).sum()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn cuts_leave_every_cell_to_exactly_one(zones in tiling(), point in point()) {
        prop_assert_eq!(volume(&zones), Zone::WHOLE.volume());
        prop_assert_eq!(zones.iter().filter(|zone| zone.contains(&point)).count(), 1);
        prop_assert!(zones.iter().all(|zone| zone.is_sound(FLAT)));
    }

    #[test]
    fn what_is_left_without_another_has_all_other_cells(zones in tiling(), more in tiling(), point in point()) {
        for (zone, other) in zones.iter().zip(&more) {
            let left = zone.without(other);
            let inside = left.iter().filter(|left| left.contains(&point)).count();
            prop_assert_eq!(inside == 1, zone.contains(&point) && !other.contains(&point));
            prop_assert!(inside <= 1);
            prop_assert!(left.iter().all(|left| !left.overlaps(other) && left.is_sound(FLAT)));
        }
    }

    #[test]
    fn greedy_steps_end_at_the_owner(zones in tiling(), point in point(), torus in any::<bool>()) {
        let space = Space { torus, ..FLAT };
        for start in &zones {
            let mut at = start;
            let mut distance = at.distance(&point, space);
            while distance > 0 {
                let near = zones.iter().filter(|zone| zone.touches(at, space));
                at = near.min_by_key(|zone| zone.distance(&point, space)).unwrap();
                prop_assert!(at.distance(&point, space) < distance, "each step comes nearer");
                distance = at.distance(&point, space);
            }
            prop_assert!(at.contains(&point));
        }
    }

    #[test]
    fn behind_the_deepest_cut_nobody_sticks_out(zones in tiling()) {
        for (index, zone) in zones.iter().enumerate() {
            let deepest = FLAT.faces().max_by_key(|&face| zone.depth_of(face)).unwrap();
            if zone.depth() == 0 {
                continue;
            }
            let behind: Vec<&Zone> = zones.iter().filter(|other| zone.faces(deepest, other, FLAT)).collect();
            let mut heirs = zones.clone();
            heirs.remove(index);
            for other in behind {
                let part = zone.part_behind(deepest, other);
                prop_assert!(part.is_some(), "{:?} sticks out behind {:?}", other, zone);
                let joined = other.joined(&part.unwrap());
                prop_assert!(joined.is_some());
                heirs.retain(|heir| heir != other);
                heirs.push(joined.unwrap());
            }
            prop_assert_eq!(volume(&heirs), Zone::WHOLE.volume(), "the heirs have it all");
        }
    }

    #[test]
    fn touching_is_mutual(zones in tiling(), torus in any::<bool>()) {
        let space = Space { torus, ..FLAT };
        for a in &zones {
            for b in &zones {
                prop_assert_eq!(a.touches(b, space), b.touches(a, space));
            }
        }
    }

    #[test]
    fn a_layout_is_a_tiling_with_all_its_neighbours(ids in prop::collection::btree_set(1u64..1000, 1..40)) {
        let config = Config { space: Kind::Torus(2), ..Config::default() };
        let at = |id: u64| [drawn(NodeId(id), 0), drawn(NodeId(id), 1), 0, 0, 0, 0];
        let nodes: Vec<(NodeId, Point)> = ids.iter().map(|&id| (NodeId(id), at(id))).collect();
        let places = lay_out(&config, &nodes);
        let zones: Vec<Zone> = places.iter().map(|place| place.claim.zone).collect();
        prop_assert_eq!(volume(&zones), Zone::WHOLE.volume());
        for (index, place) in places.iter().enumerate() {
            let touching = (0..zones.len())
                .filter(|&other| other != index && zones[other].touches(&place.claim.zone, config.space()));
            let touching: Vec<NodeId> = touching.map(|other| nodes[other].0).collect();
            let around: Vec<NodeId> = place.around.iter().map(|peer| peer.node).collect();
            prop_assert_eq!(around, touching);
        }
    }
}

fn torus() -> Setup {
    let config = Config { space: Kind::Torus(2), period_ms: 10_000, ..Config::default() };
    Setup { config, point: None }
}

/// A world in which all have joined through the first.
fn joined(nodes: u64, setup: Setup) -> World<Can> {
    let mut world = World::<Can>::new(nodes, setup, DELAY);
    world.run_for(Span::from_secs(3));
    for node in 2..=nodes {
        world.command(NodeId(node), Command::Join(NodeId(1)));
        world.run_for(Span::from_secs(1));
    }
    world
}

/// A machine of four cores on which so many jobs run and so many cores are left.
pub(super) fn vitals(running: u32, left: u32) -> Vitals {
    Vitals {
        machine: Shared::new(Machine::with_capacity(Resources::cores(4))),
        residual: Resources::cores(left),
        running,
        waiting: 0,
        bar: 0,
        load: [0; 4],
        required: 0,
        backlog: None,
    }
}

fn zones(world: &World<Can>, nodes: impl Iterator<Item = u64>) -> Vec<Zone> {
    nodes.flat_map(|node| world.core(NodeId(node)).claims().iter().map(|claim| claim.zone)).collect()
}

#[test]
fn first_node_has_all_and_the_second_half() {
    let world = joined(2, torus());
    let [first] = world.core(NodeId(1)).claims() else { panic!("one zone") };
    let [second] = world.core(NodeId(2)).claims() else { panic!("one zone") };
    assert_eq!(first.zone.volume(), second.zone.volume());
    assert!(!first.zone.overlaps(&second.zone));
    assert_eq!(world.core(NodeId(1)).neighbours().collect::<Vec<_>>(), [NodeId(2)]);
}

#[test]
fn node_that_lies_where_another_does_is_moved() {
    let config = Config { period_ms: 10_000, ..Config::default() };
    let world = joined(3, Setup { config, point: Some([5; 6]) });
    assert_eq!(volume(&zones(&world, 1..=3)), Zone::WHOLE.volume());
    let points: Vec<&Point> = (1..=3).map(|node| world.core(NodeId(node)).point()).collect();
    assert!(points[0] != points[1] && points[1] != points[2] && points[0] != points[2]);
    assert!(points.iter().all(|point| point[..VIRTUAL] == [5; VIRTUAL]), "only the virtual one differs");
}

#[test]
fn whoever_leaves_leaves_no_hole() {
    let mut world = joined(9, torus());
    for gone in [4, 9, 1] {
        world.command(NodeId(gone), Command::Leave);
        world.run_for(Span::from_secs(8));
        world.crash(NodeId(gone));
        let up = (1..=9).filter(|node| *node != 4 && (gone == 4 || *node != 9) && (gone != 1 || *node != 1));
        let zones = zones(&world, up);
        assert_eq!(volume(&zones), Zone::WHOLE.volume(), "after {gone} has left");
        assert_eq!(zones.len(), 8 - [4, 9, 1].iter().position(|&node| node == gone).unwrap());
    }
}

#[test]
fn nonsense_is_dropped() {
    let mut world = joined(4, torus());
    let before = zones(&world, 1..=4);
    let tell = |world: &mut World<Can>, message| {
        world.tell(NodeId(1), Input::Message { from: NodeId(3), message });
    };
    let mut odd = Zone::WHOLE.cut(4, 7).0;
    tell(&mut world, Message::Grant(Box::new(Claim { zone: odd, version: u32::MAX })));
    odd = Zone::WHOLE.cut(5, 9).1;
    let claim = Claim { zone: odd, version: u32::MAX };
    tell(&mut world, Message::Welcome { claim: Box::new(claim), around: Vec::new() });
    tell(&mut world, Message::Join { newcomer: NodeId(77), point: [u32::MAX; 6], hops: 0 });
    world.run_for(Span::from_secs(60));
    assert_eq!(zones(&world, 1..=4), before);
}

#[test]
fn word_of_an_older_balloon_that_comes_late_lets_that_one_go_and_not_the_newer() {
    const ME: NodeId = NodeId(1);
    const LATE: NodeId = NodeId(2);
    const NEXT: NodeId = NodeId(3);
    let config = Config { residue: Residue::Balloon, period_ms: 10_000, ..Config::default() };
    let mut world = World::<Can>::new(3, Setup { config, point: Some([5; 6]) }, DELAY);
    world.run_for(Span::from_secs(3));
    let [older, newer] = [3, 2].map(|left| {
        world.run_for(Span::from_secs(1));
        world.speak(ME, |can, ctx| {
            can.describe(vitals(1, left));
            can.move_balloon(ctx);
        });
        world.now()
    });
    let mut tied = |from, at| {
        let said = world.sent().len();
        world.tell(ME, Input::Message { from, message: Message::Tied(at) });
        let untied: Vec<(NodeId, Time)> = world.sent()[said..]
            .iter()
            .filter_map(|sent| match sent.message {
                Message::Untie(at) => Some((sent.to, at)),
                _ => None,
            })
            .collect();
        (untied, world.core(ME).balloon_holder(), world.core(ME).balloons().count())
    };
    assert_eq!(tied(LATE, older), (vec![(LATE, older)], Some(ME), 1), "the newer one is ours, and here");
    assert_eq!(tied(LATE, newer + Span::from_secs(9)), (vec![], Some(ME), 1), "there was never such a one");
    assert_eq!(tied(NEXT, newer), (vec![], Some(NEXT), 0), "it was passed on, and is no longer here");
    assert_eq!(tied(LATE, older), (vec![(LATE, older)], Some(NEXT), 0));
    assert_eq!(tied(LATE, newer), (vec![(NEXT, newer)], Some(LATE), 0));
}
