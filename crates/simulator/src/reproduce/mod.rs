//! Published results, run again: every table, figure and claim of a paper beside what comes out here.
//!
//! A paper is a list of [`Known`] figures and claims, experiments that find them, and the runs that these need. Runs
//! are independent of each other and are spread over all cores; each is made once, whoever needs it. What comes out is
//! a list of [`Finding`]s: a claim that does not hold is a result like any other.
//!
//! A figure is the mean over seeds. Its spread is the least, the most, the standard deviation and the 95 % confidence
//! interval of the mean by Student's t. Claims are judged by the means. The same seeds give the same bytes with any
//! number of threads; how long things took stands apart.

mod again;
mod aria;
mod asap;
mod finding;
mod page;
pub(crate) mod pool;
mod proactive;
mod runs;
mod sheet;
mod shelf;
pub mod statistics;
mod tri_pronged;
mod watched;
mod write;

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::baseline::BaselineError;
use crate::checks::Violation;
use crate::report::picture::Picture;
use crate::scenario;
use crate::workload::WorkloadError;

pub(crate) use asap::LIBRARY as ASAP_SCENARIOS;
pub use finding::{Finding, Known};
pub use pool::{Progress, Tell};
use runs::Making;
pub use sheet::Sheet;
pub use shelf::Keep;
use shelf::Shelf;
pub use write::write;

/// A paper whose results are run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// Vasilakos, Sacha, Pierre: Decentralized As-Soon-As-Possible Grid Scheduling, 2010.
    Asap,
    /// Brocco, Malatras, Huang, Hirsbrunner: ARiA, 2010.
    Aria,
    /// Lee, Keleher, Sussman: Decentralized dynamic scheduling, 2010.
    TriPronged,
    /// Fiscato, Costa, Pierre: On the feasibility of decentralized grid scheduling, 2008.
    Proactive,
}

/// The word for every paper that is known.
const ALL: &str = "all";

/// What a reproduction is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only ids that begin like this; all if empty.
    pub only: Option<String>,
    /// A small grid for a short time, to see that all is in order.
    pub quick: bool,
    /// Seeds 1 to this; as many as an experiment usually has if not said.
    pub seeds: Option<NonZeroU32>,
    /// Jobs of this file in place of those of a generator.
    pub trace: Option<PathBuf>,
    /// Hosts of this file in place of made-up ones, where a paper has hosts with places.
    pub hosts: Option<PathBuf>,
    /// How many runs are made at once.
    pub threads: usize,
    /// Where finished runs are kept, and taken from.
    pub keep: Option<Keep>,
    /// A much smaller grid yet, for tests of the frame; figures mean nothing then.
    #[doc(hidden)]
    pub tiny: bool,
}

/// All that came of a reproduction.
#[derive(Clone, Debug)]
pub struct Report {
    /// Of which paper.
    pub paper: Paper,
    /// What was run: grid, jobs, seeds.
    pub about: Vec<(String, String)>,
    /// Every figure and claim.
    pub findings: Vec<Finding>,
    /// The paper's tables beside ours.
    pub sheets: Vec<Sheet>,
    /// The paper's figures with our data.
    pub figures: Vec<Picture>,
    /// How long each run took.
    pub timing: Vec<Timing>,
}

/// How long a run took.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// Which run.
    pub run: String,
    /// Seconds of real time.
    pub elapsed_s: f64,
    /// Inputs that nodes handled.
    pub inputs: u64,
}

/// Why nothing was reproduced.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No paper has this name.
    #[error("no paper is called `{name}`: known are {}, and {ALL}", papers())]
    UnknownPaper {
        /// The name.
        name: String,
    },
    /// No result has a name that begins like this.
    #[error("no result of `{paper}` begins with `{only}`: known are {known}")]
    UnknownId {
        /// The paper.
        paper: Paper,
        /// What was asked for.
        only: String,
        /// What there is.
        known: String,
    },
    /// The hosts make no sense.
    #[error(transparent)]
    Network(#[from] crate::network::Error),
    /// The jobs make no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The jobs and the grid make no sense together.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// The jobs make no sense to a baseline.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// Runs cannot be kept there.
    #[error("--keep {}: {what}", folder.display())]
    Keep {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A promise did not hold in one of the runs.
    #[error("a promise did not hold: {0}")]
    Broken(#[from] Violation),
}

impl Paper {
    /// Every paper.
    pub const ALL: [Paper; 4] = [Paper::Asap, Paper::Aria, Paper::TriPronged, Paper::Proactive];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Asap => "asap",
            Paper::Aria => "aria",
            Paper::TriPronged => "tri-pronged",
            Paper::Proactive => "proactive",
        }
    }

    /// The papers of this name: one, or all.
    pub fn named(name: &str) -> Result<Vec<Paper>, Error> {
        if name == ALL {
            return Ok(Paper::ALL.to_vec());
        }
        name.parse().map(|paper| vec![paper])
    }

    /// Authors, title and year.
    pub fn title(self) -> &'static str {
        match self {
            Paper::Asap => {
                "N. Vasilakos, J. Sacha, G. Pierre: Decentralized As-Soon-As-Possible Grid Scheduling: \
                 a Feasibility Study, 2010"
            }
            Paper::Aria => {
                "A. Brocco, A. Malatras, Y. Huang, B. Hirsbrunner: ARiA: A Protocol for Dynamic Fully Distributed \
                 Grid Meta-Scheduling, 2010"
            }
            Paper::TriPronged => {
                "J. Lee, P. Keleher, A. Sussman: Decentralized Dynamic Scheduling across Heterogeneous Multi-core \
                 Desktop Grids, 2010"
            }
            Paper::Proactive => {
                "M. Fiscato, P. Costa, G. Pierre: On the Feasibility of Decentralized Grid Scheduling, 2008"
            }
        }
    }

    /// Every figure and claim of it.
    pub fn known(self) -> &'static [Known] {
        match self {
            Paper::Asap => asap::KNOWN,
            Paper::Aria => aria::KNOWN,
            Paper::TriPronged => tri_pronged::KNOWN,
            Paper::Proactive => proactive::KNOWN,
        }
    }
}

