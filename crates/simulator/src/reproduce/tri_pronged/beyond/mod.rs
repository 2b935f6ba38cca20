//! Beyond the paper: a long run in steady state, light loads, very large grids, a trace, running-time estimates, Dual-CAN.

mod case;
mod figures;
mod judge;
mod trace;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use shoal_model::Span;
use shoal_protocols::overlay::can::Residue;
use shoal_protocols::scheduling::tri_pronged::{self, Variant};

use super::case::{Drawn, EVERYBODY, Mix, Who};
use super::run;
use super::seen::Seen;
use crate::checks::Violation;
use crate::reproduce::again::Again;
use crate::reproduce::{Error, Paper, Settings};
pub use case::{Case, Left, Of, Said, Way};
pub use figures::{figures, sheets};
pub use judge::{Runs, judge};

/// Gaps of the long runs, in milliseconds: the paper's, and a longer one.
const LONG: [u32; 6] = [2_000, 2_250, 2_500, 2_750, 3_000, 4_000];
/// Gaps of a lightly loaded grid, in milliseconds.
const LIGHT: [u32; 5] = [4_000, 6_000, 8_000, 12_000, 16_000];
/// The gap of large grids, and of those with estimates, on 1000 nodes.
const BUSY: u32 = 2_000;
/// Jobs for each node of large grids.
const JOBS_PER_NODE: usize = 2;
/// A run is given up so long after the last job has come.
const PATIENCE: Span = Span::from_hours(12);
/// Large grids are looked at while jobs come, and not until the last has started.
const PATIENCE_AT_SCALE: Span = Span::from_mins(10);
/// Jobs of traces can take very long, and so can what waits behind them.
const PATIENCE_WITH_TRACE: Span = Span::from_hours(24 * 14);
/// Of a long run the jobs between these hundredths count.
const MIDDLE: (usize, usize) = (20, 80);

const PUSH_AND_PULL: [Variant; 4] = [Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull];
const WITH_ESTIMATES: [Variant; 2] = [Variant::L, Variant::LiqPull];
/// Gaps at which balloons and a second CAN are compared, in milliseconds; and who schedules.
const DUAL: [u32; 2] = [2_000, 4_000];
const WITH_DUAL: [Variant; 2] = [Variant::L, Variant::LiqPull];

/// A run of so many nodes uses several threads.
const LARGE: usize = 50_000;

/// How large the runs are.
#[derive(Clone, Copy, Debug)]
struct Size {
    nodes: usize,
    jobs: usize,
    /// Of the long run.
    long: usize,
    /// Of the trace.
    trace: usize,
    /// Nodes of the grids that grow.
    grids: [u32; 3],
}

/// What is run.
pub struct Plan {
    size: Size,
    pub cases: Vec<Case>,
    trace: Option<trace::Jobs>,
    again: Again,
}

