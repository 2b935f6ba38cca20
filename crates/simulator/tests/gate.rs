//! Hosts that deny some users' jobs, from the start or from some time on, in storms under every recipe.

use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_simulator::checks::storm::{Weather, run_weather};
use shoal_simulator::checks::{Checks, run_checked};

/// The weather of a seed with owners that deny some.
fn weather(recipe: Recipe, seed: u64) -> Weather {
    Weather::draw_owned(seed).with_recipe(recipe)
}

fn holds(name: &str, seeds: std::ops::Range<u64>) {
    let recipe = Recipe::named(name).expect("a recipe");
    let (mut starts, mut denied) = (0, 0);
    for seed in seeds {
        let weather = weather(recipe, seed);
        denied += u64::from(weather.denies());
        match run_weather::<Node>(weather, format!("the weather {seed} of this test with {name}")) {
            Ok(summary) => starts += summary.starts,
            Err(violation) => panic!("{name}: {violation}"),
        }
    }
    assert!(starts > 50 && denied > 5, "these were no such storms: {starts} starts, {denied} with denials");
}

#[test]
fn nothing_starts_where_its_owner_denies_it_with_sample() {
    holds("sample", 7_000..7_060);
}

#[test]
fn nothing_starts_where_its_owner_denies_it_with_asap() {
    holds("asap", 7_000..7_060);
}

#[test]
fn nothing_starts_where_its_owner_denies_it_with_aria() {
    holds("aria", 7_000..7_060);
}

#[test]
fn nothing_starts_where_its_owner_denies_it_with_tri_pronged() {
    holds("tri-pronged", 7_000..7_060);
}

#[test]
fn nothing_starts_where_its_owner_denies_it_with_proactive() {
    holds("proactive", 7_000..7_060);
}

#[test]
fn checker_finds_nodes_that_do_not_ask_their_gate() {
    let recipe = Recipe::named("sample").expect("a recipe");
    let found = (7_000..7_060).find_map(|seed| {
        let weather = Weather { gate: Default::default(), ..weather(recipe, seed) };
        let (mut grid, run) = weather.build::<Node>(String::new());
        run_checked(&mut grid, Checks::all(), &run).err()
    });
    assert_eq!(found.map(|violation| violation.check), Some("denied"));
}
