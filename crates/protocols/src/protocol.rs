//! The contract between what a node decides and who carries it out.
//!
//! A protocol is a value with one method: [`Protocol::handle`] takes an [`Input`] and asks for effects through its
//! [`Ctx`]. It knows no clock, no socket, no disk and no thread; a *driver* (the simulator's world, the daemon)
//! owns those. A driver's duties, in order of how easily they are forgotten:
//!
//! 1. Effects happen in the order asked. Nothing asked after a [`Ctx::save`] leaves the node before the record is
//!    durable, and that includes effects of later inputs.
//! 2. After [`Protocol::restore`] comes [`Input::Boot`], then everything else. A restored node keeps every promise
//!    that its records made; what was not saved is forgotten, and so are all timers.
//! 3. Timers are never cancelled: they name their subject, and a stale one finds nothing to do.
//! 4. Inputs due at the same time come in the order (receiver, sender, sender's count).
//! 5. A node draws chance only from [`Ctx::chance`], its own stream; delays and losses of what it sends come from
//!    another stream of the same node, so that adding a node leaves the luck of the others unchanged.
//! 6. A message to oneself comes back as an input of its own, at once and never lost.
//! 7. Reports are told, never acted upon: what the world shall do is a [`Ctx::act`], and every action that is not
//!    fire-and-forget comes back as one [`Input::Done`].
//!
//! A protocol does not fail. A peer's nonsense is dropped and reported; an own broken invariant is an `assert!`.

use std::fmt::Debug;

use shoal_model::{NodeId, Span, Time};

/// The random stream of a node. Small, because a simulation keeps two for each of a million nodes.
pub type Chance = rand_xoshiro::Xoshiro128PlusPlus;

/// What a node, or a layer of it, hears, says and asks for.
pub trait Layer: Sized {
    /// What the user, or the layer above, asks for.
    type Command: Clone + Debug + Send;
    /// What peers say to each other.
    type Message: Message;
    /// What it asked to be reminded of.
    type Timer: Clone + Debug + Send;
    /// What must survive a crash.
    type Record: Record;
    /// What only the driver can do: start a process, stage a file.
    type Action: Clone + Debug + Send;
    /// What came of an action.
    type Outcome: Clone + Debug + Send;
    /// What the user, or the layer above, gets to know.
    type Event: Clone + Debug + Send;
}

/// A layer that stands on its own: it decides from its inputs and its own state alone.
///
/// A layer that has to look at the ones beneath it, as a recipe looks at the overlay and the calendar, has a
/// `handle` with one argument more.
pub trait Protocol: Layer {
    /// What it is told at its making.
    type Config;

    /// Makes the node `me` from what it saved; a new node has saved nothing.
    fn restore(config: &Self::Config, me: NodeId, records: impl Iterator<Item = Self::Record>) -> Self;

    /// Takes one input and asks for what follows from it.
    fn handle(&mut self, input: Input<Self>, ctx: &mut Ctx<'_, Self>);

    /// Reads what most inputs need, and returns something that depends on it but means nothing.
    ///
    /// A driver of a million nodes calls it some inputs ahead, so that the memory is there when it is needed. A node
    /// that is never looked at ahead behaves the same.
    fn glance(&self) -> u64 {
        0
    }
}

/// What can happen to a node.
#[derive(Clone, Debug)]
pub enum Input<P: Layer> {
    /// The first input of each life: set timers, take up what the records left open.
    Boot,
    /// The user, or the layer above, asks for something.
    Command(P::Command),
    /// A peer says something.
    Message {
        /// Who says it; the driver vouches for that.
        from: NodeId,
        /// What it says.
        message: P::Message,
    },
    /// The time has come that was asked for.
    Timer(P::Timer),
    /// An action has ended.
    Done(P::Outcome),
}

/// What peers say to each other, with what it costs to say it.
pub trait Message: Clone + Debug + Send {
    /// The names of all kinds of message, for counting.
    const KINDS: &'static [&'static str];

    /// Which of the kinds this is.
    fn kind(&self) -> usize;

    /// The bytes that this message is accounted for, headers included.
    fn bytes(&self) -> u64;

    /// Calls `mention` with each node that this message speaks of, sender and receiver apart: whoever hears it may want
    /// to speak to them, and must be able to find out where they are.
    fn mentions(&self, _mention: &mut dyn FnMut(NodeId)) {}
}

/// What must survive a crash. Of two records with one key the later counts, so that a journal can be compacted.
pub trait Record: Clone + Debug + Send {
    /// What the record is about.
    type Key: Clone + Debug + Ord + Send;

    /// What this record is about.
    fn key(&self) -> Self::Key;
}

/// The key of a protocol's records.
pub type KeyOf<P> = <<P as Layer>::Record as Record>::Key;

