//! A node's folder, as far as a client needs it: where it is, and how to reach the node that runs in it.
//!
//! ```text
//! address   where the node listens, while it runs; with the fingerprint of its certificate where it speaks TLS
//! grid      the key of the grid that it is in, so that a client need not ask; while it runs, and on its machine only
//! token     what a client must show; only its owner can read it
//! ```

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::certificate::Fingerprint;

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

/// How a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Where: a host and a port, as in `127.0.0.1:4000`.
    pub address: String,
    /// The certificate that it shows there; none where it speaks plain HTTP, on this machine.
    pub certificate: Option<Fingerprint>,
}

impl Reached {
    /// Reads what a folder or a user says.
    fn read(text: &str) -> Option<Reached> {
        let mut words = text.split_whitespace();
        let (address, certificate) = (words.next()?, words.next());
        let (host, port) = address.rsplit_once(':')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
        if host.is_empty()
            || !host.bytes().all(plain)
            || port.parse::<u16>().is_err()
            || words.next().is_some()
        {
            return None;
        }
        let certificate = certificate.map(str::parse).transpose().ok()?;
        // What is not encrypted does not leave this machine.
        let local = address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
        (local || certificate.is_some()).then(|| Reached { address: address.to_owned(), certificate })
    }
}

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

    /// How the node of this folder is reached.
    pub fn reached(&self) -> Result<Reached, HomeError> {
        let path = self.0.join("address");
        let text = self.read(&path)?;
        Reached::read(&text).ok_or(HomeError::Nonsense { path, what: "an address" })
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

    /// The key of the grid that the node is in, if the folder says it.
    pub fn grid(&self) -> Option<String> {
        let text = self.read(&self.0.join("grid")).ok()?;
        let key = text.trim();
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        plain.then(|| key.to_owned())
    }

    /// Says how the node is reached, and in which grid it is if that is known.
    pub fn publish(&self, reached: &Reached, grid: Option<&str>) -> Result<(), HomeError> {
        let Reached { address, certificate } = reached;
        let text = certificate.map_or_else(|| address.clone(), |shown| format!("{address} {shown}"));
        if Reached::read(&text).as_ref() != Some(reached) {
            return Err(HomeError::Nonsense { path: self.0.join("address"), what: "an address" });
        }
        // First: who finds the address finds no other grid.
        match grid {
            Some(grid) => self.write("grid", grid)?,
            None => self.remove("grid"),
        }
        self.write("address", &text)
    }

    /// Nobody listens any more.
    pub fn withdraw(&self) {
        self.remove("address");
        self.remove("grid");
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

    /// A file that stays is found out by the next client: nobody answers there.
    fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.0.join(name));
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
        assert!(matches!(home.reached(), Err(HomeError::NotRunning(_))));
        let here = Reached { address: "127.0.0.1:4000".to_owned(), certificate: None };
        home.publish(&here, Some("7f3a")).unwrap();
        assert_eq!(home.grid().as_deref(), Some("7f3a"));
        home.keep_token("0123456789abcdef0123").unwrap();
        assert_eq!(home.reached().unwrap(), here);
        let certificate = Some(Fingerprint::of(b"certificate"));
        let there = Reached { address: "node7.lab.example:4434".to_owned(), certificate };
        home.publish(&there, None).unwrap();
        assert_eq!(home.grid(), None, "that of another node is not known");
        assert_eq!(home.reached().unwrap(), there);
        assert_eq!(home.token().unwrap(), "0123456789abcdef0123");
        let mode = fs::metadata(home.path().join("token")).unwrap().mode();
        assert_eq!(mode & 0o777, PRIVATE_FILE);
        home.publish(&here, Some("no key")).unwrap();
        assert_eq!(home.grid(), None);
        home.withdraw();
        assert!(!home.path().join("grid").exists());
        assert!(matches!(home.reached(), Err(HomeError::NotRunning(_))));
    }

    #[test]
    fn address_of_another_machine_needs_a_certificate() {
        let fingerprint = Fingerprint::of(b"certificate");
        for (text, fine) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("192.0.2.7:1", false),
            ("node7:1", false),
            (&format!("192.0.2.7:1 {fingerprint}"), true),
            (&format!("node7:1 {fingerprint} more"), false),
            (&format!("node7 {fingerprint}"), false),
            ("127.0.0.1:1 sha256:00", false),
            (&format!("evil/@node:1 {fingerprint}"), false),
        ] {
            assert_eq!(Reached::read(text).is_some(), fine, "{text}");
        }
    }

    #[test]
    fn token_that_others_can_read_and_files_of_nonsense_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::choose(Some(folder.path())).unwrap();
        fs::write(folder.path().join("token"), "0123456789abcdef0123").unwrap();
        fs::set_permissions(folder.path().join("token"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(home.token(), Err(HomeError::Open(_))));
        fs::write(folder.path().join("address"), "somewhere").unwrap();
        assert!(matches!(home.reached(), Err(HomeError::Nonsense { .. })));
        home.keep_token("short").unwrap();
        assert!(matches!(home.token(), Err(HomeError::Nonsense { .. })));
    }

    use std::os::unix::fs::PermissionsExt;
}
