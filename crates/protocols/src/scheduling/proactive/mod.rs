//! Proactive: the best set of nodes by the user's own criterion, found among few, improved until the start.
//!
//! ```text
//! entry node E     a random node r     nodes near r
//!     │── Ask ────────────▶│                 │  when are you free, where are you, whom do you know near you?
//!     │◀──────────── Tell ─│                 │
//!     │── Ask ──────────────────────────────▶│  the nearest to r first, until α·J are known
//!     │◀────────────────────────────── Tell ─│
//!     │  chooses J of them, has them committed if they are better than those it has, and begins again elsewhere
//! ```
//!
//! Paper: Fiscato, Costa, Pierre, 2008. *basic* (3.2) asks random nodes; *proactive* (3.3) those near one random node,
//! in the helper overlay that goes with the criterion. τ iterations, each from another node; a better set is locked by
//! the two-phase commit before the old one lets go. Done otherwise: more than α·J are asked where some will not do; a few
//! are asked at once; what a criterion has no overlay for is looked for among random nodes.

mod config;
mod message;
mod round;
mod search;

use std::collections::BTreeMap;

use shoal_model::criterion::{Cost, Measure};
use shoal_model::honours::{Field, FieldSet};
use shoal_model::matching::{Needs, matches};
use shoal_model::{JobId, Machine, Name, NodeId, Span, Thousandths, Time, constraint};

use super::{Command, Event, Here, IN_CALENDARS, Recipe};
use crate::overlay::cyclon;
use crate::overlay::helpers::profile::tag_of;
use crate::overlay::helpers::{self, Helpers, Kind, Profile};
use crate::overlay::vicinity::VIEW_MAX;
use crate::protocol::{Ctx, Hosts, Input, KeyOf, Layer, Never, Protocol};
pub use config::{Config, ConfigError, Variant};
pub use message::{Answer, Ask, KNOWN_MAX, Known, LABELS_MAX, Message, Offer, Tell, Timer};
use search::Search;

/// The searches of a node, and its helper overlays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proactive {
    config: Config,
    helpers: Helpers,
    open: BTreeMap<JobId, Search>,
}

impl Layer for Proactive {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Hosts<Helpers> for Proactive {
    fn message(message: helpers::Message) -> Message {
        Message::Helpers(Box::new(message))
    }

    fn timer(timer: helpers::Timer) -> Timer {
        Timer::Helpers(timer)
    }

    fn record(record: Never) -> Never {
        record
    }

    fn key(key: KeyOf<Helpers>) -> Never {
        key
    }

    fn action(action: Never) -> Never {
        action
    }
}

impl Recipe for Proactive {
    const HONOURS: FieldSet =
        IN_CALENDARS.with(Field::Criterion).with(Field::Constraint).with(Field::Estimate);

    fn handle(&mut self, input: Input<Proactive>, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        match input {
            Input::Boot => {
                self.describe(here, ctx.now);
                self.tell_helpers(Input::Boot, ctx);
                self.meet(here, ctx);
            }
            Input::Command(Command::Plan { job, needs, avoid }) => self.plan(job, needs, avoid, here, ctx),
            Input::Command(Command::Failed { job, why }) => self.on_failed(job, &why, here, ctx),
            Input::Command(Command::Leave(job)) => {
                self.open.remove(&job);
            }
            Input::Message { from, message } => match message {
                Message::Helpers(message) => {
                    self.tell_helpers(Input::Message { from, message: *message }, ctx);
                }
                Message::Ask(ask) => {
                    let tell = self.answer(&ask, here, ctx);
                    ctx.send(from, Message::Tell(Box::new(tell)));
                }
                Message::Tell(tell) => self.on_tell(from, *tell, here, ctx),
            },
            Input::Timer(Timer::Helpers(timer)) => {
                self.meet(here, ctx);
                self.describe(here, ctx.now);
                self.tell_helpers(Input::Timer(timer), ctx);
            }
            Input::Timer(Timer::Patience(job, round)) => self.on_patience(job, round, here, ctx),
            Input::Timer(Timer::Next(job, begun)) => self.on_next(job, begun, here, ctx),
            Input::Done(never) => match never {},
        }
    }

    fn calendar_changed(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        self.describe(here, ctx.now);
    }
}

impl Proactive {
    /// A recipe with nothing to do yet.
    pub fn new(config: Config, me: NodeId) -> Proactive {
        let helpers = Helpers::restore(&config.helpers, me, std::iter::empty());
        Proactive { config, helpers, open: BTreeMap::new() }
    }

    /// What peers can fill, with the limit of each.
    pub fn queues(&self) -> impl Iterator<Item = (&'static str, usize, usize)> {
        let views = Kind::ALL.into_iter().filter_map(|kind| self.helpers.near(kind));
        let near = views.map(|view| ("near nodes", view.len(), usize::from(VIEW_MAX)));
        let met = self.open.values().flat_map(|search| search.met());
        let met = met.max().map(|met| ("nodes met by an iteration", met, round::MET_MAX));
        near.chain(met)
    }

