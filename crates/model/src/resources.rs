//! What jobs use up and machines have: cores, memory, disk, GPUs and whatever else has a name and a count.

use std::collections::BTreeMap;
use std::fmt;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::text::Name;
use crate::units::{MAX_COUNT, MAX_SIZE, Size, Thousandths};

/// Named resources of one machine or job, at most.
pub const MAX_NAMED_RESOURCES: usize = 16;

/// A vector of consumables; 32 bytes, and nothing on the heap unless something is named.
///
/// As an [`Amount`] it wraps; whoever adds what came from outside takes the `checked_` ones.
#[derive(Clone, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(try_from = "ResourcesText", into = "ResourcesText")]
pub struct Resources {
    /// Processor cores.
    #[n(0)]
    pub cores: Thousandths,
    /// Main memory.
    #[n(1)]
    pub memory: Size,
    /// Room for files while the job runs.
    #[n(2)]
    pub disk: Size,
    /// GPUs; a fraction is a share of one.
    #[n(3)]
    pub gpus: Thousandths,
    /// Everything else; `None` rather than empty, so that equal contents are equal.
    #[n(4)]
    pub(crate) named: Option<Box<Named>>,
}

/// Named resources: never empty, never with a zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
#[cbor(transparent)]
pub(crate) struct Named(#[n(0)] BTreeMap<Name, Thousandths>);

/// What is wrong with a vector of resources.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourcesError {
    /// More than a machine can have.
    #[error("`{resource}` is more than any machine has: at most {most}")]
    TooLarge {
        /// Which one.
        resource: Box<str>,
        /// The bound.
        most: Box<str>,
    },
    /// More names than allowed.
    #[error("{count} named resources, at most {MAX_NAMED_RESOURCES}")]
    TooMany {
        /// How many there are.
        count: usize,
    },
}

impl Resources {
    /// Nothing.
    pub const NONE: Resources = Resources {
        cores: Thousandths::ZERO,
        memory: Size::ZERO,
        disk: Size::ZERO,
        gpus: Thousandths::ZERO,
        named: None,
    };

    /// So many whole cores and nothing else.
    pub const fn cores(count: u32) -> Resources {
        Resources { cores: Thousandths::whole(count), ..Resources::NONE }
    }

    /// The same with this much memory.
    pub fn with_memory(self, memory: Size) -> Resources {
        Resources { memory, ..self }
    }

    /// The same with this much disk.
    pub fn with_disk(self, disk: Size) -> Resources {
        Resources { disk, ..self }
    }

    /// The same with so many GPUs.
    pub fn with_gpus(self, gpus: Thousandths) -> Resources {
        Resources { gpus, ..self }
    }

    /// The same with so much of a named resource; none of it takes the name away.
    pub fn with_named(self, name: Name, count: Thousandths) -> Resources {
        let mut named = self.named.map_or_else(BTreeMap::new, |named| named.0);
        named.insert(name, count);
        Resources { named: Named::new(named), ..self }
    }

    /// How much there is of a named resource.
    pub fn get(&self, name: &str) -> Thousandths {
        self.named.as_ref().and_then(|named| named.0.get(name).copied()).unwrap_or_default()
    }

    /// The named resources in the order of their names.
    pub fn named(&self) -> impl Iterator<Item = (&Name, Thousandths)> {
        self.named.iter().flat_map(|named| named.0.iter().map(|(name, count)| (name, *count)))
    }

    /// Whether there is nothing.
    pub fn is_none(&self) -> bool {
        *self == Resources::NONE
    }

