//! Checkers: they watch a run from outside, and say what was promised and did not hold.
//!
//! Each promise has a checker in a file of its own. A checker sees what machines do ([`Sight`]) and from time to time
//! looks at all of them, or at some after the other ([`View`]). It works out by itself what must hold, in the plainest way: it asks a node what
//! it has promised, never whether that is all right.
//!
//! | checker | promise |
//! |---|---|
//! | [`overbooked`] | I1: no resource is given twice, on paper or in fact |
//! | [`accounted`] | I3, I4, I13, I16: every accepted job is known to its owner and ends once; the sum is right |
//! | [`gang`] | I9: all ranks start together or none does; one lost, the others stop |
//! | [`once`] | I6, I7: no task is started twice |
//! | [`epochs`] | I5, I8: placements follow each other; the result is that of the last |
//! | [`holds`] | I10: no promise in doubt grows old; at rest nothing is left over |
//! | [`cancelled`] | I11: nothing begins for a job that has ended |
//! | [`denied`] | I12: nothing starts where the machine's owner denies it |
//! | [`limits`] | I15: what a node keeps is bounded by what it has to do |
//! | [`waits`] | a job starts after those that it waits for; one that is held gets no place |
//!
//! A checker remembers a job until nothing is left of it ([`lasting`]), so that a run of months stays small.
//!
//! Before guardians exist a job is as durable as its owner's disk (`durability 1`): a job whose owner has lost its disk
//! or left for good is [`Exempt`], and so is what it left on other machines.

pub mod accounted;
mod aftermath;
pub mod cancelled;
pub mod denied;
pub mod epochs;
pub mod exempt;
pub mod gang;
pub mod holds;
pub mod lasting;
pub mod limits;
pub mod once;
pub mod overbooked;
pub mod run;
pub mod sabotage;
pub mod storm;
pub mod story;
#[cfg(test)]
pub(crate) mod tests;
pub mod waits;
pub mod watcher;

use std::collections::BTreeMap;
use std::fmt;

use shoal_model::{JobId, Machine, NodeId, Resources, Span, Time};
use shoal_protocols::KeyOf;
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Brief, Key, Node, Record, START_GRACE};

use crate::clock::Clock;
use crate::grid::{Grid, NodeLike};
use crate::world::{Saw, Sight};
use exempt::Exempt;
pub use run::{Run, Summary, run_checked};
pub use watcher::Watcher;

/// Watches a run for one kind of broken promise.
pub trait Check: Send {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Sees something happen.
    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken>;

    /// Looks at machines, between two instants.
    fn look(&mut self, view: &View<'_>) -> Result<(), Broken>;

    /// Forgets a job that has ended and of which nothing is left.
    fn forget(&mut self, job: JobId);

    /// Looks at all machines at the end, when everything should be at rest.
    fn end(&mut self, view: &View<'_>) -> Result<(), Broken>;

    /// Whether it looks at the end no further than at what is long over: then jobs may still be on their way.
    fn ends_early(&self) -> bool {
        true
    }
}

/// What every checker knows.
pub struct Known<'a> {
    /// The machines as they are, whatever their nodes think.
    pub machines: &'a BTreeMap<NodeId, Machine>,
    /// The clocks that do not show the time of the world.
    pub clocks: &'a BTreeMap<NodeId, Clock>,
    /// What need not hold any more.
    pub exempt: &'a Exempt,
    /// How long things may take.
    pub bounds: &'a Bounds,
    /// From when on nothing goes wrong any more.
    pub healed_from: Time,
}

impl Known<'_> {
    /// What a node's clock shows.
    pub fn local(&self, node: NodeId, at: Time) -> Time {
        self.clocks.get(&node).map_or(at, |clock| clock.local(at))
    }

    /// What timers may be off where clocks are: by no more than clocks are apart.
    pub fn clocks_apart(&self) -> Span {
        if self.clocks.is_empty() { Span::ZERO } else { self.bounds.clocks }
    }
}

