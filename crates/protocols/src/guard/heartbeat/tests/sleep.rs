//! A node that was itself away holds that against nobody.

use proptest::prelude::*;
use shoal_model::{NodeId, Span, Time};

use super::{A, B, C, Guard, ms, pings, suspicions, watch, world};
use crate::guard::heartbeat::{Config, Event, PARDONS_MAX};
use crate::testing::{World, cases};

/// Runs until another ping has gone out, and its answer cannot be here yet.
fn run_until_asked(world: &mut World<Guard>) {
    let before = pings(world);
    while pings(world) == before {
        world.run_for(ms(10));
    }
}

#[test]
fn sleep_is_reported_once() {
    let mut world = world(Config::default());
    world.command(A, watch(C, 1));
    world.run_until(Time::from_secs(10));
    world.freeze_for(A, Span::from_secs(60));
    world.run_until(Time::from_secs(100));

    let [(at, A, Event::Slept { late_by })] = world.reports() else { panic!("{:?}", world.reports()) };
    assert_eq!(*at, Time::from_secs(70));
    assert!(*late_by >= Span::from_secs(58), "{late_by}");
}

#[test]
fn node_that_died_meanwhile_is_suspected_after_the_sleep() {
    let config = Config::default();
    let mut world = world(config);
    world.run_until(Time::from_secs(10));
    world.crash(B);
    world.freeze_for(A, Span::from_secs(60));
    world.run_until(Time::from_secs(70) + config.suspects_within());

    assert_eq!(suspicions(&world), 1, "{}", world.story());
}

#[test]
fn host_that_always_oversleeps_still_suspects_the_dead() {
    let mut world = world(Config::default());
    world.crash(B);
    let rounds = u64::from(PARDONS_MAX) + 4;
    for _ in 0..rounds {
        world.freeze_for(A, Span::from_secs(5));
        world.run_for(Span::from_secs(5));
    }

    assert_eq!(suspicions(&world), 1, "{}", world.story());
}

#[test]
fn sleep_wipes_out_the_misses_before_it() {
    let config = Config::default();
    let mut world = world(config);
    world.run_until(Time::from_secs(10));
    world.network(|_| vec![]);
    for _ in 0..config.misses {
        run_until_asked(&mut world);
    }
    let before = pings(&world);
    world.freeze_for(A, Span::from_secs(10));
    world.run_for(Span::from_secs(10));
    while suspicions(&world) == 0 {
        world.run_for(ms(10));
    }

    assert_eq!(pings(&world) - before, usize::from(config.misses), "{}", world.story());
}

#[test]
fn sleep_is_not_taken_for_the_slowness_of_others() {
    let mut world = world(Config::default());
    world.run_until(Time::from_secs(10));
    world.network(|_| vec![ms(5_000)]);
    run_until_asked(&mut world);
    let before = world.core(A).timeout(B);
    world.freeze_for(A, Span::from_secs(60));
    world.run_for(Span::from_secs(60));

    assert_eq!(world.core(A).watches[&B].heard, world.now(), "the answer waited and has been read");
    assert_eq!(world.core(A).timeout(B), before);
}

#[test]
fn fresh_rounds_are_granted_anew_after_each_sign_of_life() {
    let mut world = world(Config { misses: 1, ..Config::default() });
    world.run_until(Time::from_secs(1));
    for _ in 0..2 * PARDONS_MAX {
        world.network(|_| vec![]);
        run_until_asked(&mut world);
        world.freeze_for(A, Span::from_secs(10));
        world.network(|_| vec![ms(50)]);
        world.run_for(Span::from_secs(11));
    }

    assert_eq!(suspicions(&world), 0, "{}", world.story());
}

proptest! {
    #![proptest_config(cases(200))]

    /// With a single miss allowed, every answer that the sleep swallowed would be a false suspicion.
    #[test]
    fn suspended_host_suspects_nobody(
        awake_ms in 0..20_000u64,
        asleep_ms in 2_600..100_000u64,
        mail_waits in any::<bool>(),
    ) {
        let config = Config { misses: 1, ..Config::default() };
        let mut world: World<Guard> = World::new(9, config, ms(50));
        for other in 2..=9 {
            world.command(A, watch(NodeId(other), 1));
        }
        world.run_for(ms(awake_ms));
        let (from, until) = (world.now(), world.now() + ms(asleep_ms));
        world.freeze_for(A, ms(asleep_ms));
        world.network(move |sent| {
            let swallowed = sent.to == A && (from..until).contains(&(sent.at + ms(50)));
            if swallowed && !mail_waits { vec![] } else { vec![ms(50)] }
        });
        world.run_for(ms(asleep_ms) + Span::from_secs(20));

        prop_assert_eq!(suspicions(&world), 0, "{:?}", world.reports());
    }
}
