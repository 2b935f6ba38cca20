//! Notices: what all nodes of a grid should know of organisations and revocations, signed, and told from node to node.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use shoal_model::envelope::{PublicKey, Signature};
use shoal_model::{Name, Time};

use super::text::{Kind, TextError};
use crate::identity::{Identity, signed_by};
use crate::membership::{Appointment, Chain, Grid, GridId};

/// The version of notices written here.
const VERSION: u16 = 1;
const CONTEXT: &str = "shoal 2026-11-15 notice v1";
/// Bytes of what a notice says, at most.
const CONTENT_MAX: usize = 512;
/// Bytes of a notice, at most.
pub const NOTICE_BYTES_MAX: usize = 2048;

/// What a notice says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Said {
    /// This organisation has this key.
    #[n(0)]
    Organisation(#[n(0)] Name, #[n(1)] PublicKey),
    /// The owner of this key may start nothing more.
    #[n(1)]
    RevokedUser(#[n(0)] PublicKey),
    /// The pass with this serial counts no more.
    #[n(2)]
    RevokedPass(#[n(0)] u64),
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct Content {
    #[n(0)]
    version: u16,
    #[n(1)]
    grid: GridId,
    #[n(2)]
    said: Said,
    #[n(3)]
    at: Time,
}

/// What makes the signer somebody.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
enum Proof {
    /// The root has appointed it.
    #[n(0)]
    Admitter(#[n(0)] Box<Appointment>),
    /// It is a member.
    #[n(1)]
    Member(#[n(0)] Box<Chain>),
    /// It is the key of an organisation.
    #[n(2)]
    Organisation,
}

/// A signed notice.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Notice {
    #[n(0)]
    content: ByteVec,
    #[n(1)]
    signature: Signature,
    #[n(2)]
    signer: PublicKey,
    #[n(3)]
    proof: Proof,
}

/// Whom the signer of a sound notice speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Voice {
    /// For the grid.
    Grid,
    /// For the passes that this key has signed.
    Issuer(PublicKey),
}

/// Why a notice is not heeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// Not a notice, or a newer one.
    #[error("a notice that cannot be read; it may be of a later version of shoal")]
    Unreadable,
    /// Of another grid.
    #[error("a notice of another grid")]
    OtherGrid,
    /// Not signed by who it should be.
    #[error("a notice that is not signed by who it should be")]
    Forged,
    /// By somebody who has no say in this.
    #[error(
        "a notice by somebody who has no say in this: an admitter has, in everything; a node or an organisation that \
         is trusted here has in what it signed itself; and nobody whose membership is over"
    )]
    NoSay,
    /// Too many are kept.
    #[error("{0} notices are kept, and no more are taken; make a new grid, or ask who issues so many")]
    TooMany(usize),
    /// It cannot be kept.
    #[error("a notice cannot be kept: {0}")]
    Unkept(String),
}

impl Notice {
    /// A notice by a node: for the grid, if it is an admitter.
    pub fn by_node(grid: &Grid, said: Said, now: Time) -> Notice {
        let proof = match grid.appointment(now) {
            Some(appointment) => Proof::Admitter(Box::new(appointment.clone())),
            None => Proof::Member(Box::new(grid.chain().clone())),
        };
        Notice::new(grid.identity(), grid.id(), said, proof, now)
    }

    /// A notice by an organisation.
    pub fn by_organisation(key: &Identity, grid: GridId, said: Said, now: Time) -> Notice {
        Notice::new(key, grid, said, Proof::Organisation, now)
    }

    fn new(key: &Identity, grid: GridId, said: Said, proof: Proof, at: Time) -> Notice {
        let content = Content { version: VERSION, grid, said, at };
        let content = minicbor::to_vec(content).expect("writing to memory does not fail");
        let signature = key.sign(&blake3::derive_key(CONTEXT, &content));
        Notice { content: content.into(), signature, signer: key.public(), proof }
    }

    /// What it says, and in whose name; `is_organisation` tells whether a key is an organisation's that is trusted.
    pub fn verify(
        &self,
        grid: GridId,
        now: Time,
        is_organisation: impl FnOnce(&PublicKey) -> bool,
    ) -> Result<(Said, Voice), NoticeError> {
        if self.content.len() > CONTENT_MAX {
            return Err(NoticeError::Unreadable);
        }
        let content: Content = minicbor::decode(&self.content).map_err(|_| NoticeError::Unreadable)?;
        if content.version > VERSION {
            return Err(NoticeError::Unreadable);
        }
        if content.grid != grid {
            return Err(NoticeError::OtherGrid);
        }
        if !signed_by(&self.signer, &blake3::derive_key(CONTEXT, &self.content), &self.signature) {
            return Err(NoticeError::Forged);
        }
        let voice = match &self.proof {
            Proof::Admitter(appointment) if appointment.verify(grid, &self.signer, now).is_ok() => {
                Voice::Grid
            }
            Proof::Member(chain) if chain.verify(grid, &self.signer, now).is_ok() => {
                Voice::Issuer(self.signer)
            }
            Proof::Organisation if is_organisation(&self.signer) => Voice::Issuer(self.signer),
            Proof::Admitter(_) | Proof::Member(_) | Proof::Organisation => return Err(NoticeError::NoSay),
        };
        match (&content.said, voice) {
            (Said::Organisation(..), Voice::Issuer(_)) => Err(NoticeError::NoSay),
            (Said::Organisation(..), Voice::Grid) | (Said::RevokedUser(_) | Said::RevokedPass(_), _) => {
                Ok((content.said, voice))
            }
        }
    }

    /// What it says and when, unchecked.
    pub(super) fn says(&self) -> Option<(Said, Time)> {
        let content: Content = minicbor::decode(&self.content).ok()?;
        Some((content.said, content.at))
    }

    pub(super) fn signer(&self) -> &PublicKey {
        &self.signer
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("writing to memory does not fail")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Notice> {
        if bytes.len() > NOTICE_BYTES_MAX { None } else { minicbor::decode(bytes).ok() }
    }

    /// A notice as text.
    pub fn write(&self) -> String {
        Kind::Notice.write(&self.to_bytes())
    }

    /// The notice that a text stands for.
    pub fn read(line: &str) -> Result<Notice, TextError> {
        Notice::from_bytes(&Kind::Notice.read(line)?).ok_or(Kind::Notice.damaged())
    }
}
