//! The one thread that decides: what is started, what is stopped, what has ended and who is told.
//!
//! ```text
//!           Start: written, then forked         its leader has ended: the rest of its tree is killed
//!  unknown ───────────────────────────▶ runs ──────────────────────────────────────────────────────▶ ended, written,
//!                                        │ Stop, or its limit: TERM      ▲                            then told
//!                                        └────▶ may tidy up ─────────────┘ gone, or KILL after the grace
//! ```
//!
//! Quick tasks that wait in line run without it ([`riding`]).
//!
//! A *turn* takes all that has come, as the driver's does, and writes what follows from it; then it forks and tells. A
//! ledger that fails ends the supervisor, and with it every task: what is not written did not happen.

mod riding;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};
use shoal_model::units::About;
use shoal_model::{Size, Span};
use shoal_protocols::node::{Exit, Task, Usage};

use super::super::layout::Layout;
use super::super::words::{Answer, Ended, Order, Request};
use super::grants::{Grant, Grants};
use super::groups::{Groups, Whose};
use super::ledger::Ledger;
use super::lines::{Lines, Waiting};
use super::reaper::{self, Reaper};
use super::rides::{Number, Rides};
use super::spawner::{Failed, Spawned, Spawner};
use super::{Event, TASKS_MAX, WAITING_MAX, carriage, ended, output, survey, system};
use crate::bounded;
use crate::clock::Clock;
use crate::store;

/// How often outputs are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long the ends of tasks that ride may wait to be written and told, for many at once.
const GATHER: Duration = Duration::from_millis(200);
/// How long the end of any other may wait while there are some that ride.
const REAP: Duration = Duration::from_millis(3);
/// How long a supervisor without daemon and tasks stays: all that it knows is on disk.
const LINGER: Duration = Duration::from_secs(2);
/// What is taken in one turn, at most: nobody waits for ever.
const TURN_MAX: usize = 1_024;
/// How long tasks that would ride in a carriage have cells of their own when one could not be made.
const ON_FOOT: Duration = Duration::from_secs(60);
/// How long a carriage may take to say how a task has ended that was killed.
const LAST_WORD: Duration = Duration::from_secs(1);

/// All that the supervisor's main thread owns.
pub(super) struct Keeper {
    layout: Layout,
    ledger: Ledger,
    spawner: Spawner,
    reaper: Reaper,
    grants: Grants,
    control_groups: Arc<Groups>,
    survey: Sender<survey::Word>,
    /// Control groups that could not be removed yet.
    left: Vec<Whose>,
    daemons: BTreeMap<u64, bounded::Sender<Answer>>,
    tasks: BTreeMap<Task, Running>,
    /// Orders that wait for others to end, and who is told of them.
    lines: Lines,
    rides: Arc<Rides>,
    /// The ride of each task that rides and has not ended, as far as was gathered.
    riders: BTreeMap<Task, Number>,
    /// The rides themselves.
    rides_known: BTreeMap<Number, riding::Ride>,
    /// How many there have been.
    rides_begun: Number,
    /// Who joins rides in this turn.
    joining: Vec<riding::Joining>,
    /// When they were gathered last.
    gathered: Instant,
    /// When it was looked last which others have ended.
    reaped: Instant,
    /// Until when none begins in a carriage, since one could not be made.
    on_foot_until: Option<Instant>,
    /// The first process of each task, until it is reaped.
    leaders: BTreeMap<Pid, Task>,
    /// The process group of each task.
    groups: BTreeMap<Pid, Task>,
    /// When something is to be done about a task.
    alarms: BTreeSet<(Instant, Task)>,
    /// To be forked once the ledger is written.
    starts: Vec<(Order, Grant)>,
    /// Rides that begin then, and whether in a carriage.
    go: Vec<(Number, bool)>,
    /// To be told then.
    news: Vec<(u64, Ended)>,
    /// Says how old an end is.
    clock: Clock,
    /// When outputs were looked at last.
    looked: Instant,
    /// Since when nobody needs us.
    idle_since: Option<Instant>,
}

