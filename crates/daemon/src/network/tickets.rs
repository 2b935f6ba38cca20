//! Who lets other machines into the grid.

use shoal_api::Ticket;
use shoal_model::{Name, Span};

/// Lets other machines into the grid.
pub trait Tickets: Send + Sync {
    /// A ticket that one machine can use once, and for so long; it will be this organisation's, or that of who issues it,
    /// and may admit others in turn or not.
    fn issue(&self, lasts: Span, organisation: Option<Name>, admitter: bool) -> Result<Ticket, NoTicket>;
}

/// Why there is no ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoTicket(pub String);
