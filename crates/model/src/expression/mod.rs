//! What users write as expressions: tokens, and errors that point at a column.
//!
//! Two small languages are made of these tokens: what is best ([`crate::criterion`]) and which nodes will do
//! ([`crate::constraint`]). Both are bounded before anything is built: in bytes by
//! [`Expression`](crate::text::Expression), in tokens by [`TOKENS_MAX`], in depth by [`DEPTH_MAX`].

pub(crate) mod token;

use std::fmt;

/// The most words, numbers and signs of an expression.
pub const TOKENS_MAX: usize = 256;
/// How deep brackets and signs may nest.
pub const DEPTH_MAX: usize = 24;

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The number of the character, from 1.
    column: usize,
    what: Box<str>,
}

impl ExpressionError {
    pub(crate) fn new(column: usize, what: impl Into<Box<str>>) -> ExpressionError {
        ExpressionError { column, what: what.into() }
    }

    /// Where it is wrong: the number of the character, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, apart from where.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The expression, and beneath it a mark at the column.
    pub fn pointing_at(&self, text: &str) -> String {
        format!("  {text}\n  {}^", " ".repeat(self.column.saturating_sub(1)))
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.what, self.column)
    }
}

impl std::error::Error for ExpressionError {}

/// `did you mean …?`, if one of the known names is near; else the list of them.
pub(crate) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = known.clone().map(|other| (strsim::damerau_levenshtein(name, other), other)).min();
    match near {
        Some((apart, other)) if apart <= (name.len() / 3).max(1) => format!("did you mean `{other}`?"),
        _ => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}
