//! What nodes say to each other to keep the helper overlays.

use minicbor::{CborLen, Decode, Encode};
use shoal_model::{Coordinates, NodeId};

use super::profile::{Kind, PROFILE_BYTES, Profile};
use crate::overlay::cyclon::{self, Entry};
use crate::protocol;

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Message {
    /// Of the random layer beneath.
    #[n(0)]
    Random(#[n(0)] cyclon::Message<Option<Profile>>),
    /// Myself, and whom I know near you; answered by [`Message::Tell`].
    #[n(1)]
    Ask(#[n(0)] Kind, #[n(1)] Box<[Entry<Profile>]>),
    /// Myself, and whom I know near you.
    #[n(2)]
    Tell(#[n(0)] Kind, #[n(1)] Box<[Entry<Profile>]>),
    /// How long does this take? Answered by [`Message::Pong`].
    #[n(3)]
    Ping,
    /// So long; and I think I am there.
    #[n(4)]
    Pong(#[n(0)] Coordinates, #[n(1)] u32),
}

/// What an entry is accounted for: id, age and profile. With ten each way an exchange stays below the paper's 1,280
/// bytes, headers included.
const ENTRY_BYTES: u64 = 12 + PROFILE_BYTES;
/// What any message is accounted for besides its content.
const HEADER_BYTES: u64 = 32;
/// What a ping or a pong is accounted for.
const PING_BYTES: u64 = 64;

const RANDOM: usize = <cyclon::Message<Option<Profile>> as protocol::Message>::KINDS.len();

impl protocol::Message for Message {
    const KINDS: &'static [&'static str] = &[
        "profiles_shuffle",
        "profiles_shuffle_reply",
        "profiles_join",
        "profiles_walk",
        "profiles_welcome",
        "profiles_held",
        "vicinity_ask",
        "vicinity_tell",
        "vivaldi_ping",
        "vivaldi_pong",
    ];

    fn kind(&self) -> usize {
        match self {
            Message::Random(message) => message.kind(),
            Message::Ask(..) => RANDOM,
            Message::Tell(..) => RANDOM + 1,
            Message::Ping => RANDOM + 2,
            Message::Pong(..) => RANDOM + 3,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Message::Random(message) => message.bytes(),
            Message::Ask(_, entries) | Message::Tell(_, entries) => {
                HEADER_BYTES + ENTRY_BYTES * entries.len() as u64
            }
            Message::Ping | Message::Pong(..) => PING_BYTES,
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            Message::Random(message) => message.mentions(mention),
            Message::Ask(_, entries) | Message::Tell(_, entries) => {
                entries.iter().for_each(|entry| mention(entry.node));
            }
            Message::Ping | Message::Pong(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Message as _;

    #[test]
    fn every_kind_has_a_name_and_an_exchange_of_ten_stays_below_the_papers_bytes() {
        assert_eq!(Message::KINDS.len(), RANDOM + 4);
        let entries = vec![Entry { node: NodeId(1), age: 0, payload: Profile::default() }; 10];
        let ask = Message::Ask(Kind::Coordinates, entries.clone().into());
        let tell = Message::Tell(Kind::Coordinates, entries.into());
        assert!(ask.bytes() + tell.bytes() <= 1_280, "V5");
        assert_eq!(Message::KINDS[ask.kind()], "vicinity_ask");
        assert_eq!(Message::KINDS[Message::Random(cyclon::Message::Held(1)).kind()], "profiles_held");
    }
}
