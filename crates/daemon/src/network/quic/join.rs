//! Joining a grid: a ticket is taken to its issuer, who answers with what makes a member.

use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::{Connection, VarInt};
use shoal_model::envelope::PublicKey;

use super::book::{self, Book};
use super::hello::{ALPN_JOIN, ReadFrame, chain_of, read_frame};
use super::hub::{CONNECT_WITHIN, Event, Hub};
use super::{Settings, StartError, endpoint, there};
use crate::cabinet::{Cabinet, CabinetError};
use crate::clock::Clock;
use crate::identity::{Identity, node_id};
use crate::membership::{Grid, GridError, Refusal, Ticket};
use crate::network::wire::words::{Admitted, NEIGHBOURS_MAX, Redeem, Refused, Word};
use crate::places::Place;

/// Bytes of an admission, at most: the settings of a grid, and some addresses.
const ADMISSION_MAX: usize = 1 << 20;
/// Bytes of what a newcomer may say.
const REDEEM_MAX: usize = 1 << 10;
/// How long the issuer may take to write down that a ticket is used.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How long the answer may take to be read.
const LINGER: Duration = Duration::from_secs(5);

/// Why a machine did not get into a grid.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Too late.
    #[error(
        "the ticket has expired by this machine's clock; ask for a new one, or set the clock right if it is wrong"
    )]
    Expired,
    /// The issuer says no.
    #[error("{0}")]
    Refused(Refusal),
    /// The issuer says no, in words that this version does not know.
    #[error("the issuer of the ticket refuses: {0}")]
    Other(String),
    /// The issuer cannot be reached.
    #[error(
        "cannot reach the issuer of the ticket at {addresses}: {why}; is it running, and can it be reached from here?"
    )]
    Unreachable {
        /// Where it should be.
        addresses: String,
        /// What was seen.
        why: String,
    },
    /// What came makes no sense.
    #[error("the answer of the issuer makes no sense: {0}")]
    Garbled(String),
    /// No socket.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What came makes this node no member, or could not be kept.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// The neighbours could not be kept.
    #[error(transparent)]
    Cabinet(#[from] CabinetError),
}

/// Takes a ticket to its issuer and enters its grid. May be tried again with the same ticket and key.
pub async fn join(
    settings: &Settings,
    identity: &Identity,
    ticket: &Ticket,
    cabinet: Arc<dyn Cabinet>,
    clock: Clock,
) -> Result<Grid, JoinError> {
    if ticket.expires <= clock.now() {
        return Err(JoinError::Expired);
    }
    // Any port will do: nobody answers to it later. Whoever takes a ticket takes its ways too.
    let relays = if settings.relays.is_empty() { &ticket.relays } else { &settings.relays };
    let settings =
        Settings { bind: (settings.bind.ip(), 0).into(), relays: relays.clone(), ..settings.clone() };
    let endpoint = endpoint(&settings, identity, vec![]).await?;
    let admitted = redeem(&endpoint, &settings, ticket).await;
    endpoint.close().await;
    let Admitted { admission, neighbours } = admitted?;
    let now = clock.now();
    // The neighbours first: a member that knows nobody could not be helped by trying again.
    let mut book = Book::open(ticket.grid, &*cabinet, now)?;
    for record in neighbours.into_iter().take(NEIGHBOURS_MAX) {
        book.learn(record, now);
    }
    book::keep(&*cabinet, book.take_dirty())?;
    Ok(Grid::enter(identity, ticket.grid, admission, cabinet, now)?)
}

