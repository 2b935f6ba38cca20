//! The assignee's side: jobs come, are held until confirmed, wait their turn, run, move on or are taken back.

use shoal_model::{Epoch, JobId, Needs, NodeId, Rank, Span, Time};

use super::cost::Place;
use super::message::{Key, Message, Record, SeatRecord, Timer};
use super::{Aria, Event, Here};
use crate::node::{Brief, Task};
use crate::protocol::Ctx;
use crate::shared::Shared;
use rand::RngExt;

/// The most jobs that a node has at a time.
pub const SEATS_MAX: usize = 10_000;
/// The first pause before the initiator of a job that is not confirmed hears again that it is here; doubles each time.
const HELD_LEAST: Span = Span::from_secs(2);
/// How often it hears that before the job is let go: no longer than half a minute in all.
const HELD_TRIES: u8 = 3;
/// The first pause before a move is spoken of again; doubles each time.
const MOVING_LEAST: Span = Span::from_secs(2);
/// The longest such pause.
const MOVING_MOST: Span = Span::from_mins(2);

/// A job that is here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    pub record: SeatRecord,
    pub needs: Needs,
    pub runs: bool,
    /// The offers of an INFORM that is under way: the lowest so far.
    pub inform: Option<super::inform::Inform>,
}

/// How far a job here has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeatState {
    /// Not to be started yet.
    Held,
    /// It waits its turn.
    Waiting,
    /// It may go to somebody else.
    Moving,
    /// It runs.
    Running,
}

impl Seat {
    pub fn restore(record: SeatRecord) -> Seat {
        let needs = Needs::of(record.brief.envelope.job(), record.limit);
        Seat { record, needs, runs: false, inform: None }
    }

    pub fn job(&self) -> JobId {
        self.record.brief.job()
    }

    pub fn place(&self) -> Place {
        (self.job(), self.record.epoch)
    }

    pub fn priority(&self) -> i16 {
        self.record.brief.envelope.job().priority.unwrap_or(0)
    }

    pub fn state(&self) -> SeatState {
        match (self.record.confirmed, self.runs, self.record.moving) {
            (false, ..) => SeatState::Held,
            (true, true, _) => SeatState::Running,
            (true, false, Some(_)) => SeatState::Moving,
            (true, false, None) => SeatState::Waiting,
        }
    }

    fn task(&self) -> Task {
        Task { job: self.job(), epoch: self.record.epoch, rank: Rank(0) }
    }
}

