//! A node's folder, as far as a client needs it: where it is, and how to reach the node that runs in it.
//!
//! ```text
//! address   where the node listens, while it runs
//! token     what a client must show; only its owner can read it
//! ```

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The variable that names the folder.
pub const VARIABLE: &str = "SHOAL_HOME";
/// Only its owner can read it.
const PRIVATE_FILE: u32 = 0o600;
/// Only its owner can enter it.
const PRIVATE_FOLDER: u32 = 0o700;
/// More bytes than an address or a token has.
const SMALL: u64 = 256;

/// A node's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

/// Why a folder is of no use.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Nobody says where it is.
    #[error("no folder for the node: neither --home nor {VARIABLE} nor HOME says where")]
    Nowhere,
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can read what only the owner may.
    #[error("others can read {}; `chmod 600` it, or remove it and start the node again", .0.display())]
    Open(PathBuf),
    /// Something else lies there.
    #[error("{} does not hold {what}; remove it and start the node again", path.display())]
    Nonsense {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// Nobody has written it.
    #[error("no node runs in {}", .0.display())]
    NotRunning(PathBuf),
}

impl Home {
    /// The folder that was given, or that the environment names, or the usual one.
    pub fn choose(given: Option<&Path>) -> Result<Home, HomeError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Home::from_parts(given, set(VARIABLE), set("XDG_STATE_HOME"), set("HOME"))
    }

    fn from_parts(
        given: Option<&Path>,
        variable: Option<OsString>,
        state: Option<OsString>,
        home: Option<OsString>,
    ) -> Result<Home, HomeError> {
        let named = given.map(Path::to_owned).or(variable.map(PathBuf::from));
        // The convention asks to pass over a folder that is not absolute.
        let state = state.map(PathBuf::from).filter(|state| state.is_absolute());
        let usual = || state.or_else(|| Some(PathBuf::from(home?).join(".local/state")));
        let path = named.or_else(|| Some(usual()?.join("shoal"))).ok_or(HomeError::Nowhere)?;
        let absolute = std::path::absolute(&path);
        Ok(Home(absolute.map_err(|source| HomeError::Io { doing: "find", path, source })?))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, if it is not there.
    pub fn create(&self) -> Result<(), HomeError> {
        let made = fs::DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(&self.0);
        made.map_err(self.wrong("make the folder", &self.0))
    }

    /// Where the node in this folder listens.
    pub fn address(&self) -> Result<SocketAddr, HomeError> {
        let path = self.0.join("address");
        let text = self.read(&path)?;
        text.trim().parse().map_err(|_| HomeError::Nonsense { path, what: "an address" })
    }

    /// What a client must show.
    pub fn token(&self) -> Result<String, HomeError> {
        let path = self.0.join("token");
        let mode = fs::metadata(&path).map(|facts| facts.mode()).unwrap_or(PRIVATE_FILE);
        if mode & 0o077 != 0 {
            return Err(HomeError::Open(path));
        }
        let text = self.read(&path)?;
        let token = text.trim();
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(HomeError::Nonsense { path, what: "a token" });
        }
        Ok(token.to_owned())
    }

    /// Says where the node listens.
    pub fn publish(&self, address: SocketAddr) -> Result<(), HomeError> {
        self.write("address", &address.to_string())
    }

    /// Nobody listens any more.
    pub fn withdraw(&self) {
        // A file that stays is found out by the next client: nobody answers there.
        let _ = fs::remove_file(self.0.join("address"));
    }

    /// Keeps what a client must show.
    pub fn keep_token(&self, token: &str) -> Result<(), HomeError> {
        self.write("token", token)
    }

    fn read(&self, path: &Path) -> Result<String, HomeError> {
        let read = || {
            let mut text = String::new();
            io::Read::read_to_string(&mut io::Read::take(File::open(path)?, SMALL), &mut text)?;
            Ok(text)
        };
        read().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => HomeError::NotRunning(self.0.clone()),
            _ => HomeError::Io { doing: "read", path: path.to_owned(), source },
        })
    }

    /// Replaces a file in one step: nobody reads half of it.
    fn write(&self, name: &str, text: &str) -> Result<(), HomeError> {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(&new)?;
            writeln!(file, "{text}")?;
            file.sync_data()?;
            fs::rename(&new, &path)
        };
        write().map_err(self.wrong("write", &path))
    }

    fn wrong(&self, doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HomeError {
        let path = path.to_owned();
        move |source| HomeError::Io { doing, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        given: Option<&str>,
        variable: Option<&str>,
        state: Option<&str>,
        home: Option<&str>,
    ) -> Option<String> {
        let os = |text: Option<&str>| text.map(OsString::from);
        let home = Home::from_parts(given.map(Path::new), os(variable), os(state), os(home)).ok()?;
        Some(home.path().to_str()?.to_owned())
    }

    #[test]
    fn folder_is_the_one_given_then_named_then_the_usual_one() {
        let all = chosen(Some("/a"), Some("/b"), Some("/c"), Some("/d"));
        assert_eq!(all.as_deref(), Some("/a"));
        assert_eq!(chosen(None, Some("/b"), Some("/c"), Some("/d")).as_deref(), Some("/b"));
        assert_eq!(chosen(None, None, Some("/c"), Some("/d")).as_deref(), Some("/c/shoal"));
        assert_eq!(chosen(None, None, Some("c"), Some("/d")).as_deref(), Some("/d/.local/state/shoal"));
        assert_eq!(chosen(None, None, None, None), None);
    }

    #[test]
    fn what_is_kept_is_read_back_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::choose(Some(&folder.path().join("new"))).unwrap();
        home.create().unwrap();
        assert!(matches!(home.address(), Err(HomeError::NotRunning(_))));
        let address = "127.0.0.1:4000".parse().unwrap();
        home.publish(address).unwrap();
        home.keep_token("0123456789abcdef0123").unwrap();
        assert_eq!(home.address().unwrap(), address);
        assert_eq!(home.token().unwrap(), "0123456789abcdef0123");
        let mode = fs::metadata(home.path().join("token")).unwrap().mode();
        assert_eq!(mode & 0o777, PRIVATE_FILE);
        home.withdraw();
        assert!(matches!(home.address(), Err(HomeError::NotRunning(_))));
    }

    #[test]
    fn token_that_others_can_read_and_files_of_nonsense_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::choose(Some(folder.path())).unwrap();
        fs::write(folder.path().join("token"), "0123456789abcdef0123").unwrap();
        fs::set_permissions(folder.path().join("token"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(home.token(), Err(HomeError::Open(_))));
        fs::write(folder.path().join("address"), "somewhere").unwrap();
        assert!(matches!(home.address(), Err(HomeError::Nonsense { .. })));
        home.keep_token("short").unwrap();
        assert!(matches!(home.token(), Err(HomeError::Nonsense { .. })));
    }

    use std::os::unix::fs::PermissionsExt;
}
