//! Sets of a fixed size by a genetic algorithm: many sets, of which the better have children that mix theirs.
//!
//! After a published algorithm for subsets of a fixed size (kofnGA), since the paper of the recipe `proactive` says no
//! more than "a genetic algorithm". The same chance gives the same set.

use rand::Rng;
use serde::{Deserialize, Serialize};
use shoal_model::criterion::Cost;

use super::problem::Problem;
use crate::protocol::Chance;

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
    #[error("tournament = {0}: must be 1 to the population")]
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
        if self.tournament == 0 || self.tournament > self.population {
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
    let mut mixer = Mixer::new(problem.len(), config.mutation);
    let parents = Parents::new(config);
    let mut members: Vec<Member> = seeds
        .into_iter()
        .take(population)
        .map(|genes| Member { cost: problem.cost(&genes), genes })
        .collect();
    while members.len() < population {
        let mut genes = Vec::with_capacity(count);
        mixer.random(count, &mut genes, chance);
        members.push(Member { cost: problem.cost(&genes), genes });
    }
    members.sort_by_key(|member| member.cost);
    let mut stale = 0;
    // With nothing to leave out there is one set only.
    let generations = if problem.len() == count { 0 } else { config.generations };
    let mut children: Vec<Member> = Vec::with_capacity(population);
    // What sets of former generations were kept in.
    let mut empty: Vec<Vec<u32>> = Vec::with_capacity(population);
    for _ in 0..generations {
        let before = members[0].cost;
        for _ in 0..population {
            let (one, other) = (parents.draw(chance), parents.draw(chance));
            let mut genes = empty.pop().unwrap_or_default();
            mixer.cross(&members[one].genes, &members[other].genes, &mut genes, chance);
            mixer.mutate(&mut genes, chance);
            children.push(Member { cost: problem.cost(&genes), genes });
        }
        children.sort_by_key(|member| member.cost);
        // The best of the old in place of the worst of the new.
        let elite = usize::from(config.elite);
        let gone = children.drain(population - elite..).chain(members.drain(elite..));
        empty.extend(gone.map(|member| member.genes));
        members.append(&mut children);
        members.sort_by_key(|member| member.cost);
        stale = if members[0].cost < before { 0 } else { stale + 1 };
        if stale >= config.patience {
            break;
        }
    }
    members.swap_remove(0)
}

/// Draws parents. Of some sets that are drawn at random and meet, each becomes one with a probability in proportion to its
/// rank, the best with the largest: all in all, a set's chance falls by the same amount from each place to the next.
///
/// Of `t` that meet, one at place `x` of `p` has on average `(t - 1)(2x + 1) / 2p` better ones (sets at the same place count
/// half), and weighs `t` less that. So one draw with those weights stands for the whole meeting.
struct Parents {
    /// The weights up to and with each place, in order of costs, times `2p`.
    up_to: Vec<u64>,
}

impl Parents {
    fn new(config: &Config) -> Parents {
        let (all, meet) = (u64::from(config.population), u64::from(config.tournament));
        let mut sum = 0;
        let up_to = (0..all).map(|place| {
            sum += 2 * all * meet - (meet - 1) * (2 * place + 1);
            sum
        });
        Parents { up_to: up_to.collect() }
    }

    fn draw(&self, chance: &mut Chance) -> usize {
        let sum = self.up_to.last().copied().unwrap_or_default();
        let drawn = ((u128::from(chance.next_u64()) * u128::from(sum)) >> 64) as u64;
        self.up_to.partition_point(|&up_to| up_to <= drawn)
    }
}

/// A number below a bound, each as likely as another to within one part in four thousand million.
fn below(bound: u32, chance: &mut Chance) -> u32 {
    ((u64::from(chance.next_u32()) * u64::from(bound)) >> 32) as u32
}

/// Makes sets, and tells members from others by marks that need no clearing.
struct Mixer {
    marks: Vec<u32>,
    mark: u32,
    gaps: Gaps,
}

impl Mixer {
    fn new(candidates: usize, per_ten_thousand: u16) -> Mixer {
        Mixer { marks: vec![0; candidates], mark: 0, gaps: Gaps::new(per_ten_thousand) }
    }

    /// Marks who is in a set, and nobody else.
    fn mark(&mut self, set: &[u32]) {
        self.mark += 1;
        for &place in set {
            self.marks[place as usize] = self.mark;
        }
    }

    fn add(&mut self, place: u32) -> bool {
        let mark = &mut self.marks[place as usize];
        std::mem::replace(mark, self.mark) != self.mark
    }

    fn random(&mut self, count: usize, set: &mut Vec<u32>, chance: &mut Chance) {
        set.clear();
        set.extend(0..self.marks.len() as u32);
        thin(set, count, chance);
    }

    /// So many of both, without regard to which they come from.
    fn cross(&mut self, one: &[u32], other: &[u32], child: &mut Vec<u32>, chance: &mut Chance) {
        self.mark(one);
        child.clear();
        child.extend_from_slice(one);
        child.resize(one.len() + other.len(), 0);
        // Who is in both is written too, and the next one over it: a branch would have to guess who that is.
        let mut all = one.len();
        for &place in other {
            child[all] = place;
            all += usize::from(self.marks[place as usize] != self.mark);
        }
        child.truncate(all);
        thin(child, one.len(), chance);
    }

