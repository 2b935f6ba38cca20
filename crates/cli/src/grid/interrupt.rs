//! A grid that is told to end, by Ctrl-C or by a signal to its maker, takes all that it started along.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shoal_daemon::executor::process;
use tokio::signal::unix::{SignalKind, signal};

use super::running;
use crate::error::Error;

/// How long processes may take to be gone once they were killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The folders of all grids of this process. Whoever ends them keeps it until the process is over.
static GRIDS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A grid that is ended with this process; dropped once it has ended by itself.
pub struct Minded(PathBuf);

impl Minded {
    /// From now on a signal to this process ends all processes of the grid in `folder` and removes the folder.
    pub fn new(folder: &Path) -> Result<Minded, Error> {
        static LISTENS: OnceLock<()> = OnceLock::new();
        let mut grids = hold();
        if LISTENS.get().is_none() {
            listen()?;
            let _ = LISTENS.set(());
        }
        grids.push(folder.to_owned());
        Ok(Minded(folder.to_owned()))
    }
}

impl Drop for Minded {
    fn drop(&mut self) {
        hold().retain(|folder| *folder != self.0);
    }
}

/// Nothing ends the grids while this is held, so that a process which is just being started is not overlooked. Not had any
/// more once they are being ended: whoever asks then waits until the process is over, and has nothing to say of what fails
/// meanwhile.
pub fn hold() -> MutexGuard<'static, Vec<PathBuf>> {
    GRIDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut heard = {
        let _inside = runtime.enter();
        let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        // Who was started to go on without a terminal does.
        let signals = signals.into_iter().filter(|&signal| !is_ignored(signal));
        let heard = signals.map(|kind| Ok((kind, signal(SignalKind::from_raw(kind as i32))?)));
        heard.collect::<Result<Vec<_>, std::io::Error>>()?
    };
    thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
        let any = std::future::poll_fn(|ctx| {
            let told = heard.iter_mut().find_map(|(kind, stream)| match stream.poll_recv(ctx) {
                std::task::Poll::Ready(Some(())) => Some(*kind),
                std::task::Poll::Ready(None) | std::task::Poll::Pending => None,
            });
            told.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        let signal = runtime.block_on(any);
        let grids = hold();
        // Whoever closed the terminal does not read it.
        let _ = writeln!(std::io::stderr(), "ends all nodes");
        for folder in grids.iter() {
            end_all(folder);
            let _ = std::fs::remove_dir_all(folder);
        }
        std::process::exit(128 + signal as i32);
    })?;
    Ok(())
}

/// Whether this process was started with a signal ignored, as `nohup` does.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as i32 - 1) & 1 == 1
}

fn end_all(folder: &Path) {
    let began = Instant::now();
    loop {
        let left = processes(folder);
        if left.is_empty() || began.elapsed() > PATIENCE {
            return;
        }
        for pid in left {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        thread::sleep(PAUSE);
    }
}

/// All nodes, supervisors and tasks of a grid.
fn processes(folder: &Path) -> Vec<i32> {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut found = running(|mut words| {
        words.any(|word| {
            let word = Path::new(OsStr::from_bytes(word));
            word.starts_with(folder) || word.starts_with(&real)
        })
    });
    // Somebody may read a log there.
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    found.retain(|pid| program(&pid.to_string()) == own);
    let members = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let tasks = members.filter(|path| path.is_dir()).filter_map(|member| process::seen(&member).ok());
    found.extend(tasks.flat_map(|seen| seen.processes));
    found
}
