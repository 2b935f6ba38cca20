//! Files that a job brings along and takes back: `a.csv`, or `data/a.csv => input.csv` under another name.
//!
//! Inside, a path is relative to the job's own folder and cannot leave it; outside, it means what it means to the
//! client, and only the client opens it.

use std::collections::BTreeSet;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};

use super::{JobError, at_most};
use crate::units::clipped;

/// Files in, and files out, at most.
pub const MAX_FILES: usize = 1_024;
/// Bytes in a path.
pub const MAX_PATH_BYTES: usize = 1_024;

const ARROW: &str = " => ";

/// What comes along and what goes back; never both empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Files {
    /// Copied into the job's folder before it starts.
    #[n(0)]
    pub inputs: Vec<Staged>,
    /// Copied back after it ended.
    #[n(1)]
    pub outputs: Vec<Staged>,
}

/// One file, inside and outside the job's folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct Staged {
    #[n(0)]
    inside: Box<str>,
    #[n(1)]
    outside: Box<str>,
}

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
}

impl Staged {
    /// A file with a place inside the job's folder and one outside.
    pub fn new(inside: &str, outside: &str) -> Result<Staged, PathError> {
        check_path(inside)?;
        check_path(outside)?;
        let stays = |part: &str| !matches!(part, "" | "." | "..");
        if inside.contains('\\') || !inside.split('/').all(stays) {
            return Err(PathError::Leaves(clipped(inside)));
        }
        Ok(Staged { inside: inside.into(), outside: outside.into() })
    }

    /// Reads a file to bring along: `OUTSIDE => INSIDE`, or one path for both.
    pub fn parse_input(text: &str) -> Result<Staged, PathError> {
        let (outside, inside) = text.split_once(ARROW).unwrap_or((text, text));
        Staged::new(inside, outside)
    }

    /// Reads a file to take back: `INSIDE => OUTSIDE`, or one path for both.
    pub fn parse_output(text: &str) -> Result<Staged, PathError> {
        let (inside, outside) = text.split_once(ARROW).unwrap_or((text, text));
        Staged::new(inside, outside)
    }

    /// What [`Staged::parse_input`] reads.
    pub fn input_text(&self) -> String {
        text(&self.outside, &self.inside)
    }

    /// What [`Staged::parse_output`] reads.
    pub fn output_text(&self) -> String {
        text(&self.inside, &self.outside)
    }

    /// Its place in the job's folder: relative, without `.` and `..`.
    pub fn inside(&self) -> &str {
        &self.inside
    }

    /// Its place at the client.
    pub fn outside(&self) -> &str {
        &self.outside
    }
}

impl Files {
    pub(super) fn check(&self) -> Result<(), JobError> {
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return Err(JobError::Empty("files"));
        }
        at_most("in", self.inputs.len(), MAX_FILES, "files")?;
        at_most("out", self.outputs.len(), MAX_FILES, "files")?;
        // Two inputs for one place inside, or two outputs for one place outside: one would be lost.
        no_twins("in", self.inputs.iter().map(Staged::inside))?;
        no_twins("out", self.outputs.iter().map(Staged::outside))
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

fn text(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from}{ARROW}{to}") }
}

impl<'b, C> Decode<'b, C> for Staged {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Staged, decode::Error> {
        #[derive(Decode)]
        struct Wire<'a> {
            #[b(0)]
            inside: &'a str,
            #[b(1)]
            outside: &'a str,
        }
        let at = d.position();
        let Wire { inside, outside } = Wire::decode(d, ctx)?;
        Staged::new(inside, outside).map_err(|error| decode::Error::custom(error).at(at))
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
        let output = Staged::parse_output("out.csv => /home/me/out.csv").unwrap();
        assert_eq!((output.inside(), output.outside()), ("out.csv", "/home/me/out.csv"));
        assert_eq!(output.output_text(), "out.csv => /home/me/out.csv");
    }

    #[test]
    fn no_path_leaves_the_folder_of_its_job() {
        for text in ["/etc/passwd", "../a", "a/../../b", "./a", "a//b", "a/", "a => ..", "a => C:\\b"] {
            assert!(matches!(Staged::parse_input(text), Err(PathError::Leaves(_))), "{text}");
        }
        let wire = minicbor::to_vec(["../a", "a"]).unwrap();
        let error = minicbor::decode::<Staged>(&wire).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("`../a` is not a path inside"));
    }

    #[test]
    fn paths_without_sense_are_refused() {
        let error = |text: &str| Staged::parse_input(text).unwrap_err();
        assert_eq!(error(""), PathError::Empty);
        assert_eq!(error("a\0b"), PathError::Control("a\0b".into()));
        assert_eq!(error("a => b => c"), PathError::Unreadable("b => c".into()));
        assert!(matches!(error(&"a".repeat(1_025)), PathError::TooLong(_)));
    }

    #[test]
    fn two_files_for_one_place_are_refused() {
        let file = |text| Staged::parse_input(text).unwrap();
        let files = Files { inputs: vec![file("a"), file("b => a")], outputs: vec![] };
        assert_eq!(files.check(), Err(JobError::SameFile { field: "in", path: "a".into() }));
        assert_eq!(Files::default().check().unwrap_err().to_string(), "`files` is empty: leave it out");
    }
}
