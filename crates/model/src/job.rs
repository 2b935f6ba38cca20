//! What a user asks for: a job, with everything the envelope can carry.
//!
//! A `Job` is a draft: its fields are public, each a type that holds only sensible values, and
//! `Job { deadline: Some(…), ..Job::command(["make"]) }` writes one. What holds between fields, and the bounds on
//! their sizes, is [`Job::check`]'s to say; an [`Envelope`](crate::envelope::Envelope) holds checked jobs only.
//!
//! On the wire a job is a CBOR map by field number. A new field takes a new number and is an `Option`: then old
//! envelopes keep their bytes, and with them their ids.

mod after;
mod array;
mod file;
mod files;
pub(crate) mod requires;

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

pub use after::{After, Ended, MAX_DEPENDENCIES, ParseAfterError};
pub use array::{Array, ArrayError, IndexRange, MAX_ARRAY_INDEX, MAX_ARRAY_RANGES, MAX_ARRAY_TASKS};
pub use files::{
    Content, Files, Kind, MAX_FILES, MAX_PATH_BYTES, PathError, Pattern, Staged, TASK_FILES, check_inside,
};
pub use requires::{MAX_ORGANISATIONS, Requires};

use crate::constraint::Constraint;
use crate::criterion::Criterion;
use crate::expression::ExpressionError;
use crate::resources::{Resources, ResourcesError};
use crate::text::{Expression, Line, Name};
use crate::time::{Span, Time};
use crate::units::{MAX_TIME, SpanText, TimeText};

/// Nodes that one job may hold at once.
pub const MAX_NODES_PER_JOB: u32 = 100_000;
/// Arguments of one command, the program's name included.
pub const MAX_ARGUMENTS: usize = 4_096;
/// Bytes of all arguments together.
pub const MAX_ARGV_BYTES: usize = 64 << 10;
/// Bytes of a script.
pub const MAX_SCRIPT_BYTES: usize = 256 << 10;
/// Variables that a job may set.
pub const MAX_VARIABLES: usize = 1_024;
/// Bytes of all variables' names and values together.
pub const MAX_ENVIRONMENT_BYTES: usize = 64 << 10;
/// Secrets that a job may have.
pub const MAX_SECRETS: usize = 32;
/// The longest hard limit and estimate: a leap year.
pub const MAX_TIME_LIMIT: Span = Span::from_hours(366 * 24);
/// Further attempts after the first.
pub const MAX_RETRIES: u16 = 1_000;

