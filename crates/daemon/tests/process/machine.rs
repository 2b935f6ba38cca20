//! A machine whose daemon can be killed and started again, and what was heard from it.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand_xoshiro::rand_core::SeedableRng;
use shoal_daemon::cell::{Secret, Walls};
use shoal_daemon::executor::process::{Ended, Keep, Launch, Setup};
use shoal_daemon::{Clock, Driver, Executor, Memory, Process, Switchboard};
use shoal_model::{Envelope, Epoch, Job, JobId, Name, NodeId, Nonce, Rank, Size, Span, Time};
use shoal_protocols::node::{Action, Brief, Config, Exit, Node, Task};
use shoal_protocols::{Chance, Shared};
use tempfile::TempDir;

/// Long enough for a machine that does something else as well; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any test takes.
pub const HOUR: Span = Span::from_hours(1);

pub struct Machine {
    home: PathBuf,
    /// Removed with the machine, unless somebody else sees to that.
    _folder: Option<TempDir>,
    pub grace: Span,
    pub output_max: Size,
    keep: Keep,
    /// The walls of tasks' cells from the next start of the daemon on.
    pub walls: Option<Walls>,
    /// What tasks that ask for secrets are told.
    pub secrets: Option<Vec<Secret>>,
    /// The file systems that there are.
    pub images: BTreeMap<Name, PathBuf>,
    /// How the supervisor is started, if not as usual.
    pub launch: Option<Launch>,
    /// The number of the next task that only shows that the machine is awake.
    quick: u64,
    executor: Option<Process>,
    heard: Receiver<Ended>,
    /// Never driven: it only lends its mailbox, which takes what completions bring.
    driver: Driver<Node>,
}

pub fn task(number: u8) -> Task {
    Task { job: JobId([number; 16]), epoch: Epoch(1), rank: Rank(0) }
}

pub fn sh(script: &str) -> Job {
    Job::command(["sh", "-c", script])
}

pub fn setup(home: &Path) -> Setup {
    let program = env!("CARGO_BIN_EXE_shoal-supervise").into();
    Setup::new(home, Launch { program, arguments: Vec::new() })
}

impl Machine {
    pub fn new() -> Machine {
        Machine::with(Span::from_secs(5), Size::from_mib(1))
    }

