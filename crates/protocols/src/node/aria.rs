//! The recipe `aria` in the node: jobs wait in the queues of their assignees, not in calendars.
//!
//! Owner and runner ask where a job is and what may run here through this file; with any other recipe that is the
//! commit's to say.

use shoal_model::{Epoch, JobId, NodeId, Time};

use super::message::{Action, End, Exit, JobMessage, Key, Message, Record, Task, Timer};
use super::runner::{self, TaskState};
use super::{Node, Owned, Recipe, Work};
use crate::commit::two_phase::{self, Placement};
use crate::protocol::{Ctx, Hosts, Input, Never};
use crate::scheduling;
use crate::scheduling::aria::{self, Aria, Wanted};

impl Node {
    /// The recipe `aria`, if this node follows it, or another that has jobs wait in queues in the same way.
    pub fn aria(&self) -> Option<&Aria> {
        self.work.as_ref()?.recipe.aria()
    }

    pub(super) fn tell_aria(
        &mut self,
        tell: impl FnOnce(&mut Aria, &aria::Here<'_>, &mut Ctx<'_, Aria>),
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(work) = &mut self.work else { return };
        let Work { recipe, machine, .. } = work.as_mut();
        let here = aria::Here { overlay: &self.overlay, machine };
        let Some(aria) = recipe.aria_mut() else { return };
        let heard = ctx.layer(|ctx| tell(aria, &here, ctx));
        for event in heard {
            self.on_aria(event, ctx);
        }
        self.queue_changed(false, ctx);
    }

