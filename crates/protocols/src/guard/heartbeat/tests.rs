//! Claims of the heartbeat: conversations first, then laws under any luck.

use proptest::prelude::*;
use shoal_model::{NodeId, Span, Time};

use super::{Command, Config, Event, Heartbeat, Limit, Message, PARDONS_MAX};
use crate::protocol::Input;
use crate::testing::World;

/// Watches for numbered reasons.
type Guard = Heartbeat<u32>;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn watch(node: NodeId, reason: u32) -> Command<u32> {
    Command::Watch { node, reason }
}

fn unwatch(node: NodeId, reason: u32) -> Command<u32> {
    Command::Unwatch { node, reason }
}

/// Three nodes, 50 ms apart; A watches B, and C is a bystander.
fn world(config: Config) -> World<Guard> {
    assert_eq!(config.check(), Ok(()));
    let mut world = World::new(3, config, ms(50));
    world.command(A, watch(B, 1));
    world
}

fn pings(world: &World<Guard>) -> usize {
    world.sent().iter().filter(|sent| matches!(sent.message, Message::Ping(_))).count()
}

fn suspicions(world: &World<Guard>) -> usize {
    world.reports().iter().filter(|(_, _, event)| matches!(event, Event::Suspected { .. })).count()
}

fn returns(world: &World<Guard>) -> usize {
    world.reports().iter().filter(|(_, _, event)| matches!(event, Event::Back { .. })).count()
}

#[test]
fn node_falls_silent_and_comes_back() {
    let mut world = world(Config::default());
    world.run_until(Time::from_secs(1));
    world.network(|sent| if sent.at < Time::from_secs(6) { vec![] } else { vec![ms(50)] });
    world.run_until(Time::from_secs(9));

    let story = "\
0.0s n1 -> n2 Ping(1)
0.05s n2 -> n1 Pong(1)
1.949521s n1 -> n2 Ping(4) (lost)
2.249521s n1 -> n2 Ping(6) (lost)
2.549521s n1 -> n2 Ping(8) (lost)
2.849521s n1 Suspected { node: n2, silent_for: 2.749521s }
4.55196s n1 -> n2 Ping(11) (lost)
7.824741s n1 -> n2 Ping(13)
7.874741s n2 -> n1 Pong(13)
7.924741s n1 Back { node: n2, away_for: 7.824741s }
";
    assert_eq!(world.story(), story);
}

#[test]
fn late_answers_bring_a_node_back_exactly_once() {
    let mut world = world(Config::default());
    world.run_until(Time::from_secs(10));
    // Each ping of the round that fails is answered twice, all of them after the suspicion.
    world.network(|_| vec![ms(1_000), ms(1_100)]);
    world.run_until(Time::from_secs(14));

    assert_eq!((suspicions(&world), returns(&world)), (1, 1), "{}", world.story());
}

#[test]
fn slow_node_is_not_suspected_once_its_timeout_has_adapted() {
    let mut world = world(Config { timeout_least_ms: 100, misses: 2, ..Config::default() });
    world.run_until(Time::from_secs(20));
    assert!(world.core(A).timeout(B).unwrap() < ms(200));
    world.network(|_| vec![ms(500)]);
    world.run_until(Time::from_secs(40));
    let before = suspicions(&world);
    world.run_until(Time::from_secs(600));

    assert_eq!(before, 1, "a tenfold round trip comes as a surprise: {}", world.story());
    assert_eq!(suspicions(&world), before);
    assert!(world.core(A).timeout(B).unwrap() >= ms(1_000));
}

#[test]
fn gaps_between_probes_grow_and_are_bounded() {
    let mut world = world(Config::default());
    world.crash(B);
    world.run_until(Time::from_secs(600));

    let suspected = world.reports()[0].0;
    let mut times = vec![suspected];
    times.extend(world.sent().iter().map(|sent| sent.at).filter(|&at| at > suspected));
    let gaps: Vec<Span> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    for (gap, most_s) in gaps.iter().zip([2, 4, 8, 16, 32].into_iter().chain(std::iter::repeat(60))) {
        let most = Span::from_secs(most_s);
        assert!(*gap <= most && *gap * 4 >= most * 3, "a gap of {gap} instead of {most} less a quarter");
    }
    assert!((13..=20).contains(&gaps.len()), "ten minutes of a dead node cost {} pings", gaps.len());
}

#[test]
fn restarted_node_is_back_within_the_bound() {
    let config = Config { probe_most_ms: 10_000, ..Config::default() };
    let mut world = world(config);
    world.crash(B);
    world.run_until(Time::from_secs(120));
    world.restart(B);
    world.run_for(config.probes_within() + ms(100));

    assert_eq!((suspicions(&world), returns(&world)), (1, 1), "{}", world.story());
    assert!(!world.core(A).suspects(B));
}

#[test]
fn only_watched_nodes_get_traffic() {
    let mut world = world(Config::default());
    world.command(A, watch(A, 1));
    world.run_until(Time::from_secs(60));

    assert!(world.sent().iter().all(|sent| [sent.from, sent.to] == [A, B] || [sent.from, sent.to] == [B, A]));
    assert!(pings(&world) >= 29, "{} pings in 30 periods", pings(&world));
}

