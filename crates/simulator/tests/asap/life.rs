//! What becomes of jobs: conflicts, cancels, deaths, machines that differ, and a grid of one.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use shoal_model::{Machine, NodeId, Resources, Span, Thousandths, Time};
use shoal_protocols::node::End;
use shoal_protocols::scheduling::asap::{Audience, Config, Policy};

use super::scene::{MINUTE, POLICIES, gang, scene};

/// Waits are short and jobs need not fall on whole minutes, but are otherwise searched for as in the paper.
fn lively(policy: Policy, audience: Audience) -> Config {
    Config { policy, audience, slot_ms: 0, ..Config::default() }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        rng_seed: RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_node_is_booked_twice_however_many_search_at_once(
        which in 0usize..4,
        seed in 0u64..1_000,
        shuffled in any::<bool>(),
        jobs in prop::collection::vec((0u64..120, 1u64..25, 1u32..9, 5u64..90), 1..40),
    ) {
        let (policy, audience) = POLICIES[which];
        let recipe = Config { give_up: false, poll_period_ms: 20_000, ..lively(policy, audience) };
        let mut stage = scene(24, 6, recipe);
        stage.seed = seed;
        stage.shuffle_ms = if shuffled { 10_000 } else { 0 };
        let mut stage = stage.open();
        let mut all = BTreeSet::new();
        for &(at, node, nodes, seconds) in &jobs {
            let job = gang(nodes, Span::from_secs(seconds));
            all.insert(stage.submit(Time::from_secs(30 + at), node.min(24), job));
        }
        stage.run_until(Time::from_secs(7_200));
        stage.assert_no_double_booking();
        let ends = stage.ends();
        prop_assert!(ends.values().all(|end| *end == End::Finished), "{ends:?}");
        prop_assert_eq!(ends.into_keys().collect::<BTreeSet<_>>(), all);
        stage.assert_at_rest();
    }
}

#[test]
fn idle_grid_starts_every_job_at_the_next_slot() {
    for (policy, audience) in POLICIES {
        for width in [1, 5, 12] {
            let mut stage = scene(100, 6, Config { policy, audience, ..Config::default() }).open();
            let job = stage.submit(Time::from_secs(301), 42, gang(width, MINUTE * 10));
            stage.run_until(Time::from_secs(330));
            let placement = &stage.placements()[&job];
            assert_eq!(placement.start, Time::from_secs(360), "{policy:?} {audience:?} {width}");
            assert_eq!(placement.nodes.len(), width as usize);
        }
    }
}

#[test]
fn every_rule_of_picking_places_the_job_at_the_same_time() {
    use shoal_protocols::choose::earliest::Pick;
    for pick in [Pick::Discovery, Pick::Random, Pick::Tight] {
        let mut stage = scene(60, 6, Config { pick, ..Config::default() }).open();
        let job = stage.submit(Time::from_secs(61), 1, gang(10, MINUTE));
        stage.run_until(Time::from_secs(90));
        assert_eq!(stage.placements()[&job].start, Time::from_secs(120), "{pick:?}");
    }
}

/// Poll: what was taken since the last question is not known; the vote tells, and the next best place is tried.
#[test]
fn stale_schedules_cause_exceptions_and_alternatives_resolve_them() {
    let recipe = Config { policy: Policy::Poll, poll_period_ms: 600_000, retries: 20, ..Config::default() };
    let mut stage = scene(20, 5, recipe).open();
    for number in 0..8 {
        stage.submit(Time::from_secs(900), 1 + number, gang(4, MINUTE * 10));
    }
    stage.run_until(Time::from_secs(7_200));
    assert!(stage.messages("abort") > 0, "nobody refused");
    assert_eq!(stage.ends().len(), 8);
    stage.assert_no_double_booking();
    stage.assert_at_rest();
}

#[test]
fn without_alternatives_and_retries_an_exception_is_a_failure() {
    let recipe = Config {
        policy: Policy::Poll,
        poll_period_ms: 600_000,
        retries: 0,
        alternatives: false,
        ..Config::default()
    };
    let mut stage = scene(20, 5, recipe).open();
    for number in 0..8 {
        stage.submit(Time::from_secs(900 + 20 * number), 1 + number, gang(4, MINUTE * 10));
    }
    stage.run_until(Time::from_secs(7_200));
    let ends = stage.ends();
    assert_eq!(ends.len(), 8);
    let failed = ends.values().filter(|end| **end == End::NoPlace).count();
    assert!((1..8).contains(&failed), "{ends:?}");
    stage.assert_no_double_booking();
    stage.assert_at_rest();
}

