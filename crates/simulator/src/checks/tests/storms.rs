//! Honest nodes in many storms.

use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;

use crate::checks::storm::{Weather, run_seed, run_weather, storm};

fn sample() -> Recipe {
    Recipe::Sample(Default::default())
}

fn replay(seed: u64) -> String {
    format!("shoal sim storm --from {seed} --seeds 1")
}

#[test]
fn honest_nodes_keep_their_promises_in_a_hundred_storms() {
    let tally = storm::<Node>(2_000..2_100, 2, sample(), replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(
        tally.summary.jobs > 500 && tally.summary.crashes > 100,
        "these were no storms: {:?}",
        tally.summary
    );
}

#[test]
fn promises_hold_with_the_other_recipe_too() {
    let asap = Recipe::named("asap").expect("a recipe");
    let tally = storm::<Node>(3_000..3_040, 2, asap, replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(tally.summary.starts > 200, "these were no storms: {:?}", tally.summary);
}

/// The storm of this seed once broke a promise.
fn holds(seed: u64) {
    if let Err(violation) = run_weather::<Node>(Weather::draw_plain(seed), replay(seed)) {
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

#[test]
fn seed_8438_ranks_stop_when_a_node_has_lost_its_disk_and_with_it_its_task() {
    holds(8438);
}

#[test]
fn seed_6491_owner_that_is_down_does_not_have_to_say_why_a_job_waits() {
    let asap = Recipe::named("asap").expect("a recipe");
    if let Err(violation) = run_weather::<Node>(Weather::draw_plain(6491).with_recipe(asap), replay(6491)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_7794_start_that_a_slow_disk_held_up_may_come_after_the_faults() {
    let asap = Recipe::named("asap").expect("a recipe");
    if let Err(violation) = run_weather::<Node>(Weather::draw_plain(7_794).with_recipe(asap), replay(7_794)) {
        panic!("{violation}");
    }
}

/// The same with all that jobs may wish for.
fn holds_with_wishes(seed: u64) {
    if let Err(violation) = run_weather::<Node>(Weather::draw(seed), replay(seed)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_1295_who_got_off_one_train_and_rides_in_another_is_found_again_there() {
    holds_with_wishes(1_295);
}

#[test]
fn seed_2726_who_had_a_place_of_its_own_before_a_restart_rides_with_nobody_after_it() {
    holds_with_wishes(2_726);
}

#[test]
fn seed_11838_who_gets_off_while_its_array_is_held_is_held_too() {
    holds_with_wishes(11_838);
}

#[test]
fn seed_50710_who_rides_with_one_that_was_to_have_a_better_place_has_run_in_the_one_it_had() {
    let weather = Weather::draw(50_710).at_its_worst();
    if let Err(violation) = run_weather::<Node>(weather, replay(50_710)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_52_job_after_one_that_has_ended_is_placed_once() {
    holds_with_wishes(52);
}

#[test]
fn seed_1895_job_after_one_that_has_ended_is_placed_once() {
    holds_with_wishes(1_895);
}

#[test]
fn seed_4877_owner_that_lost_its_disk_is_not_promised_another_time_by_an_old_name() {
    holds_with_wishes(4_877);
}

#[test]
fn seed_6659_once_job_that_was_told_to_start_early_has_run_whatever_its_plan_says() {
    holds_with_wishes(6_659);
}

#[test]
fn seed_7288_job_whose_node_is_lost_when_it_is_placed_goes_on_looking() {
    holds_with_wishes(7_288);
}

#[test]
fn seed_170393_gang_is_planned_as_much_later_as_clocks_are_apart() {
    let asap = Recipe::named("asap").expect("a recipe");
    if let Err(violation) = run_seed::<Node>(170_393, asap, replay(170_393)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_102801_question_that_a_slow_node_reads_late_brings_back_a_hold_that_was_dropped() {
    let asap = Recipe::named("asap").expect("a recipe");
    if let Err(violation) = run_seed::<Node>(102_801, asap, replay(102_801)) {
        panic!("{violation}");
    }
}

/// The same with criteria.
fn holds_with_criteria(seed: u64) {
    let recipe = Recipe::named("proactive").expect("a recipe");
    if let Err(violation) = run_seed::<Node>(seed, recipe, replay(seed)) {
        panic!("{violation}");
    }
}

#[test]
fn seed_1930_old_node_that_is_not_heard_does_not_keep_new_ones_waiting() {
    holds_with_criteria(1_930);
}

#[test]
fn seed_3900_once_job_that_a_node_has_not_let_go_of_says_so() {
    holds_with_criteria(3_900);
}

#[test]
fn seed_2740_hold_that_a_doubled_word_brought_back_may_outlive_the_faults() {
    let recipe = Recipe::named("asap").expect("a recipe");
    if let Err(violation) = run_seed::<Node>(2_740, recipe, replay(2_740)) {
        panic!("{violation}");
    }
}