    fn on_aria(&mut self, event: aria::Event, ctx: &mut Ctx<'_, Node>) {
        match event {
            aria::Event::Placed(job, placement) => self.on_placed(job, placement, ctx),
            aria::Event::Waits { job, why } => self.note_why(job, why, ctx),
            aria::Event::GiveUp { job, why } => self.on_given_up(job, why, ctx),
            aria::Event::Expired(job) => self.end(job, End::Expired, ctx),
            aria::Event::Lost { job, node } => self.lose(job, node, ctx),
            aria::Event::Find { job, round, needs, avoid } => {
                self.tell_prongs(|prongs, here, ctx| prongs.find(job, round, needs, avoid, here, ctx), ctx);
            }
            aria::Event::Confirmed { task, owner, brief } => {
                if let Some(work) = &mut self.work {
                    work.tasks.entry(task).or_insert(runner::Running::waiting(owner));
                }
                if !self.gives_back(task, ctx) {
                    runner::stage(task, &brief, owner, ctx);
                }
            }
            aria::Event::Start { task, owner, brief, limit } => {
                let Some(work) = &mut self.work else { return };
                let running = work.tasks.entry(task).or_insert(runner::Running::waiting(owner));
                if running.state != TaskState::Waiting {
                    return;
                }
                if self.denies_start(task, owner, &brief, limit, ctx) {
                    self.settle(task, Exit::NotStarted, ctx);
                    return;
                }
                if let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) {
                    running.state = TaskState::Running;
                }
                ctx.save(Record::Task(task, owner, None));
                ctx.act(Action::Start { task, brief, stop_at: ctx.now + limit, short: false, behind: None });
                ctx.send(owner, Message::Job(JobMessage::Started(task, ctx.now)));
                self.ask_later(task, ctx);
            }
            aria::Event::Released(job, epoch) => self.on_released(job, epoch, ctx),
            aria::Event::Unknown { task, owner } => {
                let known = self.work.as_ref().is_some_and(|work| work.tasks.contains_key(&task));
                if !known {
                    ctx.send(owner, Message::Job(JobMessage::Ended(task, Exit::NotStarted, None)));
                }
            }
        }
    }

    pub(super) fn plan_by_aria(&mut self, command: scheduling::Command, ctx: &mut Ctx<'_, Node>) {
        match command {
            scheduling::Command::Plan { job, needs, avoid } => {
                let Some(wanted) = self.wanted(job) else { return };
                self.tell_aria(|aria, here, ctx| aria.plan(job, wanted, needs, avoid, here, ctx), ctx);
            }
            // It commits nothing; and it knows itself when a job is placed.
            scheduling::Command::Failed { .. } | scheduling::Command::Leave(_) => {}
        }
    }

    /// What there is to run.
    fn wanted(&self, job: JobId) -> Option<Wanted> {
        let owned = self.work.as_ref()?.owned.get(&job)?;
        let index = owned.of.map(|(_, index)| index);
        let Owned { limit, numbered, .. } = **owned;
        Some(Wanted { envelope: owned.envelope.clone(), index, limit, numbered })
    }

    /// After a crash the recipe is told again what its assignees have.
    pub(super) fn remember_brief(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if let Some(wanted) = self.wanted(job) {
            self.tell_aria(|aria, _, _| aria.take_up(job, wanted), ctx);
        }
    }

    pub(super) fn boot_aria(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let of = |wanted: fn(TaskState) -> bool| -> Vec<Task> {
            work.tasks.iter().filter(|(_, task)| wanted(task.state)).map(|(&task, _)| task).collect()
        };
        let running = of(|state| matches!(state, TaskState::Running | TaskState::Stopping));
        let ended = of(|state| matches!(state, TaskState::Ended(_)));
        self.tell_aria(|aria, _, ctx| aria.boot(&running, &ended, ctx), ctx);
    }

    /// Where a job is placed.
    pub(super) fn placement(&self, job: JobId) -> Option<Placement> {
        match self.aria() {
            Some(aria) => aria.placement(job),
            None => {
                // What rides with another is where that one is.
                let leader = self.job(job).and_then(|owned| owned.train.leader());
                self.commit()?.placement(leader.unwrap_or(job)).cloned()
            }
        }
    }

    /// The jobs that somebody may have on this node's behalf.
    pub(super) fn placed_jobs(&self) -> Vec<JobId> {
        match self.aria() {
            Some(aria) => aria.tenures().collect(),
            None => self.commit().into_iter().flat_map(|commit| commit.jobs()).collect(),
        }
    }

    /// Whether a placement is under way.
    pub(super) fn is_placing(&self, job: JobId) -> bool {
        match self.aria() {
            Some(aria) => aria.is_placing(job),
            None => self.commit().is_some_and(|commit| commit.is_placing(job)),
        }
    }

    /// A node of a former placement that has yet to let go, if there is one.
    pub(super) fn lingers_on(&self, job: JobId) -> Option<NodeId> {
        match self.aria() {
            Some(aria) => aria.lingers_on(job),
            None => self.commit().and_then(|commit| commit.lingers_on(job)),
        }
    }

    /// Whether anything has to be remembered of a job's places.
    pub(super) fn is_open(&self, job: JobId) -> bool {
        match self.aria() {
            Some(aria) => aria.tenures().any(|other| other == job),
            None => self.commit().is_some_and(|commit| commit.is_open(job)),
        }
    }

    /// Takes a job off its nodes; it will be placed anew.
    pub(super) fn let_go(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        match self.aria() {
            Some(_) => self.tell_aria(|aria, _, ctx| aria.release(job, ctx), ctx),
            None => self.tell_commit(Input::Command(two_phase::Command::Release(job)), ctx),
        }
    }

    /// Takes a job off its nodes for good.
    pub(super) fn forget(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        match self.aria() {
            Some(_) => self.tell_aria(|aria, _, ctx| aria.forget(job, ctx), ctx),
            None => self.tell_commit(Input::Command(two_phase::Command::Forget(job)), ctx),
        }
    }

    /// From when on a job may have run: where it waits in a queue, its turn may come at any time.
    pub(super) fn may_run_from(&self, planned: Time, now: Time) -> Time {
        match self.aria() {
            Some(_) => planned.min(now),
            None => planned,
        }
    }

    /// Whether a task may run here.
    pub(super) fn is_wanted_here(&self, task: Task) -> bool {
        match self.aria() {
            Some(aria) => aria.is_wanted(task.job, task.epoch),
            None => {
                let lock = self.commit().and_then(|commit| commit.lock(task.job, task.epoch));
                matches!(lock, Some((_, two_phase::Stage::Confirmed)))
            }
        }
    }

    /// Whether a task that is not known to the runner waits here for a word of its owner.
    pub(super) fn is_held_here(&self, task: Task) -> bool {
        self.aria().is_some_and(|aria| aria.holds(task.job, task.epoch))
    }

    /// Asks the owner whether what runs is still wanted.
    pub(super) fn ask_whether_wanted(&mut self, task: Task, owner: NodeId, ctx: &mut Ctx<'_, Node>) {
        let Task { job, epoch, .. } = task;
        match self.aria() {
            Some(_) => self.tell_aria(|aria, _, ctx| aria.tell_held(job, epoch, ctx), ctx),
            None => ctx.send(owner, Message::Commit(two_phase::Message::Confirmed { job, epoch })),
        }
    }

    /// The assignee says itself that it is done with a job.
    pub(super) fn note_gone(&mut self, task: Task) {
        if let Some(work) = &mut self.work
            && let Some(aria) = work.recipe.aria_mut()
        {
            aria.note_gone(task.job, task.epoch);
        }
    }

    /// A task that was stopped has left the machine to others.
    pub(super) fn vacate(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        self.tell_aria(|aria, _, ctx| aria.vacate(task.job, task.epoch, ctx), ctx);
    }

    /// The owner has noted how a task ended.
    pub(super) fn forget_finished(&mut self, task: Task) {
        let Some(work) = &mut self.work else { return };
        match work.recipe.aria_mut() {
            Some(aria) => aria.note_told(task.job, task.epoch),
            None => work.commit.forget_finished(task.job, task.epoch),
        }
    }

    /// A message about a task shows that it runs.
    pub(super) fn heard_of_task(&mut self, from: NodeId, message: &aria::Message, ctx: &mut Ctx<'_, Node>) {
        if let aria::Message::Assigned { job, epoch, .. } = *message {
            self.note_running(from, job, epoch, ctx);
        }
    }

    pub(super) fn finish_by_aria(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        self.tell_aria(|aria, _, ctx| aria.finish(job, epoch, ctx), ctx);
        self.queue_changed(true, ctx);
    }
}

