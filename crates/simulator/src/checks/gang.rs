//! I9: no rank starts before all nodes have durably committed; ranks of a gang that finishes have all started, and
//! together; when one is lost, the others stop.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId, NodeId, Rank, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, End, Exit, Node, Outcome, Record, Task};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Follows each placement from its commits to its last rank.
#[derive(Default)]
pub struct Gang {
    committed: BTreeMap<(JobId, Epoch), BTreeSet<NodeId>>,
    started: BTreeMap<(JobId, Epoch), Started>,
    /// The last placement that its owner has put on disk.
    placed: BTreeMap<JobId, Epoch>,
}

/// A placement of which a rank has started.
struct Started {
    nodes: Vec<NodeId>,
    starts: BTreeMap<Rank, Time>,
    running: BTreeSet<Rank>,
    /// When a rank was lost or failed, or did not start with the others.
    broken: Option<Time>,
}

impl Check for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Commit(two_phase::Record::Lock(lock))) => {
                self.committed.entry((lock.job, lock.epoch)).or_default().insert(node);
            }
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                if let Some(placed) = &tenure.placed {
                    self.placed.insert(tenure.job, placed.epoch);
                }
            }
            Saw::Act(Action::Start { task, brief, .. }) => {
                let Task { job, epoch, rank } = *task;
                let nodes = &brief.nodes;
                let committed = self.committed.get(&(job, epoch));
                let missing = nodes.iter().find(|node| committed.is_none_or(|all| !all.contains(node)));
                if let Some(missing) = missing {
                    let what = format!("rank {} starts, and {missing} has not committed", rank.0);
                    return Err(Broken::new(at, what).on(node).of(job));
                }
                let started = self.started.entry((job, epoch)).or_insert_with(|| Started {
                    nodes: nodes.clone(),
                    starts: BTreeMap::new(),
                    running: BTreeSet::new(),
                    broken: None,
                });
                started.starts.insert(rank, at);
                started.running.insert(rank);
            }
            Saw::Done(Outcome(Task { job, epoch, rank }, exit)) => {
                if let Some(started) = self.started.get_mut(&(*job, *epoch)) {
                    started.running.remove(rank);
                    if *exit != Exit::Code(0) {
                        started.broken.get_or_insert(at);
                    }
                }
            }
            Saw::Crash => {
                for started in self.started.values_mut() {
                    let rank = started.nodes.iter().position(|&other| other == node);
                    if rank.is_some_and(|rank| started.running.remove(&Rank(rank as u32))) {
                        started.broken.get_or_insert(at);
                    }
                }
            }
            Saw::Save(Record::Owned(owned)) if owned.end == Some(End::Finished) => {
                self.finished(owned.envelope.id(), at, node, known)?;
            }
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::DiskLost
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let bounds = view.known.bounds;
        for (&(job, epoch), started) in &mut self.started {
            if started.running.is_empty() || view.known.exempt.is_exempt(job) {
                continue;
            }
            let first = started.starts.values().min().copied().unwrap_or_default();
            if started.starts.len() < started.nodes.len() && view.now.since(first) > bounds.skew {
                started.broken.get_or_insert(first + bounds.skew);
            }
            if started.broken.is_some_and(|broken| view.calm_since(broken) > bounds.stop) {
                let ranks = started.running.iter().map(|rank| rank.0);
                let what = format!(
                    "ranks {:?} of epoch {} still run, though the gang broke at {}",
                    ranks.collect::<Vec<_>>(),
                    epoch.0,
                    started.broken.unwrap_or_default(),
                );
                return Err(Broken::new(view.now, what).of(job));
            }
        }
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        self.look(view)
    }
}

impl Gang {
    fn finished(&self, job: JobId, at: Time, node: NodeId, known: &Known<'_>) -> Result<(), Broken> {
        let broken = |what: String| Err(Broken::new(at, what).on(node).of(job));
        let Some(&epoch) = self.placed.get(&job) else {
            return broken("the job finished without a place".to_owned());
        };
        let Some(started) = self.started.get(&(job, epoch)) else {
            return broken(format!("the job finished, and no rank of epoch {} has started", epoch.0));
        };
        let ranks = (0..started.nodes.len() as u32).map(Rank);
        if let Some(rank) = ranks.into_iter().find(|rank| !started.starts.contains_key(rank)) {
            return broken(format!(
                "the job finished, and rank {} of epoch {} never started",
                rank.0, epoch.0
            ));
        }
        let first = started.starts.values().min().copied().unwrap_or_default();
        let last = started.starts.values().max().copied().unwrap_or_default();
        if last.since(first) > known.bounds.skew {
            return broken(format!("the first rank started at {first}, the last only at {last}"));
        }
        Ok(())
    }
}
