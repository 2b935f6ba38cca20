//! What a node says to another as a frame's kind and payload, and back.

use minicbor::{Decode, Encode};
use shoal_model::Resources;
use shoal_protocols::commit::two_phase;
use shoal_protocols::guard::heartbeat;
use shoal_protocols::node::{Brief, JobMessage, Message, handover};
use shoal_protocols::overlay::{blatant_s, can, cyclon};
use shoal_protocols::protocol::Message as _;
use shoal_protocols::scheduling::{aria, asap, proactive, sample, tri_pronged};

use super::frame::{self, Malformed};
use super::sound::{self, Unsound};

type Commit = two_phase::Message<Resources, Brief>;

/// The layers as frames number them, for all time: a kind is a layer's number and the message's number in it.
const OVERLAY: u8 = 1;
const COMMIT: u8 = 2;
const HEARTBEAT: u8 = 3;
const SAMPLE: u8 = 4;
const ASAP: u8 = 5;
const JOB: u8 = 6;
const BLATANT_S: u8 = 7;
const ARIA: u8 = 8;
const CAN: u8 = 9;
const TRI_PRONGED: u8 = 10;
const PROACTIVE: u8 = 11;
const SECONDARY: u8 = 12;
const HAND_OVER: u8 = 13;

/// The numbers of what owners and run nodes say.
const JOB_MESSAGES: usize = 10;

/// Why a payload is no message.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Of a kind that a later version may know.
    #[error("a message of kind {0:#06x}, which is not known here")]
    Unknown(u16),
    /// Not to be looked into.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Not what its kind says.
    #[error("not a message of kind {kind:#06x}: {what}")]
    Garbled {
        /// The kind that it claims.
        kind: u16,
        /// What the decoder said.
        what: String,
    },
    /// Whole, and cannot be meant.
    #[error(transparent)]
    Unsound(#[from] Unsound),
}

/// The kind of a message on the wire.
pub fn kind(message: &Message) -> u16 {
    let (layer, number) = match message {
        Message::Overlay(message) => (OVERLAY, message.kind()),
        Message::Commit(message) => (COMMIT, message.kind()),
        Message::Heartbeat(message) => (HEARTBEAT, message.kind()),
        Message::Sample(message) => (SAMPLE, message.kind()),
        Message::Asap(message) => (ASAP, message.kind()),
        Message::BlatantS(message) => (BLATANT_S, message.kind()),
        Message::Aria(message) => (ARIA, message.kind()),
        Message::Can(message) => (CAN, message.kind()),
        Message::TriPronged(message) => (TRI_PRONGED, message.kind()),
        Message::Proactive(message) => (PROACTIVE, message.kind()),
        Message::Secondary(message) => (SECONDARY, message.kind()),
        Message::Job(JobMessage::Started(..)) => (JOB, 0),
        Message::Job(JobMessage::Ended(..)) => (JOB, 1),
        Message::Job(JobMessage::Noted(..)) => (JOB, 2),
        Message::Job(JobMessage::Inquire(..)) => (JOB, 3),
        Message::Job(JobMessage::Sooner(..)) => (JOB, 4),
        Message::Job(JobMessage::Go(..)) => (JOB, 5),
        Message::Job(JobMessage::Await(..)) => (JOB, 6),
        Message::Job(JobMessage::Over(..)) => (JOB, 7),
        Message::Job(JobMessage::Denied(..)) => (JOB, 8),
        Message::Job(JobMessage::Moved(..)) => (JOB, 9),
        Message::HandOver(message) => (HAND_OVER, message.kind()),
    };
    u16::from_be_bytes([layer, u8::try_from(number).expect("a layer has fewer than 256 messages")])
}

/// How many kinds of message a layer has; none if it is not known here.
fn known(layer: u8) -> usize {
    match layer {
        OVERLAY => cyclon::Message::<()>::KINDS.len(),
        COMMIT => Commit::KINDS.len(),
        HEARTBEAT => heartbeat::Message::KINDS.len(),
        SAMPLE => sample::Message::KINDS.len(),
        ASAP => asap::Message::KINDS.len(),
        JOB => JOB_MESSAGES,
        BLATANT_S => blatant_s::Message::KINDS.len(),
        ARIA => aria::Message::KINDS.len(),
        CAN => can::Message::KINDS.len(),
        TRI_PRONGED => tri_pronged::Message::KINDS.len(),
        PROACTIVE => proactive::Message::KINDS.len(),
        SECONDARY => can::SecondaryMessage::KINDS.len(),
        HAND_OVER => handover::Message::KINDS.len(),
        _ => 0,
    }
}

/// Appends a message as a frame, and returns how long that is; one beyond the limit is not written.
pub fn write(message: &Message, bytes: &mut Vec<u8>) -> Result<usize, Malformed> {
    frame::append(bytes, kind(message), |bytes| {
        match message {
            Message::Overlay(message) => put(message, bytes),
            Message::Commit(message) => put(message, bytes),
            Message::Heartbeat(message) => put(message, bytes),
            Message::Sample(message) => put(message, bytes),
            Message::Asap(message) => put(message, bytes),
            Message::BlatantS(message) => put(message, bytes),
            Message::Aria(message) => put(message, bytes),
            Message::Can(message) => put(message, bytes),
            Message::TriPronged(message) => put(message, bytes),
            Message::Proactive(message) => put(message, bytes),
            Message::Secondary(message) => put(message, bytes),
            Message::Job(message) => put(message, bytes),
            Message::HandOver(message) => put(message, bytes),
        }
        Ok(())
    })
}

/// Reads the payload of a frame of this kind.
pub fn read(kind: u16, payload: &[u8]) -> Result<Message, Unread> {
    let [layer, number] = kind.to_be_bytes();
    if usize::from(number) >= known(layer) {
        return Err(Unread::Unknown(kind));
    }
    frame::look_through(payload)?;
    let message = match layer {
        OVERLAY => Message::Overlay(take(kind, payload)?),
        COMMIT => Message::Commit(take(kind, payload)?),
        HEARTBEAT => Message::Heartbeat(take(kind, payload)?),
        SAMPLE => Message::Sample(take(kind, payload)?),
        ASAP => Message::Asap(take(kind, payload)?),
        JOB => Message::Job(take(kind, payload)?),
        BLATANT_S => Message::BlatantS(take(kind, payload)?),
        ARIA => Message::Aria(take(kind, payload)?),
        CAN => Message::Can(take(kind, payload)?),
        TRI_PRONGED => Message::TriPronged(take(kind, payload)?),
        PROACTIVE => Message::Proactive(take(kind, payload)?),
        SECONDARY => Message::Secondary(take(kind, payload)?),
        HAND_OVER => Message::HandOver(take(kind, payload)?),
        _ => return Err(Unread::Unknown(kind)),
    };
    let found = self::kind(&message);
    if found != kind {
        return Err(Unread::Garbled { kind, what: format!("it is one of kind {found:#06x}") });
    }
    sound::check(&message)?;
    Ok(message)
}

fn put(message: &impl Encode<()>, bytes: &mut Vec<u8>) {
    minicbor::encode(message, bytes).expect("writing to memory does not fail");
}

pub(super) fn take<'b, T: Decode<'b, ()>>(kind: u16, payload: &'b [u8]) -> Result<T, Unread> {
    minicbor::decode(payload).map_err(|error| Unread::Garbled { kind, what: error.to_string() })
}
