//! Peers over QUIC: connections made when there is something to say, confirmed by a hello, and let go when idle.
//!
//! ```text
//! driver ── Line::send ──▶ Peer: queue ── carry ──▶ Link (connection) ══▶ … ══▶ tend ── Mailbox ──▶ driver
//!                             │ no connection: dial, hello, back off
//!                             └ no address: the book, then ask whoever mentioned the node
//! ```
//!
//! - A key is a network identity (iroh): who is at the other end is known before the first word. That it belongs to the
//!   grid is what its hello shows ([`record`], [`crate::membership`]).
//! - Where somebody is stands in the address book: records signed by each node itself. A node asks for those that a
//!   message mentions and it does not know; addresses that have changed go along with the message.
//! - A connection costs a ping in five seconds for as long as it is open (the transport insists on it), and a new one about
//!   as much as eight minutes of that: so one that jobs have used stays for a while after the last word, and heartbeats
//!   keep it where something runs or waits. Gossip speaks with one node after the other, hardly ever with the same soon
//!   again: of the connections that it alone has used only a few stay.
//! - Relays only if some are named ([`crate::relay`]), and looking for nodes on the LAN only if that is asked for; no port
//!   mapping. Else nothing outside the grid is spoken to.

mod ask;
pub mod bare;
mod book;
mod counts;
mod facts;
mod hello;
mod hub;
mod join;
mod lan;
mod link;
mod peer;
pub mod record;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use iroh::dns::DnsResolver;
use iroh::endpoint::{
    IdleTimeout, NetReportConfig, PortmapperConfig, QuicTransportConfig, RelayMode, VarInt, presets,
};
use iroh::{EndpointAddr, TransportAddr};
use rand::SeedableRng;
use shoal_model::envelope::PublicKey;
use shoal_model::{NodeId, Time};
use shoal_protocols::Chance;
use shoal_protocols::node::{Message, Node};
use tokio::sync::{Notify, broadcast};

pub use ask::{
    Answer, AskError, CHUNK_MAX, Gone, NoAnswers, QUESTION_MAX, QUESTIONS_MAX, ReplySender, Responder,
};
pub use book::BOOK_MAX;
pub use counts::{Counts, Drop, Traffic};
pub use facts::{PeerFacts, Sample};
pub use hello::Reason;
pub use hub::Event;
pub use join::{JoinError, join};
pub use peer::QUEUE_MAX;
pub use record::{AddressRecord, Known};

use super::Network;
use crate::cabinet::{Cabinet, CabinetError};
use crate::clock::Clock;
use crate::identity::Identity;
use crate::inbox::Mailbox;
use crate::membership::{ADDRESSES_MAX, ChainError, Grid, GridError, Terms, Ticket};
use crate::relay::Relay;
use book::Book;
use counts::Counter;
use hello::{ALPN, ALPN_JOIN, chain_of};
use hub::Hub;

/// Events that wait for a slow listener, at most.
const EVENTS_MAX: usize = 256;
/// How long a path may be quiet before who was called pings; iroh takes nothing longer, and gives up paths that are quiet
/// for 15 s.
const PING_INCOMING: Duration = Duration::from_secs(5);
/// The same for who called: a little sooner, so that one of the two pings for both, unless a word takes a tenth of a second
/// and more. What a node without work sends is mostly this.
const PING_OUTGOING: Duration = Duration::from_millis(4_750);
/// Where this node's own address record is kept.
const OWN_DRAWER: &str = "address";
const OWN_KEY: &[u8] = b"own";

