//! While nodes crash, come back and come anew: R1 of balloons, and M1 of searches though messages are lost.

use rand::{RngExt, SeedableRng};
use shoal_model::machine::Machine;
use shoal_model::units::{Size, Thousandths};
use shoal_model::{JobId, NodeId, Resources, Span, Time};
use shoal_protocols::Chance;
use shoal_protocols::node::{Command, End, Event, Node};
use shoal_protocols::overlay::can;
use shoal_protocols::scheduling::tri_pronged::{Config, Variant};
use shoal_simulator::faults::{self, Listed, NoiseLevel};
use shoal_simulator::grid::Grid;
use shoal_simulator::workload::profiles::{Profiles, machines};

use crate::scene::{can_of, events, grid, job, job_needing, starts, up};

const BEAT: Span = Span::from_secs(5);

/// Starts a node again through one that is up.
fn restart(grid: &mut Grid<Node>, node: NodeId, chance: &mut Chance) {
    let (now, up) = (grid.look().now(), up(grid));
    let through = up[chance.random_range(0..up.len())];
    grid.world().boot(now, node);
    grid.world().command(now, node, Command::Join(through));
}

/// One of these nodes crashes, or comes back; at most so many are down at once.
fn crash_or_restart(grid: &mut Grid<Node>, nodes: &[NodeId], most: usize, chance: &mut Chance) {
    let (up, down): (Vec<NodeId>, Vec<NodeId>) = nodes.iter().partition(|&&node| grid.look().is_up(node));
    if down.is_empty() || down.len() < most && chance.random() {
        let now = grid.look().now();
        grid.world().crash(now, up[chance.random_range(0..up.len())]);
    } else {
        restart(grid, down[chance.random_range(0..down.len())], chance);
    }
}

/// How many machines were seen of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    partly: usize,
    /// Of these, whose balloon is at another node.
    away: usize,
    full: usize,
    idle: usize,
    dead: usize,
}

/// R1, or what is wrong with it.
fn check_balloons(grid: &Grid<Node>, seen: &mut Seen) -> Result<(), String> {
    let living = up(grid);
    for node in grid.look().nodes() {
        let tied = |&&other: &&NodeId| can_of(grid, other).balloons().any(|balloon| balloon.node == node);
        let holders: Vec<NodeId> = living.iter().filter(tied).copied().collect();
        let can = can_of(grid, node);
        let vitals = can.own_vitals().filter(|_| grid.look().is_up(node));
        let partly = vitals.filter(|vitals| vitals.running > 0 && vitals.residual.cores > Thousandths::ZERO);
        let Some(vitals) = partly else {
            let kind = match vitals {
                None => &mut seen.dead,
                Some(vitals) if vitals.running == 0 => &mut seen.idle,
                Some(_) => &mut seen.full,
            };
            *kind += 1;
            if !holders.is_empty() {
                return Err(format!("{node} needs no balloon, and has one at {holders:?}"));
            }
            continue;
        };
        seen.partly += 1;
        let [holder] = holders[..] else {
            return Err(format!("{node} should have one balloon, and has them at {holders:?}"));
        };
        let mut lies = *can.point();
        let place = can.config().place(&vitals.residual, Some(vitals.machine.speed), 0);
        lies[..can::VIRTUAL].copy_from_slice(&place[..can::VIRTUAL]);
        let owners: Vec<NodeId> = living
            .iter()
            .filter(|&&other| can_of(grid, other).claims().iter().any(|claim| claim.zone.contains(&lies)))
            .copied()
            .collect();
        if owners != [holder] {
            return Err(format!("the balloon of {node} is at {holder} and lies in zones of {owners:?}"));
        }
        let told = can_of(grid, holder).balloons().find(|balloon| balloon.node == node);
        if told.is_none_or(|balloon| balloon.vitals.residual != vitals.residual) {
            return Err(format!("the balloon of {node} tells of what was left once"));
        }
        seen.away += usize::from(holder != node);
        if can.balloon_holder() != Some(holder) {
            return Err(format!("{node} takes {:?} for the holder, and {holder} is", can.balloon_holder()));
        }
    }
    Ok(())
}

/// What is left of each machine.
fn left(grid: &Grid<Node>) -> Vec<Option<Resources>> {
    let of = |node| can_of(grid, node).own_vitals().map(|vitals| vitals.residual.clone());
    up(grid).into_iter().map(of).collect()
}

/// Lets the grid heal, and then waits until nothing has started or ended for two heartbeats.
fn pause(grid: &mut Grid<Node>) {
    let healed = grid.look().now() + BEAT * 25;
    grid.world().run_before(healed);
    loop {
        let before = left(grid);
        let now = grid.look().now();
        assert!(now < healed + Span::from_hours(1), "jobs start and end all the time");
        grid.world().run_before(now + BEAT * 2);
        if left(grid) == before {
            return;
        }
    }
}

const NODES: u64 = 36;
/// They come while others crash, each through the node with half its number.
const NEWCOMERS: u64 = 6;