#[test]
fn cancel_frees_the_slots_and_holders_get_to_know() {
    for audience in [Audience::Told, Audience::Counted] {
        let mut stage = scene(12, 11, lively(Policy::Push, audience)).open();
        let long = stage.submit(Time::from_secs(10), 1, gang(11, Span::from_hours(5)));
        stage.run_until(Time::from_secs(20));
        let before = stage.cost();
        let blocked = stage.submit(Time::from_secs(20), 2, gang(11, MINUTE));
        stage.run_until(Time::from_secs(30));
        assert!(stage.placements()[&blocked].start >= stage.placements()[&long].start + Span::from_hours(5));
        let placed = stage.cost();
        stage.grid.cancel(Time::from_secs(30), NodeId(1), long);
        stage.run_until(Time::from_secs(40));
        assert_eq!(stage.ends()[&long], End::Cancelled);
        assert_eq!(stage.cost() - placed, placed - before, "{audience:?}: as many calendars change back");
        let next = stage.submit(Time::from_secs(40), 3, gang(11, MINUTE));
        stage.run_until(Time::from_secs(50));
        assert!(stage.placements()[&next].start < Time::from_secs(50));
    }
}

#[test]
fn early_end_frees_the_rest_at_once() {
    let mut stage = scene(6, 5, lively(Policy::Push, Audience::Told)).open();
    let early = shoal_model::Job { limit: Some(Span::from_hours(5)), ..gang(5, Span::from_secs(60)) };
    stage.submit(Time::from_secs(10), 1, early);
    stage.run_until(Time::from_secs(100));
    let next = stage.submit(Time::from_secs(100), 2, gang(5, MINUTE));
    stage.run_until(Time::from_secs(110));
    assert!(stage.placements()[&next].start < Time::from_secs(110));
}

#[test]
fn nodes_that_die_during_the_search_are_left_out() {
    for (policy, audience) in POLICIES {
        let recipe = Config { policy, audience, ..Config::real() };
        let mut stage = scene(30, 6, recipe);
        stage.shuffle_ms = 10_000;
        stage.watch = true;
        let mut stage = stage.open();
        let job = stage.submit(Time::from_secs(100), 1, gang(15, MINUTE));
        // Search is on its way, or its answer, or a vote.
        for (dead, millis) in [(5, 0), (6, 6), (7, 11), (8, 16), (9, 21), (10, 26)] {
            stage.grid.world().crash(Time::from_millis(100_000 + millis), NodeId(dead));
        }
        stage.run_until(Time::from_secs(600));
        assert_eq!(stage.ends().get(&job), Some(&End::Finished), "{policy:?} {audience:?}");
        let nodes = &stage.placements()[&job].nodes;
        assert!(nodes.iter().all(|node| !(5..=10).contains(&node.0)), "{nodes:?}");
        stage.assert_no_double_booking();
    }
}

#[test]
fn dead_holders_and_dead_neighbours_are_forgotten() {
    let mut stage = scene(20, 5, Config { lease_ms: 60_000, ..Config::real() });
    stage.shuffle_ms = 5_000;
    let mut stage = stage.open();
    for dead in 11..=20 {
        stage.grid.world().crash(Time::from_secs(60), NodeId(dead));
    }
    stage.run_until(Time::from_secs(300));
    let before = stage.cost();
    let job = stage.submit(Time::from_secs(300), 1, gang(6, MINUTE));
    stage.run_until(Time::from_secs(320));
    let degrees = stage.in_degrees();
    let living = degrees.iter().filter(|(node, _)| node.0 <= 10).map(|(_, degree)| degree).sum::<u64>();
    assert!(stage.placements().contains_key(&job));
    // Six calendars changed, in the eyes of the living only.
    assert!(stage.cost() - before <= living, "{} schedules for {living} links", stage.cost() - before);
}

