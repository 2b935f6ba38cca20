//! `shoal bench kills`: nodes are killed at random while jobs run, and every job must end exactly once all the same.

mod check;
mod jobs;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use shoal_api::Client;
use shoal_protocols::Chance;

use crate::commands::submit::origin;
use crate::error::Error;
use crate::grid::{Grid, Member, Shape};
use crate::output::{Options, Table};
use jobs::Kind;

/// Cores of each node: some jobs run beside each other, others wait.
const CORES: u32 = 2;
/// How long a node that was killed stays away, mostly: its tasks run on, and nobody notices.
const AWAY_MS: u64 = 300;
/// One kill in so many is for longer: until others hold the node for lost.
const AWAY_LONG_EVERY: u32 = 10;
/// How long that is.
const AWAY_LONG_MS: u64 = 8_000;
/// How many nodes may be away at once, of so many: the others have to carry on.
const AWAY_MOST_OF: usize = 2;
/// Between two attempts to hand a job to a node that was killed under it.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a job may take to be handed over.
const PATIENCE: Duration = Duration::from_secs(120);

const UNPOISONED: &str = "a thread that panics ends the program";

/// What `shoal bench kills` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Kill so often
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    kills: u32,
    /// Submit so many jobs
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,
    /// Have this many nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(3..=64))]
    nodes: u16,
    /// Kill so many supervisors besides, with all that they run
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    supervisors: u32,
    /// Draw all chance from this seed; the machine's own stays
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct Account {
    seed: u64,
    nodes: u16,
    jobs: u32,
    /// Daemons that were killed and started again.
    kills: u32,
    /// Supervisors that were killed besides.
    supervisors: u32,
    seconds: f64,
    /// Submissions that had to be made again because the node died under them.
    again: u32,
    /// Jobs that ended well.
    finished: u32,
    /// Jobs that must not run twice, and whose node was lost.
    lost: u32,
    /// Jobs that were placed more than once.
    replaced: u32,
    /// Starts of tasks that were seen.
    starts: u32,
    /// What is not as it must be.
    problems: Vec<String>,
}

/// A node that a killer and those who submit share.
struct Place {
    member: Mutex<Member>,
    /// Nobody kills it at the moment.
    up: AtomicBool,
}

/// Runs the jobs, kills the nodes, and looks whether all is as it must be.
pub fn run(arguments: &Arguments, output: Options) -> Result<(), Error> {
    let bar = ProgressBar::new((arguments.kills + arguments.jobs).into());
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs and kills  {msg}  {elapsed}");
    bar.set_style(style.expect("a template that makes sense"));
    let account = rehearse(arguments, &bar)?;
    bar.finish_and_clear();
    output.print(&account, || table(&account))?;
    match account.problems.len() {
        0 => Ok(()),
        count => Err(Error::internal(format!("{count} things are not as they must be"))
            .hint(format!("again with --seed {}", account.seed))),
    }
}

fn rehearse(arguments: &Arguments, bar: &ProgressBar) -> Result<Account, Error> {
    let &Arguments { kills, jobs, nodes, supervisors, seed } = arguments;
    let began = Instant::now();
    let shape = Shape { nodes: nodes.into(), cores: CORES, prefix: "shoal-kills-", settings: "" };
    let mut grid = Grid::start(shape)?;
    jobs::sign_for(origin(&grid.node(0).client()?)?);
    let effects = grid.folder().join("effects");
    std::fs::create_dir(&effects)?;
    let mut chance = Chance::seed_from_u64(seed);
    let drawn: Vec<Kind> = (0..jobs).map(|_| Kind::draw(&mut chance, nodes)).collect();
    let places: Vec<Place> = grid
        .take()
        .into_iter()
        .map(|member| Place { member: Mutex::new(member), up: AtomicBool::new(true) })
        .collect();
    let again = AtomicU32::new(0);
    let mut accepted = Vec::new();
    let killed = AtomicU32::new(0);

    let told = thread::scope(|scope| {
        let killer_chance = Chance::seed_from_u64(seed ^ 0x6b69_6c6c);
        let (places, killed) = (&places, &killed);
        let killer = scope.spawn(move || killing(places, kills, supervisors, killer_chance, killed, bar));
        let mut submitting = || -> Result<(), Error> {
            for (number, kind) in (0_u32..).zip(&drawn) {
                let entry = chance.random_range(0..places.len());
                let job = submit(&places[entry], *kind, number, &effects, &again)?;
                accepted.push((entry, job, *kind));
                bar.inc(1);
                // Jobs come as long as there are kills to come: so that each kill hits some.
                let due = u64::from(number) * u64::from(kills) / u64::from(jobs);
                while u64::from(killed.load(Ordering::SeqCst)) < due && !killer.is_finished() {
                    thread::sleep(PAUSE);
                }
            }
            Ok(())
        };
        let submitted = submitting();
        let killing = killer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        submitted.and(killing)
    });
    grid.put_back(places.into_iter().map(|place| place.member.into_inner().expect(UNPOISONED)).collect());
    told?;
    bar.set_message("waiting for the rest, and looking at what is left");
    let mut account = Account {
        seed,
        nodes,
        jobs,
        kills: killed.load(Ordering::SeqCst),
        supervisors,
        again: again.load(Ordering::SeqCst),
        ..Account::default()
    };
    check::jobs(&grid, &accepted, &effects, &mut account)?;
    check::nothing_left(&mut grid, &accepted, &mut account)?;
    account.seconds = began.elapsed().as_secs_f64();
    Ok(account)
}

