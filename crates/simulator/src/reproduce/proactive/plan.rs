//! Which runs are made for what is wanted; and making them.

use rand::RngExt;
use shoal_model::{Coordinates, Envelope, Job, JobId, Machine, NodeId, Nonce, Resources, Span, Time};
use shoal_protocols::choose::genetic;
use shoal_protocols::node::{Node, config};
use shoal_protocols::overlay::cyclon;
use shoal_protocols::overlay::helpers::{self, Kind, Kinds};
use shoal_protocols::scheduling::proactive;

use super::case::{ALPHAS, Case, SIZES, SWEPT, Seen, Way};
use super::central;
use super::judge::name;
use crate::grid::{Config, Grid, Start};
use crate::network::{self, Network, latency};
use crate::reproduce::{Error, Settings};
use crate::streams::{Purpose, stream};
use crate::workload::WorkloadError;

/// How long nodes gossip before the first query: 40 cycles.
const SETTLE: Time = Time::from_secs(400);
/// How long the queries take at most.
const QUERY: Span = Span::from_secs(900);
/// When the first of their jobs begins, and how far apart they are: none is in another's way.
const BEGIN: Time = Time::from_secs(7_200);
const APART: Span = Span::from_hours(2);
/// The candidates of the paper for each node wanted.
const ALPHA: u8 = 2;
/// The iterations (τ).
const ITERATIONS: u8 = 20;

/// What is run.
pub struct Plan {
    pub cases: Vec<Case>,
    pub about: Vec<(String, String)>,
    /// A grid is smaller by this than the paper's.
    smaller: u32,
    queries: u32,
    seed: u64,
    genetic: genetic::Config,
    latency: latency::Config,
}

/// Whether an id is about several numbers of candidates.
fn is_swept(id: &str) -> bool {
    id.starts_with("proactive/alpha") || id.ends_with("claim/alpha")
}

/// Whether an id is about this size of grid and job: most name theirs, and the others are about all.
fn needs(id: &str, size: (u32, u32)) -> bool {
    let names = |size| id.split('/').any(|part| part == name(size));
    if is_swept(id) { size == SWEPT } else { names(size) || !SIZES.into_iter().any(names) }
}

