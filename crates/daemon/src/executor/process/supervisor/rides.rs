//! Lines that go on by themselves: quick tasks one after the other, without a word of the keeper's in between.
//!
//! ```text
//! keeper ── begin ──▶ ride: a thread that forks the next task, waits for its end and reaps it, and so on
//!    ▲                  │
//!    └─ gather ◀────────┘  now and then, and when it is over
//! ```
//!
//! To have the keeper decide between two tasks takes as long as a task that does nothing. A line whose orders are plain and
//! alike has nothing that must be decided, so all of it is written down as begun, and a thread goes through it. How they
//! ended is gathered, and written and told for many at once.
//!
//! The next of the same array join a ride while it lasts, and it waits a little for them when it has come to its end: they
//! need no place, thread or carriage of their own.
//!
//! As soon as something is to be decided after all the ride is over, and the rest of it the keeper's: a task is to be
//! stopped, is not quick, has left something behind, or the time of its place comes to an end. The thread stays until
//! the last that it forked has ended: the children of a thread that is gone look like orphans.
//!
//! Tasks that are not trusted ride in a [carriage](super::carriage), which is forked once and is the leader of each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use shoal_model::Span;
use shoal_protocols::node::{Exit, Task, Usage};

use super::super::layout::Layout;
use super::super::words::{Ended, Order};
use super::carriage::{self, Folder};
use super::grants::Grant;
use super::spawner::Failed;
use super::{ended, output, reaper, system};

/// How tasks have ended whose carriages are the keeper's, at most. Of one whose word comes too late nobody asks.
const TOLD_MAX: usize = 256;
/// An order with less time than this left does not ride: its end would have to be watched for.
const TIME_LEAST: Span = Span::from_secs(1);

/// How long a ride waits for more when it has come to its end: far longer than the next of an array needs to be handed over.
const WAITS: Duration = Duration::from_millis(100);

const UNPOISONED: &str = "nothing panics while it holds the rides";

/// Which ride: none has the number of another.
pub(super) type Number = u64;

/// All rides.
pub(super) struct Rides {
    layout: Layout,
    inner: Mutex<Inner>,
    /// Some have joined, or a ride is over that has waited for them.
    joined: Condvar,
}

#[derive(Default)]
struct Inner {
    rides: BTreeMap<Number, Ride>,
    /// Whose ride a process is of: a task's first, or a carriage.
    of: BTreeMap<Pid, Number>,
    /// How the last of rides have ended whose carriages are the keeper's by now.
    told: BTreeMap<Number, Ended>,
    ended: Vec<Ended>,
    over: Vec<Over>,
    /// Whether a ride has begun to wait since they were gathered.
    one_waits: bool,
}

struct Ride {
    began: Instant,
    grant: Arc<Grant>,
    current: Option<Current>,
    rest: VecDeque<Order>,
    /// The last that was forked, or could not be; before the first, the one that it comes behind.
    last: Task,
    /// Whether others can join it.
    is_open: bool,
}

impl Ride {
    /// Whether all of it have ended.
    fn is_at_its_end(&self) -> bool {
        self.current.is_none() && self.rest.is_empty()
    }
}

/// The one of a ride whose turn it is.
pub(super) struct Current {
    pub order: Arc<Order>,
    pub since: Instant,
    /// Its first process, or the carriage that it is in, once that is there.
    pub pid: Option<Pid>,
}

/// What is left of a task that was the last of its ride.
pub(super) enum Left {
    /// Its first process has ended thus, and others of it may be left.
    Leaderless(Exit, Usage),
    /// Its carriage, which is about to end.
    Carriage,
}

/// A ride that goes on no more.
pub(super) struct Over {
    pub ride: Number,
    pub began: Instant,
    /// What the rest of it comes behind.
    pub last: Task,
    /// Of which not all was gone.
    pub left: Option<(Current, Left)>,
    /// Whose turn had not come.
    pub rest: VecDeque<Order>,
    /// Whether there was no carriage for it.
    pub refused: bool,
}

