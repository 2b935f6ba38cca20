//! Certificates, and the chain of them that makes a member.
//!
//! What is signed is a digest of the exact bytes that travel, in a context of its own for each kind of certificate:
//! a field of a later version stays under the signature, and no certificate passes for one of another kind.

use minicbor::bytes::ByteVec;
use minicbor::{CborLen, Decode, Encode};
use shoal_model::envelope::{PublicKey, Signature};
use shoal_model::{Name, NodeId, Time};

use super::GridId;
use crate::identity::{Identity, node_id, signed_by};

/// The version of certificates written here.
const VERSION: u16 = 1;
/// Bytes of a certificate's content, at most.
const CONTENT_MAX: usize = 512;

/// Which certificate of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The root's, for an admitter.
    Admitter,
    /// An admitter's, for a member.
    Member,
}

impl Link {
    fn context(self) -> &'static str {
        match self {
            Link::Admitter => "shoal 2026-11-15 admitter certificate v1",
            Link::Member => "shoal 2026-11-15 member certificate v1",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Link::Admitter => "admitter",
            Link::Member => "member",
        }
    }
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
struct Content {
    #[n(0)]
    version: u16,
    #[n(1)]
    grid: GridId,
    #[n(2)]
    subject: PublicKey,
    #[n(3)]
    expires: Time,
    #[n(4)]
    organisation: Option<Name>,
}

/// A certificate as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
struct Signed {
    #[n(0)]
    content: ByteVec,
    #[n(1)]
    signature: Signature,
}

/// Root, admitter, member: what makes a node one of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Chain {
    #[n(0)]
    admitter: Signed,
    #[n(1)]
    member: Signed,
}

/// Who a sound chain says that somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its key.
    pub key: PublicKey,
    /// Whose it is.
    pub organisation: Option<Name>,
    /// Until when it is a member.
    pub expires: Time,
    /// Who admitted it.
    pub admitter: PublicKey,
}

/// Why a chain makes nobody a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Not a certificate.
    #[error("the {} certificate cannot be read", .0.name())]
    Unreadable(Link),
    /// Written by a version that is still to come.
    #[error("the {} certificate has version {version}, and this shoal knows none after {VERSION}; run a newer one", link.name())]
    Newer {
        /// Which.
        link: Link,
        /// Its version.
        version: u16,
    },
    /// For another grid.
    #[error("the {} certificate is for another grid ({grid})", link.name())]
    OtherGrid {
        /// Which.
        link: Link,
        /// Which grid it is for.
        grid: GridId,
    },
    /// Not signed by who should have.
    #[error("the {} certificate is not signed by who it should be", .0.name())]
    Forged(Link),
    /// For somebody else.
    #[error("the member certificate is for another key")]
    OtherKey,
    /// Too old.
    #[error(
        "the {} certificate expired at {at}; ask for a new ticket and join again, or set the clock right of who says \
         this, if it is wrong",
        link.name()
    )]
    Expired {
        /// Which.
        link: Link,
        /// When.
        at: Time,
    },
}

impl Chain {
    /// Makes a member: `admitter` is what the root has signed for the one that signs here.
    pub(crate) fn new(
        admitter: &Appointment,
        by: &Identity,
        grid: GridId,
        subject: PublicKey,
        organisation: Option<Name>,
        expires: Time,
    ) -> Chain {
        let member = Signed::new(Link::Member, by, grid, subject, organisation, expires);
        Chain { admitter: admitter.0.clone(), member }
    }

    /// Whom this makes a member, if the owner of `key` shows it now.
    pub fn verify(&self, grid: GridId, key: &PublicKey, now: Time) -> Result<Member, ChainError> {
        let admitter = self.admitter.verify(Link::Admitter, grid, &grid.0, now)?;
        let member = self.member.verify(Link::Member, grid, &admitter.subject, now)?;
        if member.subject != *key {
            return Err(ChainError::OtherKey);
        }
        Ok(Member {
            node: node_id(key),
            key: *key,
            organisation: member.organisation,
            expires: member.expires.min(admitter.expires),
            admitter: admitter.subject,
        })
    }
}

/// The root's word that somebody may admit others.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub(crate) struct Appointment(#[n(0)] Signed);

impl Appointment {
    /// Appoints an admitter.
    pub fn new(root: &Identity, subject: PublicKey, expires: Time) -> Appointment {
        let grid = GridId(root.public());
        Appointment(Signed::new(Link::Admitter, root, grid, subject, None, expires))
    }

    /// Until when `key` may admit others.
    pub fn verify(&self, grid: GridId, key: &PublicKey, now: Time) -> Result<Time, ChainError> {
        let content = self.0.verify(Link::Admitter, grid, &grid.0, now)?;
        if content.subject == *key { Ok(content.expires) } else { Err(ChainError::OtherKey) }
    }
}

