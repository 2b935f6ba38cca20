//! Arrays of jobs that do nothing, beside spawning the same program as fast as the machine can.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use shoal_api::Until;
use shoal_daemon::executor::raw::{self, Bare};
use shoal_model::{Job, Span};
use tempfile::TempDir;

use super::Bar;
use crate::commands::submit::submit_as;
use crate::error::Error;
use crate::grid::{Grid, Shape};
use crate::job::Beside;

/// Programs that are spawned to learn what the machine can do: enough for a second or more.
const SPAWNS: usize = 4_000;
/// This program, whatever its file is called.
const ITSELF: &str = "/proc/self/exe";
/// How often an array is asked after.
const LOOK: Span = Span::from_millis(500);

/// How tasks are kept to what they were granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// They are trusted.
    Trusted,
    /// They run in cells, with processors of their own, and control groups where the system allows it.
    Isolated,
}

impl Keep {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Keep::Trusted => "trusted",
            Keep::Isolated => "isolated",
        }
    }

    fn settings(self) -> &'static str {
        match self {
            Keep::Trusted => "[tasks]\npin = false\n",
            Keep::Isolated => "[tasks]\npin = true\ngroup = true\nisolate = \"all\"\n",
        }
    }
}

/// How fast an array was.
#[derive(Debug, Serialize)]
pub struct Speed {
    /// Jobs of the array.
    pub jobs: u32,
    /// On how many nodes.
    pub nodes: u16,
    /// Cores that each was said to have.
    pub cores: u32,
    /// How tasks were kept to what they were granted.
    pub keep: Keep,
    /// How long it took, from its submission until its end was known.
    pub seconds: f64,
    /// Jobs a second.
    pub jobs_per_s: f64,
    /// What the machine can do, measured just before.
    pub raw_per_s: f64,
    /// The one beside the other.
    pub ratio: f64,
    /// What the machine can do if each program has a cell, for tasks that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_in_cells_per_s: Option<f64>,
    /// The jobs beside that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_in_cells: Option<f64>,
}

/// Runs an array on a grid of its own.
///
/// What it leaves behind is handed over in `rubbish`, to be removed after all measurements.
pub fn measure(
    jobs: u32,
    nodes: u16,
    cores: u32,
    keep: Keep,
    rubbish: &mut Vec<TempDir>,
    bar: &Bar,
) -> Result<Speed, Error> {
    bar.begin("spawning as fast as it goes", 1);
    let spawns = SPAWNS.min(jobs as usize);
    let raw_per_s = raw_per_s_of(Bare::Open, spawns, rubbish)?;
    let in_cells = || raw_per_s_of(Bare::InCells(Path::new(ITSELF)), spawns.div_ceil(4), rubbish);
    let raw_in_cells_per_s = (keep == Keep::Isolated).then(in_cells).transpose()?;

    bar.begin(format!("an array on {nodes} nodes"), jobs.into());
    let shape = Shape { nodes: nodes.into(), cores, prefix: "shoal-bench-", settings: keep.settings() };
    let grid = Grid::start(shape)?;
    let client = grid.node(0).client()?;
    let indexes = format!("1-{jobs}").parse().map_err(|_| Error::internal("an array that makes no sense"))?;
    let limit = Some(Span::from_mins(1));
    let job = Job { array: Some(Box::new(indexes)), limit, ..Job::command([raw::NOTHING]) };
    let began = Instant::now();
    let id = submit_as(&grid.node(0).user(), &client, job, &Beside::default(), Span::ZERO)?.id.to_string();
    let ended = loop {
        let status = client.wait(&id, Until::Ended, LOOK)?;
        if status.state.is_over() {
            break status;
        }
        bar.at(status.reason.as_deref().and_then(first_number).unwrap_or(0));
    };
    let took = began.elapsed();
    if ended.code != Some(0) {
        return Err(Error::internal(format!("the array ended as {}", ended.reason.unwrap_or_default())));
    }
    rubbish.push(grid.end()?);
    let seconds = took.as_secs_f64();
    let jobs_per_s = f64::from(jobs) / seconds;
    Ok(Speed {
        jobs,
        nodes,
        cores,
        keep,
        seconds,
        jobs_per_s,
        raw_per_s,
        ratio: jobs_per_s / raw_per_s,
        raw_in_cells_per_s,
        ratio_in_cells: raw_in_cells_per_s.map(|raw| jobs_per_s / raw),
    })
}

/// Spawns a second, by the better of one thread and of four for each core: on a busy machine more threads get more of it.
fn raw_per_s_of(bare: Bare<'_>, spawns: usize, rubbish: &mut Vec<TempDir>) -> Result<f64, Error> {
    let folder = tempfile::Builder::new().prefix("shoal-bench-").tempdir()?;
    // As every user may pass a node's folder on the way to a task's.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut best = Duration::MAX;
    for each in [1, 4] {
        best = best.min(raw::spawn(bare, spawns, each * cores, &folder.path().join(each.to_string()))?);
    }
    rubbish.push(folder);
    Ok(spawns as f64 / best.as_secs_f64())
}

/// The first number in a sentence.
fn first_number(text: &str) -> Option<u64> {
    text.split(|letter: char| !letter.is_ascii_digit()).find_map(|word| word.parse().ok())
}
