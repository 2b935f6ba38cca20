//! A ticket: a line of text that lets one machine into a grid, once.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use minicbor::{CborLen, Decode, Encode};
use shoal_model::Time;
use shoal_model::envelope::PublicKey;

use super::GridId;
use crate::identity::text::{self, Unreadable};
use crate::relay::{RELAYS_MAX, Relay};

/// Addresses in a ticket or an address record, at most.
pub const ADDRESSES_MAX: usize = 8;
/// How every ticket begins; the digit is its version.
const HEAD: &str = "shoal1";
/// How tickets of any version begin.
const ANY_HEAD: &str = "shoal";
/// Signs of a ticket, at most.
const TEXT_MAX: usize = 1024;
/// Tells the sum of a ticket from all others.
const SUM_CONTEXT: &str = "shoal 2026-11-15 ticket v1";

/// What is redeemed: drawn by the issuer, used once.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Token(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// Whoever sees a token can use it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A way into a grid.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Ticket {
    /// Which grid.
    #[n(0)]
    pub grid: GridId,
    /// Who issued it, and alone can redeem it.
    #[n(1)]
    pub issuer: PublicKey,
    /// Where the issuer is.
    #[n(2)]
    pub addresses: Vec<SocketAddr>,
    /// What is redeemed.
    #[n(3)]
    pub token: Token,
    /// Until when.
    #[n(4)]
    pub expires: Time,
    /// What carries to the issuer what cannot be sent there.
    #[n(5)]
    #[cbor(default)]
    pub relays: Vec<Relay>,
}

/// What is wrong with the text of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// Something else.
    #[error("not a ticket: a ticket begins with `{HEAD}`; `shoal ticket` on a node of the grid prints one")]
    NotATicket,
    /// Of a later version.
    #[error("a ticket of a later version of shoal; run that version here")]
    Newer,
    /// Not as it was printed.
    #[error("the ticket is damaged: a part of it is missing or changed; copy it again, all of it")]
    Damaged,
    /// Whole, and makes no sense.
    #[error("the ticket names no address of its issuer, or too many; ask for another")]
    Addresses,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = minicbor::to_vec(self).expect("writing to memory does not fail");
        write!(f, "{HEAD}{}", text::write(SUM_CONTEXT, &bytes))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(line: &str) -> Result<Ticket, TicketError> {
        let line = line.trim();
        let rest = strip_head(line, ANY_HEAD).ok_or(TicketError::NotATicket)?;
        let letters = match rest.as_bytes().first() {
            Some(b'1') => &rest[1..],
            Some(b'2'..=b'9') => return Err(TicketError::Newer),
            Some(_) | None => return Err(TicketError::NotATicket),
        };
        if line.len() > TEXT_MAX {
            return Err(TicketError::Damaged);
        }
        let bytes = text::read(SUM_CONTEXT, letters).map_err(|why| match why {
            Unreadable::Letters | Unreadable::Sum => TicketError::Damaged,
        })?;
        let ticket: Ticket = minicbor::decode(&bytes).map_err(|_| TicketError::Damaged)?;
        let nowhere = ticket.addresses.is_empty() && ticket.relays.is_empty();
        if nowhere || ticket.addresses.len() > ADDRESSES_MAX || ticket.relays.len() > RELAYS_MAX {
            return Err(TicketError::Addresses);
        }
        Ok(ticket)
    }
}

/// Mail programs like to begin a line with a capital.
fn strip_head<'a>(line: &'a str, head: &str) -> Option<&'a str> {
    let (found, rest) = line.split_at_checked(head.len())?;
    found.eq_ignore_ascii_case(head).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            grid: GridId(PublicKey([1; 32])),
            issuer: PublicKey([2; 32]),
            addresses: vec!["10.0.0.1:4711".parse().unwrap(), "[2001:db8::1]:4711".parse().unwrap()],
            token: Token([3; 16]),
            expires: Time::from_secs(1_800_000_000),
            relays: vec![],
        }
    }

    /// What tickets were before they named relays.
    #[derive(Encode)]
    #[cbor(map)]
    struct Before {
        #[n(0)]
        grid: GridId,
        #[n(1)]
        issuer: PublicKey,
        #[n(2)]
        addresses: Vec<SocketAddr>,
        #[n(3)]
        token: Token,
        #[n(4)]
        expires: Time,
    }

    #[test]
    fn ticket_from_before_there_were_relays_can_be_read() {
        let Ticket { grid, issuer, addresses, token, expires, .. } = ticket();
        let bytes = minicbor::to_vec(Before { grid, issuer, addresses, token, expires }).unwrap();
        let text = format!("{HEAD}{}", text::write(SUM_CONTEXT, &bytes));
        assert_eq!(text.parse(), Ok(ticket()));
    }

    #[test]
    fn ticket_of_a_node_that_only_relays_reach_names_them() {
        let long = format!("https://{}.example.org", "a".repeat(100));
        let relays = vec!["http://192.0.2.1:3340".parse().unwrap(), long.parse().unwrap()];
        let addresses =
            vec!["[2001:db8:1111:2222:3333:4444:5555:6666]:54711".parse().unwrap(); ADDRESSES_MAX];
        for addresses in [vec![], addresses] {
            let ticket = Ticket { addresses, relays: relays.clone(), ..ticket() };
            assert_eq!(ticket.to_string().parse(), Ok(ticket));
        }
        let relays = [relays.clone(), relays].concat();
        assert_eq!(Ticket { relays, ..ticket() }.to_string().parse::<Ticket>(), Err(TicketError::Addresses));
    }

    #[test]
    fn ticket_reads_back_what_it_prints() {
        let text = ticket().to_string();
        assert!(text.starts_with("shoal1") && text.len() < 300, "{text}");
        assert_eq!(text.parse(), Ok(ticket()));
        assert_eq!(format!("  {}\n", text.to_uppercase()).parse(), Ok(ticket()));
    }

    #[test]
    fn text_that_is_no_ticket_says_what_is_wrong_with_it() {
        let text = ticket().to_string();
        for (wrong, why) in [
            ("", TicketError::NotATicket),
            ("shoal", TicketError::NotATicket),
            ("ticket", TicketError::NotATicket),
            ("ééééé", TicketError::NotATicket),
            ("shoal2abc", TicketError::Newer),
            ("shoal1", TicketError::Damaged),
            ("shoal1é", TicketError::Damaged),
            (&text[..text.len() - 1], TicketError::Damaged),
            (&text.replacen('0', "2", 1), TicketError::Damaged),
            (&format!("{text}00"), TicketError::Damaged),
            (&format!("shoal1{}", "0".repeat(5_000)), TicketError::Damaged),
            (&Ticket { addresses: vec![], ..ticket() }.to_string(), TicketError::Addresses),
        ] {
            assert_eq!(wrong.parse::<Ticket>(), Err(why), "{wrong}");
        }
    }

    #[test]
    fn token_is_not_shown_by_accident() {
        assert!(!format!("{:?}", ticket()).contains("3, 3"));
    }
}