    /// Each member jumps to a candidate that is none, once in a while.
    fn mutate(&mut self, genes: &mut [u32], chance: &mut Chance) {
        let mut at = self.gaps.draw(genes.len(), chance);
        if at >= genes.len() {
            return;
        }
        self.mark(genes);
        while at < genes.len() {
            let other = below(self.marks.len() as u32, chance);
            // A draw that hits a member changes nothing; the sets are far smaller than what there is.
            if self.add(other) {
                self.marks[genes[at] as usize] = 0;
                genes[at] = other;
            }
            at += 1 + self.gaps.draw(genes.len(), chance);
        }
    }
}

/// Leaves so many, each as likely as another: by drawing the fewer of those who stay and those who go. Sets grow alike, and
/// soon few have to go.
fn thin(set: &mut Vec<u32>, count: usize, chance: &mut Chance) {
    let spare = set.len() - count;
    if spare <= count {
        for _ in 0..spare {
            let out = below(set.len() as u32, chance);
            set.swap_remove(out as usize);
        }
        return;
    }
    for stays in 0..count {
        let other = stays + below((set.len() - stays) as u32, chance) as usize;
        set.swap(stays, other);
    }
    set.truncate(count);
}

/// How many members stay as they are before one changes: one draw for a whole stretch of them instead of one for each.
struct Gaps {
    /// For each length of a stretch, how likely it is that a member changes within it or right after, of 2^32.
    within: Vec<u32>,
}

impl Gaps {
    /// Stretches beyond this come in parts.
    const LENGTH_MAX: usize = 512;

    fn new(per_ten_thousand: u16) -> Gaps {
        let mut all_stay: u64 = 1 << 32;
        let within = (0..Gaps::LENGTH_MAX).map(|_| {
            all_stay = all_stay * (10_000 - u64::from(per_ten_thousand)) / 10_000;
            u32::try_from((1_u64 << 32) - all_stay).unwrap_or(u32::MAX)
        });
        Gaps { within: within.collect() }
    }

    /// The length of the next stretch, exact if it is below `room`.
    fn draw(&self, room: usize, chance: &mut Chance) -> usize {
        let mut gap = 0;
        while gap < room {
            let drawn = chance.next_u32();
            let length = self.within.partition_point(|&within| within <= drawn);
            gap += length;
            if length < self.within.len() {
                break;
            }
        }
        gap
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// How often things come up in many draws, of ten thousand.
    fn shares(draws: u32, size: usize, mut draw: impl FnMut(&mut Chance, &mut dyn FnMut(usize))) -> Vec<u32> {
        let mut chance = Chance::seed_from_u64(1);
        let mut counts = vec![0_u32; size];
        for _ in 0..draws {
            draw(&mut chance, &mut |found| counts[found] += 1);
        }
        counts.into_iter().map(|count| (u64::from(count) * 10_000 / u64::from(draws)) as u32).collect()
    }

    #[test]
    fn members_change_as_often_as_they_are_told_to_wherever_they_stand() {
        for often in [0, 100, 2_500, 10_000] {
            let gaps = Gaps::new(often);
            let changed = shares(100_000, 40, |chance, count| {
                let mut at = gaps.draw(40, chance);
                while at < 40 {
                    count(at);
                    at += 1 + gaps.draw(40, chance);
                }
            });
            let off = changed.iter().map(|share| share.abs_diff(u32::from(often))).max();
            assert!(off.is_some_and(|off| off <= 60), "{often} of ten thousand: {changed:?}");
        }
    }

    #[test]
    fn whoever_is_thinned_out_all_are_as_likely_to_stay() {
        for count in [3, 10, 17] {
            let stay = shares(100_000, 20, |chance, seen| {
                let mut set: Vec<u32> = (0..20).collect();
                thin(&mut set, count, chance);
                assert_eq!(set.len(), count);
                set.iter().for_each(|&place| seen(place as usize));
            });
            let off = stay.iter().map(|share| share.abs_diff(count as u32 * 500)).max();
            assert!(off.is_some_and(|off| off <= 60), "{count} of 20: {stay:?}");
        }
    }

    /// The meeting as it is told: draw who meets, put them in order, and draw one by rank.
    fn met(config: &Config, chance: &mut Chance) -> usize {
        let mut places: Vec<u32> =
            (0..config.tournament).map(|_| below(u32::from(config.population), chance)).collect();
        places.sort_unstable();
        let ranks: Vec<usize> =
            (0..places.len()).flat_map(|rank| std::iter::repeat_n(rank, places.len() - rank)).collect();
        places[ranks[below(ranks.len() as u32, chance) as usize]] as usize
    }

    #[test]
    fn one_draw_of_a_parent_stands_for_a_whole_meeting() {
        for (population, tournament) in [(10, 4), (20, 20), (5, 1)] {
            let config = Config { population, tournament, ..Config::default() };
            let parents = Parents::new(&config);
            let drawn = shares(100_000, population.into(), |chance, seen| seen(parents.draw(chance)));
            let meant = shares(100_000, population.into(), |chance, seen| seen(met(&config, chance)));
            let off = drawn.iter().zip(&meant).map(|(one, other)| one.abs_diff(*other)).max();
            assert!(off.is_some_and(|off| off <= 80), "{drawn:?} instead of {meant:?}");
        }
    }
}
