//! Whether a machine will do for a job, once, for all recipes: and if not, why, in plain words.
//!
//! About what a machine *is* and whom its owner does not serve; whether and when it is free is its calendar's to say,
//! and what the job's own expression admits is judged where expressions are ([`crate::constraint`]).

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};

use crate::amount::Amount;
use crate::job::{Job, MAX_NODES_PER_JOB, MAX_TIME_LIMIT, Requires};
use crate::machine::Machine;
use crate::resources::{self, Resources};
use crate::text::{Architecture, Expression, Line, Name, System};
use crate::time::{Span, Time};
use crate::units::{About, Size, SpanText, Thousandths};

/// What of a job matters for its placement: small, and cheap to copy into messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Needs {
    /// How many nodes start together; at most [`MAX_NODES_PER_JOB`].
    #[cbor(n(0), decode_with = "decode_nodes")]
    pub nodes: NonZeroU32,
    /// What it takes of each.
    #[cbor(n(1), decode_with = "resources::decode_checked")]
    pub resources: Resources,
    /// How long it may take: its hard limit; more than nothing and at most [`MAX_TIME_LIMIT`].
    #[cbor(n(2), decode_with = "decode_limit")]
    pub limit: Span,
    /// How long it is thought to take on the baseline machine.
    #[n(3)]
    pub estimate: Option<Span>,
    /// When it may start at the earliest.
    #[n(4)]
    pub begin: Option<Time>,
    /// When it must have ended.
    #[n(5)]
    pub deadline: Option<Time>,
    /// On whose behalf it runs.
    #[n(6)]
    pub organisation: Option<Name>,
    /// What each machine must be; shared between copies.
    #[cbor(n(7), with = "crate::job::requires::shared", has_nil)]
    pub requires: Option<Arc<Requires>>,
    /// What the user says in expressions, if anything.
    #[n(8)]
    pub expressions: Option<Box<Expressions>>,
}

/// What the user says in expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Expressions {
    /// What is best, where several placements would do.
    #[n(0)]
    pub criterion: Option<Expression>,
    /// Which nodes will do, as an expression over their attributes.
    #[n(1)]
    pub constraint: Option<Expression>,
}

/// One reason why a machine will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch<'a> {
    /// Too few of something counted: `cores`, `gpus`, or a named resource.
    Count {
        /// What there is too little of.
        resource: &'a str,
        /// What the job needs.
        needs: Thousandths,
        /// What the machine has.
        has: Thousandths,
    },
    /// Too little `memory` or `disk`.
    Size {
        /// What there is too little of.
        resource: &'a str,
        /// What the job needs.
        needs: Size,
        /// What the machine has.
        has: Size,
    },
    /// Another instruction set.
    Architecture {
        /// What the job needs.
        needs: &'a Architecture,
        /// What the machine is.
        has: &'a Architecture,
    },
    /// Another operating system.
    System {
        /// What the job needs.
        needs: &'a System,
        /// What the machine runs.
        has: &'a System,
    },
    /// A label that is missing or says something else.
    Label {
        /// The label.
        label: &'a Name,
        /// What the job needs.
        needs: &'a Line,
        /// What the machine says.
        has: Option<&'a Line>,
    },
    /// A machine of an organisation that the job does not list.
    Organisation {
        /// What the job lists.
        needs: &'a BTreeSet<Name>,
        /// Whose the machine is.
        has: Option<&'a Name>,
    },
    /// A job on behalf of an organisation that the machine's owner does not serve.
    Refused {
        /// On whose behalf it runs.
        organisation: &'a Name,
    },
}

impl Needs {
    /// What a job needs, with the grid's hard limit where it has none of its own.
    pub fn of(job: &Job, limit_default: Span) -> Needs {
        let expressions =
            Expressions { criterion: job.criterion.clone(), constraint: job.constraint.clone() };
        Needs {
            nodes: job.nodes,
            resources: job.resources.clone(),
            limit: job.limit.unwrap_or(limit_default),
            estimate: job.estimate,
            begin: job.begin,
            deadline: job.deadline,
            organisation: job.organisation.clone(),
            requires: job.requires.clone(),
            expressions: (expressions != Expressions::default()).then(|| Box::new(expressions)),
        }
    }

