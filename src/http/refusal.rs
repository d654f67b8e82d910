//! Why a request is not even planned.

use crate::cli::UsageError;
use crate::exit::OWN_FAILURE;
use crate::net::Fault;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What is wrong with the options.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// There is no URL, or it cannot be read.
    #[error("{0}")]
    Url(String),
    /// The URL's scheme is none that is spoken here.
    #[error("{0}")]
    Scheme(String),
}

impl Refusal {
    /// The exit status: curl's for what is wrong with the URL.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => OWN_FAILURE,
            Self::Url(_) => Fault::Url.code(),
            Self::Scheme(_) => Fault::Scheme.code(),
        }
    }
}
