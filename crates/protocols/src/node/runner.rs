//! The run node's side: a task is started at its time, watched by the driver, and its end told until it is heard.
//!
//! - **A task that starts late has its whole time** where the calendar has room for it: its reservation is made longer by
//!   what it is late. Where another comes right after it, it runs up to there; if that was not enough it is *cut
//!   short*, which is no failure of the job: the owner places it anew. A longer reservation from the start would
//!   give every job's neighbours less, for what happens to few.
//! - **Ranks of a gang start within [`START_GRACE`] of each other**, by clocks that agree and disks that are quick. They
//!   do start apart where a Confirm was lost, or its sender crashed before it had told everybody: who has it
//!   starts on time, because no exchange of messages that may be lost can make sure that all have it (the two
//!   generals). Who has it later than that never starts, and then the others stop.
//! - **What runs asks whether it is wanted**, every [`WANTED_EVERY`]: so it stops soon after its owner can be reached
//!   again, however many words of the owner were lost meanwhile.

use std::collections::BTreeSet;

use shoal_model::{Epoch, JobId, NodeId, Span, Time, calendar};

use super::message::{Action, Brief, Exit, JobMessage, Key, Message, Record, Task, Timer, Usage};
use super::ride::{Seat, Seated};
use super::{Node, Work};
use crate::commit::two_phase::{Lock, Stage};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// How late a task may start. Its fellows have started long since, and wait for it in vain.
pub const START_GRACE: Span = Span::from_secs(5);
/// A task does not start either when it would have less than this part of its time: what comes after it has the machine.
const TIME_LEFT_LEAST: u64 = 2;
/// A task that is no later than this is in time: timers are never exact, and to make room for so little is not worth a
/// write.
const LATE_LEAST: Span = Span::from_millis(100);
/// How often a node asks whether what runs there is still wanted.
pub const WANTED_EVERY: Span = Span::from_secs(5);
/// The first pause before an end is told again; doubles each time.
const TELL_LEAST: Span = Span::from_secs(2);
/// The longest such pause.
const TELL_MOST: Span = Span::from_mins(10);

/// A task of this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    owner: NodeId,
    pub state: TaskState,
    /// What it took, once it has ended. Not saved: told, never acted upon.
    usage: Option<Box<Usage>>,
    /// Whether others run in its reservation, or it in another's.
    pub seat: Seated,
}

/// Very many may wait for their time.
const _: () = assert!(size_of::<Running>() <= 40);

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
    pub(super) fn waiting(owner: NodeId) -> Running {
        Running { owner, state: TaskState::Waiting, usage: None, seat: Seated::default() }
    }

    pub(super) fn riding(owner: NodeId, seat: Seat) -> Running {
        Running { owner, state: TaskState::Running, usage: None, seat: seat.into() }
    }

    pub(super) fn owner(&self) -> NodeId {
        self.owner
    }

    /// Whether its time has not come, and this is who decides on it.
    pub(super) fn waits_for(&self, owner: NodeId) -> bool {
        self.state == TaskState::Waiting && self.owner == owner
    }

    /// What its owner is told of its end; none if it has not ended, or not all that run in its reservation.
    fn end(&self, task: Task) -> Option<JobMessage> {
        match self.state {
            TaskState::Ended(_) if self.seat.is_shared() => None,
            TaskState::Ended(exit) => Some(JobMessage::Ended(task, exit, self.usage.clone())),
            TaskState::Waiting | TaskState::Running | TaskState::Stopping => None,
        }
    }

    pub(super) fn restore(owner: NodeId, exit: Option<Exit>) -> Running {
        let state = exit.map_or(TaskState::Running, TaskState::Ended);
        Running { owner, state, usage: None, seat: Seated::default() }
    }
}

/// Has the files and secrets of a task brought here, if there are any; says whether some have to come.
pub(super) fn stage(task: Task, brief: &Shared<Brief>, owner: NodeId, ctx: &mut Ctx<'_, Node>) -> bool {
    let job = brief.envelope.job();
    if job.files.is_none() && job.secrets.is_none() {
        return false;
    }
    ctx.act(Action::Stage { task, brief: brief.clone(), owner });
    job.files.as_ref().is_some_and(|files| !files.inputs.is_empty()) || job.secrets.is_some()
}

