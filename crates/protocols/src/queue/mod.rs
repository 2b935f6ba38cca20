//! Which waiting job starts next on one node: one file per policy, all behind [`Queue`].
//!
//! ```text
//! arrive ──▶ waiting ──start──▶ running ──finish──▶ gone
//!               └──withdraw──▶ gone
//! ```
//!
//! A node has a capacity that does not change, in any `Amount`: the resources of a machine, or a `u32` that counts
//! the nodes of a machine room seen as one. A job asks for a part of it and states a limit; whoever drives the queue
//! stops it there. Plans are made with limits only: when a job will really end, nobody here knows.
//!
//! **One instant, one order**, kept by the driver, so that results can be held against those of others:
//! 1. every [`finish`](Queue::finish) of that instant;
//! 2. every [`arrive`](Queue::arrive), in the order of submission, which is also the order of the queue;
//! 3. one [`start`](Queue::start), which tells the jobs that start now. It looks at the queue once all ends are
//!    known: between two jobs that end together, nobody slips in.
//!
//! The driver calls `start` again when something else happens or [`wake`](Queue::wake) has come. A job that runs for
//! no time at all ends in a further round of the same instant.
//!
//! What a job *wishes* (a deadline, a priority, a time to begin) counts under the policies that go by it. What all this
//! comes to is told by [`forecast`](Queue::forecast).
//!
//! Left out: preemption, capacity by the hour (that is the calendar's).

pub mod backfill;
mod conservative;
mod easy;
mod fcfs;
mod forecast;
mod profile;
mod running;
mod sorted;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use shoal_model::{Span, Time};

use backfill::{Backfill, Counters, Shares};
use conservative::Conservative;
use easy::Easy;
use fcfs::Fcfs;
use running::Running;
use sorted::{By, Sorted};

/// The shortest limit: what takes no time at all would take no room in a plan either.
const INSTANT: Span = Span::from_micros(1);

/// How waiting jobs are ordered and when one may overtake another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "&'static str")]
pub enum Policy {
    /// First come, first served: nobody overtakes.
    Fcfs,
    /// Whoever does not delay the first in the queue may overtake.
    Easy,
    /// Whoever delays nobody in the queue may overtake.
    Conservative,
    /// The shortest first (SJF).
    Sjf,
    /// The earliest deadline first (EDF).
    Edf,
    /// The highest priority first.
    Priority,
    /// Advance reservation: a job that names its begin has that time; the others fit in around, as under conservative.
    Reservation,
    /// Whoever fits, and was overtaken as often as the first in the queue, may overtake.
    Backfill,
    /// The same; but whose running time was estimated may not delay the first in the queue.
    BackfillEstimates,
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no queue policy is called `{name}`: take one of {}", known())]
pub struct UnknownPolicy {
    /// The name.
    pub name: Box<str>,
}

/// A job as a queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task<K, A> {
    /// Whose it is; no two tasks in a queue have the same.
    pub id: K,
    /// What it takes while it runs.
    pub amount: A,
    /// The longest it may run; it may well end earlier.
    pub limit: Span,
    /// What it wishes beyond that.
    pub wish: Wish,
}

/// What a job wishes, for the policies that go by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wish {
    /// To have ended by then.
    pub deadline: Option<Time>,
    /// To come before those with less of it.
    pub priority: i16,
    /// To start then, and not before.
    pub begin: Option<Time>,
    /// To stand where one that entered the grid then stands.
    pub entered: Option<Time>,
    /// To be counted as overtaken so often.
    pub overtaken: u32,
    /// To start at once, past all others.
    pub at_once: bool,
    /// To be taken by its limit, which its user has estimated.
    pub estimated: bool,
}

impl<K, A> Task<K, A> {
    /// A job without wishes.
    pub fn new(id: K, amount: A, limit: Span) -> Task<K, A> {
        Task { id, amount, limit, wish: Wish::default() }
    }
}

/// A task that the node could not even run alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asks for {asked:?}, and the node has no more than {capacity:?}")]
pub struct Oversized<A: fmt::Debug> {
    /// What it asks for.
    pub asked: A,
    /// What there is.
    pub capacity: A,
}

