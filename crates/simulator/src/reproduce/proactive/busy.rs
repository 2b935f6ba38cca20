//! A grid of unlike machines whose calendars hold reservations, and queries one after the other.
//!
//! The reservations are those of real jobs: each node takes jobs of its own, one after the other with gaps between, and
//! runs them itself. A query is taken back once it is over, so that the next one finds the calendars as they were.

use rand::RngExt;
use shoal_model::calendar::Reservation;
use shoal_model::{Coordinates, Job, Machine, NodeId, Resources, Span, Speed, Thousandths, Time};
use shoal_protocols::node::Node;
use shoal_protocols::overlay::helpers::Kind;
use shoal_protocols::scheduling::proactive::Variant;

use super::aim::Aim;
use super::case::{Seen, Way};
use super::central::{self, Everything, Host};
use super::plan::Plan;
use super::stage::{ITERATIONS, SETTLE, course, envelope};
use crate::grid::Grid;
use crate::processes::command_taking;
use crate::reproduce::Error;
use crate::streams::{Purpose, stream};

/// When nodes are given jobs of their own, and from when to when these run.
const GIVEN: Time = Time::from_secs(60);
const FROM: Time = Time::from_secs(120);
const HORIZON: Span = Span::from_hours(24);
/// How much of that is left for the last query at least.
const HORIZON_LEFT: Span = Span::from_hours(12);
/// How long such a job takes, in minutes: between these.
const TAKES: (u64, u64) = (30, 240);
/// How long the job of a query takes.
const SPAN: Span = Span::from_mins(30);
/// How long after its query a job may begin: later than the query is over, so that none ends before that by starting.
const AHEAD: Span = Span::from_mins(5);
/// How long a query has, and how long after it the next one comes.
const QUERY: Span = Span::from_secs(70);
const APART: Span = Span::from_secs(90);
/// Speeds and prices of machines, in thousandths: between these.
const UNLIKE: (u32, u32) = (500, 2_000);
/// The numbers of the nodes' own jobs begin behind those of queries.
const OWN: u32 = 1 << 16;

impl Plan {
    /// Has queries asked one after the other; or has somebody choose who knows everything.
    pub fn busy(
        &self,
        (nodes, wanted): (u32, u32),
        (percent, aim): (u8, Aim),
        way: Way,
        replay: String,
        so_far: &dyn Fn(f64),
    ) -> Result<Seen, Error> {
        let (variant, alpha) = way.variant().unwrap_or((Variant::Basic, 1));
        let mut recipe = self.recipe(variant, alpha, &[Kind::Coordinates, Kind::FirstSlot, Kind::Resources]);
        // Nodes run their own jobs: they stand first among the candidates.
        recipe.include_self = true;
        let machines: Vec<Machine> = (1..=u64::from(nodes)).map(|node| self.machine(node)).collect();
        let mut watched = self.grid(nodes, recipe, machines, replay)?;
        for node in 1..=nodes {
            self.give_jobs(&mut watched.grid, node, percent);
        }
        let mut seen = Seen::default();
        for query in 0..self.queries {
            let at = SETTLE + APART * u64::from(query);
            watched.run_before(at)?;
            let (entry, mut luck) = self.entry(query, nodes);
            let to = NodeId(luck.random_range(1..=u64::from(nodes)));
            so_far(f64::from(query) / f64::from(self.queries));
            if query == 0 {
                seen.booked = booked(&watched.grid, self.booked_until());
            }
            if query + 1 == self.queries {
                seen.booked_at_last = booked(&watched.grid, self.booked_until());
            }
            if way == Way::Central {
                seen.centrals.push(self.knowing_all(&watched.grid, aim, at, wanted, to)?);
                continue;
            }
            let job = Job {
                nodes: wanted.try_into().expect("jobs have nodes"),
                criterion: Some(aim.criterion(to).parse().expect("a criterion")),
                limit: Some(SPAN),
                begin: Some(at + AHEAD),
                ..command_taking(SPAN)
            };
            let job = watched.grid.submit(at, entry, envelope(job, query));
            let mut costs = Vec::new();
            let mut looked = at;
            while looked < at + QUERY && costs.len() < usize::from(ITERATIONS) {
                looked += Span::from_secs(1);
                watched.run_before(looked)?;
                costs = course(&watched.grid, &(entry, job));
            }
            watched.grid.cancel(looked, entry, job);
            seen.courses.push(costs);
        }
        watched.end()?;
        seen.inputs = watched.grid.look().handled();
        Ok(seen)
    }

    /// A day ahead of the first query, and with very many queries half a day ahead of the last.
    fn booked_until(&self) -> Time {
        FROM + HORIZON.max(APART * u64::from(self.queries) + HORIZON_LEFT)
    }

