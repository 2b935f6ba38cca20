//! What all connections of a node share, and how each is tended.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use iroh::Endpoint;
use iroh::endpoint::{ConnectionError, Incoming, IncomingAddr, QuicTransportConfig, RecvStream};
use rand::RngExt;
use shoal_model::envelope::PublicKey;
use shoal_model::{NodeId, Span, Time};
use shoal_protocols::Chance;
use shoal_protocols::node::{Message, Node};
use shoal_protocols::protocol::Message as _;
use tokio::sync::{Notify, broadcast};

use super::ask::{self, Responder};
use super::book::{self, Book, Learned};
use super::counts::{Counter, Drop, add};
use super::facts::Sample;
use super::hello::{self, ALPN, ALPN_JOIN, ReadFrame, Reason};
use super::link::{self, Link};
use super::peer::{self, Peer, Waiting};
use super::record::{AddressRecord, Known};
use super::{Settings, join};
use crate::cabinet::Cabinet;
use crate::clock::Clock;
use crate::inbox::{Mailbox, Refused};
use crate::membership::Grid;
use crate::network::wire::words::{Ping, Pong, WHO_MAX, Who, Word};
use crate::network::wire::{self, HEAD, PAYLOAD_MAX, Unread};
use crate::places::{Place, Places};

/// How long a dial and a hello may take.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Hellos that are heard at once, at most; for one more, the oldest of whoever has most is given up.
const HELLOS_MAX: usize = 64;
/// With so many at once, newcomers first show that they are where they say, which costs us nothing.
const HELLOS_UNPROVEN_MAX: usize = 16;
/// Peers that are spoken to at once, at most.
const PEERS_MAX: usize = 4096;
/// How often connections are looked after.
const TICK: Duration = Duration::from_secs(1);
/// How long what is learned is gathered before it is kept at once.
const KEEP_PAUSE: Duration = Duration::from_millis(50);
/// How long an answer of any kind may take on a connection before it is given up.
const DEAD_AFTER: Duration = Duration::from_secs(6);
/// How often a peer is pinged with whom a question is open.
const PING_EVERY: Duration = Duration::from_secs(2);
/// How long a connection that is not used any more is heard out.
const RETIRE_AFTER: Duration = Duration::from_secs(2);
/// Peers that are asked where somebody is, at most.
const ASK_AROUND: usize = 4;
/// Peers that are told of a newcomer, at most.
const INTRODUCED_TO: usize = 32;
/// For how long a newcomer is one that other newcomers are told of, and how many are at once, at most.
const NEW_FOR: Duration = Duration::from_secs(30);
const NEWCOMERS_MAX: usize = 32;
/// Nodes looked at that one message mentions, at most.
const MENTIONS_MAX: usize = 256;

/// What the network tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer is connected.
    Connected(NodeId),
    /// A connection ended in peace.
    Parted {
        /// With whom.
        node: NodeId,
        /// Why.
        reason: Reason,
    },
    /// A connection was lost: the peer fell silent, or died.
    Lost {
        /// To whom.
        node: NodeId,
        /// What was seen.
        why: String,
    },
    /// Somebody was refused here.
    Refused {
        /// Who.
        key: PublicKey,
        /// Why.
        reason: Reason,
        /// Why, for people.
        text: String,
    },
    /// This node was refused by another.
    RefusedBy {
        /// By whom.
        node: NodeId,
        /// Why.
        reason: Reason,
        /// Why, for people.
        text: String,
    },
    /// A peer could not be reached.
    Unreachable {
        /// Who.
        node: NodeId,
        /// Why.
        why: String,
    },
    /// It was measured how far a peer is; of each not very often.
    Measured {
        /// Who.
        node: NodeId,
        /// How long a word took there and back.
        round_trip: Span,
    },
    /// Somebody has joined the grid here.
    Admitted(NodeId),
}