async fn redeem(
    endpoint: &iroh::Endpoint,
    settings: &Settings,
    ticket: &Ticket,
) -> Result<Admitted, JoinError> {
    let addresses = ticket.addresses.iter().map(ToString::to_string);
    let relays = ticket.relays.iter().map(|relay| format!("the relay {relay}"));
    let ways = addresses.chain(relays).collect::<Vec<_>>().join(", ");
    let unreachable = |why: String| JoinError::Unreachable { addresses: ways.clone(), why };
    let there = there(settings, &ticket.issuer, &ticket.addresses, &ticket.relays)
        .ok_or_else(|| JoinError::Garbled("the ticket names a key that is none".to_owned()))?;
    let conn = match tokio::time::timeout(CONNECT_WITHIN, endpoint.connect(there, ALPN_JOIN)).await {
        Ok(connected) => connected.map_err(|error| unreachable(chain_of(&error)))?,
        Err(_) => return Err(unreachable(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
    };
    let broken = |error: &dyn std::fmt::Display| unreachable(format!("the connection broke: {error}"));
    let exchange = async {
        let (mut send, mut receive) = conn.open_bi().await.map_err(|error| broken(&error))?;
        let redeem = Redeem { grid: ticket.grid, issuer: ticket.issuer, token: ticket.token };
        send.write_all(&redeem.frame()).await.map_err(|error| broken(&error))?;
        let _ = send.finish();
        let frame = match read_frame(&mut receive, ADMISSION_MAX).await {
            Ok(frame) => frame,
            Err(ReadFrame::Over) => return Err(broken(&"it ended without an answer")),
            Err(ReadFrame::Garbled(what)) => return Err(JoinError::Garbled(what)),
        };
        let garbled = |error: crate::network::wire::Unread| JoinError::Garbled(error.to_string());
        match frame.kind {
            Admitted::KIND => Admitted::read(&frame.payload).map_err(garbled),
            Refused::KIND => {
                let Refused { code, text } = Refused::read(&frame.payload).map_err(garbled)?;
                Err(refusal(code).map_or(JoinError::Other(text), JoinError::Refused))
            }
            kind => Err(JoinError::Garbled(format!("a frame of kind {kind:#06x}"))),
        }
    };
    let answer = match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
        Ok(answer) => answer,
        Err(_) => Err(unreachable(format!("no answer within {} s; try again", ANSWER_WITHIN.as_secs()))),
    };
    conn.close(VarInt::from_u32(0), b"");
    answer
}

/// Hears somebody who has a ticket.
pub(super) async fn answer(hub: &Arc<Hub>, conn: Connection, place: &Place) {
    let key = PublicKey(*conn.remote_id().as_bytes());
    let hear = async {
        let (send, mut receive) = conn.accept_bi().await.ok()?;
        let frame = read_frame(&mut receive, REDEEM_MAX).await.ok()?;
        if frame.kind != Redeem::KIND {
            return None;
        }
        Some((send, Redeem::read(&frame.payload).ok()?))
    };
    let Ok(Some((mut send, redeem))) = tokio::time::timeout(CONNECT_WITHIN, hear).await else {
        conn.close(VarInt::from_u32(u32::from(super::Reason::Garbled.code())), b"not a ticket");
        return;
    };
    // A ticket that is used up must be answered, whoever else comes.
    if !place.stays() {
        conn.close(VarInt::from_u32(u32::from(super::Reason::Busy.code())), b"too many at once");
        return;
    }
    let asked = Arc::clone(hub);
    let redeemed = tokio::task::spawn_blocking(move || {
        let Redeem { grid, issuer, token } = redeem;
        asked.grid.redeem(grid, issuer, &token, key, |node| asked.book().key(node), asked.clock.now())
    });
    let node = node_id(&key);
    let frame = match redeemed.await.unwrap_or(Err(Refusal::Failed)) {
        Ok(admission) => {
            tracing::info!(peer = %node, "admitted to the grid");
            hub.tell(Event::Admitted(node));
            let mut neighbours = vec![hub.own.record.clone()];
            let known = hub.book().recent(NEIGHBOURS_MAX - 1);
            neighbours.extend(
                known.iter().filter(|known| known.member.key != key).map(|known| known.record.clone()),
            );
            Admitted { admission, neighbours }.frame()
        }
        Err(refusal) => {
            tracing::warn!(peer = %node, "not admitted to the grid: {refusal}");
            Refused { code: code(refusal), text: refusal.to_string() }.frame()
        }
    };
    if send.write_all(&frame).await.is_ok() && send.finish().is_ok() {
        let _ = tokio::time::timeout(LINGER, conn.closed()).await;
    }
}

const REFUSALS: [Refusal; 8] = [
    Refusal::OtherGrid,
    Refusal::OtherIssuer,
    Refusal::Unknown,
    Refusal::Used,
    Refusal::Expired,
    Refusal::IdTaken,
    Refusal::NotAdmitter,
    Refusal::Failed,
];

/// The number of a refusal on the wire.
fn code(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::OtherGrid => 101,
        Refusal::OtherIssuer => 102,
        Refusal::Unknown => 103,
        Refusal::Used => 104,
        Refusal::Expired => 105,
        Refusal::IdTaken => 106,
        Refusal::NotAdmitter => 107,
        Refusal::Failed => 108,
    }
}

fn refusal(number: u16) -> Option<Refusal> {
    REFUSALS.into_iter().find(|refusal| code(*refusal) == number)
}
