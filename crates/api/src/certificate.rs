//! The certificate of a node that other machines reach: known by its fingerprint, and by nothing else.
//!
//! A node signs its certificate itself, so no name in it and no authority says anything. Who was told the fingerprint, by
//! whoever gave the token, knows the node by it; any other certificate is refused before the token is sent.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, StreamOwned};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

const HEAD: &str = "sha256:";

/// The SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` tells it too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A text or a file that is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the fingerprint of a certificate: expected sha256: and 64 hexadecimal digits")]
pub struct NoFingerprint;

impl Fingerprint {
    /// Of a certificate as it travels.
    pub fn of(certificate: &[u8]) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref());
        Fingerprint(bytes)
    }

    /// Of the first certificate of a PEM file.
    pub fn of_pem(text: &[u8]) -> Option<Fingerprint> {
        CertificateDer::from_pem_slice(text).ok().map(|certificate| Fingerprint::of(&certificate))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Fingerprint, NoFingerprint> {
        let text = text.strip_prefix(HEAD).ok_or(NoFingerprint)?;
        // Other tools put colons between the bytes.
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(NoFingerprint) };
        let byte = |pair: &[u8; 2]| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Fingerprint).ok_or(NoFingerprint)
    }
}

/// Wraps connections to a node in TLS, and lets only the one with this certificate answer.
#[derive(Debug)]
pub(crate) struct Pinned(Arc<ClientConfig>);

impl Pinned {
    pub(crate) fn new(fingerprint: Fingerprint) -> Pinned {
        let provider = Arc::new(provider::default_provider());
        let verifier = Arc::new(Verifier { fingerprint, provider: Arc::clone(&provider) });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3 is among what ring can do")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.enable_sni = false;
        Pinned(Arc::new(config))
    }
}

/// Whether a connection broke because another certificate was shown.
pub(crate) fn is_other(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

impl<In: Transport> Connector<In> for Pinned {
    type Out = Either<In, Sealed>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        // The certificate is looked at, and not the name.
        let name = ServerName::try_from("node.invalid").expect("a name");
        let broken = |error| ureq::Error::Io(std::io::Error::other(error));
        let mut conn = ClientConnection::new(Arc::clone(&self.0), name).map_err(broken)?;
        let mut sock = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let stream = StreamOwned { conn, sock };
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(Sealed { buffers, stream })))
    }
}

/// A connection in TLS.
pub(crate) struct Sealed {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").finish_non_exhaustive()
    }
}

impl Transport for Sealed {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

/// Takes one certificate and no other.
#[derive(Debug)]
struct Verifier {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Fingerprint::of(shown) == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_reads_back_what_it_writes_also_with_colons() {
        let fingerprint = Fingerprint::of(b"abc");
        let text = fingerprint.to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse(), Ok(fingerprint));
        let digits: Vec<&str> =
            text.as_bytes()[7..].chunks(2).map(|two| str::from_utf8(two).unwrap()).collect();
        assert_eq!(format!("sha256:{}", digits.join(":").to_uppercase()).parse(), Ok(fingerprint));
        for wrong in ["", "sha256:", &text[..20], &text[7..], "sha256:zz", &format!("{text}00"), "sha1:ab"] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
        }
        assert_eq!(Fingerprint::of_pem(b"no certificate"), None);
    }
}
