//! The run node's side of a train: its tasks share one reservation, which is free when the last of them has ended.
//!
//! The driver starts each task behind the one before, so that nothing is asked between them. Tasks that ride have no
//! records of their own: what was promised to their leader names them, and what has become of them the driver knows. Only
//! an end that its owner is slow to hear is saved. The leader's end is told after theirs, and when its owner has noted that it
//! has noted all of them.

use std::collections::btree_map::Entry;
use std::ops::Deref;

use shoal_model::{Epoch, JobId, NodeId, Rank, Time};

use super::message::{Action, Brief, Exit, JobMessage, Key, Message, Record, Task, Timer};
use super::runner::{Running, TaskState};
use super::train::{QUICK, RIDERS_MAX, RIDES_MOST};
use super::{Node, Work};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The most tasks that ride here, those included whose ends their owners have not heard.
pub(super) const RIDING_MAX: usize = 256 * (RIDERS_MAX + 1);

/// Whether a task shares its reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Seat {
    /// It has it for itself.
    #[default]
    Alone,
    /// It is its own, and these run in it afterwards; so many of them have not ended, and all before the `next` have begun.
    /// Whose turn it is and since when, if its owner has not been told.
    Leads { riders: Box<[Task]>, open: usize, next: usize, unsaid: Option<(Task, Time)> },
    /// It is this task's. Whether it has begun, and whether its end is on disk.
    Rides { leader: Task, begun: bool, saved: bool },
}

/// The seat of a task. Very many tasks may wait for their time, and have their reservations for themselves: of these nothing
/// is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seated(Option<Box<Seat>>);

impl From<Seat> for Seated {
    fn from(seat: Seat) -> Seated {
        Seated((seat != Seat::Alone).then(|| Box::new(seat)))
    }
}

impl Deref for Seated {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        self.0.as_deref().unwrap_or(&Seat::Alone)
    }
}

impl Seated {
    /// The seat, if it is shared in any way.
    fn shared(&mut self) -> Option<&mut Seat> {
        self.0.as_deref_mut()
    }
}

impl Seat {
    /// Whether others have not ended that run in its reservation.
    pub fn is_shared(&self) -> bool {
        matches!(self, Seat::Leads { open, .. } if *open > 0)
    }

    /// Those that ride with it, whether they have ended or not.
    pub fn riders(&self) -> &[Task] {
        match self {
            Seat::Leads { riders, .. } => riders,
            Seat::Alone | Seat::Rides { .. } => &[],
        }
    }

    pub fn leader(&self) -> Option<Task> {
        match self {
            Seat::Rides { leader, .. } => Some(*leader),
            Seat::Alone | Seat::Leads { .. } => None,
        }
    }
}

/// The tasks that ride with one.
fn riders(task: Task, brief: &Brief) -> impl Iterator<Item = (u32, Task)> {
    let array = brief.envelope.id();
    let indexes = brief.riders.iter().flatten();
    indexes.map(move |&index| (index, Task { job: array.of_index(index), ..task }))
}

impl Work {
    /// Notes who rides with a task that has begun; gives those back, with their indexes.
    fn seat(&mut self, task: Task, brief: &Brief, owner: NodeId) -> Vec<(u32, Task)> {
        let mut open = 0;
        let mut seated = Vec::new();
        for (index, rider) in riders(task, brief) {
            let rides = |begun| Seat::Rides { leader: task, begun, saved: begun };
            match self.tasks.entry(rider) {
                // There is room for no more: their owner asks after them, and hears that they are not here.
                Entry::Vacant(_) if self.riding >= RIDING_MAX => break,
                Entry::Vacant(vacant) => {
                    vacant.insert(Running::riding(owner, rides(false)));
                    open += 1;
                }
                Entry::Occupied(mut known) => {
                    let running = known.get_mut();
                    // Of one whose end was saved that is all that is known; any other is of another train.
                    if *running.seat != Seat::Alone || !matches!(running.state, TaskState::Ended(_)) {
                        continue;
                    }
                    running.seat = rides(true).into();
                }
            }
            self.riding += 1;
            seated.push((index, rider));
        }
        if let Some(running) = self.tasks.get_mut(&task).filter(|_| !seated.is_empty()) {
            let riders = seated.iter().map(|&(_, rider)| rider).collect();
            running.seat = Seat::Leads { riders, open, next: 0, unsaid: None }.into();
        }
        seated
    }