/// Machines at one time.
pub struct View<'a> {
    /// When.
    pub now: Time,
    /// Those machines that are up, and what runs on them.
    pub up: BTreeMap<NodeId, &'a Node>,
    /// What each of the machines has on its disk.
    pub disks: BTreeMap<NodeId, &'a BTreeMap<Key, Record>>,
    /// What every checker knows.
    pub known: Known<'a>,
}

impl<'a> View<'a> {
    /// What is to be seen of these machines.
    pub(crate) fn of<P: NodeLike>(grid: &'a Grid<P>, nodes: &[NodeId], known: Known<'a>) -> View<'a>
    where
        KeyOf<P>: Ord,
    {
        let world = grid.look();
        let up = nodes.iter().copied().filter(|&node| world.is_up(node));
        View {
            now: world.now(),
            up: up.map(|node| (node, world.core(node).node())).collect(),
            disks: nodes.iter().filter_map(|&node| Some((node, world.disk(node)?))).collect(),
            known,
        }
    }

    /// How long it is since something should have begun to be put right: not before all faults are over.
    pub fn calm_since(&self, at: Time) -> Span {
        self.now.since(at.max(self.known.healed_from))
    }
}

/// How long things may take. They hold for the defaults of all protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How late a rank may start by its own clock, where its disk is quick: the runner's grace, and a save.
    pub late: Span,
    /// How much later than its original a doubled or repeated message may come: a coordinator asks for 8 s, and what a slow
    /// node is told takes 10 s.
    pub echo: Span,
    /// What a clock that is set may be off.
    pub clocks: Span,
    /// What a slow disk, with other writes before this one, adds to that.
    pub slow_disk: Span,
    /// Until all ranks of a gang have started, from the first on, by the clock of the world: the above, and what clocks
    /// may be apart.
    pub skew: Span,
    /// Until the ranks of a broken gang have stopped, from when their owner can know on: not before the end of all faults.
    pub stop: Span,
    /// How long after its end a job may still start on a node that has not been told.
    pub told: Span,
    /// How old a hold may become.
    pub hold: Span,
    /// How long a commit may be in doubt: the hold, and the time for which its coordinator may go on speaking.
    pub doubt: Span,
    /// Until a job that has no place names the reason.
    pub reason: Span,
    /// Until all jobs have ended, from the end of all faults on.
    pub progress: Span,
    /// Until nothing is left of a job that has ended, from the end of all faults on.
    pub rest: Span,
    /// Until a disk holds no more than the node on it has to do.
    pub tidy: Span,
}

impl Bounds {
    /// The bounds where a commit is told this and a write takes so long.
    pub fn of(commit: &two_phase::Config, fsync: Span) -> Bounds {
        let usual = Bounds::default();
        let hold = Span::from_millis(u64::from(commit.hold_ms)).max(usual.hold);
        let longer = hold.saturating_sub(usual.hold) + fsync * 3;
        Bounds {
            late: usual.late + fsync * 3,
            skew: usual.skew + fsync * 3,
            stop: usual.stop + fsync * 3,
            hold: usual.hold + longer,
            doubt: usual.doubt + longer,
            ..usual
        }
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            late: START_GRACE + Span::from_secs(1),
            echo: Span::from_secs(20),
            clocks: Span::from_secs(5),
            slow_disk: Span::from_secs(10),
            skew: Span::from_secs(20),
            stop: Span::from_secs(10),
            // A node that is out of reach is reminded ever more seldom, at least every ten minutes.
            told: Span::from_secs(11 * 60),
            hold: Span::from_secs(30),
            doubt: Span::from_secs(30 + 30),
            reason: Span::from_mins(3),
            progress: Span::from_hours(2),
            rest: Span::from_mins(30),
            tidy: Span::from_secs(30),
        }
    }
}

/// A promise that did not hold, as its checker found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// When it was found.
    pub at: Time,
    /// On which node.
    pub node: Option<NodeId>,
    /// For which job.
    pub job: Option<JobId>,
    /// In words.
    pub what: String,
}

impl Broken {
    /// A promise that did not hold, in words.
    pub fn new(at: Time, what: impl Into<String>) -> Broken {
        Broken { at, node: None, job: None, what: what.into() }
    }