    /// Needs of one node and nothing else, for tests and simulations.
    pub fn new(resources: Resources, limit: Span) -> Needs {
        Needs {
            nodes: NonZeroU32::MIN,
            resources,
            limit,
            estimate: None,
            begin: None,
            deadline: None,
            organisation: None,
            requires: None,
            expressions: None,
        }
    }

    /// What is best, if the user says so.
    pub fn criterion(&self) -> Option<&Expression> {
        self.expressions.as_ref()?.criterion.as_ref()
    }

    /// Which nodes will do, if the user says so by an expression.
    pub fn constraint(&self) -> Option<&Expression> {
        self.expressions.as_ref()?.constraint.as_ref()
    }
}

/// Whether one machine will do for one node of a job; allocates nothing.
pub fn matches(needs: &Needs, machine: &Machine) -> bool {
    // Most machines that a search comes by lack something that is counted: no reasons are put together for that.
    needs.resources.fits_in(&machine.capacity)
        && needs.requires.as_deref().is_none_or(|requires| unlike(requires, machine).next().is_none())
        && refused(needs, machine).is_none()
}

/// Every reason why a machine will not do, as they are asked for; none if it will.
pub fn mismatches<'a>(needs: &'a Needs, machine: &'a Machine) -> impl Iterator<Item = Mismatch<'a>> {
    lacking(&needs.resources, &machine.capacity)
        .chain(needs.requires.as_deref().into_iter().flat_map(|requires| unlike(requires, machine)))
        .chain(refused(needs, machine))
}

/// The machine that lacks least, of those of which none will do; none if one does, or if there are none.
pub fn nearest<'a>(needs: &Needs, machines: impl Iterator<Item = &'a Machine>) -> Option<&'a Machine> {
    let mut nearest: Option<(usize, &Machine)> = None;
    for machine in machines {
        let lacks = mismatches(needs, machine).count();
        if lacks == 0 {
            return None;
        }
        if nearest.is_none_or(|(least, _)| lacks < least) {
            nearest = Some((lacks, machine));
        }
    }
    nearest.map(|(_, machine)| machine)
}

/// Whether the machine's owner serves whom the job runs for.
fn refused<'a>(needs: &'a Needs, machine: &'a Machine) -> Option<Mismatch<'a>> {
    let organisation = needs.organisation.as_ref()?;
    machine.refuses.contains(organisation).then_some(Mismatch::Refused { organisation })
}

/// What there is too little of.
fn lacking<'a>(needs: &'a Resources, has: &'a Resources) -> impl Iterator<Item = Mismatch<'a>> {
    // Taken apart without `..`: a new resource does not compile until it is compared here.
    let Resources { cores, memory, disk, gpus, named: _ } = needs;
    let count = |resource, needs, has| (needs > has).then_some(Mismatch::Count { resource, needs, has });
    let size = |resource, needs, has| (needs > has).then_some(Mismatch::Size { resource, needs, has });
    let named =
        needs.named().filter_map(move |(name, needs)| count(name.as_str(), needs, has.get(name.as_str())));
    let known = [
        count("cores", *cores, has.cores),
        size("memory", *memory, has.memory),
        size("disk", *disk, has.disk),
        count("gpus", *gpus, has.gpus),
    ];
    known.into_iter().flatten().chain(named)
}

