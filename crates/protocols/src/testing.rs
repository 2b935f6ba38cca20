//! A scripted world for tests: a few nodes, a virtual clock, and a network that does as it is told.
//!
//! It keeps a driver's duties (see [`crate::protocol`]) in the plainest way, one input after the other, and writes down
//! what was said and reported, so that a test reads as a conversation. Large worlds are the simulator's.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use rand::SeedableRng;
use shoal_model::{NodeId, Span, Time};

use crate::protocol::{Chance, Ctx, Input, KeyOf, Out, Protocol, Record};

/// So many cases for a law, the same ones in every run; `PROPTEST_RNG_SEED=2` tries others.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::with_cases(count);
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { rng_seed, failure_persistence: None, ..default }
}

/// A message on its way, for the network to judge and for tests to look at.
pub(crate) struct Sent<M> {
    pub(crate) at: Time,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) message: M,
}

/// How the network treats a message: one copy arrives after each of these delays, none means it is lost.
type Fate = Vec<Span>;

type Judge<M> = Box<dyn FnMut(&Sent<M>) -> Fate>;

/// When, to whom, due when, from whom, that one's count: a node that is frozen gets its inputs late, but in order.
type Place = (Time, NodeId, Time, NodeId, u64);

pub(crate) struct World<P: Protocol> {
    config: P::Config,
    now: Time,
    nodes: BTreeMap<NodeId, Host<P>>,
    agenda: BTreeMap<Place, (u32, Input<P>)>,
    network: Judge<P::Message>,
    sent: Vec<Sent<P::Message>>,
    reports: Vec<(Time, NodeId, P::Event)>,
    story: String,
}

struct Host<P: Protocol> {
    core: P,
    chance: Chance,
    records: BTreeMap<KeyOf<P>, P::Record>,
    /// How often it was started: the timers of an earlier life are forgotten.
    life: u32,
    up: bool,
    frozen_until: Time,
    count: u64,
}

impl<P: Protocol> World<P> {
    /// Starts nodes 1 to `nodes` at time zero; each message takes `delay`.
    pub(crate) fn new(nodes: u64, config: P::Config, delay: Span) -> World<P> {
        let mut world = World {
            config,
            now: Time::ZERO,
            nodes: BTreeMap::new(),
            agenda: BTreeMap::new(),
            network: Box::new(move |_| vec![delay]),
            sent: Vec::new(),
            reports: Vec::new(),
            story: String::new(),
        };
        for me in (1..=nodes).map(NodeId) {
            let host = Host {
                core: P::restore(&world.config, me, std::iter::empty()),
                chance: Chance::seed_from_u64(me.0),
                records: BTreeMap::new(),
                life: 1,
                up: true,
                frozen_until: Time::ZERO,
                count: 0,
            };
            world.nodes.insert(me, host);
            world.tell(me, Input::Boot);
        }
        world
    }

    /// Puts another network in place of the one there is, for what is sent from now on.
    pub(crate) fn network(&mut self, judge: impl FnMut(&Sent<P::Message>) -> Fate + 'static) {
        self.network = Box::new(judge);
    }

    pub(crate) fn command(&mut self, node: NodeId, command: P::Command) {
        self.tell(node, Input::Command(command));
    }

    /// The node takes this input now, whatever the network thinks of it.
    pub(crate) fn tell(&mut self, node: NodeId, input: Input<P>) {
        self.speak(node, |core, ctx| core.handle(input, ctx));
    }