/// What all connections share.
pub(super) struct Hub {
    pub me: NodeId,
    pub life: u64,
    pub clock: Clock,
    pub settings: Settings,
    pub grid: Arc<Grid>,
    pub own: Known,
    pub endpoint: Endpoint,
    /// How connections go that this node makes.
    pub outgoing: QuicTransportConfig,
    pub cabinet: Arc<dyn Cabinet>,
    pub responder: Arc<dyn Responder>,
    pub counts: Counter,
    pub events: broadcast::Sender<Event>,
    /// Something new is in the book.
    pub learned: Notify,
    /// Something in the book is not kept yet.
    pub unkept: Notify,
    pub mailbox: OnceLock<Mailbox<Node>>,
    pub hellos: Arc<Places>,
    pub runtime: tokio::runtime::Handle,
    pub book: Mutex<Book>,
    pub peers: Mutex<HashMap<NodeId, Arc<Peer>>>,
    pub luck: Mutex<Chance>,
    /// Who has shown itself here lately that was not known.
    pub newcomers: Mutex<VecDeque<(Instant, AddressRecord)>>,
}

const UNPOISONED: &str = "nothing panics while it holds a part of the hub";

impl Hub {
    pub fn hellos() -> Arc<Places> {
        Places::new(HELLOS_MAX, HELLOS_MAX)
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect(UNPOISONED)
    }

    pub fn luck(&self, range: Range<u32>) -> u32 {
        self.luck.lock().expect(UNPOISONED).random_range(range)
    }

    pub fn tell(&self, event: Event) {
        // Nobody may listen.
        let _ = self.events.send(event);
    }

    /// A peer to speak with, unless there are too many.
    pub fn peer(self: &Arc<Hub>, node: NodeId) -> Option<Arc<Peer>> {
        let mut peers = self.peers.lock().expect(UNPOISONED);
        if let Some(peer) = peers.get(&node) {
            return Some(Arc::clone(peer));
        }
        if peers.len() >= PEERS_MAX {
            let idle = peers.values().filter(|peer| peer.is_idle()).min_by_key(|peer| peer.used());
            let idle = idle.map(|peer| peer.node)?;
            if let Some(peer) = peers.remove(&idle) {
                peer.end();
            }
        }
        let peer = Arc::new(Peer::new(node));
        peers.insert(node, Arc::clone(&peer));
        drop(peers);
        self.runtime.spawn(peer::carry(Arc::clone(self), Arc::clone(&peer)));
        Some(peer)
    }

    /// A peer that was spoken with, if it still is.
    pub fn met(&self, node: NodeId) -> Option<Arc<Peer>> {
        self.peers.lock().expect(UNPOISONED).get(&node).cloned()
    }

    pub fn all_peers(&self) -> Vec<Arc<Peer>> {
        self.peers.lock().expect(UNPOISONED).values().cloned().collect()
    }

    /// Says something to a peer, or to the node itself; never waits.
    pub fn say(self: &Arc<Hub>, to: NodeId, message: Message) {
        if to == self.me {
            self.deliver(to, message);
            return;
        }
        match self.peer(to) {
            Some(peer) => self.counts.dropped(Drop::QueueFull, peer.push(Waiting::Message(message))),
            None => self.counts.dropped(Drop::TooManyPeers, 1),
        }
    }

    fn deliver(&self, from: NodeId, message: Message) {
        let drop = match self.mailbox.get().map(|mailbox| mailbox.message(from, message)) {
            Some(Ok(())) => return,
            Some(Err(Refused::Full)) => Drop::MailboxFull,
            Some(Err(Refused::Stopped)) | None => Drop::NotListening,
        };
        self.counts.dropped(drop, 1);
    }

    /// Takes an address record in; whether it is news.
    pub fn learn(&self, record: AddressRecord) -> bool {
        let learned = self.book().learn(record, self.clock.now());
        let news = matches!(learned, Learned::News(_));
        match learned {
            Learned::News(_) => {
                self.learned.notify_waiters();
                self.unkept.notify_one();
            }
            Learned::Old => {}
            Learned::Taken => {
                tracing::warn!("an address record is refused: another key has the same node id")
            }
            Learned::Refused(error) => tracing::debug!("an address record is refused: {error}"),
        }
        news
    }

