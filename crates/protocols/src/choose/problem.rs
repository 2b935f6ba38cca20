//! The choice of a set: candidates, what is known of each, and what a set of them costs.

use std::cell::OnceCell;

use shoal_model::calendar::{Against, Timeline, Window};
use shoal_model::coordinates::{self, Coordinates};
use shoal_model::criterion::{Cost, Criterion, Facts, Fixed, Measure, ONE, fixed};
use shoal_model::{Name, NodeId, Resources, Span, Speed, Time};

/// Gaps of a candidate that are looked at: a job that fits into none of them waits for the end of all.
const WINDOWS_MAX: usize = 64;

/// What is known of a candidate.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Where it is.
    pub coordinates: Coordinates,
    /// How fast it works.
    pub speed: Speed,
    /// What it asks for, in thousandths.
    pub price: u32,
    /// A number for its organisation.
    pub organisation: u32,
    /// A number for the value of each label that the criterion names, in order.
    pub labels: &'a [u32],
    /// When it is free.
    pub timeline: &'a Timeline<Resources>,
}

/// What is wanted of them.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// How many.
    pub count: usize,
    /// What is best.
    pub criterion: &'a Criterion,
    /// How much of each.
    pub resources: &'a Resources,
    /// From when on a start is possible.
    pub from: Time,
    /// For how long each is needed: the hard limit.
    pub span: Span,
    /// How long it is thought to take on the baseline machine.
    pub run: Span,
    /// From when on the wait is counted.
    pub now: Time,
    /// Where the node is that took the job, and where others are that the criterion names.
    pub here: Coordinates,
    /// See `here`.
    pub places: &'a [(NodeId, Coordinates)],
    /// The labels that the criterion names.
    pub labels: &'a [Name],
}

/// A choice to make.
pub struct Problem<'a> {
    pub(super) wanted: Wanted<'a>,
    pub(super) candidates: &'a [Candidate<'a>],
    points: Vec<Coordinates>,
    windows: Vec<Vec<Window>>,
    /// Whether the cost of a set depends on its start, or on whether it has one.
    by_start: bool,
}

/// A set of candidates, and when they start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// By their places in the list, in order.
    pub chosen: Vec<u32>,
    /// When.
    pub start: Time,
    /// What that costs.
    pub cost: Cost,
}

impl<'a> Problem<'a> {
    /// A choice among these.
    pub fn new(wanted: Wanted<'a>, candidates: &'a [Candidate<'a>]) -> Problem<'a> {
        let Wanted { from, span, resources, .. } = wanted;
        let windows: Vec<Vec<Window>> = candidates
            .iter()
            .map(|candidate| {
                let windows = candidate.timeline.fit_windows(from, span, resources, Against::Firm);
                windows.take(WINDOWS_MAX).collect()
            })
            .collect();
        let endless = |windows: &Vec<Window>| windows.last().is_some_and(|window| window.last.is_none());
        let by_start = wanted.criterion.needs_start() || !windows.iter().all(endless);
        let points = candidates.iter().map(|candidate| candidate.coordinates).collect();
        Problem { wanted, candidates, points, windows, by_start }
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// What a set costs.
    pub fn cost(&self, set: &[u32]) -> Cost {
        let facts = SetFacts { problem: self, set, start: OnceCell::new() };
        if self.by_start && facts.start().is_none() {
            return Cost::IMPOSSIBLE;
        }
        self.wanted.criterion.cost(&facts)
    }

    /// The set as a choice, if it can start at all.
    pub fn choice(&self, mut chosen: Vec<u32>) -> Option<Choice> {
        chosen.sort_unstable();
        let start = self.start(&chosen)?;
        let cost = self.cost(&chosen);
        Some(Choice { chosen, start, cost })
    }

    /// The earliest time at which all of a set are free.
    pub fn start(&self, set: &[u32]) -> Option<Time> {
        let mut start = self.wanted.from;
        let mut agreed = 0;
        // Round and round, until all of them have agreed to the same time; each change moves on by a gap at least.
        let mut place = 0;
        while agreed < set.len() {
            let windows = &self.windows[set[place] as usize];
            let gap = windows.partition_point(|window| window.last.is_some_and(|last| last < start));
            let first = windows.get(gap)?.first;
            if first > start {
                start = first;
                agreed = 1;
            } else {
                agreed += 1;
            }
            place = (place + 1) % set.len();
        }
        Some(start)
    }

    /// The point in the middle of a set.
    pub fn centroid(&self, set: &[u32]) -> Coordinates {
        coordinates::centroid(set.iter().map(|&place| &self.points[place as usize]))
    }

    /// So many candidates nearest to a point, in no order.
    pub fn nearest(&self, point: &Coordinates, count: usize) -> Vec<u32> {
        let mut ranked: Vec<(u64, u32)> =
            self.points.iter().zip(0..).map(|(other, place)| (point.distance(other), place)).collect();
        if count > 0 && count < ranked.len() {
            ranked.select_nth_unstable(count - 1);
        }
        ranked.into_iter().take(count).map(|(_, place)| place).collect()
    }

    /// How far a set is from a point, in sum.
    fn sum_to(&self, set: &[u32], point: &Coordinates) -> u64 {
        set.iter().map(|&place| point.distance(&self.points[place as usize])).sum()
    }
}

/// What is known of a set.
struct SetFacts<'p, 'a> {
    problem: &'p Problem<'a>,
    set: &'p [u32],
    start: OnceCell<Option<Time>>,
}

impl SetFacts<'_, '_> {
    fn start(&self) -> Option<Time> {
        *self.start.get_or_init(|| self.problem.start(self.set))
    }

    fn of_each(&self) -> impl Iterator<Item = &Candidate<'_>> {
        self.set.iter().map(|&place| &self.problem.candidates[place as usize])
    }

    fn different(&self, of: impl Fn(&Candidate<'_>) -> u32) -> Fixed {
        let mut found: Vec<u32> = self.of_each().map(of).collect();
        found.sort_unstable();
        found.dedup();
        found.len() as Fixed * ONE
    }
}

impl Facts for SetFacts<'_, '_> {
    fn measure(&self, measure: &Measure) -> Option<Fixed> {
        let Wanted { now, span, run, here, places, labels, .. } = &self.problem.wanted;
        let ticks = |ticks: u64| Fixed::from(ticks) * 100;
        Some(match measure {
            Measure::Wait => fixed(self.start()?.since(*now)),
            Measure::Finish => fixed((self.start()? + *span).since(*now)),
            Measure::Closest | Measure::Spread => {
                ticks(self.problem.sum_to(self.set, &self.problem.centroid(self.set)))
            }
            Measure::Near(None) => ticks(self.problem.sum_to(self.set, here)),
            Measure::Near(Some(node)) => {
                let (_, place) = places.iter().find(|(other, _)| other == node)?;
                ticks(self.problem.sum_to(self.set, place))
            }
            Measure::Domains(None) => self.different(|candidate| candidate.organisation),
            Measure::Domains(Some(label)) => {
                let place = labels.iter().position(|other| other == label)?;
                self.different(|candidate| candidate.labels.get(place).copied().unwrap_or(0))
            }
            Measure::Fastest => fixed(self.of_each().map(|candidate| candidate.speed).min()?.time_for(*run)),
            Measure::Cheapest => {
                self.of_each().map(|candidate| Fixed::from(candidate.price)).sum::<Fixed>() * (ONE / 1_000)
            }
        })
    }
}
