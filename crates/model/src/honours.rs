//! Honesty of the job description: a field that a grid's recipe cannot honour is refused by its name.

use std::fmt;

use crate::job::{Job, Mode, Requires};
use crate::resources::Resources;
use crate::units::{Size, Thousandths};

macro_rules! fields {
    ($($field:ident, $name:literal, $meaning:literal;)*) => {
        /// Everything that a job may ask for and need not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field {
            $(#[doc = concat!("`", $name, "`: ", $meaning, ".")] $field,)*
        }

        impl Field {
            /// Every field, in the order of the enum.
            pub const ALL: &[Field] = &[$(Field::$field,)*];

            /// The field's name in a job file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// What a job that sets it asks for.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Field::$field => $meaning,)*
                }
            }
        }
    };
}

fields! {
    Nodes, "nodes", "several nodes that start together";
    Cores, "cores", "more or less than one core";
    Memory, "memory", "memory of its own";
    Disk, "disk", "disk of its own";
    Gpus, "gpus", "GPUs";
    Resources, "resources", "resources by name";
    Limit, "time", "a hard limit of its own";
    Estimate, "estimate", "a plan by its estimate";
    Deadline, "deadline", "an end by a given time";
    Begin, "begin", "a start not before a given time";
    Criterion, "optimise", "the best placement in the user's own terms";
    Constraint, "where", "nodes that an expression admits";
    Architecture, "architecture", "nodes of one architecture";
    System, "system", "nodes of one operating system";
    Labels, "labels", "nodes with given labels";
    Within, "within", "nodes of given organisations";
    Array, "array", "a run for each index";
    After, "after", "a start after other jobs";
    Retry, "retry", "further attempts when it fails";
    Rerun, "mode = \"rerun\"", "another attempt when a node is lost";
    AtMostOnce, "mode = \"at-most-once\"", "never a second attempt";
    Priority, "priority", "a place before or after the user's other jobs";
    Environment, "environment", "environment variables";
    Inputs, "in", "files brought along";
    Outputs, "out", "files taken back";
    Secrets, "secrets", "what nobody but its tasks is told";
    Name, "name", "a name for people";
    User, "user", "a user";
    Organisation, "organisation", "an organisation to ask on behalf of";
}

/// A set of fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FieldSet(u32);

/// The fields that a recipe cannot honour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recipe `{recipe}` cannot honour {}: leave {} out, or ask a grid whose recipe can", Listed(*.fields), if .fields.len() == 1 { "it" } else { "them" })]
pub struct Unhonoured {
    /// The recipe.
    pub recipe: Box<str>,
    /// What it cannot do; never empty.
    pub fields: FieldSet,
}

/// Refuses a job that sets a field outside `honoured`, and names every such field.
pub fn refuse_unhonoured(job: &Job, recipe: &str, honoured: FieldSet) -> Result<(), Unhonoured> {
    let fields = job.fields_set().minus(honoured);
    if fields.is_empty() { Ok(()) } else { Err(Unhonoured { recipe: recipe.into(), fields }) }
}

impl FieldSet {
    /// No field.
    pub const NONE: FieldSet = FieldSet(0);
    /// Every field.
    pub const ALL: FieldSet = FieldSet::of(Field::ALL);

    /// The set of these fields.
    pub const fn of(fields: &[Field]) -> FieldSet {
        let mut set = FieldSet::NONE;
        let mut n = 0;
        while n < fields.len() {
            set = set.with(fields[n]);
            n += 1;
        }
        set
    }

    /// The set and one more field.
    pub const fn with(self, field: Field) -> FieldSet {
        FieldSet(self.0 | 1 << field as u32)
    }

    /// The set without those of another.
    pub const fn minus(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 & !other.0)
    }

    /// The fields of either set.
    pub const fn or(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 | other.0)
    }

    /// Whether the field is in the set.
    pub const fn contains(self, field: Field) -> bool {
        self.0 & 1 << field as u32 != 0
    }

    /// Whether there is no field in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many fields there are.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The fields, in the order of the enum.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL.iter().copied().filter(move |field| self.contains(*field))
    }
}

