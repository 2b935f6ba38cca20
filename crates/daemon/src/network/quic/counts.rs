//! What became of all that was said and heard, for metrics.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a message went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// Too many wait for this peer; the oldest went.
    QueueFull,
    /// Nobody knows where the receiver is.
    UnknownPeer,
    /// The receiver could not be reached.
    Unreachable,
    /// The connection was lost under it.
    ConnectionLost,
    /// Too many wait at this node.
    MailboxFull,
    /// This node does not listen yet, or any more.
    NotListening,
    /// Longer than a frame may be.
    TooLarge,
    /// Of a kind or version that is not known here.
    UnknownKind,
    /// Not what it claims to be.
    Garbled,
    /// Too many peers are spoken to at once.
    TooManyPeers,
}

impl Drop {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Drop::QueueFull => "queue-full",
            Drop::UnknownPeer => "unknown-peer",
            Drop::Unreachable => "unreachable",
            Drop::ConnectionLost => "connection-lost",
            Drop::MailboxFull => "mailbox-full",
            Drop::NotListening => "not-listening",
            Drop::TooLarge => "too-large",
            Drop::UnknownKind => "unknown-kind",
            Drop::Garbled => "garbled",
            Drop::TooManyPeers => "too-many-peers",
        }
    }
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many messages.
    pub messages: u64,
    /// How many bytes, frames included.
    pub bytes: u64,
}

/// All that is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were made and confirmed, dialled and accepted.
    pub connected: u64,
    /// Dials that failed.
    pub dials_failed: u64,
    /// Hellos that were refused here.
    pub refused: u64,
    /// Connections open now.
    pub connections: u64,
    /// Nodes in the address book now.
    pub addresses: u64,
    /// Questions asked here.
    pub asked: u64,
    /// Questions answered here.
    pub answered: u64,
    /// What was sent, by kind of message.
    pub sent: BTreeMap<&'static str, Traffic>,
    /// What was received, by kind of message.
    pub received: BTreeMap<&'static str, Traffic>,
    /// What was dropped, by reason.
    pub dropped: BTreeMap<Drop, u64>,
    /// Bytes of all datagrams sent, of connections now open and closed.
    pub udp_sent: u64,
    /// Bytes of all datagrams received.
    pub udp_received: u64,
}

/// Counts as it goes.
#[derive(Default)]
pub(super) struct Counter {
    pub connected: AtomicU64,
    pub dials_failed: AtomicU64,
    pub refused: AtomicU64,
    pub asked: AtomicU64,
    pub answered: AtomicU64,
    /// Of connections that are closed.
    pub udp_sent: AtomicU64,
    pub udp_received: AtomicU64,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    sent: BTreeMap<&'static str, Traffic>,
    received: BTreeMap<&'static str, Traffic>,
    dropped: BTreeMap<Drop, u64>,
}

const UNPOISONED: &str = "nothing panics while it counts";

pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl Counter {
    pub fn sent(&self, kind: &'static str, bytes: usize) {
        count(&mut self.tables.lock().expect(UNPOISONED).sent, kind, bytes);
    }

    pub fn received(&self, kind: &'static str, bytes: usize) {
        count(&mut self.tables.lock().expect(UNPOISONED).received, kind, bytes);
    }

    pub fn dropped(&self, why: Drop, messages: usize) {
        if messages > 0 {
            *self.tables.lock().expect(UNPOISONED).dropped.entry(why).or_default() += messages as u64;
        }
    }

    /// What was counted so far; what is open now is for the caller to fill in.
    pub fn read(&self) -> Counts {
        let tables = self.tables.lock().expect(UNPOISONED);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            connected: read(&self.connected),
            dials_failed: read(&self.dials_failed),
            refused: read(&self.refused),
            connections: 0,
            addresses: 0,
            asked: read(&self.asked),
            answered: read(&self.answered),
            sent: tables.sent.clone(),
            received: tables.received.clone(),
            dropped: tables.dropped.clone(),
            udp_sent: read(&self.udp_sent),
            udp_received: read(&self.udp_received),
        }
    }
}

fn count(table: &mut BTreeMap<&'static str, Traffic>, kind: &'static str, bytes: usize) {
    let traffic = table.entry(kind).or_default();
    traffic.messages += 1;
    traffic.bytes += bytes as u64;
}
