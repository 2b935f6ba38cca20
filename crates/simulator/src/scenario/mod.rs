//! A run as a file describes it: nodes, machines, network, overlay, recipe, workload, faults, length and seed.
//!
//! ```toml
//! about = "what this shows"
//! like = "skeleton"               # the file of that name in the same folder; what stands here comes over it
//! nodes = 64
//! seed = 1
//! length = "2h"                   # at most; a run ends as soon as every job has
//! recipe = "sample"               # or a table: name = "sample", and its settings
//! start = "join"                  # or "graph": everybody knows somebody from the start
//! faults = "light"                # or a table: preset = "light", and what differs
//!
//! [[machines]]                    # dealt out in turn
//! share = 3
//! capacity = { cores = 4 }
//! speed = 1.5                     # beside the baseline, which is 1: see below
//!
//! [network]
//! latency = { model = "uniform", min_ms = 10, max_ms = 200 }
//!
//! [workload]
//! kind = "poisson"
//!
//! [slots]                         # time is cut: jobs are as long as whole slots, and due when one begins
//! length = "60s"
//! ```
//!
//! What jobs say to take on the baseline machine (those of the workloads `aria` and `desktop`) takes that divided by a
//! machine's speed. Jobs that only ask for time take as long on any machine: they were measured, or drawn, as they are.
//!
//! A trace in the place of drawn jobs is changed as those were. Whatever is wrong is said in one line that names file,
//! line, column, field and what would be right. Files that a scenario names are looked for beside the scenario that names
//! them.

mod document;
mod error;
mod settings;

use std::path::{Path, PathBuf};

use shoal_model::{Machine, Span};
use shoal_protocols::commit::two_phase;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::overlay;

pub use document::{Place, Places};
pub use error::Error;

use crate::grid::Start;
use crate::workload::{Length, Slots, Source};
use crate::{faults, network};
use document::{Shelf, Sources};

/// A run, ready to be made.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's name without its ending.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: Option<String>,
    /// From which all chance flows.
    pub seed: u64,
    /// Nodes at the start.
    pub nodes: usize,
    /// What the machines are; the list is gone round.
    pub machines: Vec<Machine>,
    /// How messages travel.
    pub network: network::Config,
    /// How nodes come to know each other.
    pub overlay: overlay::Config,
    /// Whom they know at the start.
    pub start: Start,
    /// How jobs find their places.
    pub recipe: Recipe,
    /// How placements are committed.
    pub commit: two_phase::Config,
    /// How failures are noticed.
    pub heartbeat: heartbeat::Config,
    /// Whether plans get better while jobs wait, or never move.
    pub eager: bool,
    /// How long a write takes to become durable.
    pub fsync: Span,
    /// Which jobs come when.
    pub workload: Source,
    /// How time is cut, if it is.
    pub slots: Option<Slots>,
    /// What goes wrong.
    pub faults: faults::Config,
    /// How long the nodes have the grid to themselves before jobs come.
    pub warm_up: Span,
    /// What the hard limit of a job has beyond the time that its user asked for: to save a start takes a moment.
    pub limit_slack: Span,
    /// How long jobs come and run, at most; as long as it takes if not said.
    pub length: Option<Span>,
    /// Where each field was written.
    pub places: Places,
    /// The whole as it was read, with what it builds on and the command line: a scenario file again.
    pub text: String,
}

/// What the command line says in place of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// How many nodes.
    pub nodes: Option<u64>,
    /// Which recipe; its settings stay if the file has the same one.
    pub recipe: Option<String>,
    /// Which seed.
    pub seed: Option<u64>,
    /// Which trace; how it is read stays if the file has a trace.
    pub trace: Option<PathBuf>,
    /// Of that trace: how long its jobs take.
    pub length: Option<Length>,
    /// Of that trace: whether lines that cannot be read are passed over.
    pub drop_bad_lines: bool,
    /// Which preset of faults.
    pub faults: Option<String>,
    /// Other settings by name, such as `overlay.cache`, and their values in the words of a scenario.
    pub set: Vec<(String, String)>,
}

impl Scenario {
    /// Reads a scenario with what it builds on, and what the command line says in its place.
    pub fn load(file: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
        let sources = Sources::gather(Shelf::Disk, file, &[&overrides.settings(), &overrides.text()])?;
        settings::read(sources.merge()?, name(file))
    }

    /// Reads a scenario that is part of the program, with changes in the words of a scenario put over it.
    pub fn built_in(library: Library, name: &str, changes: &str) -> Result<Scenario, Error> {
        let file = PathBuf::from(format!("{name}.toml"));
        let sources = Sources::gather(Shelf::BuiltIn(library), &file, &[changes])?;
        settings::read(sources.merge()?, name.to_owned())
    }
}

impl Scenario {
    /// How many others a node knows, about.
    pub fn degree(&self) -> usize {
        match &self.overlay {
            overlay::Config::Cyclon(cyclon) => usize::from(cyclon.cache),
            // What its ants settle at.
            overlay::Config::BlatantS(_) => 4,
            // As many as zones touch one, on average.
            overlay::Config::Can(_) => 12,
        }
    }
}

/// Scenarios that are part of the program: names and texts.
pub type Library = &'static [(&'static str, &'static str)];

impl Overrides {
    /// The overrides as the text of a scenario.
    fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut lines = Vec::new();
        lines.extend(self.nodes.map(|nodes| format!("nodes = {nodes}\n")));
        lines.extend(self.seed.map(|seed| format!("seed = {seed}\n")));
        lines.extend(self.recipe.as_deref().map(|recipe| format!("recipe = {}\n", quoted(recipe))));
        lines.extend(self.faults.as_deref().map(|faults| format!("faults = {}\n", quoted(faults))));
        let length = self.length.map(|length| match length {
            Length::Requested => ", length = \"requested\"",
            Length::Run => ", length = \"run\"",
        });
        let dropped = self.drop_bad_lines.then_some(", bad_lines = \"drop\"");
        let how: String = length.into_iter().chain(dropped).collect();
        let trace = |trace: &PathBuf| {
            let file = quoted(&trace.to_string_lossy());
            format!("workload = {{ kind = \"trace\", file = {file}{how} }}\n")
        };
        lines.extend(self.trace.as_ref().map(trace));
        lines.concat()
    }

    /// The other settings as the text of a scenario.
    fn settings(&self) -> String {
        self.set.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
    }
}

fn name(file: &Path) -> String {
    file.file_stem().map_or_else(|| "scenario".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
