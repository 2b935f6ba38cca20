//! One peer: what waits to be said to it, the connection in use, and who carries the one over the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use iroh::endpoint::SendStream;
use shoal_model::{NodeId, Time};
use shoal_protocols::node::Message;
use shoal_protocols::protocol::Message as _;
use tokio::sync::Notify;

use super::counts::{Drop, add};
use super::facts::{Sample, Samples};
use super::hub::{Event, Hub};
use super::link::{self, Link};
use super::record::Known;
use crate::network::wire::words::{Ping, Who, Word};
use crate::network::wire::{self, speech};

/// Messages that wait for one peer, at most; the oldest makes room.
pub const QUEUE_MAX: usize = 1024;
/// Bytes that are written at once, about.
const BATCH_BYTES: usize = 64 << 10;
/// Changed addresses that were told over one connection and are kept in mind, at most.
const TOLD_MAX: usize = 1024;
/// How long a message to a node that nobody knows waits for an answer to where it is.
const SEARCH_FOR: Duration = Duration::from_secs(3);
/// The first pause after a dial that failed, and the longest; they double in between.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MOST: Duration = Duration::from_secs(15);
/// A clock reading older than this is renewed when something is said anyway.
const SAMPLE_AGAIN: Duration = Duration::from_secs(60);
/// How often the core is told how far a peer is, at most.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// What waits.
pub(super) enum Waiting {
    /// What the node says.
    Message(Message),
    /// A frame of the daemon's own.
    Frame(Vec<u8>),
}

/// A peer.
pub(super) struct Peer {
    pub node: NodeId,
    inner: Mutex<Inner>,
    /// Something is to be done.
    bell: Notify,
    /// The connection has changed.
    linked: Notify,
    /// Somebody waits for a connection.
    wanted: AtomicUsize,
}

struct Inner {
    queue: VecDeque<Waiting>,
    link: Option<Arc<Link>>,
    samples: Samples,
    sampled: Option<Instant>,
    /// The ping that is not answered yet.
    pinged: Option<Time>,
    /// When the core was last told how far it is.
    told: Option<Instant>,
    last_heard: Option<Time>,
    /// Of connections that are over.
    bytes_in: u64,
    bytes_out: u64,
    /// When something was last wanted of this peer.
    used: Instant,
    failure: Option<String>,
    over: bool,
}

const UNPOISONED: &str = "nothing panics while it holds a peer";

impl Inner {
    fn take(&mut self, sample: Sample) {
        self.samples.add(sample);
        self.sampled = Some(Instant::now());
    }
}

impl Peer {
    pub fn new(node: NodeId) -> Peer {
        let inner = Inner {
            queue: VecDeque::new(),
            link: None,
            samples: Samples::default(),
            sampled: None,
            pinged: None,
            told: None,
            last_heard: None,
            bytes_in: 0,
            bytes_out: 0,
            used: Instant::now(),
            failure: None,
            over: false,
        };
        Peer {
            node,
            inner: Mutex::new(inner),
            bell: Notify::new(),
            linked: Notify::new(),
            wanted: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(UNPOISONED)
    }

    /// Has something said, without waiting; returns how many older things made room for it.
    pub fn push(&self, waiting: Waiting) -> usize {
        let mut inner = self.lock();
        inner.used = Instant::now();
        let mut dropped = 0;
        while inner.queue.len() >= QUEUE_MAX {
            inner.queue.pop_front();
            dropped += 1;
        }
        inner.queue.push_back(waiting);
        drop(inner);
        self.bell.notify_one();
        dropped
    }

    /// The connection in use.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.lock().link.clone().filter(|link| link.is_open())
    }

