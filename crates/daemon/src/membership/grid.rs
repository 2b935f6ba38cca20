//! A grid as one of its members knows it: what it is, why this node belongs to it, and whom this node may let in.

use std::sync::{Arc, Mutex};

use minicbor::bytes::ByteVec;
use minicbor::{CborLen, Decode, Encode};
use shoal_model::envelope::PublicKey;
use shoal_model::{Name, NodeId, Span, Time};

use super::GridId;
use super::certificate::{Appointment, Chain, ChainError, Member};
use super::ticket::{ADDRESSES_MAX, Ticket, Token};
use crate::cabinet::{Cabinet, CabinetError};
use crate::identity::{Identity, node_id};
use crate::relay::Relay;

/// Tickets that one node keeps in mind at most, used and unused.
pub const TICKETS_MAX: usize = 10_000;
/// Bytes of a grid's settings, at most.
const SETTINGS_MAX: usize = 256 << 10;
/// The version of what is kept.
const VERSION: u16 = 1;
/// How long certificates of a grid's first node last.
const FIRST_FOR: Span = Span::from_hours(20 * 365 * 24);
/// Tells the hash of a token from all others: a copy of the data folder must not hold tickets that can be used.
const TOKEN_CONTEXT: &str = "shoal 2026-11-15 ticket token v1";

const GRID: &str = "grid";
const TICKETS: &str = "tickets";
const MEMBERS: &str = "members";
const SELF_KEY: &[u8] = b"self";
const ROOT_KEY: &[u8] = b"root";

/// A grid, seen from one of its nodes.
pub struct Grid {
    id: GridId,
    name: Name,
    settings: Vec<u8>,
    chain: Chain,
    appointment: Option<Appointment>,
    identity: Identity,
    cabinet: Arc<dyn Cabinet>,
    /// One redemption at a time: two newcomers with one token must not both find it unused.
    desk: Mutex<()>,
}

/// What a ticket is good for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Terms {
    /// How long it can be redeemed.
    #[n(0)]
    pub ticket_for: Span,
    /// How long the newcomer is then a member.
    #[n(1)]
    pub member_for: Span,
    /// Whose machine it will be.
    #[n(2)]
    pub organisation: Option<Name>,
    /// Whether the newcomer may admit others in turn; only the holder of the root key can grant that.
    #[n(3)]
    pub admitter: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            ticket_for: Span::from_hours(24),
            member_for: Span::from_hours(5 * 365 * 24),
            organisation: None,
            admitter: false,
        }
    }
}

/// What a newcomer is given.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Admission {
    /// What the grid is called.
    #[n(0)]
    name: Name,
    /// What its nodes must agree on.
    #[n(1)]
    settings: ByteVec,
    /// What makes the newcomer a member.
    #[n(2)]
    chain: Chain,
    /// What makes it an admitter, if it is one.
    #[n(3)]
    appointment: Option<Appointment>,
}

/// Why nobody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// For another grid.
    #[error("the ticket is for another grid")]
    OtherGrid,
    /// Issued by another node.
    #[error("the ticket was issued by another node, and only that one can redeem it")]
    OtherIssuer,
    /// Never issued here, or forgotten since it expired.
    #[error("the issuer does not know this ticket; ask for a new one")]
    Unknown,
    /// Used by another key.
    #[error("the ticket has been used already; each machine needs its own: ask for a new one")]
    Used,
    /// Too late.
    #[error("the ticket has expired; ask for a new one")]
    Expired,
    /// Another key has the same id.
    #[error("another machine of the grid has this node's id; remove its key file and join again")]
    IdTaken,
    /// The issuer may not admit anybody any more.
    #[error("the issuer may admit nobody any more; ask another node for a ticket")]
    NotAdmitter,
    /// The issuer cannot keep what it would promise.
    #[error("the issuer could not write that down; try again later")]
    Failed,
}