impl Plan {
    /// Finds the runs that the wanted ids need.
    pub fn new(settings: &Settings, wanted: &[&'static str]) -> Result<Plan, Error> {
        if settings.trace.is_some() {
            let why = "this paper has no jobs but queries: leave --trace out, or give --hosts".to_owned();
            return Err(Error::Workload(WorkloadError::Setting { setting: "trace", why }));
        }
        let (smaller, queries) = match (settings.tiny, settings.quick) {
            (true, _) => (16, 2),
            (false, true) => (5, 5),
            (false, false) => (1, 20),
        };
        let queries = settings.seeds.map_or(queries, |seeds| seeds.get());
        let latency = match &settings.hosts {
            Some(file) => latency::Config::Coordinates(latency::Coordinates {
                file: file.clone(),
                factor: 1.0,
                share_hosts: false,
                least_ms: 0.1,
                jitter: 0.0,
            }),
            None => latency::Config::Clustered(latency::Clustered {
                sites: 60,
                side_ms: 100.0,
                spread_ms: 4.0,
                least_ms: 0.1,
                jitter: 0.0,
            }),
        };
        let mut cases = Vec::new();
        let sweeps = wanted.iter().any(|id| is_swept(id));
        for size in SIZES.into_iter().filter(|&size| wanted.iter().any(|id| needs(id, size))) {
            cases.extend(
                [Way::Central, Way::Basic(ALPHA), Way::Proactive(ALPHA)].map(|way| Case { size, way }),
            );
        }
        if sweeps {
            let ways = ALPHAS.into_iter().flat_map(|alpha| [Way::Basic(alpha), Way::Proactive(alpha)]);
            cases.extend(ways.map(|way| Case { size: SWEPT, way }));
        }
        let hosts = settings.hosts.as_ref().map_or_else(
            || {
                "made up: 60 sites in a square of 100 ms, nodes about them with a deviation of 4 ms"
                    .to_owned()
            },
            |file| format!("those of {}", file.display()),
        );
        let sizes = SIZES.map(|(nodes, wanted)| format!("{} x {}", nodes / smaller, wanted / smaller.min(4)));
        let about = vec![
            ("grids x jobs".to_owned(), sizes.join(", ")),
            ("hosts".to_owned(), hosts),
            ("queries".to_owned(), format!("{queries} for each, of {ITERATIONS} iterations")),
        ];
        // A test of the frame does not wait for good sets.
        let small = genetic::Config {
            population: 20,
            tournament: 4,
            elite: 2,
            generations: 10,
            ..Default::default()
        };
        let genetic = if settings.tiny { small } else { genetic::Config::default() };
        let plan = Plan { cases, about, smaller, queries, seed: 1, genetic, latency };
        // A file that makes no sense is told before anything runs.
        for (nodes, _) in SIZES {
            plan.network(nodes / smaller)?;
        }
        Ok(plan)
    }

    /// How heavy a run is, roughly.
    pub fn weigh(&self, case: &Case) -> f64 {
        let (nodes, wanted) = case.size;
        let (gossip, choice) = (f64::from(nodes), f64::from(wanted * self.queries) * 20.0);
        match case.way {
            Way::Central => gossip,
            Way::Basic(_) => gossip + choice,
            Way::Proactive(_) => 1.2 * gossip + choice,
        }
    }

    fn network_config(&self) -> network::Config {
        network::Config {
            latency: self.latency.clone(),
            loss: 0.0,
            duplication: 0.0,
            reorder: 0.0,
            reorder_ms: 0.0,
            partitions: Vec::new(),
        }
    }

    fn network(&self, nodes: u32) -> Result<Network, network::Error> {
        Network::build(&self.network_config(), nodes as usize, self.seed)
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Error> {
        let (nodes, wanted) = (case.size.0 / self.smaller, case.size.1 / self.smaller.min(4));
        let Some((variant, alpha)) = case.way.variant() else {
            let network = self.network(nodes)?;
            let places: Vec<Coordinates> =
                (0..nodes as usize).filter_map(|node| network.place(node)).collect();
            let found = central::closest(&places, wanted as usize, 1, self.seed);
            return Ok(Seen { central: Some(found), ..Seen::default() });
        };
        let recipe = proactive::Config {
            variant,
            alpha,
            iterations: ITERATIONS,
            genetic: self.genetic,
            helpers: helpers::Config {
                overlays: Kinds::of(&[Kind::Coordinates]),
                measure: false,
                ..helpers::Config::default()
            },
            ..proactive::Config::default()
        };
        let machine = Machine::with_capacity(Resources::cores(1));
        let mut grid: Grid<Node> = Grid::build(Config {
            seed: self.seed,
            nodes: nodes as usize,
            network: self.network_config(),
            faults: Default::default(),
            fsync: Span::ZERO,
            // Whom nodes know at the start; from then on the overlay of profiles is what changes.
            overlay: cyclon::Config { period_ms: 0, ..cyclon::Config::default() }.into(),
            start: Start::Graph,
            work: config::Work {
                machine: machine.clone(),
                recipe: config::Recipe::Proactive(recipe),
                commit: Default::default(),
                heartbeat: Default::default(),
                limit_default: Span::from_hours(1),
                eager: false,
                gate: Default::default(),
            },
            machines: vec![machine],
            threads: 1,
            watch: false,
            story: false,
        })?;
        let world = grid.world();
        world.run_before(SETTLE - Span::from_secs(100));
        so_far(0.2);
        let helper = |grid: &mut Grid<Node>| -> u64 {
            let traffic = grid.world().traffic();
            ["vicinity_ask", "vicinity_tell"]
                .map(|kind| traffic.get(kind).map_or(0, |one| one.bytes))
                .iter()
                .sum()
        };
        let before = helper(&mut grid);
        grid.world().run_before(SETTLE);
        let bytes = (helper(&mut grid) - before) as f64 / 10.0 / f64::from(nodes);
        let queries = self.ask(&mut grid, nodes, wanted);
        let end = SETTLE + QUERY;
        // Queries end one by one; once all have, what is left is gossip.
        let mut at = SETTLE;
        loop {
            at += Span::from_secs(10);
            grid.world().run_before(at);
            let done: usize = queries.iter().map(|query| course(&grid, query).len()).sum();
            let whole = queries.len() * usize::from(ITERATIONS);
            so_far(0.3 + 0.7 * done as f64 / whole as f64);
            if done == whole || at >= end {
                break;
            }
        }
        let courses = queries.iter().map(|query| course(&grid, query)).collect();
        Ok(Seen { courses, central: None, bytes, inputs: grid.look().handled() })
    }

    fn ask(&self, grid: &mut Grid<Node>, nodes: u32, wanted: u32) -> Vec<(NodeId, JobId)> {
        (0..self.queries)
            .map(|query| {
                let mut luck = stream(self.seed, Purpose::Entry, u64::from(query));
                let entry = NodeId(luck.random_range(1..=u64::from(nodes)));
                let job = Job {
                    nodes: wanted.try_into().expect("jobs have nodes"),
                    criterion: Some("closest".parse().expect("a criterion")),
                    limit: Some(Span::from_hours(1)),
                    begin: Some(BEGIN + APART * u64::from(query)),
                    ..Job::command(["true"])
                };
                let nonce = Nonce(u128::from(query).to_be_bytes());
                let envelope = Envelope::new(job, nonce).expect("the job makes sense");
                (entry, grid.submit(SETTLE, entry, envelope))
            })
            .collect()
    }
}

/// What the best set of a query cost after each iteration, in milliseconds; an iteration before the first set has none.
fn course(grid: &Grid<Node>, &(entry, job): &(NodeId, JobId)) -> Vec<f64> {
    let proactive = grid.look().core(entry).proactive();
    let costs = proactive.map_or(&[][..], |proactive| proactive.course(job));
    costs.iter().map(|cost| cost.map_or(f64::INFINITY, |cost| cost.value as f64 / 1e6)).collect()
}
