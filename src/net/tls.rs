//! TLS by rustls: whom to trust, who one is, and what a failure means.

use std::env::split_paths;
use std::fmt::Write as _;
use std::io::{self, Read as _};
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
use rustls_native_certs::{load_certs_from_paths, load_native_certs};

use super::failure::{Failure, Fault};
use super::input::Input;
use super::waiter::Waiter;
use crate::cause::cause;
use crate::config::env::Environment;

/// The most bytes of a file of certificates or keys; the system's store has a quarter of a MiB.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

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
    /// Where the system's are, if not where they are looked for.
    pub store: Store,
    /// The client's certificate and key (`--cert`, `--key`).
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where the system's certificates are; nothing for where they are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    /// A file.
    pub file: Option<PathBuf>,
    /// Folders.
    pub folders: Vec<PathBuf>,
}

/// The variable that names the store's file.
const STORE_FILE: &str = "SSL_CERT_FILE";

impl Store {
    /// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    pub fn named_by(environment: &dyn Environment) -> Self {
        let folders = environment.get("SSL_CERT_DIR").unwrap_or_default();
        let folders = split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty()).collect();
        Self { file: environment.get(STORE_FILE).map(PathBuf::from), folders }
    }

    /// The certificates in it.
    fn load(&self, waiter: &Waiter<'_>) -> Result<Vec<CertificateDer<'static>>, Failure> {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        if let Some(path) = &self.file {
            let named = format!("{STORE_FILE}: {}", path.display());
            let pem = read(path, &named, Fault::NoStore, waiter)?;
            let mut all = CertificateDer::pem_slice_iter(&pem);
            // Those of a folder may be there all the same, but somebody means these.
            let Some(Ok(first)) = all.next() else {
                return Err(Failure::new(Fault::NoStore, format!("{named}: {NO_CERTIFICATE}")));
            };
            found.push(first);
            found.extend(all.flatten());
        }
        let loaded = match &self.folders[..] {
            [] if self.file.is_some() => Vec::new(),
            [] => vec![load_native_certs()],
            folders => folders.iter().map(|folder| load_certs_from_paths(None, Some(folder))).collect(),
        };
        for each in loaded {
            found.extend(each.certs);
            errors.extend(each.errors);
        }
        if found.is_empty() {
            let mut text = "there is no store of trusted certificates".to_owned();
            for error in errors.iter().take(3) {
                let _ = write!(text, "; {error}");
            }
            text.push_str(": install ca-certificates, or name one by --cacert FILE or SSL_CERT_FILE");
            return Err(Failure::new(Fault::NoStore, text));
        }
        Ok(found)
    }
}

impl TlsPlan {
    /// What sessions are made by. Fails where a certificate or the store cannot be read.
    pub fn config(&self, waiter: &Waiter<'_>) -> Result<Arc<ClientConfig>, Failure> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::new(Fault::Tls, error.to_string()))?;
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        } else {
            let (place, found) = match (&self.authorities, &self.store.file) {
                (Some((place, path)), _) => {
                    let named = format!("{place}: {}", path.display());
                    let pem = read(path, &named, Fault::NoStore, waiter)?;
                    let found = certificates(&pem, &named, Fault::NoStore)?;
                    (named, found)
                }
                (None, Some(path)) => (format!("{STORE_FILE}: {}", path.display()), self.store.load(waiter)?),
                (None, None) => ("the system's store".to_owned(), self.store.load(waiter)?),
            };
            let trusted = Trusted::new(found, &place, &provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(trusted))
        };
        let config = match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let name = certificate.display().to_string();
                let pem = read(certificate, &name, Fault::ClientCertificate, waiter)?;
                let chain = certificates(&pem, &name, Fault::ClientCertificate)?;
                let unusable = |path: &Path, what: String| {
                    Failure::new(Fault::ClientCertificate, format!("{}: {what}", path.display()))
                };
                // Both may be in one pipe, which is read once.
                let pem = if key == certificate {
                    pem
                } else {
                    read(key, &key.display().to_string(), Fault::ClientCertificate, waiter)?
                };
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

/// What a file or a pipe holds; signals and limits are heard meanwhile.
fn read(path: &Path, named: &str, fault: Fault, waiter: &Waiter<'_>) -> Result<Vec<u8>, Failure> {
    let input = Input::new(waiter.clone());
    let mut content = Vec::new();
    let read = input.open_file(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut content));
    if let Some(ended) = input.ended() {
        return Err(ended);
    }
    read.map_err(|error| Failure::new(fault, format!("{named}: {}", cause(&error))))?;
    if content.len() as u64 > MOST_BYTES {
        return Err(Failure::new(fault, format!("{named}: it has more than 16 MiB, the most that is read of it")));
    }
    Ok(content)
}

fn certificates(pem: &[u8], named: &str, fault: Fault) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Failure::new(fault, format!("{named}: {NO_CERTIFICATE}"))),
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