/// A task that was forked, or is about to be.
struct Running {
    /// The daemon that is told.
    asker: u64,
    stage: Stage,
    since: Instant,
    group: Option<Pid>,
    alarm: Option<Instant>,
    /// What it is said to have done when its limit is over.
    overrun: Exit,
    grace: Duration,
    output_max: u64,
    dropped: [u64; 2],
    /// Whether it may be in control groups.
    grouped: bool,
    memory: Size,
    /// Whether it is in a cell.
    confined: bool,
    /// The ride that was its, if it is in a carriage, which is its leader then.
    carriage: Option<Number>,
    /// What is to be said to it again, for nobody has heard it.
    unheard: Option<Signal>,
    /// The bytes that it may have on disk, and whether it had more.
    disk: Option<u64>,
    full: bool,
    /// Why it is being ended.
    cause: Option<Exit>,
    /// What its carriage has said of its end.
    reason: Option<String>,
    /// It had its grace: whatever is left of it is killed.
    no_mercy: bool,
}

enum Stage {
    /// In the spawner's hands.
    Forking,
    /// Its first process lives.
    Led(Pid),
    /// Its first process has ended thus, and others of it may be left.
    Leaderless(Exit, Usage),
}

impl Running {
    fn new(order: &Order, asker: u64, stage: Stage, since: Instant, alarm: Option<Instant>) -> Running {
        Running {
            asker,
            stage,
            since,
            group: None,
            alarm,
            overrun: if order.short { Exit::CutShort } else { Exit::Overran },
            grace: micros(order.grace),
            output_max: order.output_max,
            dropped: [0; 2],
            grouped: order.is_grouped(),
            memory: order.memory,
            confined: order.is_confined(),
            carriage: None,
            unheard: None,
            disk: order.walls.as_ref().and_then(|walls| walls.disk),
            full: false,
            cause: None,
            reason: None,
            no_mercy: false,
        }
    }

    /// Its control groups, or those that it shares with who rode before it.
    fn groups(&self, task: Task) -> Whose {
        self.carriage.map_or(Whose::Task(task), Whose::Ride)
    }

    /// Sends a signal to the process group of a task whose leader lives.
    fn signal(&mut self, signal: Signal) {
        match (&self.stage, self.carriage) {
            (&Stage::Led(leader), None) => drop(killpg(leader, signal)),
            // One that was let in and has not begun hears nothing.
            (&Stage::Led(carriage), Some(_)) => {
                self.unheard = if carriage::signal(carriage, signal) { None } else { Some(signal) };
            }
            _ => {}
        }
    }
}

impl Keeper {
    pub fn new(
        layout: Layout,
        ledger: Ledger,
        spawner: Spawner,
        reaper: Reaper,
        control_groups: Arc<Groups>,
        rides: Arc<Rides>,
        survey: Sender<survey::Word>,
    ) -> Keeper {
        Keeper {
            grants: Grants::new(layout.home()),
            layout,
            ledger,
            spawner,
            reaper,
            control_groups,
            survey,
            left: Vec::new(),
            daemons: BTreeMap::new(),
            tasks: BTreeMap::new(),
            lines: Lines::default(),
            rides,
            riders: BTreeMap::new(),
            rides_known: BTreeMap::new(),
            rides_begun: 0,
            joining: Vec::new(),
            gathered: Instant::now(),
            reaped: Instant::now(),
            on_foot_until: None,
            leaders: BTreeMap::new(),
            groups: BTreeMap::new(),
            alarms: BTreeSet::new(),
            starts: Vec::new(),
            go: Vec::new(),
            news: Vec::new(),
            clock: Clock::new(),
            looked: Instant::now(),
            idle_since: Some(Instant::now()),
        }
    }

