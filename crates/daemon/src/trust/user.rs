//! The keys that people keep in their own folder: one of the user, and one of each organisation that they run.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use shoal_model::envelope::{Envelope, Pass, PublicKey};
use shoal_model::{Name, Time, text};

use super::demand::{Demand, Matter};
use super::pass;
use crate::identity::file::Kind;
use crate::identity::{Identity, IdentityError};

/// The variable that names the folder.
pub const VARIABLE: &str = "SHOAL_CONFIG";
const USER_FILE: &str = "user.key";
const PASS_FILE: &str = "user.pass";
const ORGANISATIONS: &str = "organisations";
/// Bytes of a file with a pass, at most.
const PASS_FILE_MAX: u64 = 8192;

const USER_KEY: Kind = Kind {
    head: "shoal user key 1 (keep it secret): ",
    context: "shoal 2026-11-15 user key file v1",
    whose: "its user",
    remedy: "remove it, make a new one with `shoal user new`, and have the old one revoked",
};
const ORGANISATION_KEY: Kind = Kind {
    head: "shoal organisation key 1 (keep it secret): ",
    context: "shoal 2026-11-15 organisation key file v1",
    whose: "its organisation",
    remedy: "remove it, make a new one with `shoal org new`, and have the grid trust that one",
};

/// A user's folder.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// A user, with the secret key.
#[derive(Clone)]
pub struct User {
    identity: Identity,
    name: Name,
}

