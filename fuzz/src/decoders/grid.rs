//! What nodes say to each other, and what a node finds on its disk.

use std::fmt::Debug;

use shoal_daemon::elsewhere::Question;
use shoal_daemon::membership::{Admission, Chain, Terms};
use shoal_daemon::network::quic::AddressRecord;
use shoal_daemon::network::wire::words::{
    Admitted, Chunk, Confirm, End, Hello, Ping, Pong, Redeem, Refused, Welcome, Who, Word,
};
use shoal_daemon::network::wire::{self, HEAD, Head, words};
use shoal_daemon::service::story::Story;
use shoal_protocols::Record as _;
use shoal_protocols::node::{Brief, Key, Record};

use super::{cbor, choice, settles};

/// What a node says to another: two bytes of its kind, then the payload.
pub fn frames(bytes: &[u8]) {
    if let Some(head) = bytes.first_chunk() {
        let _ = Head::read(head);
    }
    let Some((kind, payload)) = bytes.split_first_chunk() else { return };
    let Ok(message) = wire::read(u16::from_be_bytes(*kind), payload) else { return };
    let mut frame = Vec::new();
    wire::write(&message, &mut frame).expect("what fitted in a frame fits again");
    let (head, payload) = frame.split_first_chunk::<HEAD>().expect("a frame has a head");
    let head = Head::read(head).expect("it is sound");
    assert_eq!(head.length, payload.len());
    let again = wire::read(head.kind, payload).expect("what was written can be read");
    assert_eq!(again, message);
}

/// What daemons say for themselves: greetings, addresses, tickets, questions.
pub fn words(bytes: &[u8]) {
    let Some((choice, payload)) = choice(bytes) else { return };
    match choice % 15 {
        0 => {
            if let Some(record) = word::<AddressRecord>(payload) {
                let _ = record.claim();
            }
        }
        1 => drop(word::<Who>(payload)),
        2 => drop(word::<Ping>(payload)),
        3 => drop(word::<Pong>(payload)),
        4 => {
            if let Some(hello) = word::<Hello>(payload) {
                let _ = hello.record.claim();
            }
        }
        5 => drop(word::<Welcome>(payload)),
        6 => drop(word::<Confirm>(payload)),
        7 => drop(word::<Refused>(payload)),
        8 => drop(word::<Redeem>(payload)),
        9 => drop(word::<Admitted>(payload)),
        10 => drop(word::<words::Question>(payload)),
        11 => drop(word::<Chunk>(payload)),
        12 => drop(word::<End>(payload)),
        13 => drop((cbor::<Chain>(payload), cbor::<Admission>(payload), cbor::<Terms>(payload))),
        _ => {
            if let Ok(question) = Question::read(payload) {
                assert_eq!(Question::read(&question.write()), Ok(question));
            }
        }
    }
}

fn word<W: Word + PartialEq + Debug>(payload: &[u8]) -> Option<W> {
    let word = W::read(payload).ok()?;
    let frame = word.frame();
    assert_eq!(W::read(&frame[HEAD..]).ok().as_ref(), Some(&word));
    Some(word)
}

/// What a node finds on its disk: its records and their keys, the stories of jobs, errands.
pub fn records(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    match choice % 5 {
        0 => {
            if let Some(record) = cbor::<Record>(rest) {
                let _ = record.key();
            }
        }
        1 => drop(cbor::<Key>(rest)),
        2 => {
            if let Some(story) = cbor::<Story>(rest) {
                let _ =
                    (story.state(), story.promised(), story.started(), story.placement(None), story.views());
            }
        }
        3 => settles(rest, shoal_daemon::staging::reread_errand),
        _ => drop(cbor::<Brief>(rest)),
    }
}
