//! Connections: names and addresses, sockets, TLS. All that waits does so in a [`Waiter`], where
//! the network, time limits and, for a run that has no child, signals are awaited together.

mod connect;
mod connection;
mod dns;
mod failure;
mod input;
mod names;
pub mod tls;
mod waiter;

pub use connect::{ConnectPlan, Connector, Moments, Origin, Over, Redirection};
pub use connection::{Connection, Got};
pub use failure::{Failure, Fault};
pub use input::{Input, Reader};
pub use names::Family;
pub use waiter::{Ends, Waiter};

/// The bytes that a text with percent signs means.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    decoded
}