/// What the network can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where to listen; port 0 takes any that is free.
    pub bind: SocketAddr,
    /// Where others find this node, if that is not where it listens; empty for the addresses of this machine.
    pub advertise: Vec<SocketAddr>,
    /// What carries what cannot be sent directly; the nearest is kept informed where this node is.
    pub relays: Vec<Relay>,
    /// Whether to look on the LAN for nodes that are not where they were, and to say there where this one is.
    pub lan: bool,
    /// How long a connection over which nothing is said stays open.
    pub idle: Duration,
    /// How many connections over which nothing is said stay open, at most.
    pub connections_idle_max: usize,
    /// How many that only gossip has used stay open, at most, besides those it has just used.
    pub gossip_connections_max: usize,
    /// How long it has just used one.
    pub gossip_idle: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            bind: SocketAddr::from(([0, 0, 0, 0], 0)),
            advertise: Vec::new(),
            relays: Vec::new(),
            lan: false,
            idle: Duration::from_secs(600),
            connections_idle_max: 40,
            gossip_connections_max: 8,
            gossip_idle: Duration::from_secs(15),
        }
    }
}

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The socket.
    #[error("cannot listen on {bind}: {why}; is the port in use? choose another, or 0 for any")]
    Bind {
        /// Where.
        bind: SocketAddr,
        /// What the system said.
        why: String,
    },
    /// The cabinet.
    #[error(transparent)]
    Cabinet(#[from] CabinetError),
    /// This node is no member any more.
    #[error("this node is no member of its grid: {0}")]
    NotAMember(#[from] ChainError),
    /// Nobody could find this node.
    #[error("no address of this machine can be told to others; set the address to advertise")]
    NoAddress,
}

/// A node's network.
#[derive(Clone)]
pub struct Handle {
    hub: Arc<Hub>,
}

/// The driver's way into the network.
struct Line {
    hub: Arc<Hub>,
}

impl Network<Message> for Line {
    fn send(&mut self, to: NodeId, message: Message) {
        self.hub.say(to, message);
    }
}

/// Opens the network of a node. Must be called on a tokio runtime, and lives on that.
///
/// Order: start, then a driver with [`Handle::line`], then [`Handle::listen`] with its mailbox. What comes before that
/// is dropped, as by a network, and counted.
pub async fn start(
    settings: Settings,
    identity: &Identity,
    grid: Arc<Grid>,
    cabinet: Arc<dyn Cabinet>,
    clock: Clock,
    responder: Arc<dyn Responder>,
) -> Result<Handle, StartError> {
    let now = clock.now();
    grid.member(now)?;
    let endpoint = endpoint(&settings, identity, vec![ALPN.to_vec(), ALPN_JOIN.to_vec()]).await?;
    let outgoing = transport(&settings, PING_OUTGOING)?;
    let own = own_record(&settings, identity, &grid, &endpoint, &*cabinet, now)?;
    let book = Book::open(grid.id(), &*cabinet, now)?;
    let mut life = [0; 8];
    life.copy_from_slice(&Identity::generate().public().0[..8]);
    let life = u64::from_be_bytes(life);
    let hub = Arc::new(Hub {
        me: identity.node(),
        life,
        clock,
        settings,
        grid,
        own,
        outgoing,
        endpoint,
        cabinet,
        responder,
        counts: Counter::default(),
        events: broadcast::Sender::new(EVENTS_MAX),
        learned: Notify::new(),
        unkept: Notify::new(),
        mailbox: OnceLock::new(),
        hellos: Hub::hellos(),
        runtime: tokio::runtime::Handle::current(),
        book: Mutex::new(book),
        peers: Mutex::new(HashMap::new()),
        luck: Mutex::new(Chance::seed_from_u64(life)),
        newcomers: Mutex::default(),
    });
    tokio::spawn(hub::listen(Arc::clone(&hub)));
    tokio::spawn(hub::look_after(Arc::clone(&hub)));
    tokio::spawn(hub::keep_learned(Arc::clone(&hub)));
    Ok(Handle { hub })
}

impl Handle {
    /// This node.
    pub fn me(&self) -> NodeId {
        self.hub.me
    }

    /// Where others find this node.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.hub.own.addresses
    }

    /// The grid that this node belongs to.
    pub fn grid(&self) -> &Arc<Grid> {
        &self.hub.grid
    }

    /// A way into the network, for a driver.
    pub fn line(&self) -> Box<dyn Network<Message>> {
        Box::new(Line { hub: Arc::clone(&self.hub) })
    }

    /// Delivers what comes from now on into a mailbox; only the first one given is used.
    pub fn listen(&self, mailbox: Mailbox<Node>) {
        if self.hub.mailbox.set(mailbox).is_err() {
            tracing::warn!("a second mailbox for one network is not used");
        }
    }

    /// Asks a node something; also this node itself.
    pub async fn ask(&self, to: NodeId, question: Vec<u8>) -> Result<Answer, AskError> {
        ask::ask(&self.hub, to, question).await
    }

    /// Issues a ticket that leads to this node.
    pub fn ticket(&self, terms: Terms) -> Result<Ticket, GridError> {
        let own = &self.hub.own;
        self.hub.grid.issue(own.addresses.clone(), own.relays.clone(), terms, self.hub.clock.now())
    }

    /// The time by the clock of the network.
    pub fn now(&self) -> Time {
        self.hub.clock.now()
    }

    /// What the network tells from now on; who is slow misses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.hub.events.subscribe()
    }

    /// Nodes whose address is known, those used last first: whom to meet after a start.
    pub fn known(&self, most: usize) -> Vec<NodeId> {
        self.hub.book().recent(most).iter().map(|known| known.member.node).collect()
    }

    /// Who is connected, by id.
    pub fn connected(&self) -> Vec<NodeId> {
        let peers = self.hub.all_peers();
        let mut nodes: Vec<_> =
            peers.iter().filter(|peer| peer.link().is_some()).map(|peer| peer.node).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Whether a node has said that it stops, and has not been spoken with since.
    pub fn has_stopped(&self, node: NodeId) -> bool {
        self.hub.book().has_stopped(node) && self.hub.met(node).is_none_or(|peer| peer.link().is_none())
    }

    /// What is known of a node.
    pub fn record(&self, node: NodeId) -> Option<Arc<Known>> {
        self.hub.book().get(node)
    }

    /// What is known of each peer from speaking with it.
    pub fn peer_facts(&self) -> Vec<PeerFacts> {
        let mut facts: Vec<_> = self.hub.all_peers().iter().map(|peer| self.facts(peer)).collect();
        facts.sort_by_key(|facts| facts.node);
        facts
    }

    /// By how many microseconds a node's clock is ahead of ours, if they have spoken.
    pub fn ahead_us(&self, node: NodeId) -> Option<i64> {
        Some(self.hub.met(node)?.best_sample()?.ahead_us)
    }

    fn facts(&self, peer: &peer::Peer) -> PeerFacts {
        let known = self.hub.book().get(peer.node);
        let sample = peer.best_sample();
        let (bytes_in, bytes_out) = peer.bytes();
        PeerFacts {
            node: peer.node,
            key: known.as_ref().map(|known| known.member.key),
            organisation: known.as_ref().and_then(|known| known.member.organisation.clone()),
            addresses: known.map(|known| known.addresses.clone()).unwrap_or_default(),
            connected: peer.link().is_some(),
            round_trip: sample.map(|sample| sample.round_trip),
            ahead_us: sample.map(|sample| sample.ahead_us),
            bytes_in,
            bytes_out,
            last_heard: peer.last_heard(),
        }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let mut counts = self.hub.counts.read();
        for link in self.hub.all_peers().iter().filter_map(|peer| peer.link()) {
            let stats = link.conn.stats();
            counts.connections += 1;
            counts.udp_sent += stats.udp_tx.bytes;
            counts.udp_received += stats.udp_rx.bytes;
        }
        counts.addresses = self.hub.book().len() as u64;
        counts
    }

    /// Says goodbye to all peers and lets go of the socket.
    pub async fn close(&self) {
        // First, since it takes a while: who is told goodbye too soon may call again.
        self.hub.keep_book().await;
        for peer in self.hub.all_peers() {
            if let Some(link) = peer.link() {
                link.close(Reason::Leaving);
            }
            peer.end();
        }
        self.hub.endpoint.close().await;
        self.hub.peers.lock().map(|mut peers| peers.clear()).unwrap_or_default();
    }
}

