//! What a node is: its capacity, and what its owner says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::job::MAX_ORGANISATIONS;
use crate::resources::{self, Resources};
use crate::text::{Architecture, Line, Name, System};
use crate::time::Span;
use crate::units::Thousandths;

/// Labels of a machine, or required by a job, at most.
pub const MAX_LABELS: usize = 64;

/// Labels by name: `zone = "basement"`.
pub type Labels = BTreeMap<Name, Line>;

/// What a node offers; what of it is free, and when, is its calendar's to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// All that jobs can use up.
    #[cbor(n(0), decode_with = "resources::decode_checked")]
    pub capacity: Resources,
    /// How fast it works.
    #[n(1)]
    #[serde(default)]
    pub speed: Speed,
    /// Its processors' instruction set.
    #[n(2)]
    pub architecture: Architecture,
    /// Its operating system.
    #[n(3)]
    pub system: System,
    /// Whose it is, in a grid of several organisations.
    #[n(4)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<Name>,
    /// What its owner says of it.
    #[cbor(n(5), decode_with = "decode_labels", skip_if = "BTreeMap::is_empty")]
    #[serde(default, deserialize_with = "deserialize_labels", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// The organisations whose jobs its owner does not want here; at most [`MAX_ORGANISATIONS`].
    #[cbor(n(6), decode_with = "decode_refuses", skip_if = "BTreeSet::is_empty")]
    #[serde(default, deserialize_with = "deserialize_refuses", skip_serializing_if = "BTreeSet::is_empty")]
    pub refuses: BTreeSet<Name>,
}

/// How fast a machine works, in thousandths of the grid's baseline machine; never zero.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen, Serialize, Deserialize,
)]
#[cbor(transparent)]
#[serde(try_from = "Thousandths", into = "Thousandths")]
pub struct Speed(#[n(0)] NonZeroU32);

/// A speed of zero: nothing would ever end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a speed of 0: expected how fast the machine is beside the baseline, as in 1 or 1.25")]
pub struct SpeedIsZero;

impl Machine {
    /// A Linux machine on x86-64 of the baseline's speed with this capacity, for tests and simulations.
    pub fn with_capacity(capacity: Resources) -> Machine {
        Machine {
            capacity,
            speed: Speed::BASELINE,
            architecture: "x86_64".parse().expect("a known architecture"),
            system: "linux".parse().expect("a known system"),
            organisation: None,
            labels: Labels::new(),
            refuses: BTreeSet::new(),
        }
    }
}

impl Speed {
    /// The speed that estimates are made for.
    pub const BASELINE: Speed = Speed(NonZeroU32::new(1_000).expect("a thousand is not zero"));

    /// A speed in thousandths of the baseline.
    pub const fn new(thousandths: NonZeroU32) -> Speed {
        Speed(thousandths)
    }

    /// The speed in thousandths of the baseline.
    pub const fn thousandths(self) -> u32 {
        self.0.get()
    }

    /// How long work takes here that takes `span` on the baseline; rounded up, and never beyond [`Span::MAX`].
    pub fn time_for(self, span: Span) -> Span {
        let micros = (u128::from(span.as_micros()) * 1_000).div_ceil(u128::from(self.0.get()));
        Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl Default for Speed {
    fn default() -> Speed {
        Speed::BASELINE
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Thousandths::from(*self))
    }
}

impl fmt::Debug for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "×{self}")
    }
}

impl TryFrom<Thousandths> for Speed {
    type Error = SpeedIsZero;

    fn try_from(thousandths: Thousandths) -> Result<Speed, SpeedIsZero> {
        NonZeroU32::new(thousandths.get()).map(Speed).ok_or(SpeedIsZero)
    }
}

impl From<Speed> for Thousandths {
    fn from(speed: Speed) -> Thousandths {
        Thousandths::new(speed.thousandths())
    }
}

/// Decodes at most [`MAX_LABELS`] labels.
pub(crate) fn decode_labels<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Labels, decode::Error> {
    let at = d.position();
    let labels = Labels::decode(d, ctx)?;
    too_many(&labels).map_or(Ok(labels), |problem| Err(decode::Error::message(problem).at(at)))
}

fn deserialize_labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    let labels = Labels::deserialize(deserializer)?;
    too_many(&labels).map_or(Ok(labels), |problem| Err(de::Error::custom(problem)))
}

fn decode_refuses<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<BTreeSet<Name>, decode::Error> {
    let at = d.position();
    let names = BTreeSet::<Name>::decode(d, ctx)?;
    too_many_names(&names).map_or(Ok(names), |problem| Err(decode::Error::message(problem).at(at)))
}

fn deserialize_refuses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Name>, D::Error> {
    let names = BTreeSet::<Name>::deserialize(deserializer)?;
    too_many_names(&names).map_or(Ok(names), |problem| Err(de::Error::custom(problem)))
}

fn too_many_names(names: &BTreeSet<Name>) -> Option<String> {
    (names.len() > MAX_ORGANISATIONS)
        .then(|| format!("{} organisations, at most {MAX_ORGANISATIONS}", names.len()))
}

fn too_many(labels: &Labels) -> Option<String> {
    (labels.len() > MAX_LABELS).then(|| format!("{} labels, at most {MAX_LABELS}", labels.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::machine;

    #[test]
    fn a_machine_twice_as_fast_takes_half_the_time() {
        let twice = Speed::try_from(Thousandths::whole(2)).unwrap();
        assert_eq!(twice.time_for(Span::from_secs(9)), Span::from_millis(4_500));
        assert_eq!(Speed::BASELINE.time_for(Span::MAX), Span::MAX);
        assert_eq!(Speed::try_from(Thousandths::ZERO), Err(SpeedIsZero));
    }

    #[test]
    fn a_machine_with_an_unknown_key_is_refused_by_that_key() {
        let error = toml::from_str::<Machine>(
            "architecture = 'x86_64'\nsystem = 'linux'\nsped = 2\n[capacity]\ncores = 4\n",
        );
        assert!(error.unwrap_err().to_string().contains("unknown field `sped`"));
    }

    #[test]
    fn more_labels_than_allowed_are_refused_from_file_and_wire() {
        let mut machine = Machine::with_capacity(Resources::cores(4));
        machine.labels =
            (0..=MAX_LABELS).map(|n| (format!("l{n}").parse().unwrap(), "1".parse().unwrap())).collect();
        let error = toml::from_str::<Machine>(&toml::to_string(&machine).unwrap()).unwrap_err().to_string();
        assert!(error.contains("65 labels, at most 64"), "{error}");
        let error =
            minicbor::decode::<Machine>(&minicbor::to_vec(&machine).unwrap()).unwrap_err().to_string();
        assert!(error.contains("65 labels, at most 64"), "{error}");
    }

    proptest! {
        #[test]
        fn machines_read_back_what_they_write(machine in machine()) {
            let bytes = minicbor::to_vec(&machine).unwrap();
            prop_assert_eq!(minicbor::len(&machine), bytes.len());
            prop_assert_eq!(&minicbor::decode::<Machine>(&bytes).unwrap(), &machine);
            prop_assert_eq!(toml::from_str::<Machine>(&toml::to_string(&machine).unwrap()).unwrap(), machine);
        }
    }
}
