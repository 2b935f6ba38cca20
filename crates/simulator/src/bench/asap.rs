//! How long the recipe `asap` takes on the grid of its paper: months of push, a day of polls.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use shoal_protocols::node::Node;
use shoal_protocols::node::config::Recipe;
use shoal_protocols::scheduling::asap::{Policy, Tally};

use super::memory;
use crate::checks::Violation;
use crate::grid::Grid;
use crate::reproduce::ASAP_SCENARIOS;
use crate::run::{Progress, Run, Watch};
use crate::scenario::{Error, Scenario};
use crate::workload::{Source, Trace, Window};

/// How much work there is.
#[derive(Clone, Debug)]
pub struct Size {
    /// How calendars get from node to node.
    pub policy: Policy,
    /// Nodes.
    pub nodes: u32,
    /// Days in which jobs come.
    pub days: u32,
    /// Jobs of this file, from its start, in place of drawn ones.
    pub trace: Option<PathBuf>,
}

/// How long it took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Jobs submitted.
    pub jobs: usize,
    /// Schedules carried, as the paper counts them.
    pub schedules_carried: u64,
    /// Inputs that nodes handled.
    pub inputs: u64,
    /// Seconds of real time.
    pub elapsed_s: f64,
    /// Inputs in a second.
    pub inputs_per_s: f64,
    /// The most memory that this process ever had, in bytes; none where the system does not tell.
    pub peak_bytes: Option<u64>,
}

/// Lets jobs come for so many days, and runs until these days are over.
pub fn run(size: &Size) -> Result<Speed, Error> {
    let Size { policy, nodes, days, trace } = size;
    let policy = match policy {
        Policy::Push => "push",
        Policy::Pull => "pull",
        Policy::Poll => "poll",
    };
    let changes = format!(
        "nodes = {nodes}\nlength = \"{}h\"\nrecipe.policy = \"{policy}\"\nworkload.days = {days}\n",
        24 * days
    );
    let mut scenario = Scenario::built_in(ASAP_SCENARIOS, "fig4a", &changes)?;
    if let Some(file) = trace {
        let mut trace = Trace { nodes: NonZeroU32::new(*nodes), ..Trace::new(file) };
        trace.change.window = Some(Window { start_days: 0.0, length_days: f64::from(*days), piece: None });
        scenario.workload = Source::Trace(trace);
    }
    let run: Run<Node> = Run::prepare(&scenario, 1)?;
    let mut carried = Carried(Tally::default());
    let begun = Instant::now();
    let outcome = run.finish(&mut carried).expect("nobody checks");
    let elapsed_s = begun.elapsed().as_secs_f64();
    let inputs = outcome.summary.inputs;
    let Recipe::Asap(recipe) = scenario.recipe else { unreachable!("the scenario follows asap") };
    Ok(Speed {
        jobs: outcome.summary.jobs,
        schedules_carried: carried.0.cost(&recipe),
        inputs,
        elapsed_s,
        inputs_per_s: inputs as f64 / elapsed_s,
        peak_bytes: memory::peak(),
    })
}

/// What was carried by the end.
struct Carried(Tally);

impl Watch for Carried {
    fn pause(&mut self, grid: &mut Grid, progress: Progress) -> Result<(), Violation> {
        if progress.now >= progress.until || progress.ended == progress.jobs {
            self.0 = grid.schedules_carried();
        }
        Ok(())
    }
}
