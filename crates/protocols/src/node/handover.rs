//! A node that leaves hands its jobs over: somebody else owns them from then on, and sees them to their end.
//!
//! ```text
//! who leaves                              heir
//!     │  the job is on nobody's machine       │
//!     │── Hand ──────────────────────────────▶│  on its disk, and not its own yet
//!     │◀───────────────────────────── Ready ──│  or Declined: the next neighbour is asked
//!     │  "it is the heir's" is on its disk    │
//!     │── Hand, yours ───────────────────────▶│  on its disk, and its own: it looks for a place
//!     │◀───────────────────────────── Taken ──│
//! ```
//!
//! At any time one of the two may place the job: who leaves until its disk says otherwise, the heir once it has heard
//! so. An heir that does not hear asks (Ready, again and again), and is told that it is the heir or that the other
//! keeps the job (Keep). The heir goes on numbering placements where the other has ended, so that nothing late from before counts.
//! Whoever crashes on the way finds all it needs in the one record that it has of the job.
//!
//! What waits in this node's queue for other owners is given back to them: it has not begun, and never will here.
//!
//! Left out: jobs that run (they end first), that bring files or secrets (these are on this disk), arrays and jobs that
//! others wait for, and those that must not run twice and may have begun. Who has such jobs leaves once they are over.
//! So does who follows a recipe that plans ahead: a promised start is kept. Of the place in a queue nothing is kept: the
//! heir looks for another.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{CborLen, Decode, Encode};
use rand::seq::IteratorRandom;
use shoal_model::{Epoch, JobId, NodeId, Rank, Span, Time};

use super::after;
use super::message::{self, End, Event, Exit, Key, OwnedRecord, Task, Timer};
use super::owned::{Owned, Phase};
use super::runner::TaskState;
use super::{Node, scheduling};
use crate::protocol::{self, Ctx};
use crate::scheduling::Stuck;
use crate::shared::Shared;

/// How many neighbours are asked to take a job before it stays.
const HEIRS_MAX: usize = 8;
/// How often an heir is asked before another is.
const TRIES: u8 = 3;
/// The first pause before an heir is asked again; doubles each time.
const ASK_LEAST: Span = Span::from_secs(1);
/// The pause before it is looked again whether all have let go of a job.
const LET_GO: Span = Span::from_millis(100);
/// A job of which somebody has not let go after so long stays.
const LET_GO_WITHIN: Span = Span::from_secs(30);
/// How long owners of what was given back are waited for; they find out in any case.
const NOTED_WITHIN: Span = Span::from_secs(30);
/// How long a node stays after a job has become another's: who has just begun to wait for it, and asks, hears whose it is.
const MOVED_KNOWN: Span = Span::from_secs(10);
/// Numbers of placements leave room for as many again.
const NUMBERED_MAX: Epoch = Epoch(u32::MAX / 2);
/// The longest pause between two words about the same job.
const ASK_MOST: Span = Span::from_mins(1);

