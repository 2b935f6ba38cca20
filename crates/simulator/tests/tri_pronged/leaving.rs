//! Nodes that leave: their jobs, their queues and their zones go to others, and nobody misses them.

use proptest::prelude::*;
use shoal_model::{JobId, NodeId, Span, Time};
use shoal_protocols::node::{Command, End, Event, Node};
use shoal_protocols::overlay::Overlay;
use shoal_protocols::overlay::can::{Volume, Zone};
use shoal_protocols::scheduling::tri_pronged::Config;
use shoal_simulator::faults::{self, NoiseLevel};
use shoal_simulator::grid::Grid;
use shoal_simulator::world::{Saw, Sight};

use crate::scene::{grid, job, machine};
use crate::storms::cases;

const NODES: u64 = 12;
/// A third of them leave, one after the other.
const LEAVERS: [u64; 4] = [2, 5, 8, 11];

/// Drains a node, has it leave the overlay once it is drained, and switches it off for good; tells when that was.
fn see_off(grid: &mut Grid<Node>, node: NodeId, seen: &mut Vec<Sight<Node>>) -> Option<Time> {
    let begun = grid.look().now();
    grid.world().command(begun, node, Command::Drain);
    let mut asked = false;
    while grid.look().now() < begun + Span::from_hours(1) {
        let now = grid.look().now() + Span::from_millis(500);
        grid.world().run_before(now);
        seen.extend(grid.world().sights());
        let core = grid.look().core(node);
        if asked && core.has_left() {
            grid.world().crash(now, node);
            return Some(now);
        }
        if !asked && core.is_drained(now) {
            asked = true;
            grid.world().command(now, node, Command::Leave);
        }
    }
    None
}

fn ends(seen: &[Sight<Node>], job: JobId) -> Vec<End> {
    let end = |sight: &Sight<Node>| match &sight.saw {
        Saw::Event(Event::Ended(other, end)) if *other == job => Some(*end),
        _ => None,
    };
    seen.iter().filter_map(end).collect()
}

/// All jobs of a grid of which a third of the nodes leave end once, wherever they were accepted.
fn jobs_outlive_their_nodes(seed: u64, noise: Option<NoiseLevel>) -> Result<usize, TestCaseError> {
    let faults =
        faults::Config { from_s: Some(60.0), until_s: Some(900.0), noise, ..faults::Config::default() };
    let mut grid = grid(seed, vec![machine(2); NODES as usize], Config::real(), faults);
    let jobs: Vec<JobId> = (0..90u16)
        .map(|number| {
            let at = Time::from_secs(60 + u64::from(number));
            // Most come to those who will leave.
            let node = if number % 3 == 0 { 1 } else { LEAVERS[usize::from(number) % LEAVERS.len()] };
            grid.submit(at, NodeId(node), job(number, 1 + u32::from(number) % 2, 40 + u64::from(number)))
        })
        .collect();
    let mut seen = Vec::new();
    grid.world().run_before(Time::from_secs(155));
    seen.extend(grid.world().sights());
    for node in LEAVERS {
        let left = see_off(&mut grid, NodeId(node), &mut seen);
        prop_assert!(left.is_some(), "node {} never leaves", node);
    }
    let until = grid.look().now() + Span::from_hours(2);
    grid.world().run_before(until);
    seen.extend(grid.world().sights());
    let mut handed = 0;
    for job in jobs {
        let ends = ends(&seen, job);
        let (moves, over): (Vec<End>, Vec<End>) =
            ends.iter().partition(|end| matches!(end, End::HandedOver(_)));
        handed += moves.len();
        prop_assert!(over == [End::Finished], "job {} ended as {:?} after {:?}", job, over, moves);
    }
    let zones = grid.look().nodes().filter(|&node| grid.look().is_up(node)).flat_map(|node| {
        match grid.look().core(node).overlay() {
            Overlay::Can(can) => can.claims().to_vec(),
            Overlay::Cyclon(_) | Overlay::BlatantS(_) => Vec::new(),
        }
    });
    let covered: Volume = zones.map(|claim| claim.zone.volume()).sum();
    prop_assert_eq!(covered, Zone::WHOLE.volume(), "zones of those who stay cover the space");
    Ok(handed)
}

#[test]
fn jobs_queues_and_zones_of_nodes_that_leave_go_to_others() {
    let handed = jobs_outlive_their_nodes(1, None).expect("all jobs end once");
    assert!(handed > 10, "only {handed} jobs were handed over");
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn jobs_outlive_nodes_that_leave_while_messages_are_lost(
        seed in 0u64..1_000_000,
        loss in 0.0f64..0.2,
        duplication in 0.0f64..0.3,
    ) {
        jobs_outlive_their_nodes(seed, Some(NoiseLevel { loss, duplication, reorder: 0.2, reorder_ms: 3_000.0 }))?;
    }
}
