//! A thread that waits for children, and those of them that have ended.

use std::io;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

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

/// A child that has ended and is not reaped, if there is one; `known` are children that the first thread did not fork.
pub(super) fn next_ended(known: impl Iterator<Item = Pid>) -> Option<Pid> {
    match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG) {
        Ok(status) => status.pid(),
        // A signal without a name has ended a child, and hides which. Rare, so that asking after each will do.
        Err(Errno::EINVAL) => {
            let orphans = system::children_of_main().unwrap_or_default();
            known.chain(orphans).find(|&pid| has_ended(pid))
        }
        Err(_) => None,
    }
}

/// Reaps a child that nobody asks after.
pub(super) fn discard(pid: Pid) {
    let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
}

fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    matches!(
        waitid(Id::Pid(pid), flags),
        Err(Errno::EINVAL) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    )
}
