//! For which grid a job was signed, and when; and that somebody has signed it, shown without the job.
//!
//! ```text
//! content = hash(job, nonce)      digest = hash(content, signer, origin)      id = its first 16 bytes
//! ```
//!
//! So who knows the content's hash can show whose a job is to somebody who knows its id and nothing else.

use minicbor::{CborLen, Decode, Encode};

use super::{Nonce, PublicKey, encoded};
use crate::id::JobId;
use crate::job::Job;
use crate::time::Time;

const CONTENT_CONTEXT: &str = "shoal 2026-11-15 job content v2";
const DIGEST_CONTEXT: &str = "shoal 2026-11-15 job envelope v2";

/// For which grid a job was signed, and when: nobody runs it elsewhere, or long after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Origin {
    /// The key of the grid.
    #[n(0)]
    pub grid: PublicKey,
    /// When its user has signed it.
    #[n(1)]
    pub made: Time,
}

/// Shows whose a job is to who knows its id.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Authorship {
    /// The hash of what is asked, and of the nonce.
    #[cbor(n(0), with = "minicbor::bytes")]
    content: [u8; 32],
    /// Who has signed it.
    #[n(1)]
    signer: PublicKey,
    /// For which grid, and when.
    #[n(2)]
    origin: Origin,
    /// Of a job of an array: which.
    #[n(3)]
    index: Option<u32>,
}

impl Authorship {
    pub(super) fn new(job: &Job, nonce: Nonce, signer: PublicKey, origin: Origin) -> Authorship {
        let content = blake3::derive_key(CONTENT_CONTEXT, &encoded((job, nonce)));
        Authorship { content, signer, origin, index: None }
    }

    /// The same for a job of the array.
    pub fn of_index(self, index: Option<u32>) -> Authorship {
        Authorship { index, ..self }
    }

    /// What the signer has signed.
    pub(super) fn digest(&self) -> [u8; 32] {
        digest(&self.content, Some(self.signer), self.origin)
    }

    /// Who has signed the job with this id; nobody, if this is about another.
    pub fn signer_of(&self, job: JobId) -> Option<PublicKey> {
        let signed = super::first_half(self.digest());
        let id = self.index.map_or(signed, |index| signed.of_index(index));
        (id == job).then_some(self.signer)
    }
}

/// What is signed of a job for one grid.
pub(super) fn of_job(job: &Job, nonce: Nonce, signer: Option<PublicKey>, origin: Origin) -> [u8; 32] {
    digest(&blake3::derive_key(CONTENT_CONTEXT, &encoded((job, nonce))), signer, origin)
}

fn digest(content: &[u8; 32], signer: Option<PublicKey>, origin: Origin) -> [u8; 32] {
    let content = minicbor::bytes::ByteArray::from(*content);
    blake3::derive_key(DIGEST_CONTEXT, &encoded((content, signer, origin)))
}

#[cfg(test)]
mod tests {
    use super::super::{Envelope, Signature};
    use super::*;

    fn made_for(grid: u8, secs: u64) -> Envelope {
        let origin = Origin { grid: PublicKey([grid; 32]), made: Time::from_secs(secs) };
        Envelope::new(Job::command(["true"]), Nonce([7; 16])).unwrap().made_for(origin)
    }

    fn sealed(envelope: Envelope, key: u8) -> Envelope {
        envelope.sealed(PublicKey([key; 32]), |_| Signature([0; 64]))
    }

    #[test]
    fn grid_and_date_are_part_of_what_is_signed() {
        let plain = Envelope::new(Job::command(["true"]), Nonce([7; 16])).unwrap();
        let all = [plain, made_for(1, 5), made_for(2, 5), made_for(1, 6)];
        let digests: std::collections::BTreeSet<_> = all.iter().map(Envelope::digest).collect();
        assert_eq!(digests.len(), 4);
        for envelope in all.map(|envelope| sealed(envelope, 3)) {
            let read = Envelope::from_bytes(&envelope.to_bytes()).unwrap();
            assert_eq!((read.origin(), read.id()), (envelope.origin(), envelope.id()));
        }
    }

    #[test]
    fn encoding_and_id_of_a_job_for_a_grid_stay_what_they_were() {
        // If this fails, stored jobs change their ids.
        assert_eq!(sealed(made_for(1, 5), 3).id().to_string(), SEALED_ID);
    }

    #[test]
    fn authorship_shows_whose_a_job_is_and_says_nothing_of_others() {
        let envelope = sealed(made_for(1, 5), 3);
        let shown = envelope.authorship().unwrap();
        assert_eq!(shown.signer_of(envelope.id()), Some(PublicKey([3; 32])));
        assert_eq!(shown.signer_of(sealed(made_for(1, 5), 4).id()), None);
        let element = envelope.id().of_index(7);
        assert_eq!(shown.signer_of(element), None);
        assert_eq!(shown.clone().of_index(Some(7)).signer_of(element), Some(PublicKey([3; 32])));
        // Who names another signer shows another job.
        let other = Authorship { signer: PublicKey([4; 32]), ..shown };
        assert_eq!(other.signer_of(envelope.id()), None);
        assert_eq!(made_for(1, 5).authorship(), None, "nobody has signed it");
        let old = Envelope::new(Job::command(["true"]), Nonce([7; 16])).unwrap();
        assert_eq!(sealed(old, 3).authorship(), None);
    }

    const SEALED_ID: &str = "ca4d00746afc2ff62eec520cb6e1ddba";
}
