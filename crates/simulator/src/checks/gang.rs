//! I9: no rank starts before all nodes have durably committed and their coordinator has it on its disk; all ranks of a
//! gang that finishes have started, each when it was to start; when one is lost, the others stop.
//!
//! That ranks start together is judged by each rank's own clock. So ranks are apart by what clocks are, by the grace for
//! a late word of the coordinator, and by what a disk takes, and by no more.
//!
//! The others stop within [`Bounds::stop`] of when the owner can know that one is lost. It cannot before all faults are
//! over: it may be down itself, or cut off from whoever is lost and from whoever is to stop.
//!
//! [`Bounds::stop`]: super::Bounds::stop

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{Epoch, JobId, NodeId, Rank, Span, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, End, Exit, Node, Outcome, Record, Task};
use shoal_protocols::scheduling::aria;

use super::{Broken, Check, Known, View, drop_alike, riders};
use crate::world::{Saw, Sight};

/// Follows each placement from its commits to its last rank.
#[derive(Default)]
pub struct Gang {
    committed: BTreeMap<(JobId, Epoch), BTreeSet<NodeId>>,
    started: BTreeMap<(JobId, Epoch), Started>,
    /// Those of them that are not known to run as they should: some ranks have not started, or one is lost.
    uncertain: BTreeSet<(JobId, Epoch)>,
    /// The last placement that its owner has put on disk, and when it starts; in a queue, when its turn comes.
    placed: BTreeMap<JobId, (Epoch, Option<Time>)>,
    /// Placements that their only node has moved to an earlier time.
    sooner: BTreeMap<(JobId, Epoch), Time>,
    /// Who leads the train that a job rides with.
    leaders: BTreeMap<(JobId, Epoch), JobId>,
}

/// A placement of which a rank has started.
struct Started {
    nodes: Vec<NodeId>,
    starts: BTreeMap<Rank, Time>,
    running: BTreeSet<Rank>,
    /// When a rank was lost or failed, or did not start with the others.
    broken: Option<Time>,
}

impl Started {
    /// Whether all ranks have started, and none is lost.
    fn is_sound(&self) -> bool {
        self.starts.len() == self.nodes.len() && self.broken.is_none()
    }
}

