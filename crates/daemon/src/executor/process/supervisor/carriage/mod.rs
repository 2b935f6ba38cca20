//! Carriages: cells that quick tasks of one array ride through one after the other, instead of a cell for each.
//!
//! ```text
//! ride ── spawns ──▶ this program, as `carriage`: puts up the walls of a cell, and stays behind them
//!   │── Rider ──────▶   makes its outputs, spawns its program, waits for its end
//!   ◀────────── Rode ──   how it ended, and whether anything of it is left
//!
//! outside                               inside
//! tasks/RIDE.ride/work/TASK  ═══════▶  tasks/TASK     its working folder, where it always lies
//! tasks/RIDE.ride/tmp        ═══════▶  /tmp, /var/tmp
//! ```
//!
//! To put up walls and to take them down takes several times as long as a task that does nothing. Those of an array are
//! the same owner's and do the same, so what they share is no secret between them: the walls, and the user that they are.
//! What one of them leaves is not the next one's: its folder is moved out of the carriage when it has ended, and as soon
//! as a process, a file in `/tmp`, shared memory or a queue is left, or the carriage itself is not as it was, nobody else
//! rides in it.
//!
//! While it rides, a task's folder lies in one that it cannot change: that takes a user of its own, and so a node that runs
//! as root. When the keeper takes over a task in its ride, a link shows its folder where it is looked for, until its end.
//!
//! `line` has the words, `folder` the folders, [`inside`] the process itself.

mod folder;
pub mod inside;
mod line;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use shoal_model::Size;
use shoal_protocols::node::{Exit, Usage};

use super::{confine, reaper, system};
use crate::cell::{Cell, Failure};
use line::{hear, say};

pub(super) use folder::{Folder, dismantle, make_room, salvage};
pub(super) use line::{Rider, Rode};

/// The argument with which this program makes itself a carriage; see [`inside::main`].
pub const WORD: &str = "carriage";
/// How long one may take to stand, or to take a word.
const PATIENCE: Duration = Duration::from_secs(10);
/// The memory that it may have itself.
const MEMORY: Size = Size::from_mib(4);

/// A carriage, as its ride knows it.
pub(super) struct Carriage {
    pid: Pid,
    line: UnixStream,
}

/// A command that makes itself a carriage, and the line on which it hears which.
pub(super) fn command() -> io::Result<(Command, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(confine::ITSELF);
    command.arg(WORD).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).process_group(0).env_clear();
    Ok((command, ours))
}

impl Carriage {
    /// Hands its cell to a process that was spawned for it, and waits until its walls stand; one that does not get that far is
    /// killed.
    pub fn settle(mut child: Child, line: UnixStream, cell: &Cell) -> Result<Carriage, Failure> {
        let stands = || {
            line.set_read_timeout(Some(PATIENCE))?;
            say(&line, cell)?;
            let stands = hear::<Result<(), Failure>>(&line)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            line.set_read_timeout(None)?;
            line.set_write_timeout(Some(PATIENCE))?;
            Ok(stands)
        };
        let lost = |error: io::Error| Err(Failure::Wall(format!("it does not answer: {error}")));
        stands().unwrap_or_else(lost).inspect_err(|_| {
            // Reaped by its number, as every other.
            let _ = child.kill();
        })?;
        Ok(Carriage { pid: Pid::from_raw(child.id() as i32), line })
    }

    /// Its process, which leads a group of its own.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Has a task begin to ride. If the carriage does not take that it is ended, which is found when it is listened to.
    pub fn admit(&self, rider: &Rider) {
        if say(&self.line, rider).is_err() {
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }

    /// Waits for what has come of it.
    pub fn hear(&self) -> io::Result<Rode> {
        hear(&self.line)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Says that nobody else will ride, and waits until it has ended, whoever reaps it.
    pub fn stop(self) {
        drop(self.line);
        reaper::await_end(self.pid);
    }
}

/// What a carriage may have of memory, with a task that may have this much; nothing, if nobody counts.
pub(super) fn memory_with(task: Size) -> Size {
    match task {
        Size::ZERO => Size::ZERO,
        task => Size::from_bytes(task.as_bytes().saturating_add(MEMORY.as_bytes())),
    }
}

/// Reaps a carriage that has ended and has not said how the one in it has; says what its own end means for that one.
pub(super) fn reap_untold(carriage: Pid, folder: &Folder, since: Instant) -> (Exit, Usage) {
    let (exit, used) = reaper::reap(carriage, since);
    let exit = match exit {
        _ if !folder.was_begun() => Exit::NotStarted,
        // Of its own accord it ends in this way only if something is wrong with it.
        Exit::Code(_) => Exit::Lost,
        exit => exit,
    };
    // What it took is what all took that have ridden in it.
    (exit, Usage { wall: used.wall, ..Usage::default() })
}

/// Sends a signal to the task in a carriage, with its group; says whether there was any.
pub(super) fn signal(carriage: Pid, signal: Signal) -> bool {
    let children = system::children_of(carriage).unwrap_or_default();
    // Between the look and this the number would have to go once around to hit another process.
    children.into_iter().filter(|&child| killpg(child, signal).is_ok()).count() > 0
}
