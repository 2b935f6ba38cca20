//! `shoal bench files`: how fast files get from node to node, and what a death in the middle costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use shoal_api::Client;
use shoal_daemon::network::quic::bare;
use shoal_model::Size;

use super::grid::figures::ends_well;
use crate::error::Error;
use crate::grid::{Grid, Member, Shape};
use crate::output::{Options, Table};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of each small file.
const SMALL: usize = 1_024;

/// What `shoal bench files` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// The size of the large file
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    size: Size,
    /// How many small files
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    small: u32,
    /// How many jobs with one input
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    jobs: u32,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Printed {
    /// Bytes of the large file.
    bytes: u64,
    /// `shoal submit` with it: read, brought to its node, submitted.
    submit_mb_per_s: f64,
    /// From one node to another, verified and durable.
    transfer_mb_per_s: f64,
    /// Over one stream of the same transport, with nothing done to the bytes.
    bare_mb_per_s: f64,
    /// `cp` on the same disk, durable.
    copy_mb_per_s: f64,
    /// Bytes that were there when the receiving node was killed.
    killed_at: u64,
    /// Bytes that came after it was started again.
    fetched_after: u64,
    /// Bytes of those that had been there.
    fetched_again: u64,
    /// How many small files, of one kilobyte each.
    small: u32,
    /// How long `shoal submit` took with them.
    small_submit_s: f64,
    /// How long they took from one node to another.
    small_transfer_s: f64,
    /// How many jobs had one input.
    jobs: u32,
    /// Its bytes.
    input_bytes: u64,
    /// Bytes that came for all of them.
    jobs_fetched: u64,
}

/// Two nodes, and a folder for what is brought.
struct Scene {
    grid: Grid,
    folder: PathBuf,
}

/// Measures.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let size = arguments.size.as_bytes();
    let mut scene = Scene::new()?;
    let large = scene.folder.join("large");
    random(&large, size, 1)?;
    let began = Instant::now();
    scene.submit(&["--in", "large"])?;
    let submitted = began.elapsed();
    let transfer = scene.await_blob(size, true)?;
    let copy = copied(&large, &scene.folder.join("copy"))?;
    let bare = bare::measure(size).map_err(Error::internal)?;

    random(&large, size, 2)?;
    scene.submit(&["--in", "large"])?;
    let place = scene.place_of(&large)?;
    scene.until(|scene| scene.partial() >= size / 2 || place.exists())?;
    scene.grid.node_mut(1).kill()?;
    // A small file may have been quicker.
    let killed_at = if place.exists() { size } else { scene.partial() };
    scene.grid.node_mut(1).up(None)?;
    scene.until(|_| place.exists())?;
    let fetched_after = fetched(scene.grid.node(1))?;

    let many = scene.folder.join("many");
    fs::create_dir(&many)?;
    for number in 0..arguments.small {
        random(&many.join(number.to_string()), SMALL as u64, u64::from(number) + 10)?;
    }
    let before = blobs(scene.grid.node(1).folder());
    let began = Instant::now();
    scene.submit(&["--in", "many"])?;
    let small_submit = began.elapsed();
    let began = Instant::now();
    scene.until(|scene| blobs(scene.grid.node(1).folder()) >= before + arguments.small as usize)?;
    let small_transfer = began.elapsed();

    let input_bytes = (size / 16).max(1 << 20);
    random(&scene.folder.join("input"), input_bytes, 3)?;
    let before = fetched(scene.grid.node(1))?;
    for _ in 0..arguments.jobs {
        scene.submit(&["--in", "input"])?;
    }
    scene.until(|scene| fetched(scene.grid.node(1)).is_ok_and(|now| now >= before + input_bytes))?;
    // What would come a second time has had time to begin.
    std::thread::sleep(Duration::from_secs(2));
    let jobs_fetched = fetched(scene.grid.node(1))? - before;

    let speed = |took: Duration| size as f64 / 1e6 / took.as_secs_f64();
    let printed = Printed {
        bytes: size,
        submit_mb_per_s: speed(submitted),
        transfer_mb_per_s: speed(transfer),
        bare_mb_per_s: speed(bare),
        copy_mb_per_s: speed(copy),
        killed_at,
        fetched_after,
        fetched_again: fetched_after.saturating_sub(size - killed_at),
        small: arguments.small,
        small_submit_s: small_submit.as_secs_f64(),
        small_transfer_s: small_transfer.as_secs_f64(),
        jobs: arguments.jobs,
        input_bytes,
        jobs_fetched,
    };
    output.print(&printed, || table(&printed))
}

