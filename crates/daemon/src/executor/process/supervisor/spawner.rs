//! Threads that make folders and fork: forking is what takes the time, and one core is not enough for it.
//!
//! All that is given to a child goes through `posix_spawn`, which does not copy the parent and needs no code of ours
//! between fork and exec. So the program is looked up here: the standard library forks the slow way when the
//! environment that it looks in is not its own.

mod alike;
mod boarding;
mod plain;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use std::thread;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use shoal_model::Size;
use shoal_model::job::Work;
use shoal_protocols::node::{Exit, Task};

use super::super::layout::{self, Layout};
use super::super::words::Order;
use super::grants::Grant;
use super::groups::{Groups, Whose};
use super::rides::{Number, Rides};
use super::{Event, STACK, carriage, confine, output, rubbish, system};
use crate::cell::{self, Cell, Failure};
use crate::machine::{self, gpu};

/// Threads that fork, at most: what they contend for is in the system. Two for each core, for each waits in its fork until
/// the child runs its own program.
const THREADS_MAX: usize = 16;
/// Rides that are under way at once, at most; each has a thread.
const RIDES_MAX: usize = 64;
/// What shells say of a program that they do not find, and of one that they cannot run.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// Where programs are looked for when the supervisor itself was not told.
pub(in super::super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The most bytes of the list of a job's nodes: the system gives no program a longer variable than twice that.
const NODELIST_BYTES_MAX: usize = 64 << 10;
/// What a task sees of the supervisor's environment; all else is the job's own or ours.
const INHERITED: [&str; 8] = ["LANG", "LC_ALL", "TZ", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];
/// How many of those one in a cell sees: the rest is about somebody else there.
const INHERITED_IN_CELLS: usize = 3;

/// Variables of a task.
type Variables = BTreeMap<OsString, OsString>;

const UNPOISONED: &str = "nothing panics while it holds this";

/// The threads, and what comes from them.
pub(super) struct Spawner {
    errands: Sender<Errand>,
    events: SyncSender<Event>,
    shared: Arc<Shared>,
}

/// What came of an order.
pub(super) struct Spawned {
    pub task: Task,
    /// The first process of the task.
    pub result: Result<Pid, Failed>,
}

/// Why a task does not run, and how it therefore ended.
pub(super) struct Failed {
    pub exit: Exit,
    pub reason: String,
}

enum Errand {
    Start(Box<(Order, Grant)>),
    /// Remove what is left of the cell of a task that has ended.
    Clear(Task),
    /// Remove what is left of the carriage of a ride.
    Dismantle(Number),
    /// Remove the folder of a task that is forgotten.
    Remove(Task),
}

struct Shared {
    layout: Layout,
    path: OsString,
    groups: Arc<Groups>,
    rides: Arc<Rides>,
    /// Threads that go through rides.
    riding: AtomicUsize,
    /// The processors of a thread that forks nothing.
    cpus: CpuSet,
    spawned: Mutex<Vec<Spawned>>,
    /// Tasks of which no folder is left.
    removed: Mutex<Vec<Task>>,
    /// Held for reading from before a fork until the child is in `spawned`.
    forking: RwLock<()>,
}

/// What a task runs.
struct Program {
    path: PathBuf,
    /// What it is called, and its arguments.
    argv: Vec<OsString>,
    variables: Variables,
}

/// All that is needed to start a task.
struct Prepared {
    command: Command,
    /// The folder that it runs in.
    folder: PathBuf,
    /// Whether there is a control group for it.
    grouped: bool,
    /// Its cell, if it has one or waits for its groups, and the line on which it is told.
    cell: Option<(Cell, UnixStream)>,
}

impl Spawner {
    pub fn new(
        layout: &Layout,
        groups: &Arc<Groups>,
        rides: &Arc<Rides>,
        events: &SyncSender<Event>,
    ) -> io::Result<Spawner> {
        let (errands, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let shared = Arc::new(Shared {
            layout: layout.clone(),
            path: std::env::var_os("PATH").unwrap_or_else(|| PATH.into()),
            groups: Arc::clone(groups),
            rides: Arc::clone(rides),
            riding: AtomicUsize::new(0),
            cpus: set_of(&machine::cpus()),
            spawned: Mutex::default(),
            removed: Mutex::default(),
            forking: RwLock::default(),
        });
        let threads = (2 * thread::available_parallelism().map_or(1, usize::from)).min(THREADS_MAX);
        for number in 0..threads {
            let (queue, shared, events) = (Arc::clone(&queue), Arc::clone(&shared), events.clone());
            let thread = thread::Builder::new().name(format!("spawner {number}")).stack_size(STACK);
            thread.spawn(move || shared.run(&queue, &events))?;
        }
        Ok(Spawner { errands, events: events.clone(), shared })
    }

    /// Has a task started; it is [`Spawner::take`]n later.
    pub fn start(&self, order: Order, grant: Grant) {
        // The threads live as long as this.
        let _ = self.errands.send(Errand::Start(Box::new((order, grant))));
    }

    /// Has a thread of its own go through a ride, in a carriage or without; false if there can be none.
    pub fn ride(&self, ride: Number, carriage: bool) -> bool {
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        self.shared.riding.fetch_add(1, Ordering::SeqCst);
        let thread = thread::Builder::new().name("ride".to_owned()).stack_size(STACK).spawn(move || {
            match carriage {
                true => shared.ride_in_carriage(ride, &events),
                false => shared.ride(ride, &events),
            }
            shared.riding.fetch_sub(1, Ordering::SeqCst);
        });
        if thread.is_err() {
            self.shared.riding.fetch_sub(1, Ordering::SeqCst);
        }
        thread.is_ok()
    }

    /// Whether there is room for one more such thread.
    pub fn can_ride(&self) -> bool {
        self.shared.riding.load(Ordering::SeqCst) < RIDES_MAX
    }

    /// Has what is left of the cell of a task removed.
    pub fn clear(&self, task: Task) {
        let _ = self.errands.send(Errand::Clear(task));
    }

    /// Has what is left of the carriage of a ride removed.
    pub fn dismantle(&self, ride: Number) {
        let _ = self.errands.send(Errand::Dismantle(ride));
    }

    /// Has the folder of a task removed; it is among [`Spawner::take_removed`] later.
    pub fn remove(&self, task: Task) {
        let _ = self.errands.send(Errand::Remove(task));
    }

    /// What has come of orders since the last call.
    pub fn take(&self) -> Vec<Spawned> {
        std::mem::take(&mut *self.shared.spawned.lock().expect(UNPOISONED))
    }

    /// Tasks whose folders were removed since the last call.
    pub fn take_removed(&self) -> Vec<Task> {
        std::mem::take(&mut *self.shared.removed.lock().expect(UNPOISONED))
    }

    /// Waits until no thread is between a fork and the word of it, and keeps them from it.
    pub fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.forking.write().expect(UNPOISONED)
    }
}

impl Shared {
    fn run(&self, queue: &Mutex<Receiver<Errand>>, events: &SyncSender<Event>) {
        loop {
            let errand = queue.lock().expect(UNPOISONED).recv();
            match errand {
                Err(_) => return,
                Ok(Errand::Start(start)) => {
                    self.start(&start.0, &start.1);
                    if events.send(Event::Spawned).is_err() {
                        return;
                    }
                }
                Ok(Errand::Dismantle(ride)) => carriage::dismantle(&self.layout, ride),
                Ok(Errand::Clear(task)) => confine::clear(&self.layout, task),
                Ok(Errand::Remove(task)) => {
                    confine::clear(&self.layout, task);
                    let [before, job] = self.layout.attempt_before(task);
                    for folder in [self.layout.attempt(task), before] {
                        rubbish::discard(&folder);
                    }
                    // Not while other tasks of the job are remembered.
                    let _ = fs::remove_dir(job);
                    self.removed.lock().expect(UNPOISONED).push(task);
                    if events.send(Event::Spawned).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn start(&self, order: &Order, grant: &Grant) {
        let prepared = self.prepare(order, grant);
        let forking = self.forking.read().expect(UNPOISONED);
        let result = prepared.and_then(|prepared| self.fork(order, grant, prepared));
        self.spawned.lock().expect(UNPOISONED).push(Spawned { task: order.task, result });
        drop(forking);
    }

    fn spawn(&self, command: &mut Command, grant: &Grant) -> io::Result<Child> {
        self.on_processors(grant, || command.spawn())
    }

    /// Forks a child that has the processors of a grant.
    fn on_processors<T>(&self, grant: &Grant, fork: impl FnOnce() -> T) -> T {
        // It has those of the thread that forks it: no instant in which it runs elsewhere.
        let pinned = grant.cpus.as_deref().is_some_and(|cpus| pin(&set_of(cpus)));
        let forked = fork();
        if pinned {
            pin(&self.cpus);
        }
        forked
    }

    fn fork(&self, order: &Order, grant: &Grant, prepared: Prepared) -> Result<Pid, Failed> {
        let Prepared { mut command, folder, grouped, cell } = prepared;
        // Reaped by its number: letting go of the handle does nothing to the child.
        let mut child = self.spawn(&mut command, grant).map_err(|error| {
            let program = command.get_program().to_owned();
            cannot_run(&folder, &program, &error)
        })?;
        let leader = Pid::from_raw(child.id() as i32);
        if let Some((mut cell, line)) = cell {
            // The other end of the line lies in it, and must be nobody's but the child's.
            drop(command);
            if cell.open {
                // It waits to be told what to run: nothing of the task is outside of its groups for a moment.
                if let Err(error) = self.groups.enter(Whose::Task(order.task), leader) {
                    eprintln!("a task of job {} is in no control group: {error}", order.task.job);
                }
            } else if grouped {
                cell.groups = self.groups.made(Whose::Task(order.task));
            }
            confine::settle(&mut child, &line, &cell)
                .map_err(|failure| unsettled(&folder, cell.argv.first(), failure))?;
        }
        Ok(leader)
    }

    fn prepare(&self, order: &Order, grant: &Grant) -> Result<Prepared, Failed> {
        let folder = self.layout.attempt(order.task);
        self.make_folder(order, &folder)?;
        let wrong = |error| not_started("make the outputs in", &folder, &error);
        let [stdout, stderr] = output::NAMES.map(|name| output::create(&folder.join(name)));
        let (stdout, stderr) = (stdout.map_err(wrong)?, stderr.map_err(wrong)?);
        // As the task sees it.
        let seen = order.image.as_ref().map_or(&*folder, |_| Path::new(cell::WORK));
        self.write_script(order, &folder)?;
        let Program { path: program, argv, variables } = self.program(order, grant, &folder, seen)?;

        let grouped = order.is_grouped() && self.make_groups(order, Whose::Task(order.task), order.memory)?;
        let (mut command, cell) = if order.is_confined() || grouped {
            let wrong = |error| not_started("make a cell in", &folder, &error);
            let (mut command, line) = confine::command().map_err(wrong)?;
            command.env_clear().envs(self.marks(order.task));
            // Last of all: the folder is the task's from then on, with all that was put there.
            let cell = match order.is_confined() {
                true => {
                    confine::cell_of(order, grant, &self.layout, program, &argv, &variables).map_err(wrong)?
                }
                false => confine::open(program, &argv, &variables),
            };
            (command, Some((cell, line)))
        } else {
            let mut command = Command::new(program);
            command.arg0(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).env_clear().envs(&variables);
            (command, None)
        };
        command.current_dir(&folder).process_group(0).stdout(stdout).stderr(stderr);
        Ok(Prepared { command, folder, grouped, cell })
    }

    /// What a task is to run that sees its folder there.
    fn program(&self, order: &Order, grant: &Grant, folder: &Path, seen: &Path) -> Result<Program, Failed> {
        let argv = match &order.work {
            Work::Command(argv) => argv.iter().map(OsString::from).collect(),
            Work::Script(text) => argv_of_script(&seen.join("script"), text),
        };
        let Some(name) = argv.first() else {
            let nothing = io::Error::new(io::ErrorKind::NotFound, "the command is empty");
            return Err(cannot_run(folder, OsStr::new(""), &nothing));
        };
        let variables = self.variables(order, grant, folder, seen)?;
        let path = variables.get(OsStr::new("PATH")).map_or(&*self.path, OsString::as_os_str);
        let path = self.find_program(order, name, path, folder, seen)?;
        Ok(Program { path, argv, variables })
    }

    /// Where the program of a task lies; of one in an image, where that lies which runs it.
    fn find_program(
        &self,
        order: &Order,
        name: &OsStr,
        path: &OsStr,
        folder: &Path,
        seen: &Path,
    ) -> Result<PathBuf, Failed> {
        let missing = |error| cannot_run(folder, name, &error);
        if let Some(root) = &order.image {
            cell::find_inside(Path::new(root), name, path).map_err(missing)?;
            return confine::bubblewrap(&self.path).map_err(|error| not_started("find", folder, &error));
        }
        let Some(walls) = order.walls.as_deref().filter(|_| !name.as_encoded_bytes().contains(&b'/')) else {
            return find(name, path, seen).map_err(missing);
        };
        // Places that its cell does not show are no places to it.
        let places = std::env::split_paths(path).filter(|place| cell::is_shown(place, walls));
        let shown = std::env::join_paths(places).unwrap_or_default();
        find(name, &shown, seen).map_err(missing)
    }

    /// Tells a task who it is, what it has and who its fellows are.
    fn variables(
        &self,
        order: &Order,
        grant: &Grant,
        folder: &Path,
        seen: &Path,
    ) -> Result<Variables, Failed> {
        let mut variables = Variables::new();
        let mut set = |name: &str, value: OsString| drop(variables.insert(name.into(), value));
        set("PATH", self.path.clone());
        let inherited = if order.is_confined() { INHERITED_IN_CELLS } else { INHERITED.len() };
        for name in &INHERITED[..inherited] {
            if let Some(value) = std::env::var_os(name) {
                set(name, value);
            }
        }
        if order.is_confined() {
            set("TMPDIR", "/tmp".into());
        }
        for (name, value) in order.environment.iter().flat_map(|set| set.iter()) {
            set(name, value.into());
        }
        for (name, value) in self.names(order, seen) {
            set(name, value);
        }
        set("SHOAL_NODES", order.nodes.to_string().into());
        set("SHOAL_CORES", order.cores.to_string().into());
        set("SHOAL_MEMORY", order.memory.as_bytes().to_string().into());
        set("SHOAL_GPUS", order.gpus.unwrap_or_default().to_string().into());
        let peers = order.peers.as_deref().unwrap_or_default();
        let list = peers.join(",");
        if list.len() <= NODELIST_BYTES_MAX {
            set("SHOAL_NODELIST", list.into());
        }
        if peers.len() > 1 {
            let path = folder.join("hostfile");
            fs::write(&path, peers.join("\n") + "\n").map_err(|error| not_started("write", &path, &error))?;
            set("SHOAL_HOSTFILE", seen.join("hostfile").into());
        }
        if order.secrets.is_some() {
            set("SHOAL_SECRETS", seen.join(cell::SECRETS).into());
        }
        if let Some(cpus) = &grant.cpus {
            let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
            set("SHOAL_CPUS", numbers.join(",").into());
        }
        for (name, value) in grant.gpus.iter().flat_map(|gpus| gpu::variables(gpus)) {
            set(name, value.into());
        }
        Ok(variables)
    }

    /// Tells a task what no other of its job is told, where that is not the job's to say.
    fn names(&self, order: &Order, seen: &Path) -> Vec<(&'static str, OsString)> {
        let says = |name: &str| order.environment.as_ref().is_some_and(|own| own.contains_key(name));
        let home = (order.is_confined() && !says("HOME")).then(|| ("HOME", seen.into()));
        let index = order.array_index.map(|index| ("SHOAL_ARRAY_INDEX", index.to_string().into()));
        // Whatever the job says: they tell whose process this is.
        home.into_iter().chain(self.marks(order.task)).chain(index).collect()
    }

    /// The variables that say whose a process is.
    fn marks(&self, task: Task) -> [(&'static str, OsString); 4] {
        let Task { job, epoch, rank } = task;
        [
            (system::MARK, self.layout.home().into()),
            (system::JOB, job.to_string().into()),
            (system::EPOCH, epoch.0.to_string().into()),
            (system::RANK, rank.0.to_string().into()),
        ]
    }

    /// Makes control groups for a task, with this much memory; says whether there are any. Of one that is trusted, what cannot be
    /// made is done without.
    fn make_groups(&self, order: &Order, whose: Whose, memory: Size) -> Result<bool, Failed> {
        let made = self.groups.make(whose, order.keep.unwrap_or_default(), memory);
        made.or_else(|error| {
            let reason = format!("cannot make its control group: {error}");
            if order.is_confined() {
                return Err(Failed { exit: Exit::NotStarted, reason });
            }
            eprintln!("a task of job {} runs without: {reason}", order.task.job);
            Ok(false)
        })
    }

    fn write_script(&self, order: &Order, folder: &Path) -> Result<(), Failed> {
        let Work::Script(text) = &order.work else { return Ok(()) };
        let path = folder.join("script");
        let made = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        made.map_err(|error| not_started("write", &path, &error))
    }

    fn make_folder(&self, order: &Order, folder: &Path) -> Result<(), Failed> {
        let made = if order.prepared {
            layout::place(&self.layout.prepared(order.task), folder)
        } else {
            match fs::create_dir(folder) {
                // It is the first, or somebody has tidied up.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(self.layout.tasks()).and_then(|()| fs::create_dir(folder))
                }
                made => made,
            }
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let reason = format!("{} is there: the task was started before", folder.display());
                Err(Failed { exit: Exit::Lost, reason })
            }
            made => made.map_err(|error| not_started("make", folder, &error)),
        }
    }
}

fn set_of(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        // Beyond what a set can hold there is none of our numbers.
        let _ = set.set(cpu);
    }
    set
}

/// Has this thread run on these processors only; says whether it does.
fn pin(cpus: &CpuSet) -> bool {
    sched_setaffinity(Pid::from_raw(0), cpus).is_ok()
}

/// Where a program lies: looked for in `path` unless its name says where, as seen from the task's folder.
pub(in super::super) fn find(name: &OsStr, path: &OsStr, folder: &Path) -> io::Result<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(folder.join(name));
    }
    let mut refused = io::ErrorKind::NotFound;
    for place in std::env::split_paths(path) {
        let program = folder.join(place).join(name);
        match fs::metadata(&program) {
            Ok(facts) if facts.is_file() && facts.permissions().mode() & 0o111 != 0 => return Ok(program),
            Ok(facts) if facts.is_file() => refused = io::ErrorKind::PermissionDenied,
            _ => {}
        }
    }
    Err(refused.into())
}

/// How a script is run: by the interpreter of its first line, as the system would. But the system refuses to run a file that
/// anybody has open for writing, and a child that another thread forks at this moment has.
fn argv_of_script(path: &Path, text: &str) -> Vec<OsString> {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").map(str::trim).filter(|line| !line.is_empty());
    let (program, argument) = match interpreter.unwrap_or("/bin/sh").split_once([' ', '\t']) {
        Some((program, argument)) => (program, Some(argument.trim())),
        None => (interpreter.unwrap_or("/bin/sh"), None),
    };
    let argv = std::iter::once(program).chain(argument).map(OsString::from);
    argv.chain([path.as_os_str().to_owned()]).collect()
}

fn cannot_run(folder: &Path, program: &OsStr, error: &io::Error) -> Failed {
    let reason = format!("cannot run `{}`: {error}", program.to_string_lossy());
    output::say(&folder.join(output::NAMES[1]), &reason);
    Failed { exit: exit_for(error), reason }
}

/// What to say of a task that got no cell, or no program into it.
fn unsettled(folder: &Path, name: Option<impl AsRef<OsStr>>, failure: Failure) -> Failed {
    match failure {
        Failure::Wall(_) => {
            let reason = failure.to_string();
            output::say(&folder.join(output::NAMES[1]), &reason);
            Failed { exit: Exit::NotStarted, reason }
        }
        Failure::Program { errno, said } => {
            let error = errno.map_or(io::ErrorKind::NotFound.into(), io::Error::from_raw_os_error);
            // By the system's own number, while what is told may be more.
            let exit = exit_for(&error);
            let name = name.as_ref().map(AsRef::as_ref).unwrap_or_default();
            Failed { exit, ..cannot_run(folder, name, &io::Error::new(error.kind(), said)) }
        }
    }
}

/// How a task ends that could not be forked: as a shell would say, unless it is the machine that has run out of something.
fn exit_for(error: &io::Error) -> Exit {
    use nix::libc::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    match error.raw_os_error() {
        Some(EAGAIN | EMFILE | ENFILE | ENOMEM) => Exit::NotStarted,
        _ if error.kind() == io::ErrorKind::NotFound => Exit::Code(NOT_FOUND),
        _ => Exit::Code(NOT_RUN),
    }
}

fn not_started(doing: &str, path: &Path, error: &io::Error) -> Failed {
    Failed { exit: Exit::NotStarted, reason: format!("cannot {doing} {}: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_cannot_be_run_is_told_from_a_machine_that_cannot_run_it() {
        use nix::libc::{EACCES, EAGAIN, EMFILE, ENOENT, ENOEXEC, ENOMEM};
        let exit = |error| exit_for(&io::Error::from_raw_os_error(error));
        assert_eq!(exit(ENOENT), Exit::Code(127));
        assert_eq!([EACCES, ENOEXEC].map(exit), [Exit::Code(126); 2]);
        assert_eq!([EAGAIN, EMFILE, ENOMEM].map(exit), [Exit::NotStarted; 3]);
    }

    #[test]
    fn first_line_of_a_script_is_read_as_the_system_reads_it() {
        let read = |text: &str| {
            let argv = argv_of_script(Path::new("/folder/script"), text);
            let (script, interpreter) = argv.split_last().unwrap();
            assert_eq!(script, "/folder/script");
            interpreter.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(read("#!/bin/bash\n"), ["/bin/bash"]);
        assert_eq!(read("#! /usr/bin/env -S python3 -u \nprint()"), ["/usr/bin/env", "-S python3 -u"]);
        for plain in ["echo hi", "#!\n", "# no interpreter\n"] {
            assert_eq!(read(plain), ["/bin/sh"], "{plain}");
        }
    }
}
