//! What all jobs of a user have in common, and in memory once: most of what an envelope takes would be copies of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{CborLen, Decode, Encode};

use super::PublicKey;
use crate::job::Job;
use crate::text::Name;

/// Bytes of a pass, at most.
pub const PASS_BYTES_MAX: usize = 2 << 10;

/// What shows who the signer is: bytes that travel beside what is signed. What they mean is for those to say who know
/// about keys; none is empty, and none is longer than [`PASS_BYTES_MAX`].
/// A clone is the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pass(Arc<[u8]>);

impl Pass {
    /// A pass of these bytes; none if there are none, or too many.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Option<Pass> {
        let bytes = bytes.into();
        (1..=PASS_BYTES_MAX).contains(&bytes.len()).then_some(Pass(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<C> Encode<C> for Pass {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Pass {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Pass, decode::Error> {
        let at = d.position();
        let too_long = || decode::Error::message("a pass that is empty or too long").at(at);
        Pass::new(d.bytes()?).ok_or_else(too_long)
    }
}

impl<C> CborLen<C> for Pass {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        minicbor::bytes::cbor_len(&*self.0, ctx)
    }
}

/// Who has signed a job, for which grid, and what shows who that is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub signer: Option<PublicKey>,
    pub grid: Option<PublicKey>,
    pub pass: Option<Pass>,
    /// As the job says; here to be shared with the next one.
    user: Option<Name>,
    organisation: Option<Name>,
}

/// How many each thread remembers, to recognise them when they come again.
const LATELY_MAX: usize = 8;

thread_local! {
    static LATELY: RefCell<VecDeque<Arc<Whose>>> = const { RefCell::new(VecDeque::new()) };
}

impl Whose {
    /// One of those made lately if it is the same, and then the job shares its names too; none if there is nothing to say.
    pub fn shared(
        signer: Option<PublicKey>,
        grid: Option<PublicKey>,
        pass: Option<Pass>,
        job: &mut Job,
    ) -> Option<Arc<Whose>> {
        if signer.is_none() && grid.is_none() && pass.is_none() {
            return None;
        }
        let whose =
            Whose { signer, grid, pass, user: job.user.clone(), organisation: job.organisation.clone() };
        LATELY.with_borrow_mut(|lately| {
            if let Some(known) = lately.iter().find(|known| ***known == whose) {
                (job.user, job.organisation) = (known.user.clone(), known.organisation.clone());
                return Some(Arc::clone(known));
            }
            let new = Arc::new(whose);
            lately.truncate(LATELY_MAX - 1);
            lately.push_front(Arc::clone(&new));
            Some(new)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Envelope, Nonce, Signature};
    use super::*;

    /// A job as it was read, with a pass and a user of these names.
    fn read(pass: u8, user: &str, nonce: u8) -> Envelope {
        let job = Job { user: Some(user.parse().unwrap()), ..Job::command(["true"]) };
        let envelope = Envelope::new(job, Nonce([nonce; 16])).unwrap();
        let sealed = envelope.sealed(PublicKey([1; 32]), |_| Signature([nonce; 64]));
        let sealed = sealed.with_pass(Pass::new(vec![pass; 300]).unwrap());
        let read = Envelope::from_bytes(&sealed.to_bytes()).unwrap();
        assert_eq!(read, sealed);
        read
    }

    #[test]
    fn jobs_of_one_user_share_what_is_the_same_and_are_not_mixed_up_with_others() {
        let pass = |envelope: &Envelope| envelope.pass().unwrap().as_bytes().as_ptr();
        let user = |envelope: &Envelope| envelope.job().user.as_ref().unwrap().as_str().as_ptr();
        let (one, again) = (read(1, "ann", 1), read(1, "ann", 2));
        assert_eq!((pass(&one), user(&one)), (pass(&again), user(&again)));
        assert_eq!(again.seal().unwrap().signature, Signature([2; 64]));
        let (bob, renewed) = (read(1, "bob", 3), read(2, "ann", 4));
        assert_eq!(bob.job().user.as_ref().unwrap().as_str(), "bob");
        assert_eq!(renewed.pass(), Pass::new(vec![2; 300]).as_ref());
    }

    #[test]
    fn however_many_are_read_few_are_remembered() {
        (10..100).for_each(|byte| drop(read(byte, "ann", 1)));
        assert!(LATELY.with_borrow(VecDeque::len) <= LATELY_MAX);
    }
}