    /// Whether nothing is left to do for this peer.
    pub fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.link.is_none() && inner.queue.is_empty() && self.wanted.load(Ordering::Relaxed) == 0
    }

    pub fn used(&self) -> Instant {
        self.lock().used
    }

    /// Ends what is done for this peer.
    pub fn end(&self) {
        self.lock().over = true;
        self.bell.notify_one();
        self.linked.notify_waiters();
    }

    /// Takes in what the hellos showed.
    pub fn first_sample(&self, sample: Sample) {
        self.lock().take(sample);
    }

    /// A ping; the answer to one before counts no more.
    pub fn ping(&self, now: Time) -> Vec<u8> {
        self.lock().pinged = Some(now);
        Ping { said: now }.frame()
    }

    /// Takes in what came of a ping that was said then, unless nobody said it; whether it is time to tell of it.
    pub fn sample(&self, said: Time, sample: Sample) -> bool {
        let mut inner = self.lock();
        if inner.pinged != Some(said) {
            return false;
        }
        inner.pinged = None;
        inner.take(sample);
        let due = inner.told.is_none_or(|told| told.elapsed() >= TELL_AGAIN);
        if due {
            inner.told = Some(Instant::now());
        }
        due
    }

    pub fn heard(&self, now: Time) {
        self.lock().last_heard = Some(now);
    }

    pub fn best_sample(&self) -> Option<Sample> {
        self.lock().samples.best()
    }

    pub fn last_heard(&self) -> Option<Time> {
        self.lock().last_heard
    }

    /// Bytes in and out, of the connections that are over and of the open one.
    pub fn bytes(&self) -> (u64, u64) {
        let inner = self.lock();
        let open = inner.link.as_ref().map(|link| link.conn.stats());
        let (rx, tx) = open.map_or((0, 0), |stats| (stats.udp_rx.bytes, stats.udp_tx.bytes));
        (inner.bytes_in + rx, inner.bytes_out + tx)
    }

    /// Puts a connection to use, unless the one there is serves both sides better; returns whichever is left over.
    ///
    /// Both may have dialled at once. Then both sides keep what the smaller of the two has dialled; but what leads to
    /// another life of the peer, or was made long before, is no longer what the peer uses.
    pub fn install(&self, link: Arc<Link>, me: NodeId) -> Option<Arc<Link>> {
        let mut inner = self.lock();
        let over = inner.over;
        let keeps = |old: &Arc<Link>| {
            old.is_open()
                && old.life == link.life
                && old.dialler != link.dialler
                && old.since.elapsed() < super::hub::CONNECT_WITHIN
                && old.dialler == me.min(self.node)
        };
        let left = match inner.link.take() {
            Some(old) if keeps(&old) => {
                inner.link = Some(old);
                Some(link)
            }
            old => {
                inner.link = Some(link);
                old
            }
        };
        inner.failure = None;
        drop(inner);
        self.bell.notify_one();
        self.linked.notify_waiters();
        left.or_else(|| if over { self.lock().link.take() } else { None })
    }

    /// A connection is over; whether it was the one in use.
    pub fn uninstall(&self, link: &Arc<Link>) -> bool {
        let mut inner = self.lock();
        let stats = link.conn.stats();
        inner.bytes_in += stats.udp_rx.bytes;
        inner.bytes_out += stats.udp_tx.bytes;
        let current = inner.link.as_ref().is_some_and(|current| Arc::ptr_eq(current, link));
        if current {
            inner.link = None;
        }
        drop(inner);
        self.bell.notify_one();
        self.linked.notify_waiters();
        current
    }

    /// Waits for a connection; says why there is none.
    pub async fn reach(&self, within: Duration) -> Result<Arc<Link>, String> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let wait = async {
            loop {
                let linked = self.linked.notified();
                tokio::pin!(linked);
                linked.as_mut().enable();
                if let Some(link) = self.link() {
                    return Some(link);
                }
                if self.lock().over {
                    return None;
                }
                self.bell.notify_one();
                linked.await;
            }
        };
        let found = tokio::time::timeout(within, wait).await;
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        match found {
            Ok(Some(link)) => Ok(link),
            Ok(None) | Err(_) => {
                let failure = self.lock().failure.clone();
                Err(failure.unwrap_or_else(|| "it did not answer in time".to_owned()))
            }
        }
    }

    fn fail(&self, why: String) -> usize {
        let mut inner = self.lock();
        inner.failure = Some(why);
        let dropped = inner.queue.len();
        inner.queue.clear();
        drop(inner);
        self.linked.notify_waiters();
        dropped
    }

    fn wants_link(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0 || !self.lock().queue.is_empty()
    }
}