/// A ride that the keeper takes over.
pub(super) struct TakenOver {
    pub began: Instant,
    pub last: Task,
    pub current: Option<Current>,
    pub rest: VecDeque<Order>,
}

/// What has come of rides.
pub(super) struct Gathered {
    pub ended: Vec<Ended>,
    pub over: Vec<Over>,
}

/// What is to be done once a task has ended.
pub(super) enum Then {
    /// This ride's next is to be forked, if there is one.
    Next(Number),
    /// Nothing: it has left something behind, and its ride is over.
    Over,
}

/// What has become of a fork.
pub(super) enum Forked {
    Runs(Pid),
    /// It could not be forked, and the next can be.
    Failed,
    /// It is no ride's any more.
    Taken(Result<Pid, Failed>),
}

/// Whether nothing about an order must be decided while it runs.
pub(super) fn may_ride(order: &Order) -> bool {
    let plain = !order.prepared && order.image.is_none() && order.secrets.is_none();
    // Who has walls has its carriage's groups.
    plain && (order.is_confined() || !order.is_grouped()) && order.limit >= TIME_LEAST
}

/// Whether others can have the place of an order after it, without a word of its own for each: the next of its array.
pub(super) fn can_be_joined(order: &Order) -> bool {
    order.array.is_some() && order.nodes == 1
}

/// Whether an order can have the place of another, and be in the same cell.
pub(super) fn is_alike(one: &Order, other: &Order) -> bool {
    let has = |order: &Order| (order.cores, order.gpus, order.memory, order.keep);
    let do_the_same =
        || one.array == other.array && one.work == other.work && one.environment == other.environment;
    has(one) == has(other) && one.walls == other.walls && (one.walls.is_none() || do_the_same())
}

/// How long ago that was.
fn past(since: Instant) -> Span {
    Span::from_micros(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX))
}

impl Rides {
    pub fn new(layout: &Layout) -> Rides {
        Rides { layout: layout.clone(), inner: Mutex::default(), joined: Condvar::new() }
    }

    /// Begins a ride, which comes behind a task that has ended. All of its tasks are in the ledger.
    pub fn begin(&self, ride: Number, behind: Task, rest: VecDeque<Order>, grant: Grant) {
        let grant = Arc::new(grant);
        let is_open = rest.back().is_some_and(can_be_joined);
        let ridden = Ride { began: Instant::now(), grant, current: None, rest, last: behind, is_open };
        self.lock().rides.insert(ride, ridden);
    }

    /// The order whose turn will be first; none if the ride is over.
    pub fn first(&self, ride: Number) -> Option<(Order, Arc<Grant>)> {
        let inner = self.lock();
        let ridden = inner.rides.get(&ride)?;
        Some((ridden.rest.front()?.clone(), Arc::clone(&ridden.grant)))
    }

    /// Notes the carriage of a ride. Called before anybody else may take it for an orphan.
    pub fn has_carriage(&self, ride: Number, carriage: Pid) {
        self.lock().of.insert(carriage, ride);
    }

    /// The carriage of a ride did not come to stand: whoever finds that it has ended may reap it.
    pub fn has_no_carriage(&self, carriage: Pid) {
        self.lock().of.remove(&carriage);
    }

    /// Ends a ride for which there is no carriage, before its first.
    pub fn refuse(&self, ride: Number) {
        self.lock().close(ride, None, true);
    }

