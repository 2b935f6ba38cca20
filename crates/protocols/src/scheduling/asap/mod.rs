//! Asap: a gang starts as soon as possible, on nodes found by a few searchers within two hops of the overlay.
//!
//! ```text
//! entry node A          fwd random neighbours B       B's neighbours
//!     │── Search ──────────────▶│                          │
//!     │                         │── their caches ─────────▶│  only if too few of B's own neighbours are free
//!     │◀──────── SearchReply ───│  the earliest start and who
//!     │  the earliest answer is committed; if a node refuses or is silent the next best, then all begins again
//! ```
//!
//! Paper: Vasilakos, Sacha, Pierre, 2010 (DGS_ASAP). Algorithm A is in `entry`, B in `search`, the messaging policies
//! push, pull and poll in `policy`; [`Config`] cites where each value comes from, [`Tally`] counts the paper's cost.
//!
//! Done otherwise: requirements are resource vectors and machines are matched, so a schedule says what its machine is
//! ([`Sheet`]); searches run concurrently, and conflicts are found by the votes of the two-phase commit; a start lies
//! some time ahead ([`Config::lead_ms`]), since a commit takes time, which the paper's simulation does not model. A
//! calendar is taken to change when what it says of the time to come does: a hold does, its commit and an end in time
//! do not. A job that is placed anew is not in its own way, as far as nodes are asked for their schedules; schedules
//! that were shared before do not say whose time it is, and may hide a place until they are renewed. A searcher whose answer would come too late answers with what it knows by then.

mod cache;
mod config;
mod entry;
mod message;
mod pace;
mod policy;
mod schedule;
mod search;
mod tally;

use shoal_model::Machine;
use shoal_model::honours::FieldSet;
use shoal_model::{JobId, NodeId, Time};

use super::{Command, Event, Here, IN_CALENDARS, Recipe};
use crate::protocol::{Ctx, Input, Layer, Never};
use crate::shared::Shared;
pub use config::{Audience, Config, ConfigError, Policy};
use entry::Entry;
pub use message::{Answer, Message, Purpose, Search, Ticket, Timer};
use policy::{Sharing, Source};
pub use schedule::{Schedule, Sheet};
use search::Searcher;
pub use tally::Tally;

/// A node's part in the recipe: as entry node of some jobs, as searcher for others, as keeper of schedules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asap {
    config: Config,
    /// When this life began.
    born: Time,
    machine: Option<Shared<Machine>>,
    /// This node's schedule as last looked at.
    own: Option<Schedule>,
    sharing: Sharing,
    entry: Entry,
    searcher: Searcher,
    tally: Tally,
}

impl Layer for Asap {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Recipe for Asap {
    const HONOURS: FieldSet = IN_CALENDARS;

    fn handle(&mut self, input: Input<Asap>, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        match input {
            Input::Boot => {
                self.born = ctx.now;
                self.own(here);
                self.sharing.boot(ctx);
            }
            Input::Command(Command::Plan { job, needs, avoid }) => self.plan(job, needs, avoid, here, ctx),
            Input::Command(Command::Failed { job, why }) => self.on_failed(job, why, here, ctx),
            Input::Command(Command::Leave(job)) => self.leave(job),
            Input::Message { from, message } => self.on_message(from, message, here, ctx),
            Input::Timer(Timer::Close(job, round)) => self.on_close(job, round, here, ctx),
            Input::Timer(Timer::Silent(ticket, step)) => self.on_silent(ticket, step, ctx),
            Input::Timer(Timer::Stop(ticket)) => self.on_stop(ticket, ctx),
            Input::Timer(Timer::Poll) => match &mut self.sharing {
                Sharing::Poll(poll) => poll.on_timer(here.overlay, ctx),
                Sharing::Push(_) | Sharing::Pull(_) => {}
            },
            Input::Timer(Timer::Renew) => match &mut self.sharing {
                Sharing::Push(push) => push.on_renew(here.overlay, ctx),
                Sharing::Pull(_) | Sharing::Poll(_) => {}
            },
            Input::Done(never) => match never {},
        }
    }

    fn overlay_changed(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        self.sharing.on_overlay(here.overlay, ctx);
    }

