//! One test per claim of the paper that a small grid can show; sections are those of the specification
//! (Vasilakos, Sacha, Pierre 2010).

use std::collections::BTreeSet;

use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::End;
use shoal_protocols::scheduling::asap::{Audience, Config, Policy};

use super::scene::{MINUTE, POLICIES, Stage, gang, scene};

/// Everybody within so many hops of a node, itself not counted.
fn reach(stage: &mut Stage, node: NodeId, hops: usize) -> u32 {
    let world = stage.grid.world();
    let mut reached = BTreeSet::from([node]);
    for _ in 0..hops {
        let next =
            reached.iter().flat_map(|&near| world.core(near).overlay().neighbours().collect::<Vec<_>>());
        reached = next.chain(reached.iter().copied()).collect();
    }
    reached.len() as u32 - 1
}

/// The most that one of a node's neighbours reaches.
fn most_reached(stage: &mut Stage, entry: NodeId, hops: usize) -> u32 {
    let searchers: Vec<NodeId> = stage.grid.world().core(entry).overlay().neighbours().collect();
    searchers
        .into_iter()
        .map(|searcher| reach(stage, searcher, hops))
        .max()
        .expect("the entry node has neighbours")
}

/// Section 1: all n parts start together, n distinct nodes, none before the submission.
#[test]
fn gangs_start_together_on_distinct_nodes() {
    let mut stage = scene(80, 8, Config::default()).open();
    let job = stage.submit(Time::from_secs(100), 3, gang(30, MINUTE));
    stage.run_until(Time::from_secs(300));
    let placement = &stage.placements()[&job];
    assert_eq!(placement.nodes.iter().collect::<BTreeSet<_>>().len(), 30);
    assert!(placement.start >= Time::from_secs(100));
    assert_eq!(stage.ends()[&job], End::Finished);
    stage.assert_no_double_booking();
}

/// Section 4A1: `fwd` distinct neighbours search at once.
#[test]
fn as_many_neighbours_search_as_the_entry_node_forwards_to() {
    for fwd in [1, 5, 8] {
        let mut stage = scene(80, 8, Config { fwd, ..Config::default() }).open();
        stage.submit(Time::from_secs(100), 3, gang(2, MINUTE));
        stage.run_until(Time::from_secs(110));
        assert_eq!(stage.messages("search"), u64::from(fwd));
        assert_eq!(stage.messages("search_reply"), u64::from(fwd));
    }
}

/// Section 4B2: with current caches a narrow job needs no message but search, answer and commit.
#[test]
fn push_needs_no_message_where_enough_neighbours_are_free() {
    let mut stage = scene(80, 8, Config::default()).open();
    stage.run_until(Time::from_secs(60));
    stage.submit(Time::from_secs(100), 3, gang(8, MINUTE));
    stage.run_until(Time::from_secs(110));
    assert_eq!(stage.messages("cache_request"), 0);
    assert_eq!(stage.messages("schedule_request"), 0);
    assert_eq!(stage.placements().len(), 1);
}

/// Section 4B3: the neighbours' caches are fetched one after the other, only until enough are free.
#[test]
fn search_stops_as_soon_as_enough_are_free() {
    let mut stage = scene(400, 8, Config { fwd: 1, ..Config::default() }).open();
    stage.submit(Time::from_secs(100), 3, gang(9, MINUTE));
    stage.run_until(Time::from_secs(110));
    assert_eq!(stage.messages("cache_request"), 1);
}

/// Sections 4B4 and 9 (12): a job wider than what is within two hops of its searchers fails; one as wide does not.
#[test]
fn two_hops_bound_the_width_of_a_job() {
    for (policy, audience) in POLICIES {
        let recipe = Config { policy, audience, fwd: 4, ..Config::default() };
        let mut stage = scene(60, 4, recipe).open();
        // The graph is drawn when the world runs; all four neighbours search, and the one that reaches most decides.
        stage.run_until(Time::from_secs(60));
        let most = most_reached(&mut stage, NodeId(1), 2);
        let fits = stage.submit(Time::from_secs(100), 1, gang(most, MINUTE));
        let wide = stage.submit(Time::from_secs(400), 1, gang(most + 1, MINUTE));
        stage.run_until(Time::from_secs(1_000));
        let ends = stage.ends();
        assert_eq!(ends.get(&fits), Some(&End::Finished), "{policy:?} {audience:?}: {most} nodes");
        assert_eq!(ends.get(&wide), Some(&End::NoPlace), "{policy:?} {audience:?}: {most} nodes and one");
    }
}

