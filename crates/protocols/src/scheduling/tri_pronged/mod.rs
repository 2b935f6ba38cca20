//! Backfill, migrate, balance: jobs are pushed to idle regions of a resource CAN, wait in queues that backfill, and move.
//!
//! ```text
//! owner      owner of the job's point … pushed on …          run node
//!   │── Find ─────▶│── Find ────▶│── Find ────▶│                 │
//!   │◀─────────────────────────────── Found ───│                 │
//!   │── Assign, Confirm ────────────────────────────────────────▶│  as in `aria`
//!   where nobody around is free or has room, and what is left of machines has a CAN of its own:
//!   │                          FindResidue ───▶│── FindResidue ─▶│  in that one, before `Found`
//!
//! run node x                   neighbour y                owner
//!   │── Pull ──────────────────────▶│   x has room           │
//!   │◀───────────────────── Offer ──│   this one fits        │
//!   │── Answer ────────────────────▶│   room is kept         │
//!   │                               │── Notify ─────────────▶│  as in `aria`: the owner assigns it to x
//! ```
//!
//! Paper: Lee, Keleher, Sussman, *Decentralized dynamic scheduling across heterogeneous multi-core desktop grids*, 2010:
//! sections III (model, owner, run node), IV-A (local), IV-B (internode), IV-C (balancing); matchmaking after Kim et al.,
//! 2007. Where the paper contradicts itself: a job may overtake if it was overtaken at least as often (BC ≥ NBC).
//!
//! Done otherwise: the owner of a job is the node that accepted it, whose disk holds it, and not whoever owns its point; the
//! search starts there. Jobs are assigned and moved by the owner, as in [`crate::scheduling::aria`]: it alone numbers
//! placements, so that a move that is cut by a crash neither loses nor doubles a job. A search that would have its job wait
//! begins anew elsewhere; one that finds nobody looks at every node that reaches above the job's point. Left out: jobs of
//! several nodes, a least speed.

mod config;
mod find;
mod given;
mod message;
mod prongs;
mod residue;

use std::collections::BTreeMap;

use rand::RngExt;
use shoal_model::machine::Machine;
use shoal_model::matching::Needs;
use shoal_model::{JobId, NodeId, Resources, Span, Time};

use crate::overlay::can::{Can, Secondary};
use crate::overlay::flood::Seen;
use crate::protocol::{Ctx, Input, Layer, Never};
use crate::scheduling::aria::Aria;
pub use config::{Config, ConfigError, Variant};
pub use find::SEEN_MAX;
pub use message::{Aside, Message, Offer, Passed, Search, Trail};
pub use prongs::HOLDS_MAX;

/// What of a job description it can honour: jobs of one node.
pub use crate::scheduling::aria::HONOURS;

/// What lies beneath, to look at.
pub struct Here<'a> {
    /// Who is around, and what each has to do.
    pub can: &'a Can,
    /// What is left of machines, where that has a CAN of its own.
    pub secondary: Option<&'a Secondary>,
    /// What waits and runs here.
    pub seats: &'a Aria,
    /// What this node is.
    pub machine: &'a Machine,
}

impl Here<'_> {
    fn waiting(&self) -> impl Iterator<Item = Waiting<'_>> {
        self.seats.waiting().map(|(needs, task)| Waiting {
            job: task.id.0,
            needs,
            overtaken: task.wish.overtaken,
            entered: task.wish.entered.unwrap_or(Time::ZERO),
        })
    }
}

/// A job that waits here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiting<'a> {
    /// Which.
    pub job: JobId,
    /// What it needs.
    pub needs: &'a Needs,
    /// How often it was overtaken.
    pub overtaken: u32,
    /// When it entered the queue of its first run node.
    pub entered: Time,
}

/// What a node asked to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Redistribute.
    Round,
    /// Has everybody come for whom room is kept?
    Holds,
}

