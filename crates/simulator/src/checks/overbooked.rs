//! I1: on a node, what is promised never exceeds the machine at any instant, nor does what really runs.
//!
//! Placements of one job count as their maximum: the new one is made before the old one is broken.

use std::collections::BTreeMap;

use shoal_model::{Amount, Epoch, JobId, NodeId, Resources, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, Brief, Node, Outcome, Record, Task};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Adds up promises and processes.
#[derive(Default)]
pub struct Overbooked {
    running: BTreeMap<NodeId, BTreeMap<Task, Resources>>,
    /// What is promised on disk.
    durable: BTreeMap<NodeId, BTreeMap<(JobId, Epoch), Promise>>,
    /// The state of each calendar that was last looked at, in this life of its node: what has not changed still fits.
    looked_at: BTreeMap<NodeId, u64>,
}

/// A part of a machine for a time.
#[derive(Clone, Debug)]
struct Promise {
    job: JobId,
    start: Time,
    end: Time,
    amount: Resources,
}

impl Promise {
    fn of(lock: &two_phase::Lock<Resources, Brief>) -> Promise {
        let two_phase::Lock { job, start, span, ref amount, .. } = *lock;
        Promise { job, start, end: start + span, amount: amount.clone() }
    }
}

impl Check for Overbooked {
    fn name(&self) -> &'static str {
        "overbooked"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Act(Action::Start { task, brief, .. }) => {
                let running = self.running.entry(node).or_default();
                running.insert(*task, brief.envelope.job().resources.clone());
                let uses = sum(running.iter().map(|(task, amount)| (task.job, amount)));
                let has = &known.machines[&node].capacity;
                if uses.as_ref().is_none_or(|uses| !uses.fits_in(has)) {
                    let tasks = running.len();
                    let what = format!("{tasks} tasks run that use {uses:?} of a machine with {has}");
                    return Err(Broken::new(at, what).on(node).of(task.job));
                }
            }
            Saw::Done(Outcome(task, _)) => {
                self.running.entry(node).or_default().remove(task);
            }
            Saw::Crash => {
                self.looked_at.remove(&node);
                self.running.remove(&node);
            }
            Saw::Save(Record::Commit(two_phase::Record::Lock(lock))) => {
                let promises = self.durable.entry(node).or_default();
                let new = Promise::of(lock);
                let lasts = new.start..new.end;
                promises.insert((lock.job, lock.epoch), new);
                // The others fitted before: only while the new one lasts there can be too much.
                let begins = promises.values().filter(|other| lasts.contains(&other.start));
                fit(promises.values(), begins, at, node, known)?;
            }
            Saw::Erase(shoal_protocols::node::Key::Commit(two_phase::Key::Lock(job, epoch))) => {
                self.durable.entry(node).or_default().remove(&(*job, *epoch));
            }
            Saw::DiskLost => {
                self.durable.remove(&node);
            }
            Saw::Save(_) | Saw::Erase(_) | Saw::Act(_) | Saw::Event(_) | Saw::Send(..) | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, _job: JobId) {}

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        for (&id, node) in &view.up {
            let Some(commit) = node.commit() else { continue };
            let version = commit.calendar().version();
            if self.looked_at.insert(id, version) == Some(version) {
                continue;
            }
            let promises: Vec<Promise> = commit.locks().map(|(lock, _)| Promise::of(lock)).collect();
            fit(promises.iter(), promises.iter(), view.now, id, &view.known)?;
        }
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}

/// What is promised grows only where a promise begins: whoever fits at each beginning fits always.
fn fit<'a>(
    promises: impl Iterator<Item = &'a Promise> + Clone,
    begins: impl Iterator<Item = &'a Promise>,
    at: Time,
    node: NodeId,
    known: &Known<'_>,
) -> Result<(), Broken> {
    let has = &known.machines[&node].capacity;
    for Promise { start: instant, job, .. } in begins {
        let then = promises.clone().filter(|other| other.start <= *instant && *instant < other.end);
        let uses = sum(then.map(|promise| (promise.job, &promise.amount)));
        if uses.as_ref().is_none_or(|uses| !uses.fits_in(has)) {
            let what = format!("at {instant} promises take {uses:?} of a machine with {has}");
            return Err(Broken::new(at, what).on(node).of(*job));
        }
    }
    Ok(())
}

/// The sum over jobs, of each job the most; none if it is beyond counting.
fn sum<'a>(amounts: impl Iterator<Item = (JobId, &'a Resources)>) -> Option<Resources> {
    let mut by_job: BTreeMap<JobId, Resources> = BTreeMap::new();
    for (job, amount) in amounts {
        let most = by_job.entry(job).or_default();
        *most = most.most(amount);
    }
    by_job.values().try_fold(Resources::NONE, |sum, amount| sum.checked_plus(amount))
}
