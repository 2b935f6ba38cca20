//! What an iteration's candidates are good for: the best set of them, and what the set that stands costs.

use shoal_model::{Coordinates, Needs, NodeId, Time};

use super::{Plan, Search};
use crate::choose::best::{best, soonest};
use crate::choose::problem::{Candidate, Choice, Problem, Wanted};
use crate::overlay::helpers::Profile;
use crate::protocol::Ctx;
use crate::scheduling::Stuck;
use crate::scheduling::proactive::Proactive;
use crate::scheduling::proactive::config::Config;
use crate::scheduling::proactive::round::Round;

impl Search {
    /// The best set of an iteration's candidates.
    pub(super) fn choose(
        &self,
        round: &Round,
        config: &Config,
        own: &Profile,
        ctx: &mut Ctx<'_, Proactive>,
    ) -> Result<Plan, Stuck> {
        let Needs { nodes, limit, deadline, .. } = self.needs;
        if round.offers.len() < nodes.get() as usize {
            return Err(round.too_few(nodes.get()));
        }
        let in_time = |choice: &Choice| deadline.is_none_or(|deadline| choice.start + limit <= deadline);
        let choice = self.among(round, config, own, ctx.now, |problem| {
            let choice = best(problem, &config.genetic, ctx.chance).ok_or(Stuck::NeverFree)?;
            // Before it is too late, as soon as possible is best.
            if in_time(&choice) { Ok(choice) } else { soonest(problem).ok_or(Stuck::NeverFree) }
        })?;
        if !in_time(&choice) {
            return Err(Stuck::TooLate { start: choice.start });
        }
        if !choice.cost.is_feasible() {
            return Err(Stuck::Infeasible { asked: round.asked, fit: round.offers.len() as u32 });
        }
        let nodes = choice.chosen.iter().map(|&place| round.offers[place as usize].node).collect();
        Ok(Plan { cost: choice.cost, start: choice.start, nodes })
    }

    /// Finds out what the placement that stands costs, if all its nodes have answered: as if it started as soon as it
    /// could, so that nothing counts as better that is not.
    pub(super) fn price(&mut self, round: &Round, config: &Config, own: &Profile, now: Time) {
        let Some(placed) = &self.placed else { return };
        let place_of = |node: &NodeId| round.offers.iter().position(|found| found.node == *node);
        let set: Option<Vec<u32>> =
            placed.nodes.iter().map(|node| place_of(node).map(|place| place as u32)).collect();
        let Some(set) = set else { return };
        let cost = self.among(round, config, own, now, |problem| problem.cost(&set));
        if let Some(placed) = &mut self.placed {
            placed.cost = cost;
            self.unpriced = false;
        }
    }

    /// Puts a question about the candidates of an iteration.
    fn among<T>(
        &self,
        round: &Round,
        config: &Config,
        own: &Profile,
        now: Time,
        ask: impl FnOnce(&Problem<'_>) -> T,
    ) -> T {
        let Needs { nodes, limit, begin, estimate, ref resources, .. } = self.needs;
        let candidates: Vec<Candidate<'_>> = round
            .offers
            .iter()
            .map(|found| Candidate {
                coordinates: found.profile.coordinates,
                speed: found.offer.speed,
                price: found.offer.price,
                organisation: found.profile.organisation,
                labels: &found.offer.labels,
                timeline: found.offer.calendar.timeline(),
            })
            .collect();
        let places: Vec<(NodeId, Coordinates)> =
            self.places.iter().filter_map(|&(node, place)| Some((node, place?))).collect();
        let wanted = Wanted {
            count: nodes.get() as usize,
            criterion: &self.criterion,
            resources,
            from: (now + self.ahead + self.lead(config)).max(begin.unwrap_or_default()),
            span: limit,
            run: estimate.unwrap_or(limit),
            now: self.began,
            here: own.coordinates,
            places: &places,
            labels: &self.labels,
        };
        ask(&Problem::new(wanted, &candidates))
    }
}
