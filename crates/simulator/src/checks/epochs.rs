//! I5, I8: epochs grow, each has one set of nodes, and a job's end is what its last placement came to.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId, NodeId, Rank, Time};
use shoal_protocols::commit::two_phase::{self, Placement};
use shoal_protocols::node::{Action, End, Exit, Node, Outcome, OwnedRecord, Record, Task};
use shoal_protocols::scheduling::aria;

use super::{Broken, Check, Known, View, drop_alike, riders};
use crate::world::{Saw, Sight};

/// Follows the epochs of each job, and how their tasks really ended.
#[derive(Default)]
pub struct Epochs {
    last: BTreeMap<JobId, Epoch>,
    placed: BTreeMap<JobId, Placement>,
    nodes: BTreeMap<(JobId, Epoch), Vec<NodeId>>,
    /// Who rides with the jobs of placements that are not on their owner's disk yet.
    riders: BTreeMap<(JobId, Epoch), Vec<JobId>>,
    exits: BTreeMap<Task, (NodeId, Exit)>,
    /// Tasks whose machine went down under them.
    running: BTreeMap<NodeId, BTreeSet<Task>>,
}

impl Check for Epochs {
    fn name(&self) -> &'static str {
        "epochs"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                if !known.exempt.is_lost(tenure.job) {
                    self.on_tenure(tenure.job, tenure.last, tenure.placed.as_ref(), at, node)?;
                    if let Some(placed) = &tenure.placed {
                        let riders = self.riders.remove(&(tenure.job, placed.epoch));
                        for rider in riders.unwrap_or_default() {
                            self.on_tenure(rider, placed.epoch, Some(placed), at, node)?;
                        }
                    }
                }
            }
            Saw::Save(Record::Commit(two_phase::Record::Lock(lock))) => {
                let new = !self.nodes.contains_key(&(lock.job, lock.epoch));
                if let Some(riders) = Some(riders(lock)).filter(|riders| new && !riders.is_empty()) {
                    self.riders.insert((lock.job, lock.epoch), riders);
                }
                if let Some(brief) = &lock.brief
                    && !known.exempt.is_lost(lock.job)
                {
                    self.on_nodes(lock.job, lock.epoch, &brief.nodes, at, node)?;
                }
            }
            Saw::Save(Record::Aria(aria::Record::Tenure(tenure))) => {
                if !known.exempt.is_lost(tenure.job) {
                    self.on_tenure(tenure.job, tenure.last, tenure.placement().as_ref(), at, node)?;
                }
            }
            Saw::Save(Record::Aria(aria::Record::Seat(seat))) => {
                let job = seat.brief.job();
                if !known.exempt.is_lost(job) {
                    self.on_nodes(job, seat.epoch, &seat.brief.nodes, at, node)?;
                }
            }
            Saw::Act(Action::Start { task, .. }) => {
                self.running.entry(node).or_default().insert(*task);
            }
            Saw::Done(Outcome(task, exit, _)) => {
                if self.running.entry(node).or_default().remove(task) {
                    self.exits.insert(*task, (node, *exit));
                }
            }
            Saw::Crash => {
                self.running.remove(&node);
            }
            Saw::Save(Record::Owned(owned)) => {
                if let Some(end) = owned.end
                    && !owned.is_array()
                    && !known.exempt.is_lost(owned.id())
                {
                    self.on_end(owned, end, at, node)?;
                }
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

    fn forget(&mut self, job: JobId) {
        self.last.remove(&job);
        self.placed.remove(&job);
        drop_alike(&mut self.nodes, (job, Epoch(0)), |(other, _)| *other == job);
        drop_alike(&mut self.riders, (job, Epoch(0)), |(other, _)| *other == job);
        let first = Task { job, epoch: Epoch(0), rank: Rank(0) };
        drop_alike(&mut self.exits, first, |task| task.job == job);
    }

    fn look(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}

impl Epochs {
    fn on_tenure(
        &mut self,
        job: JobId,
        last: Epoch,
        placed: Option<&Placement>,
        at: Time,
        node: NodeId,
    ) -> Result<(), Broken> {
        let broken = |what: String| Err(Broken::new(at, what).on(node).of(job));
        if let Some(before) = self.last.insert(job, last)
            && last < before
        {
            return broken(format!("epoch {} follows epoch {}", last.0, before.0));
        }
        let Some(placed) = placed else { return Ok(()) };
        if placed.epoch > last {
            return broken(format!("placed in epoch {}, when {} was the last used", placed.epoch.0, last.0));
        }
        if let Some(before) = self.placed.insert(job, placed.clone())
            && (placed.epoch < before.epoch || (placed.epoch == before.epoch && *placed != before))
        {
            return broken(format!("{placed:?} follows {before:?}"));
        }
        self.on_nodes(job, placed.epoch, &placed.nodes, at, node)
    }

    fn on_nodes(
        &mut self,
        job: JobId,
        epoch: Epoch,
        nodes: &[NodeId],
        at: Time,
        node: NodeId,
    ) -> Result<(), Broken> {
        let first = self.nodes.entry((job, epoch)).or_insert_with(|| nodes.to_vec());
        if first.as_slice() != nodes {
            let what = format!("epoch {} is used for {first:?} and for {nodes:?}", epoch.0);
            return Err(Broken::new(at, what).on(node).of(job));
        }
        Ok(())
    }

    /// What the owner says of the end must be what the tasks of the last placement really came to.
    fn on_end(&self, owned: &OwnedRecord, end: End, at: Time, node: NodeId) -> Result<(), Broken> {
        let job = owned.id();
        let broken = |what: String| Err(Broken::new(at, what).on(node).of(job));
        let Some(Placement { epoch, nodes, .. }) = self.placed.get(&job) else {
            return match end {
                End::Finished | End::Failed(..) | End::Lost => broken(format!("{end:?} without a place")),
                End::Cancelled | End::Expired | End::NoPlace | End::Unmet(_) | End::HandedOver(_) => Ok(()),
            };
        };
        let exit = |rank: Rank| self.exits.get(&Task { job, epoch: *epoch, rank }).copied();
        match end {
            End::Finished => {
                for (rank, &node) in (0..).map(Rank).zip(nodes) {
                    if exit(rank) != Some((node, Exit::Code(0))) {
                        let what = format!("rank {} of epoch {} came to {:?}", rank.0, epoch.0, exit(rank));
                        return broken(format!("finished, though {what}"));
                    }
                }
            }
            End::Failed(rank, said) => {
                if exit(rank).is_none_or(|(_, really)| really != said) {
                    let what = format!("rank {} of epoch {} came to {:?}", rank.0, epoch.0, exit(rank));
                    return broken(format!("failed with {said:?}, though {what}"));
                }
                let tries = usize::from(owned.envelope.job().retry.map_or(0, |retries| retries.get())) + 1;
                let failed = self.failed_epochs(job);
                if failed < tries {
                    return broken(format!("failed after {failed} of {tries} tries"));
                }
            }
            End::Lost | End::Cancelled | End::Expired | End::NoPlace | End::Unmet(_) | End::HandedOver(_) => {
            }
        }
        Ok(())
    }

    /// The placements of which a task ended of itself, and not well.
    fn failed_epochs(&self, job: JobId) -> usize {
        let all = Task { job, epoch: Epoch(0), rank: Rank(0) }..=Task {
            job,
            epoch: Epoch(u32::MAX),
            rank: Rank(u32::MAX),
        };
        let failed = self.exits.range(all).filter(|(_, (_, exit))| {
            matches!(exit, Exit::Code(1..) | Exit::Code(..=-1) | Exit::Signal(_) | Exit::Overran)
        });
        failed.map(|(task, _)| task.epoch).collect::<BTreeSet<_>>().len()
    }
}
