//! All of a node that has to do with jobs, and how it is found again after a crash.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::calendar::Capacity;
use shoal_model::{Envelope, FieldSet, JobId, Machine, NodeId, Resources, Span, Time};

use super::gate::Gate;
use super::handover::HandOver;
use super::message::{Brief, Record, Task};
use super::owned::{Owned, Phase};
use super::{Commit, array, config, runner, tri_pronged};
use crate::commit::two_phase;
use crate::guard::heartbeat::Heartbeat;
use crate::protocol::Protocol;
use crate::scheduling::Recipe as _;
use crate::scheduling::aria::{self, Aria};
use crate::scheduling::asap::Asap;
use crate::scheduling::proactive::Proactive;
use crate::scheduling::sample::Sample;
use crate::shared::Shared;

/// All of a node that has to do with jobs; boxed by the node, so that one that only gossips is small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Work {
    pub machine: Machine,
    pub limit_default: Span,
    /// Whether plans get better while jobs wait.
    pub eager: bool,
    /// Whether a look for better places is due.
    pub improving: bool,
    /// Whether tasks of others are refused.
    pub draining: bool,
    /// What becomes of own jobs when this node leaves.
    pub handover: HandOver,
    /// Who may run here.
    pub gate: Gate,
    pub recipe: Recipe,
    pub commit: Commit,
    pub heartbeat: Heartbeat<JobId>,
    /// Boxed: a third of a map's room is empty, and there may be very many.
    pub owned: BTreeMap<JobId, Box<Owned>>,
    /// Those that have a place and have not started, by start.
    pub waiting: BTreeSet<(Time, JobId)>,
    /// When those of them are looked at next that should run by then.
    pub late_at: Option<Time>,
    /// How far the arrays among them have come.
    pub arrays: BTreeMap<JobId, array::Progress>,
    /// Jobs, and which of the owned ones wait for them.
    pub waiting_for: BTreeSet<(JobId, JobId)>,
    /// Owned jobs, and which nodes have jobs that wait for them.
    pub awaited: BTreeSet<(JobId, NodeId)>,
    /// Some of the owned jobs that found too few nodes.
    pub short: BTreeSet<JobId>,
    pub tasks: BTreeMap<Task, runner::Running>,
    /// How many of those ride with others.
    pub riding: usize,
    /// When those of them start next that wait for their time.
    pub starts_at: Option<Time>,
}

/// The recipe that this node follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Recipe {
    Sample(Sample),
    Asap(Box<Asap>),
    Aria(Box<Aria>),
    TriPronged(Box<tri_pronged::Prongs>),
    Proactive(Box<Proactive>),
}

impl Work {
    /// See [`Protocol::glance`]: what every message about jobs needs first.
    pub fn glance(&self) -> u64 {
        let recipe = match &self.recipe {
            Recipe::Aria(aria) => aria.glance(),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::TriPronged(_) | Recipe::Proactive(_) => 0,
        };
        recipe ^ self.heartbeat.watched().next().map_or(0, |node| node.0) ^ u64::from(self.draining)
    }

