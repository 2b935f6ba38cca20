//! A job as its file and the HTTP API write it: flat, with the names and units of the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    After, Array, Environment, Files, IMAGE, Job, JobError, Mode, ParseAfterError, PathError, Pattern,
    Requires, Staged, Work,
};
use crate::machine::Labels;
use crate::resources::{Named, Resources};
use crate::text::{Architecture, Expression, Line, Name, System, TextError};
use crate::units::{Size, SpanText, Thousandths, TimeText};

/// What is wrong with a job file whose parts can all be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobFileError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error("`after`: {0}")]
    After(#[from] ParseAfterError),
    #[error("`in`: {0}")]
    Input(PathError),
    #[error("`out`: {0}")]
    Output(PathError),
    #[error("`image`: `{0}` is too long for the name of an image: {1}")]
    Image(Name, TextError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Box<[String]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<Box<str>>,
    #[serde(default = "one_node")]
    nodes: NonZeroU32,
    #[serde(default = "one_core")]
    cores: Thousandths,
    #[serde(default, skip_serializing_if = "is_zero")]
    memory: Size,
    #[serde(default, skip_serializing_if = "is_zero")]
    disk: Size,
    #[serde(default, skip_serializing_if = "is_zero")]
    gpus: Thousandths,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<SpanText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<SpanText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<TimeText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<TimeText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimise: Option<Expression>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    constraint: Option<Expression>,
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<Architecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<System>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    within: BTreeSet<Name>,
    /// Another way to write a label.
    #[serde(skip_serializing)]
    image: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Box<Array>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    retry: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i16>,
    #[serde(default, rename = "in", skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    #[serde(default, rename = "out", skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organisation: Option<Name>,
    // Tables last, as TOML wants them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<Name, Thousandths>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    labels: Labels,
    #[serde(default, skip_serializing_if = "Environment::is_empty")]
    environment: Environment,
}

fn one_node() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn one_core() -> Thousandths {
    Thousandths::ONE
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TryFrom<JobFile> for Job {
    type Error = JobFileError;

    fn try_from(file: JobFile) -> Result<Job, JobFileError> {
        let work = match (file.command, file.script) {
            (Some(argv), None) => Work::Command(argv),
            (None, Some(text)) => Work::Script(text),
            (None, None) => return Err(JobError::Work("neither").into()),
            (Some(_), Some(_)) => return Err(JobError::Work("both").into()),
        };
        let mut labels = file.labels;
        if let Some(image) = &file.image {
            let wrong = |error| JobFileError::Image(image.clone(), error);
            let label = format!("{}{image}", IMAGE.0).parse().map_err(wrong)?;
            labels.insert(label, IMAGE.1.parse().map_err(wrong)?);
        }
        let requires = Requires {
            architecture: file.architecture,
            system: file.system,
            labels,
            organisations: file.within,
        };
        let inputs = file.inputs.iter().map(|text| Staged::parse_input(text)).collect::<Result<_, _>>();
        let outputs = file.outputs.iter().map(|text| text.parse()).collect::<Result<_, _>>();
        let files = Files {
            inputs: inputs.map_err(JobFileError::Input)?,
            outputs: outputs.map_err(JobFileError::Output)?,
        };
        let after = After::parse(file.after)?;
        let job = Job {
            work,
            nodes: file.nodes,
            resources: Resources {
                cores: file.cores,
                memory: file.memory,
                disk: file.disk,
                gpus: file.gpus,
                named: Named::new(file.resources),
            },
            limit: file.time.map(|span| span.0),
            estimate: file.estimate.map(|span| span.0),
            deadline: file.deadline.map(|time| time.0),
            begin: file.begin.map(|time| time.0),
            criterion: file.optimise,
            constraint: file.constraint,
            requires: (!requires.is_empty()).then(|| Arc::new(requires)),
            array: file.array,
            after: (!after.0.is_empty()).then(|| Box::new(after)),
            retry: NonZeroU16::new(file.retry),
            mode: file.mode,
            priority: file.priority,
            environment: (!file.environment.is_empty()).then(|| Box::new(file.environment)),
            files: (files != Files::default()).then(|| Box::new(files)),
            name: file.name,
            user: file.user,
            organisation: file.organisation,
            secrets: (!file.secrets.is_empty()).then(|| Box::new(file.secrets)),
        };
        job.check()?;
        Ok(job)
    }
}

impl From<Job> for JobFile {
    fn from(job: Job) -> JobFile {
        let (command, script) = match job.work {
            Work::Command(argv) => (Some(argv), None),
            Work::Script(text) => (None, Some(text)),
        };
        let resources = job.resources.named().map(|(name, count)| (name.clone(), count)).collect();
        let requires = job.requires.map(Arc::unwrap_or_clone).unwrap_or_default();
        let files = job.files.unwrap_or_default();
        JobFile {
            name: job.name,
            command,
            script,
            nodes: job.nodes,
            cores: job.resources.cores,
            memory: job.resources.memory,
            disk: job.resources.disk,
            gpus: job.resources.gpus,
            time: job.limit.map(SpanText),
            estimate: job.estimate.map(SpanText),
            begin: job.begin.map(TimeText),
            deadline: job.deadline.map(TimeText),
            optimise: job.criterion,
            constraint: job.constraint,
            architecture: requires.architecture,
            system: requires.system,
            within: requires.organisations,
            image: None,
            array: job.array,
            after: job.after.iter().flat_map(|after| after.texts()).collect(),
            retry: job.retry.map_or(0, NonZeroU16::get),
            mode: job.mode,
            priority: job.priority,
            inputs: files.inputs.iter().map(Staged::input_text).collect(),
            outputs: files.outputs.iter().map(Pattern::to_string).collect(),
            secrets: job.secrets.map(|secrets| *secrets).unwrap_or_default(),
            user: job.user,
            organisation: job.organisation,
            resources,
            labels: requires.labels,
            environment: job.environment.map(|environment| *environment).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::job;
    use crate::time::{Span, Time};

    #[test]
    fn a_job_file_says_it_in_the_words_of_the_command_line() {
        let job: Job = toml::from_str(
            r#"
            name = "render the film"
            command = ["blender", "-b", "scene.blend"]
            nodes = 4
            cores = 0.5
            memory = "8GiB"
            gpus = "0.25"
            time = "1:30:00"
            deadline = "2026-11-15T18:00:00Z"
            where = "node.speed > 1"
            architecture = "amd64"
            array = "1-1000%50"
            mode = "at-most-once"
            in = ["scene.blend", "/film/textures.zip => textures.zip"]
            labels = { zone = "basement" }
            resources = { fpga = 1 }
            "#,
        )
        .unwrap();
        assert_eq!(job.nodes.get(), 4);
        assert_eq!(job.resources.to_string(), "0.5 cores, 8 GiB, 0.25 gpus, 1 fpga");
        assert_eq!(job.limit, Some(Span::from_mins(90)));
        assert_eq!(job.deadline, Some(Time::from_secs(1_794_765_600)));
        assert_eq!(job.requires.as_ref().unwrap().architecture, "x86_64".parse().ok());
        assert_eq!(job.array.as_ref().unwrap().tasks(), 1_000);
        assert_eq!(job.files.as_ref().unwrap().inputs[1].inside(), "textures.zip");
    }

    #[test]
    fn a_wrong_job_file_is_refused_by_line_or_field() {
        let error = |text: &str| toml::from_str::<Job>(text).unwrap_err().to_string();
        let unknown = error("command = ['a']\nmemroy = '8GiB'");
        assert!(unknown.contains("line 2") && unknown.contains("unknown field `memroy`"), "{unknown}");
        let unit = error("command = ['a']\nmemory = '8 bananas'");
        assert!(unit.contains("line 2") && unit.contains("unknown unit `bananas` at column 3"), "{unit}");
        let number = error("command = ['a']\nmemory = 8");
        assert!(number.contains("expected a size in quotes, as in \"8GiB\""), "{number}");
        assert!(error("command = ['a']\nnodes = 0").contains("line 2"));
        assert!(error("").contains("expected one of `command` and `script`, found neither"));
        assert!(error("command = ['a']\nscript = 'b'").contains("found both"));
        assert!(error("command = ['a']\nout = ['../a']").contains("`out`: `../a` is not a path inside"));
        assert!(error("command = ['a']\nafter = ['7f']").contains("`after`: `7f` is not a job id"));
        assert!(error("command = ['a']\ntime = '0s'").contains("`time` is 0s"));
    }

    proptest! {
        #[test]
        fn jobs_read_back_what_they_write(job in job()) {
            prop_assert_eq!(&toml::from_str::<Job>(&toml::to_string(&job).unwrap()).unwrap(), &job);
            prop_assert_eq!(&serde_json::from_str::<Job>(&serde_json::to_string(&job).unwrap()).unwrap(), &job);
        }
    }
}