    /// The task that is next after one, if there is one that has not begun.
    fn next_after(&mut self, task: Task) -> Option<Task> {
        let leader = self.tasks.get(&task)?.seat.leader().unwrap_or(task);
        let Seat::Leads { riders, next, .. } = &*self.tasks.get(&leader)?.seat else { return None };
        let waits = |rider: &Task| {
            let running = self.tasks.get(rider);
            running.is_some_and(|running| {
                running.state == TaskState::Running
                    && matches!(*running.seat, Seat::Rides { begun: false, .. })
            })
        };
        let place = (*next..riders.len()).find(|&place| waits(&riders[place]));
        let (past, found) = (place.unwrap_or(riders.len()), place.map(|place| riders[place]));
        // None of them will wait again: there is no need to look at them once more.
        if let Some(Seat::Leads { next, .. }) =
            self.tasks.get_mut(&leader).and_then(|task| task.seat.shared())
        {
            *next = past;
        }
        found
    }

    /// One that rode with a task does no longer; says whether it was the last, and the task itself has ended.
    fn leave_seat(&mut self, leader: Task) -> bool {
        let Some(running) = self.tasks.get_mut(&leader) else { return false };
        if let Some(Seat::Leads { open, .. }) = running.seat.shared() {
            *open = open.saturating_sub(1);
            return *open == 0 && matches!(running.state, TaskState::Ended(_));
        }
        false
    }

    fn restore_seats(&mut self) {
        let mut leaders = Vec::new();
        // Of one that waits for its time nobody has begun.
        let begun = self.tasks.iter().filter(|(_, running)| running.state != TaskState::Waiting);
        for (&task, running) in begun {
            let lock = self.commit.lock(task.job, task.epoch).and_then(|(lock, _)| lock.brief.as_ref());
            if let Some(brief) = lock.filter(|brief| brief.riders.is_some()) {
                leaders.push((task, brief.clone(), running.owner()));
            }
        }
        for (task, brief, owner) in leaders {
            self.seat(task, &brief, owner);
        }
    }
}

impl Node {
    /// Has those that ride with a task start after it, each behind the one before.
    pub(super) fn start_riders(
        &mut self,
        task: Task,
        brief: &Shared<Brief>,
        stop_at: Time,
        ctx: &mut Ctx<'_, Node>,
    ) {
        let Some(work) = &mut self.work else { return };
        let Some(owner) = work.tasks.get(&task).map(Running::owner) else { return };
        let riders = work.seat(task, brief, owner);
        let mut behind = task;
        for (index, rider) in riders {
            let Brief { envelope, nodes, .. } = &**brief;
            let (envelope, nodes) = (envelope.clone(), nodes.clone());
            let brief = Shared::new(Brief { envelope, nodes, index: Some(index), riders: None });
            // It begins later than its place does: if its time was not enough, it has another for itself.
            ctx.act(Action::Start { task: rider, brief, stop_at, short: true, behind: Some(behind) });
            behind = rider;
        }
        if behind != task {
            ctx.wake_after(RIDES_MOST, Timer::Trim(task));
        }
    }

    /// Finds the trains of an earlier life again. Which of them run and which wait shows as the others are heard to have
    /// ended.
    pub(super) fn boot_seats(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        work.restore_seats();
        let shared = work.tasks.iter().filter(|(_, running)| running.seat.is_shared());
        let leaders: Vec<(Task, TaskState)> = shared.map(|(&task, running)| (task, running.state)).collect();
        for (task, state) in leaders {
            ctx.wake_after(RIDES_MOST, Timer::Trim(task));
            if matches!(state, TaskState::Ended(_)) {
                self.begin_next(task, ctx);
            }
        }
    }

    /// A task has ended: the next of its train begins.
    pub(super) fn begin_next(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        if let Some(running) = work.tasks.get_mut(&task)
            && let Some(Seat::Rides { begun, .. }) = running.seat.shared()
        {
            // One that was taken out of the line has let nobody wait.
            if running.state == TaskState::Stopping && !*begun {
                return;
            }
            *begun = true;
        }
        let Some(next) = work.next_after(task) else { return };
        let Some(running) = work.tasks.get_mut(&next) else { return };
        let Some(Seat::Rides { leader, begun, .. }) = running.seat.shared() else { return };
        *begun = true;
        let leader = *leader;
        // Most of them end soon: that they have begun goes without saying.
        if let Some(Seat::Leads { unsaid, .. }) =
            work.tasks.get_mut(&leader).and_then(|running| running.seat.shared())
            && unsaid.replace((next, ctx.now)).is_none()
        {
            ctx.wake_after(QUICK, Timer::Begun(leader));
        }
    }