fn balloons_amid_churn(seed: u64, seen: &mut Seen) {
    let joins = (0..NEWCOMERS).map(|number| Listed::Join { at_s: 130.0 + 170.0 * number as f64 });
    let faults = faults::Config { events: joins.collect(), ..faults::Config::default() };
    let recipe = Config { variant: Variant::LiqPull, ..Config::real() };
    let mut grid = grid(seed, machines(Profiles::Desktop, NODES as usize, seed), recipe, faults);
    grid.world().run_before(Time::from_secs(90));
    let doors = NODES / 2..=(NODES + NEWCOMERS) / 2;
    let mortal: Vec<NodeId> = (1..=NODES).filter(|node| !doors.contains(node)).map(NodeId).collect();
    let mut chance = Chance::seed_from_u64(seed);
    let mut number = 0;
    for round in 0..3 {
        for tick in 0..30 {
            let (now, up) = (grid.look().now(), up(&grid));
            for _ in 0..2 {
                let takes = if chance.random::<bool>() { 15..90 } else { 300..700 };
                let takes = chance.random_range(takes);
                let at = now + Span::from_millis(chance.random_range(0..10_000));
                let node = up[chance.random_range(0..up.len())];
                grid.submit(at, node, job(number, chance.random_range(1..=4), takes));
                number += 1;
            }
            if tick % 2 == 0 {
                crash_or_restart(&mut grid, &mortal, 6, &mut chance);
            }
            grid.world().run_before(now + BEAT * 2);
        }
        pause(&mut grid);
        grid.world().sights();
        assert_eq!(check_balloons(&grid, seen), Ok(()), "seed {seed}, pause {round}");
    }
}

#[test]
fn each_partly_used_machine_has_one_balloon_after_every_pause_of_churn() {
    let mut seen = Seen::default();
    for seed in 1..=4 {
        balloons_amid_churn(seed, &mut seen);
    }
    let Seen { partly, away, full, idle, dead } = seen;
    assert!(partly > 60 && away > 30 && full > 20 && idle > 20 && dead > 20, "{seen:?}");
}

/// Many cores, or much memory; one has both.
fn machines_of_which_one_has_both(count: usize, strong: NodeId) -> Vec<Machine> {
    let of = |cores, memory| Resources::cores(cores).with_memory(Size::from_gib(memory));
    let mut machines: Vec<Machine> = [of(8, 1), of(1, 8), of(2, 2), of(4, 1)]
        .map(Machine::with_capacity)
        .into_iter()
        .cycle()
        .take(count)
        .collect();
    machines[strong.0 as usize - 1] = Machine::with_capacity(of(8, 8));
    machines
}

/// Jobs that only one node can run come while a tenth of all messages is lost and others crash, that one too if told so: how
/// each ended.
fn jobs_for_one_node(seed: u64, crashes_too: bool) -> Vec<(JobId, Vec<End>)> {
    let nodes = 40;
    let strong = NodeId(5 + 7 * (seed % 5));
    let noise = NoiseLevel { loss: 0.1, ..NoiseLevel::default() };
    let faults = faults::Config {
        from_s: Some(60.0),
        until_s: Some(900.0),
        noise: Some(noise),
        ..faults::Config::default()
    };
    let recipe = Config { variant: Variant::LiqPull, ..Config::real() };
    let mut grid = grid(seed, machines_of_which_one_has_both(nodes, strong), recipe, faults);
    grid.world().run_before(Time::from_secs(60));
    let mut chance = Chance::seed_from_u64(seed);
    let others: Vec<NodeId> = grid.look().nodes().filter(|&node| node != strong).collect();
    let mut jobs = Vec::new();
    for tick in 0..40u16 {
        let (now, living) = (grid.look().now(), up(&grid));
        let node = living[chance.random_range(0..living.len())];
        let needs = Resources::cores(4).with_memory(Size::from_gib(4));
        jobs.push(grid.submit(now, node, job_needing(tick, needs, 5)));
        // The job is on its owner's disk before that can crash.
        grid.world().run_before(now + Span::from_secs(1));
        match tick % 8 {
            2 if crashes_too => grid.world().crash(now + Span::from_secs(2), strong),
            3 if crashes_too => restart(&mut grid, strong, &mut chance),
            _ => crash_or_restart(&mut grid, &others, 4, &mut chance),
        }
        grid.world().run_before(now + Span::from_secs(20));
    }
    // Whose owner is down ends when that is back.
    for &node in others.iter().chain([&strong]) {
        if !grid.look().is_up(node) {
            restart(&mut grid, node, &mut chance);
        }
    }
    let until = grid.look().now() + Span::from_mins(20);
    grid.world().run_before(until);
    let sights = grid.world().sights();
    let places = starts(&sights);
    assert!(places.iter().all(|(_, node, _)| *node == strong), "seed {seed}: {places:?}");
    let events = events(&sights);
    let ends_of = |job: JobId| {
        let ends = events.iter().filter_map(|event| match event {
            Event::Ended(ended, end) if *ended == job => Some(*end),
            _ => None,
        });
        (job, ends.collect())
    };
    jobs.into_iter().map(ends_of).collect()
}

#[test]
fn only_node_that_will_do_is_found_while_messages_are_lost_and_others_crash() {
    for seed in 1..=6 {
        for (job, ends) in jobs_for_one_node(seed, false) {
            assert_eq!(ends, [End::Finished], "seed {seed}: {job}");
        }
    }
}

#[test]
fn job_runs_when_the_only_node_that_will_do_is_back() {
    for seed in 1..=6 {
        for (job, ends) in jobs_for_one_node(seed, true) {
            assert_eq!(ends, [End::Finished], "seed {seed}: {job}");
        }
    }
}
