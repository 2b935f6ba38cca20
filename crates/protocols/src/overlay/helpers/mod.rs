//! Helper overlays: CYCLON whose entries say what their nodes are, and on it one VICINITY for each metric.
//!
//! ```text
//! ┌─────────────┬────────────┬───────────┬──────────────┐
//! │ coordinates │ first slot │ resources │ organisation │  VICINITY each: the nearest by that
//! ├─────────────┴────────────┴───────────┴──────────────┤
//! │ CYCLON: random nodes, with their profiles           │
//! └─────────────────────────────────────────────────────┘
//! ```
//!
//! Paper: Fiscato, Costa, Pierre, 2008, section 3.3. Where nobody gave the node its coordinates it finds them by
//! Vivaldi: from time to time it pings a near node and a random one a few times, and takes the quickest answer of each. What
//! a driver has measured meanwhile is one of the answers.

pub mod message;
pub mod profile;

use std::collections::BTreeMap;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use shoal_model::{Coordinates, NodeId, Span};

use super::cyclon::{self, CACHE_MAX, Cyclon, Entry};
use super::vicinity::{self, Vicinity};
use super::vivaldi::{Quickest, Vivaldi};
use crate::protocol::{Chance, Ctx, Hosts, Input, KeyOf, Layer, Never, Protocol};
pub use message::Message;
pub use profile::{Kind, Kinds, Profile};

/// What the helper overlays can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The random layer.
    pub random: cyclon::Config,
    /// The layers on it.
    pub near: vicinity::Config,
    /// By what nodes are near; a layer each.
    pub overlays: Kinds,
    /// The time between two exchanges of a layer, in milliseconds; the paper has "around" 10 s.
    pub period_ms: u32,
    /// The time between two measurements of coordinates, in milliseconds.
    pub measure_ms: u32,
    /// Pings of a measurement, of which the quickest counts.
    pub pings: u8,
    /// Whether coordinates are measured; else the driver gives them, if it knows.
    pub measure: bool,
    /// Where this node is, if somebody knows.
    #[serde(skip)]
    pub coordinates: Option<Coordinates>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            random: cyclon::Config::default(),
            near: vicinity::Config::default(),
            overlays: Kinds::of(&[Kind::Coordinates, Kind::FirstSlot]),
            period_ms: 10_000,
            measure_ms: 20_000,
            pings: 4,
            measure: true,
            coordinates: None,
        }
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The random layer's.
    #[error("random: {0}")]
    Random(#[from] cyclon::ConfigError),
    /// The layers' on it.
    #[error("near: {0}")]
    Near(#[from] vicinity::ConfigError),
    /// A period of nothing.
    #[error("{0} = 0: must be at least 1")]
    Zero(&'static str),
}

impl Config {
    /// Says what makes no sense, if anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.random.check()?;
        self.near.check()?;
        let zero =
            [("period_ms", self.period_ms), ("measure_ms", self.measure_ms), ("pings", self.pings.into())];
        match zero.into_iter().find(|&(_, value)| value == 0) {
            Some((field, _)) => Err(ConfigError::Zero(field)),
            None => Ok(()),
        }
    }

    fn period(&self) -> Span {
        Span::from_millis(u64::from(self.period_ms))
    }
}

/// What the helper overlays want to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// By the random layer.
    Random(cyclon::Cycle),
    /// Time for the next exchange of this layer.
    Near(Kind),
    /// Time for the next measurement of coordinates.
    Measure,
}

/// What the layer above gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A neighbour did not answer, and is no longer one.
    Silent(NodeId),
}

/// A node's helper overlays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Helpers {
    config: Config,
    random: Cyclon<Option<Profile>>,
    near: Vec<Vicinity<Profile, Kind>>,
    vivaldi: Vivaldi,
    /// The nodes that are being pinged.
    pinged: Vec<Pinged>,
    /// What the driver has measured since they last were.
    measured: BTreeMap<NodeId, Span>,
    profile: Profile,
    /// What the random nodes have last said of themselves: CYCLON does not take in anew whom it has.
    said: BTreeMap<NodeId, Profile>,
    /// The random nodes that have said what they are, until their layer is told something: every layer asks for them.
    profiled: Option<Box<[Entry<Profile>]>>,
}

