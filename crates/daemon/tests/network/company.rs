//! Bad company: strangers, members that have expired, garbage, frames that lie, and a peer that does not read.

use std::sync::Arc;

use iroh::endpoint::{Connection, RecvStream, RelayMode, SendStream, presets};
use iroh::{Endpoint, EndpointAddr, SecretKey, TransportAddr};
use shoal_daemon::membership::{Grid, Terms};
use shoal_daemon::network::quic::{AddressRecord, Drop, Event, Reason};
use shoal_daemon::network::wire::words::{Confirm, Hello, PROTOCOL, Refused, Welcome, Word};
use shoal_daemon::network::wire::{HEAD, Head};
use shoal_daemon::{Clock, Identity, MemoryCabinet};
use shoal_model::Span;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::Message;

use crate::station::{Station, event, eventually};

/// Somebody who speaks the protocol by hand.
struct Stranger {
    identity: Identity,
    endpoint: Endpoint,
}

impl Stranger {
    async fn new() -> Stranger {
        let key = SecretKey::generate();
        let endpoint = Endpoint::builder(presets::Minimal)
            .relay_mode(RelayMode::Disabled)
            .clear_address_lookup()
            .clear_ip_transports()
            .bind_addr("127.0.0.1:0")
            .unwrap()
            .secret_key(key.clone())
            .bind()
            .await
            .unwrap();
        Stranger { identity: Identity::from_bytes(&key.to_bytes()), endpoint }
    }

    /// Makes it a member of a grid, for so long.
    fn admitted(&self, station: &Station, member_for: Span) -> Grid {
        let grid = station.handle.grid();
        let ticket = station.handle.ticket(Terms { member_for, ..Terms::default() }).unwrap();
        let now = Clock::new().now();
        let key = self.identity.public();
        let admission = grid.redeem(ticket.grid, ticket.issuer, &ticket.token, key, |_| None, now).unwrap();
        Grid::enter(&self.identity, grid.id(), admission, Arc::<MemoryCabinet>::default(), now).unwrap()
    }

    fn hello(&self, grid: &Grid) -> Hello {
        let record =
            AddressRecord::new(&self.identity, grid.chain(), vec![([127, 0, 0, 1], 9).into()], vec![], 1);
        Hello {
            version: PROTOCOL,
            oldest: PROTOCOL,
            grid: grid.id(),
            record,
            life: 1,
            clock: Clock::new().now(),
        }
    }

    async fn connect(&self, station: &Station) -> Connection {
        let key = iroh::PublicKey::from_bytes(&station.identity.public().0).unwrap();
        let there =
            EndpointAddr::from_parts(key, station.handle.addresses().iter().copied().map(TransportAddr::Ip));
        self.endpoint.connect(there, b"shoal/1").await.unwrap()
    }

    /// Says something in place of a hello, and hears the answer.
    async fn open(
        &self,
        station: &Station,
        bytes: &[u8],
    ) -> (Connection, SendStream, Option<(u16, Vec<u8>)>) {
        let conn = self.connect(station).await;
        let (mut send, mut receive) = conn.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        let answer = frame(&mut receive).await;
        (conn, send, answer)
    }

    /// Gets in as a sound member does.
    async fn enter(&self, station: &Station, grid: &Grid) -> Connection {
        let (conn, mut send, answer) = self.open(station, &self.hello(grid).frame()).await;
        assert_eq!(answer.unwrap().0, Welcome::KIND);
        let now = Clock::new().now();
        send.write_all(&Confirm { heard: now, clock: now }.frame()).await.unwrap();
        conn
    }
}

async fn frame(receive: &mut RecvStream) -> Option<(u16, Vec<u8>)> {
    let mut head = [0; HEAD];
    receive.read_exact(&mut head).await.ok()?;
    let head = Head::read(&head).unwrap();
    let mut payload = vec![0; head.length];
    receive.read_exact(&mut payload).await.ok()?;
    Some((head.kind, payload))
}

fn reason(answer: Option<(u16, Vec<u8>)>) -> (Reason, String) {
    let (kind, payload) = answer.expect("a refusal is told");
    assert_eq!(kind, Refused::KIND);
    let Refused { code, text } = Refused::read(&payload).unwrap();
    (Reason::of(u64::from(code)), text)
}

