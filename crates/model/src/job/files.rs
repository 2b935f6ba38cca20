//! Files that a job brings along and takes back.
//!
//! An input is `a.csv`, or `data/a.csv => input.csv` under another name; a client that has read it adds what is in it:
//! `data/a.csv => input.csv => file 12 HASH`. So the id of a job covers its inputs. An output is a pattern such as
//! `results/*.csv`.
//!
//! Inside, a path is relative to the job's own folder and cannot leave it; outside, it means what it means to the
//! client, and only the client opens it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};

use super::{JobError, at_most};
use crate::digest::Digest;
use crate::time::Span;
use crate::units::clipped;

/// Files in, and patterns of files out, at most; a folder counts as one.
pub const MAX_FILES: usize = 1_024;
/// Bytes of a path.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Names in a job's folder that are the task's own.
pub const TASK_FILES: [&str; 5] = ["stdout", "stderr", "script", "hostfile", ".secrets"];

const ARROW: &str = " => ";
/// What files are thought to travel at, in bytes a second: a plan with them leaves so much time for it.
const TRAVELS_AT: u64 = 32 << 20;

/// What comes along and what goes back; never both empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Files {
    /// Copied into the job's folder before it starts.
    #[n(0)]
    pub inputs: Vec<Staged>,
    /// Kept after it ended.
    #[n(1)]
    pub outputs: Vec<Pattern>,
}

/// One file or folder, inside and outside the job's folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct Staged {
    #[n(0)]
    inside: Box<str>,
    #[n(1)]
    outside: Box<str>,
    #[n(2)]
    content: Option<Content>,
}

/// What is in a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Content {
    /// What it is.
    #[n(0)]
    pub kind: Kind,
    /// Its bytes; of a folder those of all its files.
    #[n(1)]
    pub size: u64,
    /// The hash of its bytes; of a folder that of the list of its files.
    #[n(2)]
    pub digest: Digest,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Kind {
    /// A file.
    #[n(0)]
    File,
    /// A file that can be run.
    #[n(1)]
    Program,
    /// A list of files, each with its path.
    #[n(2)]
    Folder,
}

/// Which files a job takes back: a path with `*`, `**`, `?`, `[…]` or `{…}` in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, CborLen)]
#[cbor(transparent)]
pub struct Pattern(#[n(0)] Box<str>);

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing.
    #[error("a path is empty: expected `PATH` or `FROM => TO`")]
    Empty,
    /// More than [`MAX_PATH_BYTES`].
    #[error("the path `{0}` has more than {MAX_PATH_BYTES} bytes")]
    TooLong(Box<str>),
    /// Zero bytes, line breaks and other control characters.
    #[error("the path {0:?} has a control character")]
    Control(Box<str>),
    /// An arrow or outer spaces, which would read back as something else.
    #[error("the path `{0}` begins or ends with a space, or has ` => ` in it")]
    Unreadable(Box<str>),
    /// A path that leaves the job's folder, or could.
    #[error(
        "`{0}` is not a path inside the job's folder: expected one that is relative and without `.`, `..` and `\\`; \
         `FROM => TO` gives a file another name"
    )]
    Leaves(Box<str>),
    /// What should say what is in a file does not.
    #[error(
        "`{0}` does not say what is in a file: expected `file SIZE HASH`, `program SIZE HASH` or `folder SIZE HASH`"
    )]
    Content(Box<str>),
}

impl Staged {
    /// A file with a place inside the job's folder and one outside.
    pub fn new(inside: &str, outside: &str) -> Result<Staged, PathError> {
        check_inside(inside)?;
        check_path(outside)?;
        Ok(Staged { inside: inside.into(), outside: outside.into(), content: None })
    }

    /// The same with what is in it.
    pub fn with(self, content: Content) -> Staged {
        Staged { content: Some(content), ..self }
    }

    /// Reads a file to bring along: `OUTSIDE => INSIDE => CONTENT`, without what is not known yet, or one path for both.
    pub fn parse_input(text: &str) -> Result<Staged, PathError> {
        let mut parts = text.splitn(3, ARROW);
        let outside = parts.next().unwrap_or_default();
        let staged = Staged::new(parts.next().unwrap_or(outside), outside)?;
        match parts.next() {
            Some(content) => Ok(staged.with(content.parse()?)),
            None => Ok(staged),
        }
    }

