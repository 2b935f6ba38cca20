//! The coordinator's side: asks, decides, confirms, releases.

use std::collections::BTreeSet;

use shoal_model::{Amount, Epoch, JobId, NodeId, Span, Time};

use super::{
    Brief, Event, Failure, Key, Message, NODES_MAX, Placement, Prepare, Proposal, Record, Tenure, Timer,
    TwoPhase, Vote,
};
use crate::protocol::Ctx;
use crate::shared::Shared;

/// How often a node is reminded to let go, or to confirm. One that has not heard by then is down, and asks when it
/// is back.
const REMINDERS_MAX: u8 = 20;
/// The longest pause between two reminders.
const REMINDER_MOST: Span = Span::from_mins(10);
/// The same while the job may wait for the answer.
const CHASE_MOST: Span = Span::from_mins(1);

/// A job that this node coordinates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Coordinated<A, B> {
    pub tenure: Tenure,
    /// Boxed: of many jobs that have a place, few are about to get another.
    pub attempt: Option<Box<Attempt<A, B>>>,
    /// Who of the placement has not said that it will start there.
    unconfirmed: BTreeSet<NodeId>,
}

/// An attempt at placing a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt<A, B> {
    placement: Placement,
    amounts: Vec<A>,
    /// See [`Proposal::leave_by`].
    leave_by: Option<Time>,
    brief: Shared<B>,
    phase: Phase,
    /// Who has not answered in this phase.
    missing: BTreeSet<NodeId>,
    /// When they were last asked.
    asked_at: Time,
    tries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Preparing,
    Committing,
    /// All have committed; nodes of the old placement are letting go.
    Switching,
}

impl<A, B> Attempt<A, B> {
    fn is_strict(&self) -> bool {
        self.leave_by.is_some()
    }

    fn enter(&mut self, phase: Phase, missing: impl IntoIterator<Item = NodeId>, now: Time) {
        self.phase = phase;
        self.missing = missing.into_iter().collect();
        self.asked_at = now;
        self.tries = 0;
    }
}

impl<A: Amount, B: Brief> TwoPhase<A, B> {
    pub(super) fn propose(&mut self, proposal: Proposal<A, B>, ctx: &mut Ctx<'_, Self>) {
        let Proposal { job, start, span, shares, after, leave_by, brief } = proposal;
        assert!(!shares.is_empty() && shares.len() <= NODES_MAX, "a placement has 1 to {NODES_MAX} nodes");
        let (nodes, amounts): (Vec<NodeId>, Vec<A>) = shares.into_iter().unzip();
        let coordinated = self.coordinated.entry(job).or_insert_with(|| Box::new(Coordinated::new(job)));
        assert!(coordinated.attempt.is_none(), "one attempt at a time: {job:?}");
        let epoch = coordinated.tenure.last.max(after).next();
        let placement = Placement { epoch, start, span, nodes };
        coordinated.tenure.last = epoch;
        coordinated.tenure.asked.clone_from(&placement.nodes);
        let missing: BTreeSet<NodeId> = placement.nodes.iter().copied().collect();
        assert_eq!(missing.len(), amounts.len(), "a placement names each node once: {job:?}");
        // Saved first: after a crash this epoch is never used for other nodes, and these are told to let go.
        ctx.save(Record::Tenure(coordinated.tenure.clone()));
        coordinated.attempt = Some(Box::new(Attempt {
            placement,
            amounts,
            leave_by,
            brief,
            phase: Phase::Preparing,
            missing,
            asked_at: ctx.now,
            tries: 0,
        }));
        self.tell_missing(job, ctx);
        ctx.wake_after(self.config.patience(), Timer::Retry(job, epoch));
    }

    pub(super) fn on_vote(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        vote: Vote,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let Some(attempt) = self.attempt_in(job, epoch, Phase::Preparing) else {
            self.tell_if_void(from, job, epoch, ctx);
            return;
        };
        if !attempt.missing.remove(&from) {
            return;
        }
        match vote {
            Vote::No(next) => self.fail(job, Failure::Refused { by: from, next }, ctx),
            Vote::Yes if attempt.missing.is_empty() => {
                attempt.enter(Phase::Committing, attempt.placement.nodes.clone(), ctx.now);
                self.tell_missing(job, ctx);
            }
            Vote::Yes => {}
        }
    }

