//! The first words on a connection: who is it, of which grid, in which version, and how late is it there?

use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::{ConnectOptions, Connection, ConnectionError, RecvStream, SendStream, VarInt};
use shoal_model::Time;

use super::counts::add;
use super::facts::Sample;
use super::hub::{CONNECT_WITHIN, Event, Hub};
use super::link::Link;
use super::record::{Known, RecordError};
use super::there;
use crate::identity::node_id;
use crate::membership::ChainError;
use crate::network::wire::words::{Confirm, Hello, PROTOCOL, PROTOCOL_OLDEST, Refused, Welcome, Word};
use crate::network::wire::{Frame, HEAD, Head, frame};
use shoal_model::envelope::PublicKey;

/// What nodes speak to each other over.
pub(super) const ALPN: &[u8] = b"shoal/1";
/// What newcomers speak over that have only a ticket.
pub(super) const ALPN_JOIN: &[u8] = b"shoal-join/1";
/// Bytes of a frame before the other side is known, at most.
const STRANGER_MAX: usize = 16 << 10;
/// How long a refusal may take to arrive before the connection is closed over it.
const LINGER: Duration = Duration::from_secs(1);

/// Why a connection is refused or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The versions have nothing in common.
    Version,
    /// Of another grid.
    OtherGrid,
    /// No longer a member.
    Expired,
    /// Never was one.
    NotAMember,
    /// What was said makes no sense.
    Garbled,
    /// Too much to do.
    Busy,
    /// Another connection is used.
    Spare,
    /// Nothing was said for long.
    Idle,
    /// This node stops.
    Leaving,
    /// Nothing was heard for too long.
    Silent,
    /// A later version's reason.
    Other,
}

impl Reason {
    const ALL: [Reason; 10] = [
        Reason::Version,
        Reason::OtherGrid,
        Reason::Expired,
        Reason::NotAMember,
        Reason::Garbled,
        Reason::Busy,
        Reason::Spare,
        Reason::Idle,
        Reason::Leaving,
        Reason::Silent,
    ];

    /// Its number on the wire.
    pub fn code(self) -> u16 {
        match self {
            Reason::Version => 1,
            Reason::OtherGrid => 2,
            Reason::Expired => 3,
            Reason::NotAMember => 4,
            Reason::Garbled => 5,
            Reason::Busy => 6,
            Reason::Spare => 7,
            Reason::Idle => 8,
            Reason::Leaving => 9,
            Reason::Silent => 10,
            Reason::Other => 255,
        }
    }

    /// The reason with a number.
    pub fn of(code: u64) -> Reason {
        Reason::ALL.into_iter().find(|reason| u64::from(reason.code()) == code).unwrap_or(Reason::Other)
    }

    /// What it means.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Version => "no version in common: update the older of the two",
            Reason::OtherGrid => "of another grid",
            Reason::Expired => "the membership has expired: join again with a new ticket",
            Reason::NotAMember => "not a member of this grid",
            Reason::Garbled => "what was said makes no sense",
            Reason::Busy => "too many connections: try again later",
            Reason::Spare => "another connection is in use",
            Reason::Idle => "nothing was said for long",
            Reason::Leaving => "the node stops",
            Reason::Silent => "nothing was heard for too long",
            Reason::Other => "for a reason that this version does not know",
        }
    }
}

/// No, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct No {
    pub reason: Reason,
    pub text: String,
}

impl No {
    fn new(reason: Reason, text: impl Into<String>) -> No {
        No { reason, text: text.into() }
    }
}

