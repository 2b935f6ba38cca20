//! Dual-CAN: R1 and R3, what only a residue can start is found, and no job is lost or doubled.

use proptest::prelude::*;
use shoal_model::machine::Machine;
use shoal_model::units::Thousandths;
use shoal_model::{JobId, NodeId, Resources, Span, Time};
use shoal_protocols::node::{Message, Node};
use shoal_protocols::overlay::can::{Can, Claim, Residue, VIRTUAL, Volume, Zone};
use shoal_protocols::protocol::Message as _;
use shoal_protocols::scheduling::tri_pronged::{self, Config, Variant};
use shoal_simulator::faults::NoiseLevel;
use shoal_simulator::grid::Grid;
use shoal_simulator::world::Saw;

use crate::scene::{grid_with, job, job_needing, machine, said, starts};
use crate::storms::{bad_minutes, cases, ends_well};

fn dual(seed: u64, cores: Vec<u32>, variant: Variant) -> Grid<Node> {
    let recipe = Config { variant, ..Config::real() };
    let machines = cores.into_iter().map(machine).collect();
    grid_with(Residue::Dual, 1, seed, machines, recipe, Default::default())
}

fn primary(grid: &Grid<Node>, node: NodeId) -> &Can {
    grid.look().core(node).overlay().as_can().expect("a CAN")
}

fn secondary(grid: &Grid<Node>, node: NodeId) -> &Can {
    grid.look().core(node).secondary().expect("a second CAN").can()
}

fn nodes(grid: &Grid<Node>) -> Vec<NodeId> {
    grid.look().nodes().filter(|&node| grid.look().is_up(node)).collect()
}

/// How many machines are partly used; R1, and N1 and N2 of the Secondary, or what is wrong with them.
fn check(grid: &Grid<Node>) -> Result<usize, String> {
    let mut claims: Vec<(NodeId, Claim)> = Vec::new();
    let mut partly = 0;
    for node in nodes(grid) {
        let second = secondary(grid, node);
        claims.extend(second.claims().iter().map(|&claim| (node, claim)));
        let vitals = primary(grid, node).own_vitals().filter(|vitals| vitals.is_partly_used());
        let Some(vitals) = vitals else {
            if !second.claims().is_empty() {
                return Err(format!("{node} has nothing left, or runs nothing, and a zone"));
            }
            continue;
        };
        partly += 1;
        let lies = second.config().place(&vitals.residual, Some(vitals.machine.speed), 0);
        if second.point()[..VIRTUAL] != lies[..VIRTUAL] {
            return Err(format!("{node} does not lie where its residue does"));
        }
        match second.claims() {
            [claim] if claim.zone.contains(second.point()) => {}
            other => return Err(format!("{node} should have the zone that it lies in, and has {other:?}")),
        }
    }
    for (index, (a, mine)) in claims.iter().enumerate() {
        if let Some((b, _)) = claims[index + 1..].iter().find(|(_, other)| other.zone.overlaps(&mine.zone)) {
            return Err(format!("{a} and {b} claim the same"));
        }
    }
    let all: Volume = claims.iter().map(|(_, claim)| claim.zone.volume()).sum();
    if partly > 0 && all != Zone::WHOLE.volume() {
        return Err("there is a hole".into());
    }
    Ok(partly)
}

