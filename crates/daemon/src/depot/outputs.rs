//! Takes the outputs of a task: plain files in its folder that match its patterns.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use shoal_model::Digest;
use shoal_model::job::{Pattern, TASK_FILES};

use super::beneath::{Beneath, CLOSED};
use super::manifest::{Entry, FILES_MAX, LEFT_OUT_MAX, LeftOut, Manifest};
use super::small::{MANY_MAX, SMALL_MAX};
use super::{Depot, Error};

/// Bytes of small files that are taken at once.
const TOGETHER: usize = 16 << 20;
/// Bytes that are read at once.
const READ: usize = 256 << 10;

/// Patterns as one.
pub struct Patterns {
    set: GlobSet,
    texts: Vec<String>,
}

/// A pattern that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` makes no sense: {why}")]
pub struct WrongPattern {
    /// Which.
    pub pattern: String,
    /// Why.
    pub why: String,
}

impl Patterns {
    /// Reads patterns: `*` and `?` do not match `/`, and `**` does.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a Pattern>) -> Result<Patterns, WrongPattern> {
        let mut set = GlobSetBuilder::new();
        let mut texts = Vec::new();
        let wrong = |pattern: &str, error: globset::Error| WrongPattern {
            pattern: pattern.to_owned(),
            why: error.kind().to_string(),
        };
        for pattern in patterns {
            let text = pattern.as_str();
            let mut glob = GlobBuilder::new(text);
            set.add(glob.literal_separator(true).build().map_err(|error| wrong(text, error))?);
            texts.push(text.to_owned());
        }
        Ok(Patterns { set: set.build().map_err(|error| wrong("", error))?, texts })
    }

    /// Which of them match a path. What the task has of its own is meant only by its very name.
    fn matching(&self, path: &str) -> Vec<usize> {
        let mut matching = self.set.matches(path);
        if TASK_FILES.contains(&path) {
            matching.retain(|&number| self.texts[number] == path);
        }
        matching
    }
}

/// Takes all files in a folder that match, and says which they are; in the depot when it returns.
pub fn collect(depot: &Arc<Depot>, folder: &Path, patterns: &Patterns) -> Result<Manifest, Error> {
    let wrong = |error: io::Error| super::wrong("look for outputs in", folder)(error);
    let folder = Beneath::open(folder).map_err(wrong)?;
    let found = folder.walk().map_err(wrong)?;
    let mut manifest = Manifest::default();
    let mut used = vec![false; patterns.texts.len()];
    let mut leave = |path: String, why: String| {
        if manifest.left_out.len() < LEFT_OUT_MAX {
            manifest.left_out.push(LeftOut { path, why });
        }
    };
    for odd in found.odd {
        // What is in a folder that cannot be opened might have matched.
        if odd.what == CLOSED || !patterns.matching(&odd.path).is_empty() {
            leave(odd.path, format!("it is {}", odd.what));
        }
    }
    let mut together = Together { depot, files: Vec::new(), bytes: 0, lost: BTreeMap::new() };
    for path in found.files {
        let matching = patterns.matching(&path);
        if matching.is_empty() {
            continue;
        }
        if manifest.files.len() == FILES_MAX {
            leave(path, format!("more than {FILES_MAX} files match"));
            continue;
        }
        match take(&folder, &path, &mut together) {
            Ok(entry) => {
                matching.into_iter().for_each(|number| used[number] = true);
                manifest.files.push(entry);
            }
            Err(error) => leave(path, error.to_string()),
        }
    }
    together.take();
    // The same content may have been kept with others.
    let is_lost =
        |entry: &Entry| together.lost.contains_key(&entry.digest) && depot.has(&entry.digest).is_none();
    let (lost, kept): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(&mut manifest.files).into_iter().partition(is_lost);
    manifest.files = kept;
    for entry in lost {
        let why = together.lost.get(&entry.digest).cloned().unwrap_or_default();
        leave(entry.path, why);
    }
    let unused = patterns.texts.iter().zip(used).filter(|(_, used)| !used);
    manifest.unmatched = unused.map(|(text, _)| text.clone()).collect();
    Ok(manifest)
}

/// Small files that are taken at once.
struct Together<'a> {
    depot: &'a Arc<Depot>,
    files: Vec<(Digest, Vec<u8>)>,
    bytes: usize,
    /// Those that the depot did not take, and why.
    lost: BTreeMap<Digest, String>,
}

impl Together<'_> {
    fn add(&mut self, digest: Digest, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.files.push((digest, bytes));
        if self.bytes > TOGETHER || self.files.len() == MANY_MAX {
            self.take();
        }
    }

    fn take(&mut self) {
        self.bytes = 0;
        let files = std::mem::take(&mut self.files);
        let many: Vec<(Digest, &[u8])> = files.iter().map(|(digest, bytes)| (*digest, &**bytes)).collect();
        if let Err(error) = self.depot.take_many(&many) {
            let why = error.to_string();
            self.lost.extend(many.iter().map(|(digest, _)| (*digest, why.clone())));
        }
    }
}