    pub(super) fn on_committed(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(attempt) = self.attempt_in(job, epoch, Phase::Committing) else {
            self.tell_if_void(from, job, epoch, ctx);
            return;
        };
        attempt.missing.remove(&from);
        if attempt.missing.is_empty() {
            self.switch(job, ctx);
        }
    }

    /// All have committed. Nodes that are only in the old placement let go before the new one is confirmed; of a job
    /// that must never run twice also those that are in both, lest the old one starts there meanwhile.
    fn switch(&mut self, job: JobId, ctx: &mut Ctx<'_, Self>) {
        let Coordinated { tenure, attempt: Some(attempt), .. } = self.coordinated(job) else { return };
        let old = tenure.placed.take();
        let leaving = old.iter().flat_map(|old| old.nodes.iter().map(|&node| (node, old.epoch)));
        let leaving: Vec<(NodeId, Epoch)> = leaving
            .filter(|(node, _)| attempt.is_strict() || !attempt.placement.nodes.contains(node))
            .collect();
        if leaving.is_empty() {
            self.confirm(job, ctx);
            return;
        }
        attempt.enter(Phase::Switching, leaving.iter().map(|&(node, _)| node), ctx.now);
        // Who lets go of a later placement lets go of all before it: an answer for those is not one for this.
        tenure.releasing.retain(|&(node, _)| !attempt.missing.contains(&node));
        tenure.releasing.extend(leaving);
        // From here on the old placement is broken; a restart finds none, and has all of the job released.
        ctx.save(Record::Tenure(tenure.clone()));
        self.tell_missing(job, ctx);
    }

    fn confirm(&mut self, job: JobId, ctx: &mut Ctx<'_, Self>) {
        let Coordinated { tenure, attempt, unconfirmed } = self.coordinated(job);
        let Some(attempt) = attempt.take() else { return };
        let Attempt { placement, missing, .. } = *attempt;
        tenure.asked = Vec::new();
        tenure.placed = Some(placement.clone());
        ctx.save(Record::Tenure(tenure.clone()));
        // Those that this placement leaves, if they have not answered; all others are being reminded already.
        let leaving = tenure.releasing.iter().find(|(node, _)| missing.contains(node)).map(|&(_, upto)| upto);
        *unconfirmed = placement.nodes.iter().copied().collect();
        self.on_remind(job, placement.epoch, 0, ctx);
        if let Some(upto) = leaving {
            ctx.wake_after(self.config.patience(), Timer::Chase(job, upto, 0));
        }
        ctx.report(Event::Placed(job, placement));
    }

    /// A node does not have what we asked it to commit or confirm.
    pub(super) fn on_refuse(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get(&job) else { return };
        // Who has confirmed and ended since answers a doubled Confirm like this: it has nothing any more.
        if coordinated.attempts(epoch, from) || coordinated.unconfirmed.contains(&from) {
            self.on_dropped(from, job, epoch, ctx);
        }
    }

    /// A node let go of a placement.
    pub(super) fn on_dropped(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get(&job) else { return };
        let placed = &coordinated.tenure.placed;
        let stood =
            placed.as_ref().is_some_and(|placed| placed.epoch == epoch && placed.nodes.contains(&from));
        let phase =
            coordinated.attempt.as_ref().filter(|_| coordinated.attempts(epoch, from)).map(|a| a.phase);
        match phase {
            Some(Phase::Preparing | Phase::Committing) => {
                self.fail(job, Failure::Refused { by: from, next: None }, ctx);
            }
            // The old placement is broken already: there is nothing to fall back on.
            Some(Phase::Switching) => self.unplace(job, epoch, Some(from), ctx),
            None if stood => self.unplace(job, epoch, Some(from), ctx),
            None => {}
        }
    }

    fn unplace(&mut self, job: JobId, epoch: Epoch, by: Option<NodeId>, ctx: &mut Ctx<'_, Self>) {
        self.release(job, false, ctx);
        ctx.report(Event::Unplaced { job, epoch, by });
    }

    pub(super) fn on_confirmed(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        self.note_confirmed(from, job, epoch);
        self.tell_if_void(from, job, epoch, ctx);
    }

