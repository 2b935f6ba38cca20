//! Honest nodes in many storms.

use shoal_protocols::node::Node;

use crate::checks::storm::{Weather, run_seed, storm};

fn replay(seed: u64) -> String {
    format!("SHOAL_SEED={seed} cargo test -p shoal-simulator -- --ignored one_seed --nocapture")
}

/// The storm of the seed in `SHOAL_SEED`, or of a range such as `0..1000`.
#[test]
#[ignore = "for a look at single seeds"]
fn one_seed() {
    let text = std::env::var("SHOAL_SEED").unwrap_or_default();
    let (first, last) = text.split_once("..").unwrap_or((&text, ""));
    let first: u64 = first.parse().expect("SHOAL_SEED is a number, or two with .. between");
    let last: u64 = last.parse().unwrap_or(first + 1);
    let tally = storm::<Node>(first..last, 2, replay);
    for violation in tally.violations.values() {
        println!("{violation}");
    }
    println!("{} runs, {} violations: {:?}", tally.runs, tally.violations.len(), tally.summary);
    assert!(tally.violations.is_empty());
}

/// What is seen in the storm of `SHOAL_SEED` of all that names `SHOAL_WORD`, such as a job or a node.
#[test]
#[ignore = "for a look at single seeds"]
fn story() {
    let seed = std::env::var("SHOAL_SEED").expect("SHOAL_SEED is a number").parse().expect("a number");
    let word = std::env::var("SHOAL_WORD").unwrap_or_default();
    let (mut grid, run) = Weather::draw(seed).with_story().build::<Node>(String::new());
    println!("healed from {}", grid.healed_from());
    grid.world().run_before(run.until);
    for sight in grid.world().sights() {
        let line = format!("{} {} {:?}", sight.at, sight.node, sight.saw);
        if line.contains(&word) && !line.contains("Overlay") && !line.contains("Heartbeat") {
            println!("{line}");
        }
    }
    for node in grid.look().nodes() {
        let known: Vec<_> = grid.look().core(node).overlay().neighbours().collect();
        println!("{node} is {} and knows {known:?}", if grid.look().is_up(node) { "up" } else { "down" });
    }
}

/// The storm of this seed once broke a promise.
fn holds(seed: u64) {
    if let Err(violation) = run_seed::<Node>(seed, replay(seed)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_0_once_job_is_not_placed_again_while_a_node_may_start_it() {
    holds(0);
}

#[test]
fn seed_22_once_job_is_lost_when_a_rank_may_have_started_by_another_clock() {
    holds(22);
}

#[test]
fn seed_11_nodes_of_a_place_that_was_refused_are_no_longer_watched() {
    holds(11);
}

#[test]
fn seed_98_exits_of_a_place_that_was_refused_are_erased() {
    holds(98);
}

#[test]
fn seed_753_clock_ahead_of_the_owners_does_not_refuse_forever() {
    holds(753);
}

#[test]
fn seed_803_limit_is_kept_by_the_clock_that_reserved_it() {
    holds(803);
}

#[test]
fn seed_1364_task_confirmed_after_its_time_leaves_the_machine_to_the_next() {
    holds(1364);
}
