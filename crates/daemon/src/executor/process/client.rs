//! The daemon's end of the line: remembers what it waits for, and asks again when a connection breaks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use shoal_model::{Span, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{Action, Brief, Exit, Node, Outcome, Task, Usage};

use super::layout::Layout;
use super::words::{
    self, Answer, Ended, Hello, NAME_BYTES_MAX, Order, Request, VERSION, VERSION_OF_CELLS, VERSION_OF_FILES,
    VERSION_OF_LINES, Word,
};
use super::{Error, Setup};
use crate::inbox::Completion;
use crate::staging;

/// How long a supervisor may take to come up, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether it is up.
const PAUSE: Duration = Duration::from_millis(2);
/// How long one that is said to be at work may stay silent.
const ANOTHER: Duration = Duration::from_millis(50);
/// Between two attempts to have one.
const RETRY: Duration = Duration::from_millis(500);
/// How late a task may still be handed over: its fellows would wait for it in vain.
const LATE: Duration = Duration::from_secs(10);

/// A task that waited no longer for its files has its whole time all the same.
const WAITED_LEAST: Duration = Duration::from_millis(100);

/// What reaches the client.
pub(super) enum Event {
    /// By the driver.
    Asked { now: Time, action: Action, completion: Completion<Node> },
    /// By the supervisor, on the connection with this number.
    Heard(u64, Ended),
    /// The files of a task are in place, or cannot be had.
    Ready(Task, Result<(), String>),
    /// The connection with this number is over.
    Broken(u64),
    /// The executor is dropped.
    Leave,
}

/// All that the executor's thread owns.
pub(super) struct Client {
    layout: Layout,
    setup: Setup,
    events: Sender<Event>,
    supervisor: Arc<AtomicU32>,
    line: Option<UnixStream>,
    /// Which language the supervisor speaks.
    speaks: u16,
    /// Counts connections, so that late words of an old one are known.
    number: u64,
    /// What was asked for and has not ended.
    waiting: BTreeMap<Task, Waiting>,
    /// What is to be said.
    out: Vec<u8>,
    /// A warden that we started, to be reaped when it ends.
    warden: Option<Child>,
}

struct Waiting {
    ask: Ask,
    since: Instant,
    /// How long it waited for its files; none while they come.
    waited: Option<Duration>,
    /// It may have reached a supervisor.
    handed_over: bool,
    stop: bool,
    completion: Completion<Node>,
}

enum Ask {
    Start { brief: Shared<Brief>, limit: Span, short: bool, behind: Option<Task> },
    Adopt,
}

impl Client {
    pub fn new(layout: Layout, setup: Setup, events: Sender<Event>, supervisor: Arc<AtomicU32>) -> Client {
        Client {
            layout,
            setup,
            events,
            supervisor,
            line: None,
            speaks: 0,
            number: 0,
            waiting: BTreeMap::new(),
            out: Vec::new(),
            warden: None,
        }
    }

    /// Speaks until the executor is dropped.
    pub fn run(mut self, inbox: &Receiver<Event>) {
        loop {
            let mut next = match self.line {
                Some(_) => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => inbox.recv_timeout(RETRY),
            }
            .ok();
            while let Some(event) = next {
                match event {
                    Event::Asked { now, action, completion } => self.on_action(now, action, completion),
                    Event::Ready(task, result) => self.on_ready(task, result),
                    Event::Heard(number, ended) if number == self.number => self.on_ended(&ended),
                    Event::Broken(number) if number == self.number => self.line = None,
                    Event::Heard(..) | Event::Broken(_) => {}
                    Event::Leave => {
                        self.say();
                        self.hang_up();
                        return;
                    }
                }
                next = inbox.try_recv().ok();
            }
            if self.line.is_none() {
                match self.connect() {
                    Ok(()) => self.ask_again(),
                    Err(_) => self.give_up_late_starts(),
                }
            }
            self.say();
        }
    }

