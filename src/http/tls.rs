//! TLS by rustls: whom to trust, who one is, and what a failure means.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::failure::{Failure, Fault};
use crate::report::text::cause;

/// Whom to trust and who to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsPlan {
    /// Trust anybody (`-k`).
    pub insecure: bool,
    /// Certificates to trust in place of the system's (`--cacert`).
    pub authorities: Option<PathBuf>,
    /// The client's certificate and key (`--cert`, `--key`).
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsPlan {
    /// What sessions are made by. Fails where a certificate or the store cannot be read.
    pub fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::new(Fault::Tls, error.to_string()))?;
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        } else {
            builder.with_root_certificates(self.trusted()?)
        };
        let config = match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let chain = certificates(certificate, Fault::ClientCertificate)?;
                let unusable = |path: &Path, what: String| {
                    Failure::new(Fault::ClientCertificate, format!("{}: {what}", path.display()))
                };
                let pem = fs::read(key).map_err(|error| unusable(key, cause(&error)))?;
                let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
                    unusable(key, "there is no private key in it (one with a passphrase is not read)".into())
                })?;
                builder.with_client_auth_cert(chain, private).map_err(|error| unusable(certificate, error.to_string()))
            }
        };
        config.map(Arc::new)
    }

    fn trusted(&self) -> Result<RootCertStore, Failure> {
        let mut store = RootCertStore::empty();
        if let Some(path) = &self.authorities {
            store.add_parsable_certificates(certificates(path, Fault::NoStore)?);
        } else {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if store.is_empty() {
            let place = self.authorities.as_ref().map_or_else(
                || "the system has no store of trusted certificates: install ca-certificates, or give one with --cacert".to_owned(),
                |path| format!("{}: there is no certificate in it", path.display()),
            );
            return Err(Failure::new(Fault::NoStore, place));
        }
        Ok(store)
    }
}

fn certificates(path: &Path, fault: Fault) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |what: &str| Failure::new(fault, format!("{}: {what}", path.display()));
    let pem = fs::read(path).map_err(|error| wrong(&cause(&error)))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong("there is no certificate in it")),
    }
}

/// A session with this host.
pub fn session(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare)
        .map_err(|_| Failure::new(Fault::Url, format!("{host}: the name cannot stand in a certificate")))?;
    ClientConnection::new(Arc::clone(config), name).map_err(|error| Failure::new(Fault::Tls, error.to_string()))
}

/// What a failed handshake means.
pub fn failure(name: &str, error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            let mut text = format!("{name}: the server's certificate is refused: {}", words(reason));
            let _ = write!(text, " (trust its authority with --cacert FILE, or anybody with -k)");
            Failure::new(Fault::Certificate, text)
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            Failure::new(Fault::Tls, format!("{name}: the answer is no TLS (does the port speak plain HTTP?)"))
        }
        Some(error) => Failure::new(Fault::Tls, format!("{name}: {error}")),
        None => Failure::new(Fault::Tls, format!("{name}: {} in the TLS handshake", cause(error))),
    }
}

fn words(reason: &rustls::CertificateError) -> String {
    use rustls::CertificateError as Wrong;
    match reason {
        Wrong::UnknownIssuer => "nobody trusted has signed it".to_owned(),
        Wrong::Expired | Wrong::ExpiredContext { .. } => "it has expired".to_owned(),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => "it is for another name".to_owned(),
        Wrong::Revoked => "it was revoked".to_owned(),
        other => other.to_string(),
    }
}

/// Trusts anybody who has the key that he shows.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
