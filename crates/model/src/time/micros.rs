//! Microseconds in eight bytes, of which one value is none: then what may be absent takes no more room.
//!
//! Very many jobs wait, each with several times that are mostly not known. The value that is given up is the largest but one:
//! who says it means the end of time, and gets it.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;

use minicbor::decode::{self, Decode, Decoder};
use minicbor::encode::{self, CborLen, Encode, Encoder, Write};
use serde::{Deserialize, Serialize};

/// A number of microseconds; what is written is the number.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub(super) struct Micros(NonZeroU64);

/// The number that there is not.
const NONE: u64 = u64::MAX - 1;

const _: () = assert!(size_of::<Option<Micros>>() == 8);

impl Micros {
    #[inline]
    pub const fn new(micros: u64) -> Micros {
        match NonZeroU64::new(micros ^ NONE) {
            Some(kept) => Micros(kept),
            None => Micros::new(u64::MAX),
        }
    }

    #[inline]
    pub const fn get(self) -> u64 {
        self.0.get() ^ NONE
    }
}

impl Default for Micros {
    fn default() -> Micros {
        Micros::new(0)
    }
}

impl PartialOrd for Micros {
    #[inline]
    fn partial_cmp(&self, other: &Micros) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Micros {
    #[inline]
    fn cmp(&self, other: &Micros) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl Hash for Micros {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl From<u64> for Micros {
    fn from(micros: u64) -> Micros {
        Micros::new(micros)
    }
}

impl From<Micros> for u64 {
    fn from(micros: Micros) -> u64 {
        micros.get()
    }
}

impl<C> Encode<C> for Micros {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), encode::Error<W::Error>> {
        self.get().encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Micros {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Micros, decode::Error> {
        u64::decode(d, ctx).map(Micros::new)
    }
}

impl<C> CborLen<C> for Micros {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.get().cbor_len(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_are_the_numbers_that_they_are_written_as_in_their_order() {
        let numbers = [0, 1, 2, 1 << 40, u64::MAX / 2, u64::MAX - 2, u64::MAX];
        for (place, number) in numbers.into_iter().enumerate() {
            let micros = Micros::new(number);
            assert_eq!(micros.get(), number);
            let bytes = minicbor::to_vec(micros).unwrap();
            assert_eq!(bytes, minicbor::to_vec(number).unwrap());
            assert_eq!(bytes.len(), minicbor::len(micros));
            assert!(minicbor::decode::<Micros>(&bytes).unwrap() == micros);
            assert_eq!(serde_json::to_string(&micros).unwrap(), number.to_string());
            for (other, &than) in numbers.iter().enumerate() {
                assert_eq!(micros.cmp(&Micros::new(than)), place.cmp(&other));
            }
        }
        assert_eq!(Micros::new(NONE).get(), u64::MAX, "the one that there is not");
    }
}
