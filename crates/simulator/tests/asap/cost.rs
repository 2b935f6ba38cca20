//! Message cost is schedules carried (section 6): each policy's count against one made from outside.

use shoal_model::{Span, Time};
use shoal_protocols::scheduling::asap::{Audience, Config, Policy};

use super::scene::{MINUTE, gang, scene};

fn recipe(policy: Policy, audience: Audience) -> Config {
    Config { policy, audience, ..Config::default() }
}

/// Puts narrow and wide jobs to a grid, one every ten minutes, and returns what push must have cost.
fn push_by_hand(audience: Audience, shuffle_ms: u32) -> (u64, u64) {
    let recipe = recipe(Policy::Push, audience);
    let mut stage = scene(60, 6, recipe);
    stage.shuffle_ms = shuffle_ms;
    let mut stage = stage.open();
    let mut expected = 0;
    for number in 0..12u64 {
        let quiet = Time::ZERO + MINUTE * (10 * number + 1);
        let job = stage.submit(quiet, 1 + number * 5, gang(1 + number as u32 * 2, MINUTE * 15));
        stage.run_until(quiet);
        let before = stage.in_degrees();
        stage.run_until(quiet + Span::from_secs(2));
        // Only where nothing was shuffled meanwhile can an outsider know how many held a node.
        assert_eq!(before, stage.in_degrees(), "job {number}: shuffled while placed, try another seed");
        let placement = &stage.placements()[&job];
        expected += placement.nodes.iter().map(|node| before[node]).sum::<u64>();
    }
    assert_eq!(stage.messages("abort"), 0);
    (stage.cost(), expected)
}

/// `confirm` is also a word of another recipe, which nobody says here.
#[test]
fn words_that_share_their_name_with_others_are_counted() {
    let mut stage = scene(20, 6, recipe(Policy::Push, Audience::Told)).open();
    stage.submit(Time::ZERO + MINUTE, 1, gang(5, MINUTE));
    stage.run_until(Time::ZERO + MINUTE * 2);
    assert!(stage.messages("commit") >= 4);
    assert_eq!(stage.messages("confirm"), stage.messages("commit"));
}

#[test]
fn push_costs_each_holder_of_each_changed_calendar() {
    let (cost, expected) = push_by_hand(Audience::Told, 0);
    assert_eq!(cost, expected);
}

#[test]
fn counting_the_audience_costs_what_telling_it_would() {
    let (cost, expected) = push_by_hand(Audience::Counted, 0);
    assert_eq!(cost, expected);
    let (told, _) = push_by_hand(Audience::Told, 0);
    assert!(
        told.abs_diff(cost) * 5 < told,
        "{told} and {cost}: the same jobs on the same graph, found in another order"
    );
}

#[test]
fn counted_audience_follows_the_shuffles() {
    let (cost, expected) = push_by_hand(Audience::Counted, 3_600_000);
    assert_eq!(cost, expected);
}

#[test]
fn told_audience_follows_the_shuffles() {
    let (cost, expected) = push_by_hand(Audience::Told, 3_600_000);
    assert_eq!(cost, expected);
}

#[test]
fn pull_costs_the_neighbours_of_searchers_and_the_caches_they_ask_for() {
    for (width, hops) in [(3, 0), (20, 1)] {
        let mut stage = scene(200, 8, recipe(Policy::Pull, Audience::Told)).open();
        let job = stage.submit(Time::from_secs(60), 7, gang(width, MINUTE));
        stage.run_until(Time::from_secs(90));
        assert_eq!(stage.placements()[&job].nodes.len(), width as usize);
        let expanded = stage.messages("cache_request");
        let tally = stage.grid.schedules_carried();
        assert!(expanded >= hops * 5, "each of five searchers asked at least {hops}");
        assert_eq!(tally.pulled, 5 * 8 + 8 * expanded);
        assert_eq!(tally.pulled_second, 8 * expanded);
        let counted = Config { pull_counts_second_hop: true, ..stage.recipe };
        assert_eq!(tally.cost(&stage.recipe), 5 * 8 + 8 * expanded);
        assert_eq!(tally.cost(&counted), 5 * 8 + 2 * 8 * expanded);
    }
}

/// Section 6 and claim 17: N · degree · duration / period, exactly, shuffles or not.
#[test]
fn poll_costs_what_is_known_beforehand() {
    for shuffle_ms in [0, 10_000, 600_000] {
        // Large enough that shuffles leave no hole in a cache, as they do where everybody knows everybody.
        let (nodes, degree, period, hours) = (250, 7, 120, 1);
        let mut stage = scene(nodes, degree, recipe(Policy::Poll, Audience::Told));
        stage.shuffle_ms = shuffle_ms;
        let mut stage = stage.open();
        stage.run_until(Time::from_secs(period));
        let before = stage.cost();
        stage.run_until(Time::from_secs(period + hours * 3_600));
        let expected = nodes as u64 * u64::from(degree) * hours * 3_600 / period;
        assert_eq!(stage.cost() - before, expected, "shuffles every {shuffle_ms} ms");
    }
}

#[test]
fn new_cache_entries_are_counted_apart_unless_shuffles_do_not_carry_schedules() {
    for (policy, counted_apart) in [(Policy::Poll, true), (Policy::Push, true), (Policy::Poll, false)] {
        let recipe = Config { shuffle_carries_schedule: counted_apart, ..recipe(policy, Audience::Told) };
        let mut stage = scene(40, 5, recipe);
        stage.shuffle_ms = 60_000;
        let mut stage = stage.open();
        stage.run_until(Time::from_secs(1_800));
        let tally = stage.grid.schedules_carried();
        assert!(tally.entered > 40 * 5, "{tally:?}");
        let carried = tally.polled + tally.pushed;
        assert_eq!(stage.cost(), carried + if counted_apart { 0 } else { tally.entered });
    }
}

#[test]
fn hold_and_unhold_are_sent_and_counted_as_messages() {
    let mut stage = scene(40, 5, Config::default());
    stage.shuffle_ms = 60_000;
    let mut stage = stage.open();
    stage.run_until(Time::from_secs(1_800));
    let tally = stage.grid.schedules_carried();
    assert_eq!(stage.messages("hold"), tally.entered);
    assert!(stage.messages("unhold") >= stage.messages("hold") - 40 * 5);
    assert_eq!(stage.messages("schedule_update"), tally.entered + tally.pushed);
}
