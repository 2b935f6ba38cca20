//! ARiA: jobs are offered to the grid, go where they cost least, and move to better places until they start.
//!
//! ```text
//! initiator      neighbours … and theirs          assignee
//!     │── Request ────▶│── Request ───▶ …             who will do answers, who will not passes it on
//!     │◀─────────────── Accept ─────────│             at this cost
//!     │  … offers close                               │
//!     │── Assign, Confirm ───────────────────────────▶│  the cheapest (see `tenure`)
//!     │                                               │  … it waits there; from time to time:
//!     │                 … ◀── Inform ──│◀── Inform ───│  who would take it at less?
//!     │                 │──────────── Accept ────────▶│
//!     │◀──────────────────────────────── Notify ──────│  that one is assigned next
//! ```
//!
//! Paper: Brocco, Malatras, Huang, Hirsbrunner, *ARiA: A Protocol for Dynamic Fully Distributed Grid Meta-Scheduling*,
//! 2010: sections III-A to III-D, IV-B (policies), IV-C (costs). Done otherwise: the paper's assignee sends the ASSIGN of a move
//! itself; here the initiator does, because it alone numbers placements, so that no job runs twice. An ASSIGN is
//! confirmed before the job may start. A matching node that cannot offer less than an INFORM asks for does not pass it on either.
//! Costs go with the job: one with a deadline is priced by NAL, one without by ETTC, so batch and deadline jobs live in one grid.
//! Left out: jobs of several nodes.

pub mod config;
pub mod cost;
mod inform;
pub mod message;
mod offers;
mod outside;
mod seat;
mod tenure;

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::honours::{Field, FieldSet};
use shoal_model::machine::Machine;
use shoal_model::matching::{Needs, matches};
use shoal_model::{Epoch, JobId, NodeId, Span, Time};

use super::Stuck;
use crate::commit::two_phase::Placement;
use crate::node::{Brief, Task};
use crate::overlay::Overlay;
use crate::overlay::flood::{Seen, spread};
use crate::protocol::{Ctx, Input, Layer, Never};
use crate::shared::Shared;
pub use config::{Config, ConfigError, Order};
use cost::Local;
pub use cost::{Cost, Expected, Place};
pub use message::{Ask, Key, Message, Record, Timer};
use offers::Search;
use seat::Seat;
pub use seat::{SEATS_MAX, SeatState};
use tenure::Held;
pub use tenure::Wanted;

/// What of a job description it can honour: jobs of one node.
pub const HONOURS: FieldSet = FieldSet::of(&[
    Field::Inputs,
    Field::Outputs,
    Field::Secrets,
    Field::Cores,
    Field::Memory,
    Field::Disk,
    Field::Gpus,
    Field::Resources,
    Field::Limit,
    Field::Estimate,
    Field::Deadline,
    Field::Begin,
    Field::Architecture,
    Field::System,
    Field::Labels,
    Field::Within,
    Field::Array,
    Field::After,
    Field::Retry,
    Field::Rerun,
    Field::AtMostOnce,
    Field::Priority,
    Field::Environment,
    Field::Name,
    Field::User,
    Field::Organisation,
]);

/// What lies beneath, to look at.
pub struct Here<'a> {
    /// Who is known.
    pub overlay: &'a Overlay,
    /// What this node is.
    pub machine: &'a Machine,
}

impl Here<'_> {
    fn matches(&self, needs: &Needs) -> bool {
        matches(needs, self.machine)
    }
}