    /// Connects to the supervisor that there is, or to one that is started for it.
    pub fn connect(&mut self) -> Result<(), Error> {
        self.hang_up();
        self.number += 1;
        if self.call().is_ok() {
            return Ok(());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            self.launch()?;
            let failed = loop {
                if self.call().is_ok() {
                    return Ok(());
                }
                let ended = self.warden.as_mut().and_then(|warden| warden.try_wait().ok().flatten());
                match ended {
                    Some(status) => break !status.success(),
                    None if Instant::now() > until => break true,
                    None => thread::sleep(PAUSE),
                }
            };
            if failed || Instant::now() > until {
                return Err(Error::NoAnswer { home: self.setup.home.clone(), log: self.layout.log() });
            }
            // It found another at work: one that is still coming up, or one that was about to leave.
            thread::sleep(ANOTHER);
        }
    }

    /// Greets whoever listens.
    fn call(&mut self) -> Result<(), words::Error> {
        let mut line = self.layout.with_socket(UnixStream::connect)?;
        line.set_read_timeout(Some(PATIENCE))?;
        let mut hello = Vec::new();
        Request::Hello(Hello { version: VERSION }).write(&mut hello);
        line.write_all(&hello)?;
        let mut from = BufReader::new(line.try_clone()?);
        let Some(Answer::Welcome(welcome)) = words::next(&mut from)? else {
            return Err(words::Error::NoHello);
        };
        words::understood(welcome.version)?;
        line.set_read_timeout(None)?;
        self.supervisor.store(welcome.pid, Ordering::SeqCst);
        self.speaks = welcome.version;

        let (events, number) = (self.events.clone(), self.number);
        thread::Builder::new().name("supervisor".to_owned()).spawn(move || {
            while let Ok(Some(answer)) = words::next(&mut from) {
                if let Answer::Ended(ended) = answer
                    && events.send(Event::Heard(number, ended)).is_err()
                {
                    return;
                }
            }
            let _ = events.send(Event::Broken(number));
        })?;
        self.line = Some(line);
        Ok(())
    }

    fn launch(&mut self) -> Result<(), Error> {
        if let Some(warden) = &mut self.warden {
            // One that ended is reaped; one that has not will let a second supervisor find the lock taken.
            let _ = warden.try_wait();
        }
        let path = self.layout.log();
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(|source| Error::Io { doing: "open", path, source })?;
        let launch = &self.setup.launch;
        let started = Command::new(&launch.program)
            .arg0("shoal")
            .args(&launch.arguments)
            .arg(self.layout.home())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let wrong = |source| Error::Io { doing: "start", path: launch.program.clone(), source };
        self.warden = Some(started.map_err(wrong)?);
        Ok(())
    }

    fn hang_up(&mut self) {
        if let Some(line) = self.line.take() {
            // Also ends the thread that reads from it.
            let _ = line.shutdown(Shutdown::Both);
        }
    }

    fn on_action(&mut self, now: Time, action: Action, completion: Completion<Node>) {
        let (task, ask) = match action {
            Action::Start { task, brief, stop_at, short, behind } => {
                (task, Ask::Start { brief, limit: stop_at.since(now), short, behind })
            }
            Action::Adopt(task) => (task, Ask::Adopt),
            Action::Stage { task, brief, owner } => {
                if let Some(files) = &self.setup.files {
                    files.stage(task, &brief, owner);
                }
                return;
            }
            Action::Stop(task) => {
                if self.waiting.get(&task).is_some_and(|waiting| waiting.waited.is_none()) {
                    // It waits for its files: no supervisor has heard of it.
                    self.give_up(task, Exit::Stopped);
                } else if let Some(waiting) = self.waiting.get_mut(&task) {
                    waiting.stop = true;
                    if self.line.is_some() {
                        Request::Stop(task).write(&mut self.out);
                    }
                }
                return;
            }
        };
        match (&ask, self.waiting.get_mut(&task)) {
            // A second start is none.
            (Ask::Start { .. }, Some(_)) => return,
            (Ask::Adopt, Some(waiting)) => {
                waiting.completion = completion;
                return;
            }
            (_, None) => {}
        }
        let since = Instant::now();
        let waited = if self.await_files(task, &ask) { None } else { Some(Duration::ZERO) };
        let waiting = Waiting { ask, since, waited, handed_over: false, stop: false, completion };
        self.waiting.insert(task, waiting);
        if waited.is_some() && self.line.is_some() {
            self.ask(task);
        }
    }

