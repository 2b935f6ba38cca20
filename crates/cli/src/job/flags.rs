//! The flags that describe a job, and the job that they make of another.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use shoal_daemon::depot::outputs::Patterns;
use shoal_model::job::{Array, Ended, Files, IMAGE, Mode, Pattern, Requires};
use shoal_model::text::TextError;
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{
    Architecture, Constraint, Criterion, Expression, ExpressionError, Job, Line, Name, Size, Span, System,
    Thousandths, Time,
};

use crate::error::Error;
use crate::files::input;

/// What a job needs, and how it is to be run.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Nodes that start together
    #[arg(long, short = 'N', value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    nodes: Option<NonZeroU32>,
    /// Cores of each node, as in 4 or 0.5
    #[arg(long, short = 'c', value_name = "COUNT")]
    cores: Option<Thousandths>,
    /// Memory of each node, as in 8GiB
    #[arg(long, short = 'm', visible_alias = "mem", value_name = "SIZE")]
    memory: Option<Size>,
    /// Disk of each node, as in 20GiB
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// GPUs of each node, as in 1 or 0.25
    #[arg(long, short = 'g', value_name = "COUNT")]
    gpus: Option<Thousandths>,
    /// A resource by name, as in fpga=1; may be given again
    #[arg(long, value_name = "NAME=COUNT", value_parser = pair::<Name, Thousandths>)]
    resource: Vec<(Name, Thousandths)>,
    /// The hard limit, at which it is stopped, as in 1h30m
    #[arg(long, short = 't', value_name = "SPAN")]
    time: Option<SpanText>,
    /// How long it is thought to take
    #[arg(long, value_name = "SPAN")]
    estimate: Option<SpanText>,
    /// When it must have ended: 2026-11-15T18:00:00Z, or +2h from now
    #[arg(long, value_name = "TIME")]
    deadline: Option<When>,
    /// When it may start at the earliest: a time, or +2h from now
    #[arg(long, value_name = "TIME")]
    begin: Option<When>,
    /// What is best, as in closest, or "closest subject to wait <= 1h"
    #[arg(long, visible_alias = "criterion", value_name = "EXPRESSION")]
    optimise: Option<Expression>,
    /// Which nodes will do, as in "memory >= 8GiB && org == 'physics'"
    #[arg(long = "where", value_name = "EXPRESSION")]
    constraint: Option<Expression>,
    /// Run it for each of these indexes, as in 1-1000%50
    #[arg(long, short = 'a', value_name = "INDEXES")]
    array: Option<Array>,
    /// Start after another job: JOB, JOB:ok or JOB:any; may be given again
    #[arg(long, value_name = "JOB[:ok|:any]")]
    after: Vec<JobRef>,
    /// Bring a file or a folder along, under another name in the job's folder if one is given; may be given again
    #[arg(long = "in", value_name = "PATH[=NAME]")]
    inputs: Vec<String>,
    /// Keep the files that match when it has ended, as in 'results/*.csv'; may be given again; see `shoal get`
    #[arg(long = "out", value_name = "PATTERN")]
    outputs: Vec<Pattern>,
    /// Tell its tasks a secret: what is in a file, or in this shell's variable of that name; may be given again
    #[arg(long, value_name = "NAME[=PATH]")]
    secret: Vec<String>,
    /// Further attempts when it fails
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU16>)]
    retry: Option<NonZeroU16>,
    /// Never run it a second time, even if a node is lost
    #[arg(long)]
    at_most_once: bool,
    /// A name for people
    #[arg(long, short = 'n', value_name = "NAME")]
    name: Option<Line>,
    /// Set an environment variable, or pass on this shell's; may be given again
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Only nodes like this: architecture=x86_64, system=linux, within=ORGANISATION or LABEL=VALUE; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair::<String, String>)]
    require: Vec<(String, String)>,
    /// Find this file system instead of the machine's, on nodes that have it
    #[arg(long, value_name = "NAME")]
    image: Option<Name>,
    /// Before (larger) or after (smaller) your other jobs
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// Whose job it is
    #[arg(long, value_name = "USER")]
    user: Option<Name>,
    /// On whose behalf
    #[arg(long, value_name = "NAME")]
    organisation: Option<Name>,
}

/// An expression that makes no sense, with a mark at the place.
fn wrong(flag: &str, text: &Expression, error: &ExpressionError) -> Error {
    Error::user(format!("{flag}: {error}\n{}", error.pointing_at(text.as_str())))
}

/// A job as it is named on the command line: by an id that may be shortened, and by how it must have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRef {
    /// Its id, perhaps shortened.
    pub id: String,
    /// How it must have ended.
    pub ended: Ended,
}

/// What is said of a job and is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The jobs that it is to start after, as they were given.
    pub after: Vec<JobRef>,
    /// The files that secrets are in, by their names; what has none is in a variable.
    pub secrets: BTreeMap<String, PathBuf>,
}