/// Dials a peer and greets it.
pub(super) async fn dial(hub: &Arc<Hub>, known: &Known) -> Result<Link, String> {
    let there = there(&hub.settings, &known.member.key, &known.addresses, &known.relays);
    let there = there.ok_or_else(|| "its key is no key".to_owned())?;
    let greeted = async {
        let options = ConnectOptions::new().with_transport_config(hub.outgoing.clone());
        let connecting = hub.endpoint.connect_with_opts(there, ALPN, options).await;
        let conn = connecting.map_err(|error| chain_of(&error))?.await.map_err(|error| chain_of(&error))?;
        let greeted = greet(hub, &conn).await;
        match greeted {
            Ok((Shown { known, is_news }, life)) => Ok(Link::new(conn, known, is_news, hub.me, life)),
            Err(Greet::Refuse(no)) => {
                refused_here(hub, known.member.key, &no);
                conn.close(VarInt::from_u32(u32::from(no.reason.code())), no.text.as_bytes());
                Err(format!("it was refused: {no}"))
            }
            Err(Greet::Refused(reason, text)) => {
                let node = known.member.node;
                tracing::warn!(peer = %node, "this node was refused: {text}");
                hub.tell(Event::RefusedBy { node, reason, text: text.clone() });
                Err(format!("it refuses this node: {text}"))
            }
            Err(Greet::Lost(why)) => Err(why),
        }
    };
    match tokio::time::timeout(CONNECT_WITHIN, greeted).await {
        Ok(greeted) => greeted,
        Err(_) => Err(format!("no answer from {:?} within {} s", known.addresses, CONNECT_WITHIN.as_secs())),
    }
}

/// How a greeting ends that leads to nothing.
enum Greet {
    /// We do not speak with it.
    Refuse(No),
    /// It does not speak with us.
    Refused(Reason, String),
    /// The connection broke.
    Lost(String),
}

async fn greet(hub: &Arc<Hub>, conn: &Connection) -> Result<(Shown, u64), Greet> {
    let lost =
        |what: &dyn std::fmt::Display| Greet::Lost(format!("the connection broke in the hello: {what}"));
    let (mut send, mut receive) = conn.open_bi().await.map_err(|error| over(&error))?;
    let hello = own(hub);
    send.write_all(&hello.frame()).await.map_err(|error| lost(&error))?;
    let answer = match read_frame(&mut receive, STRANGER_MAX).await {
        Ok(answer) => answer,
        Err(ReadFrame::Over) => return Err(over(&conn.closed().await)),
        Err(ReadFrame::Garbled(what)) => return Err(Greet::Refuse(No::new(Reason::Garbled, what))),
    };
    let now = hub.clock.now();
    let garbled = |what: String| Greet::Refuse(No::new(Reason::Garbled, what));
    if answer.kind == Refused::KIND {
        let Refused { code, text } =
            Refused::read(&answer.payload).map_err(|error| garbled(error.to_string()))?;
        return Err(Greet::Refused(Reason::of(u64::from(code)), text));
    }
    if answer.kind != Welcome::KIND {
        return Err(garbled(format!("a frame of kind {:#06x} in place of a welcome", answer.kind)));
    }
    let welcome = Welcome::read(&answer.payload).map_err(|error| garbled(error.to_string()))?;
    let (life, clock) = (welcome.hello.life, welcome.hello.clock);
    let shown = judge(hub, conn, welcome.hello, now).map_err(Greet::Refuse)?;
    let confirm = Confirm { heard: now, clock: hub.clock.now() };
    send.write_all(&confirm.frame()).await.map_err(|error| lost(&error))?;
    let _ = send.finish();
    sample(hub, &shown.known, Sample::of(hello.clock, welcome.heard, clock, now));
    Ok((shown, life))
}

