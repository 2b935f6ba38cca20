//! Honest nodes in many storms.

use shoal_protocols::node::Node;

use crate::checks::storm::{Weather, storm};

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
