//! What an owner knows of a job: what was accepted, how far it has come, and what of it survives a crash.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use shoal_model::job::{Array, Mode};
use shoal_model::{Envelope, Epoch, JobId, Needs, NodeId, Rank, Span, Time};

use super::Node;
use super::gate::{DENIED_MAX, Denial};
use super::message::{End, Exit, Key, OwnedRecord, Record};
use super::train::{Train, may_share};
use crate::nodes::Nodes;
use crate::protocol::Ctx;
use crate::scheduling::Stuck;
use crate::shared::Shared;

/// Files that travel no longer are no reason to plan a job later: it can wait for them.
const TRAVEL_LEAST: Span = Span::from_millis(500);

/// A job that was accepted here.
///
/// Very many may wait: what few of them have lies apart, in `Rare`, and is read and written as if it were here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    pub(super) id: JobId,
    pub(super) envelope: Shared<Envelope>,
    /// Of an array: which, and for which index.
    pub(super) of: Option<(JobId, u32)>,
    /// Whether the user wants it not to start.
    pub(super) held: bool,
    /// The jobs that it waits for, and whose they are.
    pub(super) after: BTreeMap<JobId, NodeId>,
    /// How long it may run.
    pub(super) limit: Span,
    /// When it may start at the earliest.
    pub(super) begin: Option<Time>,
    pub(super) phase: Phase,
    pub(super) retried: u16,
    /// How often it was not started where it was to run.
    pub(super) unstarted: u8,
    /// How often its files could not be had where it was to run.
    pub(super) unstaged: u8,
    /// Whether exits of a placement are on disk.
    pub(super) exits_saved: bool,
    /// Whom this node watches for it.
    pub(super) watched: Nodes,
    /// Whether a task of its placement was told to start before its time.
    pub(super) going: bool,
    /// Whether a better place is being looked for, and when that last began.
    pub(super) looking: bool,
    pub(super) looked: Option<Time>,
    /// Whether it is looked after once more when that is not too soon.
    pub(super) look_again: bool,
    /// When it is to start, while it waits for that.
    pub(super) planned: Option<Time>,
    /// When the nodes of its placement are next asked whether they run it.
    pub(super) ask_at: Option<Time>,
    /// How often in a row no place was found.
    pub(super) stuck: u8,
    /// Placements up to this number were made by a former owner, or are of trains that it rode in: its own are numbered on.
    pub(super) numbered: Epoch,
    /// Of one that was handed over: whether its heir has said that it knows.
    pub(super) told: bool,
    rare: Apart,
}

const _: () = assert!(size_of::<Owned>() <= 184);

/// What few of the jobs that wait have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rare {
    /// The last placement that failed.
    pub(super) failed: Option<Epoch>,
    /// Of a job that must not run twice: from when on nodes may start it, unless all of them have let go before.
    pub(super) runs_from: Option<Time>,
    /// The tasks of its placement that have said that they run, and when they last did.
    pub(super) started: BTreeMap<Rank, Time>,
    /// When a place is looked for again, if none is being looked for.
    pub(super) again_at: Option<Time>,
    /// Why it waits, as last told.
    pub(super) why: Option<Stuck>,
    /// Who is about to hand it over: it is not this node's yet.
    pub(super) from: Option<NodeId>,
    /// Of an array: whether it shares its place with others of it.
    pub(super) train: Train,
    /// Of one that has ended: its tasks that ran on, and have yet to say what they took.
    pub(super) parting: Parting,
    /// Who has denied it, when and why; at most [`DENIED_MAX`](super::gate::DENIED_MAX).
    pub(super) denied: BTreeMap<NodeId, (Time, Denial)>,
}

/// Tasks of a placement, and on which node each is.
pub(super) type Parting = BTreeMap<(Epoch, Rank), NodeId>;

/// What few jobs have, if this one has any of it.
#[derive(Clone, Debug, Default)]
struct Apart(Option<Box<Rare>>);

impl Rare {
    const NONE: &Rare = &Rare {
        failed: None,
        runs_from: None,
        started: BTreeMap::new(),
        again_at: None,
        why: None,
        from: None,
        train: Train::Alone,
        parting: BTreeMap::new(),
        denied: BTreeMap::new(),
    };
}

impl Deref for Apart {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        self.0.as_deref().unwrap_or(Rare::NONE)
    }
}

/// To have nothing of it is the same whether there is room for it or not.
impl PartialEq for Apart {
    fn eq(&self, other: &Apart) -> bool {
        **self == **other
    }
}

impl Eq for Apart {}

impl Hash for Apart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Deref for Owned {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        &self.rare
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut Rare {
        self.rare.0.get_or_insert_default()
    }
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It has no place yet.
    Seeking,
    /// It has a place; how its tasks have ended so far.
    Placed {
        /// Which of its placements.
        epoch: Epoch,
        /// The tasks that have ended.
        exits: BTreeMap<Rank, Exit>,
    },
    /// It has ended.
    Ended(End),
}

