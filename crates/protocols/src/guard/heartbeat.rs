//! Heartbeat: tells which of the nodes that matter have fallen silent, and when they are back.
//!
//! ```text
//! watcher             watched
//!     │── Ping 1 ────────▶│  at once
//!     │◀───────── Pong 1 ─│  its round trip sets the next timeout
//!     │                   │  … a period without a sign of life
//!     │── Ping 4 ────────▶╳
//!     │── Ping 6 ────────▶╳  a timeout later, and again until `misses` have gone unanswered
//!     ▼ Suspected            now the gaps between pings double up to a bound, so that the dead cost little
//!     │── Ping 13 ───────▶│
//!     │◀──────── Pong 13 ─│
//!     ▼ Back                 and the periods begin again
//! ```
//!
//! Only watched nodes cost traffic, and of these only the quiet ones: whatever they say counts ([`Heartbeat::heard`]), so
//! two nodes that watch each other share all pings but those that cross. Why a node is watched is its host's to say,
//! as a *reason*; a node is watched while it has one. Reasons instead of a count make the commands idempotent, and
//! keep whoever was refused from ending the watch of another.
//!
//! Literature, and what is done otherwise:
//! - Jacobson and Karels, 1988 (RFC 6298): timeout = smoothed round trip + 4 deviations. Each ping has its number, so
//!   there is no doubt which one an answer belongs to (Karn), and even an answer that came too late teaches: that
//!   is how the timeout grows for a node that turns slow. No doubling before suspicion, or its bound would suffer.
//! - Chandra and Toueg, 1996: dead nodes are suspected in the end, living ones less and less. Nobody is ever declared
//!   lost: how long a silence may last is a question about the job that waits, not about the node.
//! - φ accrual (Hayashibara et al., 2004): a level of suspicion from the distribution of arrivals. Our hosts need a
//!   yes or no within a stated time, and cores are integers.
//! - SWIM (Das et al., 2002): random probing of everyone, by way of others, and rumours of the verdict. Here only
//!   those who have a reason ask, and judge for themselves: who cannot reach a node itself has lost it anyway, and no
//!   third party can talk it out of trusting one. A cut in one direction may thus be seen by one side only.
//! - Lifeguard (Dadgar et al., 2018): a node first doubts itself. Here a timer that comes much too late shows that this
//!   node slept; pings from before prove nothing then, and everybody gets a fresh round.
//!
//! Left out: a watched node that restarts between two pings goes unnoticed; what it forgot is for its host to tell.

mod config;
mod round_trip;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hash;

use minicbor::{CborLen, Decode, Encode};
use rand::RngExt;
use shoal_model::{NodeId, Span, Time};

use self::round_trip::RoundTrip;
use crate::protocol::{self, Chance, Ctx, Input, Layer, Never, Protocol};

pub use self::config::{Config, ConfigError, PINGS_MAX};

/// Fresh rounds in a row for one node without a sign of life from it: who always oversleeps must still suspect the
/// dead.
pub const PARDONS_MAX: u8 = 4;

/// Why a node is watched: the host's own word for it, such as a job's id.
pub trait Reason: Clone + Debug + Ord + Hash + Send {}

impl<R: Clone + Debug + Ord + Hash + Send> Reason for R {}

/// What the layer above asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<R> {
    /// Watch this node; said twice for one reason, it counts once. A node that is already suspected stays so without
    /// another event. Watching oneself costs nothing and finds nothing.
    Watch {
        /// Whom.
        node: NodeId,
        /// Why.
        reason: R,
    },
    /// This reason is gone; without any left the node is forgotten.
    Unwatch {
        /// Whom.
        node: NodeId,
        /// Why it was watched.
        reason: R,
    },
}

/// What an accounted message has besides its number.
const HEADER_BYTES: u64 = 32;
/// What a ping's number is accounted for.
const NUMBER_BYTES: u64 = 8;

/// What nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Are you there? Answered by [`Message::Pong`] with the same number, by anyone.
    #[n(0)]
    Ping(#[n(0)] u64),
    /// I was when I got this.
    #[n(1)]
    Pong(#[n(0)] u64),
}

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &["ping", "pong"];

    fn kind(&self) -> usize {
        match self {
            Message::Ping(_) => 0,
            Message::Pong(_) => 1,
        }
    }

    fn bytes(&self) -> u64 {
        HEADER_BYTES + NUMBER_BYTES
    }
}

/// Time to look after a watched node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    node: NodeId,
    /// Which look at the node; any but the last one asked for is stale.
    number: u64,
    /// When it was due: what it is late by is what this node slept.
    due: Time,
}

/// What the layer above gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event<R> {
    /// A watched node has left all questions open.
    Suspected {
        /// Who.
        node: NodeId,
        /// Since its last sign of life, or since it is watched.
        silent_for: Span,
    },
    /// A suspected node has given a sign of life.
    Back {
        /// Who.
        node: NodeId,
        /// Since its last sign of life before that.
        away_for: Span,
    },
    /// A node is not watched, because a limit is reached.
    Refused {
        /// Who.
        node: NodeId,
        /// Why it should have been.
        reason: R,
        /// What there is too much of.
        limit: Limit,
    },
    /// This node itself was away, and its host's own deadlines may have passed unseen.
    Slept {
        /// By how much the first timer after it was late.
        late_by: Span,
    },
}