/// What it says to the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A search has ended.
    Found {
        /// For which job.
        job: JobId,
        /// Which of the searches for it.
        round: u32,
        /// Who will do, if anybody.
        node: Option<NodeId>,
    },
    /// A job that may come stands so in the queue.
    Expect {
        /// Which.
        job: JobId,
        /// How often it was overtaken.
        overtaken: u32,
        /// When it entered the queue of its first run node.
        entered: Time,
        /// Whether it starts at once.
        at_once: bool,
    },
    /// Keep so much, in all, for jobs that are on their way.
    Hold(Resources),
    /// A waiting job goes to another node.
    Move {
        /// Which.
        job: JobId,
        /// To whom.
        to: NodeId,
    },
}

/// A job that is on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sent {
    to: NodeId,
    until: Time,
}

/// Room that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hold {
    resources: Resources,
    overtaken: u32,
    entered: Time,
    until: Time,
}

/// What a node does about its own and others' queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TriPronged {
    config: Config,
    sent: BTreeMap<JobId, Sent>,
    holds: BTreeMap<JobId, Hold>,
    pulling: Option<prongs::Pulling>,
    given: given::Given,
    /// Steps of searches that came by lately: what the network doubles goes on once, or searches would multiply.
    steps: Seen,
    /// How many jobs have been sent away.
    moves: u64,
}

impl Layer for TriPronged {
    type Command = Never;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl TriPronged {
    /// A node that has done nothing yet.
    pub fn new(config: Config) -> TriPronged {
        TriPronged {
            config,
            sent: BTreeMap::new(),
            holds: BTreeMap::new(),
            pulling: None,
            given: Default::default(),
            steps: Seen::default(),
            moves: 0,
        }
    }

    /// Whether running times are used that users have estimated.
    pub fn counts_estimates(&self) -> bool {
        self.config.estimates
    }

    /// How many jobs it has sent away in this life.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// What it keeps that peers can fill: name, how many, how many there may be.
    pub fn queues(&self) -> [(&'static str, usize, usize); 2] {
        [("rooms kept", self.holds.len(), HOLDS_MAX), ("places given", self.given.len(), given::GIVEN_MAX)]
    }

    /// Takes one input, with a look at what lies beneath.
    pub fn handle(&mut self, input: Input<Self>, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        match input {
            Input::Boot => {
                let phase = ctx.chance.random_range(0..self.config.round().as_micros().max(1));
                ctx.wake_after(Span::from_micros(phase), Timer::Round);
            }
            Input::Command(never) | Input::Done(never) => match never {},
            Input::Message { from, message } => match message {
                Message::Find(search, trail) => {
                    if self.steps.note(search.step(trail.hops, false)) {
                        self.on_find(search, trail, here, ctx);
                    }
                }
                Message::Found { job, round, node } => self.on_found(job, round, node, ctx),
                Message::Offer(offer) => self.on_offer(from, &offer, here, ctx),
                Message::Answer { job, yes } => self.on_answer(from, job, yes, here, ctx),
                Message::Pull { vitals, balance } => self.on_pull(from, &vitals, balance, here, ctx),
                Message::Nothing => self.on_nothing(from, here, ctx),
                Message::FindResidue(search, aside) => {
                    if self.steps.note(search.step(aside.hops, true)) {
                        self.on_find_residue(search, aside, here, ctx);
                    }
                }
            },
            Input::Timer(Timer::Round) => {
                ctx.wake_after(self.config.round(), Timer::Round);
                self.redistribute(here, ctx);
            }
            Input::Timer(Timer::Holds) => self.drop_holds(here, ctx),
        }
    }

    /// What waits and runs here has changed; `ended` if because a job has ended.
    pub fn queue_changed(&mut self, ended: bool, here: &Here<'_>, ctx: &mut Ctx<'_, Self>) {
        if !self.holds.is_empty() {
            self.drop_holds(here, ctx);
        }
        if ended {
            self.redistribute(here, ctx);
        }
    }
}