/// Kills and starts again: some nodes are away at any time, most of them for a moment.
fn killing(
    places: &[Place],
    kills: u32,
    mut supervisors: u32,
    mut chance: Chance,
    killed: &AtomicU32,
    bar: &ProgressBar,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let mut away = Vec::new();
        for number in 0..kills {
            let up: Vec<&Place> = places.iter().filter(|place| place.up.load(Ordering::SeqCst)).collect();
            let victim = up[chance.random_range(0..up.len())];
            let long = chance.random_range(0..AWAY_LONG_EVERY) == 0;
            let most = if long { AWAY_LONG_MS } else { AWAY_MS };
            let absence = Duration::from_millis(chance.random_range(0..=most));
            // Spread over what is left, so that none comes with nothing to kill.
            let with_supervisor = chance.random_range(0..kills - number) < supervisors;
            supervisors -= u32::from(with_supervisor);
            victim.up.store(false, Ordering::SeqCst);
            away.push(scope.spawn(move || replace(victim, absence, with_supervisor)));
            killed.fetch_add(1, Ordering::SeqCst);
            bar.inc(1);
            thread::sleep(Duration::from_millis(chance.random_range(0..=AWAY_MS / 2)));
            while places.iter().filter(|place| !place.up.load(Ordering::SeqCst)).count()
                >= places.len() / AWAY_MOST_OF
            {
                thread::sleep(PAUSE);
                if away.iter().any(|thread| thread.is_finished()) {
                    away = gathered(away)?;
                }
            }
        }
        for thread in away {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })
}

type Away<'scope> = thread::ScopedJoinHandle<'scope, Result<(), Error>>;

/// Those that are still away; an error of one that is back goes on here.
fn gathered(away: Vec<Away<'_>>) -> Result<Vec<Away<'_>>, Error> {
    let (back, away): (Vec<_>, Vec<_>) = away.into_iter().partition(|thread| thread.is_finished());
    for thread in back {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    Ok(away)
}

fn replace(victim: &Place, absence: Duration, with_supervisor: bool) -> Result<(), Error> {
    let mut member: MutexGuard<'_, Member> = victim.member.lock().expect(UNPOISONED);
    member.kill()?;
    if with_supervisor {
        for pid in member.supervisors() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    thread::sleep(absence);
    let started = member.up(None);
    drop(member);
    victim.up.store(true, Ordering::SeqCst);
    started
}

/// Hands a job to a node, again and again as long as the node dies under it: the same job each time.
fn submit(
    place: &Place,
    kind: Kind,
    number: u32,
    effects: &std::path::Path,
    again: &AtomicU32,
) -> Result<shoal_model::JobId, Error> {
    let envelope = kind.envelope(number, effects)?;
    let began = Instant::now();
    loop {
        // Not locked while it is asked: it is to die under the question, too.
        let client: Result<Client, Error> = match place.member.try_lock() {
            Ok(member) => member.client(),
            Err(_) => Err(Error::internal("it is being killed")),
        };
        match client.and_then(|client| Ok(client.submit(&envelope, shoal_model::Span::ZERO)?)) {
            Ok(status) => return Ok(status.id),
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            Err(_) => {
                again.fetch_add(1, Ordering::SeqCst);
                thread::sleep(PAUSE);
            }
        }
    }
}

fn table(account: &Account) -> Table {
    let mut table = Table::new(["", ""]);
    let Account {
        seed,
        nodes,
        jobs,
        kills,
        supervisors,
        seconds,
        again,
        finished,
        lost,
        replaced,
        starts,
        ..
    } = account;
    let rows = [
        (format!("{nodes} nodes, seed {seed}"), format!("{seconds:.1} s")),
        ("daemons killed".to_owned(), kills.to_string()),
        ("supervisors killed".to_owned(), supervisors.to_string()),
        ("jobs".to_owned(), jobs.to_string()),
        ("  submitted again, as a node died".to_owned(), again.to_string()),
        ("  finished".to_owned(), finished.to_string()),
        ("  lost, as they must not run twice".to_owned(), lost.to_string()),
        ("  placed more than once".to_owned(), replaced.to_string()),
        ("tasks started".to_owned(), starts.to_string()),
        ("problems".to_owned(), account.problems.len().to_string()),
    ];
    for (title, figure) in rows {
        table.row([title, figure]);
    }
    for problem in account.problems.iter().take(20) {
        table.row([format!("  {problem}"), String::new()]);
    }
    table
}