/// What can go wrong with a grid.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// The cabinet failed.
    #[error(transparent)]
    Cabinet(#[from] CabinetError),
    /// There is one already.
    #[error("this node belongs to grid {0} already; give the new one a data folder of its own")]
    Already(GridId),
    /// What was kept cannot be read.
    #[error("what is kept of the grid cannot be read ({0}); restore the data folder from a backup")]
    Unreadable(String),
    /// Kept by a version that is still to come.
    #[error(
        "what is kept of the grid has version {0}, and this shoal knows none after {VERSION}; run the newer one"
    )]
    Newer(u16),
    /// This node is no member.
    #[error("this node is no member of the grid: {0}")]
    Chain(#[from] ChainError),
    /// This node may not issue tickets.
    #[error(
        "this node may not admit others to the grid; ask for a ticket on the node that made the grid, or on one that came with a ticket of `shoal ticket --admitter`"
    )]
    NotAdmitter,
    /// Only who has the root key appoints admitters.
    #[error("this node cannot make others admitters; only the node that made the grid can")]
    NoRoot,
    /// Too many tickets.
    #[error("{TICKETS_MAX} tickets are open; wait until some have expired")]
    TooManyTickets,
    /// Nowhere to go to.
    #[error("a ticket needs 1 to {ADDRESSES_MAX} addresses of this node, not {0}; say where it listens")]
    Addresses(usize),
    /// Settings beyond the limit.
    #[error("the grid's settings have {0} bytes, at most {SETTINGS_MAX}")]
    Settings(usize),
}

/// What is kept of a grid.
#[derive(Encode, Decode)]
#[cbor(map)]
struct Kept {
    #[n(0)]
    version: u16,
    #[n(1)]
    id: GridId,
    #[n(2)]
    name: Name,
    #[n(3)]
    settings: ByteVec,
    #[n(4)]
    chain: Chain,
    #[n(5)]
    appointment: Option<Appointment>,
}

/// What is kept of a ticket, under the hash of its token.
#[derive(Encode, Decode)]
#[cbor(map)]
struct Issued {
    #[n(0)]
    expires: Time,
    #[n(1)]
    terms: Terms,
    #[n(2)]
    redeemed: Option<Redeemed>,
}

/// By whom it was redeemed, and what for: the same answer is given again, and only to the same key.
#[derive(Encode, Decode)]
struct Redeemed {
    #[n(0)]
    key: PublicKey,
    #[n(1)]
    admission: Admission,
}

impl Grid {
    /// Makes a grid of one node, which keeps the root key; `settings` are what all its nodes must agree on.
    pub fn create(
        identity: &Identity,
        name: Name,
        settings: Vec<u8>,
        cabinet: Arc<dyn Cabinet>,
        now: Time,
    ) -> Result<Grid, GridError> {
        Grid::create_of(None, identity, name, settings, cabinet, now)
    }

    /// The same by a node of an organisation.
    pub fn create_of(
        organisation: Option<Name>,
        identity: &Identity,
        name: Name,
        settings: Vec<u8>,
        cabinet: Arc<dyn Cabinet>,
        now: Time,
    ) -> Result<Grid, GridError> {
        refuse_second(&*cabinet)?;
        let root = Identity::generate();
        let id = GridId(root.public());
        let expires = now + FIRST_FOR;
        let appointment = Appointment::new(&root, identity.public(), expires);
        let chain = Chain::new(&appointment, identity, id, identity.public(), organisation, expires);
        // The root key first: a grid without it could never grow.
        cabinet.put(GRID, ROOT_KEY, &root.secret().to_bytes())?;
        Grid::keep(id, name, settings, chain, Some(appointment), identity, cabinet)
    }

    /// Whether a node belongs to a grid, whichever key it has.
    pub fn is_kept(cabinet: &dyn Cabinet) -> Result<bool, GridError> {
        Ok(cabinet.get(GRID, SELF_KEY)?.is_some())
    }

