//! The text of a scenario: files that build on each other and words from the command line, in one table.
//!
//! Every key and value remembers where it was written. The texts are laid end to end, so that one number says both
//! which text and where in it: each text is parsed behind as many blanks as the earlier ones are long.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Library;
use super::error::Error;

/// The key by which a scenario builds on another.
const LIKE: &str = "like";
/// A table that names another kind of thing than the one it would change stands in its place.
pub(super) const KINDS: [&str; 3] = ["kind", "model", "name"];
/// What a workload says of its jobs wherever they come from.
const TREATMENT: [&str; 2] = ["change", "length"];
/// More than anybody would write; a larger file is a mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file; none for the command line.
    pub file: Option<Arc<Path>>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:{}:{}", file.display(), self.line, self.column),
            None => f.write_str("command line"),
        }
    }
}

/// Where each field was written, by its path such as `network.loss`.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: BTreeMap<String, Place>,
    /// The scenario's file, for what was written nowhere.
    file: PathBuf,
}

impl Places {
    /// Where this field, or the nearest that holds it, was written.
    pub fn of(&self, field: &str) -> Place {
        let mut path = field;
        loop {
            if let Some(place) = self.places.get(path) {
                return place.clone();
            }
            match path.rfind('.') {
                Some(dot) => path = &path[..dot],
                None => return Place { file: Some(self.file.as_path().into()), line: 1, column: 1 },
            }
        }
    }

    /// Whether this very field was written.
    pub fn has(&self, field: &str) -> bool {
        self.places.contains_key(field)
    }

    /// The path of a key somewhere within a table.
    pub fn find(&self, table: &str, key: &str) -> Option<&str> {
        let inside = |path: &&String| {
            path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(key))
                && path.rsplit('.').next() == Some(key)
        };
        self.places.keys().find(inside).map(String::as_str)
    }

    /// An error about this field.
    pub fn error(&self, field: &str, what: impl fmt::Display) -> Error {
        Error::Field { place: self.of(field), field: field.to_owned(), what: what.to_string() }
    }
}

/// Where scenarios are kept.
#[derive(Clone, Copy)]
pub(super) enum Shelf {
    Disk,
    BuiltIn(Library),
}

impl Shelf {
    fn read(self, file: &Path) -> Result<String, Error> {
        match self {
            Shelf::Disk => read(file),
            Shelf::BuiltIn(library) => {
                let stem = file.file_stem().unwrap_or_default();
                let found =
                    library.iter().find(|(name, _)| stem == *name).map(|(_, text)| (*text).to_owned());
                found.ok_or_else(|| {
                    let cause = std::io::Error::new(std::io::ErrorKind::NotFound, "is no built-in scenario");
                    Error::Unreadable { file: file.to_owned(), cause }
                })
            }
        }
    }

    /// The one name of a file, whatever its spelling.
    fn find(self, file: &Path) -> std::io::Result<PathBuf> {
        match self {
            Shelf::Disk => file.canonicalize(),
            Shelf::BuiltIn(_) => Ok(file.to_owned()),
        }
    }
}

/// Texts, the one that has the last word first.
pub(super) struct Sources {
    sources: Vec<Source>,
    /// The scenario's own file.
    main: PathBuf,
}

struct Source {
    file: Option<Arc<Path>>,
    /// Where the text begins; in front of it are blanks.
    base: usize,
    padded: String,
}

impl Sources {
    /// Reads a scenario, what it builds on, and what the command line says.
    ///
    /// Of several things that the command line says, each comes over those after it.
    pub fn gather(shelf: Shelf, file: &Path, overrides: &[&str]) -> Result<Sources, Error> {
        let mut sources = Sources { sources: Vec::new(), main: file.to_owned() };
        for text in overrides.iter().filter(|text| !text.is_empty()) {
            sources.push(None, text);
        }
        let mut next = Some(file.to_owned());
        let mut seen: Vec<PathBuf> = Vec::new();
        while let Some(file) = next {
            let text = shelf.read(&file)?;
            // Two spellings of one file are one file.
            seen.push(shelf.find(&file).unwrap_or_else(|_| file.clone()));
            sources.push(Some(file.as_path().into()), &text);
            let table = sources.parse(sources.sources.len() - 1)?;
            next = match table.get_ref().get(LIKE) {
                None => None,
                Some(like) => Some(sources.resolve(shelf, &file, like, &seen)?),
            };
        }
        Ok(sources)
    }