    /// The same, on a node.
    pub fn on(self, node: NodeId) -> Broken {
        Broken { node: Some(node), ..self }
    }

    /// The same, for a job.
    pub fn of(self, job: JobId) -> Broken {
        Broken { job: Some(job), ..self }
    }
}

/// A promise that did not hold, and how to see that again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which checker found it.
    pub check: &'static str,
    /// What it found.
    pub broken: Broken,
    /// The seed of the run.
    pub seed: u64,
    /// The command that runs it again.
    pub replay: String,
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { check, broken: Broken { at, node, job, what }, seed, replay } = self;
        write!(f, "{check}: at {at}")?;
        if let Some(node) = node {
            write!(f, " on {node}")?;
        }
        if let Some(job) = job {
            write!(f, " job {job}")?;
        }
        write!(f, ": {what}; seed {seed}; replay with `{replay}`")
    }
}

/// A set of checkers for one run.
pub struct Checks {
    checks: Vec<Box<dyn Check>>,
}

impl Checks {
    /// All that there are.
    pub fn all() -> Checks {
        Checks {
            checks: vec![
                Box::new(overbooked::Overbooked::default()),
                Box::new(once::Once::default()),
                Box::new(gang::Gang::default()),
                Box::new(epochs::Epochs::default()),
                Box::new(cancelled::Cancelled::default()),
                Box::new(denied::Denied),
                Box::new(accounted::Accounted::default()),
                Box::new(holds::Holds::default()),
                Box::new(limits::Limits::default()),
                Box::new(waits::Waits::default()),
            ],
        }
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), (&'static str, Broken)> {
        self.each(|check| check.look(view))
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), (&'static str, Broken)> {
        self.look(view)?;
        self.each(|check| check.end(view))
    }

    /// The same while jobs are still on their way.
    fn end_early(&mut self, view: &View<'_>) -> Result<(), (&'static str, Broken)> {
        self.look(view)?;
        self.each(|check| if check.ends_early() { check.end(view) } else { Ok(()) })
    }

    fn forget(&mut self, job: JobId) {
        self.checks.iter_mut().for_each(|check| check.forget(job));
    }

    fn each(
        &mut self,
        mut ask: impl FnMut(&mut dyn Check) -> Result<(), Broken>,
    ) -> Result<(), (&'static str, Broken)> {
        for check in &mut self.checks {
            ask(check.as_mut()).map_err(|broken| (check.name(), broken))?;
        }
        Ok(())
    }
}

/// The jobs that ride with the one that a promise was made to.
fn riders(lock: &two_phase::Lock<Resources, Brief>) -> Vec<JobId> {
    let Some(brief) = &lock.brief else { return Vec::new() };
    let array = brief.envelope.id();
    brief.riders.iter().flatten().map(|&index| array.of_index(index)).collect()
}

/// Takes out of a map what belongs together: all from this key on, as long as it is alike.
fn drop_alike<K: Ord + Copy, V>(map: &mut BTreeMap<K, V>, first: K, alike: impl Fn(&K) -> bool) {
    while let Some(key) = map.range(first..).next().map(|(key, _)| *key).filter(&alike) {
        map.remove(&key);
    }
}

/// A sight of a node-like protocol as one of a node: they say and do the same things.
pub(crate) fn as_node<P: NodeLike>(sight: Sight<P>) -> Sight<Node> {
    let Sight { at, node, saw } = sight;
    let saw = match saw {
        Saw::Event(event) => Saw::Event(event),
        Saw::Act(action) => Saw::Act(action),
        Saw::Done(outcome) => Saw::Done(outcome),
        Saw::Save(record) => Saw::Save(record),
        Saw::Erase(key) => Saw::Erase(key),
        Saw::Send(to, message) => Saw::Send(to, message),
        Saw::Crash => Saw::Crash,
        Saw::DiskLost => Saw::DiskLost,
        Saw::Restart => Saw::Restart,
    };
    Sight { at, node, saw }
}