fn dropped(station: &Station, why: Drop) -> u64 {
    station.handle.counts().dropped.get(&why).copied().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_belong_here_is_told_why() {
    let (first, other) = (Station::first().await, Station::first().await);
    let mut events = first.handle.events();

    let guest = Stranger::new().await;
    let elsewhere = guest.admitted(&other, Span::from_hours(1));
    let (_, _, answer) = guest.open(&first, &guest.hello(&elsewhere).frame()).await;
    let (why, text) = reason(answer);
    assert_eq!(why, Reason::OtherGrid);
    assert!(text.contains(&elsewhere.id().to_string()), "{text}");
    // The same under a false flag.
    let lie = Hello { grid: first.handle.grid().id(), ..guest.hello(&elsewhere) };
    assert_eq!(reason(guest.open(&first, &lie.frame()).await.2).0, Reason::NotAMember);

    let late = Stranger::new().await;
    let grid = late.admitted(&first, Span::from_millis(20));
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let (why, text) = reason(late.open(&first, &late.hello(&grid).frame()).await.2);
    assert_eq!(why, Reason::Expired);
    assert!(text.contains("expired") && text.contains("ticket"), "{text}");

    let newer = Stranger::new().await;
    let grid = newer.admitted(&first, Span::from_hours(1));
    let hello = Hello { version: 9, oldest: 8, ..newer.hello(&grid) };
    let (why, text) = reason(newer.open(&first, &hello.frame()).await.2);
    assert_eq!(why, Reason::Version);
    assert!(text.contains("8 to 9") && text.contains("update"), "{text}");
    // A later version that still speaks ours is welcome.
    let hello = Hello { version: 9, ..newer.hello(&grid) };
    assert_eq!(newer.open(&first, &hello.frame()).await.2.unwrap().0, Welcome::KIND);
    // Somebody with another's papers.
    let thief = Stranger::new().await;
    assert_eq!(reason(thief.open(&first, &newer.hello(&grid).frame()).await.2).0, Reason::NotAMember);

    for why in [Reason::OtherGrid, Reason::NotAMember, Reason::Expired, Reason::Version, Reason::NotAMember] {
        let told = event(&mut events, "the refusal", |event| matches!(event, Event::Refused { .. })).await;
        assert!(matches!(told, Event::Refused { reason, .. } if reason == why), "{told:?}");
    }
    assert_eq!(first.handle.counts().refused, 5);
    first.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_in_place_of_a_hello_and_on_the_port_harms_nobody() {
    let first = Station::first().await;
    let stranger = Stranger::new().await;
    assert_eq!(reason(stranger.open(&first, &[0xff; 64]).await.2).0, Reason::Garbled);
    let hollow = [1, 0, 0x10, 0, 0, 0, 5, 0x9a, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(reason(stranger.open(&first, &hollow).await.2).0, Reason::Garbled);
    // A gibibyte is announced.
    let huge = [1, 0, 0x10, 0x40, 0, 0, 0];
    assert_eq!(reason(stranger.open(&first, &huge).await.2).0, Reason::Garbled);

    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut byte = 1u8;
    for round in 0..2_000usize {
        let datagram: Vec<u8> = (0..round % 1_400)
            .map(|_| {
                byte = byte.wrapping_mul(167).wrapping_add(13);
                byte
            })
            .collect();
        socket.send_to(&datagram, first.handle.addresses()[0]).unwrap();
    }
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frame_of_an_unknown_kind_is_skipped_and_a_broken_one_costs_only_itself() {
    let first = Station::first().await;
    let member = Stranger::new().await;
    let grid = member.admitted(&first, Span::from_hours(1));
    let conn = member.enter(&first, &grid).await;
    let mut say = conn.open_uni().await.unwrap();
    let mut pong = Vec::new();
    shoal_daemon::network::wire::write(&Message::Heartbeat(heartbeat::Message::Pong(7)), &mut pong).unwrap();
    let unknown_kind = [1, 0x77, 0x01, 0, 0, 0, 3, 1, 2, 3];
    let later_version = [2, 0x03, 0x01, 0, 0, 0, 2, 0xff, 0xff];
    let broken = [1, 0x03, 0x01, 0, 0, 0, 2, 0xff, 0xff];
    let lying = [1, 0x03, 0x00, 0, 0, 0, 4, 0x82, 1, 0x81, 7];
    for bytes in [&unknown_kind[..], &later_version, &broken, &lying, &pong] {
        say.write_all(bytes).await.unwrap();
    }
    first.hears(1).await;
    assert_eq!(dropped(&first, Drop::UnknownKind), 2);
    assert_eq!(dropped(&first, Drop::Garbled), 2);

    // After a length that cannot be, nobody knows where the next frame begins.
    say.write_all(&[1, 0x03, 0x01, 0xff, 0xff, 0xff, 0xff]).await.unwrap();
    let closed = conn.closed().await.to_string();
    assert!(closed.contains("makes no sense"), "{closed}");
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_that_does_not_read_holds_up_nobody_else() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    let deaf = Stranger::new().await;
    let grid = deaf.admitted(&first, Span::from_hours(1));
    let conn = deaf.enter(&first, &grid).await;
    let node = deaf.identity.node();
    eventually("it is connected", || {
        first.handle.peer_facts().iter().any(|facts| facts.node == node && facts.connected)
    })
    .await;

    let mut line = first.handle.line();
    let entries: Box<[_]> = (1..60)
        .map(|node| shoal_protocols::overlay::cyclon::Entry {
            node: shoal_model::NodeId(u64::MAX - node),
            age: 9,
            payload: (),
        })
        .collect();
    let long = Message::Overlay(shoal_protocols::overlay::cyclon::Message::Shuffle(entries));
    // A stream takes a megabyte and more before it waits for its reader.
    for _ in 0..20 {
        for _ in 0..500 {
            line.send(node, long.clone());
        }
        first.say(&second);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    second.hears(20).await;
    eventually("the oldest have made room", || dropped(&first, Drop::QueueFull) > 0).await;
    drop(conn);
    first.stop().await;
    second.stop().await;
}

/// First words of handshakes that nobody goes on with, as they come from sockets that never answer.
async fn first_words(station: &Station, many: usize) -> Vec<Vec<u8>> {
    let sink = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let there = sink.local_addr().unwrap();
    let key = iroh::PublicKey::from_bytes(&station.identity.public().0).unwrap();
    let stranger = Stranger::new().await;
    for _ in 0..many {
        let endpoint = stranger.endpoint.clone();
        let address = EndpointAddr::from_parts(key, [TransportAddr::Ip(there)]);
        tokio::spawn(async move { endpoint.connect(address, b"shoal/1").await });
    }
    let mut words = std::collections::BTreeMap::new();
    let mut bytes = vec![0; 2_000];
    while words.len() < many {
        let heard = tokio::time::timeout(std::time::Duration::from_secs(5), sink.recv_from(&mut bytes)).await;
        let Ok(Ok((length, _))) = heard else { break };
        // A long header; the one that it is for is drawn anew for each handshake.
        if length >= 1_200 && bytes[0] & 0x80 != 0 {
            words.insert(bytes[6..14].to_vec(), bytes[..length].to_vec());
        }
    }
    words.into_values().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_nobody_goes_on_with_keep_nobody_out() {
    let first = Station::first().await;
    let second = Station::join(&first).await;
    let words = first_words(&first, 300).await;
    assert!(words.len() >= 200, "{} handshakes were begun", words.len());
    let flood = {
        let (words, there) = (words.clone(), first.handle.addresses()[0]);
        tokio::task::spawn_blocking(move || {
            for _ in 0..3 {
                let sockets: Vec<_> =
                    words.iter().map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
                for (socket, word) in sockets.iter().zip(&words) {
                    socket.send_to(word, there).unwrap();
                }
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
        })
    };
    // While they come: a newcomer, and words between those who know each other.
    let third = Station::join(&first).await;
    third.say(&first);
    second.say(&first);
    first.hears(2).await;
    flood.await.unwrap();
    let fourth = Station::join(&first).await;
    fourth.say(&first);
    first.hears(3).await;
    for station in [first, second, third, fourth] {
        station.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_never_say_hello_keep_nobody_out() {
    let first = Station::first().await;
    let stranger = Stranger::new().await;
    let mut silent = Vec::new();
    // More than are heard at once.
    for _ in 0..80 {
        silent.push(stranger.connect(&first).await);
    }
    let began = std::time::Instant::now();
    let second = Station::join(&first).await;
    second.say(&first);
    first.hears(1).await;
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    drop(silent);
    first.stop().await;
    second.stop().await;
}
