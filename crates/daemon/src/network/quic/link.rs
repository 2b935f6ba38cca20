//! A confirmed connection: with whom, since when, and what was last said over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use iroh::endpoint::{Connection, VarInt};
use shoal_model::NodeId;

use super::hello::Reason;
use super::record::Known;

/// A confirmed connection.
pub(super) struct Link {
    pub conn: Connection,
    pub known: Arc<Known>,
    /// Who dialled.
    pub dialler: NodeId,
    /// Which of the peer's lives it leads to.
    pub life: u64,
    pub since: Instant,
    /// What changed addresses were told over it.
    pub told: Mutex<HashMap<NodeId, u64>>,
    /// Open questions, asked and answered.
    pub questions: AtomicUsize,
    /// Milliseconds after `since` at which a message last passed.
    spoke: AtomicU64,
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
    pub fn new(conn: Connection, known: Arc<Known>, dialler: NodeId, life: u64) -> Link {
        Link {
            conn,
            known,
            dialler,
            life,
            since: Instant::now(),
            told: Mutex::default(),
            questions: AtomicUsize::new(0),
            spoke: AtomicU64::new(0),
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