impl Signed {
    fn new(
        link: Link,
        by: &Identity,
        grid: GridId,
        subject: PublicKey,
        organisation: Option<Name>,
        expires: Time,
    ) -> Signed {
        let content = Content { version: VERSION, grid, subject, expires, organisation };
        let content = minicbor::to_vec(content).expect("writing to memory does not fail");
        let signature = by.sign(&blake3::derive_key(link.context(), &content));
        Signed { content: content.into(), signature }
    }

    fn verify(&self, link: Link, grid: GridId, by: &PublicKey, now: Time) -> Result<Content, ChainError> {
        if self.content.len() > CONTENT_MAX {
            return Err(ChainError::Unreadable(link));
        }
        let content: Content = minicbor::decode(&self.content).map_err(|_| ChainError::Unreadable(link))?;
        if content.version > VERSION {
            return Err(ChainError::Newer { link, version: content.version });
        }
        if content.grid != grid {
            return Err(ChainError::OtherGrid { link, grid: content.grid });
        }
        if !signed_by(by, &blake3::derive_key(link.context(), &self.content), &self.signature) {
            return Err(ChainError::Forged(link));
        }
        if content.expires <= now {
            return Err(ChainError::Expired { link, at: content.expires });
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_000);

    fn key(number: u8) -> Identity {
        Identity::from_bytes(&[number; 32])
    }

    /// The chain of member 3, admitted by 2 in the grid of root 1, each until then.
    fn chain(admitter_until: u64, member_until: u64) -> Chain {
        let appointment = Appointment::new(&key(1), key(2).public(), Time::from_secs(admitter_until));
        let organisation = "lab".parse().ok();
        let until = Time::from_secs(member_until);
        Chain::new(&appointment, &key(2), grid(), key(3).public(), organisation, until)
    }

    fn grid() -> GridId {
        GridId(key(1).public())
    }

    #[test]
    fn sound_chain_says_who_somebody_is() {
        let chain = chain(3_000, 2_000);
        let bytes = minicbor::to_vec(&chain).unwrap();
        assert_eq!(bytes.len(), minicbor::len(&chain));
        let chain: Chain = minicbor::decode(&bytes).unwrap();
        let member = chain.verify(grid(), &key(3).public(), NOW).unwrap();
        assert_eq!(member.node, key(3).node());
        assert_eq!(member.organisation.unwrap().as_str(), "lab");
        assert_eq!(member.expires, Time::from_secs(2_000));
    }

    #[test]
    fn each_way_to_be_no_member_is_told_apart() {
        let verify =
            |chain: &Chain, grid, key: &Identity| chain.verify(grid, &key.public(), NOW).unwrap_err();
        let good = chain(3_000, 2_000);
        assert_eq!(verify(&good, grid(), &key(4)), ChainError::OtherKey);
        let other = GridId(key(9).public());
        assert_eq!(
            verify(&good, other, &key(3)),
            ChainError::OtherGrid { link: Link::Admitter, grid: grid() }
        );
        let at = Time::from_secs(1_000);
        assert_eq!(
            verify(&chain(1_000, 2_000), grid(), &key(3)),
            ChainError::Expired { link: Link::Admitter, at }
        );
        assert_eq!(
            verify(&chain(3_000, 1_000), grid(), &key(3)),
            ChainError::Expired { link: Link::Member, at }
        );

        let swapped = Chain { admitter: good.member.clone(), member: good.admitter.clone() };
        assert_eq!(verify(&swapped, grid(), &key(3)), ChainError::Forged(Link::Admitter));
        let mut unsigned = good.clone();
        unsigned.member.signature.0[5] ^= 1;
        assert_eq!(verify(&unsigned, grid(), &key(3)), ChainError::Forged(Link::Member));
        let mut garbled = good.clone();
        garbled.member.content = vec![0xff; 10].into();
        assert_eq!(verify(&garbled, grid(), &key(3)), ChainError::Unreadable(Link::Member));

        // Somebody whom the root has not appointed admits a friend.
        let appointment = Appointment::new(&key(1), key(2).public(), Time::from_secs(3_000));
        let friend = Chain::new(&appointment, &key(5), grid(), key(6).public(), None, Time::from_secs(3_000));
        assert_eq!(verify(&friend, grid(), &key(6)), ChainError::Forged(Link::Member));
    }

    #[test]
    fn certificate_of_a_later_version_says_so() {
        let content = Content {
            version: 2,
            grid: grid(),
            subject: key(2).public(),
            expires: Time::NEVER,
            organisation: None,
        };
        let mut later = chain(3_000, 2_000);
        later.admitter.content = minicbor::to_vec(content).unwrap().into();
        let error = later.verify(grid(), &key(3).public(), NOW).unwrap_err();
        assert_eq!(error, ChainError::Newer { link: Link::Admitter, version: 2 });
    }
}
