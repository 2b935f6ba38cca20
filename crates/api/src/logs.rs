//! How the outputs of a job are asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which output of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Its standard output.
    #[default]
    Stdout,
    /// Its standard error.
    Stderr,
}

/// A word that is no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected stdout or stderr")]
pub struct UnknownStream;

/// Which part of which output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Standard output or standard error.
    #[param(inline)]
    pub stream: Stream,
    /// Of which task; the first, where nobody says.
    pub rank: u32,
    /// Of which placement; the last, where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// From this byte on.
    pub offset: u64,
    /// Only so many lines at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// Go on while the job goes on.
    pub follow: bool,
}

impl Stream {
    /// Its name, and that of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stream {
    type Err = UnknownStream;

    fn from_str(text: &str) -> Result<Stream, UnknownStream> {
        match text {
            "stdout" => Ok(Stream::Stdout),
            "stderr" => Ok(Stream::Stderr),
            _ => Err(UnknownStream),
        }
    }
}
