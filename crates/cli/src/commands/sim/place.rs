//! Where results go: the folder that is named, or a new one.

use std::path::{Path, PathBuf};

use shoal_simulator::report::{Folder, FolderError};

/// Where results go that nobody gave a place.
const OUT: &str = "out";

/// What the command line says of it.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Place {
    /// Write the results into this folder [default: a new one, out/NAME-001 and so on]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace what is in the folder
    #[arg(long, requires = "out")]
    force: bool,
}

impl Place {
    /// The folder, before the work, so that nobody works in vain; results without a place go by this name.
    pub fn folder(&self, name: &str) -> Result<Folder, FolderError> {
        match &self.out {
            Some(path) => Folder::named(path, self.force),
            None => Folder::numbered(Path::new(OUT), name),
        }
    }
}
