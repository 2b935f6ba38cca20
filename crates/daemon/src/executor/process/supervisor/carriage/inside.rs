//! The process of a carriage: behind its walls it runs one task after the other, and looks for what they leave.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, rlim_t};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{FsType, fstatfs};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, chdir, dup2_stdin};
use shoal_protocols::node::Exit;

use super::super::quick::{Common, Spawn, Unspawned};
use super::super::{reaper, system};
use super::line::{Rider, Rode, hear, say};
use crate::cell::{self, Cell, Failure};

/// Where tasks could leave files that the next would find, besides their own folders.
const FOLDERS: [&str; 3] = ["/tmp", "/dev/shm", QUEUES];
/// Where message queues are seen, what the system calls them, and the number of a file system of them.
const QUEUES: &str = "/dev/mqueue";
const QUEUE: &str = "mqueue";
const QUEUE_MAGIC: FsType = FsType(0x1980_0202);
/// Where the system lists what else processes share by names, each with a line above.
const TABLES: [&str; 3] = ["/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"];
/// What a process may have, and hands down to those that it starts.
const LIMITS: [Resource; 15] = [
    Resource::RLIMIT_AS,
    Resource::RLIMIT_CORE,
    Resource::RLIMIT_CPU,
    Resource::RLIMIT_DATA,
    Resource::RLIMIT_FSIZE,
    Resource::RLIMIT_LOCKS,
    Resource::RLIMIT_MEMLOCK,
    Resource::RLIMIT_MSGQUEUE,
    Resource::RLIMIT_NICE,
    Resource::RLIMIT_NOFILE,
    Resource::RLIMIT_NPROC,
    Resource::RLIMIT_RTPRIO,
    Resource::RLIMIT_RTTIME,
    Resource::RLIMIT_SIGPENDING,
    Resource::RLIMIT_STACK,
];
/// Two changes of a folder that are so far apart have different times: systems count them in steps of 10 ms at most.
const SETTLES: Duration = Duration::from_millis(50);

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
    let Ok((spawn, mut traces)) = stands else { return Ok(()) };
    let mut common = None;
    while let Some(mut rider) = hear::<Rider>(&line)? {
        let since = Instant::now();
        common = rider.common.take().or(common);
        let rode = match begin(&spawn, &rider, common.as_ref(), &cell) {
            Ok(leader) => see_off(leader, since, &mut traces),
            Err(failure) => Rode::Failed(failure),
        };
        say(&line, &rode)?;
    }
    Ok(())
}

/// Puts the walls up, and takes what tasks could use against those that come after them.
fn stand(cell: &Cell) -> Result<(Spawn, Traces), Failure> {
    cell::put_up_walls(cell)?;
    let wall = |error: nix::Error| Failure::Wall(format!("its carriage is not safe: {}", error.desc()));
    // They are the same user as this: none is to look into it.
    prctl::set_dumpable(false).map_err(wall)?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(wall)?;
    // Whatever loses its parent is found.
    prctl::set_child_subreaper(true).map_err(wall)?;
    // One of its user could end it otherwise after its own end, and with it the next. Its tasks begin without this.
    SigSet::all().thread_set_mask().map_err(wall)?;
    let nothing = |error: io::Error| Failure::Wall(format!("cannot open /dev/null: {error}"));
    let null = File::open("/dev/null").map_err(nothing)?;
    dup2_stdin(null).map_err(wall)?;
    let unseen = |error| Failure::Wall(format!("what its tasks leave would not be seen: {error}"));
    Ok((Spawn::new().map_err(wall)?, Traces::find().map_err(unseen)?))
}

/// Starts a task; says which process leads it.
fn begin(spawn: &Spawn, rider: &Rider, common: Option<&Common>, cell: &Cell) -> Result<Pid, Failure> {
    let wrong = |error: io::Error| Failure::Wall(format!("cannot make its files: {error}"));
    let common = common.ok_or_else(|| Failure::Wall("nobody has said what it is to run".to_owned()))?;
    chdir(&rider.folder).map_err(|errno| wrong(errno.into()))?;
    if let Some(text) = &rider.script {
        File::create_new("script").and_then(|mut file| file.write_all(text.as_bytes())).map_err(wrong)?;
    }
    spawn.begin(common, &rider.own).map_err(|unspawned| match unspawned {
        Unspawned::Process(error) | Unspawned::Outputs(error) => wrong(error),
        Unspawned::Program(error) => cell::not_run(&error, &common.program, cell),
    })
}