    fn calendar_changed(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        // Only push acts at once; what the others say is looked up when they are asked.
        if !matches!(self.sharing, Sharing::Push(_)) {
            return;
        }
        let before = self.own.clone();
        let now = self.own(here);
        let same = match &before {
            Some(before) => now.same_from(before, ctx.now),
            None => here.calendar.is_empty(),
        };
        if !same && let Sharing::Push(push) = &mut self.sharing {
            push.publish(&now, here.overlay, &mut self.tally, ctx);
        }
    }
}

impl Asap {
    /// A recipe with nothing to do yet.
    pub fn new(config: Config) -> Asap {
        Asap {
            config,
            born: Time::ZERO,
            machine: None,
            own: None,
            sharing: Sharing::new(&config),
            entry: Entry::default(),
            searcher: Searcher::default(),
            tally: Tally::default(),
        }
    }

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The schedules that this node has carried in this life.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether it keeps schedules of neighbours, and has to know who they are.
    pub fn follows_overlay(&self) -> bool {
        matches!(self.sharing.source(), Source::Cache(_))
    }

    /// Whether the overlay has to count who holds this node.
    pub fn counts_holders(&self) -> bool {
        self.config.policy == Policy::Push && self.config.audience == Audience::Counted
    }

    /// How many jobs it looks for a place for.
    pub fn searches(&self) -> usize {
        self.entry.searches()
    }

    /// What else peers can fill: what it is called, how many there are, and how many there may be.
    pub fn queues(&self) -> impl Iterator<Item = (&'static str, usize, usize)> {
        let searching = ("searches for others", self.searcher.len(), search::TASKS_MAX);
        std::iter::once(searching).chain(self.sharing.queues())
    }

    fn on_message(&mut self, from: NodeId, message: Message, here: &Here<'_>, ctx: &mut Ctx<'_, Asap>) {
        match message {
            Message::Search(search) => self.on_search(from, *search, here, ctx),
            Message::SearchReply { job, round, answer } => {
                self.on_answer(from, job, round, answer, here, ctx);
            }
            Message::CacheRequest(ticket, wait, job) => {
                self.on_cache_request(from, (ticket, wait), job, here, ctx);
            }
            Message::CacheReply(ticket, entries) => self.on_cache(from, ticket, entries, ctx),
            Message::ScheduleRequest(ticket, purpose, job) => {
                match purpose {
                    Purpose::Search => self.tally.pulled += 1,
                    Purpose::Answer => self.tally.pulled_second += 1,
                    Purpose::Poll => self.tally.polled += 1,
                    Purpose::Enter => self.tally.entered += 1,
                    Purpose::Counted => {}
                }
                let own = match job {
                    Some(job) => self.own_without(job, here),
                    None => self.own(here),
                };
                ctx.send(from, Message::ScheduleReply(ticket, own));
            }
            Message::ScheduleReply(ticket, schedule) => self.on_schedule(from, ticket, schedule, ctx),
            Message::Update(schedule) => {
                if let Sharing::Push(push) = &mut self.sharing {
                    push.on_update(from, schedule, ctx);
                }
            }
            Message::Hold => {
                let own = self.own(here);
                if let Sharing::Push(push) = &mut self.sharing {
                    push.on_hold(from, own, &mut self.tally, ctx);
                }
            }
            Message::Unhold => {
                if let Sharing::Push(push) = &mut self.sharing {
                    push.on_unhold(from);
                }
            }
        }
    }

    /// This node's schedule as if a job had no place here: what it may have been given before, it gives back when it is
    /// placed anew.
    fn own_without(&mut self, job: JobId, here: &Here<'_>) -> Schedule {
        if here.calendar.of_job(job).next().is_none() {
            return self.own(here);
        }
        let machine = self.machine.get_or_insert_with(|| Shared::new(here.machine.clone()));
        Shared::new(Sheet::new(self.born, machine.clone(), here.calendar.snapshot_without(job)))
    }

    /// This node's schedule as of now.
    fn own(&mut self, here: &Here<'_>) -> Schedule {
        let current = (self.born, here.calendar.version());
        match &self.own {
            Some(own) if own.version() == current => own.clone(),
            Some(_) | None => {
                let machine = self.machine.get_or_insert_with(|| Shared::new(here.machine.clone()));
                let own = Shared::new(Sheet::new(self.born, machine.clone(), here.calendar.snapshot()));
                self.own = Some(own.clone());
                own
            }
        }
    }
}