    /// Tells some who are connected of one who is new here, or not where it was, and it of those who were new lately. Gossip
    /// tells everybody, but takes minutes; and two who come at once hear of each other from nobody else.
    fn introduce(&self, newcomer: &Peer, record: &AddressRecord) {
        let mut others = self.all_peers();
        others.retain(|peer| peer.node != newcomer.node && peer.link().is_some());
        for peer in others.into_iter().take(INTRODUCED_TO) {
            peer.push(Waiting::Frame(record.frame()));
        }
        let mut lately = self.newcomers.lock().expect(UNPOISONED);
        lately.retain(|(since, other)| since.elapsed() < NEW_FOR && other != record);
        for (_, other) in lately.iter() {
            newcomer.push(Waiting::Frame(other.frame()));
        }
        if lately.len() >= NEWCOMERS_MAX {
            lately.pop_front();
        }
        lately.push_back((Instant::now(), record.clone()));
    }

    /// Asks some peers where a node is: first who mentioned it.
    pub fn ask_around(&self, node: NodeId) {
        let teller = self.book().teller(node);
        let mut peers: Vec<_> =
            self.all_peers().into_iter().filter(|peer| peer.node != node && peer.link().is_some()).collect();
        peers.sort_by_cached_key(|peer| (Some(peer.node) != teller, std::cmp::Reverse(peer.used())));
        for peer in peers.into_iter().take(ASK_AROUND) {
            peer.push(peer::who(vec![node]));
        }
    }

    /// Puts a new connection to use, and tends it.
    pub fn welcome(self: &Arc<Hub>, peer: &Arc<Peer>, link: Link) {
        let link = Arc::new(link);
        add(&self.counts.connected, 1);
        if let Some(spare) = peer.install(Arc::clone(&link), self.me) {
            self.runtime.spawn(async move {
                // What was said on it before the other side knew is heard.
                tokio::time::sleep(RETIRE_AFTER).await;
                spare.close(Reason::Spare);
            });
        }
        peer.heard(self.clock.now());
        if link.is_news {
            self.introduce(peer, &link.known.record);
        }
        self.book().note_stopped(peer.node, false);
        self.tell(Event::Connected(peer.node));
        tracing::debug!(peer = %peer.node, "connected");
        self.runtime.spawn(tend(Arc::clone(self), Arc::clone(peer), link));
    }

    fn heard(
        self: &Arc<Hub>,
        peer: &Arc<Peer>,
        link: &Link,
        kind: u16,
        payload: &[u8],
    ) -> Result<(), Unread> {
        let now = self.clock.now();
        match kind {
            AddressRecord::KIND => {
                self.learn(AddressRecord::read(payload)?);
            }
            Who::KIND => {
                let Who(nodes) = Who::read(payload)?;
                for node in nodes.into_iter().take(WHO_MAX) {
                    let record = if node == self.me {
                        Some(self.own.record.clone())
                    } else {
                        self.book().get(node).map(|known| known.record.clone())
                    };
                    if let Some(record) = record {
                        peer.push(Waiting::Frame(record.frame()));
                    }
                }
            }
            Ping::KIND => {
                let Ping { said } = Ping::read(payload)?;
                let pong = Pong { said, heard: now, answered: self.clock.now() };
                peer.push(Waiting::Frame(pong.frame()));
            }
            Pong::KIND => {
                let Pong { said, heard, answered } = Pong::read(payload)?;
                if let Some(sample) = Sample::of(said, heard, answered, now) {
                    // There and back with the time that it took to answer: what it says of that could be anything.
                    let round_trip = now.since(said);
                    if peer.sample(said, sample) {
                        self.tell(Event::Measured { node: peer.node, round_trip });
                    }
                }
            }
            kind => {
                let message = wire::read(kind, payload)?;
                self.counts.received(Message::KINDS[message.kind()], HEAD + payload.len());
                if !link::is_gossip(&message) {
                    link.needed();
                }
                self.look_for_mentioned(peer, &message);
                self.deliver(peer.node, message);
            }
        }
        Ok(())
    }

    /// Asks a peer where those are that it mentions and that are not known here.
    fn look_for_mentioned(&self, peer: &Peer, message: &Message) {
        let mut unknown = Vec::new();
        let mut left = MENTIONS_MAX;
        let mut book = self.book();
        message.mentions(&mut |node| {
            if left > 0 && node != self.me && node != peer.node && book.mentioned(node, peer.node) {
                left -= 1;
                unknown.push(node);
            }
        });
        drop(book);
        for nodes in unknown.chunks(WHO_MAX) {
            peer.push(peer::who(nodes.to_vec()));
        }
    }