#[test]
fn grid_of_one_works_with_the_real_values() {
    let mut stage = scene(1, 5, Config::real());
    stage.shuffle_ms = 10_000;
    let mut stage = stage.open();
    let one = stage.submit(Time::from_secs(1), 1, gang(1, MINUTE));
    let two = stage.submit(Time::from_secs(2), 1, gang(1, MINUTE));
    let wide = stage.submit(Time::from_secs(3), 1, gang(2, MINUTE));
    stage.run_until(Time::from_secs(600));
    let ends = stage.ends();
    assert_eq!((ends.get(&one), ends.get(&two)), (Some(&End::Finished), Some(&End::Finished)));
    assert_eq!(ends.get(&wide), None, "it waits for a second node");
    stage.assert_no_double_booking();
}

#[test]
fn machines_are_matched_by_what_they_have() {
    let plain = Machine::with_capacity(Resources::cores(8));
    let gpu = Machine::with_capacity(Resources::cores(8).with_gpus(Thousandths::whole(1)));
    let mut stage = scene(24, 6, Config::real());
    stage.shuffle_ms = 10_000;
    stage.machines = vec![plain.clone(), plain, gpu];
    let mut stage = stage.open();
    let needy = shoal_model::Job {
        resources: Resources::cores(2).with_gpus(Thousandths::whole(1)),
        ..gang(8, MINUTE)
    };
    let too_needy = shoal_model::Job { nodes: 9.try_into().unwrap(), ..needy.clone() };
    let job = stage.submit(Time::from_secs(120), 1, needy);
    let wide = stage.submit(Time::from_secs(120), 2, too_needy);
    // Two of these share each machine.
    let small = shoal_model::Job { resources: Resources::cores(4), ..gang(24, MINUTE) };
    let shared = [3, 4].map(|node| stage.submit(Time::from_secs(400), node, small.clone()));
    stage.run_until(Time::from_secs(600));
    let placements = stage.placements();
    assert!(placements[&job].nodes.iter().all(|node| node.0 % 3 == 0), "{:?}", placements[&job]);
    assert!(!placements.contains_key(&wide));
    assert!(shared.iter().all(|job| placements[job].start < Time::from_secs(410)));
}

#[test]
fn lossy_network_and_restarts_lose_no_job() {
    for seed in 0..6 {
        let mut stage = scene(16, 5, Config::real());
        stage.seed = seed;
        stage.shuffle_ms = 10_000;
        stage.watch = true;
        stage.loss = 0.02;
        let mut stage = stage.open();
        // A lost Confirm is asked after, which delays a start by some seconds.
        let gang = |nodes| shoal_model::Job { limit: Some(MINUTE), ..gang(nodes, Span::from_secs(40)) };
        let jobs: Vec<_> = (0..20)
            .map(|number| {
                let at = Time::from_secs(60 + number * 7);
                stage.submit(at, 1 + number % 16, gang(1 + number as u32 % 6))
            })
            .collect();
        for (number, dead) in [3, 9, 14].into_iter().enumerate() {
            let at = Time::from_millis(70_000 + 31_003 * number as u64 + 137 * seed);
            stage.grid.world().crash(at, NodeId(dead));
            stage.grid.world().boot(at + Span::from_secs(20), NodeId(dead));
            stage.grid.world().command(
                at + Span::from_secs(20),
                NodeId(dead),
                shoal_protocols::node::Command::Join(NodeId(1)),
            );
        }
        stage.run_until(Time::from_secs(3_600));
        stage.assert_no_double_booking();
        let ends = stage.ends();
        for (number, job) in jobs.iter().enumerate() {
            // One that was put to a node that was down was never taken.
            if ends.get(job) != Some(&End::Finished) {
                assert!(
                    [3, 9, 14].contains(&(1 + number as u64 % 16)),
                    "seed {seed}: job {number} {:?}",
                    ends.get(job)
                );
            }
        }
    }
}

#[test]
fn one_and_two_threads_see_the_same() {
    let run = |threads, (policy, audience)| {
        let mut stage = scene(40, 6, lively(policy, audience));
        stage.shuffle_ms = 10_000;
        stage.threads = threads;
        let mut stage = stage.open();
        for number in 0..30 {
            let at = Time::from_secs(20 + number / 3);
            stage.submit(at, 1 + number, gang(1 + number as u32 % 9, Span::from_secs(5)));
        }
        stage.run_until(Time::from_secs(70));
        let story: String = stage
            .seen()
            .iter()
            .map(|sight| format!("{} {} {:?}\n", sight.at, sight.node, sight.saw))
            .collect();
        (story, stage.grid.schedules_carried())
    };
    for policy in POLICIES {
        assert_eq!(run(1, policy), run(2, policy));
    }
}