impl Job {
    /// The fields that this job sets.
    pub fn fields_set(&self) -> FieldSet {
        // Taken apart without `..`: a new field does not compile until it is told apart here.
        let Job {
            work: _,
            nodes,
            resources,
            limit,
            estimate,
            deadline,
            begin,
            criterion,
            constraint,
            requires,
            array,
            after,
            retry,
            mode,
            priority,
            environment,
            files,
            name,
            user,
            organisation,
            secrets,
        } = self;
        let Resources { cores, memory, disk, gpus, named } = resources;
        let none = Requires::default();
        let Requires { architecture, system, labels, organisations } = requires.as_deref().unwrap_or(&none);
        let (inputs, outputs) = files
            .as_ref()
            .map_or((false, false), |files| (!files.inputs.is_empty(), !files.outputs.is_empty()));
        let (rerun, at_most_once) = match mode {
            None => (false, false),
            Some(Mode::Rerun) => (true, false),
            Some(Mode::AtMostOnce) => (false, true),
        };
        let is_set = |field| match field {
            Field::Nodes => nodes.get() > 1,
            Field::Cores => *cores != Thousandths::ONE,
            Field::Memory => *memory != Size::ZERO,
            Field::Disk => *disk != Size::ZERO,
            Field::Gpus => *gpus != Thousandths::ZERO,
            Field::Resources => named.is_some(),
            Field::Limit => limit.is_some(),
            Field::Estimate => estimate.is_some(),
            Field::Deadline => deadline.is_some(),
            Field::Begin => begin.is_some(),
            Field::Criterion => criterion.is_some(),
            Field::Constraint => constraint.is_some(),
            Field::Architecture => architecture.is_some(),
            Field::System => system.is_some(),
            Field::Labels => !labels.is_empty(),
            Field::Within => !organisations.is_empty(),
            Field::Array => array.is_some(),
            Field::After => after.is_some(),
            Field::Retry => retry.is_some(),
            Field::Rerun => rerun,
            Field::AtMostOnce => at_most_once,
            Field::Priority => priority.is_some(),
            Field::Environment => environment.is_some(),
            Field::Inputs => inputs,
            Field::Outputs => outputs,
            Field::Secrets => secrets.is_some(),
            Field::Name => name.is_some(),
            Field::User => user.is_some(),
            Field::Organisation => organisation.is_some(),
        };
        let set = Field::ALL.iter().filter(|field| is_set(**field));
        set.fold(FieldSet::NONE, |set, field| set.with(*field))
    }
}

/// A set of fields as a sentence lists them.
struct Listed(FieldSet);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.0.len().saturating_sub(1);
        for (n, field) in (0..).zip(self.0.iter()) {
            f.write_str(match n {
                0 => "",
                n if n == last => " and ",
                _ => ", ",
            })?;
            write!(f, "`{field}` ({})", field.meaning())?;
        }
        Ok(())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::samples::{job, set};

    #[test]
    fn a_plain_job_sets_nothing_and_each_field_shows_as_itself() {
        assert_eq!(Job::command(["true"]).fields_set(), FieldSet::NONE);
        for &field in Field::ALL {
            for pick in 0..4 {
                let mut job = Job::command(["true"]);
                set(&mut job, field, pick);
                assert_eq!(job.fields_set(), FieldSet::of(&[field]), "{field}");
            }
        }
    }

    #[test]
    fn fields_are_told_apart_by_name_and_by_bit() {
        let names: BTreeSet<_> = Field::ALL.iter().map(|field| field.name()).collect();
        assert_eq!(names.len(), Field::ALL.len());
        assert_eq!(FieldSet::ALL.len() as usize, Field::ALL.len());
    }

    #[test]
    fn a_field_has_the_name_that_job_files_give_it() {
        for &field in Field::ALL {
            let mut job = Job::command(["true"]);
            set(&mut job, field, 1);
            let text = toml::to_string(&job).unwrap();
            let name = field.name();
            let key = text.lines().any(|line| {
                line == name || line.starts_with(&format!("{name} = ")) || line == format!("[{name}]")
            });
            assert!(key, "{name} in\n{text}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        let mut job = Job::command(["true"]);
        set(&mut job, Field::Nodes, 0);
        set(&mut job, Field::Deadline, 0);
        let honoured = FieldSet::of(&[Field::Nodes]);
        assert_eq!(
            refuse_unhonoured(&job, "aria", honoured).unwrap_err().to_string(),
            "recipe `aria` cannot honour `deadline` (an end by a given time): leave it out, or ask a grid whose \
             recipe can"
        );
        assert_eq!(
            refuse_unhonoured(&job, "aria", FieldSet::NONE).unwrap_err().to_string(),
            "recipe `aria` cannot honour `nodes` (several nodes that start together) and `deadline` (an end by a \
             given time): leave them out, or ask a grid whose recipe can"
        );
    }

    proptest! {
        #[test]
        fn a_job_is_taken_if_and_only_if_all_it_sets_is_honoured(job in job(), mask in any::<u32>()) {
            let chosen = Field::ALL.iter().copied().filter(|field| mask >> *field as u32 & 1 == 1);
            let honoured = FieldSet::of(&chosen.collect::<Vec<_>>());
            let all_honoured = job.fields_set().iter().all(|field| honoured.contains(field));
            prop_assert_eq!(refuse_unhonoured(&job, "x", honoured).is_ok(), all_honoured);
            prop_assert!(refuse_unhonoured(&job, "x", honoured.or(job.fields_set())).is_ok());
        }
    }
}
