//! What keeps a request from its answer.

use std::fmt;

use crate::exit::{PARTIAL, REQUEST_TIMED_OUT};
use crate::policy::{Prospect, Signal, TimeLimit};

/// A failure of the transport, with curl's exit code for it (the codes of curl(1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The URL's scheme is none that is spoken here.
    Scheme,
    /// The URL cannot be read.
    Url,
    /// The proxy's name has no address.
    ProxyName,
    /// The host's name has no address.
    Name,
    /// No connection to any address.
    Connect,
    /// The answer is no HTTP.
    Weird,
    /// The body ended before its end.
    Partial,
    /// What was received cannot be written.
    Write,
    /// What is to be sent cannot be read.
    Read,
    /// The server sent another part of a download than was asked for.
    Range,
    /// The server cannot continue what the user has (`-C`).
    NoRange,
    /// A download broke off that can neither be continued nor begun again.
    Lost,
    /// Nobody reads standard output any more.
    ReaderGone,
    /// The TLS handshake failed.
    Tls,
    /// The other side refuses the handshake, and will again.
    TlsRefused,
    /// Too many redirects.
    Redirects,
    /// The connection was closed without an answer.
    Empty,
    /// The request could not be sent.
    Send,
    /// The answer could not be received.
    Receive,
    /// A proxy refuses the way to the host, and will again.
    ProxyRefused,
    /// A proxy refuses it because it is asked too often.
    ProxyBusy,
    /// The client certificate cannot be used.
    ClientCertificate,
    /// The body's coding is broken.
    Encoding,
    /// The server's certificate is refused.
    Certificate,
    /// There is no store of trusted certificates.
    NoStore,
    /// A time limit passed, and what was passed on already cannot be continued.
    LostInTime,
    /// The body is larger than allowed, or not what its checksum says.
    Checksum,
}

impl Fault {
    /// curl's exit code; for a checksum, which curl has none for, that of a partial file.
    pub fn code(self) -> u8 {
        match self {
            Self::Scheme => 1,
            Self::Url => 3,
            Self::ProxyName => 5,
            Self::Name => 6,
            Self::Connect => 7,
            Self::Weird => 8,
            Self::Partial | Self::Checksum | Self::Lost => PARTIAL,
            Self::Write | Self::ReaderGone => 23,
            Self::Read => 26,
            Self::LostInTime => REQUEST_TIMED_OUT,
            Self::Range | Self::NoRange => 33,
            Self::Tls | Self::TlsRefused => 35,
            Self::Redirects => 47,
            Self::Empty => 52,
            Self::Send => 55,
            Self::Receive | Self::ProxyRefused | Self::ProxyBusy => 56,
            Self::ClientCertificate => 58,
            Self::Certificate => 60,
            Self::Encoding => 61,
            Self::NoStore => 77,
        }
    }

    /// Whether another attempt could fare better.
    pub fn may_pass(self) -> bool {
        !matches!(
            self,
            Self::Scheme
                | Self::Url
                | Self::Write
                | Self::Read
                | Self::NoRange
                | Self::Lost
                | Self::LostInTime
                | Self::Redirects
                | Self::ClientCertificate
                | Self::TlsRefused
                | Self::ProxyRefused
                | Self::Certificate
                | Self::NoStore
        )
    }

    /// What another attempt could come to.
    pub fn prospect(self) -> Prospect {
        match self {
            Self::ProxyBusy => Prospect::BetterAfterRest,
            _ if self.may_pass() => Prospect::Better,
            _ => Prospect::Same,
        }
    }
}

/// Why an attempt has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The transport failed.
    Fault {
        /// How.
        fault: Fault,
        /// More, in words: addresses, the system's reason, the remedy.
        text: String,
    },
    /// A time limit passed.
    TimedOut(TimeLimit),
    /// A signal that ends runs arrived.
    Interrupted(Signal),
}

/// The most bytes of what is said of a failure.
const MAX_TEXT: usize = 1024;

impl Failure {
    /// A failure of the transport. Words of a server's may be in the text: they are cut.
    pub fn new(fault: Fault, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > MAX_TEXT {
            text.truncate((0..=MAX_TEXT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0));
            text.push('…');
        }
        Self::Fault { fault, text }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault { text, .. } => f.write_str(text),
            Self::TimedOut(_) => f.write_str("a time limit passed"),
            Self::Interrupted(signal) => write!(f, "{signal} arrived"),
        }
    }
}