    /// Messages that came twice, or very late, can bring a placement back to a node that had let go of it. What the
    /// node says then shows it.
    fn tell_if_void(&self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let stands = self.coordinated.get(&job).is_some_and(|coordinated| {
            let placed = coordinated.tenure.placed.as_ref();
            coordinated.attempts(epoch, from)
                || placed.is_some_and(|placed| placed.epoch == epoch && placed.nodes.contains(&from))
        });
        if !stands {
            ctx.send(from, Message::Abort { job, epoch });
        }
    }

    /// A node has said, or shown by what it does, that the placement stands there.
    pub fn note_confirmed(&mut self, from: NodeId, job: JobId, epoch: Epoch) {
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        let Coordinated { tenure, unconfirmed, .. } = &mut **coordinated;
        if tenure.placed.as_ref().is_some_and(|placed| placed.epoch == epoch) {
            unconfirmed.remove(&from);
            if unconfirmed.is_empty() {
                // A set keeps room for what was taken out of it, and of very many jobs all have confirmed.
                unconfirmed.clear();
            }
        }
    }

    /// Tells who has not confirmed that the placement stands, ever more seldom.
    pub(super) fn on_remind(&mut self, job: JobId, epoch: Epoch, reminder: u8, ctx: &mut Ctx<'_, Self>) {
        let patience = self.config.patience();
        let Some(coordinated) = self.coordinated.get(&job) else { return };
        let Coordinated { tenure, unconfirmed, .. } = &**coordinated;
        let stands = tenure.placed.as_ref().is_some_and(|placed| placed.epoch == epoch);
        if !stands || unconfirmed.is_empty() || reminder >= REMINDERS_MAX {
            return;
        }
        for &node in unconfirmed {
            ctx.send(node, Message::Confirm { job, epoch });
        }
        ctx.wake_after(pause(patience, reminder), Timer::Remind(job, epoch, reminder + 1));
    }

    /// Takes the job off all nodes that may have it.
    pub(super) fn release(&mut self, job: JobId, over: bool, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        coordinated.attempt = None;
        coordinated.unconfirmed.clear();
        let tenure = &mut coordinated.tenure;
        tenure.over |= over;
        let placed = tenure.placed.take().map(|placed| placed.nodes).unwrap_or_default();
        let mut letting_go: BTreeSet<NodeId> = tenure.releasing.iter().map(|&(node, _)| node).collect();
        letting_go.extend(placed);
        letting_go.append(&mut tenure.asked.drain(..).collect());
        tenure.releasing = letting_go.into_iter().map(|node| (node, tenure.last)).collect();
        if tenure.releasing.is_empty() && tenure.over {
            self.coordinated.remove(&job);
            ctx.erase(Key::Tenure(job));
            return;
        }
        ctx.save(Record::Tenure(tenure.clone()));
        for &(node, upto) in &tenure.releasing {
            ctx.send(node, Message::Release { job, upto });
        }
        let upto = tenure.last;
        ctx.wake_after(self.config.patience(), Timer::Chase(job, upto, 0));
    }

    pub(super) fn on_released(&mut self, from: NodeId, job: JobId, upto: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        let tenure = &mut coordinated.tenure;
        let before = tenure.releasing.len();
        tenure.releasing.retain(|&(node, epoch)| node != from || epoch > upto);
        if tenure.releasing.len() == before {
            return;
        }
        if tenure.releasing.is_empty() && tenure.over {
            self.coordinated.remove(&job);
            ctx.erase(Key::Tenure(job));
            return;
        }
        ctx.save(Record::Tenure(tenure.clone()));
        if let Some(attempt) = &mut coordinated.attempt
            && attempt.phase == Phase::Switching
        {
            if tenure.releasing.iter().all(|&(node, _)| node != from) {
                attempt.missing.remove(&from);
            }
            let (epoch, late) = (attempt.placement.epoch, attempt.leave_by.is_some_and(|by| by <= ctx.now));
            match attempt.missing.is_empty() {
                // One of them may have started it before it let go.
                true if late => self.unplace(job, epoch, None, ctx),
                true => self.confirm(job, ctx),
                false => {}
            }
        }
    }