    /// All texts in one table.
    pub fn merge(&self) -> Result<Document<'_>, Error> {
        let mut merged: Option<Spanned<DeTable<'_>>> = None;
        // From below: what is of another kind is known only when all beneath it is there.
        for number in (0..self.sources.len()).rev() {
            let mut table = self.parse(number)?;
            table.get_mut().remove(LIKE);
            merged = Some(match merged {
                None => table,
                // The span stays that of the text with the last word that is a file: see `Document::place`.
                Some(under) => Spanned::new(under.span(), merge(table.into_inner(), under.into_inner())),
            });
        }
        let root = merged.unwrap_or_else(|| Spanned::new(0..0, DeTable::new()));
        Ok(Document { sources: self, root })
    }

    /// Where a position of the texts laid end to end is.
    pub fn place(&self, at: usize) -> Place {
        let after = self.sources.partition_point(|source| source.base <= at);
        let Some(source) = after.checked_sub(1).and_then(|number| self.sources.get(number)) else {
            return Place { file: Some(self.main.as_path().into()), line: 1, column: 1 };
        };
        let before = source.padded.get(source.base..at.min(source.padded.len())).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: source.file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn push(&mut self, file: Option<Arc<Path>>, text: &str) {
        let base = self.sources.last().map_or(0, |source| source.padded.len() + 1);
        self.sources.push(Source { file, base, padded: format!("{:base$}{text}", "") });
    }

    fn parse(&self, number: usize) -> Result<Spanned<DeTable<'_>>, Error> {
        let source = &self.sources[number];
        DeTable::parse(&source.padded).map_err(|error| {
            let place = self.place(error.span().map_or(source.base, |span| span.start.max(source.base)));
            let what = error.message().trim().replace('\n', ", ");
            Error::Syntax { place, what }
        })
    }

    /// The file that a scenario says it is like.
    fn resolve(
        &self,
        shelf: Shelf,
        file: &Path,
        like: &Spanned<DeValue<'_>>,
        seen: &[PathBuf],
    ) -> Result<PathBuf, Error> {
        let wrong = |what: String| Error::Field {
            place: self.place(like.span().start),
            field: LIKE.to_owned(),
            what,
        };
        let Some(name) = like.get_ref().as_str() else {
            return Err(wrong("must be the name of a scenario in the same folder, in quotes".to_owned()));
        };
        if name.is_empty() || name.contains(['/', '\\']) {
            return Err(wrong(format!("`{name}` is not the name of a scenario in the same folder")));
        }
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let other = file.with_file_name(format!("{name}.toml"));
        let found = shelf
            .find(&other)
            .map_err(|cause| wrong(format!("{} cannot be read: {cause}", other.display())))?;
        if seen.contains(&found) {
            let chain = seen.iter().chain([&found]).filter_map(|file| file.file_stem());
            let chain: Vec<_> = chain.map(|stem| stem.to_string_lossy()).collect();
            return Err(wrong(format!("goes round in a circle: {}", chain.join(" is like "))));
        }
        Ok(other)
    }
}

fn read(file: &Path) -> Result<String, Error> {
    let unreadable = |cause: std::io::Error| Error::Unreadable { file: file.to_owned(), cause };
    let size = std::fs::metadata(file).map_err(unreadable)?.len();
    if size > FILE_BYTES_MAX {
        let cause = std::io::Error::other(format!("{size} bytes are too many for a scenario"));
        return Err(unreadable(cause));
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

/// The table `under` with what `over` says put over it.
fn merge<'a>(over: DeTable<'a>, mut under: DeTable<'a>) -> DeTable<'a> {
    let other_kind = |over: &DeTable<'a>, under: &DeTable<'a>| {
        KINDS.iter().any(|kind| match (text(over, kind), text(under, kind)) {
            (Some(over), Some(under)) => over != under,
            _ => false,
        })
    };
    for (key, value) in over {
        // Taken out first: a map keeps the key it has, and with it the older place.
        let old = under.remove(key.get_ref().as_ref());
        let span = value.span();
        let value = match (value.into_inner(), old.map(Spanned::into_inner)) {
            (DeValue::Table(over), Some(DeValue::Table(under))) if !other_kind(&over, &under) => {
                DeValue::Table(merge(over, under))
            }
            // Other jobs of a trace are treated as those were in whose place they come.
            (DeValue::Table(over), Some(DeValue::Table(under)))
                if key.get_ref() == "workload" && text(&over, "kind") == Some("trace") =>
            {
                let kept = under.into_iter().filter(|(key, _)| TREATMENT.contains(&&**key.get_ref()));
                DeValue::Table(merge(over, kept.collect()))
            }
            // The name of what a table describes leaves its settings as they are.
            (DeValue::String(name), Some(DeValue::Table(mut under)))
                if text(&under, "name").is_some_and(|known| known == name) =>
            {
                under.remove("name");
                under.insert(
                    Spanned::new(span.clone(), Cow::Borrowed("name")),
                    Spanned::new(span.clone(), DeValue::String(name)),
                );
                DeValue::Table(under)
            }
            // The settings of what was named only.
            (DeValue::Table(mut over), Some(DeValue::String(name))) => {
                if let Some(word) = named_by(key.get_ref()).filter(|word| text(&over, word).is_none()) {
                    let at = key.span();
                    over.insert(
                        Spanned::new(at.clone(), Cow::Borrowed(word)),
                        Spanned::new(at, DeValue::String(name)),
                    );
                }
                DeValue::Table(over)
            }
            (value, _) => value,
        };
        under.insert(key, Spanned::new(span, value));
    }
    under
}

/// What the name of a thing is called in its table, for things that may be written as their name alone.
fn named_by(key: &str) -> Option<&'static str> {
    match key {
        "recipe" => Some("name"),
        "faults" => Some("preset"),
        _ => None,
    }
}

fn text<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

/// All that is known of a scenario, in one table.
pub(super) struct Document<'s> {
    sources: &'s Sources,
    pub root: Spanned<DeTable<'s>>,
}