    pub fn restore(config: &config::Work, me: NodeId, records: impl Iterator<Item = Record>) -> Work {
        let capacity = Capacity::constant(config.machine.capacity.clone());
        let capacity = capacity.expect("a machine's resources are within what a calendar can count");
        let mut owned = Vec::new();
        let mut exits = Vec::new();
        let mut tasks = BTreeMap::new();
        let mut commits = Vec::new();
        let mut arias = Vec::new();
        for record in records {
            match record {
                Record::Commit(record) => commits.push(record),
                Record::Owned(record) => {
                    let job = Owned::restore(record, config.limit_default);
                    owned.push((job.id, Box::new(job)));
                }
                Record::Exits(job, epoch, ended) => exits.push((job, epoch, ended)),
                Record::Task(task, owner, exit) => {
                    tasks.insert(task, runner::Running::restore(owner, exit));
                }
                Record::Aria(record) => arias.push(record),
            }
        }
        // Made from all at once: one by one and in order, they would leave nodes half empty.
        let mut owned: BTreeMap<JobId, Box<Owned>> = owned.into_iter().collect();
        share_envelopes(&mut owned, &mut commits);
        let recipe =
            match config.recipe {
                config::Recipe::Sample(config) => Recipe::Sample(Sample::new(config)),
                config::Recipe::Asap(config) => Recipe::Asap(Box::new(Asap::new(config))),
                config::Recipe::Aria(aria) => {
                    Recipe::Aria(Box::new(Aria::restore(aria, me, &config.machine, arias.into_iter())))
                }
                config::Recipe::TriPronged(prongs) => Recipe::TriPronged(Box::new(
                    tri_pronged::Prongs::restore(prongs, me, &config.machine, arias.into_iter()),
                )),
                config::Recipe::Proactive(config) => Recipe::Proactive(Box::new(Proactive::new(config, me))),
            };
        let setting = two_phase::Setting { config: config.commit, capacity };
        let mut work = Work {
            machine: config.machine.clone(),
            limit_default: config.limit_default,
            eager: config.eager,
            improving: false,
            draining: false,
            handover: HandOver::default(),
            gate: config.gate.clone(),
            recipe,
            commit: Commit::restore(&setting, me, commits.into_iter()),
            heartbeat: Heartbeat::restore(&config.heartbeat, me, std::iter::empty()),
            owned,
            waiting: BTreeSet::new(),
            late_at: None,
            arrays: BTreeMap::new(),
            waiting_for: BTreeSet::new(),
            awaited: BTreeSet::new(),
            short: BTreeSet::new(),
            tasks,
            riding: 0,
            starts_at: None,
        };
        let open = |owned: &Owned| owned.from.is_none() && !matches!(owned.phase, Phase::Ended(_));
        for (&job, owned) in work.owned.iter().filter(|(_, owned)| open(owned)) {
            work.waiting_for.extend(owned.after.keys().map(|&other| (other, job)));
        }
        work.restore_arrays();
        for (job, epoch, ended) in exits {
            if let Some(owned) = work.owned.get_mut(&job) {
                owned.restore_exits(epoch, ended);
            }
        }
        work
    }
}

/// Has each envelope in memory once: an array's jobs have one, and what is promised to a job of this node has the job's.
/// What was read from disk may have one for each record.
fn share_envelopes(
    owned: &mut BTreeMap<JobId, Box<Owned>>,
    commits: &mut [two_phase::Record<Resources, Brief>],
) {
    let of_arrays: Vec<(JobId, JobId)> =
        owned.iter().filter_map(|(&job, element)| Some((job, element.of?.0))).collect();
    for (element, array) in of_arrays {
        let Some(known) = owned.get(&array).map(|array| array.envelope.clone()) else { continue };
        if let Some(element) = owned.get_mut(&element).filter(|element| *element.envelope == *known) {
            element.envelope = known;
        }
    }
    for record in commits {
        let two_phase::Record::Lock(two_phase::Lock { job, brief: Some(brief), .. }) = record else {
            continue;
        };
        // Of a job of an array nothing may be saved but the array.
        let array = || owned.get(&brief.envelope.id()).filter(|_| brief.index.is_some());
        let known = owned.get(job).or_else(array).map(|known| known.envelope.clone());
        let apart = |known: &Shared<Envelope>| !known.is(&brief.envelope);
        if let Some(envelope) = known.filter(apart).filter(|known| **known == *brief.envelope) {
            *brief = Shared::new(Brief { envelope, ..Brief::clone(brief) });
        }
    }
}

impl Recipe {
    pub fn name(&self) -> &'static str {
        match self {
            Recipe::Sample(_) => "sample",
            Recipe::Asap(_) => "asap",
            Recipe::Aria(_) => "aria",
            Recipe::TriPronged(_) => "tri-pronged",
            Recipe::Proactive(_) => "proactive",
        }
    }

    /// Whether jobs can share a place: where tasks wait in queues, each has its own turn.
    pub fn has_trains(&self) -> bool {
        match self {
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Proactive(_) => true,
            Recipe::Aria(_) | Recipe::TriPronged(_) => false,
        }
    }

    pub fn honours(&self) -> FieldSet {
        match self {
            Recipe::Sample(_) => Sample::HONOURS,
            Recipe::Asap(_) => Asap::HONOURS,
            Recipe::Aria(_) | Recipe::TriPronged(_) => aria::HONOURS,
            Recipe::Proactive(_) => Proactive::HONOURS,
        }
    }
}