/// What is otherwise than required.
fn unlike<'a>(requires: &'a Requires, machine: &'a Machine) -> impl Iterator<Item = Mismatch<'a>> {
    // Taken apart without `..`: a new requirement does not compile until it is compared here.
    let Requires { architecture, system, labels, organisations } = requires;
    let architecture = architecture
        .as_ref()
        .filter(|needs| **needs != machine.architecture)
        .map(|needs| Mismatch::Architecture { needs, has: &machine.architecture });
    let system = system
        .as_ref()
        .filter(|needs| **needs != machine.system)
        .map(|needs| Mismatch::System { needs, has: &machine.system });
    let labels = labels.iter().filter_map(|(label, needs)| {
        let has = machine.labels.get(label);
        (has != Some(needs)).then_some(Mismatch::Label { label, needs, has })
    });
    let has = machine.organisation.as_ref();
    let served = organisations.is_empty() || has.is_some_and(|has| organisations.contains(has));
    let organisation = (!served).then_some(Mismatch::Organisation { needs: organisations, has });
    architecture.into_iter().chain(system).chain(labels).chain(organisation)
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Count { resource, needs, has } => write!(f, "needs {needs} {resource}, has {has}"),
            Mismatch::Size { resource, needs, has } => {
                write!(f, "needs {} of {resource}, has {}", About::Up(*needs), About::Down(*has))
            }
            Mismatch::Architecture { needs, has } => write!(f, "needs architecture {needs}, is {has}"),
            Mismatch::System { needs, has } => write!(f, "needs system {needs}, runs {has}"),
            Mismatch::Label { label, needs, has: Some(has) } => {
                write!(f, "needs label {label} = \"{needs}\", has \"{has}\"")
            }
            Mismatch::Label { label, needs, has: None } => {
                write!(f, "needs label {label} = \"{needs}\", has no such label")
            }
            Mismatch::Refused { organisation } => write!(f, "its owner does not serve {organisation}"),
            Mismatch::Organisation { needs, has } => {
                f.write_str("needs a machine of ")?;
                for (n, name) in needs.iter().enumerate() {
                    write!(f, "{}{name}", if n > 0 { " or " } else { "" })?;
                }
                match has {
                    Some(has) => write!(f, ", belongs to {has}"),
                    None => f.write_str(", belongs to no organisation"),
                }
            }
        }
    }
}

fn decode_limit<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Span, decode::Error> {
    let at = d.position();
    match Span::decode(d, ctx)? {
        limit if limit == Span::ZERO || limit > MAX_TIME_LIMIT => {
            Err(decode::Error::message(format!("a hard limit of {}", SpanText(limit))).at(at))
        }
        limit => Ok(limit),
    }
}

