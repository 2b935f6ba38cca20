//! A switchboard: carries messages between nodes of one process, from mailbox to mailbox.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use rand::RngExt;
use shoal_model::NodeId;
use shoal_protocols::{Chance, Protocol};

use super::Network;
use crate::inbox::{Mailbox, Refused};

/// Connects the nodes of one process.
pub struct Switchboard<P: Protocol> {
    shared: Arc<Shared<P>>,
}

/// A node's way into a switchboard.
pub struct Line<P: Protocol> {
    from: NodeId,
    /// The chance of what the node sends; its own chance is another stream.
    luck: Chance,
    loss_percent: u8,
    shared: Arc<Shared<P>>,
}

/// What became of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reached their node's mailbox.
    pub delivered: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// Dropped, since too many waited at the receiver.
    pub overflowed: u64,
    /// Sent to nobody that is there.
    pub unreachable: u64,
}

struct Shared<P: Protocol> {
    mailboxes: RwLock<BTreeMap<NodeId, Mailbox<P>>>,
    delivered: AtomicU64,
    lost: AtomicU64,
    overflowed: AtomicU64,
    unreachable: AtomicU64,
}

impl<P: Protocol> Switchboard<P> {
    /// A switchboard without nodes.
    pub fn new() -> Switchboard<P> {
        Switchboard {
            shared: Arc::new(Shared {
                mailboxes: RwLock::default(),
                delivered: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                overflowed: AtomicU64::new(0),
                unreachable: AtomicU64::new(0),
            }),
        }
    }

    /// Delivers what is sent to a node from now on into its mailbox.
    pub fn connect(&self, node: NodeId, mailbox: Mailbox<P>) {
        self.shared.mailboxes.write().expect(UNPOISONED).insert(node, mailbox);
    }

    /// Delivers nothing more to a node.
    pub fn disconnect(&self, node: NodeId) {
        self.shared.mailboxes.write().expect(UNPOISONED).remove(&node);
    }

    /// The way of a node to the others; the switchboard vouches that it speaks as `from` only.
    pub fn line(&self, from: NodeId, luck: Chance) -> Line<P> {
        Line { from, luck, loss_percent: 0, shared: Arc::clone(&self.shared) }
    }

    /// What became of the messages so far.
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            delivered: read(&self.shared.delivered),
            lost: read(&self.shared.lost),
            overflowed: read(&self.shared.overflowed),
            unreachable: read(&self.shared.unreachable),
        }
    }
}

impl<P: Protocol> Default for Switchboard<P> {
    fn default() -> Switchboard<P> {
        Switchboard::new()
    }
}

impl<P: Protocol> Clone for Switchboard<P> {
    fn clone(&self) -> Switchboard<P> {
        Switchboard { shared: Arc::clone(&self.shared) }
    }
}

impl<P: Protocol> Line<P> {
    /// The same line, with that share of what is sent lost; 100 and more is all of it.
    pub fn losing(self, percent: u8) -> Line<P> {
        Line { loss_percent: percent, ..self }
    }
}

impl<P: Protocol> Network<P::Message> for Line<P> {
    fn send(&mut self, to: NodeId, message: P::Message) {
        let shared = &self.shared;
        let fate = if self.loss_percent > 0 && self.luck.random_range(0..100) < self.loss_percent {
            &shared.lost
        } else {
            match shared.mailboxes.read().expect(UNPOISONED).get(&to) {
                None => &shared.unreachable,
                Some(mailbox) => match mailbox.message(self.from, message) {
                    Ok(()) => &shared.delivered,
                    Err(Refused::Full) => &shared.overflowed,
                    Err(Refused::Stopped) => &shared.unreachable,
                },
            }
        };
        fate.fetch_add(1, Ordering::Relaxed);
    }
}

const UNPOISONED: &str = "nothing panics while it holds the mailboxes";

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;
    use shoal_protocols::node::{Message, Node};
    use shoal_protocols::overlay::cyclon;

    use super::*;
    use crate::inbox::{Inbox, MESSAGES_MAX};

    fn join() -> Message {
        Message::Overlay(cyclon::Message::Join)
    }

    #[test]
    fn message_to_a_full_mailbox_is_dropped_and_counted() {
        let switchboard = Switchboard::<Node>::new();
        let inbox = Inbox::new();
        switchboard.connect(NodeId(2), inbox.mailbox());
        let mut line = switchboard.line(NodeId(1), Chance::seed_from_u64(1));
        for _ in 0..MESSAGES_MAX + 3 {
            line.send(NodeId(2), join());
        }
        let counts = Counts { delivered: MESSAGES_MAX as u64, overflowed: 3, ..Counts::default() };
        assert_eq!(switchboard.counts(), counts);
        assert_eq!(inbox.take(None).entries.len(), MESSAGES_MAX);
    }

    #[test]
    fn message_to_who_is_not_there_is_counted() {
        let switchboard = Switchboard::<Node>::new();
        let stopped = Inbox::new();
        switchboard.connect(NodeId(2), stopped.mailbox());
        drop(stopped);
        let inbox = Inbox::new();
        switchboard.connect(NodeId(3), inbox.mailbox());
        switchboard.disconnect(NodeId(3));
        let mut line = switchboard.line(NodeId(1), Chance::seed_from_u64(1));
        for to in [2, 3, 4] {
            line.send(NodeId(to), join());
        }
        assert_eq!(switchboard.counts(), Counts { unreachable: 3, ..Counts::default() });
    }

    #[test]
    fn line_loses_about_the_share_it_is_told() {
        let switchboard = Switchboard::<Node>::new();
        let inbox = Inbox::new();
        switchboard.connect(NodeId(2), inbox.mailbox());
        let mut line = switchboard.line(NodeId(1), Chance::seed_from_u64(1)).losing(30);
        for _ in 0..1000 {
            line.send(NodeId(2), join());
        }
        let Counts { delivered, lost, .. } = switchboard.counts();
        assert_eq!(delivered + lost, 1000);
        assert!((250..350).contains(&lost), "{lost} of 1000 lost at 30 %");
    }
}
