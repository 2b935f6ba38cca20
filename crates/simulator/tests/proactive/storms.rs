//! Promises hold in storms, whatever users find best.

use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::scheduling::proactive::{Config, Variant};
use shoal_simulator::checks::storm::{run_seed, storm};

fn replay(seed: u64) -> String {
    format!("shoal sim storm --recipe proactive --from {seed} --seeds 1")
}

#[test]
fn promises_hold_in_storms() {
    let recipe = Recipe::named("proactive").expect("a recipe");
    let tally = storm::<Node>(6_000..6_040, 2, recipe, replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(tally.summary.starts > 100, "these were no storms: {:?}", tally.summary);
}

#[test]
fn promises_hold_with_either_variant_and_many_iterations_at_once() {
    for (seed, variant) in [(6_100, Variant::Basic), (6_200, Variant::Proactive)] {
        let config = Config { variant, at_once: 4, gain_per_mille: 0, ..Config::real() };
        for seed in seed..seed + 8 {
            if let Err(violation) = run_seed::<Node>(seed, Recipe::Proactive(config), replay(seed)) {
                panic!("{variant:?}: {violation}");
            }
        }
    }
}
