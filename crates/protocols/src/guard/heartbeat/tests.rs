//! Claims of the heartbeat, told as conversations; what holds under any luck, and after a sleep, stands apart.

mod laws;
mod sleep;

use shoal_model::{NodeId, Span, Time};

use super::{Command, Config, Event, Heartbeat, Limit, Message, PINGS_MAX};
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
    assert_eq!(world.core(A).watches[&B].open.len(), PINGS_MAX, "older pings are forgotten");
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
fn stranger_is_given_the_longest_timeout() {
    let mut world: World<Guard> = World::new(2, Config::default(), ms(950));
    world.command(A, watch(B, 1));
    world.run_until(Time::from_secs(60));

    assert!(world.reports().is_empty(), "{}", world.story());
}

#[test]
fn nobody_is_watched_where_watching_is_off() {
    let mut world = world(Config { watch: false, ..Config::default() });
    world.crash(B);
    world.run_until(Time::from_secs(600));
    assert_eq!((world.sent().len(), world.reports().len()), (0, 0));
}