/// Hears the hello of somebody who has dialled.
pub(super) async fn accept(hub: &Arc<Hub>, conn: Connection) -> Result<Link, ()> {
    let key = PublicKey(*conn.remote_id().as_bytes());
    match tokio::time::timeout(CONNECT_WITHIN, hear(hub, &conn)).await {
        Ok(Ok((Shown { known, is_news }, life))) => {
            let dialler = known.member.node;
            Ok(Link::new(conn, known, is_news, dialler, life))
        }
        Ok(Err(Heard::Refuse(no, send))) => {
            refused_here(hub, key, &no);
            refuse(&conn, send, &no).await;
            Err(())
        }
        Ok(Err(Heard::Refused(reason, text))) => {
            let node = node_id(&key);
            tracing::warn!(peer = %node, "this node was refused: {text}");
            hub.tell(Event::RefusedBy { node, reason, text });
            Err(())
        }
        Ok(Err(Heard::Lost)) => Err(()),
        Err(_) => {
            let no = No::new(Reason::Garbled, "no hello in time");
            refused_here(hub, key, &no);
            conn.close(VarInt::from_u32(u32::from(no.reason.code())), no.text.as_bytes());
            Err(())
        }
    }
}

enum Heard {
    Refuse(No, SendStream),
    Refused(Reason, String),
    Lost,
}

async fn hear(hub: &Arc<Hub>, conn: &Connection) -> Result<(Shown, u64), Heard> {
    let (mut send, mut receive) = conn.accept_bi().await.map_err(|_| Heard::Lost)?;
    let hello = match read_frame(&mut receive, STRANGER_MAX).await {
        Ok(frame) if frame.kind == Hello::KIND => {
            Hello::read(&frame.payload).map_err(|error| error.to_string())
        }
        Ok(frame) => Err(format!("a frame of kind {:#06x} in place of a hello", frame.kind)),
        Err(ReadFrame::Over) => return Err(Heard::Lost),
        Err(ReadFrame::Garbled(what)) => Err(what),
    };
    let heard = hub.clock.now();
    let hello = match hello {
        Ok(hello) => hello,
        Err(what) => return Err(Heard::Refuse(No::new(Reason::Garbled, what), send)),
    };
    let life = hello.life;
    let shown = match judge(hub, conn, hello, heard) {
        Ok(shown) => shown,
        Err(no) => return Err(Heard::Refuse(no, send)),
    };
    let welcome = Welcome { hello: own(hub), heard };
    send.write_all(&welcome.frame()).await.map_err(|_| Heard::Lost)?;
    match read_frame(&mut receive, STRANGER_MAX).await {
        Ok(frame) if frame.kind == Confirm::KIND => {
            if let Ok(confirm) = Confirm::read(&frame.payload) {
                let now = hub.clock.now();
                let taken = Sample::of(welcome.hello.clock, confirm.heard, confirm.clock, now);
                sample(hub, &shown.known, taken);
                return Ok((shown, life));
            }
            Err(Heard::Refuse(No::new(Reason::Garbled, "a confirmation that cannot be read"), send))
        }
        Ok(_) => Err(Heard::Refuse(No::new(Reason::Garbled, "no confirmation"), send)),
        Err(ReadFrame::Over) => match conn.closed().await {
            ConnectionError::ApplicationClosed(close) => Err(Heard::Refused(
                Reason::of(close.error_code.into_inner()),
                String::from_utf8_lossy(&close.reason).into_owned(),
            )),
            _ => Err(Heard::Lost),
        },
        Err(ReadFrame::Garbled(what)) => Err(Heard::Refuse(No::new(Reason::Garbled, what), send)),
    }
}

/// What a hello shows.
struct Shown {
    known: Arc<Known>,
    /// Whether it was not known before, or elsewhere.
    is_news: bool,
}