/// Profiles that are remembered of random nodes, at most.
const SAID_MAX: usize = 2 * CACHE_MAX;

/// Round trips that a driver measured and that are not taken in, at most.
const MEASURED_MAX: usize = 256;

/// A node that is being pinged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pinged {
    node: NodeId,
    left: u8,
    quickest: Quickest,
    /// Where it said that it is, and how sure it was.
    there: Option<(Coordinates, u32)>,
}

impl Layer for Helpers {
    type Command = cyclon::Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Event;
}

impl Hosts<Cyclon<Option<Profile>>> for Helpers {
    fn message(message: cyclon::Message<Option<Profile>>) -> Message {
        Message::Random(message)
    }

    fn timer(timer: cyclon::Cycle) -> Timer {
        Timer::Random(timer)
    }

    fn record(record: Never) -> Never {
        record
    }

    fn key(key: KeyOf<Cyclon<Option<Profile>>>) -> Never {
        key
    }

    fn action(action: Never) -> Never {
        action
    }
}

impl Protocol for Helpers {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, _records: impl Iterator<Item = Never>) -> Helpers {
        let layer = |kind: Kind| Vicinity::new(config.near, kind, me);
        let mut helpers = Helpers {
            config: *config,
            random: Cyclon::restore(&config.random, me, std::iter::empty()),
            near: config.overlays.iter().map(layer).collect(),
            vivaldi: Vivaldi::default(),
            pinged: Vec::new(),
            measured: BTreeMap::new(),
            profile: Profile::default(),
            said: BTreeMap::new(),
            profiled: None,
        };
        helpers.describe(Profile::default());
        helpers
    }

    fn handle(&mut self, input: Input<Helpers>, ctx: &mut Ctx<'_, Helpers>) {
        match input {
            Input::Boot => self.boot(ctx),
            Input::Command(command) => self.tell_random(Input::Command(command), ctx),
            Input::Message { from, message } => self.on_message(from, message, ctx),
            Input::Timer(Timer::Random(cycle)) => self.tell_random(Input::Timer(cycle), ctx),
            Input::Timer(Timer::Near(kind)) => self.on_near(kind, ctx),
            Input::Timer(Timer::Measure) => self.on_measure(ctx),
            Input::Done(never) => match never {},
        }
    }
}

impl Helpers {
    /// What this node says of itself.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Says this of the node from now on; where it is it knows itself.
    pub fn describe(&mut self, profile: Profile) {
        let (coordinates, error) = match self.config.coordinates {
            Some(given) => (given, 0),
            None => (self.vivaldi.coordinates(), self.vivaldi.error()),
        };
        self.profile = Profile { coordinates, error, ..profile };
        self.random.describe(Some(self.profile));
    }

    /// The random nodes that are known.
    pub fn random(&self) -> &Cyclon<Option<Profile>> {
        &self.random
    }

    /// Those nearest by a metric, the nearest first; none if there is no overlay for it.
    pub fn near(&self, kind: Kind) -> Option<&[Entry<Profile>]> {
        self.layer(kind).map(|layer| self.near[layer].view())
    }

    /// The overlay for a metric.
    pub fn vicinity(&self, kind: Kind) -> Option<&Vicinity<Profile, Kind>> {
        self.layer(kind).map(|layer| &self.near[layer])
    }

    /// A node found dead by other means makes room everywhere.
    pub fn forget(&mut self, node: NodeId) {
        self.profiled = None;
        self.random.forget(node);
        self.near.iter_mut().for_each(|layer| layer.forget(node));
    }

    /// A round trip that was measured by other means: one of the answers of the next measurement of that node.
    pub fn measured(&mut self, node: NodeId, round_trip: Span) {
        if self.measured.len() >= MEASURED_MAX && !self.measured.contains_key(&node) {
            self.measured.pop_first();
        }
        self.measured.insert(node, round_trip);
    }

    fn layer(&self, kind: Kind) -> Option<usize> {
        self.near.iter().position(|layer| *layer.metric() == kind)
    }

