//! Laws that hold whatever the network does.

use proptest::prelude::*;
use shoal_model::Span;

use super::{A, B, Guard, ms, watch};
use crate::guard::heartbeat::{Config, Event};
use crate::testing::{World, cases};

/// What the network does to one message after the other, over and over: a copy after each of the delays.
fn fates(
    delays: std::ops::Range<u64>,
    copies: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Vec<Span>>> {
    prop::collection::vec(prop::collection::vec(delays.prop_map(ms), copies), 1..40)
}

/// As [`world`], with a network that deals these fates from the first message on.
fn world_of(config: Config, fates: Vec<Vec<Span>>) -> World<Guard> {
    assert_eq!(config.check(), Ok(()));
    let mut world = World::new(3, config, Span::ZERO);
    let mut fates = fates.into_iter().cycle();
    world.network(move |_| fates.next().expect("a cycle of some"));
    world.command(A, watch(B, 1));
    world
}

fn configs() -> impl Strategy<Value = Config> {
    (100..5_000u32, 50..1_000u32, 1..4u32, 1..=8u8, 1..20u32).prop_map(
        |(period, least, wider, misses, probe)| Config {
            period_ms: period,
            timeout_least_ms: least,
            timeout_most_ms: least * wider,
            misses,
            probe_most_ms: period * probe,
            ..Config::default()
        },
    )
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn suspicion_and_return_alternate_under_any_luck(
        config in configs(),
        fates in fates(0..5_000, 0..3),
        naps in prop::collection::vec((0..20_000u64, 0..20_000u64), 0..4),
    ) {
        let mut world = world_of(config, fates);
        for (awake, asleep) in naps {
            world.run_for(ms(awake));
            world.freeze_for(A, ms(asleep));
        }
        world.run_for(Span::from_secs(120));

        let mut suspected = None;
        for (at, node, event) in world.reports() {
            prop_assert_eq!(*node, A);
            match event {
                Event::Suspected { node, silent_for } => {
                    prop_assert_eq!((*node, suspected), (B, None), "suspected again at {}", at);
                    suspected = Some(*silent_for);
                }
                Event::Back { node, away_for } => {
                    prop_assert_eq!(*node, B);
                    let silent_for = suspected.take();
                    prop_assert!(silent_for.is_some_and(|silent_for| silent_for <= *away_for), "back at {}", at);
                }
                Event::Slept { late_by } => prop_assert!(*late_by > config.late()),
                Event::Refused { .. } => prop_assert!(false, "refused at {}", at),
            }
        }
        prop_assert_eq!(world.core(A).suspects(B), suspected.is_some());
    }

    /// Round trips below what is tolerated, any number of copies, but none lost.
    #[test]
    fn nobody_is_suspected_without_loss(
        config in configs(),
        fates in prop::collection::vec(prop::collection::vec(0..1_000u64, 1..3), 1..40),
    ) {
        let one_way = config.tolerates().as_micros() / 2 - 1;
        let scaled = |per_mille: u64| Span::from_micros(one_way * per_mille / 1_000);
        let fates = fates.into_iter().map(|copies| copies.into_iter().map(scaled).collect()).collect();
        let mut world = world_of(config, fates);
        world.run_for(Span::from_secs(120));

        prop_assert!(world.reports().is_empty(), "{:?}", world.reports());
    }

    #[test]
    fn dead_node_is_suspected_within_the_bound(
        config in configs(),
        fates in fates(0..2_000, 0..3),
        lived_ms in 0..60_000u64,
    ) {
        let mut world = world_of(config, fates);
        world.run_for(ms(lived_ms));
        world.crash(B);
        // What B said last may still be under way.
        world.run_for(ms(2_000) + config.suspects_within());

        prop_assert!(world.core(A).suspects(B), "{:?}", world.reports());
        for (_, _, event) in world.reports() {
            if let Event::Suspected { silent_for, .. } = event {
                prop_assert!(*silent_for <= config.suspects_within(), "{:?}", event);
            }
        }
        // A dead node stays one.
        let verdicts = world.reports().len();
        world.run_for(Span::from_secs(600));
        prop_assert_eq!(world.reports().len(), verdicts);
    }
}
