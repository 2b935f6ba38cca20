//! Real processes: each task a program in a folder of its own, run by a supervisor that outlives the daemon.
//!
//! ```text
//! daemon: driver ── perform ──▶ client ══ socket ══▶ supervisor ── fork ──▶ task
//!         driver ◀─ outcome ─── client ◀═════════════ supervisor ◀─ exit ─── task
//! ```
//!
//! The [client](Process) starts a [`supervisor`] when none answers in the node's folder, and asks again for all that it
//! waits for when a connection breaks. So a daemon that is killed finds its tasks again, or how they ended meanwhile, and
//! a supervisor that is killed takes its tasks along and its successor says that they are lost. A task is started at most
//! once for each job, epoch and rank, across all of these deaths: the supervisor has it on disk before it forks.
//!
//! What a task finds: a working folder with the files that it brings along, its `stdout` and `stderr` (and `script`, if it is one), nothing on
//! standard input, the job's environment, a few variables of the machine's (`PATH`, `HOME`, `LANG` …), and
//!
//! | variable | value |
//! |---|---|
//! | `SHOAL_JOB_ID`, `SHOAL_EPOCH`, `SHOAL_RANK` | which job, which of its placements, which part |
//! | `SHOAL_ARRAY_INDEX` | which of an array, if it is of one |
//! | `SHOAL_NODES` | how many parts there are |
//! | `SHOAL_NODELIST` | the names of their nodes by rank, with commas between; not if they are very many |
//! | `SHOAL_HOSTFILE` | a file with a name in each line, if there is more than one part |
//! | `SHOAL_CORES`, `SHOAL_MEMORY`, `SHOAL_GPUS` | what was granted on this node; memory in bytes |
//! | `SHOAL_CPUS` | the numbers of its processors, if it was given some of its own |
//! | `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` … | the numbers of its GPUs; empty if it has none |
//! | `SHOAL_SECRETS` | the folder with its secrets, if it has any |
//! | `SHOAL_SUPERVISOR` | the node's folder: how strays are found |
//!
//! A task that is not trusted runs in a [cell](crate::cell), and so does one with an image or secrets.
//!
//! For Linux.

mod client;
mod layout;
pub mod supervisor;
mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use shoal_model::job::Work;
use shoal_model::{Job, Name, NodeId, Size, Span, Time};
use shoal_protocols::node::{Action, Brief, Node, Task};

pub use words::{Ended, Keep};

use super::Executor;
use crate::cell::{Secret, Walls};
use crate::inbox::Completion;
use crate::staging::Staging;
use client::{Client, Event};
use layout::Layout;

/// How long a task may take to end once it is told to, where nobody says. One that is deaf stays as long beyond its limit.
pub const GRACE: Span = Span::from_secs(5);
/// The most of each output of a task, where nobody says.
pub const OUTPUT_MAX: Size = Size::from_mib(64);

/// The executor of real processes: the daemon's end of the line. Dropped, it leaves the tasks running.
#[derive(Debug)]
pub struct Process {
    events: Sender<Event>,
    supervisor: Arc<AtomicU32>,
}

/// Says what the cell of a task is like, if it has one.
pub type Cells = Box<dyn Fn(&Brief) -> Option<Walls> + Send>;

/// Says what a task is told and nobody else.
pub type Told = Box<dyn Fn(Task, &Brief) -> Option<Vec<Secret>> + Send>;

/// What an executor is made of.
pub struct Setup {
    /// The node's folder.
    pub home: PathBuf,
    /// How a supervisor is started.
    pub launch: Launch,
    /// How long a task may take to end once it is told to: then it is killed.
    pub grace: Span,
    /// The most of each output of a task.
    pub output_max: Size,
    /// How tasks are kept to what they were granted; by default they are trusted.
    pub keep: Keep,
    /// The walls of a task's cell; without any it is trusted. By default all are.
    pub cells: Cells,
    /// What a task is told and nobody else, in the order of its job's list; none if that is not known.
    pub secrets: Told,
    /// Roots of file systems that tasks may ask for, by name.
    pub images: BTreeMap<Name, PathBuf>,
    /// What a node is called where tasks look for each other; by default its id.
    pub names: Box<dyn Fn(NodeId) -> String + Send>,
    /// Sees to the files of tasks; without it, a task that brings files along does not start.
    pub files: Option<Staging>,
    /// Hears how each task ended and what it took, on a thread of the executor's: must not wait.
    pub hears: Box<dyn FnMut(&Ended) + Send>,
}

