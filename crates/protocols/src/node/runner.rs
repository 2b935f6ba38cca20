//! The run node's side: a task is started at its time, watched by the driver, and its end told until it is heard.

use shoal_model::{Epoch, JobId, NodeId, Rank, Span};

use super::message::{Action, Exit, JobMessage, Key, Message, Record, Task, Timer};
use super::{Node, Work};
use crate::commit::two_phase::{Lock, Stage};
use crate::protocol::Ctx;

/// How late a task may start. Its fellows have started long since, and wait for it in vain.
const START_GRACE: Span = Span::from_secs(10);
/// The first pause before an end is told again; doubles each time.
const TELL_LEAST: Span = Span::from_secs(2);
/// The longest such pause.
const TELL_MOST: Span = Span::from_mins(10);

/// A task of this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    owner: NodeId,
    pub state: TaskState,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Its time has not come.
    Waiting,
    /// It runs.
    Running,
    /// It is being stopped; nobody wants to know how it ends.
    Stopping,
    /// It has ended; its owner has not said that it knows.
    Ended(Exit),
}

impl Running {
    pub(super) fn restore(owner: NodeId, exit: Option<Exit>) -> Running {
        Running { owner, state: exit.map_or(TaskState::Running, TaskState::Ended) }
    }
}

impl Node {
    /// The commit confirms, or after a restart remembers, that a task is to run here.
    pub(super) fn on_confirmed(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Some((lock, _)) = work.commit.lock(job, epoch) else { return };
        let Some(brief) = &lock.brief else { return };
        let Some(rank) = brief.nodes.iter().position(|&node| node == ctx.me) else { return };
        let task = Task { job, epoch, rank: Rank(rank as u32) };
        let (owner, start) = (lock.coordinator, lock.start);
        // After a restart the task may be known already, as one that runs or has ended.
        work.tasks.entry(task).or_insert(Running { owner, state: TaskState::Waiting });
        ctx.wake_at(start, Timer::Start(task));
    }

    pub(super) fn on_start(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Work { commit, tasks, .. } = work.as_mut();
        let Some(running) = tasks.get_mut(&task) else { return };
        if running.state != TaskState::Waiting {
            return;
        }
        let Some((Lock { start, span, brief: Some(brief), .. }, Stage::Confirmed)) =
            commit.lock(task.job, task.epoch)
        else {
            return;
        };
        if ctx.now > *start + START_GRACE {
            self.settle(task, Exit::NotStarted, ctx);
            return;
        }
        running.state = TaskState::Running;
        let owner = running.owner;
        ctx.save(Record::Task(task, owner, None));
        ctx.act(Action::Start { task, brief: brief.clone(), stop_at: *start + *span });
        ctx.send(owner, Message::Job(JobMessage::Started(task, ctx.now)));
    }

    /// A task has ended, or was never found again.
    pub(super) fn on_exit(&mut self, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) else { return };
        match running.state {
            TaskState::Running => self.settle(task, exit, ctx),
            TaskState::Stopping => {
                self.drop_task(task);
                ctx.erase(Key::Task(task));
            }
            TaskState::Waiting | TaskState::Ended(_) => {}
        }
    }

    /// The placement is over: what waits is forgotten, what runs is stopped.
    pub(super) fn on_released(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let all = Task { job, epoch, rank: Rank(0) }..=Task { job, epoch, rank: Rank(u32::MAX) };
        let found = work.tasks.range_mut(all).next().map(|(&task, running)| (task, running));
        let Some((task, running)) = found else { return };
        match running.state {
            TaskState::Waiting => self.drop_task(task),
            TaskState::Running => {
                running.state = TaskState::Stopping;
                ctx.act(Action::Stop(task));
            }
            TaskState::Stopping | TaskState::Ended(_) => {}
        }
    }

    pub(super) fn on_noted(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        let running = self.work.as_ref().and_then(|work| work.tasks.get(&task));
        if running
            .is_some_and(|running| running.owner == from && matches!(running.state, TaskState::Ended(_)))
        {
            self.drop_task(task);
            ctx.erase(Key::Task(task));
            if let Some(work) = &mut self.work {
                work.commit.forget_finished(task.job, task.epoch);
            }
        }
    }

    pub(super) fn on_inquire(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let exit = match work.tasks.get(&task).map(|running| running.state) {
            Some(TaskState::Waiting | TaskState::Running | TaskState::Stopping) => return,
            Some(TaskState::Ended(exit)) => exit,
            // Never heard of, or forgotten with the disk.
            None => Exit::Lost,
        };
        ctx.send(from, Message::Job(JobMessage::Ended(task, exit)));
    }

    pub(super) fn on_tell(&mut self, task: Task, reminder: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(running) = self.work.as_ref().and_then(|work| work.tasks.get(&task)) else { return };
        let TaskState::Ended(exit) = running.state else { return };
        ctx.send(running.owner, Message::Job(JobMessage::Ended(task, exit)));
        let pause = (TELL_LEAST * (1 << reminder.min(20))).min(TELL_MOST);
        ctx.wake_after(pause, Timer::Tell(task, reminder.saturating_add(1)));
    }

    /// Asks the driver for what ran before the crash; what is no longer wanted is stopped.
    pub(super) fn boot_runner(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let mut tell = Vec::new();
        for (&task, running) in &mut work.tasks {
            match running.state {
                TaskState::Running => {
                    ctx.act(Action::Adopt(task));
                    let wanted =
                        matches!(work.commit.lock(task.job, task.epoch), Some((_, Stage::Confirmed)));
                    if !wanted {
                        running.state = TaskState::Stopping;
                        ctx.act(Action::Stop(task));
                    }
                }
                TaskState::Ended(_) => tell.push(task),
                TaskState::Waiting | TaskState::Stopping => {}
            }
        }
        for task in tell {
            // The crash may have come between the end on disk and the freeing of its time.
            self.free(task, ctx);
            self.on_tell(task, 0, ctx);
        }
    }

    /// Frees the time of a task that has ended, and tells its owner until it has heard.
    fn settle(&mut self, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Some(running) = work.tasks.get_mut(&task) else { return };
        running.state = TaskState::Ended(exit);
        ctx.save(Record::Task(task, running.owner, Some(exit)));
        self.free(task, ctx);
        self.on_tell(task, 0, ctx);
    }

    fn free(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let heard = ctx.layer(|ctx| work.commit.finish(task.job, task.epoch, ctx));
        assert!(heard.is_empty(), "an ended task frees its time without a word");
        self.calendar_changed(ctx);
    }

    fn drop_task(&mut self, task: Task) {
        if let Some(work) = &mut self.work {
            work.tasks.remove(&task);
        }
    }
}