/// How a connection goes over which this node says something at least this often.
fn transport(settings: &Settings, ping: Duration) -> Result<QuicTransportConfig, StartError> {
    // Longer than connections are left idle: those are closed with a word.
    let quic_idle =
        IdleTimeout::try_from(settings.idle.max(Duration::from_secs(30)) + Duration::from_secs(30))
            .map_err(|error| StartError::Bind { bind: settings.bind, why: error.to_string() })?;
    let config = QuicTransportConfig::builder()
        .max_idle_timeout(Some(quic_idle))
        // The path is kept alive already.
        .keep_alive_interval(settings.idle + Duration::from_secs(60))
        .default_path_keep_alive_interval(ping)
        .mtu_discovery_config(None)
        .max_concurrent_uni_streams(VarInt::from_u32(4))
        .max_concurrent_bidi_streams(VarInt::from_u32(2 * QUESTIONS_MAX as u32))
        .build();
    Ok(config)
}

/// A socket that speaks only to whom it is told to.
async fn endpoint(
    settings: &Settings,
    identity: &Identity,
    alpns: Vec<Vec<u8>>,
) -> Result<iroh::Endpoint, StartError> {
    let failed = |why: String| StartError::Bind { bind: settings.bind, why };
    let transport = transport(settings, PING_INCOMING)?;
    let relays = match settings.relays.as_slice() {
        [] => RelayMode::Disabled,
        relays => RelayMode::custom(relays.iter().map(|relay| relay.url().clone())),
    };
    // Relays without a certificate can only be asked how near they are over HTTP.
    let mut report = NetReportConfig::minimal();
    report.https_probes = !settings.relays.is_empty();
    // Whoever looks up a relay's name is told by the system alone: no public server hears of it.
    let names = DnsResolver::builder().with_system_defaults().disable_fallback().build();
    let builder = iroh::Endpoint::builder(presets::Minimal)
        .dns_resolver(names)
        .relay_mode(relays)
        .clear_address_lookup()
        .portmapper_config(PortmapperConfig::Disabled)
        .net_report_config(report)
        .clear_ip_transports()
        .bind_addr(settings.bind)
        .map_err(|error| failed(error.to_string()))?
        .secret_key(identity.secret().clone())
        .alpns(alpns)
        .transport_config(transport);
    let endpoint = builder.bind().await.map_err(|error| failed(chain_of(&error)))?;
    if settings.lan {
        lan::look(&endpoint);
    }
    Ok(endpoint)
}