    pub(super) fn on_ask(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let answer = self.coordinated.get(&job).map(|coordinated| {
            let Coordinated { tenure, attempt, .. } = &**coordinated;
            let attempt =
                attempt.as_ref().filter(|a| a.placement.epoch == epoch && a.placement.nodes.contains(&from));
            let placed = tenure.placed.as_ref().filter(|p| p.epoch == epoch && p.nodes.contains(&from));
            match (attempt, placed) {
                (_, Some(_)) => Some(Message::Confirm { job, epoch }),
                (Some(attempt), None) => match attempt.phase {
                    // Still open: the answer is on its way, or the hold runs out.
                    Phase::Preparing => None,
                    Phase::Committing | Phase::Switching => {
                        Some(Message::Commit { job, epoch, brief: attempt.brief.clone() })
                    }
                },
                (None, None) => {
                    let mut leaving = tenure.releasing.iter();
                    let told = leaving.find(|&&(node, upto)| node == from && upto >= epoch);
                    // Its answer is waited for.
                    Some(match told {
                        Some(&(_, upto)) => Message::Release { job, upto },
                        None => Message::Abort { job, epoch },
                    })
                }
            }
        });
        // Of a job that we do not know nothing stands.
        if let Some(message) = answer.unwrap_or(Some(Message::Abort { job, epoch })) {
            ctx.send(from, message);
        }
    }

    pub(super) fn on_retry(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let (tries_max, patience) = (self.config.tries, self.config.patience());
        let Some(attempt) =
            self.coordinated.get_mut(&job).and_then(|coordinated| coordinated.attempt.as_mut())
        else {
            return;
        };
        if attempt.placement.epoch != epoch {
            return;
        }
        // One reminder serves all phases: it comes again when this phase has waited long enough.
        if ctx.now < attempt.asked_at + patience {
            ctx.wake_at(attempt.asked_at + patience, Timer::Retry(job, epoch));
            return;
        }
        if attempt.tries < tries_max {
            attempt.tries = attempt.tries.saturating_add(1);
            attempt.asked_at = ctx.now;
            self.tell_missing(job, ctx);
            ctx.wake_after(patience, Timer::Retry(job, epoch));
            return;
        }
        match attempt.phase {
            Phase::Preparing | Phase::Committing => {
                let silent = attempt.missing.iter().copied().collect();
                self.fail(job, Failure::Silent(silent), ctx);
            }
            // The old node is out of reach. It may start the old placement; its epoch tells that it is void.
            Phase::Switching if !attempt.is_strict() => self.confirm(job, ctx),
            // Nothing stands until it has let go, and meanwhile the new nodes are not kept waiting.
            Phase::Switching => self.unplace(job, epoch, None, ctx),
        }
    }

    /// Reminds who has not let go of placements up to one, ever more seldom. Those that were told together are reminded
    /// together, so that an old chase does not end a new one. While the job goes on nobody is given up: that all have
    /// let go must be true when [`TwoPhase::lingers_on`] says so.
    pub(super) fn on_chase(&mut self, job: JobId, upto: Epoch, reminder: u8, ctx: &mut Ctx<'_, Self>) {
        let patience = self.config.patience();
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        let tenure = &mut coordinated.tenure;
        let told = |entry: &&(NodeId, Epoch)| entry.1 == upto;
        if !tenure.releasing.iter().any(|entry| told(&entry)) {
            return;
        }
        if tenure.over && reminder >= REMINDERS_MAX {
            tenure.releasing.retain(|entry| !told(&entry));
            if tenure.releasing.is_empty() {
                self.coordinated.remove(&job);
                ctx.erase(Key::Tenure(job));
            } else {
                ctx.save(Record::Tenure(tenure.clone()));
            }
            return;
        }
        for &(node, upto) in tenure.releasing.iter().filter(told) {
            ctx.send(node, Message::Release { job, upto });
        }
        let pause = pause(patience, reminder);
        let pause = if tenure.over { pause } else { pause.min(CHASE_MOST) };
        ctx.wake_after(pause, Timer::Chase(job, upto, reminder.saturating_add(1)));
    }

