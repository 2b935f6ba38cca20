//! Signatures that were found to be right lately: certificates and passes are shown again with every job, and to check one
//! takes longer than most of what is done for a job.
//!
//! That a signature is right never changes, so that it can be noted for the whole process; until when a certificate holds,
//! and what was revoked, is looked at each time by who asks.

use std::sync::{Mutex, PoisonError};

use shoal_model::envelope::{PublicKey, Signature};

/// How many are noted, at most: a later one takes the place of an earlier one.
const KNOWN_MAX: usize = 1 << 10;
const CONTEXT: &str = "shoal 2026-11-19 signature that is known to be right v1";

/// Stands for key, digest and signature.
type Mark = [u8; 32];

/// Each in the place that its first bytes name.
static KNOWN: Mutex<Vec<Mark>> = Mutex::new(Vec::new());

/// Whether a signature is known to be right, or is found to be right now.
pub(super) fn or_check(
    key: &PublicKey,
    digest: &[u8; 32],
    signature: &Signature,
    check: impl FnOnce() -> bool,
) -> bool {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&key.0).update(digest).update(&signature.0);
    let mark: Mark = *hasher.finalize().as_bytes();
    let place = usize::from(u16::from_le_bytes([mark[0], mark[1]])) % KNOWN_MAX;
    // Whoever panicked meanwhile has left whole marks: each is one assignment.
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known().get(place) == Some(&mark) {
        return true;
    }
    if !check() {
        return false;
    }
    let mut known = known();
    if known.is_empty() {
        known.resize(KNOWN_MAX, Mark::default());
    }
    known[place] = mark;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_checked_once_and_what_is_wrong_each_time() {
        let (key, digest) = (PublicKey([3; 32]), [4; 32]);
        let check = |signature: u8, right: bool| {
            let mut checked = false;
            let found = or_check(&key, &digest, &Signature([signature; 64]), || {
                checked = true;
                right
            });
            assert_eq!(found, right);
            checked
        };
        assert!(check(1, true), "it is not known yet");
        assert!(!check(1, true), "it is known");
        assert!(check(2, false) && check(2, false), "what is wrong is never noted");
        assert!(check(2, true), "nor is another taken for it");
    }
}
