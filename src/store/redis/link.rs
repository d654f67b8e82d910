//! The connection to a server: made when it is needed, kept, and given up as soon as anything
//! about it is strange.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use super::address::{Password, RedisAddress, Server};
use super::protocol::{Garbage, MOST_BYTES, Reply, pack, parse};
use super::words;
use crate::cause::cause;
use crate::clock::{BorrowedClock, Clock as _};
use crate::config::env::ProcessEnvironment;
use crate::net::tls::{self, Store, TlsPlan};
use crate::net::{ConnectPlan, Connection, Connector, Ends, Failure, Got, Origin, Waiter};
use crate::policy::TimeLimit;
use crate::store::Unshared;
use crate::units::human;

/// An idle connection is not trusted for longer: what stands between forgets it without a word.
const TRUSTED: Duration = Duration::from_secs(30);

/// The most bytes of a password.
const MOST_PASSWORD: u64 = 4096;

/// Until when something is done, on the link's clock, and how long that was in all.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    end: Duration,
    whole: Duration,
}

/// A link to a server. Signals that arrive meanwhile are left to the run; one that ends it ends
/// what is done here, too.
pub(super) struct Link {
    address: RedisAddress,
    clock: BorrowedClock,
    kept: Option<Connection>,
    /// When it was used last, on the clock that goes on.
    used: Duration,
}

impl Link {
    /// A link that touches nothing yet.
    pub(super) fn new(address: RedisAddress) -> Self {
        Self { address, clock: BorrowedClock::start(), kept: None, used: Duration::ZERO }
    }

    /// The server's address.
    pub(super) fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// So much patience from now on.
    pub(super) fn patience(&self, whole: Duration) -> Patience {
        Patience { end: self.clock.elapsed().running.saturating_add(whole), whole }
    }

    /// Sends requests in one go and returns the answer to each; one of these may be an error.
    /// Never sends anything twice: after a failure, what was asked may have been done.
    pub(super) fn ask(&mut self, requests: &[Vec<u8>], patience: Patience) -> Result<Vec<Reply>, Unshared> {
        let kept = self.kept.take();
        let (connection, result) = {
            let limit = Some((patience.end, TimeLimit::Attempt(patience.whole)));
            let waiter = Waiter::new(&self.clock, Ends { attempt: limit, ..Ends::default() });
            let is_trusted = self.clock.elapsed().boot.saturating_sub(self.used) <= TRUSTED;
            let kept = kept.filter(|_| is_trusted).and_then(|mut kept| kept.is_fresh().then_some(kept));
            match kept.map_or_else(|| self.connect(&waiter), |kept| Ok((kept, None))) {
                Ok((mut connection, entrance)) => {
                    let result = exchange(&mut connection, entrance, requests, &waiter);
                    (Some(connection), result)
                }
                Err(failure) => (None, Err(failure)),
            }
        };
        match result {
            Ok(replies) => {
                self.kept = connection;
                self.used = self.clock.elapsed().boot;
                Ok(replies)
            }
            Err(failure) => Err(Unshared(self.told(&failure, patience))),
        }
    }

    fn told(&self, failure: &Trouble, patience: Patience) -> String {
        let address = &self.address;
        match failure {
            Trouble::Transport(Failure::Interrupted(_)) => String::new(),
            Trouble::Transport(Failure::TimedOut(_)) => {
                let speaks = if address.speaks_tls() { "; does it speak TLS at that port?" } else { "" };
                format!("{address} did not answer within {}{speaks}", human(patience.whole))
            }
            Trouble::Transport(failure) => {
                let text = words::of_transport(&failure.to_string());
                // The transport names the server, too.
                let own = match &address.server {
                    Server::Network { host, port, .. } => format!("{host}:{port}: "),
                    Server::Socket(_) => String::new(),
                };
                format!("{address}: {}", text.strip_prefix(&own).unwrap_or(&text))
            }
            Trouble::Server(text) => format!("{address}: {text}"),
        }
    }

    /// Makes a connection; the second is what gets in, where something is asked for.
    fn connect(&self, waiter: &Waiter<'_>) -> Result<(Connection, Option<Vec<u8>>), Trouble> {
        let address = &self.address;
        let entrance = match &address.password {
            None => None,
            Some(Password::Given(password)) => Some(password.clone()),
            Some(Password::File(path)) => Some(read_password(path)?),
        };
        let entrance = entrance.map(|password| match &address.user {
            Some(user) => pack(&[b"AUTH", user.as_bytes(), &password]),
            None => pack(&[b"AUTH", &password[..]]),
        });
        let identity = address.identity.as_ref();
        for path in address.authorities.iter().chain(identity.into_iter().flat_map(|(one, other)| [one, other])) {
            must_be_file(path)?;
        }
        let mut plan = ConnectPlan {
            tls: TlsPlan {
                authorities: address.authorities.clone().map(|path| ("?cacert", path)),
                identity: address.identity.clone(),
                store: Store::named_by(&ProcessEnvironment),
                insecure: false,
            },
            ..ConnectPlan::default()
        };
        let origin = match &address.server {
            Server::Network { host, port, secure } => Origin { secure: *secure, host: host.clone(), port: *port },
            Server::Socket(path) => {
                plan.unix_socket = Some(path.clone());
                Origin { secure: false, host: "localhost".into(), port: 0 }
            }
        };
        let connection = Connector::new(&plan).connect(&origin, None, waiter)?;
        Ok((connection, entrance))
    }
}