impl Owned {
    pub(super) fn new(envelope: Shared<Envelope>, limit_default: Span) -> Owned {
        let id = envelope.id();
        Owned::with_id(id, envelope, limit_default)
    }

    fn with_id(id: JobId, envelope: Shared<Envelope>, limit_default: Span) -> Owned {
        let job = envelope.job();
        let (limit, begin) = (job.limit.unwrap_or(limit_default), job.begin);
        Owned {
            id,
            envelope,
            of: None,
            held: false,
            after: BTreeMap::new(),
            limit,
            begin,
            phase: Phase::Seeking,
            retried: 0,
            unstarted: 0,
            unstaged: 0,
            exits_saved: false,
            watched: Nodes::default(),
            going: false,
            looking: false,
            looked: None,
            look_again: false,
            planned: None,
            ask_at: None,
            stuck: 0,
            numbered: Epoch(0),
            told: false,
            rare: Apart::default(),
        }
    }

    /// The job of an array for one of its indexes; held if the array is.
    pub(super) fn of_array(parent: &Owned, array: JobId, index: u32, limit_default: Span) -> Owned {
        let job = Owned::with_id(array.of_index(index), parent.envelope.clone(), limit_default);
        Owned { of: Some((array, index)), held: parent.held, ..job }
    }

    /// The same of one that runs in another's place. What rides is not held.
    pub(super) fn riding(parent: &Owned, array: JobId, index: u32, leader: JobId, limit: Span) -> Owned {
        let mut owned = Owned::of_array(parent, array, index, limit);
        (owned.held, owned.train) = (false, Train::Rides(leader));
        owned
    }

    /// Whether nothing has been done about it yet.
    pub(super) fn is_untried(&self) -> bool {
        self.phase == Phase::Seeking
            && self.retried == 0
            && self.numbered == Epoch(0)
            && self.train == Train::Alone
    }

    pub(super) fn restore(record: OwnedRecord, limit_default: Span) -> Owned {
        let OwnedRecord { envelope, retried, end, failed, runs_from, index, held, after, .. } = record;
        let (numbered, from, told) = (record.numbered, record.from, record.told);
        let train = record.riders.map_or(Train::Alone, Train::Leads);
        let phase = end.map_or(Phase::Seeking, Phase::Ended);
        let owned = Owned::new(envelope, limit_default);
        let (id, of) = match index {
            Some(index) => (owned.id.of_index(index), Some((owned.id, index))),
            None => (owned.id, None),
        };
        let after = after.into_iter().collect();
        let rare = Apart(Some(Box::new(Rare { failed, runs_from, from, train, ..Rare::default() })));
        let mut owned = Owned { id, of, held, after, phase, retried, numbered, told, rare, ..owned };
        owned.tidy();
        owned
    }

    /// Whether these exits still count is known once the commit has been restored too.
    pub(super) fn restore_exits(&mut self, epoch: Epoch, ended: Vec<(Rank, Exit)>) {
        self.exits_saved = true;
        if self.phase == Phase::Seeking {
            self.phase = Phase::Placed { epoch, exits: ended.into_iter().collect() };
        }
    }

    /// Takes no room for what it has nothing of.
    pub(super) fn tidy(&mut self) {
        if *self.rare == *Rare::NONE {
            self.rare = Apart(None);
        }
    }

    /// Whether it takes no room for what few jobs have.
    #[cfg(test)]
    pub(super) fn is_tidy(&self) -> bool {
        self.rare.0.is_none()
    }

    /// How far it has come.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether it is about to be handed over to this node, and not its own yet.
    pub fn is_pending(&self) -> bool {
        self.from.is_some()
    }

    /// Why it waits, if it does and a reason is known.
    pub fn why(&self) -> Option<Stuck> {
        if self.phase != Phase::Seeking {
            return None;
        }
        if let Some(from) = self.from {
            return Some(Stuck::HandedOver(from));
        }
        let held = self.held.then_some(Stuck::Held);
        let rides = self.train.leader().map(Stuck::Behind);
        held.or(rides).or_else(|| self.after.keys().next().map(|&other| Stuck::After(other))).or(self.why)
    }

    /// A node does not run it; of very many the latest are kept in mind.
    pub(super) fn note_denied(&mut self, by: NodeId, now: Time, why: Denial) {
        if self.denied.len() >= DENIED_MAX && !self.denied.contains_key(&by) {
            let oldest = self.denied.iter().min_by_key(|(_, (at, _))| *at).map(|(&node, _)| node);
            oldest.and_then(|node| self.denied.remove(&node));
        }
        self.denied.insert(by, (now, why));
    }

