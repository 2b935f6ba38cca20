//! Address records: where a node is, signed by itself, with what makes it a member.

use std::net::SocketAddr;

use minicbor::bytes::ByteVec;
use minicbor::{CborLen, Decode, Encode};
use shoal_model::envelope::{PublicKey, Signature};
use shoal_model::{NodeId, Time};

use crate::identity::{Identity, node_id, signed_by};
use crate::membership::{ADDRESSES_MAX, Chain, ChainError, GridId, Member};
use crate::relay::{RELAYS_MAX, Relay};

/// The version of records written here.
const VERSION: u16 = 1;
/// Bytes of a record's content, at most.
const CONTENT_MAX: usize = 2048;
/// Tells the digest of a record from all others.
const CONTEXT: &str = "shoal 2026-11-15 address record v1";

/// A record as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct AddressRecord {
    #[n(0)]
    content: ByteVec,
    #[n(1)]
    signature: Signature,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
struct Content {
    #[n(0)]
    version: u16,
    #[n(1)]
    key: PublicKey,
    #[n(2)]
    addresses: Vec<SocketAddr>,
    /// Of two records of one node the larger number is right.
    #[n(3)]
    number: u64,
    #[n(4)]
    chain: Chain,
    /// Where it can be reached if not there.
    #[n(5)]
    #[cbor(default)]
    relays: Vec<Relay>,
}

/// What a record says before anybody has checked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of which node.
    pub node: NodeId,
    /// Its key.
    pub key: PublicKey,
    /// Which of its records.
    pub number: u64,
    /// Where it is.
    pub addresses: Vec<SocketAddr>,
    /// What carries to it what cannot be sent there.
    pub relays: Vec<Relay>,
    chain: Chain,
}

/// A record that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who it is.
    pub member: Member,
    /// Where it is.
    pub addresses: Vec<SocketAddr>,
    /// What carries to it what cannot be sent there.
    pub relays: Vec<Relay>,
    /// Which of its records this is.
    pub number: u64,
    /// The record, to pass on.
    pub record: AddressRecord,
}

/// Why a record is worth nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not a record.
    #[error("an address record that cannot be read")]
    Unreadable,
    /// Of a later version.
    #[error("an address record of version {0}, and this shoal knows none after {VERSION}")]
    Newer(u16),
    /// Not signed by the node itself.
    #[error("an address record that its node has not signed")]
    Forged,
    /// Of nobody who belongs here.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl AddressRecord {
    /// Says where a node is.
    pub fn new(
        identity: &Identity,
        chain: &Chain,
        mut addresses: Vec<SocketAddr>,
        mut relays: Vec<Relay>,
        number: u64,
    ) -> AddressRecord {
        addresses.truncate(ADDRESSES_MAX);
        relays.truncate(RELAYS_MAX);
        let key = identity.public();
        let content = Content { version: VERSION, key, addresses, number, chain: chain.clone(), relays };
        let content = minicbor::to_vec(content).expect("writing to memory does not fail");
        let signature = identity.sign(&blake3::derive_key(CONTEXT, &content));
        AddressRecord { content: content.into(), signature }
    }

    /// What it claims.
    pub fn claim(&self) -> Result<Claim, RecordError> {
        if self.content.len() > CONTENT_MAX {
            return Err(RecordError::Unreadable);
        }
        let content: Content = minicbor::decode(&self.content).map_err(|_| RecordError::Unreadable)?;
        if content.version > VERSION {
            return Err(RecordError::Newer(content.version));
        }
        if content.addresses.len() > ADDRESSES_MAX || content.relays.len() > RELAYS_MAX {
            return Err(RecordError::Unreadable);
        }
        let Content { key, addresses, number, chain, relays, .. } = content;
        Ok(Claim { node: node_id(&key), key, number, addresses, relays, chain })
    }

    /// What it says, if its node has signed it and is a member now.
    pub fn verify(self, grid: GridId, now: Time) -> Result<Known, RecordError> {
        let Claim { key, number, addresses, relays, chain, .. } = self.claim()?;
        if !signed_by(&key, &blake3::derive_key(CONTEXT, &self.content), &self.signature) {
            return Err(RecordError::Forged);
        }
        let member = chain.verify(grid, &key, now)?;
        Ok(Known { member, addresses, relays, number, record: self })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cabinet::MemoryCabinet;
    use crate::membership::Grid;

    /// What records said before they named relays.
    #[derive(Encode)]
    #[cbor(map)]
    struct Before {
        #[n(0)]
        version: u16,
        #[n(1)]
        key: PublicKey,
        #[n(2)]
        addresses: Vec<SocketAddr>,
        #[n(3)]
        number: u64,
        #[n(4)]
        chain: Chain,
    }

    #[test]
    fn record_from_before_there_were_relays_can_be_read() {
        let now = Time::from_secs(1_000);
        let identity = Identity::from_bytes(&[1; 32]);
        let cabinet = Arc::new(MemoryCabinet::new());
        let grid = Grid::create(&identity, "lab".parse().unwrap(), vec![], cabinet, now).unwrap();
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 7))];
        let (key, chain) = (identity.public(), grid.chain().clone());
        let before = Before { version: VERSION, key, addresses: addresses.clone(), number: 3, chain };
        let content = minicbor::to_vec(before).unwrap();
        let signature = identity.sign(&blake3::derive_key(CONTEXT, &content));
        let known = AddressRecord { content: content.into(), signature }.verify(grid.id(), now).unwrap();
        assert_eq!((known.addresses, known.relays, known.number), (addresses, vec![], 3));
    }
}