/// How a machine says by a label that it has an image, and how a job asks for it: what comes before the image's name, and
/// what the label says.
pub const IMAGE: (&str, &str) = ("image.", "yes");

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen, Serialize, Deserialize)]
#[cbor(map)]
#[serde(try_from = "file::JobFile", into = "file::JobFile")]
pub struct Job {
    /// What to run, on each node.
    #[n(0)]
    pub work: Work,
    /// How many nodes start together.
    #[n(1)]
    pub nodes: NonZeroU32,
    /// What it takes of each node.
    #[n(2)]
    pub resources: Resources,
    /// The hard limit, at which it is stopped; the grid's default where there is none.
    #[n(3)]
    pub limit: Option<Span>,
    /// How long the user thinks it takes on the baseline machine.
    #[n(4)]
    pub estimate: Option<Span>,
    /// When it must have ended.
    #[n(5)]
    pub deadline: Option<Time>,
    /// When it may start at the earliest.
    #[n(6)]
    pub begin: Option<Time>,
    /// What is best, where several placements would do.
    #[n(7)]
    pub criterion: Option<Expression>,
    /// Which nodes will do, as an expression over their attributes.
    #[n(8)]
    pub constraint: Option<Expression>,
    /// Which nodes will do, in plain words; shared with the job's [`Needs`](crate::matching::Needs).
    #[cbor(n(9), with = "requires::shared", has_nil)]
    pub requires: Option<Arc<Requires>>,
    /// Run once for each of these indexes.
    #[n(10)]
    pub array: Option<Box<Array>>,
    /// Which jobs must have ended before.
    #[n(11)]
    pub after: Option<Box<After>>,
    /// How often to try again when it fails.
    #[n(12)]
    pub retry: Option<NonZeroU16>,
    /// What to do about an attempt that is lost; [`Mode::Rerun`] where the user does not say.
    #[n(13)]
    pub mode: Option<Mode>,
    /// Before or after the same user's other jobs: the larger first, 0 where the user does not say.
    #[n(14)]
    pub priority: Option<i16>,
    /// Environment variables to set.
    #[n(15)]
    pub environment: Option<Box<Environment>>,
    /// Files to bring and to take back.
    #[n(16)]
    pub files: Option<Box<Files>>,
    /// What the user calls it.
    #[n(17)]
    pub name: Option<Line>,
    /// Whose it is.
    #[n(18)]
    pub user: Option<Name>,
    /// On whose behalf the user asks.
    #[n(19)]
    pub organisation: Option<Name>,
    /// What its tasks are told and nobody else, by name; what each is, is not written here.
    #[n(20)]
    pub secrets: Option<Box<Vec<Name>>>,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Work {
    /// A program and its arguments, run without a shell.
    #[n(0)]
    Command(#[n(0)] Box<[String]>),
    /// The text of a script, run by the interpreter of its first line.
    #[n(1)]
    Script(#[n(0)] Box<str>),
}

/// What to do about an attempt whose node was lost.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Run it again; two attempts may overlap in a cut network, and one result counts.
    #[default]
    #[n(0)]
    Rerun,
    /// Never run it a second time, even if nobody knows whether the first came to an end.
    #[n(1)]
    AtMostOnce,
}

/// What is wrong with a job; each message names the field as job files do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// Neither a command nor a script, or both.
    #[error("expected one of `command` and `script`, found {0}")]
    Work(&'static str),
    /// Nothing to run.
    #[error("`{0}` is empty: say what to run")]
    NothingToRun(&'static str),
    /// A byte that no program can be given.
    #[error("`{field}` has a zero byte, which no program can be given")]
    ZeroByte {
        /// The field.
        field: &'static str,
    },
    /// More of something than allowed.
    #[error("`{field}` has {found} {unit}, at most {most}")]
    TooMuch {
        /// The field.
        field: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        most: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A list or table that is there and empty, which would be a second way to write the same job.
    #[error("`{0}` is empty: leave it out")]
    Empty(&'static str),
    /// A variable that no shell could set.
    #[error("`environment` has the variable `{0}`: expected a name without `=`")]
    Variable(Box<str>),
    /// A secret whose name cannot be that of a file.
    #[error("`secrets` has `{0}`: expected a name without `/` that does not begin with a dot")]
    Secret(Name),
    /// Resources beyond any machine.
    #[error(transparent)]
    Resources(#[from] ResourcesError),
    /// Resources of nothing at all.
    #[error("the job asks for no resource at all: give it some `cores`")]
    NoResources,
    /// A length of time that is zero or too long.
    #[error("`{field}` is {}: expected more than 0s and at most {}", SpanText(*.found), SpanText(MAX_TIME_LIMIT))]
    Span {
        /// The field.
        field: &'static str,
        /// Its value.
        found: Span,
    },
    /// A point in time too far away.
    #[error("`{field}` is after the year 9999")]
    Time {
        /// The field.
        field: &'static str,
    },
    /// An estimate that the limit cuts short.
    #[error("`estimate` ({}) is longer than `time` ({}), at which the job is stopped", SpanText(*.estimate), SpanText(*.limit))]
    EstimateBeyondLimit {
        /// The estimate.
        estimate: Span,
        /// The hard limit.
        limit: Span,
    },
    /// A deadline that no start can meet.
    #[error("`deadline` ({}) is not after `begin` ({})", TimeText(*.deadline), TimeText(*.begin))]
    DeadlineBeforeBegin {
        /// The deadline.
        deadline: Time,
        /// The earliest start.
        begin: Time,
    },
    /// Two wishes against each other.
    #[error("`retry` contradicts `mode = \"at-most-once\"`: leave one of them out")]
    RetryAtMostOnce,
    /// A criterion or a constraint that makes no sense.
    #[error("`{field}`: {error}")]
    Expression {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and where.
        error: ExpressionError,
    },
    /// Two files for one place.
    #[error("`{field}` names `{path}` twice")]
    SameFile {
        /// The field.
        field: &'static str,
        /// The place inside the job's folder.
        path: Box<str>,
    },
    /// An input where the task itself has something.
    #[error("`in` brings `{0}`, and every task has a file of that name of its own: give it another name")]
    TaskFile(Box<str>),
    /// An input below one that may be no folder.
    #[error("`in` brings both `{other}` and `{path}`, which lies in it")]
    WithinFile {
        /// The place inside the job's folder.
        path: Box<str>,
        /// What it lies in.
        other: Box<str>,
    },
}

impl Job {
    /// A job of one node and one core that runs a program with arguments.
    pub fn command<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Job {
        Job::new(Work::Command(argv.into_iter().map(Into::into).collect()))
    }

    /// A job of one node and one core that runs a script.
    pub fn script(text: impl Into<Box<str>>) -> Job {
        Job::new(Work::Script(text.into()))
    }

    fn new(work: Work) -> Job {
        Job {
            work,
            nodes: NonZeroU32::MIN,
            resources: Resources::cores(1),
            limit: None,
            estimate: None,
            deadline: None,
            begin: None,
            criterion: None,
            constraint: None,
            requires: None,
            array: None,
            after: None,
            retry: None,
            mode: None,
            priority: None,
            environment: None,
            files: None,
            name: None,
            user: None,
            organisation: None,
            secrets: None,
        }
    }

    /// The file system that it is to find instead of the machine's, if it asks for one: see [`IMAGE`].
    pub fn image(&self) -> Option<&str> {
        let labels = &self.requires.as_ref()?.labels;
        labels.keys().find_map(|label| label.as_str().strip_prefix(IMAGE.0))
    }

    /// What to do about a lost attempt.
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }

    /// Whether the job makes sense as a whole and stays within every bound.
    pub fn check(&self) -> Result<(), JobError> {
        self.work.check()?;
        at_most("nodes", self.nodes.get() as usize, MAX_NODES_PER_JOB as usize, "nodes")?;
        self.resources.check()?;
        if self.resources.is_none() {
            return Err(JobError::NoResources);
        }
        self.check_times()?;
        self.check_expressions()?;
        if let Some(requires) = &self.requires {
            requires.check()?;
        }
        if let Some(after) = &self.after {
            after.check()?;
        }
        if let Some(retry) = self.retry {
            at_most("retry", retry.get().into(), MAX_RETRIES.into(), "attempts")?;
            if self.mode() == Mode::AtMostOnce {
                return Err(JobError::RetryAtMostOnce);
            }
        }
        if let Some(environment) = &self.environment {
            check_environment(environment)?;
        }
        if let Some(secrets) = &self.secrets {
            check_secrets(secrets)?;
        }
        match &self.files {
            Some(files) => files.check(),
            None => Ok(()),
        }
    }

    fn check_expressions(&self) -> Result<(), JobError> {
        let wrong = |field| move |error| JobError::Expression { field, error };
        if let Some(criterion) = &self.criterion {
            criterion.as_str().parse::<Criterion>().map_err(wrong("optimise"))?;
        }
        if let Some(constraint) = &self.constraint {
            constraint.as_str().parse::<Constraint>().map_err(wrong("where"))?;
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), JobError> {
        for (field, span) in [("time", self.limit), ("estimate", self.estimate)] {
            if let Some(found) = span
                && (found == Span::ZERO || found > MAX_TIME_LIMIT)
            {
                return Err(JobError::Span { field, found });
            }
        }
        for (field, time) in [("deadline", self.deadline), ("begin", self.begin)] {
            if time.is_some_and(|time| time > MAX_TIME) {
                return Err(JobError::Time { field });
            }
        }
        if let (Some(estimate), Some(limit)) = (self.estimate, self.limit)
            && estimate > limit
        {
            return Err(JobError::EstimateBeyondLimit { estimate, limit });
        }
        if let (Some(deadline), Some(begin)) = (self.deadline, self.begin)
            && deadline <= begin
        {
            return Err(JobError::DeadlineBeforeBegin { deadline, begin });
        }
        Ok(())
    }
}

impl Work {
    fn check(&self) -> Result<(), JobError> {
        match self {
            Work::Command(argv) => {
                if argv.first().is_none_or(String::is_empty) {
                    return Err(JobError::NothingToRun("command"));
                }
                at_most("command", argv.len(), MAX_ARGUMENTS, "arguments")?;
                at_most("command", argv.iter().map(String::len).sum(), MAX_ARGV_BYTES, "bytes")?;
                no_zero_byte("command", argv.iter().map(String::as_str))
            }
            Work::Script(text) => {
                if text.trim().is_empty() {
                    return Err(JobError::NothingToRun("script"));
                }
                at_most("script", text.len(), MAX_SCRIPT_BYTES, "bytes")?;
                no_zero_byte("script", [&**text])
            }
        }
    }
}

fn check_environment(environment: &Environment) -> Result<(), JobError> {
    not_empty("environment", environment.len())?;
    at_most("environment", environment.len(), MAX_VARIABLES, "variables")?;
    let bytes = environment.iter().map(|(name, value)| name.len() + value.len()).sum();
    at_most("environment", bytes, MAX_ENVIRONMENT_BYTES, "bytes")?;
    if let Some(name) = environment.keys().find(|name| name.is_empty() || name.contains('=')) {
        return Err(JobError::Variable(crate::units::clipped(name)));
    }
    no_zero_byte("environment", environment.iter().flat_map(|(name, value)| [&**name, value]))
}

fn check_secrets(secrets: &[Name]) -> Result<(), JobError> {
    not_empty("secrets", secrets.len())?;
    at_most("secrets", secrets.len(), MAX_SECRETS, "secrets")?;
    for (at, name) in secrets.iter().enumerate() {
        // Each is the name of a file.
        if name.as_str().contains('/') || name.as_str().starts_with('.') {
            return Err(JobError::Secret(name.clone()));
        }
        if secrets[..at].contains(name) {
            return Err(JobError::SameFile { field: "secrets", path: name.as_str().into() });
        }
    }
    Ok(())
}

fn no_zero_byte<'a>(field: &'static str, texts: impl IntoIterator<Item = &'a str>) -> Result<(), JobError> {
    if texts.into_iter().any(|text| text.contains('\0')) { Err(JobError::ZeroByte { field }) } else { Ok(()) }
}

fn at_most(field: &'static str, found: usize, most: usize, unit: &'static str) -> Result<(), JobError> {
    if found > most { Err(JobError::TooMuch { field, found, most, unit }) } else { Ok(()) }
}

fn not_empty(field: &'static str, count: usize) -> Result<(), JobError> {
    if count == 0 { Err(JobError::Empty(field)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(job: Job) -> String {
        job.check().unwrap_err().to_string()
    }

    fn job() -> Job {
        Job::command(["true"])
    }

    #[test]
    fn a_job_stays_within_two_hundred_and_sixty_four_bytes() {
        assert!(size_of::<Job>() <= 264, "{}", size_of::<Job>());
    }

    #[test]
    fn a_plain_command_and_a_script_make_sense() {
        assert_eq!(job().check(), Ok(()));
        assert_eq!(Job::script("#!/bin/sh\necho hi\n").check(), Ok(()));
        assert_eq!(job().mode(), Mode::Rerun);
    }

    #[test]
    fn each_bound_is_named_where_it_is_passed() {
        let second = Span::from_secs(1);
        let cases = [
            (Job::command::<&str>([]), "`command` is empty: say what to run"),
            (Job::command([""]), "`command` is empty: say what to run"),
            (Job::script(" \n"), "`script` is empty: say what to run"),
            (Job::command(["a", "\0"]), "`command` has a zero byte, which no program can be given"),
            (Job::command(vec!["a"; 4_097]), "`command` has 4097 arguments, at most 4096"),
            (Job::command(["a".repeat(65_537)]), "`command` has 65537 bytes, at most 65536"),
            (Job::script("a".repeat(262_145)), "`script` has 262145 bytes, at most 262144"),
            (
                Job { nodes: NonZeroU32::new(100_001).unwrap(), ..job() },
                "`nodes` has 100001 nodes, at most 100000",
            ),
            (
                Job { resources: Resources::NONE, ..job() },
                "the job asks for no resource at all: give it some `cores`",
            ),
            (
                Job { limit: Some(Span::ZERO), ..job() },
                "`time` is 0s: expected more than 0s and at most 366d",
            ),
            (
                Job { estimate: Some(MAX_TIME_LIMIT + second), ..job() },
                "`estimate` is 366d1s: expected more than 0s and at most 366d",
            ),
            (
                Job { limit: Some(second), estimate: Some(second * 2), ..job() },
                "`estimate` (2s) is longer than `time` (1s), at which the job is stopped",
            ),
            (Job { begin: Some(Time::NEVER), ..job() }, "`begin` is after the year 9999"),
            (
                Job { begin: Some(Time::from_secs(2)), deadline: Some(Time::from_secs(1)), ..job() },
                "`deadline` (1970-01-01T00:00:01Z) is not after `begin` (1970-01-01T00:00:02Z)",
            ),
            (
                Job { retry: NonZeroU16::new(1), mode: Some(Mode::AtMostOnce), ..job() },
                "`retry` contradicts `mode = \"at-most-once\"`: leave one of them out",
            ),
            (Job { retry: NonZeroU16::new(1_001), ..job() }, "`retry` has 1001 attempts, at most 1000"),
            (Job { environment: Some(Box::default()), ..job() }, "`environment` is empty: leave it out"),
            (Job { secrets: Some(Box::default()), ..job() }, "`secrets` is empty: leave it out"),
            (
                Job { secrets: Some(Box::new(vec!["a/b".parse().unwrap()])), ..job() },
                "`secrets` has `a/b`: expected a name without `/` that does not begin with a dot",
            ),
            (
                Job { secrets: Some(Box::new(vec!["a".parse().unwrap(); 2])), ..job() },
                "`secrets` names `a` twice",
            ),
            (
                Job { environment: Some(Box::new([("A=B".into(), String::new())].into())), ..job() },
                "`environment` has the variable `A=B`: expected a name without `=`",
            ),
        ];
        for (job, message) in cases {
            assert_eq!(refused(job), message);
        }
    }
}
