//! Nodes with a fault planted in them, to see that its checker finds it.
//!
//! [`Planted`] names those that a run can be given from outside.

use std::marker::PhantomData;

use shoal_model::{Amount, NodeId, Rank, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{
    Action, Command, Config, Event, Exit, JobMessage, Key, Message, Node, Outcome, Record, Task, Timer,
};
use shoal_protocols::{Ctx, Input, Layer, Out, Protocol};

use crate::grid::NodeLike;

/// A fault, as what it changes of a node. By default it changes nothing.
pub trait Plant: Clone + Default + Send + 'static {
    /// What the node is told at its making.
    fn configure(config: &mut Config) {
        let _ = config;
    }

    /// Whether the node finds a record of its own after a restart.
    fn remembers(record: &Record) -> bool {
        let _ = record;
        true
    }

    /// What the node takes a message for.
    fn hears(node: &Node, from: NodeId, message: Message) -> (NodeId, Message) {
        let _ = node;
        (from, message)
    }

    /// Whether a message that the node sends leaves it.
    fn sends(message: &Message) -> bool {
        let _ = message;
        true
    }

    /// Whether a record that the node saves reaches the disk.
    fn saves(record: &Record) -> bool {
        let _ = record;
        true
    }

    /// How a task that the node starts ends without ever having run, if so.
    fn pretends(action: &Action) -> Option<Outcome> {
        let _ = action;
        None
    }
}

/// The faults that can be planted in all nodes of a run, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// See [`DoubleBooking`].
    DoubleBooking,
    /// See [`HalfStarted`].
    HalfStarted,
    /// See [`SwallowedEnd`].
    SwallowedEnd,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 3] = [Planted::DoubleBooking, Planted::HalfStarted, Planted::SwallowedEnd];
    /// Their names, in the same order.
    pub const NAMES: [&str; 3] = ["double-booking", "half-started", "swallowed-end"];

    /// The fault of this name.
    pub fn named(name: &str) -> Option<Planted> {
        Planted::ALL.into_iter().zip(Planted::NAMES).find(|(_, known)| *known == name).map(|(fault, _)| fault)
    }
}

/// A node with a fault planted in it.
#[derive(Clone, Debug)]
pub struct Saboteur<F: Plant> {
    node: Node,
    fault: PhantomData<F>,
}

impl<F: Plant> Layer for Saboteur<F> {
    type Command = Command;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;
    type Action = Action;
    type Outcome = Outcome;
    type Event = Event;
}

impl<F: Plant> Protocol for Saboteur<F> {
    type Config = Config;

    fn restore(config: &Config, me: NodeId, records: impl Iterator<Item = Record>) -> Saboteur<F> {
        let mut config = config.clone();
        F::configure(&mut config);
        Saboteur { node: Node::restore(&config, me, records.filter(F::remembers)), fault: PhantomData }
    }

    fn handle(&mut self, input: Input<Saboteur<F>>, ctx: &mut Ctx<'_, Saboteur<F>>) {
        let input = match input {
            Input::Boot => Input::Boot,
            Input::Command(command) => Input::Command(command),
            Input::Message { from, message } => {
                let (from, message) = F::hears(&self.node, from, message);
                Input::Message { from, message }
            }
            Input::Timer(timer) => Input::Timer(timer),
            Input::Done(outcome) => Input::Done(outcome),
        };
        let mut next = Some(input);
        let mut pretended = Vec::new();
        while let Some(input) = next.take().or_else(|| pretended.pop().map(Input::Done)) {
            let (now, me) = (ctx.now, ctx.me);
            // The node draws from its own stream, while what it asks for goes through ours.
            let mut chance = ctx.chance.clone();
            let mut tampered = Tampered { ctx, pretended: Vec::new() };
            self.node.handle(input, &mut Ctx::new(now, me, &mut chance, &mut tampered));
            pretended.append(&mut tampered.pretended);
            *ctx.chance = chance;
        }
    }
}

impl<F: Plant> NodeLike for Saboteur<F> {
    fn node(&self) -> &Node {
        &self.node
    }
}

/// What a node asks for, less what its fault keeps back.
struct Tampered<'a, 'b, F: Plant> {
    ctx: &'a mut Ctx<'b, Saboteur<F>>,
    pretended: Vec<Outcome>,
}

impl<F: Plant> Out<Node> for Tampered<'_, '_, F> {
    fn send(&mut self, to: NodeId, message: Message) {
        if F::sends(&message) {
            self.ctx.send(to, message);
        }
    }

    fn wake(&mut self, at: Time, timer: Timer) {
        self.ctx.wake_at(at, timer);
    }