    /// A crash on the way means abort: whoever was asked is told to let go.
    pub(super) fn boot_coordinator(&mut self, ctx: &mut Ctx<'_, Self>) {
        let jobs: Vec<JobId> = self.coordinated.keys().copied().collect();
        for job in jobs {
            let placed = self.placement(job).map(|placed| placed.epoch);
            let here = placed.is_some_and(|epoch| self.stands_here(job, epoch, ctx.me));
            let Coordinated { tenure, unconfirmed, .. } = self.coordinated(job);
            let (epoch, asked) = (tenure.last, !tenure.asked.is_empty());
            if let Some(placed) = &tenure.placed {
                // Who has confirmed is not on the disk, but for this node itself. The layer above knows who has ended, and
                // asking the others again does no harm.
                unconfirmed.extend(placed.nodes.iter().filter(|&&node| !here || node != ctx.me));
                let stands = placed.epoch;
                let leaving: BTreeSet<Epoch> = tenure.releasing.iter().map(|&(_, upto)| upto).collect();
                for node in std::mem::take(&mut tenure.asked) {
                    ctx.send(node, Message::Abort { job, epoch });
                }
                self.on_remind(job, stands, 0, ctx);
                for upto in leaving {
                    ctx.wake_after(self.config.patience(), Timer::Chase(job, upto, 0));
                }
            } else if asked || !tenure.releasing.is_empty() {
                self.release(job, false, ctx);
                if asked {
                    ctx.report(Event::Unplaced { job, epoch, by: None });
                }
            }
        }
    }

    fn fail(&mut self, job: JobId, why: Failure, ctx: &mut Ctx<'_, Self>) {
        let attempt = self.coordinated(job).attempt.take();
        let Some(placement) = attempt.map(|attempt| attempt.placement) else { return };
        let epoch = placement.epoch;
        for node in placement.nodes {
            ctx.send(node, Message::Abort { job, epoch });
        }
        // The saved record still names who was asked: a restart tells them again, which does no harm.
        self.coordinated(job).tenure.asked.clear();
        ctx.report(Event::Failed { job, epoch, why });
    }

    /// Says to whoever has not answered what this phase has to say.
    fn tell_missing(&mut self, job: JobId, ctx: &mut Ctx<'_, Self>) {
        let Coordinated { tenure, attempt: Some(attempt), .. } = self.coordinated(job) else { return };
        let Placement { epoch, start, span, ref nodes } = attempt.placement;
        match attempt.phase {
            Phase::Preparing => {
                for (&node, amount) in nodes.iter().zip(&attempt.amounts) {
                    if attempt.missing.contains(&node) {
                        let amount = amount.clone();
                        let prepare = Prepare { job, epoch, start, span, amount };
                        ctx.send(node, Message::Prepare(Box::new(prepare)));
                    }
                }
            }
            Phase::Committing => {
                for &node in &attempt.missing {
                    ctx.send(node, Message::Commit { job, epoch, brief: attempt.brief.clone() });
                }
            }
            Phase::Switching => {
                for &(node, upto) in &tenure.releasing {
                    if attempt.missing.contains(&node) {
                        ctx.send(node, Message::Release { job, upto });
                    }
                }
            }
        }
    }

    fn attempt_in(&mut self, job: JobId, epoch: Epoch, phase: Phase) -> Option<&mut Attempt<A, B>> {
        let attempt = self.coordinated.get_mut(&job)?.attempt.as_deref_mut()?;
        (attempt.placement.epoch == epoch && attempt.phase == phase).then_some(attempt)
    }

    fn coordinated(&mut self, job: JobId) -> &mut Coordinated<A, B> {
        self.coordinated.get_mut(&job).expect("callers have found the job")
    }
}

/// The pause after a reminder: doubles each time, up to a bound.
fn pause(patience: Span, reminder: u8) -> Span {
    (patience * (1 << reminder.min(20))).min(REMINDER_MOST)
}

impl<A, B> Coordinated<A, B> {
    /// Whether a node is part of the attempt with this epoch.
    fn attempts(&self, epoch: Epoch, node: NodeId) -> bool {
        let placement = self.attempt.as_ref().map(|attempt| &attempt.placement);
        placement.is_some_and(|placement| placement.epoch == epoch && placement.nodes.contains(&node))
    }

    pub(super) fn restore(tenure: Tenure) -> Coordinated<A, B> {
        Coordinated { tenure, attempt: None, unconfirmed: BTreeSet::new() }
    }

    fn new(job: JobId) -> Coordinated<A, B> {
        let tenure = Tenure {
            job,
            last: Epoch::default(),
            asked: Vec::new(),
            placed: None,
            releasing: Vec::new(),
            over: false,
        };
        Coordinated::restore(tenure)
    }
}
