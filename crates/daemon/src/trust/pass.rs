//! Passes: who the owner of a key is in a grid, said by an organisation or by a member node, until then.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use shoal_model::envelope::{Pass, PublicKey, Signature};
use shoal_model::{Name, Time};
use shoal_protocols::node::Denial;

use super::text::{Kind, TextError};
use crate::identity::{Identity, signed_by};
use crate::membership::{Chain, ChainError, GridId};

/// The version of passes written here.
const VERSION: u16 = 1;
const CONTEXT: &str = "shoal 2026-11-15 user pass v1";

/// What a pass says.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Statement {
    /// The version of what is written here.
    #[n(0)]
    pub version: u16,
    /// In which grid.
    #[n(1)]
    pub grid: GridId,
    /// The owner of this key
    #[n(2)]
    pub user: PublicKey,
    /// is called so,
    #[n(3)]
    pub name: Name,
    /// and belongs to this organisation,
    #[n(4)]
    pub organisation: Option<Name>,
    /// until then.
    #[n(5)]
    pub expires: Time,
    /// Which pass this is.
    #[n(6)]
    pub serial: u64,
}

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
enum Issuer {
    /// An organisation, by its key.
    #[n(0)]
    Organisation(#[n(0)] PublicKey),
    /// A node, with what makes it a member.
    #[n(1)]
    Member(#[n(0)] PublicKey, #[n(1)] Box<Chain>),
}

#[derive(Encode, Decode)]
struct Signed {
    #[n(0)]
    statement: ByteVec,
    #[n(1)]
    signature: Signature,
    #[n(2)]
    issuer: Issuer,
}

/// Whom a sound pass makes its bearer; whether its issuer is trusted and nothing was revoked is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// The key of the user.
    pub key: PublicKey,
    /// What the user is called.
    pub name: Name,
    /// To whom the user belongs.
    pub organisation: Option<Name>,
    /// Until when.
    pub expires: Time,
    /// Which pass it was.
    pub serial: u64,
    /// Who signed it.
    pub issuer: PublicKey,
    /// Whether that is an organisation, and not a node.
    pub by_organisation: bool,
}

/// A pass by an organisation.
pub fn by_organisation(key: &Identity, statement: &Statement) -> Pass {
    sign(key, statement, Issuer::Organisation(key.public()))
}

/// A pass by a member node.
pub fn by_member(key: &Identity, chain: &Chain, statement: &Statement) -> Pass {
    sign(key, statement, Issuer::Member(key.public(), Box::new(chain.clone())))
}

impl Statement {
    /// A statement of this version, with a serial of its own.
    pub fn new(
        grid: GridId,
        user: PublicKey,
        name: Name,
        organisation: Option<Name>,
        expires: Time,
    ) -> Statement {
        let drawn = Identity::generate().public();
        let serial = drawn.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Statement { version: VERSION, grid, user, name, organisation, expires, serial }
    }
}

fn sign(key: &Identity, statement: &Statement, issuer: Issuer) -> Pass {
    let statement = minicbor::to_vec(statement).expect("writing to memory does not fail");
    let signature = key.sign(&blake3::derive_key(CONTEXT, &statement));
    let signed = Signed { statement: statement.into(), signature, issuer };
    let bytes = minicbor::to_vec(signed).expect("writing to memory does not fail");
    Pass::new(bytes).expect("names and keys have bounds, and so has a pass")
}

/// A pass as people copy it.
pub fn write(pass: &Pass) -> String {
    Kind::Pass.write(pass.as_bytes())
}

/// The pass that a text stands for; whether it is sound is for those to say who are shown it.
pub fn read(line: &str) -> Result<Pass, TextError> {
    Pass::new(Kind::Pass.read(line)?).ok_or(Kind::Pass.damaged())
}

/// What a pass says, unchecked: for people.
pub fn says(pass: &Pass) -> Option<Statement> {
    let signed: Signed = minicbor::decode(pass.as_bytes()).ok()?;
    minicbor::decode(&signed.statement).ok()
}

/// Whose pass this is, in this grid and now.
pub fn verify(pass: &Pass, grid: GridId, now: Time) -> Result<Bearer, Denial> {
    let signed: Signed = minicbor::decode(pass.as_bytes()).map_err(|_| Denial::BadPass)?;
    // There is one encoding of each pass: none passes for two.
    if minicbor::to_vec(&signed).ok().as_deref() != Some(pass.as_bytes()) {
        return Err(Denial::BadPass);
    }
    let statement: Statement = minicbor::decode(&signed.statement).map_err(|_| Denial::BadPass)?;
    if statement.version > VERSION {
        return Err(Denial::BadPass);
    }
    if statement.grid != grid {
        return Err(Denial::OtherGrid);
    }
    let issuer = match signed.issuer {
        Issuer::Organisation(key) | Issuer::Member(key, _) => key,
    };
    if !signed_by(&issuer, &blake3::derive_key(CONTEXT, &signed.statement), &signed.signature) {
        return Err(Denial::BadPass);
    }
    let mut expires = statement.expires;
    let by_organisation = match &signed.issuer {
        Issuer::Organisation(_) if statement.organisation.is_none() => return Err(Denial::BadPass),
        Issuer::Organisation(_) => true,
        Issuer::Member(key, chain) => {
            let member = chain.verify(grid, key, now).map_err(|error| match error {
                ChainError::Expired { .. } => Denial::Expired,
                ChainError::OtherGrid { .. } => Denial::OtherGrid,
                ChainError::Unreadable(_)
                | ChainError::Newer { .. }
                | ChainError::Forged(_)
                | ChainError::OtherKey => Denial::BadPass,
            })?;
            // A node speaks for its own organisation, and for no other.
            if member.organisation != statement.organisation {
                return Err(Denial::BadPass);
            }
            expires = expires.min(member.expires);
            false
        }
    };
    if expires <= now {
        return Err(Denial::Expired);
    }
    let Statement { user: key, name, organisation, serial, .. } = statement;
    Ok(Bearer { key, name, organisation, expires, serial, issuer, by_organisation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::samples::{Grids, NOW, key, later};

    #[test]
    fn sound_pass_says_who_its_bearer_is_and_reads_back_from_text() {
        let grids = Grids::new();
        let pass = grids.vouched("alice", &key(9));
        let bearer = verify(&read(&write(&pass)).unwrap(), grids.id(), NOW).unwrap();
        assert_eq!((bearer.key, bearer.name.as_str()), (key(9).public(), "alice"));
        assert_eq!(bearer.organisation.unwrap().as_str(), "lab-a");
        assert!(!bearer.by_organisation);
        assert!(write(&pass).len() < 2048, "{}", write(&pass).len());
        assert_eq!(says(&pass).unwrap().name.as_str(), "alice");
        assert_eq!(read("shoalkey1abc"), Err(TextError::Other { what: "a pass", head: "shoalpass1" }));
        assert_eq!(read(&write(&pass)[..90]), Err(TextError::Damaged("a pass")));
    }

    #[test]
    fn pass_of_another_grid_or_expired_or_for_another_organisation_is_none() {
        let grids = Grids::new();
        let statement = |organisation: &str, expires| {
            let name = "alice".parse().unwrap();
            Statement::new(grids.id(), key(9).public(), name, organisation.parse().ok(), expires)
        };
        let chain = grids.chain();
        let by_node = |statement: &Statement| by_member(&grids.node, &chain, statement);
        let sound = by_node(&statement("lab-a", later()));
        assert!(verify(&sound, grids.id(), NOW).is_ok());
        assert_eq!(verify(&sound, GridId(key(77).public()), NOW), Err(Denial::OtherGrid));
        let by_lab = by_organisation(&key(5), &statement("lab-a", later()));
        assert!(verify(&by_lab, grids.id(), NOW).is_ok());
        assert_eq!(verify(&by_lab, GridId(key(77).public()), NOW), Err(Denial::OtherGrid));
        assert_eq!(verify(&by_lab, grids.id(), later()), Err(Denial::Expired));
        assert_eq!(verify(&sound, grids.id(), later()), Err(Denial::Expired));
        // A node of lab-a says that somebody is of lab-b.
        assert_eq!(verify(&by_node(&statement("lab-b", later())), grids.id(), NOW), Err(Denial::BadPass));
        // Somebody who is no member at all, with the chain of one.
        let stranger = by_member(&key(5), &chain, &statement("lab-a", later()));
        assert_eq!(verify(&stranger, grids.id(), NOW), Err(Denial::BadPass));
        // An organisation says that somebody is of none.
        let none = Statement { organisation: None, ..statement("lab-a", later()) };
        assert_eq!(verify(&by_organisation(&key(5), &none), grids.id(), NOW), Err(Denial::BadPass));
    }

    #[test]
    fn every_changed_bit_of_a_pass_is_noticed() {
        let grids = Grids::new();
        let by_lab = by_organisation(&key(5), &grids.statement("alice", &key(9)));
        for sound in [by_lab, grids.vouched("alice", &key(9))] {
            assert!(verify(&sound, grids.id(), NOW).is_ok());
            for at in 0..sound.as_bytes().len() * 8 {
                let mut bytes = sound.as_bytes().to_vec();
                bytes[at / 8] ^= 1 << (at % 8);
                // Where the signer's name is all that changed, it is another signer, who has not signed it.
                let verdict = verify(&Pass::new(bytes).unwrap(), grids.id(), NOW);
                assert!(verdict.is_err(), "bit {at} makes {verdict:?}");
            }
        }
    }
}