    fn boot(&mut self, ctx: &mut Ctx<'_, Helpers>) {
        self.tell_random(Input::Boot, ctx);
        // Random phases keep the nodes, and a node's layers, from gossiping in step.
        for layer in 0..self.near.len() {
            let kind = *self.near[layer].metric();
            let phase = ctx.chance.random_range(0..self.config.period().as_micros());
            ctx.wake_after(Span::from_micros(phase), Timer::Near(kind));
        }
        if self.config.coordinates.is_none() {
            let phase = ctx.chance.random_range(0..u64::from(self.config.measure_ms));
            ctx.wake_after(Span::from_millis(phase), Timer::Measure);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, ctx: &mut Ctx<'_, Helpers>) {
        match message {
            Message::Random(message) => {
                self.note_profiles(&message);
                self.tell_random(Input::Message { from, message }, ctx);
            }
            Message::Ask(kind, entries) => {
                let Some(layer) = self.layer(kind) else { return };
                let Helpers { random, said, profiled, near, profile, .. } = self;
                let random = profiled.get_or_insert_with(|| with_profiles(random, said));
                if let Some(answer) = near[layer].answer(from, &entries, profile, random) {
                    ctx.send(from, Message::Tell(kind, answer));
                }
            }
            Message::Tell(kind, entries) => {
                let Some(layer) = self.layer(kind) else { return };
                let Helpers { random, said, profiled, near, profile, .. } = self;
                let random = profiled.get_or_insert_with(|| with_profiles(random, said));
                near[layer].finish(from, &entries, profile, random);
            }
            Message::Ping => {
                ctx.send(from, Message::Pong(self.profile.coordinates, self.profile.error));
            }
            Message::Pong(coordinates, error) => self.on_pong(from, coordinates, error, ctx),
        }
    }

    /// Takes down what nodes say of themselves in a trade.
    fn note_profiles(&mut self, message: &cyclon::Message<Option<Profile>>) {
        let entries: &[Entry<Option<Profile>>] = match message {
            cyclon::Message::Shuffle(entries) | cyclon::Message::ShuffleReply(entries) => entries,
            cyclon::Message::Walk { newcomer: entry, .. } | cyclon::Message::Welcome(entry) => {
                std::slice::from_ref(entry)
            }
            cyclon::Message::Join | cyclon::Message::Held(_) => &[],
        };
        for entry in entries.iter().take(CACHE_MAX) {
            if let Some(profile) = entry.payload {
                self.said.insert(entry.node, profile);
            }
        }
        if self.said.len() > SAID_MAX {
            let known: Vec<NodeId> = self.random.neighbours().collect();
            self.said.retain(|node, _| known.contains(node));
        }
    }

    fn tell_random(&mut self, input: Input<Cyclon<Option<Profile>>>, ctx: &mut Ctx<'_, Helpers>) {
        self.profiled = None;
        for event in ctx.layer(|ctx| self.random.handle(input, ctx)) {
            let cyclon::Event::Silent(node) = event;
            ctx.report(Event::Silent(node));
        }
    }

    fn on_near(&mut self, kind: Kind, ctx: &mut Ctx<'_, Helpers>) {
        ctx.wake_after(self.config.period(), Timer::Near(kind));
        let Some(layer) = self.layer(kind) else { return };
        let Helpers { random, said, profiled, near, profile, .. } = self;
        let random = profiled.get_or_insert_with(|| with_profiles(random, said));
        let (asked, silent) = near[layer].begin(profile, random, ctx.chance);
        if let Some(node) = silent {
            ctx.report(Event::Silent(node));
        }
        if let Some((partner, entries)) = asked {
            ctx.send(partner, Message::Ask(kind, entries));
        }
    }

    /// The random nodes that have said what they are.
    pub fn profiled(&self) -> Box<[Entry<Profile>]> {
        self.profiled.clone().unwrap_or_else(|| with_profiles(&self.random, &self.said))
    }

    /// Takes in what the last measurement brought, and begins the next: a near node and a random one.
    fn on_measure(&mut self, ctx: &mut Ctx<'_, Helpers>) {
        ctx.wake_after(Span::from_millis(u64::from(self.config.measure_ms)), Timer::Measure);
        self.take_in(ctx.chance);
        let random: Vec<NodeId> = self.random.neighbours().collect();
        let near = self.near(Kind::Coordinates).unwrap_or_default();
        let pick = |nodes: usize, ctx: &mut Ctx<'_, Helpers>| ctx.chance.random_range(0..nodes);
        let mut targets = Vec::new();
        if !near.is_empty() {
            targets.push(near[pick(near.len(), ctx)].node);
        }
        if !random.is_empty() {
            targets.push(random[pick(random.len(), ctx)]);
        }
        targets.dedup();
        for node in targets {
            let mut quickest = Quickest::new();
            quickest.ask(ctx.now);
            ctx.send(node, Message::Ping);
            self.pinged.push(Pinged { node, left: self.config.pings - 1, quickest, there: None });
        }
    }

    /// Takes in what was measured: the quickest answer of each node, to where it said itself that it is.
    fn take_in(&mut self, chance: &mut Chance) {
        for pinged in std::mem::take(&mut self.pinged) {
            if let (Some(rtt), Some((there, error))) = (pinged.quickest.least(), pinged.there) {
                let rtt = self.measured.remove(&pinged.node).map_or(rtt, |measured| measured.min(rtt));
                self.vivaldi.sample(rtt, &there, error, chance);
            }
        }
        self.describe(self.profile);
    }

    fn on_pong(&mut self, from: NodeId, coordinates: Coordinates, error: u32, ctx: &mut Ctx<'_, Helpers>) {
        let Some(pinged) = self.pinged.iter_mut().find(|pinged| pinged.node == from) else { return };
        pinged.quickest.answer(ctx.now);
        pinged.there = Some((coordinates, error));
        if pinged.left > 0 {
            pinged.left -= 1;
            pinged.quickest.ask(ctx.now);
            ctx.send(from, Message::Ping);
        }
    }
}

fn with_profiles(
    random: &Cyclon<Option<Profile>>,
    said: &BTreeMap<NodeId, Profile>,
) -> Box<[Entry<Profile>]> {
    let profiled = |Entry { node, age, payload }: Entry<Option<Profile>>| {
        let payload = said.get(&node).copied().or(payload)?;
        Some(Entry { node, age, payload })
    };
    random.entries().filter_map(profiled).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use shoal_model::{Time, coordinates};

    use super::*;

    /// How far a node takes itself to be from one that answers it after 90 ms, a hundred times, of which a driver has measured
    /// this each time.
    fn distance(measured: Option<(NodeId, Span)>) -> Span {
        let mut helpers = Helpers::restore(&Config::default(), NodeId(1), std::iter::empty());
        let there = Coordinates::ORIGIN;
        let mut chance = Chance::seed_from_u64(1);
        for _ in 0..100 {
            let mut quickest = Quickest::new();
            quickest.ask(Time::ZERO);
            quickest.answer(Time::from_millis(90));
            let there = Some((there, 100_000));
            helpers.pinged.push(Pinged { node: NodeId(2), left: 0, quickest, there });
            if let Some((node, round_trip)) = measured {
                helpers.measured(node, round_trip);
            }
            helpers.take_in(&mut chance);
        }
        coordinates::span(helpers.profile().coordinates.distance(&there))
    }

    #[test]
    fn round_trip_that_a_driver_measured_counts_where_it_is_the_quickest() {
        let about = |found: Span, millis: u64| {
            let wanted = Span::from_millis(millis);
            assert!(found.as_micros().abs_diff(wanted.as_micros()) < wanted.as_micros() / 10, "{found}");
        };
        about(distance(None), 90);
        about(distance(Some((NodeId(2), Span::from_millis(40)))), 40);
        about(distance(Some((NodeId(2), Span::from_secs(9)))), 90);
        about(distance(Some((NodeId(3), Span::from_millis(40)))), 90);
    }

    #[test]
    fn no_more_round_trips_wait_than_there_is_room_for() {
        let mut helpers = Helpers::restore(&Config::default(), NodeId(1), std::iter::empty());
        (2..1_000).for_each(|node| helpers.measured(NodeId(node), Span::from_millis(1)));
        assert_eq!(helpers.measured.len(), MEASURED_MAX);
    }
}