/// Waits for the end of a task. What is left of it then is not this process's to end: it may have been asked to.
fn see_off(leader: Pid, since: Instant, traces: &mut Traces) -> Rode {
    await_end(leader);
    let (exit, usage) = reaper::reap(leader, since);
    // One that the system has killed may have had more memory than it has: that is to be looked into.
    let clean = exit != Exit::Signal(Signal::SIGKILL as i32) && is_alone() && traces.are_none();
    Rode::Ended { exit, usage, clean }
}

/// Waits until a child has ended, and reaps the others that have.
fn await_end(leader: Pid) {
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(status) if !reaper::is_end(&status) => reaper::pass_over(&status),
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
    folders: Vec<Watched>,
    /// The length of each.
    tables: Vec<(File, usize)>,
    inherited: Inherited,
}

/// What a task has from its carriage, and others of its user could change.
#[derive(PartialEq)]
struct Inherited {
    limits: Vec<(rlim_t, rlim_t)>,
    cpus: CpuSet,
}

impl Inherited {
    fn now() -> nix::Result<Inherited> {
        let limits = LIMITS.into_iter().map(getrlimit).collect::<nix::Result<_>>()?;
        Ok(Inherited { limits, cpus: sched_getaffinity(Pid::from_raw(0))? })
    }
}

/// A folder, and the names in it before any task.
struct Watched {
    folder: Dir,
    names: Vec<CString>,
    /// When it was changed last, by the clock of its file system; and since when it is known that this is so.
    changed: (i64, i64),
    since: Instant,
    /// Whether it was looked at so long after it was changed that another change has another time.
    is_settled: bool,
}

impl Traces {
    /// Those of a cell in which nothing has run. What the system does not have holds nothing; but what cannot be looked at may
    /// hold anything.
    fn find() -> io::Result<Traces> {
        let inherited = Inherited::now()?;
        let mut traces = Traces { folders: Vec::new(), tables: Vec::new(), inherited };
        // Where this is there, so is all else that the system has to list.
        let systems = fs::read_to_string("/proc/filesystems")?;
        let has_queues = systems.split_ascii_whitespace().any(|system| system == QUEUE);
        for place in FOLDERS {
            let folder = match Dir::open(place, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()) {
                Err(Errno::ENOENT) if place != QUEUES || !has_queues => continue,
                opened => opened?,
            };
            if place == QUEUES && has_queues && fstatfs(&folder)?.filesystem_type() != QUEUE_MAGIC {
                return Err(io::Error::other("message queues are not shown"));
            }
            traces.folders.push(Watched::new(folder)?);
        }
        for table in TABLES {
            match File::open(table) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    let table = opened?;
                    let length = length(&table)?;
                    traces.tables.push((table, length));
                }
            }
        }
        Ok(traces)
    }

    fn are_none(&mut self) -> bool {
        Inherited::now().is_ok_and(|inherited| inherited == self.inherited)
            && self.tables.iter().all(|(table, before)| length(table).is_ok_and(|length| length == *before))
            && self.folders.iter_mut().all(|folder| folder.is_as_before().unwrap_or(false))
    }
}

impl Watched {
    fn new(mut folder: Dir) -> nix::Result<Watched> {
        // Beneath `/tmp` there is the task's own folder, where the node's lies there.
        let names =
            folder.iter().map(|entry| Ok(entry?.file_name().to_owned())).collect::<nix::Result<_>>()?;
        Ok(Watched { folder, names, changed: (0, 0), since: Instant::now(), is_settled: false })
    }

    /// Whether there is no new name in it. Nobody is there who could make one meanwhile.
    fn is_as_before(&mut self) -> nix::Result<bool> {
        let facts = fstat(&self.folder)?;
        let changed = (facts.st_ctime, facts.st_ctime_nsec);
        let is_known = changed == self.changed;
        if is_known && self.is_settled {
            return Ok(true);
        }
        if !is_known {
            (self.changed, self.since) = (changed, Instant::now());
        }
        // A file system that counts whole seconds only has no nanoseconds.
        self.is_settled = is_known && changed.1 != 0 && self.since.elapsed() > SETTLES;
        for entry in self.folder.iter() {
            let entry = entry?;
            if !self.names.iter().any(|old| **old == *entry.file_name()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How long the beginning of a table is: it gets longer with each entry.
fn length(table: &File) -> io::Result<usize> {
    table.read_at(&mut [0; 1024], 0)
}