/// Gets in where that is asked for, and returns the answers to the requests. These are sent
/// once the server let us in: a server that refuses a password may do all that it lets
/// anybody do.
fn exchange(
    connection: &mut Connection,
    entrance: Option<Vec<u8>>,
    requests: &[Vec<u8>],
    waiter: &Waiter<'_>,
) -> Result<Vec<Reply>, Trouble> {
    if let Some(entrance) = entrance
        && let [Reply::Error(error)] = &converse(connection, &entrance, 1, waiter)?[..]
        && !words::is_open(&String::from_utf8_lossy(error))
    {
        return Err(Trouble::Server(words::no_entrance(&String::from_utf8_lossy(error))));
    }
    converse(connection, &requests.concat(), requests.len(), waiter)
}

/// Sends all that and receives so many replies.
fn converse(
    connection: &mut Connection,
    bytes: &[u8],
    count: usize,
    waiter: &Waiter<'_>,
) -> Result<Vec<Reply>, Trouble> {
    let mut replies = Vec::new();
    let end = hear_out(connection, bytes, count, &mut replies, waiter);
    match (end, replies.iter().find(|reply| matches!(reply, Reply::Error(_)))) {
        (Ok(()), _) => Ok(replies),
        // Some servers say why they close the connection.
        (Err(_), Some(error)) => Err(Trouble::Server(words::refusal(&error.text()))),
        (Err(trouble), None) => Err(trouble),
    }
}

/// The same; says why there will be no more replies than there are.
fn hear_out(
    connection: &mut Connection,
    bytes: &[u8],
    count: usize,
    replies: &mut Vec<Reply>,
    waiter: &Waiter<'_>,
) -> Result<(), Trouble> {
    let mut rest = bytes;
    loop {
        while replies.len() < count
            && let Some((reply, length)) = parse(connection.received()).map_err(|Garbage| strange(connection))?
        {
            connection.consume(length);
            replies.push(reply);
        }
        if replies.len() >= count {
            return Ok(());
        }
        if !rest.is_empty() {
            // Where it cannot be sent any more, there may still be something to read.
            rest = connection.put(rest).map_or(&[], |sent| &rest[sent..]);
        }
        let mut fds = vec![connection.interest(!rest.is_empty())];
        waiter.wait(&mut fds, None)?;
        match connection.fill() {
            Ok(Got::Some | Got::Nothing) => {}
            Ok(Got::End) => return Err(Trouble::Server("the server closed the connection".into())),
            Err(error) => {
                return Err(tls::refusal(&error).map_or_else(|| lost(&error), Trouble::Transport));
            }
        }
    }
}

/// Why there is no answer.
enum Trouble {
    /// The way to the server.
    Transport(Failure),
    /// What the server said, or did.
    Server(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Transport(failure)
    }
}

fn lost(error: &io::Error) -> Trouble {
    let is_reset = error.kind() == io::ErrorKind::ConnectionReset;
    let hint = if is_reset { "; a server that wants TLS does that: rediss://" } else { "" };
    Trouble::Server(format!("the connection broke: {}{hint}", cause(error)))
}

/// What is said of an answer that is none.
fn strange(connection: &Connection) -> Trouble {
    let received = connection.received();
    let text = if received.starts_with(b"HTTP/") {
        "the answer is HTTP; this is no Redis server"
    } else if received.len() > MOST_BYTES {
        "the answer does not end; is this a Redis server?"
    } else if received.starts_with(&[0x15, 3]) {
        "the answer is TLS; give rediss:// in the address"
    } else {
        "the answer is not in Redis's protocol; is this a Redis server?"
    };
    Trouble::Server(text.into())
}

/// Reading anything else could take for ever.
fn must_be_file(path: &Path) -> Result<(), Trouble> {
    let wrong = |what: &str| Trouble::Server(format!("{}: {what}", path.display()));
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(wrong("this is no regular file")),
        Err(error) => Err(wrong(&cause(&error))),
    }
}

/// The password that a file holds, without the end of its line.
fn read_password(path: &Path) -> Result<Vec<u8>, Trouble> {
    must_be_file(path)?;
    let wrong = |what: &str| Trouble::Server(format!("the password-file {}: {what}", path.display()));
    let mut password = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_PASSWORD + 1).read_to_end(&mut password));
    read.map_err(|error| wrong(&cause(&error)))?;
    if password.len() as u64 > MOST_PASSWORD {
        return Err(wrong("it is too large for a password"));
    }
    for end in [b'\n', b'\r'] {
        if password.last() == Some(&end) {
            password.pop();
        }
    }
    if password.is_empty() { Err(wrong("it is empty")) } else { Ok(password) }
}
