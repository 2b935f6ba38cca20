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
    /// The last epoch that was ever used for it.
    pub last: Epoch,
    /// Whether the job has ended: nothing of it stays once all have let go.
    pub over: bool,
    /// Where it is placed, confirmed.
    pub placed: Option<Placement>,
    /// Boxed, and not there if it is empty: of many jobs that have a place, few are about to get another.
    unsettled: Option<Box<Unsettled<A, B>>>,
}

/// Very many jobs may wait, all with a place.
const _: () = assert!(size_of::<Coordinated<(), ()>>() <= 56);

/// What is under way for a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unsettled<A, B> {
    /// Who may hold or have committed the placement under way.
    asked: Vec<NodeId>,
    /// Who has yet to let go, and up to which placement.
    releasing: Vec<(NodeId, Epoch)>,
    attempt: Option<Attempt<A, B>>,
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
        let coordinated = self.coordinated.entry(job).or_insert_with(|| Box::new(Coordinated::new()));
        assert!(coordinated.attempt().is_none(), "one attempt at a time: {job:?}");
        let epoch = coordinated.last.max(after).next();
        let placement = Placement { epoch, start, span, nodes: nodes.into() };
        coordinated.last = epoch;
        coordinated.unsettled().asked = placement.nodes.to_vec();
        let missing: BTreeSet<NodeId> = placement.nodes.iter().copied().collect();
        assert_eq!(missing.len(), amounts.len(), "a placement names each node once: {job:?}");
        // Saved first: after a crash this epoch is never used for other nodes, and these are told to let go.
        ctx.save(coordinated.record(job));
        coordinated.unsettled().attempt = Some(Attempt {
            placement,
            amounts,
            leave_by,
            brief,
            phase: Phase::Preparing,
            missing,
            asked_at: ctx.now,
            tries: 0,
        });
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
        let coordinated = self.coordinated(job);
        let Some(unsettled) = &mut coordinated.unsettled else { return };
        let Unsettled { releasing, attempt: Some(attempt), .. } = &mut **unsettled else { return };
        let old = coordinated.placed.take();
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
        releasing.retain(|&(node, _)| !attempt.missing.contains(&node));
        releasing.extend(leaving);
        // From here on the old placement is broken; a restart finds none, and has all of the job released.
        ctx.save(coordinated.record(job));
        self.tell_missing(job, ctx);
    }

    fn confirm(&mut self, job: JobId, ctx: &mut Ctx<'_, Self>) {
        let coordinated = self.coordinated(job);
        let Some(unsettled) = &mut coordinated.unsettled else { return };
        let Some(Attempt { placement, missing, .. }) = unsettled.attempt.take() else { return };
        unsettled.asked = Vec::new();
        unsettled.unconfirmed = placement.nodes.iter().copied().collect();
        coordinated.placed = Some(placement.clone());
        ctx.save(coordinated.record(job));
        // Those that this placement leaves, if they have not answered; all others are being reminded already.
        let mut releasing = coordinated.releasing().iter();
        let leaving = releasing.find(|(node, _)| missing.contains(node)).map(|&(_, upto)| upto);
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
        if coordinated.attempts(epoch, from) || coordinated.unconfirmed().any(|node| node == from) {
            self.on_dropped(from, job, epoch, ctx);
        }
    }

    /// A node let go of a placement.
    pub(super) fn on_dropped(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get(&job) else { return };
        let placed = &coordinated.placed;
        let stood =
            placed.as_ref().is_some_and(|placed| placed.epoch == epoch && placed.nodes.contains(&from));
        let phase = coordinated.attempt().filter(|_| coordinated.attempts(epoch, from)).map(|a| a.phase);
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
            let placed = coordinated.placed.as_ref();
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
        if coordinated.placed.as_ref().is_some_and(|placed| placed.epoch == epoch)
            && let Some(unsettled) = &mut coordinated.unsettled
        {
            unsettled.unconfirmed.remove(&from);
            coordinated.settle();
        }
    }

    /// Tells who has not confirmed that the placement stands, ever more seldom.
    pub(super) fn on_remind(&mut self, job: JobId, epoch: Epoch, reminder: u8, ctx: &mut Ctx<'_, Self>) {
        let patience = self.config.patience();
        let Some(coordinated) = self.coordinated.get(&job) else { return };
        let stands = coordinated.placed.as_ref().is_some_and(|placed| placed.epoch == epoch);
        if !stands || coordinated.unconfirmed().next().is_none() || reminder >= REMINDERS_MAX {
            return;
        }
        for node in coordinated.unconfirmed() {
            ctx.send(node, Message::Confirm { job, epoch });
        }
        ctx.wake_after(pause(patience, reminder), Timer::Remind(job, epoch, reminder + 1));
    }

    /// Takes the job off all nodes that may have it.
    pub(super) fn release(&mut self, job: JobId, over: bool, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        coordinated.over |= over;
        let placed = coordinated.placed.take().map(|placed| placed.nodes).unwrap_or_default();
        let (asked, releasing) = (coordinated.asked().iter().copied(), coordinated.releasing().iter());
        let mut letting_go: BTreeSet<NodeId> = releasing.map(|&(node, _)| node).chain(asked).collect();
        letting_go.extend(placed);
        let releasing: Vec<_> = letting_go.into_iter().map(|node| (node, coordinated.last)).collect();
        if releasing.is_empty() && coordinated.over {
            self.coordinated.remove(&job);
            ctx.erase(Key::Tenure(job));
            return;
        }
        coordinated.unsettled = Some(Box::new(Unsettled { releasing, ..Unsettled::new() }));
        coordinated.settle();
        ctx.save(coordinated.record(job));
        for &(node, upto) in coordinated.releasing() {
            ctx.send(node, Message::Release { job, upto });
        }
        let upto = coordinated.last;
        ctx.wake_after(self.config.patience(), Timer::Chase(job, upto, 0));
    }

    pub(super) fn on_released(&mut self, from: NodeId, job: JobId, upto: Epoch, ctx: &mut Ctx<'_, Self>) {
        let Some(coordinated) = self.coordinated.get_mut(&job) else { return };
        let Some(unsettled) = &mut coordinated.unsettled else { return };
        let before = unsettled.releasing.len();
        unsettled.releasing.retain(|&(node, epoch)| node != from || epoch > upto);
        if unsettled.releasing.len() == before {
            return;
        }
        coordinated.settle();
        if coordinated.releasing().is_empty() && coordinated.over {
            self.coordinated.remove(&job);
            ctx.erase(Key::Tenure(job));
            return;
        }
        ctx.save(coordinated.record(job));
        if let Some(unsettled) = &mut coordinated.unsettled
            && let Unsettled { releasing, attempt: Some(attempt), .. } = &mut **unsettled
            && attempt.phase == Phase::Switching
        {
            if releasing.iter().all(|&(node, _)| node != from) {
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
            let attempt = coordinated
                .attempt()
                .filter(|a| a.placement.epoch == epoch && a.placement.nodes.contains(&from));
            let placed = coordinated.placed.as_ref().filter(|p| p.epoch == epoch && p.nodes.contains(&from));
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
                    let mut leaving = coordinated.releasing().iter();
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
        let unsettled = self.coordinated.get_mut(&job).and_then(|known| known.unsettled.as_mut());
        let Some(attempt) = unsettled.and_then(|unsettled| unsettled.attempt.as_mut()) else { return };
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
        let told = |entry: &&(NodeId, Epoch)| entry.1 == upto;
        if !coordinated.releasing().iter().any(|entry| told(&entry)) {
            return;
        }
        if coordinated.over && reminder >= REMINDERS_MAX {
            coordinated.unsettled().releasing.retain(|entry| !told(&entry));
            if coordinated.releasing().is_empty() {
                self.coordinated.remove(&job);
                ctx.erase(Key::Tenure(job));
            } else {
                ctx.save(coordinated.record(job));
            }
            return;
        }
        for &(node, upto) in coordinated.releasing().iter().filter(told) {
            ctx.send(node, Message::Release { job, upto });
        }
        let pause = pause(patience, reminder);
        let pause = if coordinated.over { pause } else { pause.min(CHASE_MOST) };
        ctx.wake_after(pause, Timer::Chase(job, upto, reminder.saturating_add(1)));
    }

    /// A crash on the way means abort: whoever was asked is told to let go.
    pub(super) fn boot_coordinator(&mut self, ctx: &mut Ctx<'_, Self>) {
        let jobs: Vec<JobId> = self.coordinated.keys().copied().collect();
        for job in jobs {
            let placed = self.placement(job).map(|placed| placed.epoch);
            let here = placed.is_some_and(|epoch| self.stands_here(job, epoch, ctx.me));
            let coordinated = self.coordinated(job);
            let (epoch, asked) = (coordinated.last, !coordinated.asked().is_empty());
            if let Some(placed) = &coordinated.placed {
                let stands = placed.epoch;
                // Who has confirmed is not on the disk, but for this node itself. The layer above knows who has ended, and
                // asking the others again does no harm.
                let others = placed.nodes.iter().copied().filter(|&node| !here || node != ctx.me);
                let unconfirmed: BTreeSet<NodeId> = others.collect();
                let leaving: BTreeSet<Epoch> =
                    coordinated.releasing().iter().map(|&(_, upto)| upto).collect();
                let unsettled = coordinated.unsettled();
                unsettled.unconfirmed = unconfirmed;
                for node in std::mem::take(&mut unsettled.asked) {
                    ctx.send(node, Message::Abort { job, epoch });
                }
                coordinated.settle();
                self.on_remind(job, stands, 0, ctx);
                for upto in leaving {
                    ctx.wake_after(self.config.patience(), Timer::Chase(job, upto, 0));
                }
            } else if asked || !coordinated.releasing().is_empty() {
                self.release(job, false, ctx);
                if asked {
                    ctx.report(Event::Unplaced { job, epoch, by: None });
                }
            }
        }
    }

    fn fail(&mut self, job: JobId, why: Failure, ctx: &mut Ctx<'_, Self>) {
        let coordinated = self.coordinated(job);
        let Some(unsettled) = &mut coordinated.unsettled else { return };
        let Some(Attempt { placement, .. }) = unsettled.attempt.take() else { return };
        // The saved record still names who was asked: a restart tells them again, which does no harm.
        unsettled.asked.clear();
        coordinated.settle();
        let epoch = placement.epoch;
        for node in placement.nodes {
            ctx.send(node, Message::Abort { job, epoch });
        }
        ctx.report(Event::Failed { job, epoch, why });
    }

    /// Says to whoever has not answered what this phase has to say.
    fn tell_missing(&mut self, job: JobId, ctx: &mut Ctx<'_, Self>) {
        let Some(unsettled) = &self.coordinated(job).unsettled else { return };
        let Unsettled { releasing, attempt: Some(attempt), .. } = &**unsettled else { return };
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
                for &(node, upto) in releasing {
                    if attempt.missing.contains(&node) {
                        ctx.send(node, Message::Release { job, upto });
                    }
                }
            }
        }
    }

    fn attempt_in(&mut self, job: JobId, epoch: Epoch, phase: Phase) -> Option<&mut Attempt<A, B>> {
        let attempt = self.coordinated.get_mut(&job)?.unsettled.as_mut()?.attempt.as_mut()?;
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
        let placement = self.attempt().map(|attempt| &attempt.placement);
        placement.is_some_and(|placement| placement.epoch == epoch && placement.nodes.contains(&node))
    }

    /// Who may hold or have committed the placement under way.
    fn asked(&self) -> &[NodeId] {
        self.unsettled.as_ref().map_or(&[], |unsettled| &unsettled.asked)
    }

    /// Who has yet to let go, and up to which placement.
    pub fn releasing(&self) -> &[(NodeId, Epoch)] {
        self.unsettled.as_ref().map_or(&[], |unsettled| &unsettled.releasing)
    }

    pub fn attempt(&self) -> Option<&Attempt<A, B>> {
        self.unsettled.as_ref()?.attempt.as_ref()
    }

    /// Who of the placement has not said that it will start there.
    fn unconfirmed(&self) -> impl Iterator<Item = NodeId> {
        self.unsettled.iter().flat_map(|unsettled| unsettled.unconfirmed.iter().copied())
    }

    /// What is under way, to be changed; [settle](Coordinated::settle) when that may have ended it.
    fn unsettled(&mut self) -> &mut Unsettled<A, B> {
        self.unsettled.get_or_insert_with(|| Box::new(Unsettled::new()))
    }

    /// Takes no room for what is not under way.
    fn settle(&mut self) {
        self.unsettled = self.unsettled.take().filter(|unsettled| !unsettled.is_empty());
    }

    fn record(&self, job: JobId) -> Record<A, B> {
        let (asked, releasing) = (self.asked().to_vec(), self.releasing().to_vec());
        let &Coordinated { last, over, .. } = self;
        Record::Tenure(Tenure { job, last, asked, placed: self.placed.clone(), releasing, over })
    }

    pub(super) fn restore(tenure: Tenure) -> Coordinated<A, B> {
        let Tenure { job: _, last, asked, placed, releasing, over } = tenure;
        let unsettled = Some(Box::new(Unsettled { asked, releasing, ..Unsettled::new() }));
        let mut coordinated = Coordinated { last, over, placed, unsettled };
        coordinated.settle();
        coordinated
    }

    fn new() -> Coordinated<A, B> {
        Coordinated { last: Epoch::default(), over: false, placed: None, unsettled: None }
    }
}

impl<A, B> Unsettled<A, B> {
    fn new() -> Unsettled<A, B> {
        Unsettled { asked: Vec::new(), releasing: Vec::new(), attempt: None, unconfirmed: BTreeSet::new() }
    }

    fn is_empty(&self) -> bool {
        let Unsettled { asked, releasing, attempt, unconfirmed } = self;
        asked.is_empty() && releasing.is_empty() && attempt.is_none() && unconfirmed.is_empty()
    }
}