/// What there can be too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Watched nodes: [`Config::nodes_max`].
    Nodes,
    /// Reasons for watching: [`Config::reasons_max`].
    Reasons,
}

/// Whom a node watches, why, and what it thinks of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat<R> {
    config: Config,
    me: NodeId,
    watches: BTreeMap<NodeId, Watch<R>>,
    /// The reasons of all watches together.
    reasons: usize,
    /// When this node last found that it had slept.
    awake_since: Time,
}

impl<R: Reason> Layer for Heartbeat<R> {
    type Command = Command<R>;
    type Message = Message;
    type Timer = Look;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event<R>;
}

impl<R: Reason> Protocol for Heartbeat<R> {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, _records: impl Iterator<Item = Never>) -> Heartbeat<R> {
        Heartbeat { config: *config, me, watches: BTreeMap::new(), reasons: 0, awake_since: Time::ZERO }
    }

    fn handle(&mut self, input: Input<Self>, ctx: &mut Ctx<'_, Self>) {
        match input {
            // What is to be watched is for the host's own records to say.
            Input::Boot => {}
            Input::Command(Command::Watch { node, reason }) => self.on_watch(node, reason, ctx),
            Input::Command(Command::Unwatch { node, reason }) => self.on_unwatch(node, &reason),
            Input::Message { from, message: Message::Ping(number) } => {
                ctx.send(from, Message::Pong(number));
                self.heard(from, ctx);
            }
            Input::Message { from, message: Message::Pong(number) } => self.on_pong(from, number, ctx),
            Input::Timer(look) => self.on_look(look, ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl<R: Reason> Heartbeat<R> {
    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether anybody is watched at all.
    pub fn is_on(&self) -> bool {
        self.config.watch
    }

    /// The watched nodes, by id.
    pub fn watched(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.watches.keys().copied()
    }

    /// Why a node is watched, in the order of the reasons: for whom its silence matters.
    pub fn reasons(&self, node: NodeId) -> impl Iterator<Item = &R> + '_ {
        self.watches.get(&node).into_iter().flat_map(|watch| &watch.reasons)
    }

    /// Whether a node is watched and has been silent for too long.
    pub fn suspects(&self, node: NodeId) -> bool {
        self.watches.get(&node).is_some_and(|watch| matches!(watch.phase, Phase::Suspecting { .. }))
    }

    /// How long a watched node would now be given for an answer.
    pub fn timeout(&self, node: NodeId) -> Option<Span> {
        self.watches.get(&node).map(|watch| watch.timeout(&self.config))
    }

    /// Takes note that a node has just said something, anything: the host calls this for each message.
    pub fn heard(&mut self, from: NodeId, ctx: &mut Ctx<'_, Self>) {
        if let Some(watch) = self.watches.get_mut(&from) {
            watch.on_life(from, &self.config, ctx);
        }
    }

    fn on_watch(&mut self, node: NodeId, reason: R, ctx: &mut Ctx<'_, Self>) {
        if !self.config.watch {
            return;
        }
        let known = self.watches.get_mut(&node);
        if node == self.me || known.as_ref().is_some_and(|watch| watch.reasons.contains(&reason)) {
            return;
        }
        if self.reasons >= self.config.reasons_max as usize {
            ctx.report(Event::Refused { node, reason, limit: Limit::Reasons });
        } else if let Some(watch) = known {
            watch.reasons.insert(reason);
            self.reasons += 1;
        } else if self.watches.len() >= self.config.nodes_max as usize {
            ctx.report(Event::Refused { node, reason, limit: Limit::Nodes });
        } else {
            let mut watch = Watch::new(reason, ctx.now);
            watch.ask(node, 0, &self.config, ctx);
            self.watches.insert(node, watch);
            self.reasons += 1;
        }
    }

    fn on_unwatch(&mut self, node: NodeId, reason: &R) {
        let Some(watch) = self.watches.get_mut(&node) else { return };
        if watch.reasons.remove(reason) {
            self.reasons -= 1;
        }
        if watch.reasons.is_empty() {
            self.watches.remove(&node);
        }
    }

    fn on_pong(&mut self, from: NodeId, number: u64, ctx: &mut Ctx<'_, Self>) {
        // Doubled, made up, or for a watch that is over: a ping can be answered once, and none of these finds one.
        let Some(watch) = self.watches.get_mut(&from) else { return };
        let Some(place) = watch.open.iter().position(|ping| ping.number == number) else { return };
        let ping = watch.open.remove(place);
        // What this node slept is not the other's slowness.
        if ping.sent >= self.awake_since {
            watch.round_trip.learn(ctx.now.since(ping.sent).min(self.config.timeout_most()));
        }
        watch.on_life(from, &self.config, ctx);
    }

    fn on_look(&mut self, look: Look, ctx: &mut Ctx<'_, Self>) {
        // Stale or not, a late timer shows that this node slept; the others of the same sleep add nothing.
        let late_by = ctx.now.since(look.due);
        if late_by > self.config.late() && look.due > self.awake_since {
            self.awake_since = ctx.now;
            ctx.report(Event::Slept { late_by });
        }
        if let Some(watch) = self.watches.get_mut(&look.node).filter(|watch| watch.count == look.number) {
            watch.on_look(look.node, &self.config, self.awake_since, ctx);
        }
    }
}

/// What is known of a watched node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watch<R> {
    /// Never empty.
    reasons: BTreeSet<R>,
    phase: Phase,
    /// The last sign of life, or else the beginning of the watch.
    heard: Time,
    round_trip: RoundTrip,
    /// Numbers pings and looks; counts on from the time of the beginning in microseconds, so that nothing meant for
    /// an earlier watch, or for this node before a crash, fits a later one.
    count: u64,
    /// Pings without an answer, the last of them at most [`PINGS_MAX`].
    open: Vec<Ping>,
    /// Fresh rounds since the last sign of life.
    pardons: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// It lives; the next ping goes out when the last sign of life is this old.
    Resting { rest: Span },
    /// A ping is out, and so many before it in this round have waited in vain.
    Asking { missed: u8 },
    /// It is suspected; so many pings have gone out since.
    Suspecting { probes: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ping {
    number: u64,
    sent: Time,
}

impl<R: Reason> Watch<R> {
    fn new(reason: R, now: Time) -> Watch<R> {
        Watch {
            reasons: BTreeSet::from([reason]),
            phase: Phase::Asking { missed: 0 },
            heard: now,
            round_trip: RoundTrip::default(),
            count: now.as_micros(),
            open: Vec::new(),
            pardons: 0,
        }
    }

    fn timeout(&self, config: &Config) -> Span {
        let patience = self.round_trip.patience().unwrap_or(Span::MAX);
        patience.clamp(config.timeout_least(), config.timeout_most())
    }

    fn on_life(&mut self, node: NodeId, config: &Config, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        let away_for = ctx.now.since(self.heard);
        self.heard = ctx.now;
        self.pardons = 0;
        match self.phase {
            // The look that is due anyway sees how long ago this was: a talkative node sets no timers.
            Phase::Resting { .. } => return,
            Phase::Asking { .. } => {}
            Phase::Suspecting { .. } => ctx.report(Event::Back { node, away_for }),
        }
        let rest = shortened(config.period(), 8, ctx.chance);
        self.phase = Phase::Resting { rest };
        self.look_after(node, rest, ctx);
    }

    fn on_look(&mut self, node: NodeId, config: &Config, awake_since: Time, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        match self.phase {
            Phase::Resting { rest } => match rest.saturating_sub(ctx.now.since(self.heard)) {
                Span::ZERO => self.ask(node, 0, config, ctx),
                left => self.look_after(node, left, ctx),
            },
            Phase::Asking { .. } if self.asked_before(awake_since) && self.pardons < PARDONS_MAX => {
                self.pardons += 1;
                self.ask(node, 0, config, ctx);
            }
            Phase::Asking { missed } if missed + 1 < config.misses => self.ask(node, missed + 1, config, ctx),
            Phase::Asking { .. } => {
                ctx.report(Event::Suspected { node, silent_for: ctx.now.since(self.heard) });
                self.probe_later(node, 0, config, ctx);
            }
            Phase::Suspecting { probes } => {
                self.ping(node, ctx);
                self.probe_later(node, probes.saturating_add(1), config, ctx);
            }
        }
    }

    fn asked_before(&self, time: Time) -> bool {
        self.open.last().is_some_and(|ping| ping.sent < time)
    }

    /// Sends a ping, and looks again when its answer should be here.
    fn ask(&mut self, node: NodeId, missed: u8, config: &Config, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        self.phase = Phase::Asking { missed };
        self.ping(node, ctx);
        self.look_after(node, self.timeout(config), ctx);
    }

    /// Waits with the next ping to a suspected node; an answer to any remembered one is welcome meanwhile.
    fn probe_later(&mut self, node: NodeId, probes: u8, config: &Config, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        self.phase = Phase::Suspecting { probes };
        let gap = shortened(config.gap(probes), 4, ctx.chance);
        self.look_after(node, gap, ctx);
    }

    fn ping(&mut self, node: NodeId, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        if self.open.len() == PINGS_MAX {
            self.open.remove(0);
        }
        let number = self.next();
        self.open.push(Ping { number, sent: ctx.now });
        ctx.send(node, Message::Ping(number));
    }

    /// Asks for the next look; the one asked for before is stale from now on.
    fn look_after(&mut self, node: NodeId, span: Span, ctx: &mut Ctx<'_, Heartbeat<R>>) {
        let due = ctx.now + span;
        let number = self.next();
        ctx.wake_at(due, Look { node, number, due });
    }

    fn next(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        self.count
    }
}

/// The span less a random share of at most one `part`-th: nodes fall out of step, and bounds stay bounds.
fn shortened(span: Span, part: u64, chance: &mut Chance) -> Span {
    let cut = chance.random_range(0..=span.as_micros() / part);
    span.saturating_sub(Span::from_micros(cut))
}