/// What is wrong with what a user keeps.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// Nowhere to keep anything.
    #[error("no folder for keys: set {VARIABLE}, XDG_CONFIG_HOME or HOME")]
    Nowhere,
    /// A key's file.
    #[error(transparent)]
    Key(#[from] IdentityError),
    /// There is one already.
    #[error("{} is there already; whoever has jobs signed with it would lose them: move it away first", .0.display())]
    Already(PathBuf),
    /// There is none.
    #[error("there is no key of `{0}` here; `shoal org new {0}` makes one")]
    NoOrganisation(Name),
    /// A name that is no file's.
    #[error(
        "`{0}` cannot be an organisation: its key's file is called so; use letters, digits and - _ . @ + only"
    )]
    Name(Name),
    /// A file with a pass.
    #[error("{}: {what}", path.display())]
    Pass {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Folder {
    /// The folder that the environment names, or the usual one.
    pub fn choose() -> Result<Folder, UserError> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Folder::from_parts(set(VARIABLE), set("XDG_CONFIG_HOME"), set("HOME"))
    }

    fn from_parts(
        named: Option<OsString>,
        config: Option<OsString>,
        home: Option<OsString>,
    ) -> Result<Folder, UserError> {
        let config = config.map(PathBuf::from).filter(|config| config.is_absolute());
        let usual = || config.or_else(|| Some(PathBuf::from(home?).join(".config")));
        let path = named.map(PathBuf::from).or_else(|| Some(usual()?.join("shoal")));
        path.map(Folder).ok_or(UserError::Nowhere)
    }

    /// This folder.
    pub fn at(path: &Path) -> Folder {
        Folder(path.to_owned())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The user whose folder it is; none if there is no key.
    pub fn user(&self) -> Result<Option<User>, UserError> {
        let path = self.0.join(USER_FILE);
        let what = "it is too short or too long";
        let damaged = || IdentityError::Damaged { path: path.clone(), what, remedy: USER_KEY.remedy };
        let bytes = match USER_KEY.read(&path) {
            Err(IdentityError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            bytes => bytes?,
        };
        let (key, name) = bytes.split_first_chunk::<32>().ok_or_else(damaged)?;
        let name = str::from_utf8(name).ok().and_then(|name| name.parse().ok()).ok_or_else(damaged)?;
        Ok(Some(User { identity: Identity::from_bytes(key), name }))
    }

    /// Makes the user's key.
    pub fn make_user(&self, name: Name) -> Result<User, UserError> {
        let path = self.0.join(USER_FILE);
        if self.user()?.is_some() {
            return Err(UserError::Already(path));
        }
        let identity = Identity::generate();
        let bytes = [&identity.secret().to_bytes()[..], name.as_str().as_bytes()].concat();
        USER_KEY.write(&self.0, &path, &bytes)?;
        Ok(User { identity, name })
    }

    /// The pass that was kept, if there is one.
    pub fn pass(&self) -> Result<Option<Pass>, UserError> {
        use std::io::Read;
        let path = self.0.join(PASS_FILE);
        let wrong = |what: String| UserError::Pass { path: path.clone(), what };
        let mut line = String::new();
        match std::fs::File::open(&path).and_then(|file| file.take(PASS_FILE_MAX).read_to_string(&mut line)) {
            Ok(_) => pass::read(&line).map(Some).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Keeps a pass, to be shown with every job from now on.
    pub fn keep_pass(&self, pass: &Pass) -> Result<(), UserError> {
        let path = self.0.join(PASS_FILE);
        let wrong = |error: io::Error| UserError::Pass { path: path.clone(), what: error.to_string() };
        let new = path.with_extension("new");
        let write = || {
            std::fs::create_dir_all(&self.0)?;
            std::fs::write(&new, format!("{}\n", pass::write(pass)))?;
            std::fs::rename(&new, &path)
        };
        write().map_err(wrong)
    }

    fn organisation_file(&self, name: &Name) -> Result<(PathBuf, PathBuf), UserError> {
        // A name may have slashes, and dots.
        if name.as_str().contains('/') || name.as_str().starts_with('.') || name.as_str().contains(':') {
            return Err(UserError::Name(name.clone()));
        }
        let folder = self.0.join(ORGANISATIONS);
        let path = folder.join(format!("{name}.key"));
        Ok((folder, path))
    }

    /// The key of an organisation.
    pub fn organisation(&self, name: &Name) -> Result<Identity, UserError> {
        let (_, path) = self.organisation_file(name)?;
        match Identity::read(&path, &ORGANISATION_KEY) {
            Err(IdentityError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(UserError::NoOrganisation(name.clone()))
            }
            key => Ok(key?),
        }
    }

    /// Makes the key of an organisation.
    pub fn make_organisation(&self, name: &Name) -> Result<Identity, UserError> {
        let (folder, path) = self.organisation_file(name)?;
        match self.organisation(name) {
            Err(UserError::NoOrganisation(_)) => {}
            Ok(_) => return Err(UserError::Already(path)),
            Err(error) => return Err(error),
        }
        let identity = Identity::generate();
        ORGANISATION_KEY.write(&folder, &path, &identity.secret().to_bytes())?;
        Ok(identity)
    }
}

impl User {
    /// The public key.
    pub fn key(&self) -> PublicKey {
        self.identity.public()
    }

    /// What the user is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What the user wants done about a job.
    pub fn demand(&self, matter: Matter, now: Time) -> io::Result<Demand> {
        Ok(Demand::by_user(&self.identity, matter, now, shoal_api::secret::draw()?))
    }

    /// Signs a job.
    pub fn seal(&self, envelope: Envelope) -> Envelope {
        envelope.sealed(self.key(), |digest| self.identity.sign(digest))
    }
}

/// A text as a name: what does not belong there is left out, and what is too long cut off.
pub fn as_name(text: &str) -> Option<Name> {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text: String = text.chars().filter(plain).take(text::MAX_NAME_BYTES).collect();
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn user_is_made_once_with_a_name_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(&folder.path().join("new"));
        assert!(folder.user().unwrap().is_none());
        let made = folder.make_user("alice".parse().unwrap()).unwrap();
        let mode = folder.path().join(USER_FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let found = folder.user().unwrap().unwrap();
        assert_eq!((found.key(), found.name().as_str()), (made.key(), "alice"));
        assert!(matches!(folder.make_user("bob".parse().unwrap()), Err(UserError::Already(_))));
    }

    #[test]
    fn user_key_that_others_can_read_or_that_is_damaged_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(folder.path());
        folder.make_user("alice".parse().unwrap()).unwrap();
        let path = folder.path().join(USER_FILE);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = folder.user().err().unwrap().to_string();
        assert!(
            error.contains("mode 644") && error.contains("chmod 600") && error.contains("its user"),
            "{error}"
        );
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let sound = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, sound.replacen(&sound[50..52], "zz", 1)).unwrap();
        let error = folder.user().err().unwrap().to_string();
        assert!(error.contains("is damaged") && error.contains("shoal user new"), "{error}");
    }

    #[test]
    fn organisation_key_is_kept_by_name_and_never_outside_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::at(folder.path());
        let lab = "lab-a".parse().unwrap();
        assert!(matches!(folder.organisation(&lab), Err(UserError::NoOrganisation(_))));
        let made = folder.make_organisation(&lab).unwrap();
        assert_eq!(folder.organisation(&lab).unwrap().public(), made.public());
        assert!(matches!(folder.make_organisation(&lab), Err(UserError::Already(_))));
        for name in ["../user", "a/b", ".hidden"] {
            let refused = folder.make_organisation(&name.parse().unwrap());
            assert!(matches!(refused, Err(UserError::Name(_))), "{name}");
        }
    }

    #[test]
    fn folder_is_the_one_named_then_the_usual_one() {
        let chosen = |named: Option<&str>, config: Option<&str>, home: Option<&str>| {
            let os = |text: Option<&str>| text.map(OsString::from);
            Some(Folder::from_parts(os(named), os(config), os(home)).ok()?.0.to_str()?.to_owned())
        };
        assert_eq!(chosen(Some("/a"), Some("/b"), Some("/c")).as_deref(), Some("/a"));
        assert_eq!(chosen(None, Some("/b"), Some("/c")).as_deref(), Some("/b/shoal"));
        assert_eq!(chosen(None, Some("b"), Some("/c")).as_deref(), Some("/c/.config/shoal"));
        assert_eq!(chosen(None, None, None), None);
    }
}
