//! Envelopes that are read again: while a node's records are read, each is decoded once and is in memory once.
//!
//! A job's own record has its envelope, and so has what its hosts have promised, mostly the same node. They lie near each
//! other on disk, so that a short memory finds nearly all. What is read elsewhere is from anybody, and nothing of it is kept.

use std::cell::RefCell;

use minicbor::decode::{self, Decode, Decoder};
use minicbor::encode::{self, CborLen, Encode, Encoder, Write};
use shoal_model::Envelope;

use crate::shared::Shared;

/// Envelopes that are remembered, each in the place that its bytes say.
const PLACES: usize = 1_024;
/// Longer ones are decoded again.
const BYTES_MAX: usize = 4 << 10;

/// What was read lately.
struct Lately(Vec<Option<Known>>);

/// Bytes, and what they say.
struct Known {
    bytes: Box<[u8]>,
    envelope: Shared<Envelope>,
}

thread_local! {
    static LATELY: RefCell<Option<Lately>> = const { RefCell::new(None) };
}

/// Does something with a memory for envelopes, in this thread.
pub fn recalling<T>(act: impl FnOnce() -> T) -> T {
    /// Forgets, however it ends; what was remembered before is remembered again.
    struct Forget(Option<Lately>);
    impl Drop for Forget {
        fn drop(&mut self) {
            LATELY.set(self.0.take());
        }
    }
    let empty = Lately((0..PLACES).map(|_| None).collect());
    let _forget = Forget(LATELY.replace(Some(empty)));
    act()
}

pub(super) fn decode<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Shared<Envelope>, decode::Error> {
    if LATELY.with_borrow(Option::is_none) {
        return Shared::decode(d, ctx);
    }
    let start = d.position();
    d.skip()?;
    let bytes = &d.input()[start..d.position()];
    if bytes.len() > BYTES_MAX {
        d.set_position(start);
        return Shared::decode(d, ctx);
    }
    let place = place_of(bytes);
    let known = LATELY.with_borrow(|lately| {
        let known = lately.as_ref()?.0[place].as_ref()?;
        (*known.bytes == *bytes).then(|| known.envelope.clone())
    });
    if let Some(envelope) = known {
        return Ok(envelope);
    }
    d.set_position(start);
    let envelope: Shared<Envelope> = Shared::decode(d, ctx)?;
    LATELY.with_borrow_mut(|lately| {
        if let Some(lately) = lately {
            lately.0[place] = Some(Known { bytes: bytes.into(), envelope: envelope.clone() });
        }
    });
    Ok(envelope)
}

pub(super) fn encode<C, W: Write>(
    envelope: &Shared<Envelope>,
    e: &mut Encoder<W>,
    ctx: &mut C,
) -> Result<(), encode::Error<W::Error>> {
    envelope.encode(e, ctx)
}

pub(super) fn cbor_len<C>(envelope: &Shared<Envelope>, ctx: &mut C) -> usize {
    envelope.cbor_len(ctx)
}

/// Where an envelope of these bytes is remembered. Two that share a place only push each other out.
fn place_of(bytes: &[u8]) -> usize {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(ODD);
    let sum = words.iter().fold(0, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let sum = rest.iter().fold(sum, |sum, &byte| mix(sum, byte.into()));
    (sum >> 32) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use shoal_model::{Job, Nonce};

    use super::*;
    use crate::node::Brief;

    fn brief(number: u16) -> Brief {
        let mut nonce = Nonce([0; 16]);
        nonce.0[..2].copy_from_slice(&number.to_le_bytes());
        let envelope = Envelope::new(Job::command(["true"]), nonce).unwrap();
        Brief { envelope: Shared::new(envelope), nodes: Default::default(), index: None, riders: None }
    }

    fn read(brief: &Brief) -> Brief {
        let bytes = minicbor::to_vec(brief).unwrap();
        let read: Brief = minicbor::decode(&bytes).unwrap();
        assert_eq!(read, *brief);
        read
    }

    #[test]
    fn envelope_that_is_read_again_is_one_in_memory_while_records_are_read() {
        recalling(|| {
            let first: Vec<Brief> = (0..200).map(|number| read(&brief(number))).collect();
            let again = (0..200).map(|number| read(&brief(number)));
            let same =
                first.iter().zip(again).filter(|(one, other)| one.envelope.is(&other.envelope)).count();
            assert!(same > 150, "few have pushed others out: {same} of 200 were remembered");
        });
        assert!(!read(&brief(1)).envelope.is(&read(&brief(1)).envelope), "nothing is kept elsewhere");
    }

    #[test]
    fn very_many_push_each_other_out_and_are_read_all_the_same() {
        recalling(|| (0..3_000).chain(0..3_000).for_each(|number| drop(read(&brief(number)))));
    }

    #[test]
    fn what_is_no_envelope_is_refused_with_a_memory_too() {
        let mut bytes = minicbor::to_vec(brief(7)).unwrap();
        recalling(|| {
            assert!(minicbor::decode::<Brief>(&bytes).is_ok());
            let at = bytes.windows(4).position(|four| four == b"true").unwrap();
            bytes[at] = 0;
            assert!(minicbor::decode::<Brief>(&bytes).is_err(), "a zero byte that no program can be given");
            bytes.truncate(at);
            assert!(minicbor::decode::<Brief>(&bytes).is_err());
        });
    }
}