    /// The order whose turn it is; none if the ride is over. Where there is none it waits for one, and says so first.
    pub fn next(&self, ride: Number, say: impl FnOnce()) -> Option<(Arc<Order>, Arc<Grant>)> {
        let mut inner = self.lock();
        let waits = |inner: &mut Inner| {
            inner.rides.get(&ride).is_some_and(|ridden| ridden.is_open && ridden.rest.is_empty())
        };
        if waits(&mut inner) {
            inner.one_waits = true;
            drop(inner);
            say();
            (inner, _) = self.joined.wait_timeout_while(self.lock(), WAITS, waits).expect(UNPOISONED);
        }
        let ridden = inner.rides.get_mut(&ride)?;
        let past = past(ridden.began);
        let in_time = |order: &Order| order.limit.saturating_sub(past) >= TIME_LEAST;
        match ridden.rest.pop_front_if(|order| in_time(order)) {
            Some(order) => {
                let order = Arc::new(order);
                ridden.last = order.task;
                ridden.current =
                    Some(Current { order: Arc::clone(&order), since: Instant::now(), pid: None });
                Some((order, Arc::clone(&ridden.grant)))
            }
            None => {
                inner.close(ride, None, false);
                None
            }
        }
    }

    /// Has an order ride behind all that do; gives it back if the ride is over. It is in the ledger.
    pub fn join(&self, ride: Number, mut order: Order) -> Option<Order> {
        let mut inner = self.lock();
        let Some(ridden) = inner.rides.get_mut(&ride) else { return Some(order) };
        let may_wait = ridden.is_at_its_end();
        // The time of all is counted from the beginning of the ride.
        order.limit = order.limit + past(ridden.began);
        ridden.rest.push_back(order);
        drop(inner);
        if may_wait {
            self.joined.notify_all();
        }
        None
    }

    /// Rides that have come to their ends, and wait for more or are about to.
    pub fn waiting(&self) -> Vec<Number> {
        let inner = self.lock();
        inner.rides.iter().filter(|(_, ridden)| ridden.is_at_its_end()).map(|(&ride, _)| ride).collect()
    }

    /// Notes what came of a fork. Called before anybody else may take the process for an orphan.
    pub fn spawned(&self, ride: Number, task: Task, result: Result<Pid, Failed>) -> Forked {
        let mut inner = self.lock();
        let Some(ridden) = inner.rides.get_mut(&ride) else {
            // A carriage in which others rode before.
            result.as_ref().ok().map(|pid| inner.of.remove(pid));
            return Forked::Taken(result);
        };
        match result {
            Ok(pid) => {
                if let Some(current) = &mut ridden.current {
                    current.pid = Some(pid);
                }
                inner.of.insert(pid, ride);
                Forked::Runs(pid)
            }
            Err(Failed { exit, reason }) => {
                ridden.current = None;
                inner.ended.push(ended(task, exit, Some(reason)));
                Forked::Failed
            }
        }
    }

    /// Reaps a process that has ended and is of a ride; none if it is not.
    pub fn reap(&self, pid: Pid) -> Option<Then> {
        let mut inner = self.lock();
        let ride = inner.of.remove(&pid)?;
        let current = inner.rides.get_mut(&ride)?.current.take()?;
        // While the leader is not reaped, the number of its group is nobody else's.
        let _ = killpg(pid, Signal::SIGKILL);
        let (exit, usage) = reaper::reap(pid, current.since);
        // Of a tree that has lost its root, the highest that lives is an orphan.
        if system::children_of_main().is_ok_and(|orphans| orphans.is_empty()) {
            let how = Ended { usage, ..ended(current.order.task, exit, None) };
            inner.finish(&self.layout, &current, how);
            return Some(Then::Next(ride));
        }
        inner.close(ride, Some((current, Left::Leaderless(exit, usage))), false);
        Some(Then::Over)
    }

    /// Notes how a task has ended that rode in a carriage; if nothing else of it is left, its folder is at its place. None if
    /// it is the keeper's by now, which learns from this what the end of the carriage means.
    pub fn rode(&self, ride: Number, how: Ended, clean: bool) -> Option<Then> {
        let mut inner = self.lock();
        let current = inner.rides.get_mut(&ride).and_then(|ridden| ridden.current.take());
        if let Some(current) = current.as_ref().filter(|_| clean) {
            inner.finish(&self.layout, current, how);
            return Some(Then::Next(ride));
        }
        if inner.told.len() >= TOLD_MAX {
            inner.told.pop_first();
        }
        inner.told.insert(ride, how);
        inner.close(ride, Some((current?, Left::Carriage)), false);
        Some(Then::Over)
    }