impl Work {
    /// The tasks that are reserved here from a time until now, by start; and when the next is.
    fn due(&self, from: Time, now: Time, me: NodeId) -> (Vec<Task>, Option<Time>) {
        let mut due = Vec::new();
        for reservation in self.commit.calendar().starting_from(from) {
            let start = reservation.interval.start();
            if start > now {
                return (due, Some(start));
            }
            let calendar::Key { job, epoch } = reservation.key;
            let brief = self.commit.lock(job, epoch).and_then(|(lock, _)| lock.brief.as_ref());
            if let Some(rank) = brief.and_then(|brief| brief.rank_of(me)) {
                due.push(Task { job, epoch, rank });
            }
        }
        (due, None)
    }
}

impl Node {
    /// The commit confirms that a task is to run here.
    pub(super) fn on_confirmed(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        if self.expect(job, epoch, ctx) {
            self.offer_to(job, epoch, ctx);
        }
    }

    /// Has a task start at its time, whose files are brought here if it has any; says whether it could start now.
    pub(super) fn expect(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) -> bool {
        let Some(work) = &mut self.work else { return false };
        let Some((lock, _)) = work.commit.lock(job, epoch) else { return false };
        let Some(brief) = &lock.brief else { return false };
        let Some(rank) = brief.rank_of(ctx.me) else { return false };
        let task = Task { job, epoch, rank };
        let (owner, start) = (lock.coordinator, lock.start);
        // After a restart the task may be known already, as one that runs or has ended.
        work.tasks.entry(task).or_insert(Running::waiting(owner));
        let brief = brief.clone();
        if start > ctx.now {
            self.look_for_starts(start, ctx);
        } else {
            ctx.wake_at(ctx.now, Timer::Start(task));
        }
        // Else it would start before its files are here.
        !stage(task, &brief, owner, ctx)
    }

    /// Very many tasks may wait for their time: of these, one reminder for the next is enough.
    fn look_for_starts(&mut self, at: Time, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        if work.starts_at.is_none_or(|starts_at| at < starts_at) {
            work.starts_at = Some(at);
            ctx.wake_at(at, Timer::AnyStart);
        }
    }

    /// The time of some tasks that wait has come.
    pub(super) fn on_any_start(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        // Of two reminders the one that was set for the earlier time counts.
        let Some(from) = work.starts_at.filter(|&from| from <= ctx.now) else { return };
        work.starts_at = None;
        let (due, next) = work.due(from, ctx.now, ctx.me);
        for task in due {
            self.on_start(task, ctx);
        }
        if let Some(next) = next {
            self.look_for_starts(next, ctx);
        }
    }