/// What it says to the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// As initiator: somebody has the job, confirmed.
    Placed(JobId, Placement),
    /// As initiator: the job waits for a place.
    Waits {
        /// Which job.
        job: JobId,
        /// Because of this.
        why: Stuck,
    },
    /// As initiator: nobody will have it.
    GiveUp {
        /// Which job.
        job: JobId,
        /// Because of this.
        why: Stuck,
    },
    /// As initiator: its deadline passed before it had a place.
    Expired(JobId),
    /// As initiator: its assignee has forgotten it.
    Lost {
        /// Which job.
        job: JobId,
        /// Who.
        node: NodeId,
    },
    /// As initiator: a place is to be found from outside.
    Find {
        /// For which job.
        job: JobId,
        /// Which time it is asked for.
        round: u32,
        /// What it needs.
        needs: Needs,
        /// Who has denied it.
        avoid: BTreeSet<NodeId>,
    },
    /// As assignee: this task may start when its turn comes.
    Confirmed {
        /// Which task.
        task: Task,
        /// Its initiator.
        owner: NodeId,
        /// What it is.
        brief: Shared<Brief>,
    },
    /// As assignee: its turn has come.
    Start {
        /// Which task.
        task: Task,
        /// Its initiator.
        owner: NodeId,
        /// What to run.
        brief: Shared<Brief>,
        /// How long at most.
        limit: Span,
    },
    /// As assignee: this placement is over here.
    Released(JobId, Epoch),
    /// As assignee: of this task, which should be here, nothing is known.
    Unknown {
        /// Which task.
        task: Task,
        /// Who thinks that it is here.
        owner: NodeId,
    },
}

/// All that a node knows of jobs, as initiator and as assignee.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aria {
    config: Config,
    searches: BTreeMap<JobId, Search>,
    tenures: BTreeMap<JobId, Held>,
    seats: BTreeMap<JobId, Seat>,
    /// Placements that have ended here, and whose initiators do not know it yet.
    done: BTreeSet<(JobId, Epoch)>,
    local: Local,
    seen: Seen,
    /// Room for those who are told next; empty between.
    told: Vec<NodeId>,
    /// This node's place in the period of INFORMs.
    phase: Span,
    /// Whether the next INFORM is due already.
    informing: bool,
    /// When the queue next wants to be looked at.
    turn_at: Option<Time>,
    /// Whether places are found from outside.
    found_outside: bool,
    /// Whether this node is about to leave, and wants no more jobs of others.
    leaving: bool,
}