/// What a node that leaves and its heir say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// To the heir: take this job; it is yours, or will be.
    #[n(0)]
    Hand {
        /// What is known of it.
        #[n(0)]
        job: Shared<OwnedRecord>,
        /// Whether it is decided.
        #[n(1)]
        yours: bool,
    },
    /// To who leaves: I have it on my disk.
    #[n(1)]
    Ready(#[n(0)] JobId),
    /// To who leaves: ask somebody else.
    #[n(2)]
    Declined(#[n(0)] JobId),
    /// To who leaves: I see to it.
    #[n(3)]
    Taken(#[n(0)] JobId),
    /// To who is ready: it is not yours, and will not be.
    #[n(4)]
    Keep(#[n(0)] JobId),
}

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &["hand", "ready", "declined", "taken", "keep"];

    fn kind(&self) -> usize {
        match self {
            Message::Hand { .. } => 0,
            Message::Ready(_) => 1,
            Message::Declined(_) => 2,
            Message::Taken(_) => 3,
            Message::Keep(_) => 4,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Hand { job, .. } => message::TASK_BYTES + minicbor::len(&**job) as u64,
            Message::Ready(_) | Message::Declined(_) | Message::Taken(_) | Message::Keep(_) => {
                message::TASK_BYTES
            }
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        if let Message::Hand { job, .. } = self {
            job.after.iter().for_each(|&(_, owner)| mention(owner));
        }
    }
}

/// What a node that leaves knows of the jobs that it hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HandOver {
    /// Those that somebody is asked to take.
    asked: BTreeMap<JobId, Asked>,
    /// Those that nobody took: they end here.
    stay: BTreeSet<JobId>,
    /// Those that are another's, who has not said that it knows; with the number of the reminder.
    untold: BTreeMap<JobId, (NodeId, u8)>,
    /// Since when this node is about to leave.
    since: Option<Time>,
    /// Until then others may wait for jobs of this node, and have not said so since it restarted.
    unsure_until: Time,
    /// Until then this node tells whose its jobs are now.
    stays_until: Time,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Asked {
    since: Time,
    /// The placement that it was taken off.
    off: Option<Epoch>,
    heir: Option<NodeId>,
    tries: u8,
    /// Counts reminders: of several the last one counts.
    reminder: u8,
    declined: BTreeSet<NodeId>,
}

impl HandOver {
    /// A job has ended, or is looked after in another way.
    pub fn forget(&mut self, job: JobId) {
        self.asked.remove(&job);
        self.stay.remove(&job);
    }
}

impl Node {
    /// How many nodes have yet to hear that a job is theirs, by jobs.
    pub fn untold_heirs(&self) -> usize {
        self.work.as_ref().map_or(0, |work| work.handover.untold.len())
    }

    /// Whether this node owns a job: it does not before it is its heir, and no longer once it has one.
    pub fn owns(&self, job: JobId) -> bool {
        self.job(job).is_some_and(|owned| owned.from.is_none()) && self.heir_of(job).is_none()
    }

    /// Who has a job that this node handed over.
    pub fn heir_of(&self, job: JobId) -> Option<NodeId> {
        match self.job(job)?.phase {
            Phase::Ended(End::HandedOver(heir)) => Some(heir),
            Phase::Ended(_) | Phase::Seeking | Phase::Placed { .. } => None,
        }
    }

    /// Hands over what can be, and gives back what waits here for others.
    pub(super) fn hand_over_all(&mut self, ctx: &mut Ctx<'_, Node>) {
        if let Some(work) = &mut self.work {
            work.handover.since = Some(ctx.now);
            work.recipe.leaves();
        }
        self.give_back_queue(ctx);
        self.decline_all(ctx);
        let jobs: Vec<JobId> = self.owned().map(|(job, _)| job).collect();
        for job in jobs {
            self.hand_over(job, ctx);
        }
    }

    /// Whether a task that has just come waits for another owner than this node, which leaves; then it was given back.
    pub(super) fn gives_back(&mut self, task: Task, ctx: &mut Ctx<'_, Node>) -> bool {
        let Some(work) = &self.work else { return false };
        let waits = work
            .tasks
            .get(&task)
            .is_some_and(|task| task.state == TaskState::Waiting && task.owner() != ctx.me);
        let gives = work.draining && waits;
        if gives {
            // Out of the queue first: its turn must not come.
            self.tell_aria(|aria, _, _| aria.withdraw(task.job, task.epoch), ctx);
            self.settle(task, Exit::GivenBack, ctx);
        }
        gives
    }

    fn give_back_queue(&mut self, ctx: &mut Ctx<'_, Node>) {
        if self.aria().is_none() {
            return;
        }
        let Some(work) = &self.work else { return };
        let waits = |task: &&Task| work.tasks.get(task).is_some_and(|task| task.state == TaskState::Waiting);
        let tasks = work.tasks.keys().filter(waits);
        let tasks: Vec<Task> = tasks.filter(|task| self.owner_of(**task) != Some(ctx.me)).copied().collect();
        // All at once: nobody's turn comes because another was given back.
        self.tell_aria(|aria, _, _| tasks.iter().for_each(|task| aria.withdraw(task.job, task.epoch)), ctx);
        for task in tasks {
            self.gives_back(task, ctx);
        }
    }

    /// Takes a job off wherever it waits, and looks for an heir; says whether it does.
    pub(super) fn hand_over(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) -> bool {
        if !self.may_hand_over(job, ctx.me) {
            if let Some(work) = &mut self.work {
                work.handover.asked.remove(&job);
            }
            return false;
        }
        let placed = self.placement(job).map(|placement| placement.epoch);
        let Some(work) = &mut self.work else { return false };
        if work.handover.asked.contains_key(&job) {
            return true;
        }
        work.handover.asked.insert(job, Asked { since: ctx.now, off: placed, ..Asked::default() });
        if let Some(epoch) = placed {
            ctx.report(Event::Unplaced { job, epoch, by: Some(ctx.me) });
            let alone = self.leave_placement(job, ctx);
            assert!(alone.is_empty(), "jobs of arrays are not handed over");
        }
        self.plan(scheduling::Command::Leave(job), ctx);
        self.let_go(job, ctx);
        if let Some(owned) = self.unended(job) {
            owned.why = Some(Stuck::Leaves);
            ctx.report(Event::Waiting(job, Stuck::Leaves));
        }
        self.ask_heir(job, ctx);
        true
    }

    /// Whether a job may become another node's.
    fn may_hand_over(&self, job: JobId, me: NodeId) -> bool {
        let (Some(work), Some(_)) = (&self.work, self.aria()) else { return false };
        let Some(owned) = work.owned.get(&job) else { return false };
        let described = owned.envelope.job();
        let over = matches!(owned.phase, Phase::Ended(_));
        let placed = matches!(owned.phase, Phase::Placed { .. });
        let here = Task { job, epoch: Epoch(0), rank: Rank(0) }..;
        let here = work.tasks.range(here).take_while(|(task, _)| task.job == job);
        let begun_here = here.into_iter().any(|(_, task)| task.state != TaskState::Waiting);
        let begun = !owned.started.is_empty() || begun_here;
        let begun = begun || owned.runs_from.is_some() || placed && owned.runs_once();
        let on_this_disk = described.files.is_some() || described.secrets.is_some();
        let awaits_us = owned.after.values().any(|&owner| owner == me);
        work.draining
            && !work.handover.stay.contains(&job)
            && !(over || begun || on_this_disk || awaits_us)
            && described.array.is_none()
            && owned.from.is_none()
            && !work.is_awaited(job)
    }

    /// The next neighbour is asked to take a job, once nobody has it any more.
    fn ask_heir(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &self.work else { return };
        let Some(asked) = work.handover.asked.get(&job) else { return };
        if self.is_open_anywhere(job) {
            if ctx.now.since(asked.since) > LET_GO_WITHIN {
                self.let_stay(job, ctx);
            } else {
                self.remind_of_heir(job, LET_GO, ctx);
            }
            return;
        }
        // Who waits for it asks from time to time.
        if let unsure @ 1.. = work.handover.unsure_until.since(ctx.now).as_micros() {
            self.remind_of_heir(job, Span::from_micros(unsure), ctx);
            return;
        }
        let others =
            self.overlay.neighbours().filter(|node| *node != ctx.me && !asked.declined.contains(node));
        let heir = others.choose(ctx.chance).filter(|_| asked.declined.len() < HEIRS_MAX);
        let Some(heir) = heir else {
            self.let_stay(job, ctx);
            return;
        };
        if let Some(asked) = self.work.as_mut().and_then(|work| work.handover.asked.get_mut(&job)) {
            (asked.heir, asked.tries) = (Some(heir), 1);
        }
        self.hand(job, heir, false, ctx);
        self.remind_of_heir(job, ASK_LEAST, ctx);
    }

    /// Nobody takes it: it is looked after here, as long as it takes.
    fn let_stay(&mut self, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if let Some(work) = &mut self.work {
            work.handover.asked.remove(&job);
            work.handover.stay.insert(job);
        }
        self.take_on(job, ctx);
    }

    fn remind_of_heir(&mut self, job: JobId, pause: Span, ctx: &mut Ctx<'_, Node>) {
        let Some(asked) = self.work.as_mut().and_then(|work| work.handover.asked.get_mut(&job)) else {
            return;
        };
        asked.reminder = asked.reminder.wrapping_add(1);
        ctx.wake_after(pause, Timer::Hand(job, asked.reminder));
    }

    /// Nothing was heard of an heir; or it is time to look for one.
    pub(super) fn on_hand_time(&mut self, job: JobId, reminder: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let HandOver { asked, untold, .. } = &mut work.handover;
        if let Some((heir, count)) = untold.get_mut(&job).filter(|(_, count)| *count == reminder) {
            *count = count.saturating_add(1);
            let (heir, count) = (*heir, *count);
            self.hand(job, heir, true, ctx);
            ctx.wake_after(pause(count), Timer::Hand(job, count));
            return;
        }
        let Some(asked) = asked.get_mut(&job).filter(|asked| asked.reminder == reminder) else { return };
        match asked.heir {
            Some(heir) if asked.tries < TRIES => {
                let pause = ASK_LEAST * (1 << asked.tries);
                asked.tries += 1;
                self.hand(job, heir, false, ctx);
                self.remind_of_heir(job, pause, ctx);
            }
            Some(heir) => {
                asked.declined.insert(heir);
                asked.heir = None;
                self.ask_heir(job, ctx);
            }
            None => self.ask_heir(job, ctx),
        }
    }

    fn hand(&self, job: JobId, heir: NodeId, yours: bool, ctx: &mut Ctx<'_, Node>) {
        let Some(owned) = self.job(job) else { return };
        let numbered = self.numbered(job);
        let record = OwnedRecord { end: None, from: None, numbered, ..owned.to_record() };
        tell(heir, Message::Hand { job: Shared::new(record), yours }, ctx);
    }

    /// The number of the last placement of a job.
    fn numbered(&self, job: JobId) -> Epoch {
        let before = self.job(job).map(|owned| owned.numbered).unwrap_or_default();
        before.max(self.aria().and_then(|aria| aria.last_epoch(job)).unwrap_or_default())
    }

    pub(super) fn on_hand_over(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Node>) {
        match message {
            Message::Hand { job, yours } => self.on_hand(from, &job, yours, ctx),
            Message::Ready(job) => self.on_ready(from, job, ctx),
            Message::Declined(job) => self.on_declined(from, job, ctx),
            Message::Taken(job) => {
                if self.heir_of(job) == Some(from)
                    && let Some(work) = &mut self.work
                    && work.handover.untold.remove(&job).is_some()
                    && let Some(owned) = work.owned.get_mut(&job)
                {
                    owned.told = true;
                    ctx.save(owned.record());
                }
            }
            Message::Keep(job) => self.on_keep(from, job, ctx),
        }
    }

    /// Somebody has a job of ours on its disk: from here on it is that node's, if that was asked.
    fn on_ready(&mut self, from: NodeId, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.heir_of(job) == Some(from) {
            self.hand(job, from, true, ctx);
            return;
        }
        let asked = self.work.as_ref().and_then(|work| work.handover.asked.get(&job));
        let is_heir = asked.is_some_and(|asked| asked.heir == Some(from));
        if !is_heir || self.is_open_anywhere(job) {
            tell(from, Message::Keep(job), ctx);
            return;
        }
        // Since it was asked, somebody may have begun to wait for it.
        if !self.may_hand_over(job, ctx.me) {
            tell(from, Message::Keep(job), ctx);
            self.let_stay(job, ctx);
            return;
        }
        let numbered = self.numbered(job);
        let Some(owned) = self.unended(job) else { return };
        owned.numbered = numbered;
        self.end(job, End::HandedOver(from), ctx);
        if let Some(work) = &mut self.work {
            work.handover.untold.insert(job, (from, 0));
            work.handover.stays_until = ctx.now + MOVED_KNOWN;
        }
        self.hand(job, from, true, ctx);
        ctx.wake_after(ASK_LEAST, Timer::Hand(job, 0));
    }

    /// Somebody does not want a job of ours: too late if it is that node's already, which then has to find an heir itself.
    fn on_declined(&mut self, from: NodeId, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.heir_of(job) == Some(from) {
            self.hand(job, from, true, ctx);
            return;
        }
        tell(from, Message::Keep(job), ctx);
        let asked = self.work.as_mut().and_then(|work| work.handover.asked.get_mut(&job));
        if let Some(asked) = asked.filter(|asked| asked.heir == Some(from)) {
            asked.declined.insert(from);
            asked.heir = None;
            self.ask_heir(job, ctx);
        }
    }

    /// Whether somebody has a job on this node's behalf, or is to have it, or has yet to let go.
    fn is_open_anywhere(&self, job: JobId) -> bool {
        self.is_placing(job) || self.placement(job).is_some() || self.lingers_on(job).is_some()
    }

    /// Somebody leaves, and this node is to own a job.
    fn on_hand(&mut self, from: NodeId, record: &OwnedRecord, yours: bool, ctx: &mut Ctx<'_, Node>) {
        let job = record.id();
        let Some(work) = &mut self.work else { return };
        let array = record.envelope.job().array.is_some();
        let fresh = record.end.is_none() && record.from.is_none() && record.runs_from.is_none();
        if array || record.index.is_some() || !fresh || record.numbered > NUMBERED_MAX {
            return;
        }
        match work.owned.get(&job).map(|known| known.from) {
            Some(Some(other)) if other == from && !yours => self.say_ready(job, from, ctx),
            // Whoever else was about to hand it over: this one has decided.
            Some(Some(_)) if yours => self.inherit(from, record, ctx),
            // It is this node's already: what was decided is done, and what was not need not be.
            Some(_) if yours => tell(from, Message::Taken(job), ctx),
            Some(_) => tell(from, Message::Declined(job), ctx),
            None => {
                let mut owned = Owned::restore(record.clone(), work.limit_default);
                let takes = work.recipe.aria().is_some()
                    && (yours || !work.draining)
                    && work.has_room_for(&owned).is_ok();
                match (takes, yours) {
                    (true, true) => self.inherit(from, record, ctx),
                    (true, false) => {
                        owned.from = Some(from);
                        ctx.save(owned.record());
                        work.owned.insert(job, Box::new(owned));
                        tell(from, Message::Ready(job), ctx);
                        ctx.wake_after(ASK_LEAST, Timer::Ready(job, 1));
                    }
                    (false, false) => tell(from, Message::Declined(job), ctx),
                    // It is asked again; there may be room then.
                    (false, true) => {}
                }
            }
        }
    }

    /// The job is this node's from now on.
    fn inherit(&mut self, from: NodeId, record: &OwnedRecord, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let owned = Owned::restore(record.clone(), work.limit_default);
        let job = owned.id;
        ctx.save(owned.record());
        work.waiting_for.extend(owned.after.keys().map(|&other| (other, job)));
        work.owned.insert(job, Box::new(owned));
        ctx.report(Event::Accepted(job));
        tell(from, Message::Taken(job), ctx);
        self.take_on(job, ctx);
    }

    /// It is not known yet whether a job is this node's: who hands it over is asked.
    pub(super) fn ask_whether_ours(&mut self, job: JobId, question: u8, ctx: &mut Ctx<'_, Node>) {
        let Some(from) = self.job(job).and_then(|owned| owned.from) else { return };
        self.say_ready(job, from, ctx);
        ctx.wake_after(pause(question), Timer::Ready(job, question.saturating_add(1)));
    }

    fn say_ready(&self, job: JobId, from: NodeId, ctx: &mut Ctx<'_, Node>) {
        let leaves = self.work.as_ref().is_some_and(|work| work.draining);
        tell(from, if leaves { Message::Declined(job) } else { Message::Ready(job) }, ctx);
    }

    /// Whether a job is about to be handed over to this node, and not its own yet.
    pub(super) fn is_another_s(&self, job: JobId) -> bool {
        self.job(job).is_some_and(|owned| owned.from.is_some())
    }

    /// Takes up what a crash left: heirs may not have heard, and others not have said that they wait.
    pub(super) fn boot_handover(&mut self, ctx: &mut Ctx<'_, Node>) {
        let Some(work) = &mut self.work else { return };
        let untold = work.owned.iter().filter(|(_, owned)| !owned.told);
        let untold = untold.filter_map(|(&job, owned)| match owned.phase {
            Phase::Ended(End::HandedOver(heir)) => Some((job, (heir, 0))),
            Phase::Ended(_) | Phase::Seeking | Phase::Placed { .. } => None,
        });
        work.handover.untold = untold.collect();
        for &job in work.handover.untold.keys() {
            ctx.wake_after(ASK_LEAST, Timer::Hand(job, 0));
        }
        if !work.owned.is_empty() {
            work.handover.unsure_until = ctx.now + after::ASK_MOST * 2;
        }
        if work.owned.values().any(|owned| matches!(owned.phase, Phase::Ended(End::HandedOver(_)))) {
            work.handover.stays_until = ctx.now + MOVED_KNOWN;
        }
    }

    /// What others were about to hand over is not wanted any more. They may have decided: so it is kept until they say.
    fn decline_all(&mut self, ctx: &mut Ctx<'_, Node>) {
        for (job, from) in self.owned().filter_map(|(job, owned)| Some((job, owned.from?))) {
            tell(from, Message::Declined(job), ctx);
        }
    }

    /// Whether others can do without this node: nothing of its own is open, and it has nothing of theirs.
    pub fn is_drained(&self, now: Time) -> bool {
        let since = self.work.as_ref().and_then(|work| work.handover.since);
        let long_enough = since.is_some_and(|since| now.since(since) > NOTED_WITHIN);
        // Who is about to hand a job over and is not heard of for long keeps it.
        let open = self.owned().filter(|(_, owned)| !(owned.is_pending() && long_enough));
        let open = open.into_iter().any(|(_, owned)| !matches!(owned.phase(), Phase::Ended(_)));
        let runs = |state| matches!(state, TaskState::Running | TaskState::Stopping);
        let runs = self.tasks().any(|(_, state)| runs(state));
        let queued = self.aria().is_some_and(|aria| aria.seats().next().is_some());
        let queued = queued || self.aria().is_some() && self.tasks().next().is_some();
        let stays = self.work.as_ref().is_some_and(|work| now < work.handover.stays_until);
        !(open || runs || stays || self.untold_heirs() > 0 || queued && !long_enough)
    }

    /// A task has ended here: its owner has to hear of it before this node may leave.
    pub(super) fn note_settled(&mut self, now: Time) {
        if let Some(since) = self.work.as_mut().and_then(|work| work.handover.since.as_mut()) {
            *since = now;
        }
    }

    /// Whether the end of a task that was taken off its node ends the job: it was done before it could be handed over.
    pub(super) fn was_done(&self, from: NodeId, task: Task, exit: Exit) -> bool {
        let asked = self.work.as_ref().and_then(|work| work.handover.asked.get(&task.job));
        let taken_off = asked.is_some_and(|asked| asked.off == Some(task.epoch));
        let lingers = self.aria().is_some_and(|aria| aria.lingers(task.job, task.epoch, from));
        taken_off && lingers && exit == Exit::Code(0)
    }

    /// Who was about to hand a job over keeps it.
    fn on_keep(&mut self, from: NodeId, job: JobId, ctx: &mut Ctx<'_, Node>) {
        if self.job(job).is_some_and(|owned| owned.from == Some(from))
            && let Some(work) = &mut self.work
        {
            work.owned.remove(&job);
            ctx.erase(Key::Owned(job));
        }
    }
}

fn tell(node: NodeId, message: Message, ctx: &mut Ctx<'_, Node>) {
    ctx.send(node, message::Message::HandOver(message));
}

fn pause(count: u8) -> Span {
    (ASK_LEAST * (1 << count.min(10))).min(ASK_MOST)
}
