//! Carries out what a node asks for: in order, and nothing past a record that is not durable.

use std::collections::VecDeque;

use shoal_model::{NodeId, Time};
use shoal_protocols::{KeyOf, Out, Protocol};

use super::timers::Timers;
use crate::executor::Executor;
use crate::inbox::{Answer, Mailbox};
use crate::network::Network;
use crate::store::{self, Store};

/// A node's hands.
pub(super) struct Effects<P: Protocol> {
    /// The node itself.
    pub me: NodeId,
    /// What it said to itself and has not heard yet.
    pub own: VecDeque<P::Message>,
    /// The time of the turn.
    pub now: Time,
    pub timers: Timers<P::Timer>,
    pub mailbox: Mailbox<P>,
    pub store: Box<dyn Store<P::Record>>,
    pub network: Box<dyn Network<P::Message>>,
    pub executor: Box<dyn Executor<P>>,
    pub reports: Box<dyn FnMut(Time, P::Event) + Send>,
    /// What was asked for after the first write of this turn, in order.
    pub waiting: Vec<Effect<P>>,
    /// Whether something was written that is not durable yet.
    pub written: bool,
    /// Why the store did not take a write.
    pub failure: Option<store::Error>,
}

/// What leaves the node.
pub(super) enum Effect<P: Protocol> {
    Send(NodeId, P::Message),
    Act(P::Action),
    Report(P::Event),
    Answer(Answer),
}

impl<P: Protocol> Effects<P> {
    /// Lets an effect out at once, or once all that was written before it is durable.
    pub fn ask(&mut self, effect: Effect<P>) {
        if self.written {
            self.waiting.push(effect);
        } else {
            self.let_out(effect);
        }
    }

    /// Makes all that was written durable, once for all, and lets out what waited for it.
    pub fn commit(&mut self) -> Result<(), store::Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if !self.written {
            return Ok(());
        }
        self.store.sync()?;
        self.written = false;
        for effect in std::mem::take(&mut self.waiting) {
            self.let_out(effect);
        }
        self.store.tidy()
    }

    fn let_out(&mut self, effect: Effect<P>) {
        match effect {
            Effect::Send(to, message) => self.network.send(to, message),
            Effect::Act(action) => self.executor.perform(self.now, action, self.mailbox.completion()),
            Effect::Report(event) => (self.reports)(self.now, event),
            Effect::Answer(answer) => answer(),
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Store<P::Record>) -> Result<(), store::Error>) {
        self.written = true;
        if self.failure.is_none() {
            self.failure = write(&mut *self.store).err();
        }
    }
}

impl<P: Protocol> Out<P> for Effects<P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        if to == self.me {
            // It does not leave the node, so that it waits for no write: what follows from it waits, and is lost with it.
            self.own.push_back(message);
        } else {
            self.ask(Effect::Send(to, message));
        }
    }

    fn wake(&mut self, at: Time, timer: P::Timer) {
        // A timer never leaves the machine, so it waits for no write.
        self.timers.put(at, timer);
    }

    fn save(&mut self, record: P::Record) {
        self.write(|store| store.save(&record));
    }

    fn erase(&mut self, key: KeyOf<P>) {
        self.write(|store| store.erase(&key));
    }

    fn act(&mut self, action: P::Action) {
        self.ask(Effect::Act(action));
    }

    fn report(&mut self, event: P::Event) {
        self.ask(Effect::Report(event));
    }
}