    /// Who has denied it lately, and why.
    pub fn denied(&self) -> impl Iterator<Item = (NodeId, Denial)> {
        self.denied.iter().map(|(&node, &(_, why))| (node, why))
    }

    /// What was accepted.
    pub fn envelope(&self) -> &Shared<Envelope> {
        &self.envelope
    }

    /// Of a job of an array: which array, and for which index.
    pub fn of_array_at(&self) -> Option<(JobId, u32)> {
        self.of
    }

    /// Whether the user wants it not to start.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// The jobs that it still waits for, and whose they are.
    pub fn waits_for(&self) -> impl Iterator<Item = (JobId, NodeId)> {
        self.after.iter().map(|(&job, &owner)| (job, owner))
    }

    /// Which ranks of its placement run, as far as is known.
    pub fn running(&self) -> impl Iterator<Item = Rank> {
        self.started.keys().copied()
    }

    /// How often it has been tried again after a failure.
    pub fn retried(&self) -> u16 {
        self.retried
    }

    /// The indexes, if it is an array and not one of its jobs.
    pub fn array(&self) -> Option<&Array> {
        self.envelope.job().array.as_deref().filter(|_| self.of.is_none())
    }

    /// Has it planned no earlier than its files can be anywhere.
    pub(super) fn leave_time_to_travel(&mut self, now: Time) {
        let travel = self.envelope.job().files.as_ref().map_or(Span::ZERO, |files| files.travel());
        if travel >= TRAVEL_LEAST {
            self.begin = self.begin.max(Some(now + travel));
        }
    }

    /// Whether nothing but a place is missing, which it may share.
    pub(super) fn may_board(&self) -> bool {
        self.phase == Phase::Seeking
            && self.may_seek()
            && self.retried == 0
            && self.unstarted == 0
            && self.train == Train::Alone
            && may_share(self.envelope.job())
    }

    /// Whether nothing but a place is missing, and it needs one of its own.
    pub(super) fn may_seek(&self) -> bool {
        !self.held && self.after.is_empty() && self.from.is_none() && self.train.leader().is_none()
    }

    pub(super) fn record(&self) -> Record {
        Record::Owned(self.to_record())
    }

    pub(super) fn to_record(&self) -> OwnedRecord {
        let end = match &self.phase {
            Phase::Seeking | Phase::Placed { .. } => None,
            Phase::Ended(end) => Some(*end),
        };
        let Owned { retried, held, numbered, told, .. } = *self;
        let Rare { failed, runs_from, from, .. } = **self;
        OwnedRecord {
            envelope: self.envelope.clone(),
            retried,
            end,
            failed,
            runs_from,
            index: self.of.map(|(_, index)| index),
            held,
            after: self.waits_for().collect(),
            numbered,
            from,
            told,
            riders: self.train.riders().map(<[u32]>::to_vec),
        }
    }

    pub(super) fn runs_once(&self) -> bool {
        self.envelope.job().mode() == Mode::AtMostOnce
    }

    /// What it needs of its nodes: made when it is asked for, since very many jobs may wait.
    pub(super) fn needs(&self) -> Needs {
        Needs { begin: self.begin, ..Needs::of(self.envelope.job(), self.limit) }
    }

    /// How many nodes start it together.
    pub(super) fn nodes(&self) -> usize {
        self.envelope.job().nodes.get() as usize
    }

    /// Whether several nodes start it together.
    pub(super) fn is_gang(&self) -> bool {
        self.nodes() > 1
    }

    /// Saved before any node of the placement can be lost: from then on the job may have run.
    pub(super) fn note_start(&mut self, from: Time, ctx: &mut Ctx<'_, Node>) {
        if self.runs_once() && self.runs_from != Some(from) {
            self.runs_from = Some(from);
            ctx.save(self.record());
        }
    }

    pub(super) fn erase_exits(&mut self, ctx: &mut Ctx<'_, Node>) {
        if std::mem::take(&mut self.exits_saved) {
            ctx.erase(Key::Exits(self.id));
        }
        // Whose exits count no more runs nowhere; it may have ended, and is kept.
        self.tidy();
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Job;
    use shoal_model::envelope::Nonce;

    use super::*;

    #[test]
    fn room_for_what_few_jobs_have_is_taken_by_those_only_and_changes_nothing_else() {
        let envelope = Envelope::new(Job::command(["true"]), Nonce([1; 16])).unwrap();
        let job = Owned::new(Shared::new(envelope), Span::from_secs(1));
        let mut other = job.clone();
        other.started.insert(Rank(0), Time::ZERO);
        assert_ne!(job, other);
        assert_eq!(other.started.len(), 1);
        other.tidy();
        assert!(other.rare.0.is_some());
        other.started.clear();
        assert_eq!(job, other, "with and without room");
        other.tidy();
        assert!(other.rare.0.is_none());
    }
}