fn decode_nodes<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<NonZeroU32, decode::Error> {
    let at = d.position();
    match NonZeroU32::decode(d, ctx)? {
        nodes if nodes.get() > MAX_NODES_PER_JOB => {
            Err(decode::Error::message(format!("{nodes} nodes, at most {MAX_NODES_PER_JOB}")).at(at))
        }
        nodes => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{job, labels, machine, needs, resources};

    fn reasons(needs: &Needs, machine: &Machine) -> Vec<String> {
        mismatches(needs, machine).map(|mismatch| mismatch.to_string()).collect()
    }

    #[test]
    fn nearest_machine_lacks_least_and_there_is_none_where_one_will_do() {
        let of = |cores, gpus| Resources { gpus: Thousandths::whole(gpus), ..Resources::cores(cores) };
        let machine = |cores, gpus| Machine::with_capacity(of(cores, gpus));
        let needs = Needs::new(of(4, 1), Span::from_secs(1));
        let (neither, cores, both) = (machine(2, 0), machine(8, 0), machine(4, 1));
        assert_eq!(nearest(&needs, [&neither, &cores].into_iter()), Some(&cores));
        assert_eq!(nearest(&needs, [&neither, &both, &cores].into_iter()), None);
        assert_eq!(nearest(&needs, [].into_iter()), None);
    }

    #[test]
    fn needs_stay_small() {
        assert!(size_of::<Needs>() <= 128, "{}", size_of::<Needs>());
    }

    #[test]
    fn every_reason_is_given_in_plain_words() {
        let requires = Requires {
            architecture: "aarch64".parse().ok(),
            system: "macos".parse().ok(),
            labels: [
                ("gpu".parse().unwrap(), "A100".parse().unwrap()),
                ("zone".parse().unwrap(), "roof".parse().unwrap()),
            ]
            .into(),
            organisations: ["lab-a".parse().unwrap(), "lab-b".parse().unwrap()].into(),
        };
        let resources = Resources::cores(16)
            .with_memory(Size::from_gib(64))
            .with_disk(Size::from_mib(1))
            .with_gpus(Thousandths::new(500))
            .with_named("fpga".parse().unwrap(), Thousandths::whole(2));
        let mut needs = Needs::new(resources, Span::from_hours(1));
        needs.requires = Some(Arc::new(requires));
        let mut machine = Machine::with_capacity(Resources::cores(8).with_memory(Size::from_gib(48)));
        machine.labels.insert("zone".parse().unwrap(), "basement".parse().unwrap());

        assert_eq!(
            reasons(&needs, &machine),
            [
                "needs 16 cores, has 8",
                "needs 64 GiB of memory, has 48 GiB",
                "needs 1 MiB of disk, has 0 B",
                "needs 0.5 gpus, has 0",
                "needs 2 fpga, has 0",
                "needs architecture aarch64, is x86_64",
                "needs system macos, runs linux",
                "needs label gpu = \"A100\", has no such label",
                "needs label zone = \"roof\", has \"basement\"",
                "needs a machine of lab-a or lab-b, belongs to no organisation",
            ]
        );
        machine.organisation = "lab-c".parse().ok();
        assert!(reasons(&needs, &machine).last().unwrap().ends_with("belongs to lab-c"));
    }

    #[test]
    fn a_missing_byte_is_seen_in_the_reason() {
        let needs = Needs::new(Resources::NONE.with_memory(Size::from_gib(64)), Span::from_hours(1));
        let almost = Size::from_bytes(Size::from_gib(64).as_bytes() - 1);
        let machine = Machine::with_capacity(Resources::NONE.with_memory(almost));
        assert_eq!(reasons(&needs, &machine), ["needs 64 GiB of memory, has 63.99 GiB"]);
    }

    #[test]
    fn the_limit_of_the_grid_stands_in_for_a_missing_one() {
        let job = Job::command(["true"]);
        assert_eq!(Needs::of(&job, Span::from_hours(2)).limit, Span::from_hours(2));
        let job = Job { limit: Some(Span::from_secs(1)), ..job };
        assert_eq!(Needs::of(&job, Span::from_hours(2)).limit, Span::from_secs(1));
    }

    proptest! {
        #[test]
        fn a_bigger_machine_never_loses(
            needs in needs(),
            machine in machine(),
            more in resources(),
            more_labels in labels(),
        ) {
            let mut bigger = machine.clone();
            bigger.capacity = machine.capacity.plus(&more);
            for (label, value) in more_labels {
                bigger.labels.entry(label).or_insert(value);
            }
            let before = reasons(&needs, &machine).len();
            let after = reasons(&needs, &bigger).len();
            prop_assert!(after <= before);
            prop_assert!(matches(&needs, &bigger) || !matches(&needs, &machine));
        }

        #[test]
        fn a_machine_made_for_the_needs_will_do(needs in needs(), machine in machine()) {
            let mut made = machine.clone();
            made.capacity = machine.capacity.most(&needs.resources);
            if let Some(requires) = &needs.requires {
                made.architecture = requires.architecture.clone().unwrap_or(made.architecture);
                made.system = requires.system.clone().unwrap_or(made.system);
                made.labels.extend(requires.labels.clone());
                made.organisation = requires.organisations.first().cloned().or(made.organisation);
            }
            made.refuses.clear();
            prop_assert!(matches(&needs, &made));
            prop_assert_eq!(matches(&needs, &machine), reasons(&needs, &machine).is_empty());
        }

        #[test]
        fn resources_match_if_and_only_if_they_fit(a in resources(), b in resources()) {
            let needs = Needs::new(a.clone(), Span::from_hours(1));
            prop_assert_eq!(matches(&needs, &Machine::with_capacity(b.clone())), a.fits_in(&b));
        }

        #[test]
        fn needs_read_back_what_they_write(job in job()) {
            let needs = Needs::of(&job, Span::from_hours(1));
            let bytes = minicbor::to_vec(&needs).unwrap();
            prop_assert_eq!(minicbor::len(&needs), bytes.len());
            prop_assert_eq!(minicbor::decode::<Needs>(&bytes).unwrap(), needs);
        }

        #[test]
        fn arbitrary_bytes_never_make_needs_out_of_bounds(
            job in job(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = minicbor::to_vec(Needs::of(&job, Span::from_hours(1))).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(needs) = minicbor::decode::<Needs>(&bytes) {
                prop_assert!(needs.nodes.get() <= MAX_NODES_PER_JOB);
                prop_assert_eq!(needs.resources.check(), Ok(()));
                prop_assert!(needs.limit > Span::ZERO && needs.limit <= MAX_TIME_LIMIT);
            }
        }
    }
}