impl Paper {
    /// Reads a kept run of this paper and writes it again, for who tries what can be read.
    #[doc(hidden)]
    pub fn reread(self, kept: &[u8]) -> Option<Vec<u8>> {
        fn again<S: minicbor::Encode<()> + for<'b> minicbor::Decode<'b, ()>>(kept: &[u8]) -> Option<Vec<u8>> {
            let seen: S = minicbor::decode(kept).ok()?;
            minicbor::to_vec(seen).ok()
        }
        match self {
            Paper::Asap => again::<asap::Seen>(kept),
            Paper::Aria => again::<aria::Seen>(kept),
            Paper::TriPronged => again::<tri_pronged::Seen>(kept),
            Paper::Proactive => again::<proactive::Seen>(kept),
        }
    }
}

impl FromStr for Paper {
    type Err = Error;

    fn from_str(name: &str) -> Result<Paper, Error> {
        let found = Paper::ALL.into_iter().find(|paper| paper.name() == name);
        found.ok_or_else(|| Error::UnknownPaper { name: name.to_owned() })
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn papers() -> String {
    Paper::ALL.map(Paper::name).join(", ")
}

/// A reproduction whose settings make sense, ready to begin.
pub struct Reproduction {
    wanted: Vec<&'static str>,
    plan: Plan,
    threads: usize,
    shelf: Shelf,
}

/// The runs of a paper.
enum Plan {
    Asap(asap::Plan),
    Aria(aria::Plan),
    TriPronged(tri_pronged::Plan),
    Proactive(proactive::Plan),
}

impl Reproduction {
    /// Reads the jobs and plans the runs; all that can be wrong with what was given is found here.
    pub fn prepare(paper: Paper, settings: &Settings) -> Result<Reproduction, Error> {
        let wanted = wanted(paper, settings.only.as_deref())?;
        let plan = match paper {
            Paper::Asap => Plan::Asap(asap::Plan::new(settings, &wanted)?),
            Paper::Aria => Plan::Aria(aria::Plan::new(settings, &wanted)?),
            Paper::TriPronged => Plan::TriPronged(tri_pronged::Plan::new(settings, &wanted)?),
            Paper::Proactive => Plan::Proactive(proactive::Plan::new(settings, &wanted)?),
        };
        Ok(Reproduction { wanted, plan, threads: settings.threads, shelf: Shelf::open(settings)? })
    }

    /// How many runs there will be.
    pub fn runs(&self) -> usize {
        match &self.plan {
            Plan::Asap(plan) => plan.runs(),
            Plan::Aria(plan) => plan.runs(),
            Plan::TriPronged(plan) => plan.runs(),
            Plan::Proactive(plan) => plan.runs(),
        }
    }

    /// Makes all runs and judges them.
    pub fn carry_out(self, tell: Tell<'_>) -> Result<Report, Error> {
        let Reproduction { wanted, plan, threads, shelf } = self;
        let making = Making { shelf: &shelf, threads, tell };
        match plan {
            Plan::Asap(plan) => plan.carry_out(wanted, &making),
            Plan::Aria(plan) => plan.carry_out(wanted, &making),
            Plan::TriPronged(plan) => plan.carry_out(wanted, &making),
            Plan::Proactive(plan) => plan.carry_out(wanted, &making),
        }
    }
}

/// The ids that begin as asked for; if nothing is asked for, all that do not go beyond the paper.
fn wanted(paper: Paper, only: Option<&str>) -> Result<Vec<&'static str>, Error> {
    let ids = paper.known().iter().map(|known| known.id);
    let Some(only) = only else {
        let within = paper.known().iter().filter(|known| !known.is_beyond());
        return Ok(within.map(|known| known.id).collect());
    };
    let found: Vec<&'static str> = ids.clone().filter(|id| id.starts_with(only)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let group = |id: &str| id.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    let mut known: Vec<String> =
        ids.clone().filter(|id| group(id) == group(only)).map(str::to_owned).collect();
    if known.is_empty() {
        known = ids.map(group).collect();
        known.dedup();
    }
    Err(Error::UnknownId { paper, only: only.to_owned(), known: known.join(", ") })
}