    /// Whether a task has files to wait for; if so, their coming is heard of.
    fn await_files(&self, task: Task, ask: &Ask) -> bool {
        let Ask::Start { brief, limit, .. } = ask else { return false };
        let waits = match &self.setup.files {
            // For outputs alone too: a quick task would end before it is written down what is kept of it.
            Some(_) => has_files(brief),
            None => brings_files(brief),
        };
        if !waits {
            return false;
        }
        let events = self.events.clone();
        let then = Box::new(move |result| {
            // The executor may be gone by then, and so is the task.
            let _ = events.send(Event::Ready(task, result));
        });
        match &self.setup.files {
            Some(files) => {
                let half = Duration::from_micros(limit.as_micros() / 2);
                let within = match brief.nodes.len() {
                    1 => half.clamp(staging::WAITS_LEAST, staging::WAITS_MOST),
                    _ => staging::GANG_WAITS,
                };
                files.when_ready(task, within, then);
            }
            None => then(Err("this node takes no files".to_owned())),
        }
        true
    }

    fn on_ready(&mut self, task: Task, result: Result<(), String>) {
        let Some(waiting) = self.waiting.get_mut(&task).filter(|waiting| waiting.waited.is_none()) else {
            return;
        };
        match result {
            Ok(()) => {
                waiting.waited = Some(waiting.since.elapsed());
                if self.line.is_some() {
                    self.ask(task);
                }
            }
            Err(why) => {
                tracing::warn!("a task of job {} does not start without its files: {why}", task.job);
                self.give_up(task, Exit::Unstaged);
            }
        }
    }

    /// Says how a task ended that never began.
    fn give_up(&mut self, task: Task, exit: Exit) {
        if let Some(waiting) = self.waiting.remove(&task) {
            waiting.completion.complete(Outcome::unmeasured(task, exit));
        }
    }

    /// Asks for one thing; all of this can be asked twice.
    fn ask(&mut self, task: Task) {
        let Some(waiting) = self.waiting.get_mut(&task) else { return };
        // Its files are not there.
        let Some(waited) = waiting.waited else { return };
        let late = waiting.since.elapsed().saturating_sub(waited) > LATE;
        match &waiting.ask {
            // Started long ago, or never: in no case now.
            Ask::Start { .. } if late => Request::Adopt(task).write(&mut self.out),
            Ask::Adopt => Request::Adopt(task).write(&mut self.out),
            Ask::Start { behind: Some(_), .. } if self.speaks < VERSION_OF_LINES => {
                self.give_up(task, Exit::NotStarted);
                return;
            }
            Ask::Start { brief, limit, short, behind } => {
                let job = brief.envelope.job();
                let name = |&node| {
                    let mut name = (self.setup.names)(node);
                    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
                    name
                };
                let image = match job.image().map(|name| (name, self.setup.images.get(name))) {
                    None => None,
                    Some((_, Some(root))) => Some(root.to_string_lossy().into_owned()),
                    Some((name, None)) => {
                        tracing::warn!(
                            "job {} asks for the image `{name}`, which this node has not",
                            task.job
                        );
                        self.give_up(task, Exit::NotStarted);
                        return;
                    }
                };
                let secrets = match job.secrets.as_ref().map(|_| (self.setup.secrets)(task, brief)) {
                    None => None,
                    Some(Some(secrets)) => Some(secrets),
                    Some(None) => {
                        tracing::warn!("a task of job {} does not start without its secrets", task.job);
                        self.give_up(task, Exit::Unstaged);
                        return;
                    }
                };
                let walls = (self.setup.cells)(brief).map(Box::new);
                let mut keep = self.setup.keep;
                // Whom we do not trust is kept to what was granted, as far as the system can.
                (keep.grouped, keep.capped) = (keep.grouped | walls.is_some(), keep.capped | walls.is_some());
                let order = Order {
                    task,
                    work: job.work.clone(),
                    environment: job.environment.clone(),
                    nodes: u32::try_from(brief.nodes.len()).unwrap_or(u32::MAX),
                    cores: job.resources.cores,
                    memory: job.resources.memory,
                    limit: limit.saturating_sub(span(waiting.since.elapsed())),
                    grace: self.setup.grace,
                    output_max: self.setup.output_max.as_bytes(),
                    // What it waited for its files is missing at the end.
                    short: *short || waited > WAITED_LEAST,
                    gpus: Some(job.resources.gpus),
                    peers: Some(brief.nodes.iter().map(name).collect()),
                    array_index: brief.index,
                    keep: Some(keep),
                    prepared: brings_files(brief),
                    walls,
                    image,
                    secrets,
                    behind: *behind,
                    array: brief.index.map(|_| brief.envelope.id()),
                };
                if order.is_confined() && self.speaks < VERSION_OF_CELLS {
                    tracing::error!(
                        "a task of job {} does not start: the supervisor is of an older version, and knows of no cells; it ends \
                         when it has nothing to run",
                        task.job
                    );
                    self.give_up(task, Exit::NotStarted);
                    return;
                }
                if order.prepared && self.speaks < VERSION_OF_FILES {
                    tracing::error!(
                        "a task of job {} does not start: the supervisor is of an older version, and looks for its files in \
                         another place; it ends when it has nothing to run",
                        task.job
                    );
                    self.give_up(task, Exit::NotStarted);
                    return;
                }
                Request::Start(Box::new(order)).write(&mut self.out);
            }
        }
        waiting.handed_over = true;
        if waiting.stop {
            Request::Stop(task).write(&mut self.out);
        }
    }

