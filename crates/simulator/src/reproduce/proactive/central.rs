//! The centralised references: all nodes are candidates.

use rand::SeedableRng;
use shoal_model::calendar::{Calendar, Capacity};
use shoal_model::criterion::Criterion;
use shoal_model::{Coordinates, Resources, Span, Speed, Time};
use shoal_protocols::Chance;
use shoal_protocols::choose::best::{best, pulled};
use shoal_protocols::choose::genetic::Config;
use shoal_protocols::choose::problem::{Candidate, Problem, Wanted};

/// What the closest set of so many costs, in milliseconds: by the genetic algorithm over all nodes, and by the better
/// of that and, around every node, those nearest to it, pulled together.
pub fn closest(places: &[Coordinates], count: usize, anchors_every: usize, seed: u64) -> (f64, f64) {
    let resources = Resources::cores(1);
    let calendar = Calendar::new(Capacity::constant(resources.clone()).expect("one core"));
    let candidates: Vec<Candidate<'_>> = places
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
    let criterion: Criterion = "closest".parse().expect("a criterion");
    let wanted = Wanted {
        count,
        criterion: &criterion,
        resources: &resources,
        from: Time::ZERO,
        span: Span::from_hours(1),
        run: Span::from_hours(1),
        now: Time::ZERO,
        here: Coordinates::ORIGIN,
        places: &[],
        labels: &[],
    };
    let problem = Problem::new(wanted, &candidates);
    let mut chance = Chance::seed_from_u64(seed);
    let found = best(&problem, &Config::default(), &mut chance).expect("there are enough nodes");
    let genetic = found.cost.value;
    let around = places
        .iter()
        .step_by(anchors_every)
        .map(|point| problem.cost(&pulled(&problem, problem.nearest(point, count))).value);
    let least = around.min().unwrap_or(genetic).min(genetic);
    (genetic as f64 / 1e6, least as f64 / 1e6)
}
