//! What a machine must be, besides large enough.

use std::collections::BTreeSet;

use minicbor::{CborLen, Decode, Encode};

use super::{JobError, at_most, not_empty};
use crate::machine::{Labels, MAX_LABELS};
use crate::text::{Architecture, Name, System};

/// Organisations that a job may list.
pub const MAX_ORGANISATIONS: usize = 64;

/// What a machine must be; never without any requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Requires {
    /// The instruction set.
    #[n(0)]
    pub architecture: Option<Architecture>,
    /// The operating system.
    #[n(1)]
    pub system: Option<System>,
    /// Labels with just these values.
    #[cbor(n(2), decode_with = "crate::machine::decode_labels", skip_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Machines of these organisations only; of any, if none is listed.
    #[cbor(n(3), skip_if = "BTreeSet::is_empty")]
    pub organisations: BTreeSet<Name>,
}

impl Requires {
    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        *self == Requires::default()
    }

    pub(crate) fn check(&self) -> Result<(), JobError> {
        not_empty("requires", usize::from(!self.is_empty()))?;
        at_most("labels", self.labels.len(), MAX_LABELS, "labels")?;
        at_most("within", self.organisations.len(), MAX_ORGANISATIONS, "organisations")
    }
}

/// CBOR of requirements that several owners share.
pub(crate) mod shared {
    use std::sync::Arc;

    use minicbor::decode::{self, Decoder};
    use minicbor::encode::{self, Encoder, Write};
    use minicbor::{CborLen, Decode, Encode};

    use super::Requires;

    type Shared = Option<Arc<Requires>>;

    pub(crate) fn encode<C, W: Write>(
        shared: &Shared,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        shared.as_deref().encode(e, ctx)
    }

    pub(crate) fn decode<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Shared, decode::Error> {
        let at = d.position();
        let Some(requires) = Option::<Requires>::decode(d, ctx)? else { return Ok(None) };
        requires.check().map_err(|error| decode::Error::custom(error).at(at))?;
        Ok(Some(Arc::new(requires)))
    }

    pub(crate) fn nil() -> Option<Shared> {
        Some(None)
    }

    pub(crate) fn is_nil(shared: &Shared) -> bool {
        shared.is_none()
    }

    pub(crate) fn cbor_len<C>(shared: &Shared, ctx: &mut C) -> usize {
        shared.as_deref().cbor_len(ctx)
    }
}
