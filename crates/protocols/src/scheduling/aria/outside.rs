//! For a recipe that finds places and moves jobs in its own way, and leaves who has them to initiators and assignees here.

use std::collections::BTreeSet;

use shoal_model::{JobId, Needs, NodeId, Resources};

use super::cost::{Cost, Expected, Place};
use super::message::Timer;
use super::seat::SeatState;
use super::{Aria, Event};
use crate::protocol::Ctx;
use crate::queue::{Queue, Task};

impl Aria {
    /// From now on places are found from outside: [`Event::Find`] asks for one, [`Aria::offer`] answers.
    pub fn let_others_find(mut self) -> Aria {
        self.found_outside = true;
        self
    }

    pub(super) fn ask_outside(
        &mut self,
        job: JobId,
        round: u32,
        needs: Needs,
        avoid: BTreeSet<NodeId>,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        ctx.wake_after(self.config.accept_wait(), Timer::Close(job, round));
        ctx.report(Event::Find { job, round, needs, avoid });
    }

    /// A search has ended: with a node that will do, or with none. Who is found later than it was waited for will do too.
    pub fn offer(&mut self, job: JobId, round: u32, node: Option<NodeId>, ctx: &mut Ctx<'_, Aria>) {
        let asking = self.is_asking(job);
        let Some(search) = self.searches.get_mut(&job) else { return };
        let offer = node.map(|node| (Cost(0), node));
        if search.takes(round) {
            search.keep(offer);
            self.close(job, round, ctx);
        } else if search.keep_late(round, offer) && search.pauses() && !asking {
            self.next_offer(job, ctx);
        } else if node.is_none() {
            search.hear_late_of_none(round);
        }
    }

    /// What waits and runs here.
    pub fn queue(&self) -> &Queue<Place, Resources> {
        self.local.queue()
    }

    /// The jobs that wait here and may go elsewhere, in the order of the queue.
    pub fn waiting(&self) -> impl Iterator<Item = (&Needs, &Task<Place, Resources>)> {
        self.queue().waiting().filter_map(|task| {
            let seat = self.seats.get(&task.id.0)?;
            (seat.state() == SeatState::Waiting).then_some((&seat.needs, task))
        })
    }

    /// Whether a job has come here for good.
    pub fn has_confirmed(&self, job: JobId) -> bool {
        self.seats.get(&job).is_some_and(|seat| seat.record.confirmed)
    }

    /// Counts what has changed in the queue.
    pub fn changes(&self) -> u64 {
        self.local.changes()
    }

    /// A job that may come stands so in the queue; of none that never comes more is kept than there are seats.
    pub fn expect(&mut self, job: JobId, expected: Expected) {
        self.local.expect(job, expected);
    }

    /// Keeps so much of the machine, in all, for jobs that are on their way.
    pub fn hold(&mut self, held: Resources, ctx: &mut Ctx<'_, Aria>) {
        self.local.hold(held);
        self.take_turns(ctx);
    }

    /// A waiting job goes to another node, if its initiator has it so.
    pub fn move_to(&mut self, job: JobId, to: NodeId, ctx: &mut Ctx<'_, Aria>) {
        let Some(seat) = self.seats.get_mut(&job) else { return };
        if seat.state() != SeatState::Waiting || to == ctx.me {
            return;
        }
        seat.record.turns = seat.record.turns.wrapping_add(1);
        self.local.set_aside(seat.place());
        self.begin_move(job, to, ctx);
    }
}