    fn ask_again(&mut self) {
        self.out.clear();
        for task in self.waiting.keys().copied().collect::<Vec<_>>() {
            self.ask(task);
        }
    }

    fn say(&mut self) {
        if let Some(line) = &mut self.line
            && !self.out.is_empty()
            && line.write_all(&self.out).is_err()
        {
            // The reader notices too, and all is asked again on the next line.
            self.hang_up();
        }
        self.out.clear();
    }

    fn on_ended(&mut self, ended: &Ended) {
        (self.setup.hears)(ended);
        let Some(waiting) = self.waiting.remove(&ended.task) else { return };
        let (task, exit) = (ended.task, ended.exit);
        let ran = match exit {
            Exit::Code(_) | Exit::Signal(_) | Exit::Overran => true,
            // Nobody asks for what these left behind: the job runs again, or was taken back.
            Exit::Stopped
            | Exit::Lost
            | Exit::NotStarted
            | Exit::CutShort
            | Exit::Unstaged
            | Exit::GivenBack => false,
        };
        // One that never ran took nothing; one that was stopped did.
        let usage = (ended.usage != Usage::default()).then(|| Box::new(ended.usage));
        // Of one that an earlier life started it is not known here.
        let plain = matches!(&waiting.ask, Ask::Start { brief, .. } if !has_files(brief));
        let done = move || waiting.completion.complete(Outcome(task, exit, usage));
        match &self.setup.files {
            Some(files) if ran && !plain => files.collect(task, Box::new(done)),
            Some(files) => {
                files.forget(task);
                done();
            }
            None => done(),
        }
    }

    /// What no supervisor has heard of cannot have begun, and is too late now.
    fn give_up_late_starts(&mut self) {
        let late = |waiting: &Waiting| {
            let late =
                waiting.waited.is_some_and(|waited| waiting.since.elapsed().saturating_sub(waited) > LATE);
            matches!(waiting.ask, Ask::Start { .. }) && !waiting.handed_over && late
        };
        let tasks: Vec<Task> =
            self.waiting.iter().filter(|(_, waiting)| late(waiting)).map(|(&task, _)| task).collect();
        for task in tasks {
            self.give_up(task, Exit::NotStarted);
        }
    }
}

/// Whether a task has files or secrets, before it or after.
fn has_files(brief: &Brief) -> bool {
    let job = brief.envelope.job();
    job.files.is_some() || job.secrets.is_some()
}

/// Whether a task needs files to start.
fn brings_files(brief: &Brief) -> bool {
    brief.envelope.job().files.as_ref().is_some_and(|files| !files.inputs.is_empty())
}

fn span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