impl Layer for Aria {
    type Command = Never;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Aria {
    /// Makes it from what it saved.
    pub fn restore(
        config: Config,
        me: NodeId,
        machine: &Machine,
        records: impl Iterator<Item = Record>,
    ) -> Aria {
        let mut aria = Aria {
            config,
            searches: BTreeMap::new(),
            tenures: BTreeMap::new(),
            seats: BTreeMap::new(),
            done: BTreeSet::new(),
            local: Local::new(&config, me, machine),
            seen: Seen::default(),
            told: Vec::new(),
            phase: Span::ZERO,
            informing: false,
            turn_at: None,
            found_outside: false,
            leaving: false,
        };
        for record in records {
            match record {
                Record::Tenure(tenure) => {
                    aria.tenures.insert(tenure.job, Held::restore(tenure));
                }
                Record::Seat(seat) => {
                    let seat = Seat::restore(seat);
                    aria.seats.insert(seat.job(), seat);
                }
            }
        }
        aria
    }

    /// Takes one input, with a look at what lies beneath.
    pub fn handle(&mut self, input: Input<Aria>, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        match input {
            Input::Boot => {}
            Input::Command(never) | Input::Done(never) => match never {},
            Input::Message { from, message } => self.on_message(from, message, here, ctx),
            Input::Timer(timer) => self.on_timer(timer, here, ctx),
        }
    }

    /// See [`crate::Protocol::glance`]: what a word that goes round needs.
    pub fn glance(&self) -> u64 {
        self.seen.glance()
    }

    /// From now on it offers to take nothing more.
    pub fn leaves(&mut self) {
        self.leaving = true;
    }

    /// Whether it wants no more jobs of others.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// How many jobs it looks for a place for.
    pub fn searches(&self) -> usize {
        self.searches.len()
    }

    /// What it keeps that peers can fill: name, how many, how many there may be.
    pub fn queues(&self) -> [(&'static str, usize, usize); 4] {
        let (waiting, _) = self.local.len();
        [
            ("jobs here", self.seats.len(), SEATS_MAX),
            ("waiting jobs", waiting, self.seats.len()),
            ("untold ends", self.done.len(), crate::commit::two_phase::LOCKS_MAX),
            ("floods seen", self.seen.len(), crate::overlay::flood::SEEN_MAX),
        ]
    }

    /// Jobs that wait here and jobs that run here.
    pub fn load(&self) -> (usize, usize) {
        self.local.len()
    }

    fn on_message(&mut self, from: NodeId, message: Message, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        match message {
            Message::Request(ask, hops) => self.on_ask(from, ask, hops, false, here, ctx),
            Message::Inform(ask, hops) => self.on_ask(from, ask, hops, true, here, ctx),
            Message::Accept { job, round, informed: false, cost } => {
                self.on_offer(from, job, round, cost, ctx)
            }
            Message::Accept { job, round, informed: true, cost } => self.on_better(from, job, round, cost),
            Message::Assign { job, epoch, brief, limit } => {
                // The last epoch stands for a job that is only asked about.
                if brief.job() == job && epoch < cost::ASKED {
                    self.on_assign(from, epoch, brief, limit, here, ctx);
                }
            }
            Message::Assigned { job, epoch, token, start } => {
                self.on_assigned(from, job, epoch, token, start, ctx);
            }
            Message::Refused { job, epoch } => self.on_refused(from, job, epoch, ctx),
            Message::Confirm { job, epoch, token } => self.on_confirm(from, job, epoch, token, ctx),
            Message::Notify { job, epoch, turn, to } => self.on_notify(from, job, epoch, turn, to, ctx),
            Message::Stay { job, epoch, turn } => self.on_stay(from, job, epoch, turn, ctx),
            Message::Cancel { job, epoch } => self.on_cancel(from, job, epoch, ctx),
            Message::Cancelled { job, epoch } => self.on_cancelled(from, job, epoch, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, here: &Here<'_>, ctx: &mut Ctx<'_, Aria>) {
        match timer {
            Timer::Close(job, round) => self.on_close(job, round, ctx),
            Timer::Round(job) => self.on_round(job, here, ctx),
            Timer::Again(job, epoch, tries) => self.on_again(job, epoch, tries, ctx),
            Timer::Remind(job, reminder) => self.on_remind(job, reminder, ctx),
            Timer::Held(job, epoch, tries) => self.on_held(job, epoch, tries, ctx),
            Timer::Inform => self.on_inform_time(here, ctx),
            Timer::CloseInform(job, turn) => self.on_close_inform(job, turn, ctx),
            Timer::Moving(job, turn, reminder) => self.on_moving(job, turn, reminder, ctx),
            Timer::Turn => self.take_turns(ctx),
        }
    }

    /// A word that goes round has come by.
    fn on_ask(
        &mut self,
        from: NodeId,
        ask: Shared<Ask>,
        hops: u8,
        informed: bool,
        here: &Here<'_>,
        ctx: &mut Ctx<'_, Aria>,
    ) {
        if !self.seen.note(ask.flood()) || ask.from == ctx.me {
            return;
        }
        let Config { request_fan_out, inform_hops, inform_fan_out, .. } = self.config;
        if !self.leaving && here.matches(&ask.needs) {
            let cost = self.local.cost_of(ctx.now, ask.job, &ask.needs, ask.priority);
            let low_enough = |cost: &Cost| ask.cost.is_none_or(|asked| *cost <= asked.below(&self.config));
            if let Some(cost) = cost.filter(low_enough) {
                let Ask { job, round, .. } = *ask;
                ctx.send(ask.from, Message::Accept { job, round, informed, cost });
            }
            if !self.config.forward_on_match {
                return;
            }
        }
        let (most, fan_out) = match informed {
            true => (inform_hops, inform_fan_out),
            false => (self.config.request_hops_in(ask.round), request_fan_out),
        };
        if hops >= most {
            return;
        }
        let not = [from, ask.from];
        spread(here.overlay.neighbours(), not, usize::from(fan_out), ctx.chance, &mut self.told);
        let passed_on = |ask| match informed {
            true => Message::Inform(ask, hops + 1),
            false => Message::Request(ask, hops + 1),
        };
        // The last one gets this very copy: each is counted by all threads together, which takes time.
        let last = self.told.pop();
        for node in self.told.drain(..) {
            ctx.send(node, passed_on(ask.clone()));
        }
        if let Some(last) = last {
            ctx.send(last, passed_on(ask));
        }
    }
}

#[cfg(test)]
mod tests;
