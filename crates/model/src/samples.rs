//! Random values for the property tests of this crate.

use proptest::collection::btree_map;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::machine::{Labels, Machine, Speed};
use crate::resources::Resources;
use crate::text::{Architecture, Name, System};
use crate::units::{Size, Thousandths};

/// Few names, so that two samples often share one.
pub(crate) fn name() -> impl Strategy<Value = Name> {
    select(vec!["fpga", "lab-a", "lab-b", "licence", "zone"]).prop_map(|name| name.parse().unwrap())
}

pub(crate) fn architecture() -> impl Strategy<Value = Architecture> {
    select(vec!["x86_64", "aarch64"]).prop_map(|name| name.parse().unwrap())
}

pub(crate) fn system() -> impl Strategy<Value = System> {
    select(vec!["linux", "macos"]).prop_map(|name| name.parse().unwrap())
}

pub(crate) fn labels() -> impl Strategy<Value = Labels> {
    let value = select(vec!["1", "basement", "NVIDIA A100 80 GB"]).prop_map(|value| value.parse().unwrap());
    btree_map(name(), value, 0..3)
}

/// Small enough that one often fits in another.
pub(crate) fn resources() -> impl Strategy<Value = Resources> {
    let count = || (0..8_u32, select(vec![1_000, 250])).prop_map(|(n, unit)| Thousandths::new(n * unit));
    let size = || (0..8_u64).prop_map(Size::from_gib);
    (count(), size(), size(), count(), btree_map(name(), count(), 0..3)).prop_map(
        |(cores, memory, disk, gpus, named)| {
            let counted = Resources { cores, memory, disk, gpus, ..Resources::NONE };
            named.into_iter().fold(counted, |sum, (name, count)| sum.with_named(name, count))
        },
    )
}

pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    (resources(), 1..4_000_u32, architecture(), system(), option::of(name()), labels()).prop_map(
        |(capacity, speed, architecture, system, organisation, labels)| Machine {
            capacity,
            speed: Speed::try_from(Thousandths::new(speed)).unwrap(),
            architecture,
            system,
            organisation,
            labels,
        },
    )
}
