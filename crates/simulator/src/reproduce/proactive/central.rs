//! The centralised references: all nodes are candidates.

use rand::SeedableRng;
use shoal_model::calendar::{Against, Calendar, Capacity, Interval, Timeline};
use shoal_model::criterion::{Cost, Criterion};
use shoal_model::{Coordinates, NodeId, Resources, Span, Speed, Time};
use shoal_protocols::Chance;
use shoal_protocols::choose::best::{best, pulled};
use shoal_protocols::choose::genetic::Config;
use shoal_protocols::choose::problem::{Candidate, Problem, Wanted};

use super::aim::{Aim, WAIT_MOST};

/// Up to so many nodes, each is the middle of a set that is tried.
const ANCHORS_MAX: usize = 10_000;
/// Of more nodes, about so many are at first; then all nodes of the best sets.
const ANCHORS_FIRST: usize = 1_000;
const ANCHORED_AGAIN: usize = 20;
/// How far apart the starts are that are tried where waiting is bounded.
const STARTS_APART: Span = Span::from_mins(5);
/// How often the middle of a set is moved at most.
const MOVES_MAX: usize = 32;

/// What the closest set of so many costs, in milliseconds: by the genetic algorithm over all nodes, and by the better
/// of that and, around every node, those nearest to it, pulled together. In a very large grid not every node is tried,
/// but the neighbourhood of the best is tried in full.
pub fn closest(places: &[Coordinates], count: usize, seed: u64) -> (f64, f64) {
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
    let around = |point: &Coordinates| pulled(&problem, problem.nearest(point, count));
    let every = if places.len() > ANCHORS_MAX { places.len() / ANCHORS_FIRST } else { 1 };
    let mut sets: Vec<(Cost, Vec<u32>)> = places
        .iter()
        .step_by(every)
        .map(|point| {
            let mut set = around(point);
            // Equal sets are told by their order.
            set.sort_unstable();
            (problem.cost(&set), set)
        })
        .collect();
    sets.sort();
    let mut least = sets.first().map_or(genetic, |(cost, _)| cost.value.min(genetic));
    if every > 1 {
        sets.dedup();
        let members = sets.iter().take(ANCHORED_AGAIN).flat_map(|(_, set)| set);
        let again = members.map(|&member| problem.cost(&around(&places[member as usize])).value);
        least = again.min().map_or(least, |again| again.min(least));
    }
    (genetic as f64 / 1e6, least as f64 / 1e6)
}

/// A node as somebody knows it who knows everything.
pub struct Host<'a> {
    pub coordinates: Coordinates,
    pub speed: Speed,
    /// In thousandths.
    pub price: u32,
    pub timeline: &'a Timeline<Resources>,
}

/// All nodes, and what is wanted of them.
pub struct Everything<'a> {
    pub hosts: &'a [Host<'a>],
    pub count: usize,
    /// When the query comes.
    pub now: Time,
    /// When the job may begin.
    pub from: Time,
    /// For how long the nodes are wanted.
    pub span: Span,
    /// The node that the set should be near, if near any; and where that is.
    pub to: NodeId,
    pub at: Coordinates,
}

/// What the best set by this aim costs, in thousandths: by the genetic algorithm over all nodes, and by the better of
/// that and, around every node and its middle, those that suit best, as long as moving the middle gains. Infinite if none is found.
pub fn any(everything: &Everything<'_>, aim: Aim, genetic: &Config, seed: u64) -> (f64, f64) {
    let &Everything { hosts, count, now, from, span, to, at } = everything;
    let resources = Resources::cores(1);
    let candidates: Vec<Candidate<'_>> = hosts
        .iter()
        .map(|host| Candidate {
            coordinates: host.coordinates,
            speed: host.speed,
            price: host.price,
            organisation: 0,
            labels: &[],
            timeline: host.timeline,
        })
        .collect();
    let criterion: Criterion = aim.criterion(to).parse().expect("a criterion");
    let places = [(to, at)];
    let wanted = Wanted {
        count,
        criterion: &criterion,
        resources: &resources,
        from,
        span,
        run: span,
        now,
        here: at,
        places: &places,
        labels: &[],
    };
    let problem = Problem::new(wanted, &candidates);
    let mut chance = Chance::seed_from_u64(seed);
    let found = best(&problem, genetic, &mut chance);
    let drawn = found.as_ref().map_or(Cost::IMPOSSIBLE, |choice| choice.cost);
    let mut least = drawn;
    for start in starts(aim, from, now + WAIT_MOST) {
        let interval = start.and_then(|start| Interval::starting(start, span));
        let is_free = |candidate: &Candidate<'_>| {
            interval
                .is_none_or(|interval| candidate.timeline.free_during(interval, &resources, Against::Firm))
        };
        let free: Vec<u32> =
            (0..).zip(&candidates).filter(|(_, one)| is_free(one)).map(|(place, _)| place).collect();
        if free.len() < count {
            continue;
        }
        let suits = |middle: &Coordinates| -> Option<Vec<u32>> {
            let misfit = |&place: &u32| Some((aim.misfit(&candidates[place as usize], middle, &at)?, place));
            let mut ranked: Vec<(i64, u32)> = free.iter().map(misfit).collect::<Option<_>>()?;
            ranked.select_nth_unstable(count - 1);
            Some(ranked[..count].iter().map(|&(_, place)| place).collect())
        };
        let around = hosts.iter().map(|host| host.coordinates);
        let drawn = found.iter().map(|choice| problem.centroid(&choice.chosen));
        for mut middle in around.chain(drawn) {
            let mut reached = Cost::IMPOSSIBLE;
            for _ in 0..MOVES_MAX {
                let Some(set) = suits(&middle) else { break };
                let cost = problem.cost(&set);
                if cost >= reached {
                    break;
                }
                (middle, reached) = (problem.centroid(&set), cost);
            }
            least = least.min(reached);
        }
    }
    let value = |cost: Cost| if cost.is_feasible() { cost.value as f64 / 1e6 } else { f64::INFINITY };
    (value(drawn), value(least))
}

/// The starts at which sets are tried; none where any will do.
fn starts(aim: Aim, first: Time, last: Time) -> Vec<Option<Time>> {
    match aim {
        Aim::Spread | Aim::Near | Aim::Fastest | Aim::Cheapest | Aim::Sum => vec![None],
        // Exact already.
        Aim::Soonest => Vec::new(),
        Aim::Bounded => {
            let starts = (0..).map(|step| first + STARTS_APART * step).take_while(|&start| start <= last);
            starts.map(Some).collect()
        }
    }
}
