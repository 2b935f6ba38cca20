//! What can be wrong with a network or fault configuration, or with a file that it names.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Why a world cannot be built from what was given: one line that names the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configured value makes no sense.
    #[error("{field}: {what}")]
    Field {
        /// The field's path in the scenario, such as `network.loss`.
        field: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A file cannot be read at all.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of a file makes no sense.
    #[error("{}: line {line}: {what}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The field and what is wrong with it.
        what: String,
    },
    /// A file is well formed but does not serve.
    #[error("{}: {what}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is missing, and what to do.
        what: String,
    },
}

impl Error {
    pub(crate) fn field(field: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Field { field: field.into(), what: what.into() }
    }

    pub(crate) fn line(file: &Path, line: usize, what: impl Display) -> Error {
        Error::Line { file: file.to_owned(), line, what: what.to_string() }
    }

    pub(crate) fn file(file: &Path, what: impl Display) -> Error {
        Error::File { file: file.to_owned(), what: what.to_string() }
    }
}