    /// Works until nobody has needed it for a while.
    pub fn run(&mut self, inbox: &Receiver<Event>) -> Result<(), store::Error> {
        loop {
            let mut next = match self.next_wake() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
            }
            .ok();
            let mut left = TURN_MAX;
            while let Some(event) = next {
                self.on_event(event)?;
                left -= 1;
                next = if left > 0 { inbox.try_recv().ok() } else { None };
            }
            self.turn()?;
            if self.idle_since.is_some_and(|since| since.elapsed() >= LINGER) {
                self.control_groups.clear();
                return Ok(());
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let look = if self.tasks.is_empty() && self.rides_known.is_empty() {
            None
        } else {
            Some(self.looked + LOOK)
        };
        let alarm = self.alarms.first().map(|alarm| alarm.0);
        let leave = self.idle_since.map(|since| since + LINGER);
        let rides = !self.rides_known.is_empty();
        let gather = rides.then(|| self.gathered + GATHER);
        let reap = (rides && !self.tasks.is_empty()).then(|| self.reaped + REAP);
        [look, alarm, leave, gather, reap, self.ledger.sync_at()].into_iter().flatten().min()
    }

    fn on_event(&mut self, event: Event) -> Result<(), store::Error> {
        match event {
            Event::Came(daemon, answers) => drop(self.daemons.insert(daemon, answers)),
            Event::Gone(daemon) => drop(self.daemons.remove(&daemon)),
            Event::Said(daemon, Request::Start(order)) => self.on_start(daemon, *order)?,
            Event::Said(daemon, Request::Adopt(task)) => self.on_adopt(daemon, task),
            Event::Said(_, Request::Stop(task)) => {
                let due = self.take_over_for(task)?;
                match self.lines.take_out(task) {
                    Some(waiting) => self.tell_taken_out(&waiting)?,
                    None => self.stop(task, Exit::Stopped),
                }
                due.map_or(Ok(()), |before| self.call_next(before))?;
            }
            Event::Said(_, Request::Hello(_)) | Event::Spawned => {}
            Event::Reap => self.reaper.has_spoken(),
            Event::Full(task) => self.on_full(task),
        }
        Ok(())
    }

    /// Does all that follows from what has come.
    fn turn(&mut self) -> Result<(), store::Error> {
        self.board()?;
        self.on_spawned()?;
        if self.rides.are_done() || self.gathered.elapsed() >= GATHER {
            self.gather_rides()?;
        }
        self.call_behind_waiting()?;
        self.ring_alarms();
        self.look_at_outputs()?;
        self.reap()?;
        self.bury()?;
        self.forget()?;

        self.ledger.write()?;
        for (order, grant) in self.starts.drain(..) {
            self.spawner.start(order, grant);
        }
        for (ride, carriage) in std::mem::take(&mut self.go) {
            if !self.spawner.ride(ride, carriage)
                && let Some(before) = self.take_over(ride)?
            {
                self.call_next(before)?;
            }
        }
        for (daemon, ended) in self.news.drain(..) {
            // One that takes nothing any more is cut off: its writer ends with the last sender.
            if let Some(answers) = self.daemons.get(&daemon)
                && answers.try_send(Answer::Ended(ended)).is_err()
            {
                self.daemons.remove(&daemon);
            }
        }
        let forked = |running: &Running| !matches!(running.stage, Stage::Forking);
        // While there are rides whatever ends is looked for now and then: to be woken for each of theirs too would be too
        // much.
        if self.rides_known.is_empty() && self.tasks.values().any(forked) {
            self.reaper.wait();
        }
        let works = !self.tasks.is_empty() || !self.rides_known.is_empty();
        let idle = !works && self.daemons.is_empty();
        debug_assert!(works || self.lines.len() == 0, "whoever waits, waits for one that runs");
        self.idle_since = if idle { self.idle_since.or_else(|| Some(Instant::now())) } else { None };
        Ok(())
    }

    fn on_start(&mut self, daemon: u64, order: Order) -> Result<(), store::Error> {
        let task = order.task;
        if self.ledger.get(task).is_some() || self.lines.contains(task) {
            // Never a second time: the daemon asks again after a broken connection, or in error.
            self.on_adopt(daemon, task);
            return Ok(());
        }
        match order.behind {
            Some(_) if self.lines.len() >= WAITING_MAX => {
                let reason = Some(format!("{WAITING_MAX} tasks wait here already"));
                return self.note(daemon, ended(task, Exit::NotStarted, reason));
            }
            Some(before) if self.is_before_its_end(before) => {
                let before = self.end_of_ride(before);
                let Some(order) = self.join_behind(daemon, before, order)? else { return Ok(()) };
                self.lines.push(before, Waiting { asker: daemon, since: Instant::now(), order });
                return Ok(());
            }
            // It has ended: there is nothing to wait for.
            Some(before) if self.ledger.get(before).is_some() => {}
            // Started now, it would run beside those that it was to run after.
            Some(_) => {
                let reason = Some("it was to follow a task that is not known here".to_owned());
                return self.note(daemon, ended(task, Exit::NotStarted, reason));
            }
            None => {}
        }
        match self.join_waiting(daemon, order)? {
            Some(order) => self.begin(daemon, order),
            None => Ok(()),
        }
    }

    /// Whether a task runs, or waits for its turn.
    fn is_before_its_end(&self, task: Task) -> bool {
        self.tasks.contains_key(&task) || self.riders.contains_key(&task) || self.lines.contains(task)
    }

    /// Starts a task whose turn has come.
    fn begin(&mut self, daemon: u64, order: Order) -> Result<(), store::Error> {
        let task = order.task;
        self.ledger.begin(task)?;
        let refused = match (self.tasks.len() < TASKS_MAX, order.limit > Span::ZERO) {
            (true, true) => None,
            (false, _) => Some(format!("{TASKS_MAX} tasks run here already")),
            (_, false) => Some("its time was over before it could start".to_owned()),
        };
        let granted = match refused {
            Some(reason) => Err(reason),
            None => self.grant(&order)?,
        };
        let grant = match granted {
            Ok(grant) => grant,
            Err(reason) => return self.note(daemon, ended(task, Exit::NotStarted, Some(reason))),
        };
        let alarm = Instant::now().checked_add(micros(order.limit));
        self.alarms.extend(alarm.map(|at| (at, task)));
        let running = Running::new(&order, daemon, Stage::Forking, Instant::now(), alarm);
        self.tasks.insert(task, running);
        self.starts.push((order, grant));
        Ok(())
    }

    fn on_adopt(&mut self, daemon: u64, task: Task) {
        if self.lines.adopt(task, daemon) {
            return;
        }
        if let Some(ride) = self.riders.get(&task).and_then(|ride| self.rides_known.get_mut(ride)) {
            ride.asker = daemon;
            return;
        }
        match (self.tasks.get_mut(&task), self.ledger.get(task)) {
            (Some(running), _) => running.asker = daemon,
            (None, Some(Some(ended))) => self.news.push((daemon, ended.clone())),
            (None, _) => {
                let reason = Some("it is not known here".to_owned());
                self.news.push((daemon, ended(task, Exit::Lost, reason)));
            }
        }
    }

    /// Asks a task to end, and remembers why; what it does not do within its grace is done to it.
    fn stop(&mut self, task: Task, cause: Exit) {
        let Some(running) = self.tasks.get_mut(&task) else { return };
        // One that has ended by itself and is being cleared away keeps its exit.
        if running.cause.is_some() || matches!(running.stage, Stage::Leaderless(..)) {
            return;
        }
        running.cause = Some(cause);
        running.signal(Signal::SIGTERM);
        let alarm = Instant::now().checked_add(running.grace);
        if let Some(old) = std::mem::replace(&mut running.alarm, alarm) {
            self.alarms.remove(&(old, task));
        }
        self.alarms.extend(alarm.map(|at| (at, task)));
    }

    /// Kills a task that takes more room on disk than it has: asked to end, it could go on writing.
    fn on_full(&mut self, task: Task) {
        let Some(running) = self.tasks.get_mut(&task) else { return };
        running.full = true;
        self.kill(task);
    }

    /// Kills all of a task that can be found.
    fn kill(&mut self, task: Task) {
        let Some(running) = self.tasks.get_mut(&task) else { return };
        let is_first = !std::mem::replace(&mut running.no_mercy, true);
        running.signal(Signal::SIGKILL);
        if let (Stage::Led(carriage), Some(_), true) = (&running.stage, running.carriage, is_first) {
            // It says what the task has taken, if it is let.
            let _ = kill(*carriage, Signal::SIGCONT);
            let alarm = Instant::now() + LAST_WORD;
            if let Some(old) = running.alarm.replace(alarm) {
                self.alarms.remove(&(old, task));
            }
            self.alarms.insert((alarm, task));
            return;
        }
        if let (Stage::Led(carriage), Some(_)) = (&running.stage, running.carriage) {
            let _ = kill(*carriage, Signal::SIGKILL);
        }
        if running.grouped {
            self.control_groups.kill(running.groups(task));
        }
    }

    fn ring_alarms(&mut self) {
        let now = Instant::now();
        while let Some(&(at, task)) = self.alarms.first().filter(|alarm| alarm.0 <= now) {
            self.alarms.remove(&(at, task));
            let Some(running) = self.tasks.get_mut(&task) else { continue };
            running.alarm = None;
            if running.cause.is_none() && !running.no_mercy {
                let overrun = running.overrun;
                self.stop(task, overrun);
            } else {
                self.kill(task);
            }
        }
    }

    fn on_spawned(&mut self) -> Result<(), store::Error> {
        for Spawned { task, result } in self.spawner.take() {
            match result {
                Ok(leader) => {
                    let Some(running) = self.tasks.get_mut(&task) else { continue };
                    self.leaders.insert(leader, task);
                    self.groups.insert(leader, task);
                    running.group = Some(leader);
                    running.stage = Stage::Led(leader);
                    // What was said to it while it was being forked.
                    if std::mem::take(&mut running.no_mercy) {
                        self.kill(task);
                    } else if running.cause.is_some() {
                        running.signal(Signal::SIGTERM);
                    }
                    self.begins(task, &self.tasks[&task]);
                }
                Err(Failed { exit, reason }) => self.end(task, ended(task, exit, Some(reason)))?,
            }
        }
        Ok(())
    }

    /// Has one looked after that is not trusted, now that its folders are there.
    fn begins(&self, task: Task, running: &Running) {
        if let Some(ride) = running.carriage {
            carriage::Folder::of(&self.layout, ride, task).show();
        }
        if let Some(most) = running.disk {
            let folders = match running.carriage {
                Some(ride) => [self.layout.riding(ride, task), self.layout.carriage_temporary(ride)],
                None => [self.layout.attempt(task), self.layout.temporary(task)],
            };
            // The thread lives as long as this.
            let _ = self.survey.send(survey::Word::Watch(task, folders.to_vec(), most));
        }
    }

    fn look_at_outputs(&mut self) -> Result<(), store::Error> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.take_over_slow()?;
        for (&task, running) in &mut self.tasks {
            if let Some(signal) = running.unheard {
                running.signal(signal);
            }
            output::cut(&self.layout.attempt(task), running.output_max, &mut running.dropped);
        }
        self.looked = Instant::now();
        Ok(())
    }

