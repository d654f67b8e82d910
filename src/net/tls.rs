//! TLS by rustls: whom to trust, who one is, and what a failure means.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::failure::{Failure, Fault};
use crate::cause::cause;

/// What is said of a file without a key that can be read.
const NO_KEY: &str = "there is no private key in it that can be read (give one by --key; one with a passphrase is not \
                      read: openssl pkey -in KEY -out PLAIN takes it off)";

/// What is said of a file without a certificate that can be read.
const NO_CERTIFICATE: &str = "there is no certificate in it";

/// Whom to trust and who to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsPlan {
    /// Trust anybody (`-k`).
    pub insecure: bool,
    /// The file with certificates to trust in place of the system's, and what names it.
    pub authorities: Option<(&'static str, PathBuf)>,
    /// The file that has the system's in place of another, and what names it.
    pub store_file: Option<(&'static str, PathBuf)>,
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
            let place = self.authorities.as_ref().or(self.store_file.as_ref());
            let place = place.map_or_else(|| "the system's store".to_owned(), named);
            let trusted = Trusted::new(self.authorities()?, &place, &provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(trusted))
        };
        let config = match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let name = certificate.display().to_string();
                let chain = certificates(certificate, &name, Fault::ClientCertificate)?;
                let unusable = |path: &Path, what: String| {
                    Failure::new(Fault::ClientCertificate, format!("{}: {what}", path.display()))
                };
                let pem = fs::read(key).map_err(|error| unusable(key, cause(&error)))?;
                let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| unusable(key, NO_KEY.into()))?;
                builder.with_client_auth_cert(chain, private).map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => {
                        unusable(certificate, format!("the key in {} is that of another certificate", key.display()))
                    }
                    rustls::Error::InvalidCertificate(reason) => {
                        unusable(certificate, format!("the certificate cannot be used: {}", words(&reason)))
                    }
                    error => unusable(certificate, error.to_string()),
                })
            }
        };
        config.map(Arc::new)
    }

    /// The certificates that are trusted; never none.
    fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, Failure> {
        if let Some(file) = &self.authorities {
            return certificates(&file.1, &named(file), Fault::NoStore);
        }
        if let Some(file) = &self.store_file {
            // Those of a folder may be there all the same, but somebody means these.
            one_certificate(file)?;
        }
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            let mut text = "there is no store of trusted certificates".to_owned();
            for error in found.errors.iter().take(3) {
                let _ = write!(text, "; {error}");
            }
            text.push_str(": install ca-certificates, or name one by --cacert FILE or SSL_CERT_FILE");
            return Err(Failure::new(Fault::NoStore, text));
        }
        Ok(found.certs)
    }
}

/// Trusts certificates that an authority has signed, and those that are trusted themselves.
#[derive(Debug)]
struct Trusted {
    by_authority: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn new(
        certificates: Vec<CertificateDer<'static>>,
        place: &str,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Failure> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider)).build();
        let unusable =
            |error| Failure::new(Fault::NoStore, format!("{place}: no certificate in it can be used: {error}"));
        Ok(Self { by_authority: verifier.map_err(unusable)?, certificates })
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let result = self.by_authority.verify_server_cert(end, between, name, ocsp, now);
        match &result {
            // A self-signed certificate as `openssl req -x509` makes it is an authority's too.
            // It is in its time, or that would have been said first.
            Err(rustls::Error::InvalidCertificate(reason)) if is_of_authority(reason) => {
                if !self.certificates.iter().any(|known| known == end) {
                    return Err(rustls::CertificateError::UnknownIssuer.into());
                }
                verify_server_name(&ParsedCertificate::try_from(end)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Whether a certificate is refused only because it may sign others.
fn is_of_authority(reason: &rustls::CertificateError) -> bool {
    matches!(reason, rustls::CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity")
}

/// A file as messages name it: by what names it, too.
fn named((place, path): &(&'static str, PathBuf)) -> String {
    format!("{place}: {}", path.display())
}

/// Fails where the first certificate of a file cannot be read.
fn one_certificate(file: &(&'static str, PathBuf)) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::new(Fault::NoStore, format!("{}: {what}", named(file)));
    let pem = fs::read(&file.1).map_err(|error| wrong(&cause(&error)))?;
    match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => Ok(()),
        _ => Err(wrong(NO_CERTIFICATE)),
    }
}

fn certificates(path: &Path, named: &str, fault: Fault) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |what: &str| Failure::new(fault, format!("{named}: {what}"));
    let pem = fs::read(path).map_err(|error| wrong(&cause(&error)))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong(NO_CERTIFICATE)),
    }
}

/// A session with this host.
pub fn session(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection, Failure> {
    // A dot at the end, which says that the name is whole, stands in no certificate.
    let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_owned();
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
            // Whose certificate is old or for another name, no authority makes it good.
            text.push_str(match reason {
                rustls::CertificateError::UnknownIssuer => {
                    " (trust its authority with --cacert FILE, or anybody with -k)"
                }
                _ => " (-k takes any)",
            });
            Failure::new(Fault::Certificate, text)
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            Failure::new(Fault::Tls, format!("{name}: the answer is no TLS (does the port speak plain HTTP?)"))
        }
        Some(other) => refusal(error)
            .unwrap_or_else(|| Failure::new(Fault::Tls, format!("{name}: the TLS handshake failed: {other}"))),
        None => Failure::new(Fault::Tls, format!("{name}: {} in the TLS handshake", cause(error))),
    }
}

/// An alert by which the other side says that it will never agree, not that it broke off.
pub fn refusal(error: &io::Error) -> Option<Failure> {
    use rustls::AlertDescription as Alert;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::AlertReceived(alert)) = inner else { return None };
    let text = match alert {
        Alert::CertificateRequired => "the server wants a client's certificate: give one by --cert FILE",
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => "the server refuses the client's certificate (--cert)",
        Alert::HandshakeFailure => {
            "the server agrees to none of the ways of TLS 1.2 and 1.3, or wants a client's certificate (--cert)"
        }
        Alert::ProtocolVersion | Alert::InsufficientSecurity => {
            "the server speaks neither TLS 1.2 nor 1.3 in a safe way"
        }
        Alert::UnrecognisedName => "the server knows no host of that name",
        _ => return None,
    };
    Some(Failure::new(Fault::TlsRefused, format!("{text} (alert {alert:?})")))
}

fn words(reason: &rustls::CertificateError) -> String {
    use rustls::CertificateError as Wrong;
    match reason {
        Wrong::UnknownIssuer => "nobody trusted has signed it".to_owned(),
        Wrong::Expired | Wrong::ExpiredContext { .. } => "it has expired".to_owned(),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => "it is for another name".to_owned(),
        Wrong::Revoked => "it was revoked".to_owned(),
        other if format!("{other:?}").contains("UnsupportedCertVersion") => {
            "it is not of X.509 version 3, which is the only one that is taken".to_owned()
        }
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
