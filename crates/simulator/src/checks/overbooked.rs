//! I1: on a node, what is promised never exceeds the machine at any instant, nor does what really runs.
//!
//! Placements of one job count as their maximum: the new one is made before the old one is broken. A node has one task of
//! each placement, since it keeps one lock for each and takes the first rank that names it. Tasks of two placements meet
//! on a node only where the older is being stopped, because the newer was confirmed: so that one counts as the
//! maximum too, while tasks that nobody stops add up, whosever they are.

use std::collections::BTreeMap;

use shoal_model::{Amount, Epoch, JobId, NodeId, Resources, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, Brief, Node, Outcome, Record, Task};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Adds up promises and processes.
#[derive(Default)]
pub struct Overbooked {
    running: BTreeMap<NodeId, BTreeMap<Task, Running>>,
    /// What is promised on disk.
    durable: BTreeMap<NodeId, BTreeMap<(JobId, Epoch), Promise>>,
    /// The state of each calendar that was last looked at, in this life of its node: what has not changed still fits.
    looked_at: BTreeMap<NodeId, u64>,
}

/// A task that has not ended.
#[derive(Clone, Debug)]
struct Running {
    amount: Resources,
    stopping: bool,
    /// It waits for this task to end, and uses nothing before.
    behind: Option<Task>,
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
            Saw::Act(Action::Start { task, brief, behind, .. }) => {
                let running = self.running.entry(node).or_default();
                let amount = brief.envelope.job().resources.clone();
                let behind = behind.filter(|behind| running.contains_key(behind));
                running.insert(*task, Running { amount, stopping: false, behind });
                let uses = used(running);
                let has = &known.machines[&node].capacity;
                if uses.as_ref().is_none_or(|uses| !uses.fits_in(has)) {
                    let tasks = running.len();
                    let what = format!("{tasks} tasks run that use {uses:?} of a machine with {has}");
                    return Err(Broken::new(at, what).on(node).of(task.job));
                }
            }
            Saw::Act(Action::Stop(task)) => {
                if let Some(running) = self.running.get_mut(&node).and_then(|tasks| tasks.get_mut(task)) {
                    running.stopping = true;
                }
            }
            Saw::Done(Outcome(task, ..)) => {
                let running = self.running.entry(node).or_default();
                let ended = running.remove(task);
                // Whoever waits for one that waited has its turn then.
                for next in running.values_mut().filter(|next| next.behind == Some(*task)) {
                    next.behind = ended.as_ref().and_then(|ended| ended.behind);
                }
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

/// What tasks use: of each job those that are not being stopped together, or else the most of the others; none if it is
/// beyond counting.
fn used(running: &BTreeMap<Task, Running>) -> Option<Resources> {
    let mut by_job: BTreeMap<JobId, Resources> = BTreeMap::new();
    let running = running.iter().filter(|(_, running)| running.behind.is_none());
    for (task, running) in running.clone().filter(|(_, running)| !running.stopping) {
        let together = by_job.entry(task.job).or_default();
        *together = together.checked_plus(&running.amount)?;
    }
    let stopping = running.filter(|(_, running)| running.stopping);
    sum(by_job
        .iter()
        .map(|(&job, amount)| (job, amount))
        .chain(stopping.map(|(task, running)| (task.job, &running.amount))))
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

#[cfg(test)]
mod tests {
    use shoal_model::{Envelope, Job, Machine, Nonce, Rank};
    use shoal_protocols::Shared;
    use shoal_protocols::node::Exit;

    use super::*;
    use crate::checks::Bounds;
    use crate::checks::exempt::Exempt;

    const NODE: NodeId = NodeId(1);

    /// A job of two cores.
    fn envelope(number: u8) -> Shared<Envelope> {
        let job = Job { resources: Resources::cores(2), ..Job::command(["true"]) };
        Shared::new(Envelope::new(job, Nonce([number; 16])).expect("the job makes sense"))
    }

    fn task(number: u8, epoch: u32) -> Task {
        Task { job: envelope(number).id(), epoch: Epoch(epoch), rank: Rank(0) }
    }

    fn start(number: u8, epoch: u32) -> Saw<Node> {
        let brief = Shared::new(Brief {
            envelope: envelope(number),
            nodes: vec![NODE].into(),
            index: None,
            riders: None,
        });
        let stop_at = Time::from_secs(100);
        Saw::Act(Action::Start { task: task(number, epoch), brief, stop_at, short: false, behind: None })
    }

    fn stop(number: u8, epoch: u32) -> Saw<Node> {
        Saw::Act(Action::Stop(task(number, epoch)))
    }

    fn done(number: u8, epoch: u32) -> Saw<Node> {
        Saw::Done(Outcome::unmeasured(task(number, epoch), Exit::Stopped))
    }

    /// What the checker says of what happens on a machine of three cores.
    fn see(all: impl IntoIterator<Item = Saw<Node>>) -> Result<(), Broken> {
        let machines = BTreeMap::from([(NODE, Machine::with_capacity(Resources::cores(3)))]);
        let (clocks, exempt, bounds) = (BTreeMap::new(), Exempt::default(), Bounds::default());
        let healed_from = Time::ZERO;
        let known =
            Known { machines: &machines, clocks: &clocks, exempt: &exempt, bounds: &bounds, healed_from };
        let mut checker = Overbooked::default();
        let at = Time::from_secs(1);
        all.into_iter().try_for_each(|saw| checker.see(&Sight { at, node: NODE, saw }, &known))
    }

    #[test]
    fn two_jobs_that_are_more_than_the_machine_are_overbooked() {
        let broken = see([start(1, 1), start(2, 1)]).expect_err("four cores of three");
        assert!(broken.what.starts_with("2 tasks run that use"), "{broken:?}");
        assert_eq!(see([start(1, 1), done(1, 1), start(2, 1)]), Ok(()));
        assert!(see([start(1, 1), stop(1, 1), start(2, 1)]).is_err(), "it is there until it has ended");
    }

    #[test]
    fn two_tasks_of_one_job_add_up_unless_one_is_being_stopped() {
        assert!(see([start(1, 1), start(1, 2)]).is_err(), "nobody stops the older one");
        assert_eq!(see([start(1, 1), stop(1, 1), start(1, 2)]), Ok(()));
        assert_eq!(see([start(1, 1), stop(1, 1), done(1, 1), start(1, 2)]), Ok(()));
        assert!(see([start(1, 1), stop(1, 1), start(1, 2), start(1, 3)]).is_err());
    }
}