/// Where somebody with this key is to be found; none if it is no key. Of the relays that it names only those are tried
/// that this node was told to use: to try one is to speak with it.
fn there(
    settings: &Settings,
    key: &PublicKey,
    addresses: &[SocketAddr],
    relays: &[Relay],
) -> Option<EndpointAddr> {
    let key = iroh::PublicKey::from_bytes(&key.0).ok()?;
    let addresses = addresses.iter().copied().map(TransportAddr::Ip);
    let ours = relays.iter().filter(|relay| settings.relays.contains(relay));
    let relays = ours.map(|relay| TransportAddr::Relay(relay.url().clone()));
    Some(EndpointAddr::from_parts(key, addresses.chain(relays)))
}

/// Where this node is: a new record with a higher number if that has changed since its last life.
fn own_record(
    settings: &Settings,
    identity: &Identity,
    grid: &Grid,
    endpoint: &iroh::Endpoint,
    cabinet: &dyn Cabinet,
    now: Time,
) -> Result<Known, StartError> {
    let addresses = own_addresses(settings, endpoint);
    let relays = settings.relays.clone();
    if addresses.is_empty() && relays.is_empty() {
        return Err(StartError::NoAddress);
    }
    let kept = cabinet.get(OWN_DRAWER, OWN_KEY)?;
    let before = kept
        .and_then(|bytes| minicbor::decode::<AddressRecord>(&bytes).ok())
        .and_then(|record| record.verify(grid.id(), now).ok());
    if let Some(before) = &before
        && before.addresses == addresses
        && before.relays == relays
        && before.member == grid.member(now)?
    {
        return Ok(before.clone());
    }
    // Should what was kept be lost, the time still makes the number larger than all before.
    let number = before.map_or(0, |before| before.number + 1).max(now.as_secs());
    let record = AddressRecord::new(identity, grid.chain(), addresses.clone(), relays.clone(), number);
    let bytes = minicbor::to_vec(&record).expect("writing to memory does not fail");
    cabinet.put(OWN_DRAWER, OWN_KEY, &bytes)?;
    Ok(Known { member: grid.member(now)?, addresses, relays, number, record })
}

fn own_addresses(settings: &Settings, endpoint: &iroh::Endpoint) -> Vec<SocketAddr> {
    let mut addresses = settings.advertise.clone();
    if addresses.is_empty() {
        let told = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_unicast_link_local(),
        };
        addresses = endpoint.bound_sockets().into_iter().filter(|address| told(address)).collect();
        if addresses.is_empty() {
            addresses = endpoint.addr().ip_addrs().copied().filter(|address| told(address)).collect();
        }
        // Where there is another way, nobody else can use a loopback.
        if addresses.iter().any(|address| !address.ip().is_loopback()) {
            addresses.retain(|address| !address.ip().is_loopback());
        }
    }
    addresses.truncate(ADDRESSES_MAX);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_that_nobody_told_this_node_of_is_not_tried() {
        let ours: Relay = "https://relay.example.org".parse().unwrap();
        let theirs: Relay = "http://192.0.2.1:8080".parse().unwrap();
        let address = SocketAddr::from(([192, 0, 2, 7], 4433));
        let key = Identity::from_bytes(&[1; 32]).public();
        let tried = |relays: Vec<Relay>| {
            let settings = Settings { relays, ..Settings::default() };
            let there = there(&settings, &key, &[address], &[theirs.clone(), ours.clone()]).unwrap();
            assert_eq!(there.ip_addrs().collect::<Vec<_>>(), [&address]);
            there.relay_urls().cloned().collect::<Vec<_>>()
        };
        assert_eq!(tried(vec![]), []);
        assert_eq!(tried(vec![ours.clone()]), [ours.url().clone()]);
    }
}
