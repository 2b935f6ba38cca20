//! What a whole network keeps to, whichever its latency model.

use super::*;
use crate::network::partition::{Direction, Group};
use crate::network::quantity::Factor;
use crate::streams::{Purpose, Stream, stream};
use crate::timetable::Spell;

fn config(toml: &str) -> Config {
    toml::from_str(toml).unwrap()
}

fn network(toml: &str) -> Network {
    Network::build(&config(toml), 100, 1).unwrap()
}

fn chance() -> Stream {
    stream(1, Purpose::Carriage, 0)
}

const UNIFORM: &str = "latency = { model = 'uniform', min_ms = 10, max_ms = 200 }\n";
const CONSTANT: &str = "latency = { model = 'constant', delay_ms = 25 }\n";
const CLUSTERED: &str =
    "latency = { model = 'clustered', sites = 9, side_ms = 80, spread_ms = 2, jitter = 0.2 }\n";

fn fates(network: &Network, count: usize) -> Vec<Carried> {
    let mut chance = chance();
    (0..count).map(|i| network.carry(Time::ZERO, i % 100, (i * 7 + 1) % 100, &mut chance)).collect()
}

fn share(fates: &[Carried], wanted: impl Fn(&Carried) -> bool) -> f64 {
    fates.iter().filter(|fate| wanted(fate)).count() as f64 / fates.len() as f64
}

#[test]
fn uniform_delays_fill_their_range_evenly() {
    let mut delays: Vec<u64> = fates(&network(UNIFORM), 100_000)
        .iter()
        .flat_map(|fate| fate.delays())
        .map(Span::as_micros)
        .collect();
    delays.sort_unstable();
    assert!(delays[0] >= 10_000 && delays[99_999] <= 200_000);
    for (percent, expected) in [(1, 11_900), (25, 57_500), (50, 105_000), (75, 152_500), (99, 198_100)] {
        let delay = delays[percent * 1_000];
        assert!(delay.abs_diff(expected) < 1_000, "{percent} %: {delay} instead of {expected}");
    }
}

#[test]
fn loss_and_duplication_come_as_often_as_configured() {
    let fates = fates(&network(&format!("{UNIFORM}loss = 0.1\nduplication = 0.05\n")), 100_000);
    let lost = share(&fates, |fate| *fate == Carried::Lost);
    let twice = share(&fates, |fate| matches!(fate, Carried::Twice(..)));
    assert!((lost - 0.1).abs() < 0.003, "{lost} lost");
    assert!((twice - 0.9 * 0.05).abs() < 0.002, "{twice} twice");
}

#[test]
fn the_copies_of_a_message_have_delays_of_their_own() {
    let fates = fates(&network(&format!("{UNIFORM}duplication = 1.0\n")), 1_000);
    assert_eq!(share(&fates, |fate| matches!(fate, Carried::Twice(first, second) if first != second)), 1.0);
}

#[test]
fn held_back_messages_let_later_ones_overtake() {
    let fates = fates(&network(&format!("{CONSTANT}reorder = 0.2\nreorder_ms = 50\n")), 100_000);
    let late = share(&fates, |fate| fate.delays().any(|delay| delay > Span::from_millis(25)));
    assert!((late - 0.2).abs() < 0.005, "{late} held back");
    let most = fates.iter().flat_map(|fate| fate.delays()).max().unwrap();
    assert!(Span::from_millis(74) < most && most <= Span::from_millis(75));
}

#[test]
fn storm_adds_its_noise_while_it_lasts() {
    let loss = |probability| Noise { loss: Odds::parse("loss", probability).unwrap(), ..Noise::default() };
    let network = network(CONSTANT).with_storm(Time::from_secs(10), Time::from_secs(20), loss(1.0));
    let lost = |secs| network.carry(Time::from_secs(secs), 0, 1, &mut chance()) == Carried::Lost;
    assert_eq!([lost(9), lost(10), lost(19), lost(20)], [false, true, true, false]);
    assert_eq!(network.calm_from(), Time::from_secs(20));
}

#[test]
fn cuts_of_the_scenario_and_of_the_faults_both_hold() {
    let network = network(&format!(
        "{CONSTANT}[[partitions]]\nname = 'a'\nfrom_s = 10\nuntil_s = 20\ngroup = {{ nodes = [0] }}\n"
    ));
    let more = Cut {
        name: "b".into(),
        from: Time::from_secs(10),
        until: Time::from_secs(30),
        side: Group::Nodes(vec![1]).build("group", 100, 0).unwrap(),
        direction: Direction::Out,
    };
    let network = network.with_cuts([more]);

    let lost = |from, to| network.carry(Time::from_secs(15), from, to, &mut chance()) == Carried::Lost;
    assert!(lost(0, 5) && lost(5, 0) && lost(1, 5));
    assert!(!lost(5, 1) && !lost(5, 6));
    assert_eq!(network.calm_from(), Time::from_secs(30));
}