impl Plan {
    /// Finds the runs that the wanted ids need, and reads the trace if there is one.
    pub fn new(settings: &Settings, wanted: &[&'static str], seeds: u64) -> Result<Plan, Error> {
        let size = match (settings.tiny, settings.quick) {
            (true, _) => Size { nodes: 30, jobs: 60, long: 120, trace: 60, grids: [10, 20, 40] },
            (false, true) => {
                Size { nodes: 200, jobs: 800, long: 3_200, trace: 500, grids: [100, 300, 1_000] }
            }
            (false, false) => Size {
                nodes: 1_000,
                jobs: 5_000,
                long: 20_000,
                trace: 5_000,
                grids: [1_000, 10_000, 100_000],
            },
        };
        let wants_trace = wanted.iter().any(|id| id.contains("/beyond/trace/"));
        let trace = match wants_trace {
            true => Some(trace::Jobs::new(settings.trace.as_deref(), size.trace)?),
            false => None,
        };
        let again = Again::new(Paper::TriPronged, settings, wanted);
        let cases = cases(size, wanted, seeds).into_iter().collect();
        Ok(Plan { size, cases, trace, again })
    }

    /// What was run, in words.
    pub fn about(&self) -> Option<(String, String)> {
        let trace = self.trace.as_ref().map_or_else(String::new, |jobs| format!("; {}", jobs.about()));
        (!self.cases.is_empty()).then(|| ("beyond".to_owned(), format!("{} runs{trace}", self.cases.len())))
    }

    /// The command that makes a run again.
    pub fn replay(&self, case: &Case) -> String {
        self.again.command(case.seed, |id| cases(self.size, &[id], case.seed).contains(case))
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Violation> {
        let Size { nodes, jobs, long, .. } = self.size;
        let drawn = |nodes: usize, jobs: usize, gap_ms: u32| {
            let drawing =
                super::case::Case { who: case.who, mix: Mix::Clustered, gap_ms, ratio: 40, seed: case.seed };
            let machines = drawing.machines(nodes);
            let jobs = drawing.jobs(jobs, &machines);
            (machines, jobs)
        };
        let mut patience = PATIENCE;
        let (machines, jobs) = match case.of {
            Of::Long(gap) => drawn(nodes, long, gap),
            Of::Light(gap) | Of::Dual(_, gap) => drawn(nodes, jobs, gap),
            Of::Scale(_, nodes) => {
                patience = PATIENCE_AT_SCALE;
                drawn(nodes as usize, JOBS_PER_NODE * nodes as usize, BUSY)
            }
            Of::Trace => {
                patience = PATIENCE_WITH_TRACE;
                let trace = self.trace.as_ref().expect("it was read because it is wanted");
                trace.draw(case.seed)
            }
            Of::Estimates(said) => {
                let (machines, mut jobs) = drawn(nodes, jobs, BUSY);
                said.say(&mut jobs, case.seed);
                (machines, jobs)
            }
        };
        let estimates = matches!(case.of, Of::Estimates(said) if said != Said::Nothing);
        let residue = match case.of {
            Of::Dual(Left::Dual, _) => Residue::Dual,
            Of::Dual(Left::Balloon, _)
            | Of::Long(_)
            | Of::Light(_)
            | Of::Scale(..)
            | Of::Trace
            | Of::Estimates(_) => Residue::Balloon,
        };
        let mut seen = match case.who {
            Who::Cent => run::centrally(&jobs, &machines),
            Who::Nodes(variant) => {
                let recipe = tri_pronged::Config { variant, estimates, ..Default::default() };
                let shortcuts = matches!(case.of, Of::Scale(Way::Shortcuts, _));
                let threads = if machines.len() < LARGE { 1 } else { available() };
                let (seed, replay) = (case.seed, self.replay(case));
                let setup =
                    run::Setup { seed, machines, recipe, residue, patience, shortcuts, threads, replay };
                run::by_nodes(setup, &jobs, so_far)?
            }
        };
        if matches!(case.of, Of::Long(_)) {
            seen.waits = middle(&jobs, seen.waits);
        }
        Ok(seen)
    }
}

/// The runs that these ids need, with so many seeds.
fn cases(size: Size, wanted: &[&'static str], seeds: u64) -> BTreeSet<Case> {
    let wants = |group: &str| wanted.iter().any(|id| id.contains(group));
    let mut cases = BTreeSet::new();
    for seed in 1..=seeds {
        let mut add = |of, who| {
            cases.insert(Case { of, who, seed });
        };
        for who in EVERYBODY {
            if wants("/beyond/long/") {
                LONG.into_iter().for_each(|gap| add(Of::Long(gap), who));
            }
            if wants("/beyond/trace/") {
                add(Of::Trace, who);
            }
        }
        if wants("/beyond/light/") {
            for gap in LIGHT {
                PUSH_AND_PULL.into_iter().for_each(|variant| add(Of::Light(gap), Who::Nodes(variant)));
            }
        }
        if wants("/beyond/scale/") {
            // From neighbour to neighbour ways are as long as there are many equal machines: not on the largest grid.
            let plain = size.grids[..2].iter().map(|&nodes| Of::Scale(Way::Neighbours, nodes));
            let short = size.grids.iter().map(|&nodes| Of::Scale(Way::Shortcuts, nodes));
            plain.chain(short).for_each(|of| add(of, Who::Nodes(Variant::LiqPull)));
        }
        if wants("/beyond/dual/") {
            for (left, gap) in Left::ALL.into_iter().flat_map(|left| DUAL.map(|gap| (left, gap))) {
                WITH_DUAL.into_iter().for_each(|variant| add(Of::Dual(left, gap), Who::Nodes(variant)));
            }
        }
        if wants("/beyond/estimates/") {
            for said in Said::ALL {
                WITH_ESTIMATES.into_iter().for_each(|variant| add(Of::Estimates(said), Who::Nodes(variant)));
            }
        }
    }
    cases
}

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The waits of those that came when the grid was neither filling nor emptying.
fn middle(jobs: &[Drawn], waits: Vec<f64>) -> Vec<f64> {
    let at = |hundredths: usize| jobs.len() * hundredths / 100;
    waits[at(MIDDLE.0)..at(MIDDLE.1)].to_vec()
}