    /// Looks after all connections once.
    fn look_after(self: &Arc<Hub>, now: Time) {
        let Settings { idle, connections_idle_max, gossip_idle, gossip_connections_max, .. } = self.settings;
        let (mut needed, mut spare) = (Vec::new(), Vec::new());
        for peer in self.all_peers() {
            let Some(link) = peer.link() else { continue };
            let datagrams = link.conn.stats().udp_rx.datagrams;
            if link.datagrams.swap(datagrams, Ordering::Relaxed) != datagrams {
                link.waits_since.store(0, Ordering::Relaxed);
                peer.heard(now);
            }
            let waits = link.waits_since.load(Ordering::Relaxed);
            let waited = Duration::from_millis(link.age().saturating_sub(waits));
            let busy = link.questions.load(Ordering::Relaxed) > 0;
            if waits > 0 && waited >= DEAD_AFTER {
                link.close(Reason::Silent);
            } else if link.known.member.expires <= now {
                link.close(Reason::Expired);
            } else if busy {
                let pinged =
                    Duration::from_millis(link.age().saturating_sub(link.pinged.load(Ordering::Relaxed)));
                if pinged >= PING_EVERY {
                    link.pinged.store(link.age(), Ordering::Relaxed);
                    let ping = peer.ping(now);
                    peer.push(Waiting::Frame(ping));
                }
            } else if link.silent() >= idle {
                link.close(Reason::Idle);
            } else if link.is_needed(idle) {
                needed.push(link);
            } else {
                spare.push(link);
            }
        }
        let lapse = |mut links: Vec<Arc<Link>>, most: usize, quiet: Duration| {
            // Each looked at once: what changes while it is sorted has no order.
            links.sort_by_cached_key(|link| link.silent());
            let lapsed = links.iter().skip(most).filter(|link| link.silent() >= quiet);
            lapsed.for_each(|link| link.close(Reason::Idle));
        };
        lapse(needed, connections_idle_max, Duration::ZERO);
        lapse(spare, gossip_connections_max, gossip_idle);
    }

    /// Keeps what the book has learned.
    pub async fn keep_book(self: &Arc<Hub>) {
        let dirty = self.book().take_dirty();
        if dirty.is_empty() {
            return;
        }
        let cabinet = Arc::clone(&self.cabinet);
        let kept = tokio::task::spawn_blocking(move || book::keep(&*cabinet, dirty)).await;
        match kept {
            Ok(Ok(())) => {}
            // Nothing is lost that the peers would not tell again.
            Ok(Err(error)) => tracing::error!("addresses are not kept: {error}"),
            Err(error) => tracing::error!("addresses are not kept: {error}"),
        }
    }
}

/// Hears those who dial, until the endpoint is closed.
pub(super) async fn listen(hub: Arc<Hub>) {
    while let Some(incoming) = hub.endpoint.accept().await {
        if hub.hellos.strangers() >= HELLOS_UNPROVEN_MAX && !incoming.remote_addr_validated() {
            // It fails for who cannot be asked again; then there is nothing to hear either.
            let _ = incoming.retry();
            continue;
        }
        let from = match incoming.remote_addr() {
            IncomingAddr::Ip(address) => address,
            // Whoever comes through a relay is told from the others by its key.
            IncomingAddr::Relay { endpoint_id, .. } => by_key(endpoint_id.as_bytes()),
            _ => SocketAddr::from(([0, 0, 0, 0], 0)),
        };
        let (place, hub) = (hub.hellos.enter(from.ip(), from), Arc::clone(&hub));
        tokio::spawn(async move {
            tokio::select! {
                () = admit(hub, incoming, &place) => {}
                () = place.must_leave() => {}
            }
        });
    }
}

/// What stands for an address where there is none.
fn by_key(key: &[u8; 32]) -> SocketAddr {
    let mut place = [0; 16];
    place.copy_from_slice(&key[..16]);
    SocketAddr::from((place, 0))
}