/// A command that calls [`supervisor::main`] with its last argument, which is the node's folder.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// What comes before the folder.
    pub arguments: Vec<OsString>,
}

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was started, and nobody answers.
    #[error("the supervisor of {} does not answer; see {}", home.display(), log.display())]
    NoAnswer {
        /// The node's folder.
        home: PathBuf,
        /// Where it complains.
        log: PathBuf,
    },
}

/// What can be seen of the tasks of a folder from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether a supervisor is at work.
    pub supervised: bool,
    /// The processes that say that they belong to a task.
    pub processes: Vec<i32>,
}

/// Looks for the supervisor of a node's folder and for processes of its tasks; changes nothing.
pub fn seen(home: &Path) -> io::Result<Seen> {
    let Ok(home) = home.canonicalize() else {
        return Ok(Seen { supervised: false, processes: Vec::new() });
    };
    Ok(Seen { supervised: supervisor::is_at_work(&home)?, processes: supervisor::processes(&home)? })
}

impl Setup {
    /// An executor with the usual limits.
    pub fn new(home: impl Into<PathBuf>, launch: Launch) -> Setup {
        Setup {
            home: home.into(),
            launch,
            grace: GRACE,
            output_max: OUTPUT_MAX,
            keep: Keep::default(),
            cells: Box::new(|_| None),
            secrets: Box::new(|_, _| None),
            images: BTreeMap::new(),
            names: Box::new(|node| node.to_string()),
            files: None,
            hears: Box::new(|_| {}),
        }
    }
}

impl Launch {
    /// This program itself, with other arguments.
    pub fn itself(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Launch {
        // Whatever the file is called by now, and even if a newer one has taken its place.
        let program = "/proc/self/exe".into();
        Launch { program, arguments: arguments.into_iter().map(Into::into).collect() }
    }
}

/// The working folder of a task of the node in a folder, with its outputs.
pub fn folder_of(home: &Path, task: Task) -> PathBuf {
    layout::find_attempt(home, task)
}

/// Where the files of a task wait for it; becomes its working folder.
pub fn prepared_of(home: &Path, task: Task) -> PathBuf {
    layout::prepared(home, task)
}

/// Whether a job's program can be run on this machine, in the environment of this process; why not, if not.
///
/// A script is run by its interpreter, and a path that is not absolute is seen from the task's folder: of neither is
/// anything known before.
pub fn can_run(job: &Job) -> io::Result<()> {
    let Work::Command(argv) = &job.work else { return Ok(()) };
    // Its program is in the image.
    if job.image().is_some() {
        return Ok(());
    }
    let Some(name) = argv.first() else { return Ok(()) };
    if name.contains('/') && !Path::new(name).is_absolute() {
        return Ok(());
    }
    let own = std::env::var_os("PATH");
    let set = job.environment.as_ref().and_then(|environment| environment.get("PATH"));
    let path = set.map(OsString::from).or(own).unwrap_or_else(|| supervisor::PATH.into());
    supervisor::find(name.as_ref(), &path, Path::new("/")).and_then(|program| {
        match std::fs::metadata(program)? {
            facts if facts.is_file() && facts.permissions().mode() & 0o111 != 0 => Ok(()),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    })
}

impl Process {
    /// Finds the supervisor of a node's folder, or starts it.
    pub fn open(setup: Setup) -> Result<Process, Error> {
        let wrong = |doing, path: &PathBuf| {
            let path = path.clone();
            move |source| Error::Io { doing, path, source }
        };
        let layout = Layout::create(&setup.home).map_err(wrong("make a folder in", &setup.home))?;
        let supervisor = Arc::new(AtomicU32::new(0));
        let (events, inbox) = mpsc::channel();
        let home = setup.home.clone();
        let mut client = Client::new(layout, setup, events.clone(), Arc::clone(&supervisor));
        client.connect()?;
        let thread = thread::Builder::new().name("executor".to_owned());
        thread.spawn(move || client.run(&inbox)).map_err(wrong("start a thread for", &home))?;
        Ok(Process { events, supervisor })
    }

    /// The process id of the supervisor that was last spoken to.
    pub fn supervisor(&self) -> u32 {
        self.supervisor.load(Ordering::SeqCst)
    }
}

impl Executor<Node> for Process {
    fn perform(&mut self, now: Time, action: Action, completion: Completion<Node>) {
        // The thread lives as long as this.
        let _ = self.events.send(Event::Asked { now, action, completion });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Leave);
    }
}