/// The jobs of one node, waiting and running, under one policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue<K, A> {
    capacity: A,
    /// How many jobs, waiting or running, ask for less than all of it: where there are none, jobs take turns.
    sharers: usize,
    discipline: Discipline<K, A>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Discipline<K, A> {
    Fcfs(Fcfs<K, A>),
    Easy(Easy<K, A>),
    Conservative(Conservative<K, A>),
    Sorted(Sorted<K, A>),
    Backfill(Backfill<K, A>),
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 9] = [
        Policy::Fcfs,
        Policy::Easy,
        Policy::Conservative,
        Policy::Sjf,
        Policy::Edf,
        Policy::Priority,
        Policy::Reservation,
        Policy::Backfill,
        Policy::BackfillEstimates,
    ];

    /// What it is called in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fcfs => "fcfs",
            Policy::Easy => "easy",
            Policy::Conservative => "conservative",
            Policy::Sjf => "sjf",
            Policy::Edf => "edf",
            Policy::Priority => "priority",
            Policy::Reservation => "reservation",
            Policy::Backfill => "backfill",
            Policy::BackfillEstimates => "backfill-estimates",
        }
    }
}

impl<K: Copy + Ord, A: Shares> Queue<K, A> {
    /// An idle node.
    pub fn new(policy: Policy, capacity: A) -> Queue<K, A> {
        let discipline = match policy {
            Policy::Fcfs => Discipline::Fcfs(Fcfs::new(capacity.clone())),
            Policy::Easy => Discipline::Easy(Easy::new(capacity.clone())),
            Policy::Conservative => Discipline::Conservative(Conservative::new(capacity.clone(), false)),
            Policy::Sjf => Discipline::Sorted(Sorted::new(By::Length, capacity.clone())),
            Policy::Edf => Discipline::Sorted(Sorted::new(By::Deadline, capacity.clone())),
            Policy::Priority => Discipline::Sorted(Sorted::new(By::Priority, capacity.clone())),
            Policy::Reservation => Discipline::Conservative(Conservative::new(capacity.clone(), true)),
            Policy::Backfill => Discipline::Backfill(Backfill::new(capacity.clone(), false)),
            Policy::BackfillEstimates => Discipline::Backfill(Backfill::new(capacity.clone(), true)),
        };
        Queue { capacity, sharers: 0, discipline }
    }

    /// Takes a job to the end of the queue; whether it starts is told by [`Queue::start`].
    pub fn arrive(&mut self, now: Time, task: Task<K, A>) -> Result<(), Oversized<A>> {
        if !task.amount.fits_in(&self.capacity) {
            return Err(Oversized { asked: task.amount, capacity: self.capacity.clone() });
        }
        let task = Task { limit: task.limit.max(INSTANT), ..task };
        self.sharers += usize::from(task.amount != self.capacity);
        match &mut self.discipline {
            Discipline::Fcfs(queue) => queue.arrive(task),
            Discipline::Easy(queue) => queue.arrive(task),
            Discipline::Conservative(queue) => queue.arrive(now, task),
            Discipline::Sorted(queue) => queue.arrive(task),
            Discipline::Backfill(queue) => queue.arrive(task),
        }
        Ok(())
    }

    /// Takes back what a job had, because it ended or was stopped; false if it was not running.
    pub fn finish(&mut self, now: Time, id: K) -> bool {
        let shares = self.running_jobs().amount(id).is_some_and(|amount| *amount != self.capacity);
        self.sharers -= usize::from(shares);
        match &mut self.discipline {
            Discipline::Fcfs(queue) => queue.finish(id),
            Discipline::Easy(queue) => queue.finish(id),
            Discipline::Conservative(queue) => queue.finish(now, id),
            Discipline::Sorted(queue) => queue.finish(id),
            Discipline::Backfill(queue) => queue.finish(id),
        }
    }

    /// Forgets a job that waits, because it was cancelled or runs elsewhere; false if it was not waiting.
    pub fn withdraw(&mut self, id: K) -> bool {
        let shares = self.waiting().any(|task| task.id == id && task.amount != self.capacity);
        self.sharers -= usize::from(shares);
        match &mut self.discipline {
            Discipline::Fcfs(queue) => queue.withdraw(id),
            Discipline::Easy(queue) => queue.withdraw(id),
            Discipline::Conservative(queue) => queue.withdraw(id),
            Discipline::Sorted(queue) => queue.withdraw(id),
            Discipline::Backfill(queue) => queue.withdraw(id),
        }
    }