/// Checks all that somebody says of itself.
fn judge(hub: &Hub, conn: &Connection, hello: Hello, now: Time) -> Result<Shown, No> {
    let Hello { version, oldest, grid, record, .. } = hello;
    if oldest > PROTOCOL || version < PROTOCOL_OLDEST {
        let text = format!(
            "one side speaks versions {oldest} to {version}, the other {PROTOCOL_OLDEST} to {PROTOCOL}: \
             update the older of the two"
        );
        return Err(No::new(Reason::Version, text));
    }
    if grid != hub.grid.id() {
        let text = format!("one side is of grid {grid}, the other of grid {}", hub.grid.id());
        return Err(No::new(Reason::OtherGrid, text));
    }
    let known = record.verify(grid, now).map_err(|error| match error {
        RecordError::Chain(ChainError::Expired { .. }) => No::new(Reason::Expired, error.to_string()),
        RecordError::Chain(_) | RecordError::Forged => No::new(Reason::NotAMember, error.to_string()),
        RecordError::Newer(_) => No::new(Reason::Version, error.to_string()),
        RecordError::Unreadable => No::new(Reason::Garbled, error.to_string()),
    })?;
    if known.member.key.0 != *conn.remote_id().as_bytes() {
        return Err(No::new(Reason::NotAMember, "the address record is of another key"));
    }
    if hub.book().key(known.member.node).is_some_and(|key| key != known.member.key) {
        return Err(No::new(Reason::NotAMember, "another member has the same id"));
    }
    let is_news = hub.learn(known.record.clone());
    Ok(Shown { known: Arc::new(known), is_news })
}

fn own(hub: &Hub) -> Hello {
    Hello {
        version: PROTOCOL,
        oldest: PROTOCOL_OLDEST,
        grid: hub.grid.id(),
        record: hub.own.record.clone(),
        life: hub.life,
        clock: hub.clock.now(),
    }
}

fn sample(hub: &Arc<Hub>, known: &Known, sample: Option<Sample>) {
    if let (Some(sample), Some(peer)) = (sample, hub.peer(known.member.node)) {
        peer.first_sample(sample);
    }
}

fn refused_here(hub: &Hub, key: PublicKey, no: &No) {
    add(&hub.counts.refused, 1);
    tracing::warn!(peer = %node_id(&key), "refused: {no}");
    hub.tell(Event::Refused { key, reason: no.reason, text: no.text.clone() });
}

/// Says no, and gives that time to arrive.
pub(super) async fn refuse(conn: &Connection, mut send: SendStream, no: &No) {
    let said = Refused { code: no.reason.code(), text: no.text.clone() };
    if send.write_all(&said.frame()).await.is_ok() && send.finish().is_ok() {
        let _ = tokio::time::timeout(LINGER, conn.closed()).await;
    }
    conn.close(VarInt::from_u32(u32::from(no.reason.code())), no.text.as_bytes());
}

/// Why no frame was read.
pub(super) enum ReadFrame {
    /// The stream ended, or the connection did.
    Over,
    /// What came is no frame.
    Garbled(String),
}

/// Reads one frame of at most so many bytes; room is made as they come.
pub(super) async fn read_frame(stream: &mut RecvStream, most: usize) -> Result<Frame, ReadFrame> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).await.map_err(|_| ReadFrame::Over)?;
    let Head { version, kind, length } =
        Head::read(&head).map_err(|error| ReadFrame::Garbled(error.to_string()))?;
    if length > most {
        return Err(ReadFrame::Garbled(format!("a frame of {length} bytes, at most {most}")));
    }
    let mut payload = Vec::new();
    while payload.len() < length {
        match stream.read_chunk(length - payload.len()).await {
            Ok(Some(chunk)) => payload.extend_from_slice(&chunk),
            Ok(None) | Err(_) => return Err(ReadFrame::Over),
        }
    }
    if version == 0 {
        return Err(ReadFrame::Garbled("a frame of version 0".to_owned()));
    }
    Ok(Frame { version, kind, payload })
}

/// Whether a frame is of the version spoken here.
pub(super) fn is_ours(frame: &Frame) -> bool {
    frame.version == frame::VERSION
}

fn over(error: &ConnectionError) -> Greet {
    match error {
        ConnectionError::ApplicationClosed(close) => Greet::Refused(
            Reason::of(close.error_code.into_inner()),
            String::from_utf8_lossy(&close.reason).into_owned(),
        ),
        error => Greet::Lost(format!("the connection broke in the hello: {error}")),
    }
}

/// An error with all its causes.
pub(super) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
