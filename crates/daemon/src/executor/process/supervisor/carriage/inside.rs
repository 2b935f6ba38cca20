//! The process of a carriage: behind its walls it runs one task after the other, and looks for what they leave.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::Mode;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, dup2_stdin};
use shoal_protocols::node::Exit;

use super::super::{output, reaper, system};
use super::{Rider, Rode, hear, say};
use crate::cell::{self, Cell, Failure};

/// Where tasks could leave files that the next would find, besides their own folders.
const FOLDERS: [&str; 3] = ["/tmp", "/dev/shm", "/dev/mqueue"];
/// Where the system lists what else processes share by names, each with a line above.
const TABLES: [&str; 3] = ["/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"];

/// Makes this process a carriage: the whole life of a process that is called with [`super::WORD`].
///
/// It is told on standard input, which is a socket; when that is closed it ends.
pub fn main() -> ExitCode {
    // It ends with the line, or with who has forked it: nobody hears what it has to say then.
    serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn serve() -> io::Result<()> {
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(cell) = hear::<Cell>(&line)? else { return Ok(()) };
    let stands = stand(&cell);
    let failed = stands.as_ref().err().cloned();
    say(&line, &failed.map_or(Ok(()), Err))?;
    let Ok(mut traces) = stands else { return Ok(()) };
    while let Some(rider) = hear::<Rider>(&line)? {
        let since = Instant::now();
        let rode = match begin(&rider, &cell) {
            Ok(leader) => see_off(leader, since, &mut traces),
            Err(failure) => Rode::Failed(failure),
        };
        say(&line, &rode)?;
    }
    Ok(())
}

/// Puts the walls up, and takes what tasks could use against those that come after them.
fn stand(cell: &Cell) -> Result<Traces, Failure> {
    cell::put_up_walls(cell)?;
    let wall = |error: nix::Error| Failure::Wall(format!("its carriage is not safe: {}", error.desc()));
    // They are the same user as this: none is to look into it.
    prctl::set_dumpable(false).map_err(wall)?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(wall)?;
    // Whatever loses its parent is found.
    prctl::set_child_subreaper(true).map_err(wall)?;
    let nothing = |error: io::Error| Failure::Wall(format!("cannot open /dev/null: {error}"));
    let null = File::open("/dev/null").map_err(nothing)?;
    dup2_stdin(null).map_err(wall)?;
    Traces::find().map_err(wall)
}

/// Starts a task; says which process leads it.
fn begin(rider: &Rider, cell: &Cell) -> Result<Pid, Failure> {
    let wrong = |error: io::Error| Failure::Wall(format!("cannot make its files: {error}"));
    let [stdout, stderr] = output::NAMES.map(|name| output::create(&rider.folder.join(name)));
    let (stdout, stderr) = (stdout.map_err(wrong)?, stderr.map_err(wrong)?);
    if let Some(text) = &rider.script {
        let path = rider.folder.join("script");
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(wrong)?;
    }
    let mut command = Command::new(&rider.program);
    if let Some((name, arguments)) = rider.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env_clear().envs(cell::split(&rider.environment)).current_dir(&rider.folder).process_group(0);
    let child = command.stdin(Stdio::inherit()).stdout(stdout).stderr(stderr).spawn();
    // Reaped by its number: letting go of the handle does nothing to the child.
    let child = child.map_err(|error| cell::not_run(&error, &rider.program, cell))?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// Waits for the end of a task, and ends what is left of its group.
fn see_off(leader: Pid, since: Instant, traces: &mut Traces) -> Rode {
    await_end(leader);
    // While the leader is not reaped, the number of its group is nobody else's.
    let _ = killpg(leader, Signal::SIGKILL);
    let (exit, usage) = reaper::reap(leader, since);
    // One that the system has killed may have had more memory than it has: that is to be looked into.
    let clean = exit != Exit::Signal(Signal::SIGKILL as i32) && is_alone() && traces.are_none();
    Rode::Ended { exit, usage, clean }
}

/// Waits until a child has ended, and reaps the others that have.
fn await_end(leader: Pid) {
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(ended) if ended.pid() == Some(leader) => return,
            Ok(ended) => ended.pid().into_iter().for_each(reaper::discard),
            Err(Errno::EINTR) => {}
            // A signal without a name has ended a child, and hides which.
            Err(_) if reaper::has_ended(leader) => return,
            Err(_) => {
                let children = system::children_of_main().unwrap_or_default();
                children.into_iter().filter(|&child| child != leader).for_each(reaper::discard);
            }
        }
    }
}

/// Whether no child is left, once those that have ended are reaped.
fn is_alone() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Err(Errno::ECHILD) => return true,
            // One was reaped, or something came between.
            _ => {}
        }
    }
}

/// Where traces of tasks would be, with what is there before any.
struct Traces {
    /// The names in each.
    folders: Vec<(Dir, Vec<CString>)>,
    /// The length of each.
    tables: Vec<(File, usize)>,
}

impl Traces {
    /// Those of a cell in which nothing has run. What the system does not have holds nothing.
    fn find() -> nix::Result<Traces> {
        let mut traces = Traces { folders: Vec::new(), tables: Vec::new() };
        for place in FOLDERS {
            match Dir::open(place, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) {
                Err(Errno::ENOENT) => {}
                opened => {
                    let mut folder = opened?;
                    // Beneath `/tmp` there is the task's own folder, where the node's lies there.
                    let names = folder.iter().map(|entry| Ok(entry?.file_name().to_owned()));
                    let names = names.collect::<nix::Result<_>>()?;
                    traces.folders.push((folder, names));
                }
            }
        }
        for table in TABLES.into_iter().filter_map(|table| File::open(table).ok()) {
            let length = length(&table).unwrap_or(0);
            traces.tables.push((table, length));
        }
        Ok(traces)
    }

    fn are_none(&mut self) -> bool {
        let is_as_before = |(folder, names): &mut (Dir, Vec<CString>)| {
            let is_old = |name: &CStr| names.iter().any(|old| **old == *name);
            folder.iter().all(|entry| entry.is_ok_and(|entry| is_old(entry.file_name())))
        };
        self.tables.iter().all(|(table, before)| length(table).is_ok_and(|length| length == *before))
            && self.folders.iter_mut().all(is_as_before)
    }
}

/// How long the beginning of a table is: it is longer with each entry.
fn length(table: &File) -> io::Result<usize> {
    table.read_at(&mut [0; 1024], 0)
}