    /// Reaps all that has ended: first processes with what they took, orphans without.
    fn reap(&mut self) -> Result<(), store::Error> {
        self.reaped = Instant::now();
        let mut asked = None;
        while let Some(pid) = reaper::next_ended(self.leaders.keys().copied()) {
            if let Some(task) = self.leaders.remove(&pid) {
                self.reap_leader(task, pid);
            } else if self.rides.knows(pid) {
                // Its thread is about to: whatever else has ended is found the next time.
                return Ok(());
            } else if asked != Some(pid) {
                // An orphan, or a task so quick that its end comes before the word of its start.
                asked = Some(pid);
                drop(self.spawner.pause());
                self.on_spawned()?;
            } else {
                reaper::discard(pid);
            }
        }
        Ok(())
    }

    fn reap_leader(&mut self, task: Task, pid: Pid) {
        let Some(running) = self.tasks.get_mut(&task) else { return };
        if running.cause.is_none() {
            running.no_mercy = true;
        }
        if running.no_mercy {
            // While the leader is not reaped, the number of its group is nobody else's.
            let _ = killpg(pid, Signal::SIGKILL);
            if running.grouped {
                self.control_groups.kill(running.groups(task));
            }
        }
        let (exit, usage) = match running.carriage.map(|ride| (ride, self.rides.told(ride))) {
            None => reaper::reap(pid, running.since),
            Some((_, Some(told))) => {
                reaper::discard(pid);
                running.reason = told.reason;
                (told.exit, told.usage)
            }
            Some((ride, None)) => {
                let folder = carriage::Folder::of(&self.layout, ride, task);
                carriage::reap_untold(pid, &folder, running.since)
            }
        };
        running.stage = Stage::Leaderless(running.cause.unwrap_or(exit), usage);
    }