#[test]
fn node_is_watched_until_its_last_reason_is_gone() {
    let mut world = world(Config::default());
    world.command(A, watch(B, 2));
    world.command(A, watch(B, 2));
    world.command(A, unwatch(B, 1));
    world.run_until(Time::from_secs(60));
    assert_eq!(world.core(A).reasons(B).collect::<Vec<_>>(), [&2]);
    let watched = pings(&world);
    assert!(watched >= 29, "{watched} pings in 30 periods");

    world.command(A, unwatch(B, 2));
    world.crash(B);
    world.run_until(Time::from_secs(120));
    assert_eq!(pings(&world), watched);
    assert_eq!(world.core(A).watched().count(), 0);
    assert!(world.reports().is_empty(), "{}", world.story());
}

#[test]
fn watching_anew_leaves_one_chain_of_looks() {
    let mut world = world(Config::default());
    for _ in 0..10 {
        world.run_for(ms(10));
        world.command(A, unwatch(B, 1));
        world.command(A, watch(B, 1));
    }
    let before = pings(&world);
    world.run_for(Span::from_secs(60));

    assert!(pings(&world) - before <= 35, "{} pings in 30 periods", pings(&world) - before);
}

#[test]
fn answers_to_no_open_question_change_nothing() {
    let mut world = world(Config::default());
    world.run_until(Time::from_secs(5));
    let Message::Pong(answered) = world.sent().iter().rfind(|sent| sent.from == B).unwrap().message else {
        panic!("B only answers");
    };
    let strays = [(B, answered), (B, 0), (B, u64::MAX), (C, answered)];
    let (core, said) = (world.core(A).clone(), world.story().to_owned());
    for (from, number) in strays {
        world.tell(A, Input::Message { from, message: Message::Pong(number) });
        assert_eq!(*world.core(A), core, "Pong({number}) from {from}");
    }
    assert_eq!(world.story(), said);
}

#[test]
fn answers_to_an_earlier_watch_or_life_change_nothing() {
    let mut world = world(Config::default());
    world.run_until(Time::from_millis(20));
    world.command(A, unwatch(B, 1));
    world.command(A, watch(B, 1));
    let core = world.core(A).clone();
    world.tell(A, Input::Message { from: B, message: Message::Pong(1) });
    assert_eq!(*world.core(A), core);

    world.run_until(Time::from_millis(40));
    world.crash(A);
    world.restart(A);
    world.command(A, watch(B, 1));
    let core = world.core(A).clone();
    world.tell(A, Input::Message { from: B, message: Message::Pong(20_001) });
    assert_eq!(*world.core(A), core);
    world.tell(A, Input::Message { from: B, message: Message::Pong(40_001) });
    assert_ne!(*world.core(A), core);
}

#[test]
fn whatever_a_node_says_spares_it_the_pings() {
    let mut world = world(Config::default());
    for _ in 0..60 {
        world.run_for(Span::from_secs(1));
        world.speak(A, |core, ctx| core.heard(B, ctx));
    }

    assert_eq!(pings(&world), 1);
    assert!(world.reports().is_empty());
}

#[test]
fn whatever_a_suspected_node_says_brings_it_back() {
    let mut world = world(Config::default());
    world.network(|_| vec![]);
    world.run_until(Time::from_secs(20));
    world.speak(A, |core, ctx| core.heard(B, ctx));
    world.speak(A, |core, ctx| core.heard(B, ctx));

    let events: Vec<_> = world.reports().iter().map(|(_, _, event)| event.clone()).collect();
    let suspected = Event::Suspected { node: B, silent_for: world.reports()[0].0.since(Time::ZERO) };
    assert_eq!(events, [suspected, Event::Back { node: B, away_for: Span::from_secs(20) }]);
}

#[test]
fn nodes_that_watch_each_other_share_their_pings() {
    let mut alone: World<Guard> = World::new(2, Config::default(), ms(1));
    alone.command(A, watch(B, 1));
    alone.run_until(Time::from_secs(120));
    let mut mutual: World<Guard> = World::new(2, Config::default(), ms(1));
    mutual.command(A, watch(B, 1));
    mutual.command(B, watch(A, 1));
    mutual.run_until(Time::from_secs(120));

    // What they do not share are the pings that cross on the way.
    let (alone, mutual) = (pings(&alone), pings(&mutual));
    assert!(mutual <= alone * 11 / 10, "{mutual} pings for both against {alone} for one");
}

#[test]
fn watch_past_a_limit_is_refused_and_reported() {
    let mut world = world(Config { nodes_max: 2, reasons_max: 3, ..Config::default() });
    for command in [watch(C, 1), watch(NodeId(4), 1), watch(B, 2), watch(B, 2), watch(B, 3)] {
        world.command(A, command);
    }
    let refused: Vec<_> = world.reports().iter().map(|(_, _, event)| event.clone()).collect();
    let expected = [
        Event::Refused { node: NodeId(4), reason: 1, limit: Limit::Nodes },
        Event::Refused { node: B, reason: 3, limit: Limit::Reasons },
    ];
    assert_eq!(refused, expected);
    assert_eq!(world.core(A).watched().collect::<Vec<_>>(), [B, C]);
}

#[test]
fn refused_reason_takes_nothing_from_another() {
    let mut world = world(Config { nodes_max: 1, reasons_max: 1, ..Config::default() });
    world.command(A, watch(C, 7));
    world.command(A, unwatch(B, 1));
    world.command(A, watch(C, 8));
    world.command(A, unwatch(C, 7));

    assert_eq!(world.core(A).reasons(C).collect::<Vec<_>>(), [&8]);
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

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