/// Where effects go: the simulator's agenda, the daemon's batch, a test's list.
pub trait Out<P: Layer> {
    /// Sends a message; it may be lost, doubled or late.
    fn send(&mut self, to: NodeId, message: P::Message);
    /// Asks for an [`Input::Timer`] at the given time, by this node's clock.
    fn wake(&mut self, at: Time, timer: P::Timer);
    /// Makes a record durable in place of any with the same key.
    fn save(&mut self, record: P::Record);
    /// Durably drops the record with this key.
    fn erase(&mut self, key: KeyOf<P>);
    /// Has the driver do something.
    fn act(&mut self, action: P::Action);
    /// Tells the user, or the layer above.
    fn report(&mut self, event: P::Event);
}

/// All that a protocol may know of the world, and all that it may ask of it.
pub struct Ctx<'a, P: Layer> {
    /// The time by this node's clock: monotonic, but neither exact nor equal everywhere.
    pub now: Time,
    /// This node.
    pub me: NodeId,
    /// This node's own chance.
    pub chance: &'a mut Chance,
    out: &'a mut dyn Out<P>,
}

impl<'a, P: Layer> Ctx<'a, P> {
    /// What a driver hands in with each input.
    pub fn new(now: Time, me: NodeId, chance: &'a mut Chance, out: &'a mut dyn Out<P>) -> Ctx<'a, P> {
        Ctx { now, me, chance, out }
    }

    /// Sends a message; it may be lost, doubled or late.
    pub fn send(&mut self, to: NodeId, message: P::Message) {
        self.out.send(to, message);
    }

    /// Asks to be reminded at a time.
    pub fn wake_at(&mut self, at: Time, timer: P::Timer) {
        self.out.wake(at, timer);
    }

    /// Asks to be reminded after a while.
    pub fn wake_after(&mut self, span: Span, timer: P::Timer) {
        self.out.wake(self.now + span, timer);
    }

    /// Makes a record durable before anything asked later leaves.
    pub fn save(&mut self, record: P::Record) {
        self.out.save(record);
    }

    /// Durably drops the record with this key.
    pub fn erase(&mut self, key: KeyOf<P>) {
        self.out.erase(key);
    }

    /// Has the driver do something.
    pub fn act(&mut self, action: P::Action) {
        self.out.act(action);
    }

    /// Tells the user, or the layer above.
    pub fn report(&mut self, event: P::Event) {
        self.out.report(event);
    }

    /// Lets a layer speak through this protocol, and returns what it reported to us.
    ///
    /// Costs nothing where the layer reports nothing: an empty `Vec` owns no memory.
    #[must_use = "what a layer reports is for its host to act upon or to pass on"]
    pub fn layer<L: Layer>(&mut self, speak: impl FnOnce(&mut Ctx<'_, L>)) -> Vec<L::Event>
    where
        P: Hosts<L>,
    {
        let mut lift = Lift { out: &mut *self.out, heard: Vec::new() };
        speak(&mut Ctx { now: self.now, me: self.me, chance: self.chance, out: &mut lift });
        lift.heard
    }
}

/// A protocol that carries another as a layer, and wraps what it asks for.
pub trait Hosts<L: Layer>: Layer {
    /// Wraps a message.
    fn message(message: L::Message) -> Self::Message;
    /// Wraps a timer.
    fn timer(timer: L::Timer) -> Self::Timer;
    /// Wraps a record.
    fn record(record: L::Record) -> Self::Record;
    /// Wraps the key of a record.
    fn key(key: KeyOf<L>) -> KeyOf<Self>;
    /// Wraps an action.
    fn action(action: L::Action) -> Self::Action;
}

/// Passes a layer's effects on as its host's, and keeps what it reports.
struct Lift<'a, H: Layer, L: Layer> {
    out: &'a mut dyn Out<H>,
    heard: Vec<L::Event>,
}

impl<H: Hosts<L>, L: Layer> Out<L> for Lift<'_, H, L> {
    fn send(&mut self, to: NodeId, message: L::Message) {
        self.out.send(to, H::message(message));
    }

    fn wake(&mut self, at: Time, timer: L::Timer) {
        self.out.wake(at, H::timer(timer));
    }

    fn save(&mut self, record: L::Record) {
        self.out.save(H::record(record));
    }

    fn erase(&mut self, key: KeyOf<L>) {
        self.out.erase(H::key(key));
    }

    fn act(&mut self, action: L::Action) {
        self.out.act(H::action(action));
    }

    fn report(&mut self, event: L::Event) {
        self.heard.push(event);
    }
}

/// Of this there is none: the record, action or outcome of a protocol that needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Never {}

impl Record for Never {
    type Key = Never;

    fn key(&self) -> Never {
        *self
    }
}
