//! A workload as a file that appears whole or not at all; its name says the format and how it is packed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use super::{Format, Workload, write_gwf, write_swf};

/// The preset of xz: its own default.
const XZ_PRESET: u32 = 6;

/// Why a workload is not in a file.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The name does not say which format.
    #[error("{}: ends neither in .swf nor in .gwf, with .gz or .xz behind it if it is to be packed", .0.display())]
    Name(PathBuf),
    /// Something is there already.
    #[error("{}: is there already", .0.display())]
    Exists(PathBuf),
    /// The system says no.
    #[error("{}: cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Xz,
}

/// A file that a workload is going to be written to.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    format: Format,
    packing: Packing,
}

impl Target {
    /// A file of this name; one that is there already is replaced only if that is wished.
    pub fn named(path: &Path, replace: bool) -> Result<Target, SaveError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (name, packing) = match name.rsplit_once('.') {
            Some((name, "gz")) => (name, Packing::Gzip),
            Some((name, "xz")) => (name, Packing::Xz),
            _ => (name.as_str(), Packing::Plain),
        };
        let format = match name.rsplit_once('.') {
            Some((_, "swf")) => Format::Swf,
            Some((_, "gwf")) => Format::Gwf,
            _ => return Err(SaveError::Name(path.to_owned())),
        };
        if path.exists() && !replace {
            return Err(SaveError::Exists(path.to_owned()));
        }
        Ok(Target { path: path.to_owned(), format, packing })
    }

    /// Writes the workload.
    pub fn save(&self, workload: &Workload) -> Result<(), SaveError> {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(self.path.file_name().unwrap_or_default());
        hidden.push(format!(".{}.partial", std::process::id()));
        let draft = self.path.with_file_name(hidden);
        let done = self.write(workload, &draft).and_then(|()| fs::rename(&draft, &self.path));
        done.map_err(|cause| {
            let _ = fs::remove_file(&draft);
            SaveError::Unwritable { path: self.path.clone(), cause }
        })
    }

    fn write(&self, workload: &Workload, draft: &Path) -> io::Result<()> {
        let file = BufWriter::new(File::create(draft)?);
        let file = match self.packing {
            Packing::Plain => {
                let mut file = file;
                self.put(workload, &mut file)?;
                file
            }
            Packing::Gzip => {
                let mut packed = GzEncoder::new(file, flate2::Compression::default());
                self.put(workload, &mut packed)?;
                packed.finish()?
            }
            Packing::Xz => {
                let mut packed = XzEncoder::new(file, XZ_PRESET);
                self.put(workload, &mut packed)?;
                packed.finish()?
            }
        };
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    fn put(&self, workload: &Workload, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Swf => write_swf(workload, out),
            Format::Gwf => write_gwf(workload, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Change, Length, Trace, Uniform};

    fn drawn() -> Workload {
        let uniform = Uniform {
            nodes: 50,
            jobs: 40,
            first_secs: 0.0,
            gap_secs: [1.0, 90.0],
            width: [1, 20],
            length_secs: [1.0, 3_000.0],
            overestimate: 2.0,
            change: Change::default(),
        };
        uniform.generate(3).unwrap()
    }

    #[test]
    fn file_of_any_format_and_packing_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = drawn();
        for name in ["a.swf", "a.gwf", "A.SWF.GZ", "a.gwf.xz", "a.b.swf.xz"] {
            let path = folder.path().join(name);
            Target::named(&path, false).unwrap().save(&drawn).unwrap();
            let read = Trace { length: Length::Run, ..Trace::new(&path) }.read().unwrap();
            let figures = |workload: &Workload| -> Vec<_> {
                workload.jobs.iter().map(|job| (job.submit, job.run, job.requested, job.width)).collect()
            };
            assert_eq!(figures(&read), figures(&drawn), "{name}");
            assert_eq!(read.nodes, drawn.nodes, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "no draft is left");
    }

    #[test]
    fn what_cannot_be_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str| Target::named(&folder.path().join(name), false).unwrap_err().to_string();
        assert!(refused("jobs.txt").contains("ends neither in .swf nor in .gwf"));
        assert!(refused("swf").contains("ends neither in .swf nor in .gwf"));
        fs::write(folder.path().join("a.swf"), "mine").unwrap();
        assert!(refused("a.swf").ends_with("a.swf: is there already"));
        assert_eq!(fs::read_to_string(folder.path().join("a.swf")).unwrap(), "mine");
        let drawn = drawn();
        let nowhere = Target::named(&folder.path().join("none/a.swf"), false).unwrap();
        assert!(nowhere.save(&drawn).unwrap_err().to_string().contains("none/a.swf: cannot be written"));
        Target::named(&folder.path().join("a.swf"), true).unwrap().save(&drawn).unwrap();
    }
}