impl<'s> Document<'s> {
    /// The value at a path of tables, if there is one.
    pub fn get(&self, path: &[&str]) -> Option<&Spanned<DeValue<'s>>> {
        let (last, tables) = path.split_last()?;
        let mut table = self.root.get_ref();
        for name in tables {
            table = table.get(*name)?.get_ref().as_table()?;
        }
        table.get(*last)
    }

    /// The table at a path, to be changed.
    pub fn table_mut(&mut self, path: &[&str]) -> Option<&mut DeTable<'s>> {
        let mut table = self.root.get_mut();
        for name in path {
            table = match table.get_mut(*name)?.get_mut() {
                DeValue::Table(inner) => inner,
                _ => return None,
            };
        }
        Some(table)
    }

    /// Where a position is.
    pub fn place(&self, at: usize) -> Place {
        self.sources.place(at)
    }

    /// Reads paths of files as meant by the file in which they are written.
    pub fn resolve_file(&mut self, table: &[&str]) {
        let sources = self.sources;
        let Some(value) = self.table_mut(table).and_then(|table| table.get_mut("file")) else { return };
        let place = sources.place(value.span().start);
        let (DeValue::String(path), Some(folder)) =
            (value.get_mut(), place.file.as_deref().and_then(Path::parent))
        else {
            return;
        };
        *path = Cow::Owned(folder.join(&**path).to_string_lossy().into_owned());
    }

    /// Where everything was written.
    pub fn places(&self) -> Places {
        let mut places = BTreeMap::new();
        self.note_table("", self.root.get_ref(), &mut places);
        Places { places, file: self.sources.main.clone() }
    }

    /// The table as plain values, to be written down.
    pub fn plain(&self) -> toml::Table {
        plain_table(self.root.get_ref())
    }

    fn note_table(&self, path: &str, table: &DeTable<'_>, places: &mut BTreeMap<String, Place>) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            self.note(path, key.span(), value, places);
        }
    }

    fn note(
        &self,
        path: String,
        at: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        places: &mut BTreeMap<String, Place>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) => self.note_table(&path, table, places),
            DeValue::Array(array) => {
                for (number, element) in array.iter().enumerate() {
                    self.note(format!("{path}.{number}"), element.span(), element, places);
                }
            }
            _ => {}
        }
        places.insert(path, self.place(at.start));
    }
}

fn plain_table(table: &DeTable<'_>) -> toml::Table {
    table.iter().map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref()))).collect()
}

fn plain(value: &DeValue<'_>) -> toml::Value {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Boolean(truth) => toml::Value::Boolean(*truth),
        DeValue::Datetime(time) => toml::Value::Datetime(*time),
        DeValue::Array(array) => {
            toml::Value::Array(array.iter().map(|element| plain(element.get_ref())).collect())
        }
        DeValue::Table(table) => toml::Value::Table(plain_table(table)),
        // A number too large for its type is refused when the scenario is read.
        DeValue::Integer(number) => {
            toml::Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).unwrap_or(i64::MAX))
        }
        DeValue::Float(number) => toml::Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
    }
}
