//! How long a submission takes, and how long until the job runs: from the start of the command on, as a user waits.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::Serialize;

use super::figures::{Spread, ends_well, submits};
use super::{Arguments, Bar};
use crate::commands::wait::until_over;
use crate::error::Error;
use crate::grid::{Grid, Member, Shape};

/// How long a job may take to run.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon jobs of one size ran.
#[derive(Debug, Serialize)]
pub struct Start {
    /// On how many nodes together.
    pub nodes: u16,
    /// From the start of the command until the last rank has said something.
    #[serde(flatten)]
    pub spread: Spread,
}

/// Measures both: single jobs on a grid of one, gangs on one that is as large as the largest of them.
pub fn measure(sizes: &Arguments, bar: &Bar) -> Result<(Spread, Vec<Start>), Error> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let shape = Shape { nodes: 1, cores, prefix: "shoal-bench-", settings: "" };
    let grid = Grid::start(shape.clone())?;
    bar.begin("shoal submit", sizes.submits.into());
    let submit = submits(grid.node(0), &[], sizes.submits, || bar.step())?;
    settle(grid.node(0))?;
    let mut starts = vec![starts(&grid, 1, sizes.starts, bar)?];
    drop(grid);
    for &nodes in sizes.gangs.iter().filter(|&&gang| gang >= 2 && gang <= sizes.nodes.max(16)) {
        let grid = Grid::start(Shape { nodes: nodes.into(), cores: 1, ..shape.clone() })?;
        starts.push(self::starts(&grid, nodes, sizes.starts, bar)?);
    }
    Ok((submit, starts))
}

/// Waits until nothing is open any more.
fn settle(member: &Member) -> Result<(), Error> {
    let client = member.client()?;
    let began = Instant::now();
    while !client.queue(&Default::default())?.jobs.is_empty() {
        if began.elapsed() > PATIENCE {
            return Err(Error::internal("jobs that do nothing do not end"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn starts(grid: &Grid, nodes: u16, count: u32, bar: &Bar) -> Result<Start, Error> {
    bar.begin(format!("submit to running, {nodes} nodes"), count.into());
    let path = grid.folder().join(format!("said-{nodes}"));
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)
        .map_err(|error| Error::internal(format!("cannot make a pipe: {error}")))?;
    let said = listen(&path)?;
    let script = format!("echo $SHOAL_JOB_ID > '{}'", path.display());
    let size = nodes.to_string();
    let words = ["--json", "submit", "--nodes", &size, "--time", "1m", "--", "sh", "-c", &script];
    let client = grid.node(0).client()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let mut command = grid.node(0).command(&words)?;
        let began = Instant::now();
        let mut child = command.spawn()?;
        let (mut last, mut job) = (began, String::new());
        for _ in 0..nodes {
            let wrong = |_| Error::internal("a job was submitted, and does not run");
            (last, job) = said.recv_timeout(PATIENCE).map_err(wrong)?;
        }
        times.push(last - began);
        ends_well(&mut child, "shoal submit")?;
        until_over(&client, &job)?;
        bar.step();
    }
    Ok(Start { nodes, spread: Spread::of(times) })
}

/// Hears what tasks say, and when.
fn listen(path: &Path) -> Result<Receiver<(Instant, String)>, Error> {
    // Open for both: who reads alone would hear the end of it whenever the last writer leaves.
    let pipe = File::options().read(true).write(true).open(path)?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("pipe".to_owned()).spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
