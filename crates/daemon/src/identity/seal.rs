//! Boxes that only one node can open: HPKE (RFC 9180) to its key, which is turned from signing to agreeing on a secret.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use shoal_model::envelope::PublicKey;

use super::Identity;

type Suite = X25519HkdfSha256;

/// Tells boxes of this kind from all others.
const CONTEXT: &[u8] = b"shoal 2026-11-15 sealed box v1";
/// Bytes of what comes before the sealed text.
const HEAD: usize = 32;

/// Seals a text to whoever has a key, about a subject that both know; `None` if that is no key.
pub fn seal(to: &PublicKey, subject: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let key = iroh::PublicKey::from_bytes(&to.0).ok()?.as_verifying_key().to_montgomery();
    let key = <Suite as Kem>::PublicKey::from_bytes(key.as_bytes()).ok()?;
    let sealed = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, Suite>(
        &OpModeS::Base,
        &key,
        CONTEXT,
        text,
        subject,
    );
    let (head, sealed) = sealed.ok()?;
    Some([&head.to_bytes()[..], &sealed].concat())
}

impl Identity {
    /// Opens what was sealed to this key about a subject; `None` if it was not, or was changed.
    pub fn unseal(&self, subject: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (head, sealed) = sealed.split_at_checked(HEAD)?;
        let key = self.secret.as_signing_key().to_scalar_bytes();
        let key = <Suite as Kem>::PrivateKey::from_bytes(&key).ok()?;
        let head = <Suite as Kem>::EncappedKey::from_bytes(head).ok()?;
        hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, Suite>(
            &OpModeR::Base,
            &key,
            &head,
            CONTEXT,
            sealed,
            subject,
        )
        .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn box_is_opened_by_its_owner_for_its_subject_and_unchanged_or_not_at_all() {
        let (owner, other) = (Identity::from_bytes(&[7; 32]), Identity::from_bytes(&[8; 32]));
        let sealed = seal(&owner.public(), b"job 1", b"swordfish").unwrap();
        assert_eq!(owner.unseal(b"job 1", &sealed).as_deref(), Some(&b"swordfish"[..]));
        assert_eq!(other.unseal(b"job 1", &sealed), None);
        assert_eq!(owner.unseal(b"job 2", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            // The topmost bit of a point is not looked at.
            if at != HEAD - 1 {
                assert_eq!(owner.unseal(b"job 1", &changed), None, "byte {at}");
            }
        }
        assert_eq!(owner.unseal(b"job 1", &sealed[..20]), None);
        assert_ne!(seal(&owner.public(), b"job 1", b"swordfish").unwrap(), sealed, "drawn anew each time");
    }
}