#[test]
fn each_partly_used_machine_has_one_zone_where_its_residue_lies() {
    for seed in 1..=4 {
        let mut grid = dual(seed, vec![4; 30], Variant::L);
        grid.world().run_before(Time::from_secs(90));
        let zones = |grid: &Grid<Node>| -> Vec<Vec<Claim>> {
            nodes(grid).into_iter().map(|node| primary(grid, node).claims().to_vec()).collect()
        };
        let before = zones(&grid);
        // A wave of jobs every ten minutes, some of which end while the others go on.
        for number in 0..200 {
            let node = NodeId(1 + u64::from(number) % 30);
            let at = Time::from_secs(100 + 600 * u64::from(number / 40) + u64::from(number % 40));
            let takes = if number % 3 == 0 { 200 } else { 450 };
            grid.submit(at, node, job(number, 1 + u32::from(number) % 3, takes));
        }
        for wave in 0..5 {
            for (look, least) in [(170, 5), (420, 5), (590, 0)] {
                grid.world().run_before(Time::from_secs(100 + 600 * wave + look));
                let seen = check(&grid);
                assert!(
                    seen.as_ref().is_ok_and(|partly| *partly >= least),
                    "R1: seed {seed}, wave {wave}, after {look} s: {seen:?}"
                );
                assert_eq!(zones(&grid), before, "R3: seed {seed}, wave {wave}");
            }
        }
        grid.world().run_before(Time::from_secs(4_000));
        assert_eq!(check(&grid), Ok(0), "nothing runs, and nobody has a zone");
    }
}

/// Every machine is full and has jobs waiting, but one, which has a core left; how long each of eight jobs of one core
/// waits for that.
fn waits_for_the_last_core(residue: Residue, seed: u64) -> (Vec<Span>, usize) {
    let mut machines = vec![machine(4); 60];
    let roomy = NodeId(13 * seed);
    let gpu = |cores| Resources::cores(cores).with_gpus(Thousandths::whole(1));
    machines[roomy.0 as usize - 1] = Machine::with_capacity(gpu(3));
    let recipe = Config { variant: Variant::L, ..Config::real() };
    let mut grid = grid_with(residue, 1, seed, machines, recipe, Default::default());
    for number in 0..1_000 {
        let at = Time::from_millis(80_000 + 200 * u64::from(number));
        grid.submit(at, NodeId(1 + u64::from(number) % 60), job(number, 4, 3_000));
    }
    grid.submit(Time::from_secs(300), roomy, job_needing(1_000, gpu(2), 3_000));
    grid.world().run_before(Time::from_secs(400));
    grid.world().sights();
    let left = |node| primary(&grid, node).own_vitals().map(|vitals| vitals.residual.cores);
    let with_room: Vec<NodeId> =
        nodes(&grid).into_iter().filter(|&node| left(node) != Some(Thousandths::ZERO)).collect();
    assert_eq!(with_room, [roomy], "seed {seed}: all machines are full but one");
    assert_eq!(left(roomy), Some(Thousandths::whole(1)), "seed {seed}");
    let at = |number: u16| Time::from_secs(420 + 40 * u64::from(number));
    let jobs: Vec<JobId> = (0..8)
        .map(|number| grid.submit(at(number), NodeId(1 + 7 * u64::from(number)), job(2_000 + number, 1, 10)))
        .collect();
    grid.world().run_before(Time::from_secs(800));
    let sights = grid.world().sights();
    let starts = starts(&sights);
    let waits = (0..).zip(&jobs).map(|(number, job)| {
        let start = starts.iter().find(|(started, ..)| started == job);
        start.map_or(Span::from_hours(1), |(_, _, start)| start.since(at(number)))
    });
    (waits.collect(), said(&sights, |message| matches!(message, tri_pronged::Message::FindResidue(..))))
}

#[test]
fn job_that_only_a_residue_can_start_at_once_is_found_there() {
    for seed in 1..=4 {
        let (waits, searched) = waits_for_the_last_core(Residue::Dual, seed);
        let (tied, _) = waits_for_the_last_core(Residue::Balloon, seed);
        let at_once = |waits: &[Span]| waits.iter().filter(|wait| **wait < Span::from_secs(3)).count();
        println!(
            "seed {seed}: of 8 jobs {} start at once, with balloons {}; {searched} messages to find residues",
            at_once(&waits),
            at_once(&tied)
        );
        assert_eq!(at_once(&waits), 8, "seed {seed}: {waits:?}");
        assert!(searched > 0, "seed {seed}");
    }
}

