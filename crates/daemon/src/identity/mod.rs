//! Who this node is: an Ed25519 key in a file that nobody else may read, and the id that follows from it.

pub(crate) mod text;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use iroh::SecretKey;
use shoal_model::NodeId;
use shoal_model::envelope::{PublicKey, Signature};

/// The name of the key's file in a node's folder.
pub const KEY_FILE: &str = "node.key";

/// How the file begins; says what it is to whoever opens it.
const HEAD: &str = "shoal node key 1 (keep it secret): ";
/// The most bytes that a sound file has, with room to spare.
const FILE_MAX: u64 = 1024;
/// Tells the sum of a key's file from all others.
const SUM_CONTEXT: &str = "shoal 2026-11-15 node key file v1";
/// Tells the hash that makes a node's id from all others.
const ID_CONTEXT: &str = "shoal 2026-11-15 node id v1";

/// A node's key.
#[derive(Clone)]
pub struct Identity {
    secret: SecretKey,
}

/// What can go wrong with a key's file.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
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
    /// Others could speak as this node.
    #[error(
        "{} can be read by others (mode {mode:o}): anyone who has read it can speak as this node; \
         run `chmod 600` on it, or remove it and join the grid anew if it may have been copied",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Not what was once written.
    #[error("{} is damaged ({what}); restore it from a backup, or remove it and join the grid anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Identity {
    /// A new key, kept nowhere.
    pub fn generate() -> Identity {
        Identity { secret: SecretKey::generate() }
    }

    /// The key with these bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Identity {
        Identity { secret: SecretKey::from_bytes(bytes) }
    }

    /// The key of the node in this folder; made and kept there if there is none.
    pub fn open(folder: &Path) -> Result<Identity, IdentityError> {
        let path = folder.join(KEY_FILE);
        match Identity::read(&path) {
            Err(IdentityError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let identity = Identity::generate();
                identity.write(folder, &path)?;
                Ok(identity)
            }
            read => read,
        }
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(*self.secret.public().as_bytes())
    }

    /// The id of the node that has this key.
    pub fn node(&self) -> NodeId {
        node_id(&self.public())
    }

    /// Signs a digest.
    pub fn sign(&self, digest: &[u8; 32]) -> Signature {
        Signature(self.secret.sign(digest).to_bytes())
    }

    pub(crate) fn secret(&self) -> &SecretKey {
        &self.secret
    }

    fn read(path: &Path) -> Result<Identity, IdentityError> {
        let damaged = |what| IdentityError::Damaged { path: path.to_owned(), what };
        let file = File::open(path).map_err(failed("open", path))?;
        let mode = file.metadata().map_err(failed("look at", path))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { path: path.to_owned(), mode });
        }
        let mut content = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut content).map_err(failed("read", path))?;
        let content = String::from_utf8(content).map_err(|_| damaged("it is no text"))?;
        let text =
            content.strip_prefix(HEAD).ok_or_else(|| damaged("it does not begin as a node key does"))?;
        let bytes = text::read(SUM_CONTEXT, text.trim_end()).map_err(|_| damaged("its sum does not fit"))?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| damaged("it is too short or too long"))?;
        Ok(Identity::from_bytes(&bytes))
    }

    /// Writes the file whole or not at all: beside its place first, then moved there.
    fn write(&self, folder: &Path, path: &Path) -> Result<(), IdentityError> {
        let draft = path.with_extension("key.new");
        // What a crash left half-written was never used.
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &draft)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .map_err(failed("create", &draft))?;
        let content = format!("{HEAD}{}\n", text::write(SUM_CONTEXT, &self.secret.to_bytes()));
        file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", &draft))?;
        std::fs::rename(&draft, path).map_err(failed("move a new key to", path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
    }
}

/// The id of the node with this key: the first eight bytes of a hash of it that are not all zero.
pub fn node_id(key: &PublicKey) -> NodeId {
    let mut bytes = blake3::Hasher::new_derive_key(ID_CONTEXT).update(&key.0).finalize_xof();
    loop {
        let mut id = [0; 8];
        bytes.fill(&mut id);
        match u64::from_be_bytes(id) {
            0 => {}
            id => return NodeId(id),
        }
    }
}

/// Whether the owner of a key has signed a digest.
pub(crate) fn signed_by(key: &PublicKey, digest: &[u8; 32], signature: &Signature) -> bool {
    let signature = iroh::Signature::from_bytes(&signature.0);
    iroh::PublicKey::from_bytes(&key.0).is_ok_and(|key| key.verify(digest, &signature).is_ok())
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    move |source| IdentityError::Io { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn key_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = Identity::open(folder.path()).unwrap();
        let path = folder.path().join(KEY_FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let found = Identity::open(folder.path()).unwrap();
        assert_eq!(found.public(), made.public());
        assert_ne!(made.node(), NodeId(0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Identity::open(folder.path()).unwrap();
        let path = folder.path().join(KEY_FILE);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = Identity::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("mode 640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn damaged_key_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        Identity::open(folder.path()).unwrap();
        let path = folder.path().join(KEY_FILE);
        let sound = std::fs::read_to_string(&path).unwrap();
        let last = if sound.trim_end().ends_with('0') { "4\n" } else { "0\n" };
        let slip = format!("{}{last}", &sound[..sound.len() - 2]);
        for damaged in ["", "something else", &sound[..sound.len() / 2], &slip] {
            std::fs::write(&path, damaged).unwrap();
            let error = Identity::open(folder.path()).err().unwrap().to_string();
            assert!(error.contains("is damaged") && error.contains("backup"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn id_follows_from_the_key_for_all_time() {
        let identity = Identity::from_bytes(&[7; 32]);
        assert_eq!(identity.node(), node_id(&identity.public()));
        assert_ne!(identity.node(), Identity::from_bytes(&[8; 32]).node());
    }

    #[test]
    fn signature_fits_its_key_and_digest_only() {
        let (identity, other) = (Identity::from_bytes(&[7; 32]), Identity::from_bytes(&[8; 32]));
        let signature = identity.sign(&[1; 32]);
        assert!(signed_by(&identity.public(), &[1; 32], &signature));
        assert!(!signed_by(&identity.public(), &[2; 32], &signature));
        assert!(!signed_by(&other.public(), &[1; 32], &signature));
        assert!(!signed_by(&PublicKey([0xff; 32]), &[1; 32], &signature));
    }
}
