//! A value that many hold and nobody changes: cheap to clone, written by content.

use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{CborLen, Encode, Encoder, Write};

/// A value that many hold and nobody changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }

    /// Whether the two are one value, not only equal ones.
    pub fn is(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<C, T: Encode<C>> Encode<C> for Shared<T> {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.0.as_ref().encode(encoder, ctx)
    }
}

impl<'b, C, T: Decode<'b, C>> Decode<'b, C> for Shared<T> {
    fn decode(decoder: &mut Decoder<'b>, ctx: &mut C) -> Result<Shared<T>, minicbor::decode::Error> {
        T::decode(decoder, ctx).map(Shared::new)
    }
}

impl<C, T: CborLen<C>> CborLen<C> for Shared<T> {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        self.0.as_ref().cbor_len(ctx)
    }
}
