//! I10: a hold is gone after 30 s, a commit in doubt soon after its coordinator's last word, and at rest nothing is left of jobs that have ended.

use std::collections::BTreeMap;

use shoal_model::{Epoch, JobId, NodeId, Span, Time};
use shoal_protocols::commit::two_phase::{self, Stage};
use shoal_protocols::node::{End, Key, Node, Record};
use shoal_protocols::scheduling::aria;

use super::{Bounds, Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Watches promises grow old.
#[derive(Default)]
pub struct Holds {
    /// Since when each promise has been in doubt, in this life of its node.
    doubtful: BTreeMap<NodeId, BTreeMap<(JobId, Epoch, Stage), Time>>,
    /// Since when each single hold has stood, by its end: one that comes back has another.
    held: BTreeMap<NodeId, BTreeMap<(JobId, Epoch, Time), Time>>,
    /// When each job ended.
    ended: BTreeMap<JobId, (Time, End)>,
}

/// How much older a promise may grow that stands since then: a clock that was set back makes its node wait longer, and
/// while there are faults a doubled Prepare may bring a hold back, which then has all its time.
fn longer(since: Time, view: &View<'_>) -> Span {
    let echo = if since > view.known.healed_from { Span::ZERO } else { view.known.bounds.echo };
    view.known.clocks_apart() + echo
}

impl Check for Holds {
    fn name(&self) -> &'static str {
        "holds"
    }

    fn see(&mut self, sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        match &sight.saw {
            // A node that comes back asks again, and waits for the answer.
            Saw::Crash => {
                self.doubtful.remove(&sight.node);
                self.held.remove(&sight.node);
            }
            Saw::Save(Record::Owned(owned)) => {
                if let Some(end) = owned.over() {
                    self.ended.entry(owned.id()).or_insert((sight.at, end));
                }
            }
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::DiskLost
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, job: JobId) {
        self.ended.remove(&job);
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let Bounds { hold, doubt, .. } = *view.known.bounds;
        for (&id, node) in &view.up {
            let before = self.doubtful.remove(&id).unwrap_or_default();
            let mut doubtful = BTreeMap::new();
            for (lock, stage) in node.commit().iter().flat_map(|commit| commit.locks()) {
                let most = match stage {
                    Stage::Held => hold,
                    Stage::Committed => doubt,
                    Stage::Confirmed => continue,
                };
                let key = (lock.job, lock.epoch, stage);
                let since = *before.get(&key).unwrap_or(&view.now);
                doubtful.insert(key, since);
                let age = view.now.since(since);
                if age > most + longer(since, view) {
                    let what = format!("epoch {} has been {stage:?} and no more for {age}", lock.epoch.0);
                    return Err(Broken::new(view.now, what).on(id).of(lock.job));
                }
            }
            for (job, epoch, state) in node.aria().into_iter().flat_map(|aria| aria.seats()) {
                let since = *before.get(&(job, epoch, Stage::Held)).unwrap_or(&view.now);
                if state != aria::SeatState::Held {
                    continue;
                }
                doubtful.insert((job, epoch, Stage::Held), since);
                let age = view.now.since(since);
                if age > hold + longer(since, view) {
                    let what = format!("epoch {} has been held and no more for {age}", epoch.0);
                    return Err(Broken::new(view.now, what).on(id).of(job));
                }
            }
            let before = self.held.remove(&id).unwrap_or_default();
            let mut held = BTreeMap::new();
            for (job, epoch, until) in node.commit().iter().flat_map(|commit| commit.holds()) {
                let since = *before.get(&(job, epoch, until)).unwrap_or(&view.now);
                held.insert((job, epoch, until), since);
                let age = view.now.since(since);
                if age > hold + view.known.clocks_apart() {
                    let what = format!("one hold of epoch {} is {age} old", epoch.0);
                    return Err(Broken::new(view.now, what).on(id).of(job));
                }
            }
            if !held.is_empty() {
                self.held.insert(id, held);
            }
            let overdue = node.commit().and_then(|commit| commit.oldest_doubt());
            if overdue.is_some_and(|until| until < view.known.local(id, view.now)) {
                return Err(Broken::new(view.now, "a promise in doubt has outlived its time").on(id));
            }
            if !doubtful.is_empty() {
                self.doubtful.insert(id, doubtful);
            }
        }
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        for (&id, node) in &view.up {
            let locks = node.commit().into_iter().flat_map(|commit| commit.locks());
            let left = locks.map(|(lock, stage)| (lock.job, format!("a lock, {stage:?}")));
            let left = left.chain(node.tasks().map(|(task, state)| (task.job, format!("a task, {state:?}"))));
            let seats = node.aria().into_iter().flat_map(|aria| aria.seats());
            let left = left.chain(seats.map(|(job, _, state)| (job, format!("a seat, {state:?}"))));
            let left = left.chain(node.watches().map(|(other, job)| (job, format!("a watch of {other}"))));
            // A coordinator goes on reminding who does not answer.
            let reminds = !view.known.exempt.anyone_down();
            let tenures = view.disks.get(&id).into_iter().flat_map(|disk| disk.keys()).filter(|_| reminds);
            let left = left.chain(tenures.filter_map(|key| match key {
                Key::Commit(two_phase::Key::Tenure(job)) => Some((*job, "a tenure".to_owned())),
                Key::Commit(two_phase::Key::Lock(job, _)) => Some((*job, "a lock on disk".to_owned())),
                Key::Exits(job) => Some((*job, "exits on disk".to_owned())),
                Key::Task(task) => Some((task.job, "a task on disk".to_owned())),
                Key::Aria(aria::Key::Tenure(job)) => Some((*job, "a tenure".to_owned())),
                Key::Aria(aria::Key::Seat(job)) => Some((*job, "a seat on disk".to_owned())),
                Key::Owned(_) => None,
            }));
            for (job, what) in left {
                let over =
                    self.ended.get(&job).is_some_and(|(at, _)| view.calm_since(*at) > view.known.bounds.rest);
                if over && !view.known.exempt.is_exempt(job) {
                    let what = format!("the job has ended, and there is {what} left");
                    return Err(Broken::new(view.now, what).on(id).of(job));
                }
            }
        }
        Ok(())
    }
}