#[test]
fn slow_node_stretches_what_it_sends_and_is_sent() {
    let slow = |node, factor| Spell {
        node,
        from: Time::ZERO,
        until: Time::from_secs(10),
        value: Factor::parse("factor", factor).unwrap(),
    };
    let network = network(CONSTANT).with_slow(Timetable::new([slow(3, 4.0), slow(4, 2.0)]));
    let fate = |from, to| network.carry(Time::ZERO, from, to, &mut chance());
    assert_eq!(fate(3, 1), Carried::Once(Span::from_millis(100)));
    assert_eq!(fate(1, 3), Carried::Once(Span::from_millis(100)));
    assert_eq!(fate(4, 3), Carried::Once(Span::from_millis(100)));
    assert_eq!(fate(4, 1), Carried::Once(Span::from_millis(50)));
    assert_eq!(fate(1, 2), Carried::Once(Span::from_millis(25)));
}

#[test]
fn nothing_is_quicker_than_the_least_delay() {
    for toml in [UNIFORM, CONSTANT, CLUSTERED] {
        let network = network(&format!("{toml}duplication = 0.1\nreorder = 0.1\nreorder_ms = 5\n"));
        let mut chance = chance();
        let pairs = (0..100).flat_map(|from| (0..100).map(move |to| (from, to)));
        let delays: Vec<Span> = pairs
            .filter(|(from, to)| from != to)
            .flat_map(|(from, to)| {
                network.carry(Time::ZERO, from, to, &mut chance).delays().collect::<Vec<_>>()
            })
            .collect();
        let least = *delays.iter().min().unwrap();
        assert!(least >= network.least_delay(), "{toml}");
        // A bound that is far from what happens would keep threads waiting.
        assert!(least < network.least_delay() + Span::from_millis(1), "{toml}");
    }
}

#[test]
fn the_same_seed_gives_the_same_fates() {
    let toml = format!("{CLUSTERED}loss = 0.1\nduplication = 0.1\n");
    assert_eq!(fates(&network(&toml), 1_000), fates(&network(&toml), 1_000));
    let other = Network::build(&config(&toml), 100, 2).unwrap();
    assert_ne!(fates(&network(&toml), 1_000), fates(&other, 1_000));
}

#[test]
fn constant_network_without_noise_draws_nothing() {
    let mut used = chance();
    assert_eq!(network(CONSTANT).carry(Time::ZERO, 0, 1, &mut used), Carried::Once(Span::from_millis(25)));
    assert_eq!(used, chance());
}

#[test]
fn unknown_keys_and_models_are_refused_by_name() {
    let refused = |toml: &str| toml::from_str::<Config>(toml).unwrap_err().to_string();
    assert!(refused(&format!("{UNIFORM}los = 0.1\n")).contains("unknown field `los`"));
    let error = refused("latency = { model = 'uniform', min_ms = 1, max_ms = 2, mean_ms = 3 }");
    assert!(error.contains("unknown field `mean_ms`"), "{error}");
    let error = refused("latency = { model = 'euclid' }");
    let known = "expected one of `constant`, `uniform`, `coordinates`, `clustered`, `matrix`";
    assert!(error.contains("`euclid`") && error.contains(known), "{error}");
}

#[test]
fn nonsense_is_refused_by_field() {
    let cases = [
        (
            "latency = { model = 'uniform', min_ms = 20, max_ms = 10 }".to_owned(),
            "network.latency.max_ms: must be at least min_ms, which is 20, not 10",
        ),
        (
            "latency = { model = 'constant', delay_ms = -1 }".to_owned(),
            "network.latency.delay_ms: must be from 0 to 3600000 milliseconds, not -1",
        ),
        (
            CLUSTERED.replace("jitter = 0.2", "jitter = 11"),
            "network.latency.jitter: must be a part of the delay from 0 to 10, not 11",
        ),
        (format!("{CONSTANT}loss = 1.1\n"), "network.loss: must be a probability from 0 to 1, not 1.1"),
        (
            format!("{CONSTANT}reorder = 0.1\n"),
            "network.reorder_ms: goes with `reorder`: set both, or neither",
        ),
    ];
    for (toml, error) in cases {
        assert_eq!(Network::build(&config(&toml), 10, 1).unwrap_err().to_string(), error);
    }
}
