//! The warden: the supervisor's parent, which does nothing but wait for its end, and then ends all that it leaves behind.
//!
//! Whoever loses its parent is given to the nearest *subreaper* above: tasks that fork and forget to the supervisor, and
//! when that one dies, all of its tasks to the warden, however they hid. So a task dies with its supervisor without having
//! been asked to (a death signal would take code between fork and exec, which costs the cheap kind of fork).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{getpid, getppid};

use super::system;

/// Tells the supervisor that it has a warden, and which.
const WARDEN: &str = "SHOAL_WARDEN";
/// Between two looks at processes that were killed and have not died yet.
const PAUSE: Duration = Duration::from_millis(2);

/// Whether this process was started by a warden.
pub(super) fn is_there() -> bool {
    std::env::var(WARDEN).is_ok_and(|pid| pid == getppid().to_string())
}

/// Starts this program again as the supervisor, and stays until nothing is left of it. Returns its exit code.
pub(super) fn stand() -> io::Result<u8> {
    prctl::set_child_subreaper(true)?;
    let mut supervisor = Command::new("/proc/self/exe")
        .arg0("shoal")
        .args(std::env::args_os().skip(1))
        .env(WARDEN, getpid().to_string())
        .spawn()?;
    let status = supervisor.wait()?;
    end_orphans()?;
    Ok(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
}

/// Kills all descendants: each that dies hands us its children.
fn end_orphans() -> io::Result<()> {
    loop {
        for pid in system::children_of_main()? {
            let _ = kill(pid, Signal::SIGKILL);
        }
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Ok(WaitStatus::StillAlive) => thread::sleep(PAUSE),
            Ok(_) | Err(_) => {}
        }
    }
}
