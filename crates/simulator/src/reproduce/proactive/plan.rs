//! Which runs are made for what is wanted; and making them.

use std::collections::BTreeSet;

use shoal_model::Coordinates;
use shoal_protocols::choose::genetic;

use super::beyond::Experiment;
use super::case::{ALPHAS, Case, Manner, SIZES, SWEPT, Scene, Seen, Way};
use super::central;
use super::judge::{PAPER, name};
use super::run::Pace;
use super::stage::ITERATIONS;
use crate::network::{self, Network, latency};
use crate::reproduce::again::Again;
use crate::reproduce::{Error, Paper, Settings};
use crate::workload::WorkloadError;

/// The nodes of a grid at most in a test of the frame.
const TINY_MAX: u32 = 1_000;

/// What is run.
pub struct Plan {
    pub cases: Vec<Case>,
    /// Whether anything of the paper itself is wanted.
    pub of_paper: bool,
    pub experiments: Vec<Experiment>,
    pub about: Vec<(String, String)>,
    /// A grid is smaller by this than the paper's, and has no more nodes than so many.
    smaller: u32,
    nodes_max: u32,
    pub(super) queries: u32,
    pub(super) seed: u64,
    pub(super) genetic: genetic::Config,
    latency: latency::Config,
    again: Again,
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

/// The ids that are about the paper itself.
fn of_paper(wanted: &[&'static str]) -> impl Iterator<Item = &'static str> {
    wanted.iter().copied().filter(|id| !Experiment::ALL.iter().any(|one| one.finds(id)))
}

/// The experiments beyond the paper that these ids are of.
fn experiments(wanted: &[&'static str]) -> impl Iterator<Item = Experiment> {
    Experiment::ALL.into_iter().filter(|one| wanted.iter().any(|id| one.finds(id)))
}

/// The runs that these ids need. Each is made once, whoever needs it.
fn cases(wanted: &[&'static str]) -> BTreeSet<Case> {
    let mut cases: BTreeSet<Case> = experiments(wanted).flat_map(Experiment::cases).collect();
    let scene = Scene::Paper;
    for size in SIZES.into_iter().filter(|&size| of_paper(wanted).any(|id| needs(id, size))) {
        let ways = [Way::Central, Way::Basic(PAPER), Way::Proactive(PAPER)];
        cases.extend(ways.map(|way| Case { size, scene, way }));
    }
    if of_paper(wanted).any(is_swept) {
        let ways = ALPHAS.into_iter().flat_map(|alpha| [Way::Basic(alpha), Way::Proactive(alpha)]);
        cases.extend(ways.map(|way| Case { size: SWEPT, scene, way }));
    }
    cases
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
        let nodes_max = if settings.tiny { TINY_MAX } else { u32::MAX };
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
        let experiments: Vec<Experiment> = experiments(wanted).collect();
        let of_paper = of_paper(wanted).next().is_some();
        let hosts = settings.hosts.as_ref().map_or_else(
            || {
                "made up: 60 sites in a square of 100 ms, nodes about them with a deviation of 4 ms"
                    .to_owned()
            },
            |file| format!("those of {}", file.display()),
        );
        // A test of the frame does not wait for good sets.
        let small = genetic::Config {
            population: 20,
            tournament: 4,
            elite: 2,
            generations: 10,
            ..Default::default()
        };
        let genetic = if settings.tiny { small } else { genetic::Config::default() };
        let mut plan = Plan {
            cases: cases(wanted).into_iter().collect(),
            of_paper,
            experiments,
            about: Vec::new(),
            smaller,
            nodes_max,
            queries,
            seed: 1,
            genetic,
            latency,
            again: Again::new(Paper::Proactive, settings, wanted),
        };
        // A file that makes no sense is told before anything runs.
        let sizes: BTreeSet<(u32, u32)> = plan.cases.iter().map(|case| case.size).collect();
        let mut told = if plan.of_paper { SIZES.to_vec() } else { Vec::new() };
        told.extend(sizes.into_iter().filter(|size| !plan.of_paper || !SIZES.contains(size)));
        for &size in &told {
            plan.network(plan.run_size(size).0)?;
        }
        let sizes = if plan.of_paper { SIZES.to_vec() } else { told };
        let sizes = sizes.into_iter().map(|size| {
            let (nodes, wanted) = plan.run_size(size);
            format!("{nodes} x {wanted}")
        });
        let asked = format!("{queries} for each, of {ITERATIONS} iterations");
        plan.about = vec![
            ("grids x jobs".to_owned(), sizes.collect::<Vec<_>>().join(", ")),
            ("hosts".to_owned(), hosts),
            ("queries".to_owned(), asked),
        ];
        Ok(plan)
    }

    /// How heavy a run is, roughly.
    pub fn weigh(&self, case: &Case) -> f64 {
        let (nodes, wanted) = case.size;
        let gossip = f64::from(nodes);
        let (queries, iterations) = match case.scene {
            Scene::Paper => (self.queries, ITERATIONS),
            Scene::Often(iterations, Manner::InTurn | Manner::AtOnce) => (self.queries, iterations),
            // Whether nodes are free together has to be looked at as well.
            Scene::Busy(..) => (self.queries.saturating_mul(3), ITERATIONS),
        };
        let choice = f64::from(wanted) * f64::from(queries) * f64::from(iterations);
        match (case.way, case.scene) {
            (Way::Central, Scene::Paper | Scene::Often(..)) => gossip,
            (Way::Central, Scene::Busy(..)) => gossip + choice / 10.0,
            (Way::Basic(_), _) => gossip + choice,
            (Way::Proactive(_), _) => 1.2 * gossip + choice,
        }
    }

    pub(super) fn network_config(&self) -> network::Config {
        network::Config::calm(self.latency.clone())
    }

    pub(super) fn network(&self, nodes: u32) -> Result<Network, network::Error> {
        Network::build(&self.network_config(), nodes as usize, self.seed)
    }

    /// The size that is really run for one that an id names.
    pub fn run_size(&self, (nodes, wanted): (u32, u32)) -> (u32, u32) {
        ((nodes / self.smaller).min(self.nodes_max), wanted / self.smaller.min(4))
    }

    /// The command that makes a run again, with all its queries.
    pub fn replay(&self, case: &Case) -> String {
        self.again.command(self.queries.into(), |id| cases(&[id]).contains(case))
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Error> {
        let size = self.run_size(case.size);
        let pace = match case.scene {
            Scene::Busy(percent, aim) => {
                return self.busy(size, (percent, aim), case.way, self.replay(case), so_far);
            }
            Scene::Often(iterations, manner) => Some(Pace { iterations, manner }),
            Scene::Paper => None,
        };
        let Some(variant) = case.way.variant() else {
            let (nodes, wanted) = size;
            let network = self.network(nodes)?;
            let places: Vec<Coordinates> =
                (0..nodes as usize).filter_map(|node| network.place(node)).collect();
            let found = central::closest(&places, wanted as usize, self.seed);
            return Ok(Seen { central: Some(found), ..Seen::default() });
        };
        self.at_once(size, variant, pace, self.replay(case), so_far)
    }
}