    /// What [`Staged::parse_input`] reads.
    pub fn input_text(&self) -> String {
        match &self.content {
            Some(content) => format!("{}{ARROW}{}{ARROW}{content}", self.outside, self.inside),
            None if self.outside == self.inside => self.inside.to_string(),
            None => format!("{}{ARROW}{}", self.outside, self.inside),
        }
    }

    /// Its place in the job's folder: relative, without `.` and `..`.
    pub fn inside(&self) -> &str {
        &self.inside
    }

    /// Its place at the client.
    pub fn outside(&self) -> &str {
        &self.outside
    }

    /// What is in it, once a client has read it.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }
}

impl Pattern {
    /// What it says.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Pattern, PathError> {
        check_inside(text)?;
        Ok(Pattern(text.into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::File, Kind::Program, Kind::Folder];

    fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Program => "program",
            Kind::Folder => "folder",
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind.name(), self.size, self.digest)
    }
}

impl FromStr for Content {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Content, PathError> {
        let wrong = || PathError::Content(clipped(text));
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or_else(wrong);
        let name = word()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(wrong)?;
        let size = word()?.parse().map_err(|_| wrong())?;
        let digest = word()?.parse().map_err(|_| wrong())?;
        if words.next().is_some() {
            return Err(wrong());
        }
        Ok(Content { kind, size, digest })
    }
}

impl Files {
    /// How long the inputs are thought to travel; nothing for what is there in a moment.
    pub fn travel(&self) -> Span {
        let bytes: u64 = self
            .inputs
            .iter()
            .filter_map(Staged::content)
            .map(|content| content.size)
            .fold(0, u64::saturating_add);
        Span::from_millis(bytes / (TRAVELS_AT / 1_000))
    }

    pub(super) fn check(&self) -> Result<(), JobError> {
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return Err(JobError::Empty("files"));
        }
        at_most("in", self.inputs.len(), MAX_FILES, "files")?;
        at_most("out", self.outputs.len(), MAX_FILES, "patterns")?;
        // Two inputs for one place: one would be lost.
        no_twins("in", self.inputs.iter().map(Staged::inside))?;
        no_twins("out", self.outputs.iter().map(Pattern::as_str))?;
        let places: BTreeSet<&str> = self.inputs.iter().map(Staged::inside).collect();
        for place in &places {
            let first = place.split('/').next().unwrap_or(place);
            if TASK_FILES.contains(&first) {
                return Err(JobError::TaskFile(clipped(place)));
            }
            // Of two that lie in each other, one would have to be file and folder.
            let above =
                place.match_indices('/').map(|(at, _)| &place[..at]).find(|above| places.contains(above));
            if let Some(above) = above {
                return Err(JobError::WithinFile { path: clipped(place), other: clipped(above) });
            }
        }
        Ok(())
    }
}

fn no_twins<'a>(field: &'static str, paths: impl Iterator<Item = &'a str>) -> Result<(), JobError> {
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(path) {
            return Err(JobError::SameFile { field, path: clipped(path) });
        }
    }
    Ok(())
}

