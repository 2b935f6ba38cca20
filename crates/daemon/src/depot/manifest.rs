//! A list of files by path: what is in a folder that a job brings along, or what a task left behind.

use std::collections::BTreeSet;

use minicbor::{Decode, Decoder, Encode, decode};
use shoal_model::Digest;
use shoal_model::job::{MAX_FILES, check_inside};

/// Files of one list.
pub const FILES_MAX: usize = 100_000;
/// Bytes of one list.
pub const BYTES_MAX: usize = 64 << 20;
/// Patterns that matched nothing: as many as a job has.
pub const UNMATCHED_MAX: usize = MAX_FILES;
/// Things left out that are told.
pub const LEFT_OUT_MAX: usize = 1_000;

/// Files by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Manifest {
    /// The files, sorted by path.
    #[n(0)]
    pub files: Vec<Entry>,
    /// Of outputs: patterns that matched nothing.
    #[n(1)]
    #[cbor(default, decode_with = "decode_unmatched")]
    pub unmatched: Vec<String>,
    /// Of outputs: what matched and was left out, and why.
    #[n(2)]
    #[cbor(default, decode_with = "decode_left_out")]
    pub left_out: Vec<LeftOut>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Entry {
    /// Where, relative to its folder.
    #[n(0)]
    pub path: String,
    /// Its bytes.
    #[n(1)]
    pub size: u64,
    /// The hash of its bytes.
    #[n(2)]
    pub digest: Digest,
    /// Whether it can be run.
    #[n(3)]
    pub executable: bool,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LeftOut {
    /// Where.
    #[n(0)]
    pub path: String,
    /// Why.
    #[n(1)]
    pub why: String,
}

/// What is wrong with a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoManifest {
    /// It cannot be read.
    #[error("a list of files that cannot be read: {0}")]
    Unread(String),
    /// Too long.
    #[error("a folder of {0} files, at most {FILES_MAX}")]
    TooMany(usize),
    /// A path that leaves the folder.
    #[error("a list of files with a path that is none: {0}")]
    Path(String),
    /// Twice the same, or a file in a file, or not sorted.
    #[error("a list of files in which `{0}` does not stand where it should")]
    Order(String),
}

impl Manifest {
    /// Reads a list and judges every path in it.
    pub fn read(bytes: &[u8]) -> Result<Manifest, NoManifest> {
        if bytes.len() > BYTES_MAX {
            return Err(NoManifest::Unread(format!("{} bytes, at most {BYTES_MAX}", bytes.len())));
        }
        let manifest: Manifest = decode(bytes).map_err(|error| NoManifest::Unread(error.to_string()))?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Whether each file has a place of its own inside the folder.
    pub fn check(&self) -> Result<(), NoManifest> {
        if self.files.len() > FILES_MAX {
            return Err(NoManifest::TooMany(self.files.len()));
        }
        let paths: BTreeSet<&str> = self.files.iter().map(|file| &*file.path).collect();
        let mut last = None;
        for Entry { path, .. } in &self.files {
            check_inside(path).map_err(|error| NoManifest::Path(error.to_string()))?;
            let above = path.match_indices('/').any(|(at, _)| paths.contains(&path[..at]));
            if above || last.is_some_and(|last: &String| last >= path) {
                return Err(NoManifest::Order(path.clone()));
            }
            last = Some(path);
        }
        Ok(())
    }

    /// The list as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("memory takes what is written")
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).fold(0, u64::saturating_add)
    }
}

fn decode_unmatched<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Vec<String>, decode::Error> {
    decode_few(d, ctx, UNMATCHED_MAX)
}

fn decode_left_out<'b, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Vec<LeftOut>, decode::Error> {
    decode_few(d, ctx, LEFT_OUT_MAX)
}

/// Stops at what is too much: in memory it is many times what it is in bytes.
fn decode_few<'b, C, T: Decode<'b, C>>(
    d: &mut Decoder<'b>,
    ctx: &mut C,
    most: usize,
) -> Result<Vec<T>, decode::Error> {
    let mut few = Vec::new();
    for item in d.array_iter_with(ctx)? {
        if few.len() == most {
            return Err(decode::Error::message("more is told than there can be"));
        }
        few.push(item?);
    }
    Ok(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str]) -> Manifest {
        let entry = |path: &&str| Entry {
            path: (*path).to_owned(),
            size: 1,
            digest: Digest([1; 32]),
            executable: false,
        };
        Manifest { files: paths.iter().map(entry).collect(), ..Manifest::default() }
    }

    #[test]
    fn lists_read_back_what_they_write() {
        let list = list(&["a", "b/c", "b/d"]);
        assert_eq!(Manifest::read(&list.bytes()), Ok(list));
        assert!(matches!(Manifest::read(b"\xff\xff"), Err(NoManifest::Unread(_))));
    }

    #[test]
    fn lists_tell_no_more_than_they_may() {
        let left = LeftOut { path: "a".to_owned(), why: String::new() };
        for (unmatched, left_out, right) in
            [(UNMATCHED_MAX, LEFT_OUT_MAX, true), (UNMATCHED_MAX + 1, 0, false), (0, LEFT_OUT_MAX + 1, false)]
        {
            let list = Manifest {
                files: Vec::new(),
                unmatched: vec!["*".to_owned(); unmatched],
                left_out: vec![left.clone(); left_out],
            };
            assert_eq!(Manifest::read(&list.bytes()).is_ok(), right);
        }
    }

    #[test]
    fn paths_that_leave_collide_or_lie_in_files_are_refused() {
        for paths in [
            &["../a"][..],
            &["/etc/passwd"],
            &["a/../../b"],
            &["a\\b"],
            &["a", "a"],
            &["b", "a"],
            &["a", "a/b"],
        ] {
            assert!(Manifest::read(&list(paths).bytes()).is_err(), "{paths:?}");
        }
    }
}
