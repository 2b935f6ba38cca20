//! Balloons: R1 to R3.

use shoal_model::{NodeId, Time};
use shoal_protocols::node::{Message, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::scheduling::tri_pronged::{Config, Variant};
use shoal_simulator::grid::Grid;
use shoal_simulator::world::Saw;

use crate::scene::{can_of, grid, job, machine};

#[test]
fn each_partly_used_machine_has_one_balloon_where_its_residue_lies() {
    let recipe = Config { variant: Variant::L, ..Config::real() };
    let mut grid = grid(3, vec![machine(4); 30], recipe, Default::default());
    grid.world().run_before(Time::from_secs(90));
    let nodes: Vec<NodeId> = grid.world().nodes().collect();
    let zones = |grid: &Grid<Node>| -> Vec<Vec<can::Claim>> {
        nodes.iter().map(|&node| can_of(grid, node).claims().to_vec()).collect()
    };
    let before = zones(&grid);
    grid.world().sights();
    for number in 0..40 {
        let node = NodeId(1 + u64::from(number) % 30);
        grid.submit(
            Time::from_secs(100 + u64::from(number)),
            node,
            job(number, 1 + u32::from(number) % 3, 600),
        );
    }
    grid.world().run_before(Time::from_secs(200));
    assert_eq!(zones(&grid), before, "R3: zones are untouched by starts");
    let mut partly = 0;
    for &node in &nodes {
        let holders: Vec<NodeId> = nodes
            .iter()
            .copied()
            .filter(|&other| can_of(&grid, other).balloons().any(|balloon| balloon.node == node))
            .collect();
        let Some(point) = can_of(&grid, node).balloon_point() else {
            assert!(holders.is_empty(), "R1: {node} needs none");
            continue;
        };
        partly += 1;
        assert_eq!(holders.len(), 1, "R1: {node} has one");
        let holder = can_of(&grid, holders[0]);
        assert!(holder.claims().iter().any(|claim| claim.zone.contains(&point)), "R1: where it lies");
        assert_eq!(can_of(&grid, node).balloon_holder(), Some(holders[0]));
    }
    assert!(partly >= 5, "{partly}");

    // R2: what a change costs is one that ties, one that unties, and an answer, on the way there apart.
    let sights = grid.world().sights();
    let of = |wanted: fn(&can::Message) -> bool| {
        let is = |saw: &Saw<Node>| matches!(saw, Saw::Send(_, Message::Can(message)) if wanted(message));
        sights.iter().filter(|sight| is(&sight.saw)).count()
    };
    let tied = of(|message| matches!(message, can::Message::Tied(_)));
    let untied = of(|message| matches!(message, can::Message::Untie(_)));
    assert!(untied <= tied, "{untied} of {tied}");

    grid.world().run_before(Time::from_secs(3_000));
    assert_eq!(zones(&grid), before, "R3: and by ends");
    let left: usize = nodes.iter().map(|&node| can_of(&grid, node).balloons().count()).sum();
    assert_eq!(left, 0, "nothing runs, and no balloon is left");
}
