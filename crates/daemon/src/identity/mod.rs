//! Who this node is: an Ed25519 key in a file that nobody else may read, and the id that follows from it.

pub(crate) mod file;
mod known;
pub mod seal;
pub(crate) mod text;

use std::io;
use std::path::{Path, PathBuf};

use iroh::SecretKey;
use shoal_model::NodeId;
use shoal_model::envelope::{PublicKey, Signature};

use file::Kind;

/// The name of the key's file in a node's folder.
pub const KEY_FILE: &str = "node.key";

/// What the file keeps.
const NODE_KEY: Kind = Kind {
    head: "shoal node key 1 (keep it secret): ",
    context: "shoal 2026-11-15 node key file v1",
    whose: "this node",
    remedy: "remove it and join the grid anew",
};
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
    /// Others could speak as its owner.
    #[error(
        "{} can be read by others (mode {mode:o}): anyone who has read it can speak as {whose}; \
         run `chmod 600` on it, or {remedy} if it may have been copied",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Who could be spoken for.
        whose: &'static str,
        /// What to do if it was copied.
        remedy: &'static str,
    },
    /// Not what was once written.
    #[error("{} is damaged ({what}); restore it from a backup, or {remedy}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
        /// What to do without a backup.
        remedy: &'static str,
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
        match Identity::read(&path, &NODE_KEY) {
            Err(IdentityError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let identity = Identity::generate();
                NODE_KEY.write(folder, &path, &identity.secret.to_bytes())?;
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

    /// The key in a file that keeps nothing else.
    pub(crate) fn read(path: &Path, kind: &Kind) -> Result<Identity, IdentityError> {
        let what = "it is too short or too long";
        let damaged = |_| IdentityError::Damaged { path: path.to_owned(), what, remedy: kind.remedy };
        let bytes: [u8; 32] = kind.read(path)?.try_into().map_err(damaged)?;
        Ok(Identity::from_bytes(&bytes))
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
    known::or_check(key, digest, signature, || {
        let signature = iroh::Signature::from_bytes(&signature.0);
        iroh::PublicKey::from_bytes(&key.0).is_ok_and(|key| key.verify(digest, &signature).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

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