/// A point in time, or a span from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    At(Time),
    In(Span),
}

impl Flags {
    /// The same with another's where it says something.
    pub fn with(self, over: Flags) -> Flags {
        let and = |mut all: Vec<_>, more: Vec<_>| {
            all.extend(more);
            all
        };
        Flags {
            nodes: over.nodes.or(self.nodes),
            cores: over.cores.or(self.cores),
            memory: over.memory.or(self.memory),
            disk: over.disk.or(self.disk),
            gpus: over.gpus.or(self.gpus),
            resource: self.resource.into_iter().chain(over.resource).collect(),
            time: over.time.or(self.time),
            estimate: over.estimate.or(self.estimate),
            deadline: over.deadline.or(self.deadline),
            begin: over.begin.or(self.begin),
            optimise: over.optimise.or(self.optimise),
            constraint: over.constraint.or(self.constraint),
            array: over.array.or(self.array),
            after: self.after.into_iter().chain(over.after).collect(),
            inputs: and(self.inputs, over.inputs),
            outputs: self.outputs.into_iter().chain(over.outputs).collect(),
            secret: and(self.secret, over.secret),
            retry: over.retry.or(self.retry),
            at_most_once: self.at_most_once || over.at_most_once,
            name: over.name.or(self.name),
            env: and(self.env, over.env),
            require: self.require.into_iter().chain(over.require).collect(),
            image: over.image.or(self.image),
            priority: over.priority.or(self.priority),
            user: over.user.or(self.user),
            organisation: over.organisation.or(self.organisation),
        }
    }

    /// The job with what the flags say of it, and what is not in it.
    pub fn apply(self, mut job: Job) -> Result<(Job, Beside), Error> {
        if let Some(nodes) = self.nodes {
            job.nodes = nodes;
        }
        let resources = &mut job.resources;
        resources.cores = self.cores.unwrap_or(resources.cores);
        resources.memory = self.memory.unwrap_or(resources.memory);
        resources.disk = self.disk.unwrap_or(resources.disk);
        resources.gpus = self.gpus.unwrap_or(resources.gpus);
        for (name, count) in self.resource {
            job.resources = job.resources.with_named(name, count);
        }
        job.limit = self.time.map(|time| time.0).or(job.limit);
        job.estimate = self.estimate.map(|time| time.0).or(job.estimate);
        job.deadline = self.deadline.map(When::resolve).or(job.deadline);
        job.begin = self.begin.map(When::resolve).or(job.begin);
        if let Some(text) = &self.optimise {
            text.as_str().parse::<Criterion>().map_err(|error| wrong("--optimise", text, &error))?;
        }
        if let Some(text) = &self.constraint {
            text.as_str().parse::<Constraint>().map_err(|error| wrong("--where", text, &error))?;
        }
        job.criterion = self.optimise.or(job.criterion);
        job.constraint = self.constraint.or(job.constraint);
        job.array = self.array.map(Box::new).or(job.array);
        job.retry = self.retry.or(job.retry);
        job.mode = self.at_most_once.then_some(Mode::AtMostOnce).or(job.mode);
        job.name = self.name.or(job.name);
        job.priority = self.priority.or(job.priority);
        job.user = self.user.or(job.user);
        job.organisation = self.organisation.or(job.organisation);
        let mut files = job.files.take().map(|files| *files).unwrap_or_default();
        for text in &self.inputs {
            files.inputs.push(input(text)?);
        }
        files.outputs.extend(self.outputs);
        Patterns::new(&files.outputs).map_err(|error| Error::user(format!("--out: {error}")))?;
        job.files = (files != Files::default()).then(|| Box::new(files));
        let mut places = BTreeMap::new();
        let mut secrets = job.secrets.take().map(|secrets| *secrets).unwrap_or_default();
        for text in &self.secret {
            let (name, place) =
                text.split_once('=').map_or((&**text, None), |(name, path)| (name, Some(path)));
            let wrong = |error: TextError| Error::user(format!("--secret {name}: {error}"));
            secrets.push(name.parse().map_err(wrong)?);
            places.extend(place.map(|path| (name.to_owned(), PathBuf::from(path))));
        }
        job.secrets = (!secrets.is_empty()).then(|| Box::new(secrets));
        let mut environment = job.environment.take().map(|environment| *environment).unwrap_or_default();
        environment.extend(read_environment(&self.env)?);
        job.environment = (!environment.is_empty()).then(|| Box::new(environment));
        let requires = job.requires.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        let mut requires = require(requires, &self.require)?;
        if let Some(image) = &self.image {
            let wrong = |error: TextError| Error::user(format!("--image: {error}"));
            let label = format!("{}{image}", IMAGE.0).parse().map_err(wrong)?;
            requires.labels.insert(label, IMAGE.1.parse().map_err(wrong)?);
        }
        job.requires = (!requires.is_empty()).then(|| Arc::new(requires));
        job.check().map_err(|error| Error::user(error.to_string()))?;
        Ok((job, Beside { after: self.after, secrets: places }))
    }
}

