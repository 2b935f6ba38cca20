//! Where a node's inputs wait: filled from any thread, emptied by the one that drives the node.
//!
//! One queue with a limit per class instead of a plain channel: a flood of messages must keep out neither what the
//! user asks nor the end of an action, and the driver takes all that has come at once, to commit it as one group.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::Instant;

use shoal_model::NodeId;
use shoal_protocols::{Input, Protocol};

/// Messages that can wait; one more is dropped, as by a network.
pub const MESSAGES_MAX: usize = 4096;
/// Commands and looks that can wait; one more is refused.
pub const REQUESTS_MAX: usize = 1024;

/// What reaches a driver from outside.
pub(crate) enum Entry<P: Protocol> {
    /// For the core.
    Input(Input<P>),
    /// Somebody wants to see the core.
    Look(Look<P>),
}

/// Reads the core, and makes what is to be done with what was read.
pub(crate) type Look<P> = Box<dyn FnOnce(&P) -> Answer + Send>;
/// Hands over what a look saw.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// Why a node did not take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too much waits already.
    #[error("the node has too much to do; try again later")]
    Full,
    /// Nobody will ever take it.
    #[error("the node has stopped; start it again")]
    Stopped,
}

/// The way into a node, for any thread.
pub struct Mailbox<P: Protocol> {
    shared: Arc<Shared<P>>,
}

/// The right to say once what came of an action. Dropped, it was an action that is fire-and-forget.
pub struct Completion<P: Protocol> {
    mailbox: Mailbox<P>,
    /// Who wants to see the outcome before the node does.
    seen: Option<Seen<P::Outcome>>,
}

/// Sees an outcome.
type Seen<O> = Box<dyn FnOnce(&O) + Send>;

/// The driver's end of a mailbox; dropped, it stops the mailbox.
pub(crate) struct Inbox<P: Protocol> {
    shared: Arc<Shared<P>>,
}

/// What has come since the driver looked last.
pub(crate) struct Arrived<P: Protocol> {
    /// In the order of their coming.
    pub entries: Vec<Entry<P>>,
    /// Whether the node shall stop.
    pub stop: bool,
}

struct Shared<P: Protocol> {
    queue: Mutex<Queue<P>>,
    /// Rings when something comes into an empty queue.
    bell: Condvar,
}

struct Queue<P: Protocol> {
    entries: Vec<Entry<P>>,
    messages: usize,
    requests: usize,
    stop: bool,
    closed: bool,
}

impl<P: Protocol> Mailbox<P> {
    /// Delivers what a peer says. Who calls this vouches for `from`.
    pub fn message(&self, from: NodeId, message: P::Message) -> Result<(), Refused> {
        let mut queue = self.shared.open()?;
        if queue.messages == MESSAGES_MAX {
            return Err(Refused::Full);
        }
        queue.messages += 1;
        self.shared.put(queue, Entry::Input(Input::Message { from, message }));
        Ok(())
    }

    /// Asks the node for something.
    pub fn command(&self, command: P::Command) -> Result<(), Refused> {
        self.request(Entry::Input(Input::Command(command)))
    }

    /// Waits to see the core, between two of its inputs and once all that it has saved until then is durable.
    ///
    /// Not for the thread that drives the node (a report, an executor): it would wait for itself.
    pub fn look<T: Send + 'static>(&self, see: impl FnOnce(&P) -> T + Send + 'static) -> Result<T, Refused> {
        let (sender, receiver) = mpsc::channel();
        // Who asked may have gone; then nobody misses the answer.
        self.look_then(see, move |seen| drop(sender.send(seen)))?;
        receiver.recv().map_err(|_| Refused::Stopped)
    }

    /// The same without waiting: what was seen is handed over on the thread that drives the node, which must not wait
    /// for it. Where the node stops before, `hand_over` is dropped.
    pub fn look_then<T: Send + 'static>(
        &self,
        see: impl FnOnce(&P) -> T + Send + 'static,
        hand_over: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), Refused> {
        self.request(Entry::Look(Box::new(move |core| {
            let seen = see(core);
            Box::new(move || hand_over(seen))
        })))
    }

    /// Makes the right to end one action.
    pub fn completion(&self) -> Completion<P> {
        Completion { mailbox: self.clone(), seen: None }
    }

    /// Has the node stop, once it has handled what came before.
    pub fn stop(&self) {
        self.shared.lock().stop = true;
        self.shared.bell.notify_one();
    }

    fn request(&self, entry: Entry<P>) -> Result<(), Refused> {
        let mut queue = self.shared.open()?;
        if queue.requests == REQUESTS_MAX {
            return Err(Refused::Full);
        }
        queue.requests += 1;
        self.shared.put(queue, entry);
        Ok(())
    }
}