/// Section 4B4: with more hops a search goes on, breadth first, until it knows enough nodes.
#[test]
fn more_hops_reach_wider() {
    for (policy, audience) in POLICIES {
        let reached = |max_hops: u16, hops: usize| {
            let recipe = Config { policy, audience, fwd: 4, max_hops, ..Config::default() };
            let mut stage = scene(60, 4, recipe).open();
            stage.run_until(Time::from_secs(60));
            let most = most_reached(&mut stage, NodeId(1), hops);
            let fits = stage.submit(Time::from_secs(100), 1, gang(most, MINUTE));
            let wide = stage.submit(Time::from_secs(400), 1, gang(most + 1, MINUTE));
            stage.run_until(Time::from_secs(1_000));
            let ends = stage.ends();
            assert_eq!(ends.get(&fits), Some(&End::Finished), "{policy:?} {audience:?}: {most} nodes");
            assert_eq!(ends.get(&wide), Some(&End::NoPlace), "{policy:?} {audience:?}: {most} nodes and one");
            most
        };
        let [two, three, any] = [(2, 2), (3, 3), (0, 60)].map(|(max_hops, hops)| reached(max_hops, hops));
        assert!(two < three && three < any, "{two}, {three}, {any}");
    }
}

/// Section 4B5: where too few are free at once, the job starts at the first slot at which enough are.
#[test]
fn busy_nodes_are_waited_for_and_no_longer() {
    let mut stage = scene(20, 19, Config::default()).open();
    // Two generations: ten nodes until minute 7, nine until minute 12.
    let first = stage.submit(Time::from_secs(61), 1, gang(10, MINUTE * 5));
    stage.run_until(Time::from_secs(90));
    let second = stage.submit(Time::from_secs(90), 1, gang(9, MINUTE * 10));
    stage.run_until(Time::from_secs(100));
    let third = stage.submit(Time::from_secs(100), 1, gang(11, MINUTE));
    stage.run_until(Time::from_secs(150));
    let placements = stage.placements();
    assert_eq!(placements[&first].start, Time::from_secs(120));
    assert_eq!(placements[&second].start, Time::from_secs(120));
    // A searcher does not count itself: at most 19 candidates, of which at least 9 are busy until minute 7.
    assert_eq!(placements[&third].start, Time::from_secs(420));
}

/// Section 4B5: a hole that is long enough before a later reservation is used.
#[test]
fn holes_in_the_calendars_are_filled() {
    let mut stage = scene(12, 11, Config { include_self: true, ..Config::default() }).open();
    let later = shoal_model::Job { begin: Some(Time::from_secs(1_800)), ..gang(12, MINUTE * 10) };
    let later = stage.submit(Time::from_secs(61), 1, later);
    stage.run_until(Time::from_secs(90));
    let fits = stage.submit(Time::from_secs(91), 2, gang(12, MINUTE * 28));
    stage.run_until(Time::from_secs(110));
    let does_not = stage.submit(Time::from_secs(111), 3, gang(1, MINUTE * 1));
    stage.run_until(Time::from_secs(115));
    let placements = stage.placements();
    assert_eq!(placements[&later].start, Time::from_secs(1_800));
    assert_eq!(placements[&fits].start, Time::from_secs(120));
    assert_eq!(placements[&does_not].start, Time::from_secs(2_400));
}