fn read_environment(texts: &[String]) -> Result<BTreeMap<String, String>, Error> {
    texts
        .iter()
        .map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => match std::env::var(text) {
                Ok(value) => Ok((text.clone(), value)),
                Err(_) => Err(Error::user(format!("--env {text}: this shell has no such variable"))
                    .hint(format!("--env {text}=VALUE sets it"))),
            },
        })
        .collect()
}

fn require(mut requires: Requires, wanted: &[(String, String)]) -> Result<Requires, Error> {
    let wrong = |name: &str, error: String| Error::user(format!("--require {name}: {error}"));
    for (name, value) in wanted {
        match name.as_str() {
            "architecture" => {
                let read = value.parse::<Architecture>();
                requires.architecture = Some(read.map_err(|error| wrong(name, error.to_string()))?);
            }
            "system" => {
                let read = value.parse::<System>();
                requires.system = Some(read.map_err(|error| wrong(name, error.to_string()))?);
            }
            "within" => {
                let read = value.parse::<Name>();
                requires.organisations.insert(read.map_err(|error| wrong(name, error.to_string()))?);
            }
            _ => {
                let label = name.parse::<Name>().map_err(|error| wrong(name, error.to_string()))?;
                let says = value.parse::<Line>().map_err(|error| wrong(name, error.to_string()))?;
                requires.labels.insert(label, says);
            }
        }
    }
    Ok(requires)
}

/// A number that is not zero, with an error that says so in plain words.
fn at_least_one<N: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<N, String> {
    if !text.is_empty() && text.bytes().all(|digit| digit == b'0') {
        return Err("must be at least 1".to_owned());
    }
    text.parse().map_err(|error: N::Err| error.to_string())
}

/// Reads `NAME=VALUE`.
fn pair<N, V>(text: &str) -> Result<(N, V), String>
where
    N: FromStr<Err: ToString>,
    V: FromStr<Err: ToString>,
{
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((
        name.parse().map_err(|error: N::Err| error.to_string())?,
        value.parse().map_err(|error: V::Err| error.to_string())?,
    ))
}

impl When {
    fn resolve(self) -> Time {
        match self {
            When::At(time) => time,
            When::In(span) => now() + span,
        }
    }
}

/// The time by this machine's clock.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<When, String> {
        match text.strip_prefix('+') {
            Some(span) => span.parse::<SpanText>().map(|span| When::In(span.0)).map_err(|e| e.to_string()),
            None => text.parse::<TimeText>().map(|time| When::At(time.0)).map_err(|e| e.to_string()),
        }
    }
}

impl FromStr for JobRef {
    type Err = String;

    fn from_str(text: &str) -> Result<JobRef, String> {
        let (id, ended) = match text.split_once(':') {
            Some((id, ended)) => (id, ended.parse::<Ended>().map_err(|error| error.to_string())?),
            None => (text, Ended::Ok),
        };
        if id.is_empty() || id.len() > 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("`{id}` is not a job id: expected hexadecimal digits"));
        }
        Ok(JobRef { id: id.to_owned(), ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_flags_win_and_lists_grow() {
        let first = Flags { cores: Some(Thousandths::whole(2)), env: vec!["A=1".into()], ..Flags::default() };
        let second =
            Flags { cores: Some(Thousandths::whole(3)), env: vec!["B=2".into()], ..Flags::default() };
        let (job, _) = first.with(second).apply(Job::command(["true"])).unwrap();
        assert_eq!(job.resources.cores, Thousandths::whole(3));
        assert_eq!(job.environment.unwrap().len(), 2);
    }

    #[test]
    fn times_are_points_or_spans_from_now_on() {
        assert_eq!("2026-11-15T18:00:00Z".parse(), Ok(When::At(Time::from_secs(1_794_765_600))));
        assert_eq!("+1h30m".parse(), Ok(When::In(Span::from_mins(90))));
        assert!("tomorrow".parse::<When>().is_err());
        assert!("+soon".parse::<When>().is_err());
    }

    #[test]
    fn jobs_to_start_after_say_how_they_must_have_ended() {
        assert_eq!("7f3a".parse(), Ok(JobRef { id: "7f3a".into(), ended: Ended::Ok }));
        assert_eq!("7f3a:any".parse(), Ok(JobRef { id: "7f3a".into(), ended: Ended::Any }));
        for wrong in ["", ":ok", "xyz", "7f:later"] {
            assert!(wrong.parse::<JobRef>().is_err(), "{wrong}");
        }
    }
}
