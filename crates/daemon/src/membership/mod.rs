//! Who belongs to a grid: a root key signs admitters, admitters sign members, and anybody can check that offline.
//!
//! ```text
//! root ── signs ──▶ admitter ── signs ──▶ member          kept by each member, shown in every hello
//!
//! newcomer                      issuer of its ticket (an admitter)
//!     │── token ─────────────────────▶│  marks the token used by this key, durably
//!     │◀── certificates, settings ────│  the same answer again if it is asked again; nothing for another key
//! ```
//!
//! A grid *is* its root key: [`GridId`] is the public half. The first node keeps the secret half and appoints admitters.

mod certificate;
mod grid;
mod ticket;

use std::fmt;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::envelope::PublicKey;

pub(crate) use certificate::Appointment;
pub use certificate::{Chain, ChainError, Link, Member};
pub use grid::{Admission, Grid, GridError, Refusal, TICKETS_MAX, Terms};
pub use ticket::{ADDRESSES_MAX, Ticket, TicketError, Token};

/// A grid: the public half of its root key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct GridId(#[n(0)] pub PublicKey);

/// Short, for people: enough to tell grids apart.
impl fmt::Display for GridId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for GridId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grid {self}")
    }
}
