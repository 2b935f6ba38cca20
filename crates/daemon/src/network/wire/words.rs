//! What daemons say to each other for themselves: hello, where is who, how late is it, questions and answers.
//!
//! ```text
//! dialler                                    acceptor
//!    │── Hello: version, grid, who, clock ──────▶│  checks all of it
//!    │◀─────── Welcome: the same of itself ──────│  or Refused, and why
//!    │── Confirm ───────────────────────────────▶│  now both may speak
//! ```

use minicbor::bytes::ByteVec;
use minicbor::{CborLen, Decode, Encode};
use shoal_model::envelope::PublicKey;
use shoal_model::{NodeId, Time};

use super::frame::{self, Malformed};
use super::speech::{Unread, take};
use crate::membership::{Admission, GridId, Token};
use crate::network::quic::record::AddressRecord;

/// The version of the conversation spoken here.
pub const PROTOCOL: u16 = 1;
/// The oldest version of it that is understood here.
pub const PROTOCOL_OLDEST: u16 = 1;

/// Nodes asked after in one word, at most.
pub const WHO_MAX: usize = 64;
/// Address records given to a newcomer, at most.
pub const NEIGHBOURS_MAX: usize = 32;

/// A word with a kind of its own.
pub trait Word: Encode<()> + for<'b> Decode<'b, ()> {
    /// The kind of its frames.
    const KIND: u16;

    /// Appends it as a frame.
    fn write(&self, bytes: &mut Vec<u8>) -> Result<usize, Malformed> {
        frame::append(bytes, Self::KIND, |bytes| {
            minicbor::encode(self, bytes).expect("writing to memory does not fail");
            Ok(())
        })
    }

    /// It as a frame; nothing that is said here is near the limit.
    fn frame(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("shorter than the longest frame");
        bytes
    }

    /// Reads a payload of its kind.
    fn read(payload: &[u8]) -> Result<Self, Unread> {
        frame::look_through(payload)?;
        take(Self::KIND, payload)
    }
}

macro_rules! words {
    ($($kind:literal $word:ty;)*) => {
        $(impl Word for $word {
            const KIND: u16 = $kind;
        })*
    };
}

words! {
    0x0001 AddressRecord;
    0x0002 Who;
    0x0003 Ping;
    0x0004 Pong;
    0x0010 Hello;
    0x0011 Welcome;
    0x0012 Confirm;
    0x0013 Refused;
    0x0020 Redeem;
    0x0021 Admitted;
    0x0030 Question;
    0x0031 Chunk;
    0x0032 End;
}

/// Where are these? Answered by the address records that are known.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Who(#[n(0)] pub Vec<NodeId>);

/// How late is it with you? Answered by [`Pong`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Ping {
    /// When it was said, by the clock of who says it.
    #[n(0)]
    pub said: Time,
}

/// So late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Pong {
    /// What the ping said.
    #[n(0)]
    pub said: Time,
    /// When the ping came, by the clock of who answers.
    #[n(1)]
    pub heard: Time,
    /// When this was said, by the same clock.
    #[n(2)]
    pub answered: Time,
}

/// Who I am.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Hello {
    /// The version that I speak.
    #[n(0)]
    pub version: u16,
    /// The oldest that I understand.
    #[n(1)]
    pub oldest: u16,
    /// My grid.
    #[n(2)]
    pub grid: GridId,
    /// My key, my membership and where I am.
    #[n(3)]
    pub record: AddressRecord,
    /// Which of my lives this is: another number after each start.
    #[n(4)]
    pub life: u64,
    /// How late it is with me.
    #[n(5)]
    pub clock: Time,
}

/// And who I am.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Welcome {
    /// Who I am.
    #[n(0)]
    pub hello: Hello,
    /// When your hello came.
    #[n(1)]
    pub heard: Time,
}

/// Then let us speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Confirm {
    /// When your welcome came.
    #[n(0)]
    pub heard: Time,
    /// When this was said.
    #[n(1)]
    pub clock: Time,
}

/// No, and why.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Refused {
    /// Why, for machines.
    #[n(0)]
    pub code: u16,
    /// Why, for people.
    #[n(1)]
    pub text: String,
}

/// I have a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Redeem {
    /// For which grid.
    #[n(0)]
    pub grid: GridId,
    /// Issued by whom.
    #[n(1)]
    pub issuer: PublicKey,
    /// What is redeemed.
    #[n(2)]
    pub token: Token,
}

/// Come in.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Admitted {
    /// What makes you a member.
    #[n(0)]
    pub admission: Admission,
    /// Where I am, and some others; at most [`NEIGHBOURS_MAX`].
    #[n(1)]
    pub neighbours: Vec<AddressRecord>,
}

/// Something that is to be answered.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Question(#[n(0)] pub ByteVec);

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Chunk(#[n(0)] pub ByteVec);

/// The answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct End {}
