//! How far from the optimum each way to choose is, and that chance alone decides nothing.

use rand::{RngExt, SeedableRng};
use shoal_model::calendar::{Booking, Calendar, Capacity, Interval, Key};
use shoal_model::criterion::Criterion;
use shoal_model::{Coordinates, Epoch, JobId, Resources, Span, Speed, Time};

use super::*;
use crate::choose::problem::{Candidate, Wanted};

/// Candidates in the plane, some of them busy for a while.
struct Field {
    calendars: Vec<Calendar<Resources>>,
    points: Vec<Coordinates>,
}

impl Field {
    fn new(candidates: usize, busy: bool, seed: u64) -> Field {
        let mut chance = Chance::seed_from_u64(seed);
        let points = (0..candidates).map(|_| {
            let mut part = || chance.random_range(0..100_000);
            Coordinates::in_plane(part(), part())
        });
        let points = points.collect();
        let calendars = (0..candidates as u64).map(|number| {
            let mut calendar = Calendar::new(Capacity::constant(Resources::cores(1)).unwrap());
            if busy {
                let from = Time::from_secs(chance.random_range(0..600));
                let length = Span::from_secs(chance.random_range(60..3_000));
                let key = Key { job: JobId::from_number(number), epoch: Epoch(1) };
                let interval = Interval::starting(from, length).unwrap();
                calendar.book(key, interval, Resources::cores(1), Booking::Firm, Against::Firm).unwrap();
            }
            calendar
        });
        Field { calendars: calendars.collect(), points }
    }

    fn solve<T>(&self, criterion: &str, count: usize, solve: impl FnOnce(&Problem<'_>) -> T) -> T {
        let criterion: Criterion = criterion.parse().unwrap();
        let resources = Resources::cores(1);
        let candidates: Vec<Candidate<'_>> = (0..self.points.len())
            .map(|place| Candidate {
                coordinates: self.points[place],
                speed: Speed::BASELINE,
                price: place as u32 % 7 * 1_000,
                organisation: place as u32 % 4,
                labels: &[],
                timeline: self.calendars[place].timeline(),
            })
            .collect();
        let wanted = Wanted {
            count,
            criterion: &criterion,
            resources: &resources,
            from: Time::from_secs(10),
            span: Span::from_secs(600),
            run: Span::from_secs(600),
            now: Time::ZERO,
            here: self.points[0],
            places: &[],
            labels: &[],
        };
        solve(&Problem::new(wanted, &candidates))
    }
}

const CRITERIA: [&str; 8] = [
    "closest",
    "spread",
    "near(here)",
    "domains",
    "cheapest",
    "closest subject to wait <= 20m",
    "closest + 0.001 * wait",
    "cheapest subject to domains >= 3 and wait <= 30m",
];

#[test]
fn sets_come_close_to_the_best_of_all() {
    for criterion in CRITERIA {
        let (mut plain, mut refined) = (0.0_f64, 0.0_f64);
        for seed in 0..5 {
            let field = Field::new(16, true, seed);
            field.solve(criterion, 5, |problem| {
                let optimum = exact(problem).unwrap();
                let mut chance = Chance::seed_from_u64(seed);
                let found = best(problem, &Config::default(), &mut chance).unwrap();
                let quick = best(problem, &Config::real(), &mut chance).unwrap();
                assert!(
                    found.cost >= optimum.cost && quick.cost >= optimum.cost,
                    "nothing is better than the best"
                );
                assert_eq!(found.cost.missed, optimum.cost.missed, "{criterion}: bounds come first");
                let off = |choice: &Choice| {
                    let (found, least) = (choice.cost.value as f64, optimum.cost.value as f64);
                    (found - least).abs() / least.abs().max(1.0)
                };
                plain = plain.max(off(&found));
                refined = refined.max(off(&quick));
            });
        }
        assert!(plain < 0.05 && refined < 0.15, "{criterion}: {plain} {refined}");
    }
}

#[test]
fn soonest_is_exact() {
    for seed in 0..20 {
        let field = Field::new(14, true, seed);
        field.solve("soonest", 4, |problem| {
            let found = best(problem, &Config::default(), &mut Chance::seed_from_u64(1)).unwrap();
            assert_eq!(found.cost, exact(problem).unwrap().cost);
        });
    }
}

#[test]
fn the_same_chance_gives_the_same_set() {
    let field = Field::new(64, false, 3);
    let run = |seed| {
        field.solve("closest", 16, |problem| {
            best(problem, &Config::default(), &mut Chance::seed_from_u64(seed))
        })
    };
    assert_eq!(run(1), run(1));
    let found = run(1).unwrap();
    assert!(found.chosen.windows(2).all(|pair| pair[0] < pair[1]), "each once: {:?}", found.chosen);
    assert_eq!(found.chosen.len(), 16);
}

#[test]
fn a_start_is_when_all_are_free_and_too_few_have_none() {
    let field = Field::new(6, true, 9);
    field.solve("closest", 6, |problem| {
        let all: Vec<u32> = (0..6).collect();
        let start = problem.start(&all).unwrap();
        let lines: Vec<_> = problem.candidates.iter().map(|candidate| candidate.timeline).collect();
        let slot = earliest(
            &lines,
            6,
            Time::from_secs(10),
            Span::from_secs(600),
            &Resources::cores(1),
            Against::Firm,
        );
        assert_eq!(start, slot.unwrap().start);
    });
    field.solve("closest", 7, |problem| {
        assert_eq!(best(problem, &Config::default(), &mut Chance::seed_from_u64(1)), None);
    });
}

#[test]
fn refining_beats_chance_on_distance() {
    let field = Field::new(256, false, 4);
    field.solve("closest", 128, |problem| {
        let mut chance = Chance::seed_from_u64(1);
        let plain = best(problem, &Config::default(), &mut chance).unwrap().cost.value;
        let quick = best(problem, &Config::real(), &mut chance).unwrap().cost.value;
        assert!(quick <= plain, "{quick} {plain}");
    });
}
