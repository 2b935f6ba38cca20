//! What all runs stand on: the grid as it starts, through whom a query comes, and what is seen of it.

use rand::RngExt;
use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Span, Time};
use shoal_protocols::node::{Node, config};
use shoal_protocols::overlay::cyclon;
use shoal_protocols::overlay::helpers::{self, Kind, Kinds};
use shoal_protocols::scheduling::proactive::{self, Variant};

use super::plan::Plan;
use crate::grid::{Config, Grid, Start};
use crate::reproduce::Error;
use crate::reproduce::watched::Watched;
use crate::streams::{Purpose, Stream, stream};

/// How long nodes gossip before the first query: 40 cycles.
pub const SETTLE: Time = Time::from_secs(400);
/// The iterations (τ).
pub const ITERATIONS: u8 = 20;

impl Plan {
    /// What the recipe is told.
    pub fn recipe(&self, variant: Variant, alpha: u8, overlays: &[Kind]) -> proactive::Config {
        proactive::Config {
            variant,
            alpha,
            iterations: ITERATIONS,
            genetic: self.genetic,
            helpers: helpers::Config {
                overlays: Kinds::of(overlays),
                measure: false,
                ..helpers::Config::default()
            },
            ..proactive::Config::default()
        }
    }

    /// A grid of whole nodes on these machines, as it starts; `replay` is the command that runs it again.
    pub fn grid(
        &self,
        nodes: u32,
        recipe: proactive::Config,
        machines: Vec<Machine>,
        replay: String,
    ) -> Result<Watched, Error> {
        let grid = Grid::build(Config {
            seed: self.seed,
            nodes: nodes as usize,
            network: self.network_config(),
            faults: Default::default(),
            fsync: Span::ZERO,
            // Whom nodes know at the start; from then on the overlay of profiles is what changes.
            overlay: cyclon::Config { period_ms: 0, ..cyclon::Config::default() }.into(),
            start: Start::Graph,
            work: config::Work {
                machine: machines[0].clone(),
                recipe: config::Recipe::Proactive(recipe),
                commit: Default::default(),
                heartbeat: Default::default(),
                limit_default: Span::from_hours(1),
                eager: false,
                gate: Default::default(),
            },
            machines,
            threads: 1,
            watch: true,
            story: false,
        })?;
        Ok(Watched::new(grid, self.seed, replay))
    }

    /// Through which node a query comes, and more luck of its own.
    pub fn entry(&self, query: u32, nodes: u32) -> (NodeId, Stream) {
        let mut luck = stream(self.seed, Purpose::Entry, u64::from(query));
        (NodeId(luck.random_range(1..=u64::from(nodes))), luck)
    }
}

/// The job of a query as it is submitted.
pub fn envelope(job: Job, query: u32) -> Envelope {
    let nonce = Nonce(u128::from(query).to_be_bytes());
    Envelope::new(job, nonce).expect("the job makes sense")
}

/// What the best set of a query cost after each iteration, in milliseconds; an iteration before the first set has none.
pub fn course(grid: &Grid<Node>, &(entry, job): &(NodeId, JobId)) -> Vec<f64> {
    let proactive = grid.look().core(entry).proactive();
    let costs = proactive.map_or(&[][..], |proactive| proactive.course(job));
    costs.iter().map(|cost| cost.map_or(f64::INFINITY, |cost| cost.value as f64 / 1e6)).collect()
}
