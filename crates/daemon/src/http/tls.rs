//! The certificate that a node shows to other machines: named in its settings, or made once and kept in its folder.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::BASE64;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use shoal_api::Fingerprint;
use tokio_rustls::TlsAcceptor;

use crate::settings::HttpSettings;

/// The certificate in a node's folder.
const CERTIFICATE: &str = "http.crt";
/// Its key.
const KEY: &str = "http.key";
/// The name in a certificate that a node signs itself: it is known by its fingerprint.
const NAME: &str = "shoal";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One of the two is missing.
    #[error("node.toml names only one of `http.certificate` and `http.key`: name both, or neither")]
    Half,
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
    /// Others can read the key.
    #[error("others can read {} (mode {mode:o}): run `chmod 600` on it, or remove it to have a new one made", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file holds something else.
    #[error("{} holds no {what} in PEM: {why}", path.display())]
    Nonsense {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The two do not go together.
    #[error("the certificate in {} cannot be used with its key: {why}", path.display())]
    Unfit {
        /// The certificate.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Unmade(String),
}

/// A certificate that can be shown.
pub struct Certificate {
    /// Shows it.
    pub acceptor: TlsAcceptor,
    /// What it is known by.
    pub fingerprint: Fingerprint,
}

impl Certificate {
    /// The certificate of a node: the one that its settings name, or its own, which is made if there is none.
    pub fn open(folder: &Path, settings: &HttpSettings) -> Result<Certificate, TlsError> {
        let (certificate, key) = match (&settings.certificate, &settings.key) {
            (Some(certificate), Some(key)) => (folder.join(certificate), folder.join(key)),
            (None, None) => {
                let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
                if !certificate.exists() || !key.exists() {
                    make(&certificate, &key)?;
                }
                (certificate, key)
            }
            (Some(_), None) | (None, Some(_)) => return Err(TlsError::Half),
        };
        Certificate::read(&certificate, &key)
    }

    fn read(certificate: &Path, key: &Path) -> Result<Certificate, TlsError> {
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(certificate, "certificate", error))?;
        let first =
            chain.first().ok_or_else(|| wrong(certificate, "certificate", pem::Error::NoItemsFound))?;
        let fingerprint = Fingerprint::of(first);
        let mode = fs::metadata(key).map_err(|source| io_error("read", key, source))?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TlsError::Exposed { path: key.to_owned(), mode });
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, "key", error))?;
        let unfit =
            |error: rustls::Error| TlsError::Unfit { path: certificate.to_owned(), why: error.to_string() };
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .map_err(unfit)?
                .with_no_client_auth()
                .with_single_cert(chain, secret)
                .map_err(unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Certificate { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> TlsError {
    TlsError::Io { doing, path: path.to_owned(), source }
}

fn wrong(path: &Path, what: &'static str, error: pem::Error) -> TlsError {
    match error {
        pem::Error::Io(source) => io_error("read", path, source),
        error => TlsError::Nonsense { path: path.to_owned(), what, why: error.to_string() },
    }
}

/// Makes a certificate that its node signs itself.
fn make(certificate: &Path, key: &Path) -> Result<(), TlsError> {
    let unmade = |error: rcgen::Error| TlsError::Unmade(error.to_string());
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(unmade)?;
    write(key, 0o600, "PRIVATE KEY", made.signing_key.serialized_der())?;
    write(certificate, 0o644, "CERTIFICATE", made.cert.der())
}

/// Writes a PEM file in one step: nobody reads half of it.
fn write(path: &Path, mode: u32, label: &str, bytes: &[u8]) -> Result<(), TlsError> {
    let encoded = BASE64.encode(bytes);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).filter_map(|line| str::from_utf8(line).ok()).collect();
    let text = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"));
    let new = path.with_extension("new");
    let written = || {
        // What a crash left behind may have other permissions.
        let _ = fs::remove_file(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&new, path)
    };
    written().map_err(|source| io_error("write", path, source))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn certificate_is_made_once_and_its_key_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let settings = HttpSettings::default();
        let made = Certificate::open(folder.path(), &settings).unwrap().fingerprint;
        let key = folder.path().join(KEY);
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Certificate::open(folder.path(), &settings).unwrap().fingerprint, made);
        let text = fs::read(folder.path().join(CERTIFICATE)).unwrap();
        assert_eq!(Fingerprint::of_pem(&text), Some(made));
        set_mode(&key, 0o640);
        let error = Certificate::open(folder.path(), &settings).err().unwrap().to_string();
        assert!(error.contains("mode 640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn certificate_of_the_settings_is_used_and_one_that_is_none_is_named() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = Certificate::open(other.path(), &HttpSettings::default()).unwrap().fingerprint;
        let named = |certificate: &str, key: &str| HttpSettings {
            certificate: Some(other.path().join(certificate)),
            key: Some(other.path().join(key)),
            ..HttpSettings::default()
        };
        let settings = named(CERTIFICATE, KEY);
        assert_eq!(Certificate::open(folder.path(), &settings).unwrap().fingerprint, made);
        let half = HttpSettings { key: None, ..settings };
        assert!(matches!(Certificate::open(folder.path(), &half), Err(TlsError::Half)));
        let refused =
            |settings: &HttpSettings| Certificate::open(folder.path(), settings).err().unwrap().to_string();
        assert!(refused(&named("nowhere", KEY)).contains("nowhere"));
        fs::write(other.path().join("nonsense"), "nothing").unwrap();
        set_mode(&other.path().join("nonsense"), 0o600);
        assert!(refused(&named("nonsense", KEY)).contains("holds no certificate"));
        assert!(refused(&named(CERTIFICATE, "nonsense")).contains("holds no key"));
        // The key of another certificate.
        Certificate::open(folder.path(), &HttpSettings::default()).unwrap();
        fs::copy(folder.path().join(KEY), other.path().join("other.key")).unwrap();
        let error = refused(&named(CERTIFICATE, "other.key"));
        assert!(error.contains("cannot be used with its key"), "{error}");
    }
}