impl Recipe {
    /// Who has which jobs, where that is said as with `aria`.
    pub(super) fn aria(&self) -> Option<&Aria> {
        match self {
            Recipe::Aria(aria) => Some(aria),
            Recipe::TriPronged(prongs) => Some(&prongs.aria),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Proactive(_) => None,
        }
    }

    /// This node is about to leave: it draws no more jobs of others.
    pub(super) fn leaves(&mut self) {
        if let Some(aria) = self.aria_mut() {
            aria.leaves();
        }
    }

    /// The same, to be changed.
    fn aria_mut(&mut self) -> Option<&mut Aria> {
        match self {
            Recipe::Aria(aria) => Some(aria),
            Recipe::TriPronged(prongs) => Some(&mut prongs.aria),
            Recipe::Sample(_) | Recipe::Asap(_) | Recipe::Proactive(_) => None,
        }
    }
}

impl Hosts<Aria> for Node {
    fn message(message: aria::Message) -> Message {
        Message::Aria(message)
    }

    fn timer(timer: aria::Timer) -> Timer {
        Timer::Aria(timer)
    }

    fn record(record: aria::Record) -> Record {
        Record::Aria(record)
    }

    fn key(key: aria::Key) -> Key {
        Key::Aria(key)
    }

    fn action(never: Never) -> Action {
        match never {}
    }
}
