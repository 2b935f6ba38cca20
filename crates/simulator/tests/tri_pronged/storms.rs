//! Every job ends exactly once, or fails with its reason, under loss, doubling, reordering and crashes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::scheduling::tri_pronged::{Config, Variant};
use shoal_simulator::checks::storm::{Weather, run_seed, storm, storm_of};
use shoal_simulator::checks::{Bounds, Checks, Run, run_checked};
use shoal_simulator::faults::{self, Churn, NoiseLevel};
use shoal_simulator::grid::Grid;

use crate::scene::{grid, job, machine};

fn replay(seed: u64) -> String {
    format!("shoal sim storm --recipe tri-pronged --from {seed} --seeds 1")
}

#[test]
fn promises_hold_in_storms() {
    let recipe = Recipe::named("tri-pronged").expect("a recipe");
    let tally = storm::<Node>(4_000..4_060, 2, recipe, replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(tally.summary.starts > 100, "these were no storms: {:?}", tally.summary);
}

#[test]
fn promises_hold_where_a_fifth_of_all_messages_is_lost_and_nodes_crash() {
    let recipe = Recipe::named("tri-pronged").expect("a recipe");
    let weather = |seed| Weather::draw_for(seed, recipe).at_its_worst();
    let replay = |seed| format!("{} --worst", replay(seed));
    let tally = storm_of::<Node>(6_000..6_040, 2, weather, replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(
        tally.summary.starts > 400 && tally.summary.crashes > 100,
        "these were no storms: {:?}",
        tally.summary
    );
}

#[test]
fn promises_hold_with_every_variant() {
    for (number, variant) in (0..).zip(Variant::ALL) {
        let recipe = Recipe::TriPronged(Config { variant, ..Config::real() });
        for seed in 5_000 + number * 10..5_005 + number * 10 {
            if let Err(violation) = run_seed::<Node>(seed, recipe, replay(seed)) {
                panic!("{}: {violation}", variant.name());
            }
        }
    }
}

pub fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::with_cases(count);
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { rng_seed, failure_persistence: None, ..default }
}

/// Five minutes of noise, in which each node also crashes with a chance of one in five, if any does.
pub fn bad_minutes(noise: NoiseLevel, crashes: bool) -> faults::Config {
    let churn = Churn {
        mean_time_to_failure_s: 1_350.0,
        mean_time_to_repair_s: 40.0,
        gone: 0.0,
        disk_lost: 0.0,
        midway: 0.5,
    };
    faults::Config {
        from_s: Some(60.0),
        until_s: Some(360.0),
        noise: Some(noise),
        churn: crashes.then_some(churn),
        ..faults::Config::default()
    }
}

/// No promise is broken until all is at rest again.
pub fn ends_well(grid: &mut Grid<Node>, seed: u64) -> Result<(), TestCaseError> {
    let bounds = Bounds::default();
    let until = grid.healed_from() + bounds.progress;
    let replay = format!("seed {seed}");
    let run = Run { seed, replay, step: Span::from_secs(1), bounds, until, stop_at_rest: true };
    let summary = run_checked(grid, Checks::all(), &run);
    summary.map(drop).map_err(|violation| TestCaseError::fail(violation.to_string()))
}

proptest! {
    #![proptest_config(cases(12))]

    /// Few cores for many jobs, so that jobs wait and move while messages are lost and nodes crash.
    #[test]
    fn migration_neither_loses_nor_doubles_a_job(
        seed in 0u64..1_000_000,
        loss in 0.0f64..0.2,
        duplication in 0.0f64..0.3,
        crashes in any::<bool>(),
        variant in 2usize..6,
    ) {
        let noise = NoiseLevel { loss, duplication, reorder: 0.2, reorder_ms: 3_000.0 };
        let faults = bad_minutes(noise, crashes);
        let recipe = Config { variant: Variant::ALL[variant], ..Config::real() };
        let mut grid = grid(seed, vec![machine(2); 16], recipe, faults);
        for number in 0..60u16 {
            let at = Time::from_secs(60 + 3 * u64::from(number));
            let node = NodeId(1 + u64::from(number) % 4);
            grid.submit(at, node, job(number, 1 + u32::from(number) % 2, 30 + u64::from(number)));
        }
        ends_well(&mut grid, seed)?;
    }
}
