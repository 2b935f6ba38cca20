//! Words, numbers with their units, texts in quotes, and signs.

use super::{ExpressionError, TOKENS_MAX};
use crate::units::clipped;

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub what: What<'a>,
    /// The number of its first character, from 1.
    pub column: usize,
    /// Where it is in the text, in bytes.
    pub from: usize,
    pub until: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// `12` or `0.5`.
    Number(&'a str),
    /// `8GiB` or `1h30m`.
    Quantity(&'a str),
    /// `closest`.
    Name(&'a str),
    /// What stands between quotes; without escapes.
    Text(&'a str),
    /// `<=`.
    Sign(&'static str),
    /// The end of the expression.
    End,
}

/// The longer ones first.
const SIGNS: [&str; 23] = [
    "<=", ">=", "==", "!=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",",
    ".", "!", "?",
];

impl What<'_> {
    /// As an error names it.
    pub fn described(&self) -> String {
        match self {
            What::Number(text) | What::Quantity(text) | What::Name(text) => format!("`{}`", clipped(text)),
            What::Text(text) => format!("\"{}\"", clipped(text)),
            What::Sign(sign) => format!("`{sign}`"),
            What::End => "the end".to_owned(),
        }
    }
}

/// Cuts an expression into tokens; the last one is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let mut found = Vec::new();
    let (mut at, mut column) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            column += 1;
            continue;
        }
        let what = match first {
            '0'..='9' => number(rest),
            '"' | '\'' => quoted(rest, first, column)?,
            first if first.is_alphabetic() || first == '_' => What::Name(run(rest, in_name)),
            ':' => What::Sign(":"),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => What::Sign(sign),
                None => return Err(ExpressionError::new(column, format!("{first:?} means nothing here"))),
            },
        };
        let length = match what {
            What::Number(text) | What::Quantity(text) | What::Name(text) => text.len(),
            What::Text(text) => text.len() + 2,
            What::Sign(sign) => sign.len(),
            What::End => 0,
        };
        if found.len() == TOKENS_MAX {
            return Err(ExpressionError::new(
                column,
                format!("more than {TOKENS_MAX} words, numbers and signs"),
            ));
        }
        found.push(Token { what, column, from: at, until: at + length });
        column += text[at..at + length].chars().count();
        at += length;
    }
    found.push(Token { what: What::End, column, from: at, until: at });
    Ok(found)
}

fn number(rest: &str) -> What<'_> {
    let plain = run(rest, |c| c.is_ascii_digit() || c == '.').trim_end_matches('.');
    let whole = run(rest, |c| c.is_alphanumeric() || c == '.').trim_end_matches('.');
    if whole.len() > plain.len() { What::Quantity(whole) } else { What::Number(plain) }
}

fn quoted(rest: &str, quote: char, column: usize) -> Result<What<'_>, ExpressionError> {
    let wrong = |what: &str| Err(ExpressionError::new(column, what));
    match rest[1..].find([quote, '\\']) {
        None => wrong("a text without its closing quote"),
        Some(end) if rest[1 + end..].starts_with('\\') => {
            wrong("a text with `\\`, which texts here do not have")
        }
        Some(end) => Ok(What::Text(&rest[1..1 + end])),
    }
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !belongs(c)).unwrap_or(text.len())]
}