    /// Ends and reaps a carriage that no longer says what it should, unless it is the keeper's.
    pub fn lost(&self, ride: Number, carriage: Pid) {
        let is_ours = |inner: &Inner| inner.rides.get(&ride).is_some_and(|ridden| ridden.current.is_some());
        let inner = self.lock();
        if is_ours(&inner) {
            let _ = kill(carriage, Signal::SIGKILL);
        }
        drop(inner);
        // It may take its time, and the other rides go on.
        reaper::await_end(carriage);
        let mut inner = self.lock();
        let Some(current) = inner.rides.get_mut(&ride).and_then(|ridden| ridden.current.take()) else {
            return;
        };
        inner.of.remove(&carriage);
        let folder = Folder::of(&self.layout, ride, current.order.task);
        let (exit, usage) = carriage::reap_untold(carriage, &folder, current.since);
        inner.close(ride, Some((current, Left::Leaderless(exit, usage))), false);
    }

    /// Reaps a carriage that has ended with its ride.
    pub fn reap_carriage(&self, carriage: Pid) {
        let mut inner = self.lock();
        inner.of.remove(&carriage);
        reaper::discard(carriage);
    }

    /// How the task has ended that was the last in the carriage of a ride, if that is known.
    pub fn told(&self, ride: Number) -> Option<Ended> {
        self.lock().told.remove(&ride)
    }

    /// Whether a process is of a ride.
    pub fn knows(&self, pid: Pid) -> bool {
        self.lock().of.contains_key(&pid)
    }

    /// Whether there are rides that have come to their ends, and were not gathered.
    pub fn are_done(&self) -> bool {
        let inner = self.lock();
        inner.one_waits || !inner.over.is_empty()
    }

    /// All that has come of rides since the last call.
    pub fn gather(&self) -> Gathered {
        let mut inner = self.lock();
        inner.one_waits = false;
        let (ended, over) = (std::mem::take(&mut inner.ended), std::mem::take(&mut inner.over));
        for over in &over {
            // The keeper's from now on; until now it was not to take it for an orphan.
            if let Some((Current { pid: Some(carriage), .. }, Left::Carriage)) = &over.left {
                inner.of.remove(carriage);
            }
        }
        Gathered { ended, over }
    }

    /// Rides whose current task began this long ago.
    pub fn slow(&self, since: Duration) -> Vec<Number> {
        let inner = self.lock();
        let slow =
            |ridden: &Ride| ridden.current.as_ref().is_some_and(|current| current.since.elapsed() >= since);
        inner.rides.iter().filter(|(_, ridden)| slow(ridden)).map(|(&ride, _)| ride).collect()
    }

    /// Ends a ride, all of which is the keeper's from then on; none if it is over, and waits to be gathered.
    pub fn take_over(&self, ride: Number) -> Option<TakenOver> {
        let mut inner = self.lock();
        let Ride { began, current, rest, last, .. } = inner.rides.remove(&ride)?;
        if let Some(pid) = current.as_ref().and_then(|current| current.pid) {
            inner.of.remove(&pid);
        }
        drop(inner);
        self.joined.notify_all();
        Some(TakenOver { began, last, current, rest })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(UNPOISONED)
    }
}

impl Inner {
    /// Notes the end of a task of which nothing is left.
    fn finish(&mut self, layout: &Layout, current: &Current, how: Ended) {
        let mut dropped = [0; 2];
        output::finish(&layout.attempt(how.task), current.order.output_max, &mut dropped);
        let [stdout_dropped, stderr_dropped] = dropped;
        self.ended.push(Ended { stdout_dropped, stderr_dropped, ..how });
    }

    fn close(&mut self, ride: Number, left: Option<(Current, Left)>, refused: bool) {
        if let Some(Ride { began, rest, last, .. }) = self.rides.remove(&ride) {
            self.over.push(Over { ride, began, last, left, rest, refused });
        }
    }
}