impl Check for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Commit(two_phase::Record::Lock(lock))) => {
                let key = (lock.job, lock.epoch);
                self.leaders.extend(riders(lock).into_iter().map(|rider| ((rider, lock.epoch), lock.job)));
                self.committed.entry(key).or_default().insert(node);
                // Epochs begin anew where their owner has forgotten them.
                let placed = self.placed.get(&lock.job).filter(|_| !known.exempt.is_lost(lock.job));
                let planned = placed.filter(|placed| placed.0 == lock.epoch);
                if planned.and_then(|placed| placed.1).is_some_and(|planned| lock.start < planned) {
                    if lock.brief.as_ref().is_none_or(|brief| brief.nodes.len() > 1) {
                        let what = format!("a rank of epoch {} moves without the others", lock.epoch.0);
                        return Err(Broken::new(at, what).on(node).of(lock.job));
                    }
                    self.sooner.insert(key, lock.start);
                }
            }
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                if let Some(placed) = &tenure.placed {
                    self.placed.insert(tenure.job, (placed.epoch, Some(placed.start)));
                    self.all_committed(tenure.job, placed.epoch, &placed.nodes, "it is placed")
                        .map_err(|what| Broken::new(at, what).on(node).of(tenure.job))?;
                }
            }
            Saw::Save(Record::Aria(aria::Record::Seat(seat))) => {
                self.committed.entry((seat.brief.job(), seat.epoch)).or_default().insert(node);
            }
            Saw::Save(Record::Aria(aria::Record::Tenure(tenure))) => {
                if let Some(placed) = tenure.placement() {
                    self.placed.insert(tenure.job, (placed.epoch, None));
                    self.all_committed(tenure.job, placed.epoch, &placed.nodes, "it is placed")
                        .map_err(|what| Broken::new(at, what).on(node).of(tenure.job))?;
                }
            }
            Saw::Act(Action::Start { task, brief, behind, .. }) => {
                let Task { job, epoch, rank } = *task;
                let nodes = &brief.nodes;
                // One that rides starts by what was promised to its leader.
                let leader = behind.and_then(|_| self.leaders.get(&(job, epoch)).copied());
                self.may_start(Task { job: leader.unwrap_or(job), ..*task }, nodes, at, node, known)
                    .map_err(|what| Broken::new(at, what).on(node).of(job))?;
                let started = self.started.entry((job, epoch)).or_insert_with(|| Started {
                    nodes: nodes.to_vec(),
                    starts: BTreeMap::new(),
                    running: BTreeSet::new(),
                    broken: None,
                });
                started.starts.insert(rank, at);
                started.running.insert(rank);
                if started.is_sound() {
                    self.uncertain.remove(&(job, epoch));
                } else {
                    self.uncertain.insert((job, epoch));
                }
            }
            Saw::Done(Outcome(Task { job, epoch, rank }, exit, _)) => {
                if let Some(started) = self.started.get_mut(&(*job, *epoch)) {
                    started.running.remove(rank);
                    if *exit != Exit::Code(0) {
                        started.broken.get_or_insert(at);
                        self.uncertain.insert((*job, *epoch));
                    }
                }
            }
            Saw::Crash => {
                for (&key, started) in &mut self.started {
                    let rank = started.nodes.iter().position(|&other| other == node);
                    if rank.is_some_and(|rank| started.running.remove(&Rank(rank as u32))) {
                        started.broken.get_or_insert(at);
                        self.uncertain.insert(key);
                    }
                }
            }
            Saw::Save(Record::Owned(owned)) if owned.end == Some(End::Finished) && !owned.is_array() => {
                let job = owned.id();
                if !known.exempt.is_lost(job) {
                    self.finished(job, at, node)?;
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
        drop_alike(&mut self.committed, (job, Epoch(0)), |(other, _)| *other == job);
        drop_alike(&mut self.started, (job, Epoch(0)), |(other, _)| *other == job);
        while let Some(key) =
            self.uncertain.range((job, Epoch(0))..).next().copied().filter(|key| key.0 == job)
        {
            self.uncertain.remove(&key);
        }
        drop_alike(&mut self.sooner, (job, Epoch(0)), |(other, _)| *other == job);
        drop_alike(&mut self.leaders, (job, Epoch(0)), |(other, _)| *other == job);
        self.placed.remove(&job);
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let bounds = view.known.bounds;
        for &(job, epoch) in &self.uncertain {
            let Some(started) = self.started.get_mut(&(job, epoch)) else { continue };
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

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}

impl Gang {
    fn all_committed(&self, job: JobId, epoch: Epoch, nodes: &[NodeId], what: &str) -> Result<(), String> {
        let committed = self.committed.get(&(job, epoch));
        match nodes.iter().find(|node| committed.is_none_or(|all| !all.contains(node))) {
            Some(missing) => Err(format!("{what}, and {missing} has not committed epoch {}", epoch.0)),
            None => Ok(()),
        }
    }

    fn may_start(
        &self,
        task: Task,
        nodes: &[NodeId],
        at: Time,
        node: NodeId,
        known: &Known<'_>,
    ) -> Result<(), String> {
        let Task { job, epoch, rank } = task;
        self.all_committed(job, epoch, nodes, &format!("rank {} starts", rank.0))?;
        if known.exempt.is_lost(job) {
            return Ok(());
        }
        // A later placement is made before an earlier one is broken.
        let Some(&(last, planned)) = self.placed.get(&job).filter(|(last, _)| *last >= epoch) else {
            return Err(format!("rank {} starts, and no coordinator has epoch {} on disk", rank.0, epoch.0));
        };
        let Some(planned) = self.sooner.get(&(job, epoch)).copied().or(planned) else { return Ok(()) };
        let late = known.local(node, at).since(planned);
        // What was asked of a slow disk while there were faults may be done after them.
        let slow =
            if at > known.healed_from + known.bounds.slow_disk { Span::ZERO } else { known.bounds.slow_disk };
        if last == epoch && late > known.bounds.late + slow {
            return Err(format!("rank {} starts {late} after its time by its own clock", rank.0));
        }
        if last == epoch && known.local(node, at) < planned {
            return Err(format!("rank {} starts before its time by its own clock", rank.0));
        }
        Ok(())
    }

    fn finished(&self, job: JobId, at: Time, node: NodeId) -> Result<(), Broken> {
        let broken = |what: String| Err(Broken::new(at, what).on(node).of(job));
        // One that got off has a place of its own, which is a later one. What was committed for its leader and never came to
        // be a place of that is none of its own either.
        let came_to_be = |&(&(_, epoch), leader): &(&(JobId, Epoch), &JobId)| {
            self.placed.get(leader).is_some_and(|placed| placed.0 >= epoch)
        };
        let all = self.leaders.range((job, Epoch(0))..=(job, Epoch(u32::MAX)));
        let rode = all.rev().find(came_to_be);
        let own = self.placed.get(&job).map(|&(epoch, _)| epoch);
        let Some(epoch) = own.max(rode.map(|(&(_, epoch), _)| epoch)) else {
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Envelope, Job, Nonce, Resources};
    use shoal_protocols::Shared;
    use shoal_protocols::commit::two_phase::{Lock, Placement, Tenure};
    use shoal_protocols::node::Brief;

    use super::*;
    use crate::checks::Bounds;
    use crate::checks::exempt::Exempt;

    const PLANNED: Time = Time::from_secs(100);

    /// What the checker says of a rank of a placement for 100 s that starts at a time.
    fn starts_at(at: Time) -> Result<(), Broken> {
        let envelope = Envelope::new(Job::command(["true"]), Nonce([1; 16])).expect("the job makes sense");
        let (job, epoch, span, node) = (envelope.id(), Epoch(1), Span::from_secs(60), NodeId(1));
        let brief = Shared::new(Brief {
            envelope: Shared::new(envelope),
            nodes: vec![node].into(),
            index: None,
            riders: None,
        });
        let lock = Lock {
            job,
            epoch,
            coordinator: node,
            start: PLANNED,
            span,
            amount: Resources::cores(1),
            confirmed: true,
            brief: Some(brief.clone()),
            longer_by: None,
        };
        let placed = Some(Placement { epoch, start: PLANNED, span, nodes: vec![node].into() });
        let (asked, releasing) = (Vec::new(), Vec::new());
        let tenure = Tenure { job, last: epoch, asked, placed, releasing, over: false };
        let task = Task { job, epoch, rank: Rank(0) };
        let start = Action::Start { task, brief, stop_at: PLANNED + span, short: false, behind: None };
        let saved = |record| Saw::Save(Record::Commit(record));
        let (machines, clocks) = (BTreeMap::new(), BTreeMap::new());
        let (exempt, bounds) = (Exempt::default(), Bounds::default());
        let known = Known {
            machines: &machines,
            clocks: &clocks,
            exempt: &exempt,
            bounds: &bounds,
            healed_from: Time::ZERO,
        };
        let mut gang = Gang::default();
        let before = Time::from_secs(1);
        let seen = [
            (before, saved(two_phase::Record::Lock(lock))),
            (before, saved(two_phase::Record::Tenure(tenure))),
            (at, Saw::Act(start)),
        ];
        seen.into_iter().try_for_each(|(at, saw)| gang.see(&Sight { at, node, saw }, &known))
    }

    #[test]
    fn rank_starts_neither_before_its_time_nor_long_after() {
        let late = Bounds::default().late;
        assert_eq!(starts_at(PLANNED), Ok(()));
        assert_eq!(starts_at(PLANNED + late), Ok(()));
        let told = |at| starts_at(at).expect_err("it is not its time").what;
        assert!(told(PLANNED + late + Span::from_millis(1)).contains("after its time by its own clock"));
        assert!(told(PLANNED - Span::from_millis(1)).contains("before its time by its own clock"));
    }

    /// What the checker says, at a time, of a gang of two of which only the first rank starts, at 100 s.
    fn half_a_gang_at(now: Time) -> Result<(), Broken> {
        let envelope = Envelope::new(Job::command(["true"]), Nonce([1; 16])).expect("the job makes sense");
        let (job, epoch, nodes) = (envelope.id(), Epoch(1), vec![NodeId(1), NodeId(2)]);
        let (machines, clocks) = (BTreeMap::new(), BTreeMap::new());
        let (mut exempt, bounds) = (Exempt::default(), Bounds::default());
        let sight = |saw| Sight { at: PLANNED, node: NodeId(1), saw };
        exempt.see(&sight(Saw::Event(shoal_protocols::node::Event::Accepted(job))));
        let known = Known {
            machines: &machines,
            clocks: &clocks,
            exempt: &exempt,
            bounds: &bounds,
            healed_from: Time::ZERO,
        };
        let mut gang = Gang::default();
        gang.committed.insert((job, epoch), nodes.iter().copied().collect());
        gang.placed.insert(job, (epoch, None));
        let brief = Shared::new(Brief {
            envelope: Shared::new(envelope),
            nodes: nodes.into(),
            index: None,
            riders: None,
        });
        let task = Task { job, epoch, rank: Rank(0) };
        let start = Action::Start { task, brief, stop_at: Time::NEVER, short: false, behind: None };
        gang.see(&sight(Saw::Act(start)), &known)?;
        gang.look(&View { now, up: BTreeMap::new(), disks: BTreeMap::new(), known })
    }

    #[test]
    fn rank_that_runs_on_without_the_others_is_found() {
        let until = PLANNED + Bounds::default().skew + Bounds::default().stop;
        assert_eq!(half_a_gang_at(until), Ok(()));
        let told = half_a_gang_at(until + Span::from_millis(1)).expect_err("it should have stopped").what;
        assert!(told.contains("still run"), "{told}");
    }
}