impl Scene {
    fn new() -> Result<Scene, Error> {
        let grid = Grid::start(Shape { nodes: 2, cores: 1, prefix: "shoal-files-", settings: "" })?;
        let folder = grid.folder().join("files");
        fs::create_dir(&folder)?;
        Ok(Scene { grid, folder })
    }

    /// Submits a job for both nodes that starts later, so that what it brings is all that happens.
    fn submit(&self, flags: &[&str]) -> Result<(), Error> {
        let words =
            [&["submit", "--nodes", "2", "--begin", "+2h", "--time", "1m"], flags, &["--", "true"]].concat();
        let mut command = self.grid.node(0).command(&words)?;
        ends_well(&mut command.current_dir(&self.folder).spawn()?, "shoal submit")
    }

    /// Bytes of what is coming to the second node.
    fn partial(&self) -> u64 {
        let parts =
            fs::read_dir(self.grid.node(1).folder().join("depot/partial")).into_iter().flatten().flatten();
        let parts = parts.filter(|part| part.path().extension().is_none());
        parts.filter_map(|part| Some(part.metadata().ok()?.len())).max().unwrap_or(0)
    }

    /// Waits until a file of this size has come; says how long it took from its first byte on.
    fn await_blob(&self, size: u64, from_first: bool) -> Result<Duration, Error> {
        let mut began = Instant::now();
        if from_first {
            self.until(|scene| scene.partial() > 0 || scene.has(size))?;
            began = Instant::now();
        }
        self.until(|scene| scene.has(size))?;
        Ok(began.elapsed())
    }

    /// Where a file is on the second node once it has come.
    fn place_of(&self, path: &Path) -> Result<PathBuf, Error> {
        let mut hasher = blake3::Hasher::new();
        std::io::copy(&mut fs::File::open(path)?, &mut hasher)?;
        let name = hasher.finalize().to_hex().to_string();
        Ok(self.grid.node(1).folder().join("depot/blobs").join(&name[..2]).join(&name))
    }

    fn has(&self, size: u64) -> bool {
        each_blob(self.grid.node(1).folder())
            .any(|path| path.metadata().is_ok_and(|facts| facts.len() == size))
    }

    fn until(&self, holds: impl Fn(&Scene) -> bool) -> Result<(), Error> {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > PATIENCE {
                return Err(Error::internal("the files do not come"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn each_blob(home: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(home.join("depot/blobs")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.extension().is_none())
}

fn blobs(home: &Path) -> usize {
    each_blob(home).count()
}

/// Bytes that came to a node from others.
fn fetched(member: &Member) -> Result<u64, Error> {
    let client: Client = member.client()?;
    let text = client.metrics()?;
    let line = text.lines().find(|line| line.starts_with("shoal_files_fetched_bytes "));
    let count = line.and_then(|line| line.split(' ').nth(1)).and_then(|count| count.parse().ok());
    count.ok_or_else(|| Error::internal("the node does not say what it fetched"))
}

/// Writes bytes that no two files share.
fn random(path: &Path, size: u64, seed: u64) -> Result<(), Error> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = std::io::Read::take(hasher.finalize_xof(), size);
    std::io::copy(&mut bytes, &mut fs::File::create(path)?)?;
    Ok(())
}

fn copied(from: &Path, to: &Path) -> Result<Duration, Error> {
    let began = Instant::now();
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()?;
    let took = began.elapsed();
    fs::remove_file(to)?;
    Ok(took)
}

fn table(printed: &Printed) -> Table {
    let mut table = Table::new(["", "figure", "beside"]);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let mut row = |title: String, figure: String, beside: String| {
        table.row([title, figure, beside]);
    };
    let Printed { bytes, small, jobs, .. } = printed;
    row(
        format!("{:.0} MB from node to node", mb(*bytes)),
        format!("{:.0} MB/s", printed.transfer_mb_per_s),
        format!(
            "{:.0} MB/s over a bare stream, {:.0} MB/s by cp",
            printed.bare_mb_per_s, printed.copy_mb_per_s
        ),
    );
    row("brought by shoal submit".to_owned(), format!("{:.0} MB/s", printed.submit_mb_per_s), String::new());
    row(
        format!("killed at {:.0} MB", mb(printed.killed_at)),
        format!("{:.2} MB fetched again", mb(printed.fetched_again)),
        format!("{:.0} MB after the restart", mb(printed.fetched_after)),
    );
    row(
        format!("{small} small files from node to node"),
        format!("{:.1} s", printed.small_transfer_s),
        format!("{:.1} s for shoal submit", printed.small_submit_s),
    );
    row(
        format!("{jobs} jobs with one input of {:.0} MB", mb(printed.input_bytes)),
        format!("{:.0} MB fetched", mb(printed.jobs_fetched)),
        "by one node, for all".to_owned(),
    );
    table
}