    /// The grid that this node belongs to, if it belongs to one.
    pub fn load(identity: &Identity, cabinet: Arc<dyn Cabinet>) -> Result<Option<Grid>, GridError> {
        let Some(bytes) = cabinet.get(GRID, SELF_KEY)? else { return Ok(None) };
        let kept: Kept = minicbor::decode(&bytes).map_err(unreadable)?;
        if kept.version > VERSION {
            return Err(GridError::Newer(kept.version));
        }
        let Kept { id, name, settings, chain, appointment, .. } = kept;
        // Whether it is still valid is for each hello to say; that it is ours must hold in any case.
        match chain.verify(id, &identity.public(), Time::ZERO) {
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Grid {
            id,
            name,
            settings: settings.into(),
            chain,
            appointment,
            identity: identity.clone(),
            cabinet,
            desk: Mutex::new(()),
        }))
    }

    /// Enters a grid with what the issuer of a ticket has answered.
    pub fn enter(
        identity: &Identity,
        id: GridId,
        admission: Admission,
        cabinet: Arc<dyn Cabinet>,
        now: Time,
    ) -> Result<Grid, GridError> {
        refuse_second(&*cabinet)?;
        let Admission { name, settings, chain, appointment } = admission;
        chain.verify(id, &identity.public(), now)?;
        if let Some(appointment) = &appointment {
            appointment.verify(id, &identity.public(), now)?;
        }
        Grid::keep(id, name, settings.into(), chain, appointment, identity, cabinet)
    }

    fn keep(
        id: GridId,
        name: Name,
        settings: Vec<u8>,
        chain: Chain,
        appointment: Option<Appointment>,
        identity: &Identity,
        cabinet: Arc<dyn Cabinet>,
    ) -> Result<Grid, GridError> {
        if settings.len() > SETTINGS_MAX {
            return Err(GridError::Settings(settings.len()));
        }
        let kept = Kept {
            version: VERSION,
            id,
            name: name.clone(),
            settings: settings.clone().into(),
            chain: chain.clone(),
            appointment: appointment.clone(),
        };
        cabinet.put(GRID, SELF_KEY, &encoded(&kept))?;
        let identity = identity.clone();
        Ok(Grid { id, name, settings, chain, appointment, identity, cabinet, desk: Mutex::new(()) })
    }

    /// Which grid this is.
    pub fn id(&self) -> GridId {
        self.id
    }

    /// What it is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What its nodes must agree on, as its maker gave it.
    pub fn settings(&self) -> &[u8] {
        &self.settings
    }

    /// What makes this node a member.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Who this node is in the grid, if it is a member now.
    pub fn member(&self, now: Time) -> Result<Member, ChainError> {
        self.chain.verify(self.id, &self.identity.public(), now)
    }

    /// The key that this node signs with.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The root's word that this node may admit others, if it may now.
    pub(crate) fn appointment(&self, now: Time) -> Option<&Appointment> {
        self.appointment.as_ref().filter(|_| self.admits(now))
    }

    /// Whether this node may admit others now.
    pub fn admits(&self, now: Time) -> bool {
        let appointment = self.appointment.as_ref();
        appointment.is_some_and(|one| one.verify(self.id, &self.identity.public(), now).is_ok())
    }

    /// Issues a ticket that leads to this node at these addresses, or by these relays.
    pub fn issue(
        &self,
        addresses: Vec<std::net::SocketAddr>,
        relays: Vec<Relay>,
        terms: Terms,
        now: Time,
    ) -> Result<Ticket, GridError> {
        if !self.admits(now) {
            return Err(GridError::NotAdmitter);
        }
        let nowhere = addresses.is_empty() && relays.is_empty();
        if nowhere || addresses.len() > ADDRESSES_MAX {
            return Err(GridError::Addresses(addresses.len()));
        }
        if terms.admitter && self.root()?.is_none() {
            return Err(GridError::NoRoot);
        }
        let _one_at_a_time = self.desk.lock().expect(UNPOISONED);
        self.make_room(now)?;
        let token = Token(drawn());
        let expires = now + terms.ticket_for;
        let issued = Issued { expires, terms, redeemed: None };
        self.cabinet.put(TICKETS, &hash(&token), &encoded(&issued))?;
        Ok(Ticket { grid: self.id, issuer: self.identity.public(), addresses, token, expires, relays })
    }

    /// Redeems a token for the owner of `key`; `known` says whose id a node has elsewhere in the grid.
    ///
    /// Once this returns an admission the token is durably used up, by this key alone.
    pub fn redeem(
        &self,
        grid: GridId,
        issuer: PublicKey,
        token: &Token,
        key: PublicKey,
        known: impl Fn(NodeId) -> Option<PublicKey>,
        now: Time,
    ) -> Result<Admission, Refusal> {
        if grid != self.id {
            return Err(Refusal::OtherGrid);
        }
        if issuer != self.identity.public() {
            return Err(Refusal::OtherIssuer);
        }
        let _one_at_a_time = self.desk.lock().expect(UNPOISONED);
        let failed = |error: CabinetError| {
            tracing::error!("cannot redeem a ticket: {error}");
            Refusal::Failed
        };
        let slot = hash(token);
        let found = self.cabinet.get(TICKETS, &slot).map_err(failed)?.ok_or(Refusal::Unknown)?;
        let issued: Issued = minicbor::decode(&found).map_err(|_| Refusal::Failed)?;
        if let Some(redeemed) = issued.redeemed {
            // The answer may have been lost on its way.
            return if redeemed.key == key { Ok(redeemed.admission) } else { Err(Refusal::Used) };
        }
        if issued.expires <= now {
            return Err(Refusal::Expired);
        }
        let Some(appointment) = self.appointment.as_ref().filter(|_| self.admits(now)) else {
            return Err(Refusal::NotAdmitter);
        };
        let node = node_id(&key);
        let place = node.0.to_be_bytes();
        let taken = self.cabinet.get(MEMBERS, &place).map_err(failed)?;
        let other = |taken: PublicKey| taken != key;
        let here = key == self.identity.public() || node == self.identity.node();
        if here || taken.is_some_and(|taken| taken != key.0) || known(node).is_some_and(other) {
            return Err(Refusal::IdTaken);
        }
        let Terms { member_for, ref organisation, admitter, .. } = issued.terms;
        let expires = now + member_for;
        let root = if admitter { self.root().map_err(|_| Refusal::Failed)? } else { None };
        let admission = Admission {
            name: self.name.clone(),
            settings: self.settings.clone().into(),
            chain: Chain::new(appointment, &self.identity, self.id, key, organisation.clone(), expires),
            appointment: root.map(|root| Appointment::new(&root, key, expires)),
        };
        self.cabinet.put(MEMBERS, &place, &key.0).map_err(failed)?;
        let redeemed = Some(Redeemed { key, admission: admission.clone() });
        self.cabinet.put(TICKETS, &slot, &encoded(&Issued { redeemed, ..issued })).map_err(failed)?;
        Ok(admission)
    }

    /// Forgets tickets that nobody can use any more, if there are too many.
    fn make_room(&self, now: Time) -> Result<(), GridError> {
        let tickets = self.cabinet.list(TICKETS)?;
        if tickets.len() < TICKETS_MAX {
            return Ok(());
        }
        let mut left = tickets.len();
        for (slot, bytes) in tickets {
            let issued: Issued = minicbor::decode(&bytes).map_err(unreadable)?;
            if issued.expires <= now {
                self.cabinet.remove(TICKETS, &slot)?;
                left -= 1;
            }
        }
        if left < TICKETS_MAX { Ok(()) } else { Err(GridError::TooManyTickets) }
    }

    fn root(&self) -> Result<Option<Identity>, GridError> {
        let Some(bytes) = self.cabinet.get(GRID, ROOT_KEY)? else { return Ok(None) };
        let bytes: [u8; 32] =
            bytes.try_into().map_err(|_| GridError::Unreadable("the root key".to_owned()))?;
        Ok(Some(Identity::from_bytes(&bytes)).filter(|root| GridId(root.public()) == self.id))
    }
}

const UNPOISONED: &str = "nothing panics while it holds the desk";

fn refuse_second(cabinet: &dyn Cabinet) -> Result<(), GridError> {
    match cabinet.get(GRID, SELF_KEY)? {
        None => Ok(()),
        Some(bytes) => {
            let kept: Kept = minicbor::decode(&bytes).map_err(unreadable)?;
            Err(GridError::Already(kept.id))
        }
    }
}

fn unreadable(error: minicbor::decode::Error) -> GridError {
    GridError::Unreadable(error.to_string())
}

fn encoded(value: &impl Encode<()>) -> Vec<u8> {
    minicbor::to_vec(value).expect("writing to memory does not fail")
}

fn hash(token: &Token) -> [u8; 32] {
    blake3::derive_key(TOKEN_CONTEXT, &token.0)
}

/// Sixteen bytes from where keys come from.
fn drawn() -> [u8; 16] {
    let key = Identity::generate().secret().to_bytes();
    let [drawn @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
        blake3::derive_key(TOKEN_CONTEXT, &key);
    drawn
}

#[cfg(test)]
mod tests;
