//! One choice of a set, by the paper's values and by those for real use, beside the bare cost of looking at sets; and what a
//! second core could save of it beside what a thread costs.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use shoal_model::calendar::{Calendar, Capacity};
use shoal_model::{Coordinates, Resources, Span, Speed, Time};
use shoal_protocols::Chance;
use shoal_protocols::choose::best::best;
use shoal_protocols::choose::genetic::Config;
use shoal_protocols::choose::problem::{Candidate, Problem, Wanted};

fn choices(bench: &mut Criterion) {
    let resources = Resources::cores(1);
    let calendar = Calendar::new(Capacity::constant(resources.clone()).expect("one core"));
    let mut chance = Chance::seed_from_u64(1);
    let mut part = || chance.random_range(0..100_000);
    let points: Vec<Coordinates> = (0..256).map(|_| Coordinates::in_plane(part(), part())).collect();
    let candidates: Vec<Candidate<'_>> = points
        .iter()
        .map(|&coordinates| Candidate {
            coordinates,
            speed: Speed::BASELINE,
            price: 0,
            organisation: 0,
            labels: &[],
            timeline: calendar.timeline(),
        })
        .collect();
    let criterion: shoal_model::Criterion = "closest".parse().expect("a criterion");
    let wanted = Wanted {
        count: 128,
        criterion: &criterion,
        resources: &resources,
        from: Time::ZERO,
        span: Span::from_hours(1),
        run: Span::from_hours(1),
        now: Time::ZERO,
        here: points[0],
        places: &[],
        labels: &[],
    };
    let problem = Problem::new(wanted, &candidates);
    let set: Vec<u32> = (0..128).collect();
    bench.bench_function("the cost of a set of 128", |bench| bench.iter(|| problem.cost(black_box(&set))));
    // All that a generation could have done elsewhere, and what it costs to have a half of that done elsewhere.
    let generation = u32::from(Config::real().population);
    bench.bench_function("the costs of a generation of real use", |bench| {
        bench.iter(|| (0..generation).map(|_| problem.cost(black_box(&set)).value).sum::<i128>());
    });
    #[expect(clippy::disallowed_methods, reason = "a thread is what is measured")]
    bench.bench_function("a thread begun and ended", |bench| {
        bench.iter(|| std::thread::scope(|scope| scope.spawn(|| black_box(1)).join()));
    });
    let cost = |config: &Config| {
        let choice = best(&problem, config, &mut Chance::seed_from_u64(7)).expect("all of them are free");
        choice.cost.value as f64
    };
    let (paper, real) = (cost(&Config::default()), cost(&Config::real()));
    let mut group = bench.benchmark_group("128 of 256, closest");
    group.sample_size(10);
    // A quick choice is worth what its set costs.
    let quality = format!("real, a set of {:.2} times the cost", real / paper);
    for (name, config) in [("paper", Config::default()), (quality.as_str(), Config::real())] {
        group.bench_function(name, |bench| {
            bench.iter(|| best(&problem, &config, &mut Chance::seed_from_u64(7)));
        });
    }
    group.finish();
}

criterion_group!(benches, choices);
criterion_main!(benches);
