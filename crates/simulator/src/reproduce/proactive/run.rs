//! A grid with nothing else to do, and queries for the closest nodes, all at once.

use shoal_model::{Job, JobId, Machine, NodeId, Resources, Span, Time};
use shoal_protocols::node::Node;
use shoal_protocols::overlay::helpers::Kind;
use shoal_protocols::scheduling::proactive::Variant;

use super::case::{Manner, Seen};
use super::plan::Plan;
use super::stage::{SETTLE, course, envelope};
use crate::grid::Grid;
use crate::reproduce::Error;

/// How long the queries take at most.
const QUERY: Span = Span::from_secs(900);
/// When the first of their jobs begins, and how far apart they are: none is in another's way.
const BEGIN: Time = Time::from_secs(7_200);
const APART: Span = Span::from_hours(2);
/// How often it is looked where queries are, where the time that they take is of interest.
const LOOK: Span = Span::from_millis(100);
/// How long the last commit takes at most.
const COMMIT: Span = Span::from_secs(10);

/// What an overlay of one metric says.
const OVERLAY: [&str; 2] = ["vicinity_ask", "vicinity_tell"];
const SEARCH: [&str; 2] = ["ask_candidate", "tell_candidate"];
const COMMITS: [&str; 12] = [
    "prepare",
    "vote",
    "commit",
    "committed",
    "refuse",
    "dropped",
    "confirm",
    "confirmed",
    "abort",
    "release",
    "released",
    "ask",
];

/// How many iterations, and in which manner.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub iterations: u8,
    pub manner: Manner,
}

impl Plan {
    /// Has all queries asked at once, and watches them to their end.
    pub fn at_once(
        &self,
        (nodes, wanted): (u32, u32),
        (variant, alpha): (Variant, u8),
        pace: Option<Pace>,
        replay: String,
        so_far: &dyn Fn(f64),
    ) -> Result<Seen, Error> {
        let mut recipe = self.recipe(variant, alpha, &[Kind::Coordinates]);
        if let Some(Pace { iterations, manner }) = pace {
            recipe.iterations = iterations;
            recipe.at_once = match manner {
                Manner::InTurn => 1,
                Manner::AtOnce => iterations,
            };
        }
        let machines = vec![Machine::with_capacity(Resources::cores(1))];
        let mut watched = self.grid(nodes, recipe, machines, replay)?;
        watched.run_before(SETTLE - Span::from_secs(100))?;
        so_far(0.2);
        let before = sent(&watched.grid, &OVERLAY).1;
        watched.run_before(SETTLE)?;
        let bytes = (sent(&watched.grid, &OVERLAY).1 - before) as f64 / 10.0 / f64::from(nodes);
        let (searched, committed) = (sent(&watched.grid, &SEARCH).0, sent(&watched.grid, &COMMITS).0);
        let queries = self.ask(&mut watched.grid, nodes, wanted);
        let end = SETTLE + QUERY;
        let each = usize::from(recipe.iterations);
        let step = if pace.is_some() { LOOK } else { Span::from_secs(10) };
        let mut seconds: Vec<Option<f64>> = vec![None; queries.len()];
        // Queries end one by one; once all have, what is left is gossip.
        let mut at = SETTLE;
        loop {
            at += step;
            watched.run_before(at)?;
            let done: Vec<usize> = queries.iter().map(|query| course(&watched.grid, query).len()).collect();
            for (took, _) in seconds.iter_mut().zip(&done).filter(|(_, done)| **done >= each) {
                took.get_or_insert(at.since(SETTLE).as_secs_f64());
            }
            let whole = queries.len() * each;
            let done: usize = done.iter().sum();
            so_far(0.3 + 0.7 * done as f64 / whole as f64);
            if done == whole || at >= end {
                break;
            }
        }
        let courses = queries.iter().map(|query| course(&watched.grid, query)).collect();
        if pace.is_some() {
            watched.run_before(at + COMMIT)?;
        }
        watched.end()?;
        let grid = &watched.grid;
        let per_query = |messages: u64| messages as f64 / queries.len() as f64;
        let messages =
            (per_query(sent(grid, &SEARCH).0 - searched), per_query(sent(grid, &COMMITS).0 - committed));
        let seconds = seconds.into_iter().flatten().collect();
        Ok(Seen { courses, bytes, messages, seconds, inputs: grid.look().handled(), ..Seen::default() })
    }

    fn ask(&self, grid: &mut Grid<Node>, nodes: u32, wanted: u32) -> Vec<(NodeId, JobId)> {
        (0..self.queries)
            .map(|query| {
                let (entry, _) = self.entry(query, nodes);
                let job = Job {
                    nodes: wanted.try_into().expect("jobs have nodes"),
                    criterion: Some("closest".parse().expect("a criterion")),
                    limit: Some(Span::from_hours(1)),
                    begin: Some(BEGIN + APART * u64::from(query)),
                    ..Job::command(["true"])
                };
                (entry, grid.submit(SETTLE, entry, envelope(job, query)))
            })
            .collect()
    }
}

/// Messages and bytes of these kinds that were sent so far.
fn sent(grid: &Grid<Node>, kinds: &[&str]) -> (u64, u64) {
    let traffic = grid.look().traffic();
    let all = kinds.iter().filter_map(|kind| traffic.get(kind));
    all.fold((0, 0), |(messages, bytes), one| (messages + one.messages, bytes + one.bytes))
}
