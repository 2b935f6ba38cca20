//! Names of things: nodes, jobs, and what tells two attempts at one job apart.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

/// A node. In a real grid it is derived from the node's public key; a simulation counts from 1.
///
/// Eight bytes, because overlay views hold dozens of them per node and a simulation holds millions of views.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct NodeId(#[n(0)] pub u64);

/// A job: the first 16 bytes of the BLAKE3 hash of its envelope.
///
/// 128 bits: nobody can make an envelope for somebody else's id. Who spends 2^64 hashes can make two *own*
/// envelopes with one id, and gains nothing, since the first one stored is the job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct JobId(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

/// As bytes are compared, but as one number: maps of jobs are looked into for nearly everything.
impl Ord for JobId {
    fn cmp(&self, other: &JobId) -> Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for JobId {
    fn partial_cmp(&self, other: &JobId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Tells this hash from every other use of BLAKE3.
const ELEMENT_CONTEXT: &str = "shoal 2026-11-15 job of an array v1";

/// Counts the placements of one job: each new set of nodes is a new epoch, and the larger one is right.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    CborLen,
    Serialize,
    Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Epoch(#[n(0)] pub u32);

/// A member of a gang: 0 for the first node of the placement.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    Decode,
    CborLen,
    Serialize,
    Deserialize,
)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Rank(#[n(0)] pub u32);

impl Epoch {
    /// The epoch after this one.
    pub fn next(self) -> Epoch {
        Epoch(self.0.checked_add(1).expect("a job has fewer than 2^32 placements"))
    }
}

impl JobId {
    /// The id of one of an array's jobs: the first 16 bytes of a hash of the array's id and the index.
    pub fn of_index(self, index: u32) -> JobId {
        static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(ELEMENT_CONTEXT));
        let mut hasher = blake3::Hasher::new_from_context_key(&KEY);
        hasher.update(&self.0).update(&index.to_be_bytes());
        let [id @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = *hasher.finalize().as_bytes();
        JobId(id)
    }

    /// An id for tests and simulations that need no envelope.
    pub fn from_number(number: u64) -> JobId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&number.to_be_bytes());
        JobId(bytes)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{:x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        // Very many of them are written: formatting byte by byte takes ten times as long.
        let digits = |byte: u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        let text = self.0.map(digits);
        f.write_str(std::str::from_utf8(text.as_flattened()).map_err(|_| fmt::Error)?)
    }
}

/// Short: numbered ids show their number, others their first eight digits.
impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, rest @ ..] => write!(f, "j{}", u64::from_be_bytes(rest)),
            [a, b, c, d, ..] => write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}"),
        }
    }
}

/// What is wrong with a text that should be an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// A node id is `n` and up to 16 hexadecimal digits.
    #[error("`{0}` is not a node id: expected `n` and up to 16 hexadecimal digits, as in n3f")]
    Node(String),
    /// A job id is 32 hexadecimal digits.
    #[error("`{0}` is not a job id: expected 32 hexadecimal digits")]
    Job(String),
}

impl FromStr for NodeId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<NodeId, ParseIdError> {
        let wrong = || ParseIdError::Node(text.to_owned());
        let digits = text.strip_prefix('n').ok_or_else(wrong)?;
        if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u64::from_str_radix(digits, 16).map(NodeId).map_err(|_| wrong())
    }
}

impl FromStr for JobId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<JobId, ParseIdError> {
        let wrong = || ParseIdError::Job(text.to_owned());
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(JobId(bytes))
    }
}

impl Serialize for JobId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<JobId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_an_index_is_a_hash_of_both_that_is_nothing_else() {
        let array = JobId([7; 16]);
        let hash = blake3::derive_key(ELEMENT_CONTEXT, &[&[7; 16][..], &[0, 0, 1, 2]].concat());
        assert_eq!(array.of_index(258).0, hash[..16]);
    }

    #[test]
    fn ids_read_back_what_they_print() {
        for id in [NodeId(0), NodeId(1), NodeId(u64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let job = JobId([0xab; 16]);
        assert_eq!(job.to_string().parse(), Ok(job));
    }

    #[test]
    fn jobs_are_in_the_order_of_their_bytes() {
        let seven = JobId([7; 16]);
        for (first, second) in (0..16).flat_map(|first| (first..16).map(move |second| (first, second))) {
            // What comes first counts, whatever comes after it.
            for (one, other) in [(6, 8), (8, 6), (0, 255), (255, 0), (7, 7)] {
                let mut job = seven;
                (job.0[second], job.0[first]) = (other, one);
                assert_eq!(job.cmp(&seven), job.0.cmp(&seven.0), "{job}");
            }
        }
    }

    #[test]
    fn text_that_is_no_id_is_refused_with_its_form() {
        for text in ["", "n", "3", "n+3", "nxyz", "n00000000000000000"] {
            let error = text.parse::<NodeId>().unwrap_err();
            assert!(error.to_string().contains("hexadecimal"), "{error}");
        }
        for text in ["", "ab", "zz".repeat(16).as_str(), "é".repeat(16).as_str()] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