async fn admit(hub: Arc<Hub>, incoming: Incoming, place: &Place) {
    let Ok(accepting) = incoming.accept() else { return };
    let Ok(Ok(conn)) = tokio::time::timeout(CONNECT_WITHIN, accepting).await else { return };
    let alpn = conn.alpn().to_vec();
    if alpn == ALPN_JOIN {
        join::answer(&hub, conn, place).await;
    } else if alpn == ALPN
        && let Ok(link) = hello::accept(&hub, conn).await
    {
        match hub.peer(link.known.member.node) {
            Some(peer) => hub.welcome(&peer, link),
            None => link.close(Reason::Busy),
        }
    }
}

/// Looks after connections, until the endpoint is closed.
pub(super) async fn look_after(hub: Arc<Hub>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !hub.endpoint.is_closed() {
        tick.tick().await;
        hub.look_after(hub.clock.now());
    }
}

/// Keeps what is learned, soon: a node that knew nobody after a crash would be lost to all whose address it had.
pub(super) async fn keep_learned(hub: Arc<Hub>) {
    while !hub.endpoint.is_closed() {
        let _ = tokio::time::timeout(TICK, hub.unkept.notified()).await;
        hub.keep_book().await;
        tokio::time::sleep(KEEP_PAUSE).await;
    }
}

/// Hears a connection out until its end.
async fn tend(hub: Arc<Hub>, peer: Arc<Peer>, link: Arc<Link>) {
    let end = tokio::select! {
        end = link.conn.closed() => end,
        () = hear_messages(&hub, &peer, &link) => link.conn.closed().await,
        () = ask::hear(&hub, &peer, &link) => link.conn.closed().await,
    };
    let stats = link.conn.stats();
    add(&hub.counts.udp_sent, stats.udp_tx.bytes);
    add(&hub.counts.udp_received, stats.udp_rx.bytes);
    if !peer.uninstall(&link) {
        return;
    }
    let node = peer.node;
    let reason = match &end {
        ConnectionError::ApplicationClosed(close) => Some(Reason::of(close.error_code.into_inner())),
        ConnectionError::LocallyClosed => link.closed_for.get().copied(),
        _ => None,
    };
    if reason == Some(Reason::Leaving) && matches!(end, ConnectionError::ApplicationClosed(_)) {
        hub.book().note_stopped(node, true);
    }
    let event = match reason.filter(|reason| *reason != Reason::Silent) {
        Some(reason) => Event::Parted { node, reason },
        None => {
            let why = reason.map_or_else(|| end.to_string(), |reason| reason.text().to_owned());
            tracing::info!(peer = %node, "lost: {why}");
            Event::Lost { node, why }
        }
    };
    hub.tell(event);
}

/// Hears what a peer says, stream after stream.
async fn hear_messages(hub: &Arc<Hub>, peer: &Arc<Peer>, link: &Link) {
    while let Ok(mut stream) = link.conn.accept_uni().await {
        if let Err(what) = hear_stream(hub, peer, link, &mut stream).await {
            tracing::warn!(peer = %peer.node, "the connection is closed: {what}");
            hub.counts.dropped(Drop::Garbled, 1);
            link.close(Reason::Garbled);
        }
    }
}

async fn hear_stream(
    hub: &Arc<Hub>,
    peer: &Arc<Peer>,
    link: &Link,
    stream: &mut RecvStream,
) -> Result<(), String> {
    loop {
        let frame = match hello::read_frame(stream, PAYLOAD_MAX).await {
            Ok(frame) => frame,
            Err(ReadFrame::Over) => return Ok(()),
            // After a length that cannot be nobody knows where the next frame begins.
            Err(ReadFrame::Garbled(what)) => return Err(what),
        };
        link.spoke();
        if !hello::is_ours(&frame) {
            hub.counts.dropped(Drop::UnknownKind, 1);
            continue;
        }
        match hub.heard(peer, link, frame.kind, &frame.payload) {
            Ok(()) => {}
            Err(Unread::Unknown(kind)) => {
                tracing::debug!(peer = %peer.node, "a frame of kind {kind:#06x} is skipped");
                hub.counts.dropped(Drop::UnknownKind, 1);
            }
            Err(error @ (Unread::Malformed(_) | Unread::Garbled { .. } | Unread::Unsound(_))) => {
                tracing::warn!(peer = %peer.node, "a frame is dropped: {error}");
                hub.counts.dropped(Drop::Garbled, 1);
            }
        }
    }
}