    pub fn with(grace: Span, output_max: Size) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_owned();
        let mut machine = Machine::at(home, grace, output_max);
        machine._folder = Some(folder);
        machine
    }

    pub fn at(home: PathBuf, grace: Span, output_max: Size) -> Machine {
        let me = NodeId(1);
        let driver = Driver::new(shoal_daemon::Setup {
            me,
            config: Config::default(),
            records: Vec::new(),
            chance: Chance::seed_from_u64(1),
            clock: Clock::new(),
            store: Box::new(Memory::new()),
            network: Box::new(Switchboard::<Node>::new().line(me, Chance::seed_from_u64(2))),
            executor: Box::new(shoal_daemon::Pretend::new().unwrap()),
            reports: Box::new(|_, _| {}),
        });
        let (executor, heard) = (None, mpsc::channel().1);
        let (keep, quick) = (Keep::default(), 0);
        let mut machine = Machine {
            home,
            _folder: None,
            grace,
            output_max,
            keep,
            walls: None,
            secrets: None,
            images: BTreeMap::new(),
            launch: None,
            quick,
            executor,
            heard,
            driver,
        };
        machine.boot();
        machine
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Starts the daemon.
    pub fn boot(&mut self) {
        let (hears, heard) = mpsc::channel();
        let (walls, secrets) = (self.walls.clone(), self.secrets.clone());
        let usual = setup(&self.home);
        let executor = Process::open(Setup {
            cells: Box::new(move |_| walls.clone()),
            secrets: Box::new(move |_, _| secrets.clone()),
            images: self.images.clone(),
            launch: self.launch.clone().unwrap_or(usual.launch),
            grace: self.grace,
            output_max: self.output_max,
            keep: self.keep,
            hears: Box::new(move |ended| drop(hears.send(ended.clone()))),
            ..usual
        });
        self.executor = Some(executor.unwrap());
        self.heard = heard;
    }

    /// Has tasks from now on kept to what they were granted.
    pub fn keep(&mut self, keep: Keep) {
        self.keep = keep;
        self.kill_daemon();
        self.boot();
    }

    /// Runs a task that does nothing.
    pub fn runs_quickly(&mut self) {
        self.quick += 1;
        let task = Task { job: JobId::from_number(self.quick), epoch: Epoch(9), rank: Rank(0) };
        self.start_task(task, sh("true"), HOUR);
        assert_eq!(self.hears_of(task), Exit::Code(0));
    }

    /// Waits until the first process of a task runs its program.
    pub fn pid_of_leader(&self, task: Task) {
        wait_until("a task begins", || self.file(task, "stdout").exists());
    }

    /// Has a folder removed with the machine.
    pub fn owns(&mut self, folder: TempDir) {
        self._folder = Some(folder);
    }

    /// Kills the daemon and the supervisor, with all that it runs.
    pub fn end_supervisor(&mut self) {
        let supervisor = self.supervisor();
        let warden = parent(supervisor);
        self.kill_daemon();
        let _ = kill(supervisor, Signal::SIGKILL);
        wait_until("nothing is left", || !lives(supervisor) && warden.is_none_or(|warden| !lives(warden)));
    }

    /// Kills the daemon.
    pub fn kill_daemon(&mut self) {
        self.executor = None;
        self.heard = mpsc::channel().1;
    }

    pub fn supervisor(&self) -> Pid {
        Pid::from_raw(self.executor.as_ref().unwrap().supervisor() as i32)
    }

    pub fn asks(&mut self, action: Action) {
        let completion = self.driver.mailbox().completion();
        self.executor.as_mut().unwrap().perform(Time::ZERO, action, completion);
    }

    pub fn start(&mut self, number: u8, job: Job, limit: Span) -> Task {
        self.start_task(task(number), job, limit)
    }

    pub fn start_task(&mut self, task: Task, job: Job, limit: Span) -> Task {
        self.asks(Action::Start {
            task,
            brief: brief(job),
            stop_at: Time::ZERO + limit,
            short: false,
            behind: None,
        });
        task
    }

    /// Starts these of an array, the first behind nobody and each of the others behind the one before.
    pub fn train(&mut self, job: &Job, array: u8, numbers: RangeInclusive<u8>) -> Vec<Task> {
        let all: Vec<Task> = numbers.clone().map(task).collect();
        let behind = std::iter::once(None).chain(all.iter().copied().map(Some));
        for ((number, &task), behind) in numbers.zip(&all).zip(behind) {
            let (brief, stop_at) = (brief_of(job.clone(), array, number.into()), Time::ZERO + HOUR);
            self.asks(Action::Start { task, brief, stop_at, short: true, behind });
        }
        all
    }

    /// Starts a task that has less than its time.
    pub fn start_short(&mut self, number: u8, job: Job, limit: Span) {
        let task = task(number);
        self.asks(Action::Start {
            task,
            brief: brief(job),
            stop_at: Time::ZERO + limit,
            short: true,
            behind: None,
        });
    }

    pub fn hears(&self) -> Ended {
        self.heard.recv_timeout(PATIENCE).expect("a task ends")
    }

    /// Waits for the end of a task and nothing else.
    pub fn hears_of(&self, task: Task) -> Exit {
        let ended = self.hears();
        assert_eq!(ended.task, task);
        ended.exit
    }

    pub fn hears_nothing_for(&self, time: Duration) {
        assert_eq!(self.heard.recv_timeout(time).ok(), None);
    }

    pub fn runs(&mut self, number: u8, job: Job) -> Ended {
        self.start(number, job, HOUR);
        self.hears()
    }

    pub fn file(&self, task: Task, name: &str) -> PathBuf {
        let attempt = format!("tasks/{}-{}-{}", task.job, task.epoch.0, task.rank.0);
        self.home().join(attempt).join(name)
    }

    pub fn text(&self, task: Task, name: &str) -> String {
        fs::read_to_string(self.file(task, name)).unwrap()
    }

    /// Waits until a task has written a process id into a file.
    pub fn pid(&self, task: Task, name: &str) -> Pid {
        let mut pid = None;
        wait_until("a task writes its process id", || {
            let text = fs::read_to_string(self.file(task, name)).unwrap_or_default();
            pid = text.strip_suffix('\n').and_then(|text| text.parse().ok());
            pid.is_some()
        });
        Pid::from_raw(pid.unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.executor.is_none() {
            self.boot();
        }
        // The daemon first: it would have another supervisor started.
        self.end_supervisor();
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process is there and is more than what nobody has reaped yet.
pub fn lives(pid: Pid) -> bool {
    stat(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

/// The parent of a process, unless that is the system's first.
pub fn parent(pid: Pid) -> Option<Pid> {
    stat(pid).and_then(|fields| fields[1].parse().ok()).filter(|&parent| parent > 1).map(Pid::from_raw)
}

/// What the system says of a process after its name.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

pub fn brief(job: Job) -> Shared<Brief> {
    let envelope = Shared::new(Envelope::new(job, Nonce([1; 16])).unwrap());
    let index = envelope.job().array.as_ref().and_then(|array| array.next(None));
    Shared::new(Brief { envelope, nodes: vec![NodeId(1), NodeId(2), NodeId(3)].into(), index, riders: None })
}

/// The brief of a job of an array that runs on one node; another number is another array.
pub fn brief_of(job: Job, array: u8, index: u32) -> Shared<Brief> {
    let indexes = Some(Box::new("1-1000".parse().unwrap()));
    let envelope = Envelope::new(Job { array: indexes, ..job }, Nonce([array; 16])).unwrap();
    let envelope = Shared::new(envelope);
    Shared::new(Brief { envelope, nodes: vec![NodeId(1)].into(), index: Some(index), riders: None })
}