/// Carries what waits for a peer to it, for as long as the peer is spoken to.
pub(super) async fn carry(hub: Arc<Hub>, peer: Arc<Peer>) {
    let mut pause = PAUSE_FIRST;
    let mut stream: Option<(Arc<Link>, SendStream)> = None;
    loop {
        if peer.lock().over {
            return;
        }
        if !peer.wants_link() {
            peer.bell.notified().await;
            continue;
        }
        let Some(link) = peer.link() else {
            stream = None;
            match dial(&hub, &peer).await {
                Ok(()) => pause = PAUSE_FIRST,
                Err((why, drop)) => {
                    let dropped = peer.fail(why);
                    hub.counts.dropped(drop, dropped);
                    let rest = jittered(pause, &hub);
                    pause = (pause * 2).min(PAUSE_MOST);
                    // It may find us before we find it.
                    let linked = peer.linked.notified();
                    let _ = tokio::time::timeout(rest, linked).await;
                }
            }
            continue;
        };
        if stream.as_ref().is_none_or(|(of, _)| !Arc::ptr_eq(of, &link)) {
            match link.conn.open_uni().await {
                Ok(opened) => stream = Some((Arc::clone(&link), opened)),
                // It is closed, and no longer found.
                Err(_) => continue,
            }
        }
        let Some((_, open)) = &mut stream else { continue };
        let (batch, messages) = next_batch(&hub, &peer, &link);
        if batch.is_empty() {
            peer.bell.notified().await;
            continue;
        }
        link.spoke();
        let _ = link.waits_since.compare_exchange(0, link.age(), Ordering::Relaxed, Ordering::Relaxed);
        let replaced = async {
            loop {
                let linked = peer.linked.notified();
                if peer.link().is_none_or(|current| !Arc::ptr_eq(&current, &link)) {
                    return;
                }
                linked.await;
            }
        };
        let written = tokio::select! {
            written = open.write_all(&batch) => written.is_ok(),
            () = replaced => false,
        };
        if !written {
            hub.counts.dropped(Drop::ConnectionLost, messages);
            stream = None;
        }
    }
}

/// Takes as much of what waits as is written at once, with the addresses that the peer should know of.
fn next_batch(hub: &Hub, peer: &Peer, link: &Link) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut messages = 0;
    while bytes.len() < BATCH_BYTES {
        let next = peer.lock().queue.pop_front();
        match next {
            None => break,
            Some(Waiting::Frame(frame)) => bytes.extend(frame),
            Some(Waiting::Message(message)) => {
                attach(hub, peer, link, &message, &mut bytes);
                match wire::write(&message, &mut bytes) {
                    Ok(length) => {
                        messages += 1;
                        if !link::is_gossip(&message) {
                            link.needed();
                        }
                        hub.counts.sent(Message::KINDS[message.kind()], length);
                    }
                    Err(why) => {
                        let kind = speech::kind(&message);
                        tracing::warn!(peer = %peer.node, "a message of kind {kind:#06x} is not sent: {why}");
                        hub.counts.dropped(Drop::TooLarge, 1);
                    }
                }
            }
        }
    }
    let stale = peer.lock().sampled.is_none_or(|sampled| sampled.elapsed() >= SAMPLE_AGAIN);
    if messages > 0 && stale {
        peer.lock().sampled = Some(Instant::now());
        bytes.extend(peer.ping(hub.clock.now()));
    }
    (bytes, messages)
}

