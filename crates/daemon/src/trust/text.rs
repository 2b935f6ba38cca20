//! Keys, passes and notices as lines of text that people copy.

use shoal_model::envelope::PublicKey;

use crate::identity::text;

/// Signs of a line, at most.
const TEXT_MAX: usize = 4096;

/// What a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A public key.
    Key,
    /// A pass.
    Pass,
    /// A notice.
    Notice,
    /// A demand.
    Demand,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Something else.
    #[error("not {what}: {what} begins with `{head}`")]
    Other {
        /// What was expected.
        what: &'static str,
        /// How it begins.
        head: &'static str,
    },
    /// Not as it was printed.
    #[error("{0} is damaged: a part of it is missing or changed; copy it again, all of it")]
    Damaged(&'static str),
}

impl Kind {
    fn head(self) -> &'static str {
        match self {
            Kind::Key => "shoalkey1",
            Kind::Pass => "shoalpass1",
            Kind::Notice => "shoalnotice1",
            Kind::Demand => "shoaldemand1",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Kind::Key => "a key",
            Kind::Pass => "a pass",
            Kind::Notice => "a notice",
            Kind::Demand => "a demand",
        }
    }

    fn context(self) -> &'static str {
        match self {
            Kind::Key => "shoal 2026-11-15 public key text v1",
            Kind::Pass => "shoal 2026-11-15 pass text v1",
            Kind::Notice => "shoal 2026-11-15 notice text v1",
            Kind::Demand => "shoal 2026-11-15 demand text v1",
        }
    }

    pub fn write(self, bytes: &[u8]) -> String {
        format!("{}{}", self.head(), text::write(self.context(), bytes))
    }

    pub fn read(self, line: &str) -> Result<Vec<u8>, TextError> {
        let line = line.trim();
        let other = TextError::Other { what: self.what(), head: self.head() };
        let letters = line.strip_prefix(self.head()).ok_or(other)?;
        if line.len() > TEXT_MAX {
            return Err(TextError::Damaged(self.what()));
        }
        text::read(self.context(), letters).map_err(|_| TextError::Damaged(self.what()))
    }

    pub fn damaged(self) -> TextError {
        TextError::Damaged(self.what())
    }
}

/// A public key as people copy it.
pub fn write_key(key: &PublicKey) -> String {
    Kind::Key.write(&key.0)
}

/// The key that a text stands for.
pub fn read_key(line: &str) -> Result<PublicKey, TextError> {
    let bytes = Kind::Key.read(line)?;
    bytes.try_into().map(PublicKey).map_err(|_| Kind::Key.damaged())
}
