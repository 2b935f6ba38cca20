//! The best set by the user's criterion: exactly where that is quick, else by the genetic algorithm.

use shoal_model::calendar::Against;
use shoal_model::criterion::Measure;

use super::earliest::earliest;
use super::genetic::{self, Config};
use super::problem::{Choice, Problem};
use crate::protocol::Chance;

/// Candidates around which first sets are drawn.
const ANCHORS: usize = 16;
/// How often a set is pulled together at most; it settles within a few.
const PULLS_MAX: usize = 32;

/// The best set that is found; none if there are too few candidates, or they are never free together.
pub fn best(problem: &Problem<'_>, config: &Config, chance: &mut Chance) -> Option<Choice> {
    let wanted = &problem.wanted;
    if wanted.count == 0 || problem.len() < wanted.count {
        return None;
    }
    if wanted.criterion.only() == Some(&Measure::Wait) {
        return soonest(problem);
    }
    let seeds = if config.refine { seeds(problem) } else { Vec::new() };
    let mut found = genetic::best(problem, config, seeds, chance);
    if config.refine {
        found.genes = pulled(problem, found.genes);
    }
    problem.choice(found.genes)
}

/// The earliest common start, exactly.
pub fn soonest(problem: &Problem<'_>) -> Option<Choice> {
    let wanted = &problem.wanted;
    let lines: Vec<_> = problem.candidates.iter().map(|candidate| candidate.timeline).collect();
    let slot = earliest(&lines, wanted.count, wanted.from, wanted.span, wanted.resources, Against::Firm)?;
    problem.choice(slot.chosen.into_iter().map(|place| place as u32).collect())
}

/// Replaces a set by the candidates nearest to its middle, as long as that costs less.
pub fn pulled(problem: &Problem<'_>, mut set: Vec<u32>) -> Vec<u32> {
    let mut cost = problem.cost(&set);
    for _ in 0..PULLS_MAX {
        let nearer = problem.nearest(&problem.centroid(&set), set.len());
        let less = problem.cost(&nearer);
        if less >= cost {
            break;
        }
        (set, cost) = (nearer, less);
    }
    set
}

/// Sets to begin with: around candidates all over the list, pulled together; those that start first; and around the
/// places that the criterion names.
fn seeds(problem: &Problem<'_>) -> Vec<Vec<u32>> {
    let wanted = &problem.wanted;
    let step = problem.len().div_ceil(ANCHORS);
    let anchors = problem.candidates.iter().step_by(step).map(|candidate| candidate.coordinates);
    let mut sets: Vec<Vec<u32>> =
        anchors.map(|point| pulled(problem, problem.nearest(&point, wanted.count))).collect();
    sets.extend(soonest(problem).map(|choice| choice.chosen));
    let places = wanted.places.iter().map(|(_, place)| *place).chain([wanted.here]);
    sets.extend(places.map(|point| problem.nearest(&point, wanted.count)));
    sets
}

/// Sets that [`exact`] looks at, at most.
pub const SETS_MAX: u64 = 1_000_000;

/// The best of all sets, by looking at each; none if there are more than [`SETS_MAX`]. For comparison.
pub fn exact(problem: &Problem<'_>) -> Option<Choice> {
    let (all, count) = (problem.len() as u64, problem.wanted.count as u64);
    let mut sets: u64 = 1;
    for taken in 0..count {
        sets = sets.checked_mul(all.checked_sub(taken)?)? / (taken + 1);
        if sets > SETS_MAX {
            return None;
        }
    }
    let mut set: Vec<u32> = (0..count as u32).collect();
    let mut best: Option<(shoal_model::criterion::Cost, Vec<u32>)> = None;
    loop {
        let cost = problem.cost(&set);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, set.clone()));
        }
        // The next set in order: the last member that can move on does, and the rest follow behind it.
        let Some(moving) =
            (0..set.len()).rfind(|&place| u64::from(set[place]) < all - (count - place as u64))
        else {
            break;
        };
        let from = set[moving] + 1;
        for (behind, member) in set[moving..].iter_mut().enumerate() {
            *member = from + behind as u32;
        }
    }
    problem.choice(best?.1)
}

#[cfg(test)]
mod tests;
