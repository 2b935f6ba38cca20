//! Which runs are made; and making them.

use std::collections::BTreeSet;

use shoal_model::Span;
use shoal_protocols::overlay::can;
use shoal_protocols::scheduling::tri_pronged::{self, Variant};

use super::beyond;
use super::case::{Case, EVERYBODY, Mix, Who};
use super::judge::{GAPS, LIGHT, RATIOS};
use super::run;
use super::seen::Seen;
use crate::checks::Violation;
use crate::reproduce::again::Again;
use crate::reproduce::{Error, Paper, Settings};
use crate::workload::WorkloadError;

/// How large a reproduction is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: usize,
    pub jobs: usize,
    pub seeds: u64,
}

/// What is run.
pub struct Plan {
    pub size: Size,
    pub cases: Vec<Case>,
    pub beyond: beyond::Plan,
    pub about: Vec<(String, String)>,
    again: Again,
}

/// A run is given up so long after the last job has come.
const PATIENCE: Span = Span::from_hours(72);

impl Plan {
    /// Finds the runs that the wanted ids need.
    pub fn new(settings: &Settings, wanted: &[&'static str]) -> Result<Plan, Error> {
        let wants = |group: &str| wanted.iter().any(|id| id.contains(group));
        if settings.trace.is_some() && !wants("/beyond/trace/") {
            let why = "only tri-pronged/beyond/trace takes its jobs from a trace: leave --trace out";
            return Err(Error::Workload(WorkloadError::Setting { setting: "trace", why: why.to_owned() }));
        }
        let usual = match (settings.tiny, settings.quick) {
            (true, _) => Size { nodes: 30, jobs: 60, seeds: 1 },
            (false, true) => Size { nodes: 200, jobs: 800, seeds: 1 },
            (false, false) => Size { nodes: 1_000, jobs: 5_000, seeds: 1 },
        };
        let size =
            Size { seeds: settings.seeds.map_or(usual.seeds, |seeds| u64::from(seeds.get())), ..usual };
        let beyond = beyond::Plan::new(settings, wanted, size.seeds)?;
        let cases: Vec<Case> = cases(wanted, size.seeds).into_iter().collect();
        let mut about = vec![
            ("size".to_owned(), format!("{} nodes, {} jobs, {} runs", size.nodes, size.jobs, cases.len())),
            ("seeds".to_owned(), format!("1 to {}", size.seeds)),
        ];
        about.extend(beyond.about());
        let again = Again::new(Paper::TriPronged, settings, wanted);
        Ok(Plan { size, cases, beyond, about, again })
    }

    /// The command that makes a run again.
    pub fn replay(&self, case: &Case) -> String {
        self.again.command(case.seed, |id| cases(&[id], case.seed).contains(case))
    }

    /// Makes a run.
    pub fn make(&self, case: &Case, so_far: &dyn Fn(f64)) -> Result<Seen, Violation> {
        let machines = case.machines(self.size.nodes);
        let jobs = case.jobs(self.size.jobs, &machines);
        match case.who {
            Who::Cent => Ok(run::centrally(&jobs, &machines)),
            Who::Nodes(variant) => {
                let recipe = tri_pronged::Config { variant, ..Default::default() };
                let setup = run::Setup {
                    seed: case.seed,
                    machines,
                    recipe,
                    residue: can::Residue::Balloon,
                    patience: PATIENCE,
                    shortcuts: false,
                    threads: 1,
                    replay: self.replay(case),
                };
                run::by_nodes(setup, &jobs, so_far)
            }
        }
    }
}

/// The runs that these ids need, with so many seeds.
fn cases(wanted: &[&'static str], seeds: u64) -> BTreeSet<Case> {
    let wants = |group: &str| wanted.iter().any(|id| id.contains(group));
    let mut cases = BTreeSet::new();
    for seed in 1..=seeds {
        let mut add = |who, mix, gap_ms, ratio| {
            cases.insert(Case { who, mix, gap_ms, ratio, seed });
        };
        for who in EVERYBODY {
            if wants("/fig3/") || wants("/fig4") || wants("bounded") {
                GAPS.iter().for_each(|&gap| add(who, Mix::Clustered, gap, 40));
            }
            if wants("/fig5/") {
                RATIOS.iter().for_each(|&ratio| add(who, Mix::Clustered, 3_000, ratio));
            }
            if wants("other_mixes") {
                Mix::ALL.iter().for_each(|&mix| add(who, mix, 2_500, 40));
            }
        }
        if wants("push_light") {
            for variant in [Variant::LiPush, Variant::LiPull, Variant::LiqPush, Variant::LiqPull] {
                add(Who::Nodes(variant), Mix::Clustered, LIGHT, 40);
            }
        }
    }
    cases
}
