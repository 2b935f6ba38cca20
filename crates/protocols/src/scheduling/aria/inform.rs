//! Rescheduling: waiting jobs are offered to others from time to time, and move where they cost less (III-D).

use std::cmp::Reverse;

use shoal_model::{JobId, NodeId, Span, Time};

use super::cost::{Cost, Standing};
use super::message::{Ask, Message, Timer};
use super::seat::{Seat, SeatState};
use super::{Aria, Here};
use crate::overlay::flood::spread;
use crate::protocol::Ctx;
use crate::shared::Shared;

/// The offers for a waiting job that are being collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inform {
    turn: u32,
    /// What an offer may cost at most.
    most: Cost,
    /// The lowest; of equals, the first.
    best: Option<(Cost, NodeId)>,
}

impl Aria {
    /// Sets the clock for the next INFORM, if there is somebody to inform about; nodes do so in different phases.
    pub(super) fn inform_later(&mut self, ctx: &mut Ctx<'_, Aria>) {
        let period = self.config.inform_period();
        if self.informing || self.config.inform_jobs == 0 || period == Span::ZERO || !self.local.has_waiting()
        {
            return;
        }
        self.informing = true;
        let past =
            (ctx.now.since(Time::ZERO) + period).saturating_sub(self.phase).as_micros() % period.as_micros();
        ctx.wake_after(Span::from_micros(period.as_micros() - past), Timer::Inform);
    }

    pub(super) fn on_inform_time(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        self.informing = false;
        let mut standings = self.local.standings(ctx.now);
        standings.retain(|standing| {
            let seat = self.seats.get(&standing.place.0);
            seat.is_some_and(|seat| seat.inform.is_none() && seat.state() == SeatState::Waiting)
        });
        standings.sort_by_key(urgency);
        standings.truncate(usize::from(self.config.inform_jobs));
        for Standing { place, .. } in standings {
            self.inform(place.0, here, ctx);
        }
        self.inform_later(ctx);
    }

    fn inform(&mut self, job: JobId, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get_mut(&job) else { return };
        let has_deadline = seat.needs.deadline.is_some();
        let cost = self.local.cost_here(ctx.now, seat.place(), has_deadline);
        seat.record.turns = seat.record.turns.wrapping_add(1);
        let turn = seat.record.turns;
        seat.inform = Some(Inform { turn, most: cost.below(&self.config), best: None });
        let Seat { needs, .. } = seat;
        let (needs, priority) = (needs.clone(), seat.priority());
        let ask = Shared::new(Ask { from: ctx.me, job, round: turn, needs, priority, cost: Some(cost) });
        self.seen.note(ask.flood());
        let mut told = Vec::new();
        let fan_out = usize::from(self.config.inform_fan_out);
        spread(here.overlay.neighbours(), [ctx.me; 2], fan_out, ctx.chance, &mut told);
        for &node in &told {
            ctx.send(node, Message::Inform(ask.clone(), 1));
        }
        ctx.wake_after(self.config.accept_wait(), Timer::CloseInform(job, turn));
    }

    pub(super) fn on_better(&mut self, from: NodeId, job: JobId, turn: u32, cost: Cost) {
        let inform = self.seats.get_mut(&job).and_then(|seat| seat.inform.as_mut());
        let Some(inform) = inform.filter(|inform| inform.turn == turn && cost <= inform.most) else { return };
        if inform.best.is_none_or(|(best, _)| cost < best) {
            inform.best = Some((cost, from));
        }
    }

    pub(super) fn on_close_inform(&mut self, job: JobId, turn: u32, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get_mut(&job) else { return };
        let Some(inform) = seat.inform.take_if(|inform| inform.turn == turn) else { return };
        if let Some((_, to)) = inform.best
            && seat.state() == SeatState::Waiting
            && to != ctx.me
        {
            self.begin_move(job, to, ctx);
        }
        self.inform_later(ctx);
    }
}

/// Jobs with deadlines by the least that they have to spare; then the others by the longest wait.
fn urgency(standing: &Standing) -> (bool, i64, Reverse<Span>) {
    (standing.spare.is_none(), standing.spare.unwrap_or(0), Reverse(standing.wait))
}