/// Whether a path names something inside a folder, and nothing else whatever is there.
pub fn check_inside(path: &str) -> Result<(), PathError> {
    check_path(path)?;
    let stays = |part: &str| !matches!(part, "" | "." | "..");
    if path.contains('\\') || !path.split('/').all(stays) {
        return Err(PathError::Leaves(clipped(path)));
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        Err(PathError::Empty)
    } else if path.len() > MAX_PATH_BYTES {
        Err(PathError::TooLong(clipped(path)))
    } else if path.contains(char::is_control) {
        Err(PathError::Control(clipped(path)))
    } else if path.trim() != path || path.contains(ARROW) {
        Err(PathError::Unreadable(clipped(path)))
    } else {
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for Staged {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Staged, decode::Error> {
        #[derive(Decode)]
        struct Wire<'a> {
            #[b(0)]
            inside: &'a str,
            #[b(1)]
            outside: &'a str,
            #[n(2)]
            content: Option<Content>,
        }
        let at = d.position();
        let Wire { inside, outside, content } = Wire::decode(d, ctx)?;
        let staged = Staged::new(inside, outside).map_err(|error| decode::Error::custom(error).at(at))?;
        Ok(Staged { content, ..staged })
    }
}

impl<'b, C> Decode<'b, C> for Pattern {
    fn decode(d: &mut Decoder<'b>, _ctx: &mut C) -> Result<Pattern, decode::Error> {
        let at = d.position();
        d.str()?.parse().map_err(|error: PathError| decode::Error::custom(error).at(at))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn files_read_back_what_they_write() {
        for text in ["a.csv", "data/a.csv => b.csv", "/home/me/a b.csv => in/a.csv", "C:\\a.csv => a.csv"] {
            assert_eq!(Staged::parse_input(text).unwrap().input_text(), text);
        }
        let hash = "0a".repeat(32);
        let full = format!("/home/me/a => b => program 12 {hash}");
        let read = Staged::parse_input(&full).unwrap();
        assert_eq!(read.input_text(), full);
        assert_eq!(read.content().unwrap().kind, Kind::Program);
        assert_eq!("results/**/*.csv".parse::<Pattern>().unwrap().as_str(), "results/**/*.csv");
    }

    #[test]
    fn no_path_leaves_the_folder_of_its_job() {
        for text in ["/etc/passwd", "../a", "a/../../b", "./a", "a//b", "a/", "a => ..", "a => C:\\b"] {
            assert!(matches!(Staged::parse_input(text), Err(PathError::Leaves(_))), "{text}");
        }
        let wire = minicbor::to_vec(["../a", "a"]).unwrap();
        let error = minicbor::decode::<Staged>(&wire).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("`../a` is not a path inside"));
        assert!(minicbor::decode::<Pattern>(&minicbor::to_vec("/etc/*").unwrap()).is_err());
        assert!("a/../*".parse::<Pattern>().is_err());
    }

    #[test]
    fn paths_without_sense_are_refused() {
        let error = |text: &str| Staged::parse_input(text).unwrap_err();
        assert_eq!(error(""), PathError::Empty);
        assert_eq!(error("a\0b"), PathError::Control("a\0b".into()));
        for content in ["c", "file 1", "file x 00", "pipe 1 00", "file 1 00"] {
            assert_eq!(error(&format!("a => b => {content}")), PathError::Content(content.into()));
        }
        assert!(matches!(error(&"a".repeat(1_025)), PathError::TooLong(_)));
    }

    #[test]
    fn two_files_for_one_place_are_refused() {
        let file = |text| Staged::parse_input(text).unwrap();
        let files = Files { inputs: vec![file("a"), file("b => a")], outputs: vec![] };
        assert_eq!(files.check(), Err(JobError::SameFile { field: "in", path: "a".into() }));
        assert_eq!(Files::default().check().unwrap_err().to_string(), "`files` is empty: leave it out");
    }

    #[test]
    fn names_of_the_task_and_files_within_files_are_refused() {
        let file = |text| Staged::parse_input(text).unwrap();
        let of = |inputs: Vec<Staged>| Files { inputs, outputs: vec![] }.check();
        for name in ["stdout", "script", "stderr/a"] {
            assert_eq!(of(vec![file(name)]), Err(JobError::TaskFile(name.into())));
        }
        let within = JobError::WithinFile { path: "a/b/c".into(), other: "a".into() };
        assert_eq!(of(vec![file("a"), file("a/b/c")]), Err(within));
        assert_eq!(of(vec![file("a/b"), file("a/c"), file("ab")]), Ok(()));
    }

    #[test]
    fn time_to_travel_grows_with_the_bytes() {
        let of = |size| {
            let content = Content { kind: Kind::File, size, digest: Digest([0; 32]) };
            Files { inputs: vec![Staged::new("a", "a").unwrap().with(content)], outputs: vec![] }.travel()
        };
        assert_eq!(of(1_000), Span::ZERO);
        assert_eq!(of(1 << 30).as_micros() / 1_000_000, 32);
        assert!(of(u64::MAX) > Span::from_hours(1_000));
    }
}