    /// Adds to `started` the jobs that start now, in the order of the queue.
    pub fn start(&mut self, now: Time, started: &mut Vec<K>) {
        match &mut self.discipline {
            Discipline::Fcfs(queue) => queue.start(now, started),
            Discipline::Easy(queue) => queue.start(now, started),
            Discipline::Conservative(queue) => queue.start(now, started),
            Discipline::Sorted(queue) => queue.start(now, started),
            Discipline::Backfill(queue) => queue.start(now, started),
        }
    }

    /// When a job starts although nothing happens then; none if only ends and arrivals start jobs.
    pub fn wake(&self) -> Option<Time> {
        match &self.discipline {
            Discipline::Fcfs(_) | Discipline::Easy(_) | Discipline::Sorted(_) | Discipline::Backfill(_) => {
                None
            }
            Discipline::Conservative(queue) => queue.wake(),
        }
    }

    /// The latest that a waiting job will start if none outlives its limit; none where the policy promises nothing.
    ///
    /// FCFS and conservative promise a start to every job that waits, EASY to the first, the others to none. Ask after
    /// [`Queue::start`]: what is told then is never in the past.
    pub fn planned_start(&self, now: Time, id: K) -> Option<Time> {
        match &self.discipline {
            Discipline::Fcfs(queue) => queue.planned_start(now, id),
            Discipline::Easy(queue) => queue.planned_start(now, id),
            Discipline::Conservative(queue) => queue.planned_start(id),
            Discipline::Sorted(_) | Discipline::Backfill(_) => None,
        }
        .filter(|&start| start < Time::NEVER)
    }

    /// The jobs that wait, in the order of the queue.
    pub fn waiting(&self) -> Box<dyn Iterator<Item = &Task<K, A>> + '_> {
        match &self.discipline {
            Discipline::Fcfs(queue) => Box::new(queue.waiting.iter()),
            Discipline::Easy(queue) => Box::new(queue.waiting.iter()),
            Discipline::Conservative(queue) => Box::new(queue.waiting()),
            Discipline::Sorted(queue) => Box::new(queue.waiting.iter()),
            Discipline::Backfill(queue) => Box::new(queue.waiting.iter()),
        }
    }

    /// How often the first in the queue was overtaken: whoever was less often may not overtake it.
    pub fn bar(&self) -> u32 {
        self.waiting().next().map_or(0, |first| first.wish.overtaken)
    }

    /// How often those had been overtaken that have started; none but under backfill.
    pub fn counters(&self) -> Option<&Counters> {
        match &self.discipline {
            Discipline::Backfill(queue) => Some(&queue.started),
            Discipline::Fcfs(_)
            | Discipline::Easy(_)
            | Discipline::Conservative(_)
            | Discipline::Sorted(_) => None,
        }
    }

    /// Keeps so much, in all, for jobs that are on their way here; only under backfill.
    pub fn hold(&mut self, held: A) {
        match &mut self.discipline {
            Discipline::Backfill(queue) => queue.hold(held),
            Discipline::Fcfs(_)
            | Discipline::Easy(_)
            | Discipline::Conservative(_)
            | Discipline::Sorted(_) => {}
        }
    }

    /// What is left to do: how long each job will still take if it runs exactly to its limit, and what it has or wants.
    pub fn work(&self, now: Time) -> impl Iterator<Item = (Span, &A)> {
        let running = self.running_jobs().by_end().map(move |(end, amount)| (end.since(now), amount));
        running.chain(self.waiting().map(|task| (task.limit, &task.amount)))
    }

    /// What no running job has.
    pub fn free(&self) -> &A {
        self.running_jobs().free()
    }

    fn running_jobs(&self) -> &Running<K, A> {
        match &self.discipline {
            Discipline::Fcfs(queue) => &queue.running,
            Discipline::Easy(queue) => &queue.running,
            Discipline::Conservative(queue) => &queue.running,
            Discipline::Sorted(queue) => &queue.running,
            Discipline::Backfill(queue) => &queue.running,
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Policy, UnknownPolicy> {
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| UnknownPolicy { name: name.into() })
    }
}

impl TryFrom<Box<str>> for Policy {
    type Error = UnknownPolicy;

    fn try_from(name: Box<str>) -> Result<Policy, UnknownPolicy> {
        name.parse()
    }
}

impl From<Policy> for &'static str {
    fn from(policy: Policy) -> &'static str {
        policy.name()
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn known() -> String {
    Policy::ALL.map(Policy::name).join(", ")
}