    fn save(&mut self, record: Record) {
        if F::saves(&record) {
            self.ctx.save(record);
        }
    }

    fn erase(&mut self, key: Key) {
        self.ctx.erase(key);
    }

    fn act(&mut self, action: Action) {
        match F::pretends(&action) {
            Some(outcome) => self.pretended.push(outcome),
            None => self.ctx.act(action),
        }
    }

    fn report(&mut self, event: Event) {
        self.ctx.report(event);
    }
}

/// No fault: what it finds must be nothing.
#[derive(Clone, Debug, Default)]
pub struct Honest;

impl Plant for Honest {}

/// A node that thinks it is twice its machine.
#[derive(Clone, Debug, Default)]
pub struct DoubleBooking;

impl Plant for DoubleBooking {
    fn configure(config: &mut Config) {
        if let Some(work) = &mut config.work {
            work.machine.capacity = work.machine.capacity.plus(&work.machine.capacity);
        }
    }
}

/// A node that never takes its jobs up again after a restart.
#[derive(Clone, Debug, Default)]
pub struct ForgottenJob;

impl Plant for ForgottenJob {
    fn remembers(record: &Record) -> bool {
        !matches!(record, Record::Owned(_))
    }
}

/// A node that swallows what it must tell: how its tasks have ended.
#[derive(Clone, Debug, Default)]
pub struct SwallowedEnd;

impl Plant for SwallowedEnd {
    fn sends(message: &Message) -> bool {
        !matches!(message, Message::Job(JobMessage::Ended(..)))
    }
}

/// A node that never starts rank 1, but reports that it ran and went well.
#[derive(Clone, Debug, Default)]
pub struct HalfStarted;

impl Plant for HalfStarted {
    fn pretends(action: &Action) -> Option<Outcome> {
        match action {
            Action::Start { task, .. } if task.rank == Rank(1) => {
                Some(Outcome::unmeasured(*task, Exit::Code(0)))
            }
            Action::Stage { .. } | Action::Start { .. } | Action::Adopt(_) | Action::Stop(_) => None,
        }
    }
}

/// A node that does not write down that it starts a task.
#[derive(Clone, Debug, Default)]
pub struct UnsavedStart;

impl Plant for UnsavedStart {
    fn saves(record: &Record) -> bool {
        !matches!(record, Record::Task(..))
    }
}

/// An owner that takes the end of an older placement for that of the present one.
#[derive(Clone, Debug, Default)]
pub struct IgnoredEpoch;

impl Plant for IgnoredEpoch {
    fn hears(node: &Node, from: NodeId, message: Message) -> (NodeId, Message) {
        if let Message::Job(JobMessage::Ended(task, exit, _)) = message
            && let Some(placement) = node.commit().and_then(|commit| commit.placement(task.job))
            && let Some(&now_there) = placement.nodes.get(task.rank.0 as usize)
        {
            let task = Task { epoch: placement.epoch, ..task };
            return (now_there, Message::Job(JobMessage::Ended(task, exit, None)));
        }
        (from, message)
    }
}

/// A node that does not hear that a placement is over.
#[derive(Clone, Debug, Default)]
pub struct DeafToTheEnd;

impl Plant for DeafToTheEnd {
    fn hears(_node: &Node, from: NodeId, message: Message) -> (NodeId, Message) {
        match message {
            Message::Commit(two_phase::Message::Release { .. } | two_phase::Message::Abort { .. }) => {
                (from, Message::Heartbeat(heartbeat::Message::Ping(0)))
            }
            message => (from, message),
        }
    }
}

/// A node that holds on for two minutes to what nobody commits.
#[derive(Clone, Debug, Default)]
pub struct LongHold;

impl Plant for LongHold {
    fn configure(config: &mut Config) {
        if let Some(work) = &mut config.work {
            work.commit.hold_ms = 120_000;
        }
    }
}

/// A node that says that it has committed, and has not.
#[derive(Clone, Debug, Default)]
pub struct UnsavedPromise;

impl Plant for UnsavedPromise {
    fn saves(record: &Record) -> bool {
        !matches!(record, Record::Commit(two_phase::Record::Lock(lock)) if !lock.confirmed)
    }
}

/// An owner that has a placement started which it has not written down.
#[derive(Clone, Debug, Default)]
pub struct UnsavedPlacement;

impl Plant for UnsavedPlacement {
    fn saves(record: &Record) -> bool {
        !matches!(record, Record::Commit(two_phase::Record::Tenure(tenure)) if tenure.placed.is_some())
    }
}
