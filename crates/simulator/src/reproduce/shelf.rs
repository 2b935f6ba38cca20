//! Finished runs on disk, so that a long reproduction that was stopped goes on where it was.
//!
//! A shelf belongs to one program and one set of settings, which its label tells: runs of another would not be the
//! same. A run that cannot be read is made again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use minicbor::{Decode, Encode};

use super::{Error, Settings};

/// The file that tells whose runs these are.
const LABEL: &str = "label.txt";

/// Where finished runs are kept.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The folder; made if it is not there.
    pub folder: PathBuf,
    /// What tells this program from others that may come to other results.
    pub program: String,
}

/// The folder of kept runs, if there is to be one.
pub(super) struct Shelf(Option<PathBuf>);

impl Shelf {
    /// Opens the shelf that the settings name; refuses one with another label.
    pub(super) fn open(settings: &Settings) -> Result<Shelf, Error> {
        let Some(Keep { folder, program }) = &settings.keep else { return Ok(Shelf(None)) };
        let Settings { quick, tiny, trace, hosts, .. } = settings;
        let [trace, hosts] = [trace, hosts]
            .map(|file| file.as_ref().map_or("none".to_owned(), |file| file.display().to_string()));
        let label = format!("program {program}\nquick {quick}\ntiny {tiny}\ntrace {trace}\nhosts {hosts}\n");
        let wrong = |error: io::Error| Error::Keep { folder: folder.clone(), what: error.to_string() };
        fs::create_dir_all(folder).map_err(wrong)?;
        let file = folder.join(LABEL);
        match fs::read_to_string(&file) {
            Ok(found) if found == label => {}
            Ok(_) => {
                let what = "has runs of another program or of other settings: take another folder".to_owned();
                return Err(Error::Keep { folder: folder.clone(), what });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write(&file, label.as_bytes()).map_err(wrong)?
            }
            Err(error) => return Err(wrong(error)),
        }
        Ok(Shelf(Some(folder.clone())))
    }

    /// The run of this name: from the shelf, or made and put there.
    pub(super) fn get_or_make<S>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<S, Error>,
    ) -> Result<S, Error>
    where
        S: Encode<()> + for<'b> Decode<'b, ()>,
    {
        let Some(folder) = &self.0 else { return make() };
        let file = folder.join(format!("{}.cbor", file_name(name)));
        let kept = fs::read(&file).ok().and_then(|bytes| minicbor::decode(&bytes).ok());
        if let Some(seen) = kept {
            return Ok(seen);
        }
        let seen = make()?;
        let bytes = minicbor::to_vec(&seen).expect("writing to memory does not fail");
        write(&file, &bytes)
            .map_err(|error| Error::Keep { folder: folder.clone(), what: error.to_string() })?;
        Ok(seen)
    }
}

/// All of the file or none of it, whenever the program is stopped.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = file.with_extension("part");
    fs::write(&part, bytes)?;
    fs::rename(&part, file)
}

/// The name as one of a file: different names stay different.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_string(),
            ' ' => "-".to_owned(),
            other => format!("_{:x}_", u32::from(other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path, quick: bool) -> Settings {
        let keep = Some(Keep { folder: folder.to_owned(), program: "one".to_owned() });
        Settings { only: None, quick, seeds: None, trace: None, hosts: None, threads: 1, keep, tiny: false }
    }

    fn never() -> Result<u64, Error> {
        panic!("it is on the shelf")
    }

    #[test]
    fn run_is_made_once_and_again_if_its_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(&settings(folder.path(), false)).unwrap();
        assert_eq!(shelf.get_or_make("a, seed 1", || Ok(7)).unwrap(), 7);
        let again = Shelf::open(&settings(folder.path(), false)).unwrap();
        assert_eq!(again.get_or_make("a, seed 1", never).unwrap(), 7);
        assert_eq!(again.get_or_make("a, seed 2", || Ok(8_u64)).unwrap(), 8);
        fs::write(folder.path().join(format!("{}.cbor", file_name("a, seed 1"))), [0xff]).unwrap();
        assert_eq!(again.get_or_make("a, seed 1", || Ok(9)).unwrap(), 9);
    }

    #[test]
    fn shelf_of_other_settings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Shelf::open(&settings(folder.path(), false)).unwrap();
        let error = Shelf::open(&settings(folder.path(), true)).err().unwrap().to_string();
        assert!(error.contains("take another folder"), "{error}");
    }
}