    /// The helper overlays.
    pub fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    /// How many jobs it looks for a place for, or for a better one.
    pub fn searches(&self) -> usize {
        self.open.len()
    }

    /// What the best set of a job cost after each iteration so far, whether it was committed or not.
    pub fn course(&self, job: JobId) -> &[Option<Cost>] {
        self.open.get(&job).map_or(&[], |search| search.course())
    }

    /// Says of this node what its machine and calendar are.
    fn describe(&mut self, here: &Here<'_>, now: Time) {
        let capacity = &here.machine.capacity;
        let profile =
            Profile::default().of_machine(here.machine).of_calendar(here.calendar.timeline(), capacity, now);
        self.helpers.describe(profile);
    }

    /// The random layer begins with, and falls back on, the neighbours that the node's own overlay has.
    fn meet(&mut self, here: &Here<'_>, ctx: &mut Ctx<'_, Proactive>) {
        // Fewer than half: it is young, or what is left of one side of a cut.
        if self.helpers.random().degree() < usize::from(self.config.helpers.random.cache) / 2 {
            let known: Box<[NodeId]> = here.overlay.neighbours().collect();
            if !known.is_empty() {
                self.tell_helpers(Input::Command(cyclon::Command::Meet(known)), ctx);
            }
        }
    }

    /// The driver has measured how long a word to a node and back takes.
    pub fn measured(&mut self, node: NodeId, round_trip: Span) {
        self.helpers.measured(node, round_trip);
    }

    /// A node cannot be reached: the helper overlays do without it.
    pub fn gone(&mut self, node: NodeId) {
        self.helpers.forget(node);
    }

    /// Silence in the helper overlays is theirs to mend.
    fn tell_helpers(&mut self, input: Input<Helpers>, ctx: &mut Ctx<'_, Proactive>) {
        let _silent = ctx.layer(|ctx| self.helpers.handle(input, ctx));
    }

    /// What this node says to a question.
    fn answer(&self, ask: &Ask, here: &Here<'_>, ctx: &Ctx<'_, Proactive>) -> Tell {
        let Ask { job, round, ref needs, overlay, ref labels } = *ask;
        let known = match overlay.and_then(|kind| self.helpers.near(kind)) {
            Some(view) => Known::Near(view.iter().take(KNOWN_MAX).cloned().collect()),
            None => {
                let random = self.helpers.random().neighbours();
                let others = here.overlay.neighbours();
                let mut known: Vec<NodeId> = random.chain(others).filter(|&node| node != ctx.me).collect();
                known.sort_unstable();
                known.dedup();
                known.truncate(KNOWN_MAX);
                Known::Random(known.into())
            }
        };
        Tell { job, round, profile: *self.helpers.profile(), answer: offer(job, needs, labels, here), known }
    }

    /// The helper overlay that goes with a criterion.
    fn overlay_for(&self, measure: Option<&Measure>) -> Option<Kind> {
        if self.config.variant == Variant::Basic {
            return None;
        }
        let kind = match measure? {
            Measure::Closest | Measure::Near(_) => Kind::Coordinates,
            Measure::Wait | Measure::Finish => Kind::FirstSlot,
            Measure::Fastest => Kind::Resources,
            // Those that are alike are just what is not wanted here; prices have no overlay.
            Measure::Spread | Measure::Domains(_) | Measure::Cheapest => return None,
        };
        self.helpers.near(kind).map(|_| kind)
    }
}

/// Whether this node would run a job, and when.
fn offer(job: JobId, needs: &Needs, labels: &[Name], here: &Here<'_>) -> Answer {
    if !matches(needs, here.machine) {
        return Answer::Unfit;
    }
    if let Some(clause) = constraint::refusal(needs.constraint(), here.machine) {
        return Answer::Excluded(u8::try_from(clause).unwrap_or(u8::MAX));
    }
    Answer::Yes(Offer {
        calendar: here.calendar.snapshot_without(job),
        speed: here.machine.speed,
        price: price(here.machine),
        labels: labels.iter().take(LABELS_MAX).map(|label| label_tag(here.machine, label)).collect(),
    })
}

/// What the machine's owner asks for: its label `price`; nothing if there is none, or it is no number.
fn price(machine: &Machine) -> u32 {
    let price = machine.labels.get("price").and_then(|price| price.as_str().parse::<Thousandths>().ok());
    price.map_or(0, Thousandths::get)
}

/// A number for the value of a label; 0 if there is none.
fn label_tag(machine: &Machine, label: &Name) -> u32 {
    machine.labels.get(label.as_str()).map_or(0, |value| tag_of(value.as_str()))
}