    /// Whether every part is one that a machine can have.
    pub fn check(&self) -> Result<(), ResourcesError> {
        let too_large = |resource: &str, most: &dyn fmt::Display| ResourcesError::TooLarge {
            resource: resource.into(),
            most: most.to_string().into(),
        };
        let counts = [("cores", self.cores), ("gpus", self.gpus)];
        let named = self.named().map(|(name, count)| (name.as_str(), count));
        if let Some((name, _)) = counts.into_iter().chain(named).find(|(_, count)| *count > MAX_COUNT) {
            return Err(too_large(name, &MAX_COUNT));
        }
        let sizes = [("memory", self.memory), ("disk", self.disk)];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size > MAX_SIZE) {
            return Err(too_large(name, &MAX_SIZE));
        }
        match self.named().count() {
            count if count > MAX_NAMED_RESOURCES => Err(ResourcesError::TooMany { count }),
            _ => Ok(()),
        }
    }

    /// The sum, unless a part overflows.
    pub fn checked_plus(&self, other: &Resources) -> Option<Resources> {
        self.try_zip(other, u32::checked_add, u64::checked_add)
    }

    /// The difference, unless a part of `other` is larger.
    pub fn checked_minus(&self, other: &Resources) -> Option<Resources> {
        self.try_zip(other, u32::checked_sub, u64::checked_sub)
    }

    /// So many times this, unless a part overflows: what a gang takes in all.
    pub fn checked_times(&self, times: u32) -> Option<Resources> {
        self.try_zip(self, |a, _| a.checked_mul(times), |a, _| a.checked_mul(u64::from(times)))
    }

    #[inline]
    fn zip(
        &self,
        other: &Resources,
        count: impl Fn(u32, u32) -> u32,
        size: impl Fn(u64, u64) -> u64,
    ) -> Resources {
        let zipped = self.try_zip(other, |a, b| Some(count(a, b)), |a, b| Some(size(a, b)));
        zipped.expect("an operation on every pair of parts that always has a result")
    }

    #[inline]
    fn try_zip(
        &self,
        other: &Resources,
        count: impl Fn(u32, u32) -> Option<u32>,
        size: impl Fn(u64, u64) -> Option<u64>,
    ) -> Option<Resources> {
        let count = |a: Thousandths, b: Thousandths| count(a.get(), b.get()).map(Thousandths::new);
        let size = |a: Size, b: Size| size(a.as_bytes(), b.as_bytes()).map(Size::from_bytes);
        let named = match (&self.named, &other.named) {
            (None, None) => None,
            _ => self.try_zip_named(other, count)?,
        };
        Some(Resources {
            cores: count(self.cores, other.cores)?,
            memory: size(self.memory, other.memory)?,
            disk: size(self.disk, other.disk)?,
            gpus: count(self.gpus, other.gpus)?,
            named,
        })
    }

    /// Out of line: few have anything named, and sums without it are what calendars are made of.
    #[cold]
    fn try_zip_named(
        &self,
        other: &Resources,
        count: impl Fn(Thousandths, Thousandths) -> Option<Thousandths>,
    ) -> Option<Option<Box<Named>>> {
        let names = self.named().chain(other.named()).map(|(name, _)| name);
        let both =
            names.map(|name| Some((name.clone(), count(self.get(name.as_str()), other.get(name.as_str()))?)));
        Some(Named::new(both.collect::<Option<BTreeMap<_, _>>>()?))
    }
}

impl Amount for Resources {
    fn plus(&self, other: &Resources) -> Resources {
        self.zip(other, u32::wrapping_add, u64::wrapping_add)
    }

    fn minus(&self, other: &Resources) -> Resources {
        self.zip(other, u32::wrapping_sub, u64::wrapping_sub)
    }

    fn fits_in(&self, room: &Resources) -> bool {
        self.cores <= room.cores
            && self.memory <= room.memory
            && self.disk <= room.disk
            && self.gpus <= room.gpus
            && self.named().all(|(name, count)| count <= room.get(name.as_str()))
    }

    fn most(&self, other: &Resources) -> Resources {
        self.zip(
            other,
            |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
            |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        )
    }

    fn least(&self, other: &Resources) -> Resources {
        self.zip(
            other,
            |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
            |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        )
    }

    fn in_range(&self) -> bool {
        self.check().is_ok()
    }
}

/// For people: `2 cores, 8 GiB, 100 GiB of disk, 1 gpu, 2 fpga`; memory is the size without a name.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let plural = |count| if count == Thousandths::ONE { "" } else { "s" };
        if self.cores != Thousandths::ZERO {
            parts.push(format!("{} core{}", self.cores, plural(self.cores)));
        }
        if self.memory != Size::ZERO {
            parts.push(self.memory.to_string());
        }
        if self.disk != Size::ZERO {
            parts.push(format!("{} of disk", self.disk));
        }
        if self.gpus != Thousandths::ZERO {
            parts.push(format!("{} gpu{}", self.gpus, plural(self.gpus)));
        }
        parts.extend(self.named().map(|(name, count)| format!("{count} {name}")));
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({self})")
    }
}

impl Named {
    /// Boxed without its zeros, if anything is left.
    pub(crate) fn new(mut named: BTreeMap<Name, Thousandths>) -> Option<Box<Named>> {
        named.retain(|_, count| *count != Thousandths::ZERO);
        if named.is_empty() { None } else { Some(Box::new(Named(named))) }
    }
}

impl<'b, C> Decode<'b, C> for Named {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Named, decode::Error> {
        let at = d.position();
        let named = BTreeMap::<Name, Thousandths>::decode(d, ctx)?;
        if named.is_empty() || named.values().any(|count| *count == Thousandths::ZERO) {
            return Err(decode::Error::message("a named resource is missing or zero").at(at));
        }
        if named.len() > MAX_NAMED_RESOURCES {
            return Err(decode::Error::custom(ResourcesError::TooMany { count: named.len() }).at(at));
        }
        Ok(Named(named))
    }
}

