//! Every job ends exactly once, or fails with its reason, under loss, doubling, reordering and crashes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use shoal_model::{Envelope, Job, Machine, Nonce, Resources, Span, Time};
use shoal_protocols::node::config::{self, Recipe};
use shoal_protocols::node::{End, Event, Node};
use shoal_protocols::overlay::blatant_s;
use shoal_protocols::queue::Policy;
use shoal_protocols::scheduling::aria;
use shoal_simulator::checks::storm::{run_seed, storm};
use shoal_simulator::checks::{Bounds, Checks, Run, run_checked};
use shoal_simulator::faults::{self, Churn, NoiseLevel};
use shoal_simulator::grid::{Config, Grid, Start};
use shoal_simulator::network::{self, latency};
use shoal_simulator::processes::command_taking;
use shoal_simulator::world::Saw;

fn real() -> Recipe {
    Recipe::named("aria").expect("a recipe")
}

fn replay(seed: u64) -> String {
    format!("shoal sim storm --recipe aria --from {seed} --seeds 1")
}

#[test]
fn promises_hold_in_storms() {
    let tally = storm::<Node>(4_000..4_060, 2, real(), replay);
    let told: Vec<String> = tally.violations.values().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(tally.summary.starts > 100, "these were no storms: {:?}", tally.summary);
}

#[test]
fn promises_hold_whatever_the_order_of_the_queue() {
    for (number, policy) in (0..).zip(Policy::ALL) {
        let recipe = Recipe::Aria(aria::Config { queue: aria::Order::Each(policy), ..aria::Config::real() });
        for seed in 5_000 + number * 10..5_005 + number * 10 {
            if let Err(violation) = run_seed::<Node>(seed, recipe, replay(seed)) {
                panic!("{policy}: {violation}");
            }
        }
    }
}

/// A grid that loses, doubles and holds back messages, in which a fifth of the nodes crash, over the first minutes.
fn grid(seed: u64, loss: f64, duplication: f64, crashes: bool, over_ants: bool) -> (Grid<Node>, Vec<Time>) {
    let nodes = 20;
    let noise = NoiseLevel { loss, duplication, reorder: 0.2, reorder_ms: 3_000.0 };
    // Each node crashes within these five minutes with a chance of one in five.
    let churn = Churn {
        mean_time_to_failure_s: 1_350.0,
        mean_time_to_repair_s: 40.0,
        gone: 0.0,
        disk_lost: 0.0,
        midway: 0.5,
    };
    let faults = faults::Config {
        from_s: Some(60.0),
        until_s: Some(360.0),
        noise: Some(noise),
        churn: crashes.then_some(churn),
        ..faults::Config::default()
    };
    let recipe = aria::Config {
        inform_period_ms: 10_000,
        threshold_ms: 1_000,
        threshold_percent: 0,
        ..aria::Config::real()
    };
    let overlay = if over_ants {
        blatant_s::Config::default().into()
    } else {
        shoal_protocols::overlay::Config::default()
    };
    let latency = latency::Config::Uniform(latency::Uniform { min_ms: 5.0, max_ms: 60.0 });
    let config = Config {
        seed,
        nodes,
        network: network::Config::calm(latency),
        faults,
        fsync: Span::from_millis(2),
        overlay,
        start: Start::Join,
        work: config::Work {
            machine: Machine::with_capacity(Resources::cores(1)),
            recipe: Recipe::Aria(recipe),
            commit: Default::default(),
            heartbeat: Default::default(),
            limit_default: Span::from_mins(5),
            eager: true,
            gate: Default::default(),
        },
        machines: vec![Machine::with_capacity(Resources::cores(1))],
        threads: 1,
        watch: true,
        story: false,
    };
    let mut grid = Grid::build(config).expect("the faults make sense");
    let mut at = Vec::new();
    for number in 0u8..40 {
        let when = Time::from_secs(60 + 5 * u64::from(number));
        let job = Job {
            limit: Some(Span::from_mins(2)),
            ..command_taking(Span::from_secs(20 + u64::from(number)))
        };
        let envelope = Envelope::new(job, Nonce([number; 16])).expect("the job makes sense");
        grid.submit(when, shoal_model::NodeId(1 + u64::from(number) % 7), envelope);
        at.push(when);
    }
    (grid, at)
}

fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::with_cases(count);
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { rng_seed, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn each_job_ends_once_or_fails_with_its_reason(
        seed in 0u64..1_000_000,
        loss in 0.0f64..0.2,
        duplication in 0.0f64..0.3,
        crashes in any::<bool>(),
        over_ants in any::<bool>(),
    ) {
        let (mut grid, jobs) = grid(seed, loss, duplication, crashes, over_ants);
        let bounds = Bounds::default();
        let until = grid.healed_from() + bounds.progress;
        let replay = format!("seed {seed}");
        let run = Run { seed, replay, step: Span::from_secs(1), bounds, until, stop_at_rest: true };
        let summary = run_checked(&mut grid, Checks::all(), &run);
        prop_assert!(summary.is_ok(), "{}", summary.unwrap_err());
        let summary = summary.unwrap();
        if !crashes {
            prop_assert_eq!(summary.jobs as usize, jobs.len());
        }
    }
}

#[test]
fn job_that_no_node_can_run_fails_with_its_reason() {
    let (mut grid, _) = grid(1, 0.0, 0.0, false, true);
    let job = Job { resources: Resources::cores(64), ..command_taking(Span::from_secs(1)) };
    let envelope = Envelope::new(job, Nonce([200; 16])).expect("the job makes sense");
    let job = grid.submit(Time::from_secs(400), shoal_model::NodeId(3), envelope);
    let world = grid.world();
    world.run_before(Time::from_secs(900));
    let told: Vec<Event> = world
        .sights()
        .into_iter()
        .filter_map(|sight| match sight.saw {
            Saw::Event(event) => Some(event),
            _ => None,
        })
        .collect();
    assert!(told.contains(&Event::Ended(job, End::NoPlace)));
    let reason = told.iter().rev().find_map(|event| match event {
        Event::Waiting(other, why) if *other == job => Some(why.to_string()),
        _ => None,
    });
    let expected = "it was asked for in 10 rounds, and no node that will do has offered to take it";
    assert_eq!(reason.as_deref(), Some(expected));
}

#[test]
fn job_whose_deadline_has_passed_is_not_taken_up() {
    let (mut grid, _) = grid(2, 0.0, 0.0, false, false);
    let job = Job { deadline: Some(Time::from_secs(399)), ..command_taking(Span::from_secs(1)) };
    let envelope = Envelope::new(job, Nonce([200; 16])).expect("the job makes sense");
    let job = grid.submit(Time::from_secs(400), shoal_model::NodeId(3), envelope);
    grid.world().run_before(Time::from_secs(410));
    let ended =
        |saw: &Saw<Node>| matches!(saw, Saw::Event(Event::Ended(other, End::Expired)) if *other == job);
    assert!(grid.world().sights().iter().any(|sight| ended(&sight.saw)));
}