fn take(folder: &Beneath, path: &str, together: &mut Together<'_>) -> Result<Entry, Error> {
    let wrong = |error: io::Error| super::wrong("read", Path::new(path))(error);
    let mut file = folder.read(path).map_err(wrong)?;
    let executable = file.metadata().map_err(wrong)?.permissions().mode() & 0o100 != 0;
    // By what is read, not by what the size was: the file may grow or shrink.
    let mut first = Vec::new();
    (&mut file).take(SMALL_MAX + 1).read_to_end(&mut first).map_err(wrong)?;
    let (digest, size) = if first.len() as u64 <= SMALL_MAX {
        let (digest, size) = (Digest::of(&first), first.len() as u64);
        together.add(digest, first);
        (digest, size)
    } else {
        let mut intake = together.depot.unnamed()?;
        intake.write(&first)?;
        let mut bytes = vec![0; READ];
        loop {
            match file.read(&mut bytes).map_err(wrong)? {
                0 => break,
                read => intake.write(&bytes[..read])?,
            }
            if intake.at() > super::BLOB_MAX {
                return Err(Error::TooLarge(intake.at()));
            }
        }
        intake.finish()?
    };
    Ok(Entry { path: path.to_owned(), size, digest, executable })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn patterns(texts: &[&str]) -> Patterns {
        let read: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Patterns::new(&read).unwrap()
    }

    #[test]
    fn what_matches_is_taken_and_the_rest_is_said() {
        let home = tempfile::tempdir().unwrap();
        let depot = Arc::new(Depot::open(home.path()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("results")).unwrap();
        fs::write(at("results/a.csv"), "a").unwrap();
        fs::write(at("results/b.csv"), "b").unwrap();
        fs::write(at("big.bin"), vec![7; 3 << 20]).unwrap();
        fs::write(at("stdout"), "said").unwrap();
        symlink("/etc/passwd", at("results/link.csv")).unwrap();
        fs::hard_link(at("results/a.csv"), at("hard")).unwrap();
        fs::remove_file(at("hard")).unwrap();

        let manifest =
            collect(&depot, folder.path(), &patterns(&["results/*.csv", "*.bin", "*.none", "*"])).unwrap();
        let paths: Vec<&str> = manifest.files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["big.bin", "results/a.csv", "results/b.csv"]);
        assert_eq!(manifest.unmatched, ["*.none"]);
        assert_eq!(manifest.left_out.len(), 1);
        assert!(manifest.left_out[0].why.contains("link"), "{:?}", manifest.left_out);
        for file in &manifest.files {
            assert_eq!(depot.has(&file.digest), Some(file.size));
        }
        let own = collect(&depot, folder.path(), &patterns(&["stdout"])).unwrap();
        assert_eq!(own.files.len(), 1);
    }

    #[test]
    fn file_with_a_second_name_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let depot = Arc::new(Depot::open(home.path()).unwrap());
        let around = tempfile::tempdir().unwrap();
        fs::write(around.path().join("secret"), "secret").unwrap();
        fs::create_dir(around.path().join("in")).unwrap();
        fs::hard_link(around.path().join("secret"), around.path().join("in/mine")).unwrap();
        let manifest = collect(&depot, &around.path().join("in"), &patterns(&["**"])).unwrap();
        assert!(manifest.files.is_empty());
        assert!(manifest.left_out[0].why.contains("several names"), "{:?}", manifest.left_out);
    }

    #[test]
    fn files_that_the_depot_does_not_take_are_left_out() {
        let home = tempfile::tempdir().unwrap();
        let limits = crate::depot::Limits { bytes_max: 4, blobs_max: 10 };
        let depot = Arc::new(Depot::with(home.path(), limits).unwrap());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "too much").unwrap();
        let manifest = collect(&depot, folder.path(), &patterns(&["*"])).unwrap();
        assert!(manifest.files.is_empty());
        assert!(manifest.left_out[0].why.contains("no room"), "{:?}", manifest.left_out);
        // What was not taken is not tried again with the next ones.
        let mut together = Together { depot: &depot, files: Vec::new(), bytes: 0, lost: BTreeMap::new() };
        together.add(Digest::of(b"too much"), b"too much".to_vec());
        together.take();
        assert_eq!((together.files.len(), together.bytes, together.lost.len()), (0, 0, 1));
        together.add(Digest::of(b"few"), b"few".to_vec());
        together.take();
        assert!(depot.has(&Digest::of(b"few")).is_some());
    }

    #[test]
    fn patterns_without_sense_are_named() {
        let wrong = Patterns::new(&["a[".parse().unwrap()]).err().unwrap();
        assert_eq!(wrong.pattern, "a[");
    }
}