    pub(super) fn on_start(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Work { commit, tasks, .. } = work.as_mut();
        let Some(running) = tasks.get_mut(&task) else { return };
        if running.state != TaskState::Waiting {
            return;
        }
        let Some((lock @ &Lock { start, brief: Some(ref brief), .. }, Stage::Confirmed)) =
            commit.lock(task.job, task.epoch)
        else {
            return;
        };
        let span = lock.time();
        let (owner, brief, late) = (running.owner, brief.clone(), ctx.now.since(start));
        if self.denies_start(task, owner, &brief, span, ctx) {
            self.settle(task, Exit::NotStarted, ctx);
            return;
        }
        let in_time = late <= START_GRACE;
        let longer = in_time && late > LATE_LEAST && self.lengthen(task, late, ctx);
        let misses = if longer { Span::ZERO } else { late };
        if !in_time || misses > Span::from_micros(span.as_micros() / TIME_LEFT_LEAST) {
            self.settle(task, Exit::NotStarted, ctx);
            return;
        }
        if let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) {
            running.state = TaskState::Running;
        }
        ctx.save(Record::Task(task, owner, None));
        let stop_at = start + span + late.saturating_sub(misses);
        let short = misses > LATE_LEAST;
        ctx.act(Action::Start { task, brief: brief.clone(), stop_at, short, behind: None });
        ctx.send(owner, Message::Job(JobMessage::Started(task, ctx.now)));
        self.ask_later(task, ctx);
        self.start_riders(task, &brief, stop_at, ctx);
    }

    /// Makes the reservation of a task longer; tells whether there was room.
    fn lengthen(&mut self, task: Task, by: Span, ctx: &mut Ctx<'_, Node>) -> bool {
        let Some(work) = &mut self.work else { return false };
        let mut longer = false;
        let heard = ctx.layer(|ctx| longer = work.commit.lengthen(task.job, task.epoch, by, ctx));
        assert!(heard.is_empty(), "a longer reservation is no news");
        if longer {
            self.calendar_changed(ctx);
        }
        longer
    }

    /// Asks the owner whether what runs is still wanted. A placement that stands gets no answer, any other is aborted.
    pub(super) fn on_wanted(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(running) = self.work.as_ref().and_then(|work| work.tasks.get(&task)) else { return };
        if running.state == TaskState::Running || running.seat.is_shared() {
            self.ask_whether_wanted(task, running.owner, ctx);
            self.ask_later(task, ctx);
        }
    }

    pub(super) fn ask_later(&self, task: Task, ctx: &mut Ctx<'_, Node>) {
        if self.work.as_ref().is_some_and(|work| work.heartbeat.is_on()) {
            ctx.wake_after(WANTED_EVERY, Timer::Wanted(task));
        }
    }

    /// An owner that is heard of again is told at once what it has missed.
    pub(super) fn tell_all(&self, owner: NodeId, ctx: &mut Ctx<'_, Node>) {
        for (&task, running) in self.work.iter().flat_map(|work| &work.tasks) {
            if let Some(end) = running.end(task).filter(|_| running.owner == owner) {
                ctx.send(owner, Message::Job(end));
            }
        }
    }

    /// A task has ended, or was never found again.
    pub(super) fn on_exit(
        &mut self,
        task: Task,
        exit: Exit,
        usage: Option<Box<Usage>>,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) else { return };
        match running.state {
            TaskState::Running => {
                running.usage = usage;
                self.begin_next(task, ctx);
                self.settle(task, exit, ctx);
            }
            TaskState::Stopping => {
                // Nobody waits for its end, but what it took is its owner's to know: told once, and lost with the message.
                if usage.is_some() {
                    ctx.send(running.owner, Message::Job(JobMessage::Ended(task, exit, usage)));
                }
                self.begin_next(task, ctx);
                if !self.vacate_seat(task, ctx) {
                    self.drop_task(task);
                    ctx.erase(Key::Task(task));
                    self.vacate(task, ctx);
                }
            }
            TaskState::Waiting | TaskState::Ended(_) => {}
        }
    }

    /// The placement is over: what waits is forgotten, what runs is stopped.
    pub(super) fn on_released(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Node>) {
        for task in self.train_of(job, epoch) {
            let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) else {
                continue;
            };
            match running.state {
                TaskState::Waiting => self.drop_task(task),
                TaskState::Running => {
                    running.state = TaskState::Stopping;
                    ctx.act(Action::Stop(task));
                }
                // Nobody wants to know, once the last that runs in its place has ended.
                TaskState::Ended(_) if running.seat.is_shared() => {
                    self.drop_task(task);
                    ctx.erase(Key::Task(task));
                }
                TaskState::Stopping | TaskState::Ended(_) => {}
            }
        }
    }

    pub(super) fn on_noted(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        // Whoever has noted the end of one that led others has noted theirs.
        let riders = work.tasks.get(&task).map(|running| running.seat.riders().to_vec()).unwrap_or_default();
        for task in riders.into_iter().chain([task]) {
            let noted =
                |running: &&Running| running.owner == from && matches!(running.state, TaskState::Ended(_));
            if self.work.as_ref().and_then(|work| work.tasks.get(&task)).filter(noted).is_some() {
                self.erase_task(task, ctx);
                self.drop_task(task);
                self.forget_finished(task);
            }
        }
    }

    pub(super) fn on_inquire(&mut self, from: NodeId, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let answer = match work.tasks.get(&task).map(|running| (running.state, running.end(task))) {
            Some((_, Some(end))) => end,
            Some((TaskState::Waiting | TaskState::Stopping, None)) => return,
            // When exactly is forgotten; it was planned for then, and began within its grace.
            Some((TaskState::Running | TaskState::Ended(_), None)) => {
                let planned = work.commit.lock(task.job, task.epoch).map(|(lock, _)| lock.start);
                JobMessage::Started(task, planned.unwrap_or(ctx.now))
            }
            None if self.is_held_here(task) => return,
            // Never heard of, or forgotten with the disk.
            None => JobMessage::Ended(task, Exit::Lost, None),
        };
        ctx.send(from, Message::Job(answer));
    }

    pub(super) fn on_tell(&mut self, task: Task, reminder: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(running) = self.work.as_ref().and_then(|work| work.tasks.get(&task)) else { return };
        let Some(end) = running.end(task) else { return };
        ctx.send(running.owner, Message::Job(end));
        if reminder > 0 {
            self.save_end(task, ctx);
        }
        let pause = (TELL_LEAST * (1 << reminder.min(20))).min(TELL_MOST);
        ctx.wake_after(pause, Timer::Tell(task, reminder.saturating_add(1)));
    }

    /// Asks the driver for what ran before the crash; what is no longer wanted is stopped.
    pub(super) fn boot_runner(&mut self, ctx: &mut Ctx<'_, Node>) {
        self.boot_seats(ctx);
        let running = self.tasks().filter(|(_, state)| *state == TaskState::Running).map(|(task, _)| task);
        let wanted: BTreeSet<Task> = running.filter(|&task| self.is_wanted_with(task)).collect();
        let Some(work) = &mut self.work else { return };
        let (mut tell, mut ask) = (Vec::new(), Vec::new());
        for (&task, running) in &mut work.tasks {
            match running.state {
                TaskState::Running => {
                    ctx.act(Action::Adopt(task));
                    if !wanted.contains(&task) {
                        running.state = TaskState::Stopping;
                        ctx.act(Action::Stop(task));
                    }
                    ask.push(task);
                }
                TaskState::Ended(_) if running.seat.is_shared() => ask.push(task),
                TaskState::Ended(_) => tell.push(task),
                TaskState::Waiting | TaskState::Stopping => {}
            }
        }
        for task in tell {
            // The crash may have come between the end on disk and the freeing of its time.
            self.free(task, ctx);
            self.on_tell(task, 0, ctx);
        }
        for task in ask {
            self.ask_later(task, ctx);
        }
    }

    /// Frees the time of a task that has ended, and tells its owner until it has heard.
    pub(super) fn settle(&mut self, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        if self.settle_riding(task, exit, ctx) {
            return;
        }
        let Some(work) = &mut self.work else { return };
        let Some(running) = work.tasks.get_mut(&task) else { return };
        running.state = TaskState::Ended(exit);
        ctx.save(Record::Task(task, running.owner, Some(exit)));
        // Its time is others' until they have ended too.
        if !running.seat.is_shared() {
            self.close(task, ctx);
        }
    }

    /// Nothing runs any more in the reservation of a task that has ended.
    pub(super) fn close(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        self.note_settled(ctx.now);
        self.free(task, ctx);
        self.on_tell(task, 0, ctx);
    }

    fn free(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        if self.aria().is_some() {
            self.finish_by_aria(task.job, task.epoch, ctx);
            return;
        }
        let Some(work) = &mut self.work else { return };
        let heard = ctx.layer(|ctx| work.commit.finish(task.job, task.epoch, ctx));
        assert!(heard.is_empty(), "an ended task frees its time without a word");
        self.calendar_changed(ctx);
        self.offer_room(ctx);
    }

    pub(super) fn drop_task(&mut self, task: Task) {
        let Some(work) = &mut self.work else { return };
        if work.tasks.remove(&task).is_some_and(|gone| gone.seat.leader().is_some()) {
            work.riding -= 1;
        }
    }
}
