//! Random values for the property tests of this crate.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::digest::Digest;
use crate::envelope::{Envelope, Nonce, Origin, Pass, PublicKey, Signature};
use crate::honours::Field;
use crate::id::JobId;
use crate::job::{After, Array, Content, Ended, IndexRange, Job, Kind, Mode, Requires, Staged};
use crate::machine::{Labels, Machine, Speed};
use crate::matching::Needs;
use crate::resources::Resources;
use crate::text::{Architecture, Name, System};
use crate::time::{Span, Time};
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
    let refuses = btree_set(name(), 0..2);
    (resources(), 1..4_000_u32, architecture(), system(), option::of(name()), labels(), refuses).prop_map(
        |(capacity, speed, architecture, system, organisation, labels, refuses)| Machine {
            capacity,
            speed: Speed::try_from(Thousandths::new(speed)).unwrap(),
            architecture,
            system,
            organisation,
            labels,
            refuses,
        },
    )
}

/// Rising ranges with indexes below 400.
pub(crate) fn array() -> impl Strategy<Value = Array> {
    let range = (1..40_u32, 0..40_u32, 1..5_u32);
    (vec(range, 1..5), 0..3_u32).prop_map(|(ranges, at_once)| {
        let mut next = 0;
        let ranges = ranges.into_iter().map(|(gap, length, step)| {
            let first = next + gap;
            next = first + length;
            IndexRange::new(first, next, NonZeroU32::new(step).unwrap()).unwrap()
        });
        Array::new(ranges.collect(), NonZeroU32::new(at_once)).unwrap()
    })
}

/// A job that sets any of the fields to any of four values.
pub(crate) fn job() -> impl Strategy<Value = Job> {
    let work = prop_oneof![
        vec("[a-z -]{1,8}", 1..4).prop_map(Job::command),
        "#!/bin/sh\n[a-z \n]{1,20}".prop_map(Job::script),
    ];
    let picks = vec(option::of(0..4_u32), Field::ALL.len());
    (work, picks).prop_map(|(mut job, picks)| {
        for (field, pick) in Field::ALL.iter().zip(picks) {
            if let Some(pick) = pick {
                set(&mut job, *field, pick);
            }
        }
        if job.mode() == Mode::AtMostOnce {
            job.retry = None;
        }
        job
    })
}

pub(crate) fn envelope() -> impl Strategy<Value = Envelope> {
    let pass = option::of(vec(any::<u8>(), 1..40));
    let seal = option::of(any::<([u8; 32], u8)>());
    let origin = option::of(any::<([u8; 32], u64)>());
    (job(), any::<[u8; 16]>(), seal, pass, origin).prop_map(|(job, nonce, seal, pass, origin)| {
        let mut envelope = Envelope::new(job, Nonce(nonce)).unwrap();
        if let Some((grid, made)) = origin {
            envelope = envelope.made_for(Origin { grid: PublicKey(grid), made: Time::from_micros(made) });
        }
        if let Some(pass) = pass.and_then(Pass::new) {
            envelope = envelope.with_pass(pass);
        }
        match seal {
            Some((signer, byte)) => envelope.sealed(PublicKey(signer), |_| Signature([byte; 64])),
            None => envelope,
        }
    })
}

pub(crate) fn needs() -> impl Strategy<Value = Needs> {
    (job(), resources())
        .prop_map(|(job, resources)| Needs::of(&Job { resources, ..job }, Span::from_hours(1)))
}

/// Sets one field and no other, to a value of its own for each pick.
pub(crate) fn set(job: &mut Job, field: Field, pick: u32) {
    let count = Thousandths::new(250 * (pick + 1));
    let size = Size::from_gib(u64::from(pick) + 1);
    let name: Name = ["lab-a", "lab-b", "fpga", "zone"][pick as usize % 4].parse().unwrap();
    let require = |job: &mut Job, change: &dyn Fn(&mut Requires)| {
        change(Arc::make_mut(job.requires.get_or_insert_default()));
    };
    let file = || {
        let staged = Staged::new(name.as_str(), "/elsewhere").unwrap();
        let kind = [Kind::File, Kind::Program, Kind::Folder, Kind::File][pick as usize % 4];
        let content = Content { kind, size: u64::from(pick), digest: Digest([pick as u8; 32]) };
        if pick.is_multiple_of(2) { staged.with(content) } else { staged }
    };
    match field {
        Field::Nodes => job.nodes = NonZeroU32::new(pick + 2).unwrap(),
        Field::Cores => job.resources.cores = Thousandths::whole(pick + 2),
        Field::Memory => job.resources.memory = size,
        Field::Disk => job.resources.disk = size,
        Field::Gpus => job.resources.gpus = count,
        Field::Resources => job.resources = job.resources.clone().with_named(name, count),
        Field::Limit => job.limit = Some(Span::from_hours(u64::from(pick) + 5)),
        Field::Estimate => job.estimate = Some(Span::from_mins(u64::from(pick) + 5)),
        Field::Deadline => job.deadline = Some(Time::from_secs(u64::from(pick) + 2_000_000_000)),
        Field::Begin => job.begin = Some(Time::from_micros(u64::from(pick) + 1_000_001)),
        Field::Criterion => {
            job.criterion = Some(format!("closest subject to wait <= {}h", pick + 1).parse().unwrap())
        }
        Field::Constraint => job.constraint = Some(format!("node.speed > {pick}").parse().unwrap()),
        Field::Architecture => require(job, &|requires| {
            requires.architecture = ["x86_64", "aarch64"][pick as usize % 2].parse().ok();
        }),
        Field::System => require(job, &|requires| {
            requires.system = ["linux", "macos"][pick as usize % 2].parse().ok();
        }),
        Field::Labels => require(job, &|requires| {
            requires.labels.insert(name.clone(), "basement".parse().unwrap());
        }),
        Field::Within => require(job, &|requires| {
            requires.organisations.insert(name.clone());
        }),
        Field::Array => job.array = format!("1-{}%5", pick + 1).parse().ok().map(Box::new),
        Field::After => {
            let ended = [Ended::Ok, Ended::Any][pick as usize % 2];
            job.after = Some(Box::new(After([(JobId::from_number(u64::from(pick / 2)), ended)].into())));
        }
        Field::Retry => job.retry = NonZeroU16::new(pick as u16 + 1),
        // The mode is all there is to say: the pick shows in nothing else.
        Field::Rerun => job.mode = Some(Mode::Rerun),
        Field::AtMostOnce => job.mode = Some(Mode::AtMostOnce),
        Field::Priority => job.priority = Some(pick as i16 - 1),
        Field::Environment => {
            job.environment = Some(Box::new([("THREADS".to_owned(), pick.to_string())].into()));
        }
        Field::Inputs => job.files.get_or_insert_default().inputs = vec![file()],
        Field::Outputs => {
            job.files.get_or_insert_default().outputs = vec![format!("{name}/*").parse().unwrap()];
        }
        Field::Secrets => job.secrets = Some(Box::new(vec![name])),
        Field::Name => job.name = Some(format!("run {pick}").parse().unwrap()),
        Field::User => job.user = Some(name),
        Field::Organisation => job.organisation = Some(name),
    }
}
