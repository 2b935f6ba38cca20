//! The supervisor: a small process beside the daemon that starts, limits and reaps tasks, and outlives it.
//!
//! ```text
//! warden ── parent of ──▶ supervisor ── parent of ──▶ tasks, each a process group with a folder of its own
//!   waits for its end       door     daemons come, speak and go
//!                           keeper   one thread decides: what is started, stopped, has ended
//!                           spawner  threads that fork
//!                           reaper   a thread that waits for children
//!                           grants   who has which processors and GPUs
//!                           groups   control groups of tasks, where there are any
//!                           confine  cells of tasks that are not trusted
//!                           survey   a thread that looks how much room those take on disk
//!                           lines    orders that wait for a task to end
//!                           rides    such lines, run without a word of the keeper's between two tasks
//!                           carriage cells that those of them share which are not trusted
//!                           ledger   what must survive all of this
//! ```
//!
//! | who is killed | what becomes of tasks |
//! |---|---|
//! | the daemon | they run on; the next daemon adopts them, or hears how they ended |
//! | the supervisor | the warden kills them; the next supervisor says that they are lost |
//! | the warden | they run on; the supervisor works on without one |
//! | supervisor and warden | they run on until the next supervisor starts: it kills them before it takes work |
//!
//! A supervisor to which no daemon has spoken for a while, and which has nothing running, ends by itself.
//!
//! Tasks are kept to their cores and memory where [`Keep`](super::Keep) asks for it and the system can; GPUs are always
//! granted by number. Left out: a task gets a process group of its own but no session, since `posix_spawn` offers none.

pub mod carriage;
mod confine;
mod door;
mod grants;
mod groups;
mod keeper;
mod ledger;
mod lines;
mod output;
mod quick;
mod reaper;
mod rides;
mod rubbish;
mod spawner;
mod strings;
mod survey;
mod system;
mod warden;

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::prctl;
use nix::unistd::{dup2_stdin, setsid};
use shoal_protocols::node::{Exit, Task, Usage};

pub use ledger::{ENDED_FOR, ENDED_MAX};
pub(super) use spawner::{PATH, find};

use super::layout::Layout;
use super::words::{Answer, Ended, Request};
use crate::bounded;
use crate::clock::Clock;
use crate::store;
use groups::Groups;
use keeper::Keeper;
use ledger::Ledger;
use reaper::Reaper;
use rides::Rides;
use spawner::Spawner;

/// Tasks that run at once, at most; one more is not started.
pub const TASKS_MAX: usize = 4_096;
/// Tasks that wait for others to end, at most: the longest trains for 256 processors.
const WAITING_MAX: usize = 1 << 18;

/// What can wait for the keeper; whoever has more to say waits.
const EVENTS_MAX: usize = 4_096;
/// The stack of each thread: they do little, and the supervisor is to stay small.
const STACK: usize = 256 << 10;
/// How long strays may take to die.
const SWEEP: Duration = Duration::from_secs(10);

/// What reaches the keeper.
enum Event {
    /// A daemon has come.
    Came(u64, bounded::Sender<Answer>),
    Said(u64, Request),
    Gone(u64),
    /// The spawner has something, or a ride.
    Spawned,
    /// A child has ended, or there is none to wait for.
    Reap,
    /// A task has filled the room on disk that it has.
    Full(Task),
}

/// Why a supervisor ends.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot {doing} in {}: {source}", folder.display())]
    Io { doing: &'static str, folder: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Removes the control groups of a node's folder, which outlive a supervisor that was killed, if nothing is left in them.
pub fn tidy(home: &Path) {
    if let Ok(home) = home.canonicalize() {
        Groups::find(Path::new("/"), &home).clear();
    }
}

/// Supervises the tasks of the node in a folder until there is nothing to do: the whole life of a process.
///
/// What it complains about goes to standard error. It ends with 0 when its work is done or another supervisor is at it.
pub fn main(home: &Path) -> ExitCode {
    // Away from the daemon's terminal. It fails for who leads a group already, and does no harm then.
    let _ = setsid();
    if !warden::is_there() {
        let stood = warden::stand();
        tidy(home);
        return stood.map_or_else(|error| complain("warden", home, &error), ExitCode::from);
    }
    match supervise(home) {
        Ok(()) | Err(Error::Store(store::Error::Locked(_))) => ExitCode::SUCCESS,
        Err(error) => complain("supervisor", home, &error),
    }
}

/// Whether a supervisor is at work in a folder.
pub(super) fn is_at_work(home: &Path) -> io::Result<bool> {
    match File::open(home.join("supervisor/lock")).map(|lock| lock.try_lock_shared()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(Ok(())) => Ok(false),
        Ok(Err(TryLockError::WouldBlock)) => Ok(true),
        Ok(Err(TryLockError::Error(error))) => Err(error),
    }
}

/// The processes of a folder's tasks.
pub(super) fn processes(home: &Path) -> io::Result<Vec<i32>> {
    Ok(system::strays(home)?.into_iter().map(|pid| pid.as_raw()).collect())
}

fn complain(who: &str, home: &Path, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("the {who} of {} ends: {error}", home.display());
    ExitCode::FAILURE
}

fn supervise(home: &Path) -> Result<(), Error> {
    let wrong = |doing| move |source| Error::Io { doing, folder: home.to_owned(), source };
    let layout = Layout::create(home).map_err(wrong("make a folder"))?;
    let mut ledger = Ledger::open(&layout.supervisor())?;
    prctl::set_child_subreaper(true).map_err(|error| wrong("become a subreaper")(error.into()))?;
    // What its tasks are to read.
    File::open("/dev/null").and_then(|null| Ok(dup2_stdin(null)?)).map_err(wrong("read /dev/null"))?;
    system::children_of_main().map_err(wrong("list child processes"))?;

    // Before anything else runs here: what an earlier supervisor has left behind holds what others were promised.
    system::sweep(layout.home(), SWEEP).map_err(wrong("end strays"))?;
    for task in ledger.open_tasks() {
        let reason = Some("its supervisor was killed".to_owned());
        ledger.end(ended(task, Exit::Lost, reason))?;
        confine::clear(&layout, task);
    }
    ledger.sync()?;
    carriage::salvage(&layout).map_err(wrong("bring home what was in carriages"))?;

    let (events, inbox) = mpsc::sync_channel(EVENTS_MAX);
    let groups = Arc::new(Groups::find(Path::new("/"), layout.home()));
    // If the warden was killed too.
    groups.clear();
    let rides = Arc::new(Rides::new(&layout));
    let spawner = Spawner::new(&layout, &groups, &rides, &events).map_err(wrong("start threads"))?;
    let reaper = Reaper::new(&events).map_err(wrong("start threads"))?;
    let listener = listen(&layout).map_err(wrong("listen"))?;
    let survey = survey::start(&events).map_err(wrong("start threads"))?;
    door::open(listener, events).map_err(wrong("start threads"))?;
    Keeper::new(layout, ledger, spawner, reaper, groups, rides, survey).run(&inbox)?;
    Ok(())
}

/// Takes the place of any socket that is there: its owner is dead, for we have the lock.
fn listen(layout: &Layout) -> io::Result<UnixListener> {
    layout.with_socket(|path| {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        UnixListener::bind(path)
    })
}

fn ended(task: Task, exit: Exit, reason: Option<String>) -> Ended {
    let (usage, at) = (Usage::default(), Clock::new().now());
    Ended { task, exit, at, usage, stdout_dropped: 0, stderr_dropped: 0, reason }
}
