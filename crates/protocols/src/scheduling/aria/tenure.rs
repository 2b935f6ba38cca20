//! The initiator's side of a placement: it alone numbers the placements of a job, and says who may start it.
//!
//! ```text
//! initiator                         chosen node
//!     │  the epoch is on its disk        │
//!     │── Assign ───────────────────────▶│  on its disk, but not to be started yet
//!     │◀──────────────────── Assigned ───│  with a token that it drew
//!     │  who has it is on its disk       │
//!     │── Confirm ──────────────────────▶│  with that token: it may start
//!
//! assignee            initiator                     somebody cheaper
//!     │── Notify ─────▶│── Assign ──────────────────────▶│   the assignee leaves the job alone meanwhile
//!     │                │◀────────────────────  Assigned ─│
//!     │◀── Cancel ─────│── Confirm ─────────────────────▶│   or Stay, if that came to nothing
//! ```
//!
//! A late or doubled Assign makes a node hold a job that it is never allowed to start; a late Confirm names a token
//! that is no longer known. So neither starts a job twice.

use shoal_model::{Envelope, Epoch, JobId, NodeId, Span, Time};

use super::message::{Key, Message, Placed, Record, Tenure, Timer};
use super::{Aria, Event};
use crate::commit::two_phase::Placement;
use crate::node::Brief;
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The first pause before an ASSIGN is sent again; doubles each time.
const ASSIGN_LEAST: Span = Span::from_secs(1);
/// How often it is sent again before somebody else is asked: so that all is over before a node stops holding.
const ASSIGN_TRIES: u8 = 3;
/// The first pause before whoever should let go is reminded; doubles each time.
const REMIND_LEAST: Span = Span::from_secs(2);
/// The longest such pause.
const REMIND_MOST: Span = Span::from_mins(5);

/// No queue is longer: a start beyond this is no forecast.
const START_WITHIN: Span = Span::from_hours(366 * 24);

/// What is to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The job, or the array that it is of.
    pub envelope: Shared<Envelope>,
    /// Of an array: for which index.
    pub index: Option<u32>,
    /// How long it may run.
    pub limit: Span,
    /// Placements up to this number were made by somebody else.
    pub numbered: Epoch,
}

/// What the initiator of a job knows of its places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub tenure: Tenure,
    /// What to run, as long as it is looked after.
    pub wanted: Option<Wanted>,
    /// Whether the assignee has said by itself that it is done with it.
    pub gone: bool,
    reminding: bool,
}

impl Held {
    pub fn restore(tenure: Tenure) -> Held {
        Held { tenure, wanted: None, gone: false, reminding: false }
    }
}

impl Aria {
    /// Where a job is, if somebody has it.
    pub fn placement(&self, job: JobId) -> Option<Placement> {
        self.tenures.get(&job)?.tenure.placement()
    }

