//! Sets of a fixed size by a genetic algorithm: many sets, of which the better have children that mix theirs.
//!
//! After a published algorithm for subsets of a fixed size (kofnGA), since the paper of the recipe `proactive` says no
//! more than "a genetic algorithm". The same chance gives the same set.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::criterion::Cost;

use super::problem::Problem;
use crate::protocol::Chance;

/// The most sets that can meet.
pub const TOURNAMENT_MAX: u16 = 64;

/// What the algorithm can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Sets of a generation.
    pub population: u16,
    /// Of which so many meet for each parent that is drawn.
    pub tournament: u16,
    /// Best sets of a generation that live on in the next.
    pub elite: u16,
    /// How often in ten thousand a member of a child is another than its parents'.
    pub mutation: u16,
    /// Generations at most.
    pub generations: u16,
    /// Generations without a better set after which it stops.
    pub patience: u16,
    /// Whether the best set is pulled together towards its middle, and the first sets are drawn around some
    /// candidates: quicker and better where distance is all that counts. Off in a reproduction of the paper.
    pub refine: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            population: 200,
            tournament: 20,
            elite: 20,
            mutation: 100,
            generations: 500,
            patience: 50,
            refine: false,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too few sets to mix.
    #[error("population = {0}: must be at least 2")]
    Population(u16),
    /// Nobody meets, or more than there are.
    #[error("tournament = {0}: must be 1 to the population, and at most {TOURNAMENT_MAX}")]
    Tournament(u16),
    /// All live on, and nothing changes.
    #[error("elite = {0}: must be below the population")]
    Elite(u16),
    /// More often than always.
    #[error("mutation = {0}: must be at most 10000 (of ten thousand)")]
    Mutation(u16),
}

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.population < 2 {
            return Err(ConfigError::Population(self.population));
        }
        if self.tournament == 0 || self.tournament > self.population.min(TOURNAMENT_MAX) {
            return Err(ConfigError::Tournament(self.tournament));
        }
        if self.elite >= self.population {
            return Err(ConfigError::Elite(self.elite));
        }
        if self.mutation > 10_000 {
            return Err(ConfigError::Mutation(self.mutation));
        }
        Ok(())
    }

    /// The values for real use: fewer and smaller generations, on sets that begin well.
    pub fn real() -> Config {
        Config {
            population: 60,
            tournament: 8,
            elite: 6,
            generations: 200,
            patience: 20,
            refine: true,
            ..Config::default()
        }
    }
}

/// A set and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub genes: Vec<u32>,
    pub cost: Cost,
}

/// The best set that is found, beginning with `seeds` and random ones. There are at least as many candidates as wanted.
pub(super) fn best(
    problem: &Problem<'_>,
    config: &Config,
    seeds: Vec<Vec<u32>>,
    chance: &mut Chance,
) -> Member {
    let count = problem.wanted.count;
    let population = usize::from(config.population);
    let mut mixer = Mixer { marks: vec![0; problem.len()], mark: 0, pool: Vec::new() };
    let mut members: Vec<Member> = seeds
        .into_iter()
        .take(population)
        .map(|genes| Member { cost: problem.cost(&genes), genes })
        .collect();
    while members.len() < population {
        let genes = mixer.random(problem.len(), count, chance);
        members.push(Member { cost: problem.cost(&genes), genes });
    }
    members.sort_by_key(|member| member.cost);
    let mut stale = 0;
    // With nothing to leave out there is one set only.
    let generations = if problem.len() == count { 0 } else { config.generations };
    let mut children: Vec<Member> = Vec::with_capacity(population);
    for _ in 0..generations {
        let before = members[0].cost;
        children.clear();
        for _ in 0..population {
            let one = parent(config, chance);
            let other = parent(config, chance);
            let mut genes = mixer.cross(&members[one].genes, &members[other].genes, chance);
            mixer.mutate(&mut genes, problem.len(), config.mutation, chance);
            children.push(Member { cost: problem.cost(&genes), genes });
        }
        children.sort_by_key(|member| member.cost);
        // The best of the old in place of the worst of the new.
        let elite = usize::from(config.elite);
        children.truncate(population - elite);
        members.truncate(elite);
        members.append(&mut children);
        members.sort_by_key(|member| member.cost);
        stale = if members[0].cost < before { 0 } else { stale + 1 };
        if stale >= config.patience {
            break;
        }
    }
    members.swap_remove(0)
}

/// Draws a parent: of those that meet, each with a probability in proportion to its rank, the best with the largest.
///
/// Members stand in the order of their costs, so that a smaller place is a better rank.
fn parent(config: &Config, chance: &mut Chance) -> usize {
    let mut places = [0_u16; TOURNAMENT_MAX as usize];
    let places = &mut places[..usize::from(config.tournament.min(TOURNAMENT_MAX))];
    places.fill_with(|| chance.random_range(0..config.population));
    places.sort_unstable();
    let mut drawn = chance.random_range(0..places.len() * (places.len() + 1) / 2);
    let mut weight = places.len();
    let mut place = 0;
    while drawn >= weight {
        drawn -= weight;
        weight -= 1;
        place += 1;
    }
    usize::from(places[place])
}

/// Makes sets, and tells members from others by marks that need no clearing.
struct Mixer {
    marks: Vec<u32>,
    mark: u32,
    pool: Vec<u32>,
}

impl Mixer {
    /// Marks from now on mean another set.
    fn begin(&mut self) {
        self.mark += 1;
        self.pool.clear();
    }

    fn add(&mut self, place: u32) -> bool {
        let mark = &mut self.marks[place as usize];
        std::mem::replace(mark, self.mark) != self.mark
    }

    fn random(&mut self, candidates: usize, count: usize, chance: &mut Chance) -> Vec<u32> {
        self.begin();
        self.pool.extend(0..candidates as u32);
        self.draw(count, chance)
    }

    /// So many of both, without regard to which they come from.
    fn cross(&mut self, one: &[u32], other: &[u32], chance: &mut Chance) -> Vec<u32> {
        self.begin();
        for &place in one.iter().chain(other) {
            if self.add(place) {
                self.pool.push(place);
            }
        }
        self.draw(one.len(), chance)
    }

    fn draw(&mut self, count: usize, chance: &mut Chance) -> Vec<u32> {
        for drawn in 0..count {
            let other = chance.random_range(drawn..self.pool.len());
            self.pool.swap(drawn, other);
        }
        self.pool[..count].to_vec()
    }

    /// Each member jumps to a candidate that is none, once in a while.
    fn mutate(&mut self, genes: &mut [u32], candidates: usize, per_ten_thousand: u16, chance: &mut Chance) {
        if per_ten_thousand == 0 {
            return;
        }
        let mut marked = false;
        for at in 0..genes.len() {
            if chance.random_range(0..10_000) < per_ten_thousand {
                // Many sets stay as they are, and need no marks.
                if !std::mem::replace(&mut marked, true) {
                    self.begin();
                    for &place in genes.iter() {
                        self.add(place);
                    }
                }
                let other = chance.random_range(0..candidates as u32);
                // A draw that hits a member changes nothing; the sets are far smaller than what there is.
                if self.add(other) {
                    self.marks[genes[at] as usize] = 0;
                    genes[at] = other;
                }
            }
        }
    }
}
