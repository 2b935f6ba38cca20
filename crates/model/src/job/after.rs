//! Which jobs must have ended before this one may start.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use minicbor::{CborLen, Decode, Encode};

use super::{JobError, at_most, not_empty};
use crate::id::{JobId, ParseIdError};
use crate::units::clipped;

/// Jobs that one job may wait for.
pub const MAX_DEPENDENCIES: usize = 256;

/// The jobs to wait for, and how each must have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct After(#[n(0)] pub BTreeMap<JobId, Ended>);

/// How a job that is waited for must have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Ended {
    /// Successfully; if it fails, the job that waits can never start.
    #[default]
    #[n(0)]
    Ok,
    /// In any way.
    #[n(1)]
    Any,
}

/// What is wrong with a text that should name a job to wait for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseAfterError {
    /// The part before the colon is no job id.
    #[error(transparent)]
    Job(#[from] ParseIdError),
    /// The part after the colon is unknown.
    #[error("`{0}` after the job id: expected `ok` (it succeeded) or `any` (it ended)")]
    Ended(Box<str>),
    /// One job with two conditions.
    #[error("`after` names job {0} twice")]
    Twice(JobId),
}

impl After {
    /// Reads a list of jobs, each as [`After::texts`] writes it; `ok` may be left out.
    pub fn parse<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<After, ParseAfterError> {
        let mut after = BTreeMap::new();
        for text in texts {
            let (job, ended) = match text.as_ref().split_once(':') {
                Some((job, ended)) => (job.parse()?, ended.parse()?),
                None => (text.as_ref().parse()?, Ended::Ok),
            };
            if after.insert(job, ended).is_some() {
                return Err(ParseAfterError::Twice(job));
            }
        }
        Ok(After(after))
    }

    /// One text for each job: `JOB:ok` or `JOB:any`.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(job, ended)| format!("{job}:{ended}"))
    }

    pub(super) fn check(&self) -> Result<(), JobError> {
        not_empty("after", self.0.len())?;
        at_most("after", self.0.len(), MAX_DEPENDENCIES, "jobs")
    }
}

impl FromStr for Ended {
    type Err = ParseAfterError;

    fn from_str(text: &str) -> Result<Ended, ParseAfterError> {
        match text {
            "ok" => Ok(Ended::Ok),
            "any" => Ok(Ended::Any),
            _ => Err(ParseAfterError::Ended(clipped(text))),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::Ok => "ok",
            Ended::Any => "any",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_read_back_what_they_write() {
        let after = After([(JobId::from_number(1), Ended::Ok), (JobId::from_number(2), Ended::Any)].into());
        assert_eq!(After::parse(after.texts()), Ok(after));
        let bare = After::parse([JobId::from_number(3).to_string()]).unwrap();
        assert_eq!(bare.0[&JobId::from_number(3)], Ended::Ok);
    }

    #[test]
    fn dependencies_without_sense_are_refused() {
        let job = JobId::from_number(1);
        let error = |texts: &[String]| After::parse(texts).unwrap_err().to_string();
        assert!(error(&["7f3a".into()]).contains("expected 32 hexadecimal digits"));
        assert_eq!(
            error(&[format!("{job}:later")]),
            "`later` after the job id: expected `ok` (it succeeded) or `any` (it ended)"
        );
        assert_eq!(
            error(&[format!("{job}"), format!("{job}:any")]),
            format!("`after` names job {job} twice")
        );
        assert_eq!(After::default().check(), Err(JobError::Empty("after")));
    }
}