    /// Calls a method of a node's core, and carries out what it asks for.
    pub(crate) fn speak(&mut self, node: NodeId, speak: impl FnOnce(&mut P, &mut Ctx<'_, P>)) {
        let mut effects = Effects(Vec::new());
        let host = self.nodes.get_mut(&node).expect("such a node");
        speak(&mut host.core, &mut Ctx::new(self.now, node, &mut host.chance, &mut effects));
        for effect in effects.0 {
            self.carry_out(node, effect);
        }
    }

    /// The node stops in its tracks: what is meant for it is lost, and so is what it has not saved.
    pub(crate) fn crash(&mut self, node: NodeId) {
        self.nodes.get_mut(&node).expect("such a node").up = false;
    }

    /// Puts back what a crashed node had saved before: as if it had crashed just before it saved something else.
    pub(crate) fn unsave(&mut self, node: NodeId, record: P::Record) {
        self.nodes.get_mut(&node).expect("such a node").records.insert(record.key(), record);
    }

    /// What a node has saved.
    pub(crate) fn saved(&self, node: NodeId) -> impl Iterator<Item = &P::Record> {
        self.nodes[&node].records.values()
    }

    /// A crashed node starts again from what it saved.
    pub(crate) fn restart(&mut self, node: NodeId) {
        let host = self.nodes.get_mut(&node).expect("such a node");
        host.core = P::restore(&self.config, node, host.records.values().cloned());
        host.life += 1;
        host.up = true;
        self.tell(node, Input::Boot);
    }

    /// The node sleeps for a while: what comes in the meantime, timers and messages, waits in its order.
    pub(crate) fn freeze_for(&mut self, node: NodeId, span: Span) {
        self.nodes.get_mut(&node).expect("such a node").frozen_until = self.now + span;
    }

    /// Runs to the given time; what is due then has happened.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, node, due, from, count), (life, input)) = entry.remove_entry();
            self.now = at;
            let host = &self.nodes[&node];
            if at < host.frozen_until {
                self.agenda.insert((host.frozen_until, node, due, from, count), (life, input));
            } else if host.up && (host.life == life || !matches!(input, Input::Timer(_))) {
                self.tell(node, input);
            }
        }
        self.now = end;
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn core(&self, node: NodeId) -> &P {
        &self.nodes[&node].core
    }

    /// All messages so far, the lost ones included.
    pub(crate) fn sent(&self) -> &[Sent<P::Message>] {
        &self.sent
    }

    /// All that was reported so far: when, by whom, what.
    pub(crate) fn reports(&self) -> &[(Time, NodeId, P::Event)] {
        &self.reports
    }

    /// All that was said and reported so far, one line each.
    pub(crate) fn story(&self) -> &str {
        &self.story
    }

    fn carry_out(&mut self, node: NodeId, effect: Effect<P>) {
        let now = self.now;
        let host = self.nodes.get_mut(&node).expect("such a node");
        match effect {
            Effect::Send(to, message) => {
                let sent = Sent { at: now, from: node, to, message };
                let fate = (self.network)(&sent);
                let lost = if fate.is_empty() { " (lost)" } else { "" };
                writeln!(self.story, "{now} {node} -> {to} {:?}{lost}", sent.message)
                    .expect("a string takes all");
                for delay in fate {
                    host.count += 1;
                    let message = sent.message.clone();
                    let place = (now + delay, to, now + delay, node, host.count);
                    self.agenda.insert(place, (0, Input::Message { from: node, message }));
                }
                self.sent.push(sent);
            }
            Effect::Wake(at, timer) => {
                host.count += 1;
                // What is asked for too late comes at once: time does not go back.
                let at = at.max(self.now);
                self.agenda.insert((at, node, at, node, host.count), (host.life, Input::Timer(timer)));
            }
            Effect::Save(record) => {
                host.records.insert(record.key(), record);
            }
            Effect::Erase(key) => {
                host.records.remove(&key);
            }
            Effect::Act(action) => {
                writeln!(self.story, "{now} {node} does {action:?}").expect("a string takes all");
            }
            Effect::Report(event) => {
                writeln!(self.story, "{now} {node} {event:?}").expect("a string takes all");
                self.reports.push((now, node, event));
            }
        }
    }
}

enum Effect<P: Protocol> {
    Send(NodeId, P::Message),
    Wake(Time, P::Timer),
    Save(P::Record),
    Erase(KeyOf<P>),
    Act(P::Action),
    Report(P::Event),
}

/// Effects in the order asked.
struct Effects<P: Protocol>(Vec<Effect<P>>);

impl<P: Protocol> Out<P> for Effects<P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        self.0.push(Effect::Send(to, message));
    }

    fn wake(&mut self, at: Time, timer: P::Timer) {
        self.0.push(Effect::Wake(at, timer));
    }

    fn save(&mut self, record: P::Record) {
        self.0.push(Effect::Save(record));
    }

    fn erase(&mut self, key: KeyOf<P>) {
        self.0.push(Effect::Erase(key));
    }

    fn act(&mut self, action: P::Action) {
        self.0.push(Effect::Act(action));
    }

    fn report(&mut self, event: P::Event) {
        self.0.push(Effect::Report(event));
    }
}