    /// The jobs of which this node has to remember where they are.
    pub fn tenures(&self) -> impl Iterator<Item = JobId> + '_ {
        self.tenures.keys().copied()
    }

    /// The number of its last placement, if it ever was to have one.
    pub fn last_epoch(&self, job: JobId) -> Option<Epoch> {
        Some(self.tenures.get(&job)?.tenure.last)
    }

    /// Whether a place is being looked for, or somebody is being asked.
    pub fn is_placing(&self, job: JobId) -> bool {
        let asked = self.tenures.get(&job).is_some_and(|held| held.tenure.asked.is_some());
        asked || self.searches.contains_key(&job)
    }

    /// Whether this node has yet to let go of this placement.
    pub fn lingers(&self, job: JobId, epoch: Epoch, node: NodeId) -> bool {
        self.tenures.get(&job).is_some_and(|held| held.tenure.leaving.contains(&(epoch, node)))
    }

    /// Somebody who has yet to let go of it, if there is one.
    pub fn lingers_on(&self, job: JobId) -> Option<NodeId> {
        self.tenures.get(&job)?.tenure.leaving.first().map(|&(_, node)| node)
    }

    /// The assignee is done with this placement: it need not be told to let go.
    pub fn note_gone(&mut self, job: JobId, epoch: Epoch) {
        if let Some(held) = self.tenures.get_mut(&job)
            && held.tenure.placed.is_some_and(|placed| placed.epoch == epoch)
        {
            held.gone = true;
        }
    }

    /// Nobody is to have it any more; the next epoch may be used.
    pub fn release(&mut self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        self.searches.remove(&job);
        self.let_go(job, false, ctx);
    }

    /// Nobody is to have it any more, ever.
    pub fn forget(&mut self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        self.searches.remove(&job);
        self.let_go(job, true, ctx);
    }

    /// Asks a node to take a job, with an epoch of its own.
    pub(super) fn assign(&mut self, job: JobId, node: NodeId, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        let epoch = held.tenure.last.next();
        held.tenure.last = epoch;
        held.tenure.asked = Some((epoch, node));
        ctx.save(Record::Tenure(held.tenure.clone()));
        self.send_assign(job, ctx);
        ctx.wake_after(ASSIGN_LEAST, Timer::Again(job, epoch, 1));
    }

    fn send_assign(&self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get(&job) else { return };
        let (Some((epoch, node)), Some(wanted)) = (held.tenure.asked, &held.wanted) else { return };
        let Wanted { ref envelope, index, limit, .. } = *wanted;
        let brief =
            Shared::new(Brief { envelope: envelope.clone(), nodes: vec![node].into(), index, riders: None });
        ctx.send(node, Message::Assign { job, epoch, brief, limit });
    }

    pub(super) fn on_again(&mut self, job: JobId, epoch: Epoch, tries: u8, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get(&job) else { return };
        if held.tenure.asked.is_none_or(|(asked, _)| asked != epoch) {
            return;
        }
        if tries < ASSIGN_TRIES {
            self.send_assign(job, ctx);
            ctx.wake_after(ASSIGN_LEAST * (1 << tries), Timer::Again(job, epoch, tries + 1));
        } else {
            self.give_up_asking(job, true, ctx);
        }
    }

    /// Whoever was asked is not to have it: it goes to somebody else, or stays where it is.
    fn give_up_asking(&mut self, job: JobId, tell: bool, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        let Some((epoch, node)) = held.tenure.asked.take() else { return };
        if tell {
            held.tenure.leaving.push((epoch, node));
        }
        ctx.save(Record::Tenure(held.tenure.clone()));
        if tell {
            ctx.send(node, Message::Cancel { job, epoch });
            self.remind_later(job, ctx);
        }
        match self.tenures.get(&job).and_then(|held| Some((held.tenure.placed?, held.tenure.turn))) {
            Some((placed, turn)) => ctx.send(placed.node, Message::Stay { job, epoch: placed.epoch, turn }),
            None => self.next_offer(job, ctx),
        }
    }

    pub(super) fn on_assigned(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        token: u32,
        start: Time,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let Some(held) = self.tenures.get_mut(&job) else {
            ctx.send(from, Message::Cancel { job, epoch });
            return;
        };
        let span = held.wanted.as_ref().map_or(Span::ZERO, |wanted| wanted.limit);
        // Who cannot tell says never, or nonsense: then its turn may come at any time.
        let start = if start > ctx.now + START_WITHIN { ctx.now } else { start };
        let tenure = &mut held.tenure;
        if tenure.asked == Some((epoch, from)) && !tenure.over {
            tenure.asked = None;
            let before = tenure.placed.replace(Placed { epoch, node: from, token, start, span });
            tenure.leaving.extend(before.map(|before| (before.epoch, before.node)));
            tenure.turn = 0;
            held.gone = false;
            ctx.save(Record::Tenure(tenure.clone()));
            ctx.send(from, Message::Confirm { job, epoch, token });
            if let Some(before) = before {
                ctx.send(before.node, Message::Cancel { job, epoch: before.epoch });
                self.remind_later(job, ctx);
            }
            self.searches.remove(&job);
            let placement = Placement { epoch, start, span, nodes: vec![from].into() };
            ctx.report(Event::Placed(job, placement));
            return;
        }
        match tenure.placed {
            Some(placed) if placed.epoch == epoch && placed.node == from => {
                if placed.token == token {
                    ctx.send(from, Message::Confirm { job, epoch, token });
                } else {
                    ctx.report(Event::Lost { job, node: from });
                }
            }
            Some(_) | None => ctx.send(from, Message::Cancel { job, epoch }),
        }
    }

    pub(super) fn on_refused(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        let asked = self.tenures.get(&job).and_then(|held| held.tenure.asked);
        if asked == Some((epoch, from)) {
            self.give_up_asking(job, false, ctx);
        }
    }

    /// The assignee has found somebody who would take the job at less.
    pub(super) fn on_notify(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        turn: u32,
        to: NodeId,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let held = self.tenures.get_mut(&job);
        let stands = |placed: &Placed| placed.epoch == epoch && placed.node == from;
        let Some(held) = held.filter(|held| held.tenure.placed.as_ref().is_some_and(stands)) else {
            ctx.send(from, Message::Cancel { job, epoch });
            return;
        };
        let Held { tenure, wanted, gone, .. } = held;
        if tenure.asked.is_some() {
            return;
        }
        // Asked before, to no avail; or there is nothing left to move.
        if turn <= tenure.turn || to == from || *gone || wanted.is_none() {
            ctx.send(from, Message::Stay { job, epoch, turn });
            return;
        }
        tenure.turn = turn;
        self.assign(job, to, ctx);
    }

    pub(super) fn on_cancelled(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        held.tenure.leaving.retain(|&(leaving, node)| node != from || leaving > epoch);
        if held.tenure.over && held.tenure.leaving.is_empty() {
            self.tenures.remove(&job);
            ctx.erase(Key::Tenure(job));
        }
    }

    pub(super) fn on_remind(&mut self, job: JobId, reminder: u8, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        if held.tenure.leaving.is_empty() {
            held.reminding = false;
            return;
        }
        for &(epoch, node) in &held.tenure.leaving {
            ctx.send(node, Message::Cancel { job, epoch });
        }
        let pause = (REMIND_LEAST * (1 << reminder.min(10))).min(REMIND_MOST);
        ctx.wake_after(pause, Timer::Remind(job, reminder.saturating_add(1)));
    }

    /// What was under way at a crash is given up; whoever was to let go is reminded.
    pub(super) fn boot_tenures(&mut self, ctx: &mut Ctx<'_, Aria>) {
        let jobs: Vec<JobId> = self.tenures.keys().copied().collect();
        for job in jobs {
            let Some(held) = self.tenures.get_mut(&job) else { continue };
            if let Some(asked) = held.tenure.asked.take() {
                held.tenure.leaving.push(asked);
                ctx.save(Record::Tenure(held.tenure.clone()));
            }
            if !held.tenure.leaving.is_empty() {
                held.reminding = true;
                self.on_remind(job, 0, ctx);
            }
        }
    }

    fn let_go(&mut self, job: JobId, over: bool, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        let tenure = &mut held.tenure;
        let before = tenure.clone();
        if let Some(placed) = tenure.placed.take()
            && !std::mem::take(&mut held.gone)
        {
            tenure.leaving.push((placed.epoch, placed.node));
        }
        tenure.leaving.extend(tenure.asked.take());
        tenure.over |= over;
        if tenure.over && tenure.leaving.is_empty() {
            self.tenures.remove(&job);
            ctx.erase(Key::Tenure(job));
            return;
        }
        if *tenure != before {
            ctx.save(Record::Tenure(tenure.clone()));
        }
        for &(epoch, node) in tenure.leaving.iter().filter(|leaving| !before.leaving.contains(leaving)) {
            ctx.send(node, Message::Cancel { job, epoch });
        }
        self.remind_later(job, ctx);
    }

    fn remind_later(&mut self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        let Some(held) = self.tenures.get_mut(&job) else { return };
        if !held.tenure.leaving.is_empty() && !std::mem::replace(&mut held.reminding, true) {
            ctx.wake_after(REMIND_LEAST, Timer::Remind(job, 1));
        }
    }
}