    /// Ends the tasks of which no process is left, and kills what is left of those that had their grace.
    fn bury(&mut self) -> Result<(), store::Error> {
        let mut gone: BTreeMap<Task, (Exit, Usage)> = BTreeMap::new();
        for (&task, running) in &self.tasks {
            if let Stage::Leaderless(exit, usage) = running.stage {
                gone.insert(task, (exit, usage));
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        // Of a tree that has lost its root, the highest that lives is always an orphan: no need to look further down.
        for orphan in system::children_of_main().unwrap_or_default() {
            match self.task_of(orphan) {
                Some(task) => {
                    if gone.remove(&task).is_some() && self.tasks[&task].no_mercy {
                        let _ = kill(orphan, Signal::SIGKILL);
                    }
                }
                // It hides whose it is, or is dying: it may belong to any of them, so that none is over before it is gone.
                None => {
                    let _ = kill(orphan, Signal::SIGKILL);
                    gone.clear();
                }
            }
        }
        for (task, (exit, usage)) in gone {
            let reason = self.tasks.get_mut(&task).and_then(|running| running.reason.take());
            self.end(task, Ended { usage, ..ended(task, exit, reason) })?;
        }
        Ok(())
    }

    /// The task that an orphan belongs to, by its group, or by its environment if it has left that.
    fn task_of(&self, orphan: Pid) -> Option<Task> {
        let group = getpgid(Some(orphan)).ok().and_then(|group| self.groups.get(&group));
        // One that says it belongs to a task that is not here does not say the truth.
        let says =
            || system::task_of(orphan, self.layout.home()).filter(|task| self.tasks.contains_key(task));
        group.copied().or_else(says)
    }

    /// Closes the books on a task.
    fn end(&mut self, task: Task, mut ended: Ended) -> Result<(), store::Error> {
        let Some(mut running) = self.tasks.remove(&task) else { return Ok(()) };
        if let Some(alarm) = running.alarm {
            self.alarms.remove(&(alarm, task));
        }
        // The system may have given the number to another task by now.
        if let Some(group) = running.group
            && self.groups.get(&group) == Some(&task)
        {
            self.groups.remove(&group);
        }
        self.grants.give_back(task);
        if let Some(ride) = running.carriage {
            carriage::Folder::of(&self.layout, ride, task).alight();
        }
        if running.grouped {
            let groups = running.groups(task);
            if ended.exit == Exit::Signal(Signal::SIGKILL as i32) && self.control_groups.ran_out(groups) {
                let most = About::Up(running.memory);
                ended.reason =
                    Some(format!("the system killed it: it used more than the {most} that it asked for"));
            }
            if !self.control_groups.remove(groups) {
                self.left.push(groups);
            }
        }
        if running.confined {
            if running.disk.is_some() {
                let _ = self.survey.send(survey::Word::Leave(task));
            }
            if let Some(most) = running.disk.filter(|_| running.full) {
                let most = About::Up(Size::from_bytes(most));
                ended.reason =
                    Some(format!("it was killed: it took more than the {most} of disk that it has"));
            }
            match running.carriage {
                Some(ride) => self.spawner.dismantle(ride),
                None => self.spawner.clear(task),
            }
        }
        output::finish(&self.layout.attempt(task), running.output_max, &mut running.dropped);
        [ended.stdout_dropped, ended.stderr_dropped] = running.dropped;
        self.note(running.asker, ended)?;
        self.call_next(task)
    }

    /// A task has ended: whoever waits for that has its turn.
    fn call_next(&mut self, before: Task) -> Result<(), store::Error> {
        let Some(first) = self.lines.next_after(before) else { return Ok(()) };
        let asker = first.asker;
        let first = Waiting { since: Instant::now(), asker, order: first.due() };
        let Some(alone) = self.ride(before, first)? else {
            return Ok(());
        };
        let task = alone.order.task;
        self.begin(asker, alone.order)?;
        // It may have been refused.
        if !self.tasks.contains_key(&task) { self.call_next(task) } else { Ok(()) }
    }

    fn note(&mut self, daemon: u64, ended: Ended) -> Result<(), store::Error> {
        self.ledger.end(ended.clone())?;
        self.news.push((daemon, ended));
        Ok(())
    }

    /// Has what is outdated removed, and forgets what is gone.
    fn forget(&mut self) -> Result<(), store::Error> {
        for task in self.spawner.take_removed() {
            self.ledger.forget(task)?;
        }
        let now = self.clock.now();
        while let Some(task) = self.ledger.outdated(now) {
            self.spawner.remove(task);
        }
        self.left.retain(|&groups| !self.control_groups.remove(groups));
        Ok(())
    }
}

fn micros(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}