    /// A machine like no other.
    fn machine(&self, node: u64) -> Machine {
        let mut luck = stream(self.seed, Purpose::Machines, node);
        let mut machine = Machine::with_capacity(Resources::cores(1));
        let speed = luck.random_range(UNLIKE.0..=UNLIKE.1);
        machine.speed = Speed::new(speed.try_into().expect("no machine stands still"));
        let price = luck.random_range(UNLIKE.0..=UNLIKE.1);
        let price = format!("{}.{:03}", price / 1_000, price % 1_000);
        machine.labels.insert("price".parse().expect("a name"), price.parse().expect("a line"));
        machine
    }

    /// Has a node take jobs of its own, so that it is busy for this share of its time.
    fn give_jobs(&self, grid: &mut Grid<Node>, node: u32, percent: u8) {
        if percent == 0 {
            return;
        }
        let mut luck = stream(self.seed, Purpose::Workload, u64::from(node));
        let mean = (TAKES.0 + TAKES.1) as f64 / 2.0;
        let gap = mean * f64::from(100 - percent) / f64::from(percent);
        let end = self.booked_until();
        // The calendar begins somewhere within a job or a gap.
        let mut at = FROM;
        let mut gap_first = luck.random_range(0..100) >= percent;
        let mut number = 0;
        while at < end {
            if gap_first {
                let drawn: f64 = luck.random_range(0.0..1.0);
                at += Span::from_secs((-(1.0 - drawn).ln() * gap * 60.0) as u64);
            }
            gap_first = true;
            let takes = Span::from_mins(luck.random_range(TAKES.0..=TAKES.1)).min(end.since(at));
            if takes == Span::ZERO {
                break;
            }
            let job = Job {
                limit: Some(takes),
                begin: Some(at),
                criterion: Some("soonest".parse().expect("a criterion")),
                ..command_taking(takes)
            };
            // Nonces tell apart jobs that are alike; those of nodes do not meet those of queries.
            let name = OWN + node * 256 + number;
            grid.submit(GIVEN, NodeId(u64::from(node)), envelope(job, name));
            number += 1;
            at += takes;
        }
    }

    /// What somebody finds who knows all nodes and their calendars.
    fn knowing_all(
        &self,
        grid: &Grid<Node>,
        aim: Aim,
        now: Time,
        wanted: u32,
        to: NodeId,
    ) -> Result<(f64, f64), Error> {
        let nodes: Vec<NodeId> = grid.look().nodes().collect();
        let network = self.network(nodes.len() as u32)?;
        let place = |node: NodeId| network.place(node.0 as usize - 1).unwrap_or(Coordinates::ORIGIN);
        let hosts: Vec<Host<'_>> = nodes
            .iter()
            .filter_map(|&node| {
                let calendar = grid.look().core(node).commit()?.calendar();
                let machine = grid.machine(node);
                let price: Thousandths = machine.labels.get("price")?.as_str().parse().ok()?;
                Some(Host {
                    coordinates: place(node),
                    speed: machine.speed,
                    price: price.get(),
                    timeline: calendar.timeline(),
                })
            })
            .collect();
        let everything = Everything {
            hosts: &hosts,
            count: wanted as usize,
            now,
            from: now + AHEAD,
            span: SPAN,
            to,
            at: place(to),
        };
        Ok(central::any(&everything, aim, &self.genetic, self.seed))
    }
}

/// How much of their time all calendars are booked.
fn booked(grid: &Grid<Node>, until: Time) -> f64 {
    let from = grid.look().now();
    let one = |node: NodeId| -> f64 {
        let Some(commit) = grid.look().core(node).commit() else { return 0.0 };
        let within = |reservation: &Reservation<Resources>| {
            let interval = reservation.interval;
            interval.end().min(until).since(interval.start().max(from)).as_secs_f64()
        };
        commit.calendar().iter().map(within).sum::<f64>()
    };
    let (mut sum, mut nodes) = (0.0, 0.0);
    for node in grid.look().nodes() {
        sum += one(node);
        nodes += 1.0;
    }
    sum / (nodes * until.since(from).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Settings;

    #[test]
    fn calendars_are_the_same_whoever_chooses() {
        let settings = Settings {
            only: None,
            quick: false,
            seeds: None,
            trace: None,
            hosts: None,
            threads: 1,
            keep: None,
            tiny: true,
        };
        let plan = Plan::new(&settings, &[]).unwrap();
        let booked = [Way::Central, Way::Basic(2), Way::Proactive(2)].map(|way| {
            let seen = plan.busy((50, 4), (30, Aim::Near), way, String::new(), &|_| {}).unwrap();
            assert!(way == Way::Central || seen.courses.iter().all(|course| !course.is_empty()), "{seen:?}");
            (seen.booked, seen.booked_at_last)
        });
        assert!((0.25..0.35).contains(&booked[0].0), "{booked:?}");
        assert!(
            booked.iter().all(|one| *one == booked[0]),
            "before any query, and after all but one: {booked:?}"
        );
    }
}
