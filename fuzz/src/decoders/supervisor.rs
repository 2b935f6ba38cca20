//! What a daemon and the supervisor of its tasks say to each other, and what the latter remembers.

// The words are private to the two that speak them: this is the same text, compiled once more.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../crates/daemon/src/executor/process/words.rs"]
mod spoken;

use std::fmt::Debug;

use spoken::{Answer, Entry, Request, Word};

use super::{cbor, choice};

/// Words one after another, as they come on a connection.
pub fn supervisor(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    match choice % 3 {
        0 => all::<Request>(rest),
        1 => all::<Answer>(rest),
        _ => drop(cbor::<Entry>(rest)),
    }
}

fn all<W: Word + PartialEq + Debug>(mut bytes: &[u8]) {
    let from = &mut bytes;
    while let Ok(Some(word)) = spoken::next::<W>(from) {
        let mut written = Vec::new();
        word.write(&mut written);
        let again = spoken::next::<W>(&mut written.as_slice()).expect("what was written can be read");
        assert_eq!(again, Some(word));
    }
}