/// Section 4C: push keeps caches current, so jobs that come one after the other never meet an exception.
#[test]
fn push_and_pull_meet_no_exception_where_jobs_come_one_by_one() {
    for (policy, audience) in &POLICIES[..3] {
        let recipe = Config { policy: *policy, audience: *audience, ..Config::default() };
        let mut stage = scene(50, 10, recipe);
        stage.shuffle_ms = 60_000;
        let mut stage = stage.open();
        for number in 0..60 {
            let width = 1 + (number * 7 % 20) as u32;
            stage.submit(Time::from_secs(60 + 11 * number), 1 + number % 50, gang(width, MINUTE * 10));
        }
        stage.run_until(Time::from_secs(60 + 11 * 60 + 5));
        assert_eq!(stage.messages("abort"), 0, "{policy:?} {audience:?}");
        assert_eq!(stage.placements().len(), 60);
    }
}

/// Section 9 (9): push is cheaper than pull, and pull than poll; only poll meets exceptions.
#[test]
fn push_is_cheaper_than_pull_and_pull_than_poll() {
    let cost = |policy, audience| {
        let mut stage = scene(100, 10, Config { policy, audience, ..Config::default() });
        stage.shuffle_ms = 600_000;
        let mut stage = stage.open();
        for number in 0..100 {
            stage.submit(
                Time::from_secs(200 + 200 * number),
                1 + number % 100,
                gang(1 + number as u32 % 5, MINUTE * 20),
            );
        }
        stage.run_until(Time::from_secs(86_400));
        assert_eq!(stage.ends().len(), 100);
        stage.cost()
    };
    let push = cost(Policy::Push, Audience::Told);
    let counted = cost(Policy::Push, Audience::Counted);
    let pull = cost(Policy::Pull, Audience::Told);
    let poll = cost(Policy::Poll, Audience::Told);
    assert!(push < pull && pull < poll, "push {push}, pull {pull}, poll {poll}");
    assert!(counted.abs_diff(push) * 10 < push, "told {push}, counted {counted}");
}

/// Section 9 (11): what push costs grows as the degree.
#[test]
fn push_is_linear_in_the_degree() {
    let cost = |degree: u8| {
        let mut stage = scene(300, degree, Config::default()).open();
        for number in 0..100 {
            stage.submit(Time::from_secs(100 + 60 * number), 1 + number, gang(1 + number as u32 % 7, MINUTE));
        }
        stage.run_until(Time::from_secs(8_000));
        stage.cost() as f64 / f64::from(degree)
    };
    let per_link = [10, 20, 30].map(cost);
    let mean = per_link.iter().sum::<f64>() / 3.0;
    assert!(per_link.iter().all(|cost| (cost / mean - 1.0).abs() < 0.15), "{per_link:?}");
}

/// Section 9 (16): messages per job do not depend on the size of the grid.
#[test]
fn cost_per_job_does_not_grow_with_the_grid() {
    let cost = |nodes: usize| {
        let mut stage = scene(nodes, 8, Config::default()).open();
        for number in 0..60 {
            stage.submit(Time::from_secs(100 + 60 * number), 1 + number, gang(5, MINUTE));
        }
        stage.run_until(Time::from_secs(4_000));
        (stage.cost() + stage.messages("search") + stage.messages("cache_request")) as f64
    };
    let (small, large) = (cost(100), cost(800));
    assert!((large / small - 1.0).abs() < 0.1, "{small} and {large}");
}

/// Section 9 (1, 3): a load below what there is delays nobody; one above it does, and is worked off later.
#[test]
fn delays_set_in_where_more_is_asked_for_than_there_is() {
    let waits = |every: u64| {
        let mut stage = scene(40, 12, Config::default()).open();
        let jobs: Vec<_> = (0..40u64)
            .map(|number| {
                let at = Time::from_secs(60 + every * number);
                (at, stage.submit(at, 1 + number, gang(10, MINUTE * 30)))
            })
            .collect();
        stage.run_until(Time::ZERO + Span::from_hours(48));
        let placements = stage.placements();
        let late = jobs.iter().filter(|(at, job)| placements[job].start.since(*at) > MINUTE * 2).count();
        (late, stage.ends().len())
    };
    // Ten nodes for half an hour each: a quarter of the grid's time if one comes every half hour.
    assert_eq!(waits(1_800), (0, 40));
    let (late, ended) = waits(60);
    assert!(late > 30, "{late}");
    assert_eq!(ended, 40);
}