impl<P: Protocol> Clone for Mailbox<P> {
    fn clone(&self) -> Mailbox<P> {
        Mailbox { shared: Arc::clone(&self.shared) }
    }
}

impl<P: Protocol> Completion<P> {
    /// The same, with somebody who sees the outcome first.
    pub fn watched(self, seen: impl FnOnce(&P::Outcome) + Send + 'static) -> Completion<P> {
        Completion { seen: Some(Box::new(seen)), ..self }
    }

    /// Says what came of the action. A node that has stopped hears of it from its executor in its next life.
    ///
    /// Never refused for want of room: there are no more of these than actions under way.
    pub fn complete(self, outcome: P::Outcome) {
        if let Some(seen) = self.seen {
            seen(&outcome);
        }
        if let Ok(queue) = self.mailbox.shared.open() {
            self.mailbox.shared.put(queue, Entry::Input(Input::Done(outcome)));
        }
    }
}

impl<P: Protocol> Inbox<P> {
    pub fn new() -> Inbox<P> {
        let queue = Queue { entries: Vec::new(), messages: 0, requests: 0, stop: false, closed: false };
        Inbox { shared: Arc::new(Shared { queue: Mutex::new(queue), bell: Condvar::new() }) }
    }

    pub fn mailbox(&self) -> Mailbox<P> {
        Mailbox { shared: Arc::clone(&self.shared) }
    }

    /// Waits until something has come, or until an instant, and takes all there is.
    pub fn take(&self, until: Option<Instant>) -> Arrived<P> {
        let mut queue = self.shared.lock();
        while queue.entries.is_empty() && !queue.stop {
            queue = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.shared.bell.wait(queue).expect(UNPOISONED),
                Some(left) if left.is_zero() => break,
                Some(left) => self.shared.bell.wait_timeout(queue, left).expect(UNPOISONED).0,
            };
        }
        queue.messages = 0;
        queue.requests = 0;
        Arrived { entries: std::mem::take(&mut queue.entries), stop: queue.stop }
    }
}

impl<P: Protocol> Drop for Inbox<P> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        let left = std::mem::take(&mut queue.entries);
        // Entries may hold mailboxes of their own: let go of the lock before they are dropped.
        drop(queue);
        drop(left);
    }
}

const UNPOISONED: &str = "nothing panics while it holds the queue";

impl<P: Protocol> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().expect(UNPOISONED)
    }

    fn open(&self) -> Result<MutexGuard<'_, Queue<P>>, Refused> {
        let queue = self.lock();
        if queue.closed { Err(Refused::Stopped) } else { Ok(queue) }
    }

    fn put(&self, mut queue: MutexGuard<'_, Queue<P>>, entry: Entry<P>) {
        queue.entries.push(entry);
        let first = queue.entries.len() == 1;
        drop(queue);
        if first {
            self.bell.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocols::node::{self, Message, Node};
    use shoal_protocols::overlay::cyclon;

    use super::*;

    fn join() -> Message {
        Message::Overlay(cyclon::Message::Join)
    }

    #[test]
    fn flood_of_messages_keeps_out_neither_commands_nor_looks() {
        let inbox = Inbox::<Node>::new();
        let mailbox = inbox.mailbox();
        for _ in 0..MESSAGES_MAX {
            assert_eq!(mailbox.message(NodeId(2), join()), Ok(()));
        }
        assert_eq!(mailbox.message(NodeId(2), join()), Err(Refused::Full));
        for _ in 0..REQUESTS_MAX {
            assert_eq!(mailbox.command(node::Command::Join(NodeId(2))), Ok(()));
        }
        assert_eq!(mailbox.command(node::Command::Join(NodeId(2))), Err(Refused::Full));
        assert_eq!(mailbox.look(|_| ()), Err(Refused::Full));

        assert_eq!(inbox.take(None).entries.len(), MESSAGES_MAX + REQUESTS_MAX);
        assert_eq!(mailbox.message(NodeId(2), join()), Ok(()));
        assert_eq!(mailbox.command(node::Command::Join(NodeId(2))), Ok(()));
    }

    #[test]
    fn mailbox_of_a_driver_that_is_gone_refuses_for_good() {
        let inbox = Inbox::<Node>::new();
        let mailbox = inbox.mailbox();
        drop(inbox);
        assert_eq!(mailbox.message(NodeId(2), join()), Err(Refused::Stopped));
        assert_eq!(mailbox.look(|_| ()), Err(Refused::Stopped));
    }

    #[test]
    fn wait_ends_at_its_instant_when_nothing_comes() {
        let inbox = Inbox::<Node>::new();
        let until = Instant::now() + std::time::Duration::from_millis(2);
        let arrived = inbox.take(Some(until));
        assert!(arrived.entries.is_empty() && !arrived.stop);
        assert!(Instant::now() >= until);
    }
}
