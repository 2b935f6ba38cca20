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

/// Programs that are spawned to learn what the machine can do, each time: enough for half a second or more.
const SPAWNS: usize = 2_000;
/// By how many threads for each core they are: on a busy machine more threads get more of it.
const EACH: [usize; 2] = [1, 4];
/// How long nodes are left alone before: those that have just met have a lot to say.
const SETTLE: Duration = Duration::from_secs(2);
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

/// An array that is to be run, on a grid of its own.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// Jobs of the array.
    pub jobs: u32,
    /// On how many nodes.
    pub nodes: u16,
    /// Cores that each was said to have.
    pub cores: u32,
    /// How tasks were kept to what they were granted.
    pub keep: Keep,
}

/// How fast an array was, once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// How long it took, from its submission until its end was known.
    pub seconds: f64,
    /// Jobs a second.
    pub jobs_per_s: f64,
    /// What the machine can do: the mean of just before and just after, for its speed comes and goes with what others do
    /// there.
    pub raw_per_s: f64,
    /// The one beside the other.
    pub ratio: f64,
    /// What the machine can do if each program has a cell, for tasks that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_in_cells_per_s: Option<f64>,
    /// The jobs beside that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_in_cells: Option<f64>,
    /// The part of all processor time that other machines of the same host took meanwhile, where this is one of several and
    /// the system says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
}

/// How fast an array was each time.
#[derive(Debug, Serialize)]
pub struct Speeds {
    #[serde(flatten)]
    pub plan: Plan,
    /// The time with the middle ratio.
    #[serde(flatten)]
    pub middle: Speed,
    /// All times, from the lowest ratio to the highest.
    pub rounds: Vec<Speed>,
}

impl Speeds {
    /// The lowest and the highest of figures.
    pub fn range(&self, figure: impl Fn(&Speed) -> f64) -> (f64, f64) {
        let each = self.rounds.iter().map(figure);
        each.fold((f64::INFINITY, 0.0), |(least, most), figure| (least.min(figure), most.max(figure)))
    }
}

/// Runs an array so often, each time on a new grid.
///
/// What they leave behind is handed over in `rubbish`, to be removed after all measurements.
pub fn measure(plan: Plan, rounds: u32, rubbish: &mut Vec<TempDir>, bar: &Bar) -> Result<Speeds, Error> {
    let round = |_| measure_once(plan, rubbish, bar);
    let mut rounds = (0..rounds).map(round).collect::<Result<Vec<Speed>, Error>>()?;
    rounds.sort_unstable_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let middle = *rounds.get(rounds.len() / 2).ok_or_else(|| Error::internal("no rounds"))?;
    Ok(Speeds { plan, middle, rounds })
}

fn measure_once(plan: Plan, rubbish: &mut Vec<TempDir>, bar: &Bar) -> Result<Speed, Error> {
    let Plan { jobs, nodes, cores, keep } = plan;
    let times = Times::now();
    bar.begin("spawning as fast as it goes", 1);
    let spawns = SPAWNS.min(jobs as usize);
    let (threads, raw_before) = raw_per_s_of(Bare::Open, spawns, &EACH, rubbish)?;
    let in_cells = || raw_per_s_of(Bare::InCells(Path::new(ITSELF)), spawns.div_ceil(4), &EACH, rubbish);
    let raw_in_cells = (keep == Keep::Isolated).then(in_cells).transpose()?;

    bar.begin(format!("an array on {nodes} nodes"), jobs.into());
    let shape = Shape { nodes: nodes.into(), cores, prefix: "shoal-bench-", settings: keep.settings() };
    let grid = Grid::start(shape)?;
    let client = grid.node(0).client()?;
    if nodes > 1 {
        std::thread::sleep(SETTLE);
    }
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

    bar.begin("spawning as fast as it goes", 1);
    let (_, raw_after) = raw_per_s_of(Bare::Open, spawns, &[threads], rubbish)?;
    let raw_per_s = (raw_before + raw_after) / 2.0;
    let raw_in_cells_per_s = match raw_in_cells {
        Some((threads, before)) => {
            let bare = Bare::InCells(Path::new(ITSELF));
            let (_, after) = raw_per_s_of(bare, spawns.div_ceil(4), &[threads], rubbish)?;
            Some((before + after) / 2.0)
        }
        None => None,
    };
    let seconds = took.as_secs_f64();
    let jobs_per_s = f64::from(jobs) / seconds;
    Ok(Speed {
        seconds,
        jobs_per_s,
        raw_per_s,
        ratio: jobs_per_s / raw_per_s,
        raw_in_cells_per_s,
        ratio_in_cells: raw_in_cells_per_s.map(|raw| jobs_per_s / raw),
        stolen: times.zip(Times::now()).and_then(|(before, now)| now.stolen_since(&before)),
    })
}

/// The most spawns a second, by so many threads for each core, and by how many of them that was.
fn raw_per_s_of(
    bare: Bare<'_>,
    spawns: usize,
    each: &[usize],
    rubbish: &mut Vec<TempDir>,
) -> Result<(usize, f64), Error> {
    let folder = tempfile::Builder::new().prefix("shoal-bench-").tempdir()?;
    // As every user may pass a node's folder on the way to a task's.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut best = (1, Duration::MAX);
    for &each in each {
        let took = raw::spawn(bare, spawns, each * cores, &folder.path().join(each.to_string()))?;
        if took < best.1 {
            best = (each, took);
        }
    }
    rubbish.push(folder);
    Ok((best.0, spawns as f64 / best.1.as_secs_f64()))
}

/// Processor time of this machine since its start, in whatever the system counts it in.
struct Times {
    all: u64,
    stolen: u64,
}

impl Times {
    fn now() -> Option<Times> {
        Times::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Times> {
        let times = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        // Those after the eighth are in two of the others, too.
        let times: Vec<u64> = times.take(8).map_while(|time| time.parse().ok()).collect();
        Some(Times { all: times.iter().sum(), stolen: *times.get(7)? })
    }

    fn stolen_since(&self, before: &Times) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        Some(self.stolen.saturating_sub(before.stolen) as f64 / all as f64)
    }
}

/// The first number in a sentence.
fn first_number(text: &str) -> Option<u64> {
    text.split(|letter: char| !letter.is_ascii_digit()).find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_machines_take_is_read_from_the_systems_own_count() {
        let before = Times::read("cpu  10 0 20 60 5 0 1 4 0 0\ncpu0 1 2 3\n").unwrap();
        let now = Times::read("cpu  20 0 40 90 5 0 1 44 7 7\ncpu0 1 2 3\n").unwrap();
        assert_eq!(now.stolen_since(&before), Some(0.4));
        assert_eq!(before.stolen_since(&before), None);
        assert!(Times::read("cpu  1 2 3\n").is_none() && Times::read("").is_none());
    }
}