/// Puts addresses that have changed since the connection was made before the message that mentions them. What else the
/// peer does not know it asks for: that is cheaper than to tell everybody everything.
fn attach(hub: &Hub, peer: &Peer, link: &Link, message: &Message, bytes: &mut Vec<u8>) {
    let book = hub.book();
    let mut told = link.told.lock().expect(UNPOISONED);
    message.mentions(&mut |node| {
        if node == peer.node || node == hub.me {
            return;
        }
        if let Some(known) = book.changed_since(node, link.since)
            && told.get(&node) != Some(&known.number)
        {
            if told.len() >= TOLD_MAX {
                told.clear();
            }
            told.insert(node, known.number);
            bytes.extend(known.record.frame());
        }
    });
}

/// Makes a connection, or says why there is none.
async fn dial(hub: &Arc<Hub>, peer: &Arc<Peer>) -> Result<(), (String, Drop)> {
    let known = match find(hub, peer).await {
        Some(known) => known,
        None => {
            let why = format!("nobody that this node speaks to knows where {} is", peer.node);
            tracing::debug!(peer = %peer.node, "{why}");
            return Err((why, Drop::UnknownPeer));
        }
    };
    // A connection that comes in meanwhile is as good.
    let accepted = async {
        loop {
            let linked = peer.linked.notified();
            if peer.link().is_some() {
                return;
            }
            linked.await;
        }
    };
    tokio::select! {
        dialled = super::hello::dial(hub, &known) => match dialled {
            Ok(link) => {
                hub.welcome(peer, link);
                Ok(())
            }
            Err(why) => {
                add(&hub.counts.dials_failed, 1);
                tracing::info!(peer = %peer.node, "cannot connect: {why}");
                // It may have moved.
                hub.ask_around(peer.node);
                hub.tell(Event::Unreachable { node: peer.node, why: why.clone() });
                Err((why, Drop::Unreachable))
            }
        },
        () = accepted => Ok(()),
    }
}

/// Looks for where a peer is: in the book, then by asking.
async fn find(hub: &Hub, peer: &Peer) -> Option<Arc<Known>> {
    let deadline = Instant::now() + SEARCH_FOR;
    let mut asked = false;
    loop {
        if let Some(known) = hub.book().get(peer.node) {
            return Some(known);
        }
        if !asked {
            hub.ask_around(peer.node);
            asked = true;
        }
        let learned = hub.learned.notified();
        if Instant::now() >= deadline {
            return None;
        }
        let _ = tokio::time::timeout(Duration::from_millis(100), learned).await;
    }
}

/// The frame that asks where some nodes are.
pub(super) fn who(nodes: Vec<NodeId>) -> Waiting {
    Waiting::Frame(Who(nodes).frame())
}

/// Between three and five quarters of a pause, so that those who lost the same peer do not come back in step.
fn jittered(pause: Duration, hub: &Hub) -> Duration {
    pause * hub.luck(750..1250) / 1000
}

#[cfg(test)]
mod tests {
    use shoal_model::Span;

    use super::*;

    #[test]
    fn only_the_answer_to_a_ping_is_a_sample_and_few_are_told() {
        let peer = Peer::new(NodeId(7));
        let at = Time::from_secs;
        let sample = |said: Time| Sample::of(said, said, said, said + Span::from_millis(2)).unwrap();
        assert!(!peer.sample(at(1), sample(at(1))), "nobody has asked");
        assert_eq!(peer.best_sample(), None);
        peer.ping(at(2));
        assert!(!peer.sample(at(1), sample(at(1))), "it was not asked that");
        assert!(peer.sample(at(2), sample(at(2))));
        assert_eq!(peer.best_sample(), Some(sample(at(2))));
        assert!(!peer.sample(at(2), sample(at(2))), "it has answered");
        peer.ping(at(3));
        assert!(!peer.sample(at(3), sample(at(3))), "it was told just now");
    }
}