impl Aria {
    /// The jobs that are here, by placement.
    pub fn seats(&self) -> impl Iterator<Item = (JobId, Epoch, SeatState)> + '_ {
        self.seats.iter().map(|(&job, seat)| (job, seat.record.epoch, seat.state()))
    }

    /// What the jobs that are here are told to run.
    pub fn briefs(&self) -> impl Iterator<Item = &Brief> {
        self.seats.values().map(|seat| &*seat.record.brief)
    }

    /// Whether this placement of a job is here, confirmed or not.
    pub fn holds(&self, job: JobId, epoch: Epoch) -> bool {
        self.seats.get(&job).is_some_and(|seat| seat.record.epoch == epoch)
    }

    /// Whether this placement of a job may run here.
    pub fn is_wanted(&self, job: JobId, epoch: Epoch) -> bool {
        self.seats.get(&job).is_some_and(|seat| seat.record.epoch == epoch && seat.record.confirmed)
    }

    /// Tells its initiator that a job is still here; whoever no longer wants it there says so.
    pub fn tell_held(&self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        if let Some(seat) = self.seats.get(&job).filter(|seat| seat.record.epoch == epoch) {
            let token = seat.record.token;
            let start = if seat.runs { ctx.now } else { self.expected_start(seat, ctx.now) };
            ctx.send(seat.record.owner, Message::Assigned { job, epoch, token, start });
        }
    }

    /// A task that ran here has ended, and its initiator is being told.
    pub fn finish(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        self.done.insert((job, epoch));
        self.vacate(job, epoch, ctx);
    }

    /// A task has left the machine.
    pub fn vacate(&mut self, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        self.local.finish(ctx.now, (job, epoch));
        if self.holds(job, epoch) {
            self.seats.remove(&job);
            ctx.erase(Key::Seat(job));
        }
        self.take_turns(ctx);
    }

    /// A job that waits here will not start.
    pub fn withdraw(&mut self, job: JobId, epoch: Epoch) {
        self.local.withdraw((job, epoch));
    }

    /// The initiator has noted how a task ended.
    pub fn note_told(&mut self, job: JobId, epoch: Epoch) {
        self.done.remove(&(job, epoch));
    }

    pub(super) fn on_assign(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        brief: Shared<Brief>,
        limit: Span,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let job = brief.job();
        let known = self.seats.get(&job).map(|seat| seat.record.epoch);
        if known == Some(epoch) {
            self.tell_held(job, epoch, ctx);
            return;
        }
        // A late one, or one of a job that has run here already, or is just being stopped.
        let over = self.done.contains(&(job, epoch)) || self.local.runs((job, epoch));
        if known.is_some_and(|known| known > epoch) || over {
            return;
        }
        let needs = Needs::of(brief.envelope.job(), limit);
        let fits = here.matches(&needs) && brief.nodes == [ctx.me] && needs.nodes.get() == 1;
        if !fits || known.is_none() && self.seats.len() >= SEATS_MAX {
            ctx.send(from, Message::Refused { job, epoch });
            return;
        }
        self.unseat(job, ctx);
        let record = SeatRecord {
            epoch,
            owner: from,
            token: ctx.chance.random(),
            brief,
            limit,
            since: ctx.now,
            confirmed: false,
            turns: 0,
            moving: None,
        };
        ctx.save(Record::Seat(record.clone()));
        self.seats.insert(job, Seat::restore(record));
        self.tell_held(job, epoch, ctx);
        ctx.wake_after(HELD_LEAST, Timer::Held(job, epoch, 1));
        self.take_turns(ctx);
    }

    pub(super) fn on_held(&mut self, job: JobId, epoch: Epoch, tries: u8, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get(&job) else { return };
        if seat.record.epoch != epoch || seat.record.confirmed {
            return;
        }
        if tries > HELD_TRIES {
            self.unseat(job, ctx);
            return;
        }
        self.tell_held(job, epoch, ctx);
        // After 2, 6, 14 and 28 seconds: less than half a minute.
        let pause = (HELD_LEAST * (1 << tries)).min(Span::from_secs(14));
        ctx.wake_after(pause, Timer::Held(job, epoch, tries + 1));
    }

    pub(super) fn on_confirm(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        token: u32,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let Some(seat) = self.seats.get_mut(&job).filter(|seat| seat.record.epoch == epoch) else {
            if !self.done.contains(&(job, epoch)) {
                let task = Task { job, epoch, rank: Rank(0) };
                ctx.report(Event::Unknown { task, owner: from });
            }
            return;
        };
        let SeatRecord { owner, token: drawn, confirmed, .. } = seat.record;
        if confirmed || owner != from || drawn != token {
            return;
        }
        seat.record.confirmed = true;
        seat.record.since = ctx.now;
        ctx.save(Record::Seat(seat.record.clone()));
        let (task, place, brief) = (seat.task(), seat.place(), seat.record.brief.clone());
        let (needs, priority) = (seat.needs.clone(), seat.priority());
        ctx.report(Event::Confirmed { task, owner, brief });
        self.local.arrive(ctx.now, place, &needs, priority);
        self.take_turns(ctx);
        self.inform_later(ctx);
    }

    /// Whoever owns a job wants this placement, and any before, to be over here.
    pub(super) fn on_cancel(&mut self, from: NodeId, job: JobId, epoch: Epoch, ctx: &mut Ctx<'_, Aria>) {
        let seat = self.seats.get(&job).map(|seat| (seat.record.epoch, seat.record.owner));
        if seat.is_some_and(|(here, owner)| here <= epoch && owner == from) {
            self.unseat(job, ctx);
            self.take_turns(ctx);
        }
        ctx.send(from, Message::Cancelled { job, epoch });
    }

    /// Sends word that somebody would take a waiting job at less; it does not start until that is answered.
    pub(super) fn begin_move(&mut self, job: JobId, to: NodeId, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get_mut(&job) else { return };
        seat.record.moving = Some(to);
        ctx.save(Record::Seat(seat.record.clone()));
        let (place, turn) = (seat.place(), seat.record.turns);
        self.local.withdraw(place);
        self.on_moving(job, turn, 0, ctx);
        self.take_turns(ctx);
    }

    pub(super) fn on_moving(&mut self, job: JobId, turn: u32, reminder: u8, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get(&job) else { return };
        let SeatRecord { epoch, owner, turns, moving: Some(to), .. } = seat.record else { return };
        if turns != turn {
            return;
        }
        ctx.send(owner, Message::Notify { job, epoch, turn, to });
        let pause = (MOVING_LEAST * (1 << reminder.min(10))).min(MOVING_MOST);
        ctx.wake_after(pause, Timer::Moving(job, turn, reminder.saturating_add(1)));
    }

    pub(super) fn on_stay(
        &mut self,
        from: NodeId,
        job: JobId,
        epoch: Epoch,
        turn: u32,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        let Some(seat) = self.seats.get_mut(&job) else { return };
        let SeatRecord { epoch: here, owner, turns, moving, .. } = seat.record;
        if (here, owner, turns) != (epoch, from, turn) || moving.is_none() {
            return;
        }
        seat.record.moving = None;
        ctx.save(Record::Seat(seat.record.clone()));
        let (place, needs, priority) = (seat.place(), seat.needs.clone(), seat.priority());
        self.local.arrive(ctx.now, place, &needs, priority);
        self.take_turns(ctx);
        self.inform_later(ctx);
    }

    /// Takes a job off this node, wherever it stands.
    fn unseat(&mut self, job: JobId, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.remove(&job) else { return };
        ctx.erase(Key::Seat(job));
        self.local.withdraw(seat.place());
        if seat.record.confirmed {
            ctx.report(Event::Released(job, seat.record.epoch));
        }
    }

    /// Starts whatever has its turn.
    pub(super) fn take_turns(&mut self, ctx: &mut Ctx<'_, Aria>) {
        for (job, epoch) in self.local.start(ctx.now) {
            let seat = self.seats.get_mut(&job).filter(|seat| seat.record.epoch == epoch);
            let seat = seat.expect("who waits in the queue has a seat");
            seat.runs = true;
            seat.inform = None;
            let SeatRecord { ref brief, limit, owner, .. } = seat.record;
            ctx.report(Event::Start { task: seat.task(), owner, brief: brief.clone(), limit });
        }
        if let Some(at) = self.local.wake()
            && self.turn_at.is_none_or(|set| at < set || set <= ctx.now)
        {
            self.turn_at = Some(at);
            ctx.wake_at(at, Timer::Turn);
        }
    }

    /// Takes up what was here before a crash; `tasks` are those of this node that ran or have ended.
    pub fn boot(&mut self, running: &[Task], ended: &[Task], ctx: &mut Ctx<'_, Aria>) {
        self.phase = match self.config.inform_period().as_micros() {
            0 => Span::ZERO,
            period => Span::from_micros(ctx.chance.random_range(0..period)),
        };
        self.done.extend(ended.iter().map(|task| (task.job, task.epoch)));
        let mut seats: Vec<(bool, Time, JobId)> = Vec::new();
        for (&job, seat) in &mut self.seats {
            seat.runs = running.contains(&seat.task());
            seats.push((!seat.runs, seat.record.since, job));
        }
        // What runs has its part of the machine before anybody else.
        seats.sort_unstable();
        let mut adopted = false;
        for (waits, _, job) in seats {
            if waits && !adopted {
                adopted = true;
                self.local.start(ctx.now);
            }
            let Some(seat) = self.seats.get(&job) else { continue };
            let (place, needs, priority, task) =
                (seat.place(), seat.needs.clone(), seat.priority(), seat.task());
            let SeatRecord { epoch, owner, turns, ref brief, .. } = seat.record;
            let brief = brief.clone();
            if self.done.contains(&place) {
                self.seats.remove(&job);
                ctx.erase(Key::Seat(job));
                continue;
            }
            match seat.state() {
                SeatState::Held => self.on_held(job, epoch, 1, ctx),
                SeatState::Running => {
                    // Its begin has come, whatever the clock says now.
                    self.local.arrive(ctx.now, place, &Needs { begin: None, ..needs }, priority);
                }
                SeatState::Waiting => {
                    ctx.report(Event::Confirmed { task, owner, brief });
                    self.local.arrive(ctx.now, place, &needs, priority);
                }
                SeatState::Moving => {
                    ctx.report(Event::Confirmed { task, owner, brief });
                    self.on_moving(job, turns, 0, ctx);
                }
            }
        }
        if !adopted {
            self.local.start(ctx.now);
        }
        self.boot_tenures(ctx);
    }

    /// Lets jobs start once all that ran before a crash has been asked after.
    pub fn begin(&mut self, ctx: &mut Ctx<'_, Aria>) {
        self.take_turns(ctx);
        self.inform_later(ctx);
    }

    fn expected_start(&self, seat: &Seat, now: Time) -> Time {
        self.local.start_of(now, seat.job(), &seat.needs, seat.priority())
    }
}
