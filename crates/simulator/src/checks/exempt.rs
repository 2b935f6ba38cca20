//! What need not hold any more: the jobs of owners that have lost their disk, or left for good.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{End, Event, Node, Record};

use crate::world::{Saw, Sight};

/// Who owns which job, and which owners cannot be held to it.
#[derive(Clone, Debug, Default)]
pub struct Exempt {
    owners: BTreeMap<JobId, NodeId>,
    /// Who owned it before.
    former: BTreeMap<JobId, BTreeSet<NodeId>>,
    /// When each machine last lost its disk.
    wiped: BTreeMap<NodeId, Time>,
    down: BTreeSet<NodeId>,
    lost: BTreeSet<JobId>,
}

impl Exempt {
    /// Takes note of what happened.
    pub fn see(&mut self, sight: &Sight<Node>) {
        match &sight.saw {
            // One that was handed over may be submitted again to its former owner.
            Saw::Event(Event::Accepted(job)) => {
                self.owners.entry(*job).or_insert(sight.node);
            }
            Saw::Save(Record::Owned(owned)) => match (owned.end, owned.from) {
                (Some(End::HandedOver(heir)), _) => {
                    // Said again once the heir has heard, who may have handed it on since.
                    if self.former.entry(owned.id()).or_default().insert(sight.node) {
                        self.owners.insert(owned.id(), heir);
                    }
                }
                // Not its own yet.
                (_, Some(_)) => {}
                (_, None) => {
                    self.owners.insert(owned.id(), sight.node);
                }
            },
            // A job of an array is not on its owner's disk before it has a place.
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                self.owners.entry(tenure.job).or_insert(sight.node);
            }
            Saw::DiskLost => {
                self.wiped.insert(sight.node, sight.at);
                let lost = self.owners.iter().filter(|(_, owner)| **owner == sight.node);
                self.lost.extend(lost.map(|(job, _)| *job));
                // Submitted again, it is one that this machine has never seen.
                let handed = self.former.iter().filter(|(_, nodes)| nodes.contains(&sight.node));
                self.lost.extend(handed.map(|(job, _)| *job));
            }
            Saw::Crash => {
                self.down.insert(sight.node);
            }
            Saw::Restart => {
                self.down.remove(&sight.node);
            }
            Saw::Event(_) | Saw::Act(_) | Saw::Done(_) | Saw::Save(_) | Saw::Erase(_) | Saw::Send(..) => {}
        }
    }

    /// Forgets a job of which nothing is left.
    pub fn forget(&mut self, job: JobId) {
        self.owners.remove(&job);
        self.former.remove(&job);
        self.lost.remove(&job);
    }

    /// The job's owner, if it was ever accepted.
    pub fn owner(&self, job: JobId) -> Option<NodeId> {
        self.owners.get(&job).copied()
    }

    /// Whether the job's owner has lost its disk since it accepted the job.
    pub fn is_lost(&self, job: JobId) -> bool {
        self.lost.contains(&job)
    }

    /// Whether the owner cannot be held to the job: its disk is lost, or it is down when nothing comes up any more.
    pub fn is_exempt(&self, job: JobId) -> bool {
        self.is_lost(job) || self.owner(job).is_none_or(|owner| self.down.contains(&owner))
    }

    /// Whether a machine is down.
    pub fn is_down(&self, node: NodeId) -> bool {
        self.down.contains(&node)
    }

    /// Whether a machine has ever lost its disk.
    pub fn was_wiped(&self, node: NodeId) -> bool {
        self.wiped.contains_key(&node)
    }

    /// Whether some machine is down.
    pub fn anyone_down(&self) -> bool {
        !self.down.is_empty()
    }
}
