//! A record for tests of stores, and changes to such.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use proptest::prelude::*;
use shoal_protocols::Record;

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Note {
    #[n(0)]
    pub key: u32,
    #[n(1)]
    pub text: String,
}

impl Record for Note {
    type Key = u32;

    fn key(&self) -> u32 {
        self.key
    }
}

/// The same key, and one field more: as of a later version.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Other(#[n(0)] pub u32, #[n(1)] pub u32);

impl Record for Other {
    type Key = u32;

    fn key(&self) -> u32 {
        self.0
    }
}

pub type Kept = BTreeMap<u32, String>;

pub fn note(key: u32, text: &str) -> Note {
    Note { key, text: text.to_owned() }
}

pub fn kept(records: &[Note]) -> Kept {
    records.iter().map(|note| (note.key, note.text.clone())).collect()
}

/// A save with its text, or an erase.
pub type Change = (u32, Option<String>);

pub fn changes() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let change = (0..6u32, prop::option::weighted(0.8, "[a-z]{0,8}"));
    prop::collection::vec(prop::collection::vec(change, 1..4), 1..5)
}
