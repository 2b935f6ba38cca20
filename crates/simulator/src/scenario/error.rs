//! What can be wrong with a scenario, said in one line that names file, line, field and a way out.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Document, KINDS, Place};
use crate::network;
use crate::workload::WorkloadError;

/// Why there is no scenario, or none that can be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read at all.
    #[error("{}: cannot be read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        what: String,
    },
    /// A field is unknown, missing, or makes no sense.
    #[error("{place}: {field}: {what}")]
    Field {
        /// Where.
        place: Place,
        /// The field's path, such as `network.loss`.
        field: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A file that the scenario's network names does not serve.
    #[error(transparent)]
    Network(network::Error),
    /// A file that the scenario's workload names does not serve.
    #[error(transparent)]
    Workload(WorkloadError),
}

/// Reads a type from a document; an error names the field to blame.
pub(super) fn read<'s, T: Deserialize<'s>>(document: &Document<'s>) -> Result<T, Error> {
    parse(document.root.clone()).map_err(|error| explain::<T>(document, &error))
}

fn parse<'s, T: Deserialize<'s>>(root: Spanned<DeTable<'s>>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::de::Deserializer::from(root))
}

/// Turns what serde says into a line for people.
fn explain<'s, T: Deserialize<'s>>(document: &Document<'s>, error: &toml::de::Error) -> Error {
    let span = error.span().unwrap_or_else(|| document.root.span());
    let mut path = Vec::new();
    find(document.root.get_ref(), &span, &mut path);
    blame::<T>(document, error.message(), &mut path);
    let place = document.place(spot(document, &path).unwrap_or(span.start));
    // The name of a recipe is a value to whoever writes it, and a key only to the reader.
    if path.first().is_some_and(|first| first == "recipe") && path.len() > 1 {
        path.remove(1);
    }
    let (field, what) = word(&path.join("."), error.message());
    Error::Field { place, field, what }
}

/// The path of the key or value that has this span.
fn find(table: &DeTable<'_>, span: &std::ops::Range<usize>, path: &mut Vec<String>) -> bool {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if key.span() == *span || value.span() == *span {
            return true;
        }
        let inside = match value.get_ref() {
            DeValue::Table(inner) => find(inner, span, path),
            DeValue::Array(array) => array.iter().enumerate().any(|(number, element)| {
                path.push(number.to_string());
                let found = element.span() == *span
                    || element.get_ref().as_table().is_some_and(|inner| find(inner, span, path));
                if !found {
                    path.pop();
                }
                found
            }),
            _ => false,
        };
        if inside {
            return true;
        }
        path.pop();
    }
    false
}

/// Goes from a table down to the key without which the complaint would be another.
///
/// A table whose kind is named by one of its keys is read as a whole, and serde then knows no places inside of it.
fn blame<'s, T: Deserialize<'s>>(document: &Document<'s>, complaint: &str, path: &mut Vec<String>) {
    while let Some(mut keys) = keys_at(document.root.get_ref(), path) {
        // Without its kind a table is not read at all: that key is to blame only if no other is.
        keys.sort_by_key(|key| KINDS.contains(&key.as_str()));
        // Without a key that has to be there, it is the one that is missing: only tables can be to blame for that.
        let candidate = |key: &String| {
            !complaint.starts_with("missing field")
                || keys_at(document.root.get_ref(), &[path.as_slice(), std::slice::from_ref(key)].concat())
                    .is_some()
        };
        let guilty = keys.into_iter().filter(candidate).find(|key| {
            let mut root = document.root.clone();
            let steps = path.iter().chain([key]).map(String::as_str).collect::<Vec<_>>();
            remove(root.get_mut(), &steps);
            parse::<T>(root).err().is_none_or(|other| other.message() != complaint)
        });
        match guilty {
            Some(key) => path.push(key),
            None => return,
        }
    }
}

fn at<'t, 's>(table: &'t DeTable<'s>, path: &[String]) -> Option<&'t Spanned<DeValue<'s>>> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first.as_str())?, |value, step| match value.get_ref() {
        DeValue::Table(table) => table.get(step.as_str()),
        DeValue::Array(array) => array.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn keys_at(table: &DeTable<'_>, path: &[String]) -> Option<Vec<String>> {
    let table = if path.is_empty() { table } else { at(table, path)?.get_ref().as_table()? };
    Some(table.keys().map(|key| key.get_ref().to_string()).collect())
}

fn remove(table: &mut DeTable<'_>, path: &[&str]) {
    let [first, rest @ ..] = path else { return };
    if rest.is_empty() {
        table.remove(*first);
        return;
    }
    match table.get_mut(*first).map(Spanned::get_mut) {
        Some(DeValue::Table(inner)) => remove(inner, rest),
        Some(DeValue::Array(array)) => {
            let element = rest[0].parse::<usize>().ok().and_then(|number| array.get_mut(number));
            if let Some(DeValue::Table(inner)) = element.map(Spanned::get_mut) {
                remove(inner, &rest[1..]);
            }
        }
        _ => {}
    }
}

/// Where the key at a path is written.
fn spot(document: &Document<'_>, path: &[String]) -> Option<usize> {
    let (last, parents) = path.split_last()?;
    let root = document.root.get_ref();
    let holder = match parents {
        [] => Some(root),
        _ => at(root, parents)?.get_ref().as_table(),
    };
    match holder.and_then(|table| table.get_key_value(last.as_str())) {
        Some((key, _)) => Some(key.span().start),
        None => at(root, path).map(|value| value.span().start),
    }
}

/// The field and the complaint in our words.
fn word(field: &str, message: &str) -> (String, String) {
    let message = message.trim().replace('\n', ", ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let (true, [unknown, known @ ..]) = (message.starts_with("unknown field"), quoted.as_slice()) {
        let mut parts: Vec<&str> = field.split('.').filter(|part| !part.is_empty()).collect();
        if parts.last() != Some(unknown) {
            parts.push(unknown);
        }
        let what = match (nearest(unknown, known), known) {
            (Some(word), _) => format!("unknown key; did you mean `{word}`?"),
            (None, []) => "unknown key; nothing is expected here".to_owned(),
            (None, known) => format!("unknown key; known: {}", known.join(", ")),
        };
        return (parts.join("."), what);
    }
    if let (true, [unknown, known @ ..]) = (message.starts_with("unknown variant"), quoted.as_slice()) {
        let field = if field.is_empty() { "scenario" } else { field };
        let what = match nearest(unknown, known) {
            Some(word) => {
                format!("unknown `{unknown}`; did you mean `{word}`? (known: {})", known.join(", "))
            }
            None => format!("unknown `{unknown}`; known: {}", known.join(", ")),
        };
        return (field.to_owned(), what);
    }
    if let (true, [missing, ..]) = (message.starts_with("missing field"), quoted.as_slice()) {
        let whole = if field.is_empty() { missing.to_string() } else { format!("{field}.{missing}") };
        return (whole, "is missing".to_owned());
    }
    (if field.is_empty() { "scenario".to_owned() } else { field.to_owned() }, message)
}

/// The known word that was probably meant.
fn nearest<'w>(unknown: &str, known: &[&'w str]) -> Option<&'w str> {
    let close = known.iter().map(|word| (strsim::jaro_winkler(unknown, word), *word));
    let (closeness, word) = close.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (closeness > 0.8).then_some(word)
}
