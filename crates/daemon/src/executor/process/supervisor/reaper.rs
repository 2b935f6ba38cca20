//! A thread that waits for children, and those of them that have ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use shoal_model::{Size, Span};
use shoal_protocols::node::{Exit, Usage};

use super::{Event, STACK, system};

/// The thread, which waits when it is told to, and says once that there is something to reap.
pub(super) struct Reaper {
    wait: Sender<()>,
    waiting: bool,
}

impl Reaper {
    pub fn new(events: &SyncSender<Event>) -> io::Result<Reaper> {
        let (wait, told) = mpsc::channel();
        let events = events.clone();
        thread::Builder::new().name("reaper".to_owned()).stack_size(STACK).spawn(move || {
            while let Ok(()) = told.recv() {
                // Only a look: the keeper reaps, since it knows which child is which. Without children it fails at once.
                let _ = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
                if events.send(Event::Reap).is_err() {
                    return;
                }
            }
        })?;
        Ok(Reaper { wait, waiting: false })
    }

    /// Has the thread wait for a child, if it does not already.
    pub fn wait(&mut self) {
        if !self.waiting {
            self.waiting = self.wait.send(()).is_ok();
        }
    }

    /// Notes that the thread has said something.
    pub fn has_spoken(&mut self) {
        self.waiting = false;
    }
}

/// Waits until a child has ended, whoever reaps it.
pub(super) fn await_end(pid: Pid) {
    loop {
        match waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(status) if !is_end(&status) => pass_over(&status),
            Err(Errno::EINTR) => {}
            _ => return,
        }
    }
}

/// Whether this says that a child has ended. Of one that has itself traced, the system shows that it halts to whoever waits
/// for its end.
pub(super) fn is_end(status: &WaitStatus) -> bool {
    matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..))
}

/// Has the system not show again that a child halts. It stays halted: its parent traces nobody.
pub(super) fn pass_over(status: &WaitStatus) {
    if let Some(pid) = status.pid() {
        let _ = waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
    }
}

/// Reaps a child that has ended; says how, and what it took.
pub(super) fn reap(pid: Pid, since: Instant) -> (Exit, Usage) {
    match wait4::try_wait4_pid(pid.as_raw() as u32) {
        Ok(Some(used)) => (exit_of(used.status), usage_of(&used.rusage, since.elapsed())),
        Ok(None) | Err(_) => (Exit::Lost, Usage::default()),
    }
}

/// A child that has ended and is not reaped, if there is one; `known` are children that the first thread did not fork.
pub(super) fn next_ended(known: impl Iterator<Item = Pid>) -> Option<Pid> {
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::StillAlive) => return None,
            Ok(status) if !is_end(&status) => pass_over(&status),
            Ok(status) => return status.pid(),
            // A signal without a name has ended a child, and hides which. Rare, so that asking after each will do.
            Err(Errno::EINVAL) => {
                let orphans = system::children_of_main().unwrap_or_default();
                return known.chain(orphans).find(|&pid| has_ended(pid));
            }
            Err(_) => return None,
        }
    }
}

/// Reaps a child that nobody asks after.
pub(super) fn discard(pid: Pid) {
    let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
}

/// Whether a child has ended.
pub(super) fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    matches!(
        waitid(Id::Pid(pid), flags),
        Err(Errno::EINVAL) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    )
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}

fn usage_of(usage: &wait4::ResourceUsage, wall: Duration) -> Usage {
    let span = |time: Duration| Span::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    // The system counts from the fork, when it still had the memory of this process.
    let own =
        getrusage(UsageWho::RUSAGE_SELF).map_or(0, |own| u64::try_from(own.max_rss()).unwrap_or(0) << 10);
    let memory_max = Size::from_bytes(if usage.maxrss > own { usage.maxrss } else { 0 });
    Usage { user: span(usage.utime), system: span(usage.stime), memory_max, wall: span(wall) }
}