#[test]
fn one_and_two_threads_see_the_same() {
    let run = |threads| {
        let recipe = Config { variant: Variant::LiqPull, ..Config::real() };
        let mut grid = grid_with(Residue::Dual, threads, 5, vec![machine(4); 24], recipe, Default::default());
        for number in 0..80 {
            let at = Time::from_secs(60 + 2 * u64::from(number));
            grid.submit(at, NodeId(1 + u64::from(number) % 24), job(number, 1 + u32::from(number) % 3, 90));
        }
        grid.world().crash(Time::from_secs(120), NodeId(7));
        grid.world().boot(Time::from_secs(150), NodeId(7));
        grid.world().run_before(Time::from_secs(900));
        let sights: Vec<String> = grid.world().sights().iter().map(|sight| format!("{sight:?}")).collect();
        (sights, grid.world().traffic(), grid.world().handled())
    };
    let (one, two) = (run(1), run(2));
    assert!(one.1["secondary_update"].messages > 1_000, "{:?}", one.1);
    assert_eq!((one.1, one.2), (two.1, two.2));
    assert!(one.0 == two.0, "the same in another order, or not the same");
}

proptest! {
    #![proptest_config(cases(16))]

    /// Jobs that leave something of each machine, while a fifth of all messages is lost and nodes crash; and when all is
    /// calm again, the Secondary is whole.
    #[test]
    fn churn_neither_loses_nor_doubles_a_job_and_leaves_one_secondary(
        seed in 0u64..1_000_000,
        crashes in any::<bool>(),
        variant in 0usize..6,
        whole in any::<bool>(),
    ) {
        let noise = NoiseLevel { loss: 0.2, duplication: 0.1, reorder: 0.2, reorder_ms: 3_000.0 };
        let faults = bad_minutes(noise, crashes);
        let recipe = Config { variant: Variant::ALL[variant], ..Config::real() };
        let mut grid = grid_with(Residue::Dual, 1, seed, vec![machine(4); 16], recipe, faults);
        for number in 0..90u16 {
            let at = Time::from_secs(60 + 3 * u64::from(number));
            let node = NodeId(1 + u64::from(number) % 4);
            grid.submit(at, node, job(number, 1 + u32::from(number) % 3, 30 + u64::from(number)));
        }
        // Some that still run when all is calm.
        for number in 90..106u16 {
            let node = NodeId(1 + u64::from(number) % 16);
            grid.submit(Time::from_secs(340), node, job(number, 1 + u32::from(number) % 3, 1_200));
        }
        if whole {
            let calm = grid.healed_from() + Span::from_secs(300);
            grid.world().run_before(calm);
            let seen = check(&grid);
            prop_assert!(seen.is_ok(), "{seen:?}");
            return Ok(());
        }
        ends_well(&mut grid, seed)?;
    }
}

#[test]
fn what_a_start_costs_is_counted_apart_from_the_primary() {
    let mut grid = dual(2, vec![4; 20], Variant::L);
    grid.world().run_before(Time::from_secs(90));
    let before = grid.world().traffic();
    for number in 0..20 {
        grid.submit(Time::from_secs(100), NodeId(1 + u64::from(number)), job(number, 2, 100));
    }
    grid.world().run_before(Time::from_secs(300));
    let (after, sights) = (grid.world().traffic(), grid.world().sights());
    let of = |kind: &str| after[kind].messages - before[kind].messages;
    let beside = sights.iter().filter_map(|sight| match &sight.saw {
        // What a node says to itself is no traffic.
        Saw::Send(to, Message::Secondary(message)) if *to != sight.node => Some(message.kind()),
        _ => None,
    });
    let all: u64 = after.keys().filter(|kind| kind.starts_with("secondary_")).map(|kind| of(kind)).sum();
    assert_eq!(all, beside.count() as u64);
    assert!(of("secondary_join") > 0 && of("secondary_welcome") > 0 && of("secondary_hold") > 0);
    assert_eq!(of("tie") + of("tied") + of("untie"), 0, "no balloons beside");
    assert_eq!(of("join") + of("welcome") + of("grant"), 0, "R3");
}