/// Decodes resources that a job may ask for or a machine may have.
pub(crate) fn decode_checked<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Resources, decode::Error> {
    let at = d.position();
    let resources = Resources::decode(d, ctx)?;
    resources.check().map_err(|error| decode::Error::custom(error).at(at))?;
    Ok(resources)
}

/// Resources as files and the HTTP API write them.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ResourcesText {
    #[serde(skip_serializing_if = "is_default")]
    cores: Thousandths,
    #[serde(skip_serializing_if = "is_default")]
    memory: Size,
    #[serde(skip_serializing_if = "is_default")]
    disk: Size,
    #[serde(skip_serializing_if = "is_default")]
    gpus: Thousandths,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    named: BTreeMap<Name, Thousandths>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TryFrom<ResourcesText> for Resources {
    type Error = ResourcesError;

    fn try_from(text: ResourcesText) -> Result<Resources, ResourcesError> {
        let ResourcesText { cores, memory, disk, gpus, named } = text;
        let resources = Resources { cores, memory, disk, gpus, named: Named::new(named) };
        resources.check()?;
        Ok(resources)
    }
}

impl From<Resources> for ResourcesText {
    fn from(resources: Resources) -> ResourcesText {
        let Resources { cores, memory, disk, gpus, named } = resources;
        ResourcesText { cores, memory, disk, gpus, named: named.map(|named| named.0).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::resources;

    #[test]
    fn resources_stay_small() {
        assert_eq!(size_of::<Resources>(), 32);
    }

    #[test]
    fn resources_print_for_people() {
        let two = Resources::cores(2).with_memory(Size::from_gib(8));
        assert_eq!(two.to_string(), "2 cores, 8 GiB");
        let all = Resources::cores(1)
            .with_disk(Size::from_gib(100))
            .with_gpus(Thousandths::new(250))
            .with_named("fpga".parse().unwrap(), Thousandths::whole(2));
        assert_eq!(all.to_string(), "1 core, 100 GiB of disk, 0.25 gpus, 2 fpga");
        assert_eq!(Resources::NONE.to_string(), "nothing");
    }

    #[test]
    fn names_with_nothing_behind_them_do_not_count() {
        let fpga: Name = "fpga".parse().unwrap();
        let none = Resources::cores(1).with_named(fpga.clone(), Thousandths::ZERO);
        assert_eq!(none, Resources::cores(1));
        let one = Resources::NONE.with_named(fpga, Thousandths::ONE);
        assert!(one.minus(&one).is_none());
        assert!(!one.fits_in(&Resources::cores(64)));
    }

    #[test]
    fn absurd_resources_are_refused_by_name() {
        let error = Resources { memory: Size::from_bytes(u64::MAX), ..Resources::NONE }.check().unwrap_err();
        assert_eq!(error.to_string(), "`memory` is more than any machine has: at most 8 PiB");
        let many = (0..=MAX_NAMED_RESOURCES).fold(Resources::NONE, |sum, n| {
            sum.with_named(format!("r{n}").parse().unwrap(), Thousandths::ONE)
        });
        assert_eq!(many.check(), Err(ResourcesError::TooMany { count: 17 }));
        assert!(minicbor::decode::<Resources>(&minicbor::to_vec(&many).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn what_is_added_can_be_taken_away(a in resources(), b in resources()) {
            prop_assert_eq!(&a.plus(&b).minus(&b), &a);
            prop_assert_eq!(&a.minus(&b).plus(&b), &a);
            prop_assert_eq!(a.plus(&b), b.plus(&a));
            prop_assert_eq!(a.checked_plus(&b), Some(a.plus(&b)));
            prop_assert_eq!(a.checked_minus(&b).is_some(), b.fits_in(&a));
            prop_assert_eq!(a.checked_times(2), Some(a.plus(&a)));
        }

        #[test]
        fn the_least_fits_in_both_and_both_fit_in_the_most(a in resources(), b in resources()) {
            prop_assert!(a.least(&b).fits_in(&a) && a.least(&b).fits_in(&b));
            prop_assert!(a.fits_in(&a.most(&b)) && b.fits_in(&a.most(&b)));
            prop_assert_eq!(a.most(&b).plus(&a.least(&b)), a.plus(&b));
            prop_assert_eq!(a.fits_in(&b), a.least(&b) == a);
        }

        #[test]
        fn resources_read_back_what_they_write(a in resources()) {
            prop_assert_eq!(minicbor::decode::<Resources>(&minicbor::to_vec(&a).unwrap()).unwrap(), a.clone());
            prop_assert_eq!(minicbor::len(&a), minicbor::to_vec(&a).unwrap().len());
            prop_assert_eq!(toml::from_str::<Resources>(&toml::to_string(&a).unwrap()).unwrap(), a);
        }
    }
}