    /// Says whose turn it is in a train, if it has been for a while.
    pub(super) fn on_begun(&mut self, leader: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let seat = work.tasks.get_mut(&leader).and_then(|running| running.seat.shared());
        let Some(Seat::Leads { unsaid, .. }) = seat else { return };
        let Some((task, since)) = *unsaid else { return };
        if ctx.now < since + QUICK {
            ctx.wake_at(since + QUICK, Timer::Begun(leader));
            return;
        }
        *unsaid = None;
        if let Some(running) = work.tasks.get(&task).filter(|running| running.state == TaskState::Running) {
            ctx.send(running.owner(), Message::Job(JobMessage::Started(task, since)));
        }
    }

    /// Those that have not begun by now get off: one before them is slow.
    pub(super) fn on_trim(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        while let Some(rider) = self.work.as_mut().and_then(|work| work.next_after(task)) {
            ctx.act(Action::Stop(rider));
            self.settle_rider(rider, task, Exit::NotStarted, ctx);
        }
    }

    /// The same as settling a task, of one that rides; false if it does not.
    pub(super) fn settle_riding(&mut self, task: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) -> bool {
        let leader = self.work.as_ref().and_then(|work| work.tasks.get(&task)?.seat.leader());
        if let Some(leader) = leader {
            self.settle_rider(task, leader, exit, ctx);
        }
        leader.is_some()
    }

    fn settle_rider(&mut self, task: Task, leader: Task, exit: Exit, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let Some(running) = work.tasks.get_mut(&task) else { return };
        running.state = TaskState::Ended(exit);
        self.on_tell(task, 0, ctx);
        self.leave_train(leader, ctx);
    }

    /// A task that rode with another has left the machine.
    fn leave_train(&mut self, leader: Task, ctx: &mut Ctx<'_, Node>) {
        if self.work.as_mut().is_some_and(|work| work.leave_seat(leader)) {
            self.close(leader, ctx);
        }
    }

    /// A task that was being stopped has ended; says whether it rode with another.
    pub(super) fn vacate_seat(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) -> bool {
        let leader = self.work.as_ref().and_then(|work| work.tasks.get(&task)?.seat.leader());
        if let Some(leader) = leader {
            self.drop_task(task);
            self.leave_train(leader, ctx);
        }
        leader.is_some()
    }

    /// An end that its owner has not heard of at once is saved.
    pub(super) fn save_end(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let Some(running) = self.work.as_mut().and_then(|work| work.tasks.get_mut(&task)) else { return };
        let (owner, state) = (running.owner(), running.state);
        if let Some(Seat::Rides { saved: saved @ false, .. }) = running.seat.shared()
            && let TaskState::Ended(exit) = state
        {
            *saved = true;
            ctx.save(Record::Task(task, owner, Some(exit)));
        }
    }

    /// Erases what is on disk of a task.
    pub(super) fn erase_task(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) {
        let seat = self.work.as_ref().and_then(|work| Some(&*work.tasks.get(&task)?.seat));
        if !matches!(seat, Some(Seat::Rides { saved: false, .. })) {
            ctx.erase(Key::Task(task));
        }
    }

    /// The tasks that run in the place of a job.
    pub(super) fn train_of(&self, job: JobId, epoch: Epoch) -> Vec<Task> {
        let Some(work) = &self.work else { return Vec::new() };
        let all = Task { job, epoch, rank: Rank(0) }..=Task { job, epoch, rank: Rank(u32::MAX) };
        let Some((&task, running)) = work.tasks.range(all).next() else { return Vec::new() };
        // The last first: none begins because the one before it is stopped.
        running.seat.riders().iter().rev().copied().chain([task]).collect()
    }

    /// The owner takes a job back that rides with another.
    pub(super) fn release_rider(&mut self, from: NodeId, job: JobId, upto: Epoch, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let task = Task { job, epoch: upto, rank: Rank(0) };
        let Some(running) = work.tasks.get_mut(&task) else { return };
        if running.owner() == from && running.state == TaskState::Running && running.seat.leader().is_some() {
            running.state = TaskState::Stopping;
            ctx.act(Action::Stop(task));
        }
    }

    /// Whether a task may run here: one that rides, if its leader may.
    pub(super) fn is_wanted_with(&self, task: Task) -> bool {
        let leader = self.work.as_ref().and_then(|work| work.tasks.get(&task)?.seat.leader());
        self.is_wanted_here(leader.unwrap_or(task))
    }
}
