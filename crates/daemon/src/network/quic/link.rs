//! A confirmed connection: with whom, since when, and what was last said over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use iroh::endpoint::{Connection, VarInt};
use shoal_model::NodeId;
use shoal_protocols::node::Message;

use super::hello::Reason;
use super::record::Known;

/// Whether a message may go to anybody and needs no connection for long: a shuffle is with one node after the other.
/// Heartbeats of whatever runs or waits are none, nor what is said within an overlay whose neighbours stay the same.
pub(super) fn is_gossip(message: &Message) -> bool {
    match message {
        Message::Overlay(_) => true,
        Message::BlatantS(_)
        | Message::Can(_)
        | Message::Secondary(_)
        | Message::Commit(_)
        | Message::Heartbeat(_)
        | Message::Sample(_)
        | Message::Asap(_)
        | Message::Aria(_)
        | Message::TriPronged(_)
        | Message::Proactive(_)
        | Message::Job(_)
        | Message::HandOver(_) => false,
    }
}

/// A confirmed connection.
pub(super) struct Link {
    pub conn: Connection,
    pub known: Arc<Known>,
    /// Who dialled.
    pub dialler: NodeId,
    /// Which of the peer's lives it leads to.
    pub life: u64,
    pub since: Instant,
    /// Whether the peer was not known before, or elsewhere.
    pub is_news: bool,
    /// What changed addresses were told over it.
    pub told: Mutex<HashMap<NodeId, u64>>,
    /// Open questions, asked and answered.
    pub questions: AtomicUsize,
    /// Milliseconds after `since` at which a message last passed.
    spoke: AtomicU64,
    /// The same of a message that is no gossip; 0 for never.
    needed: AtomicU64,
    /// Milliseconds after `since` since which an answer is waited for; 0 for none.
    pub waits_since: AtomicU64,
    /// Datagrams that had come when last looked.
    pub datagrams: AtomicU64,
    /// Milliseconds after `since` of the last ping.
    pub pinged: AtomicU64,
    /// Why this side has closed it.
    pub closed_for: OnceLock<Reason>,
}

impl Link {
    pub fn new(conn: Connection, known: Arc<Known>, is_news: bool, dialler: NodeId, life: u64) -> Link {
        Link {
            conn,
            known,
            is_news,
            dialler,
            life,
            since: Instant::now(),
            told: Mutex::default(),
            questions: AtomicUsize::new(0),
            spoke: AtomicU64::new(0),
            needed: AtomicU64::new(0),
            waits_since: AtomicU64::new(0),
            datagrams: AtomicU64::new(0),
            pinged: AtomicU64::new(0),
            closed_for: OnceLock::new(),
        }
    }

    /// Milliseconds since the connection was made, never 0.
    pub fn age(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// Something was said over it, or heard.
    pub fn spoke(&self) {
        self.spoke.store(self.age(), Ordering::Relaxed);
    }

    /// Something was said over it that is no gossip, or heard.
    pub fn needed(&self) {
        self.needed.store(self.age(), Ordering::Relaxed);
    }

    /// Whether more than gossip was said over it within this time.
    pub fn is_needed(&self, within: Duration) -> bool {
        let needed = self.needed.load(Ordering::Relaxed);
        needed > 0 && Duration::from_millis(self.age().saturating_sub(needed)) < within
    }

    /// For how long nothing was said over it.
    pub fn silent(&self) -> Duration {
        Duration::from_millis(self.age().saturating_sub(self.spoke.load(Ordering::Relaxed)))
    }

    pub fn close(&self, reason: Reason) {
        let _ = self.closed_for.set(reason);
        self.conn.close(VarInt::from_u32(u32::from(reason.code())), reason.text().as_bytes());
    }

    pub fn is_open(&self) -> bool {
        self.conn.close_reason().is_none()
    }
}
