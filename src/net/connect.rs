//! From a host to a connection: addresses, proxies, sockets, TLS.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustls::ClientConfig;

use super::connection::Connection;
use super::failure::{Failure, Fault};
use super::names::{Family, resolve};
use super::tls::{self, TlsPlan};
use super::waiter::Waiter;
use crate::cause::cause;

/// How long an address is tried alone before the next is tried beside it (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// An address that stands in for a host and port (`--resolve`, `--connect-to`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The host that is meant; `None` for any.
    pub host: Option<String>,
    /// The port that is meant; `None` for any.
    pub port: Option<u16>,
    /// The host to go to; `None` for the same.
    pub to_host: Option<String>,
    /// The port to go to; `None` for the same.
    pub to_port: Option<u16>,
}

/// How connections are made; immutable for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectPlan {
    /// Which addresses.
    pub family: Family,
    /// The limit on making a connection.
    pub timeout: Option<Duration>,
    /// Addresses given for hosts: host, port, addresses.
    pub resolved: Vec<(String, u16, Vec<IpAddr>)>,
    /// Hosts that stand in for others.
    pub redirections: Vec<Redirection>,
    /// A socket to speak through in place of the network.
    pub unix_socket: Option<PathBuf>,
    /// TLS.
    pub tls: TlsPlan,
}

impl ConnectPlan {
    /// Where a connection leads that is to serve this origin (`--connect-to`).
    pub fn target(&self, to: &Origin) -> Origin {
        let redirection = self.redirections.iter().find(|redirection| {
            redirection.host.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(&to.host))
                && redirection.port.is_none_or(|known| known == to.port)
                && (redirection.to_host.is_some() || redirection.to_port.is_some())
        });
        let mut target = to.clone();
        if let Some(redirection) = redirection {
            target.host = redirection.to_host.clone().unwrap_or(target.host);
            target.port = redirection.to_port.unwrap_or(target.port);
        }
        target
    }
}

/// Where a request is to go, seen from the network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether TLS is spoken.
    pub secure: bool,
    /// The host, as in the URL.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A way over somebody else.
pub struct Over<'a> {
    /// Its host.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// Asks it for a way through; `None` where it is itself asked for what is wanted.
    pub tunnel: Option<Tunnel<'a>>,
}

/// Makes a connection one to somewhere else.
pub type Tunnel<'a> = &'a dyn Fn(&mut Connection, &Waiter<'_>) -> Result<(), Failure>;

/// What happened when, on the run's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moments {
    /// The name was resolved.
    pub resolved: Duration,
    /// The connection was made.
    pub connected: Duration,
    /// The TLS handshake was over; zero where there was none.
    pub secured: Duration,
    /// Something could be sent.
    pub ready: Duration,
}

/// Makes connections and remembers what they have in common.
pub struct Connector<'a> {
    plan: &'a ConnectPlan,
    tls: Option<Arc<ClientConfig>>,
    /// When the last connection was how far.
    pub moments: Moments,
}

impl<'a> Connector<'a> {
    /// A connector that has made none yet.
    pub fn new(plan: &'a ConnectPlan) -> Self {
        Self { plan, tls: None, moments: Moments::default() }
    }

    /// Connects, over somebody else if that is asked for.
    pub fn connect(
        &mut self,
        to: &Origin,
        over: Option<&Over<'_>>,
        waiter: &Waiter<'_>,
    ) -> Result<Connection, Failure> {
        let waiter = &waiter.connecting(self.plan.timeout);
        // What is wrong with certificates is found before anybody is bothered.
        let config = if to.secure { Some(self.config(waiter)?) } else { None };
        let socket = match (&self.plan.unix_socket, over) {
            (Some(path), _) => unix(path, waiter)?,
            (None, Some(over)) => self.reach(over.host, over.port, Fault::ProxyName, waiter)?,
            (None, None) => {
                let target = self.plan.target(to);
                self.reach(&target.host, target.port, Fault::Name, waiter)?
            }
        };
        self.moments.connected = waiter.now();
        let mut connection = Connection::new(socket);
        if let Some(tunnel) = over.and_then(|over| over.tunnel) {
            tunnel(&mut connection, waiter)?;
        }
        if let Some(config) = config {
            let name = format!("{}:{}", to.host, to.port);
            connection.secure(tls::session(&config, &to.host)?, &name, waiter)?;
            self.moments.secured = waiter.now();
        }
        self.moments.ready = waiter.now();
        Ok(connection)
    }

    fn config(&mut self, waiter: &Waiter<'_>) -> Result<Arc<ClientConfig>, Failure> {
        if let Some(config) = &self.tls {
            return Ok(Arc::clone(config));
        }
        let config = self.plan.tls.config(waiter)?;
        self.tls = Some(Arc::clone(&config));
        Ok(config)
    }

    fn reach(&mut self, host: &str, port: u16, fault: Fault, waiter: &Waiter<'_>) -> Result<OwnedFd, Failure> {
        let by_proxy = fault == Fault::ProxyName;
        let name = if by_proxy { format!("the proxy {host}:{port}") } else { host.to_owned() };
        let given = self.plan.resolved.iter().rev().find(|(known, at, _)| {
            (known == "*" || known.eq_ignore_ascii_case(host.trim_matches(['[', ']']))) && *at == port
        });
        let addresses = match given {
            Some((_, _, addresses)) => {
                let wanted = |address: &&IpAddr| match self.plan.family {
                    Family::Any => true,
                    Family::V4 => address.is_ipv4(),
                    Family::V6 => address.is_ipv6(),
                };
                let addresses: Vec<_> = addresses.iter().filter(wanted).copied().collect();
                if addresses.is_empty() {
                    let text =
                        format!("cannot resolve {name}: --resolve gives it no address of the kind that is wanted");
                    return Err(Failure::new(fault, text));
                }
                addresses
            }
            None => resolve(host, self.plan.family, waiter).map_err(|failure| match failure {
                Failure::Fault { fault: Fault::Name, text } if by_proxy => {
                    let text = text.replacen("cannot resolve ", "cannot resolve the proxy ", 1);
                    Failure::Fault { fault, text }
                }
                other => other,
            })?,
        };
        self.moments.resolved = waiter.now();
        let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        first_of(&name, &addresses, waiter)
    }
}

/// Connects to the first of these addresses that answers.
fn first_of(host: &str, addresses: &[SocketAddr], waiter: &Waiter<'_>) -> Result<OwnedFd, Failure> {
    let mut waiting = addresses.iter();
    let mut trying: Vec<(SocketAddr, OwnedFd)> = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    let mut next_at = Duration::ZERO;
    loop {
        if trying.is_empty() || waiter.now() >= next_at {
            match waiting.next() {
                Some(address) => match begin(address) {
                    Ok(socket) => trying.push((*address, socket)),
                    Err(error) => {
                        failed.push(format!("{address}: {}", cause(&error.into())));
                        continue;
                    }
                },
                None if trying.is_empty() => {
                    return Err(Failure::new(
                        Fault::Connect,
                        format!("cannot connect to {host} ({})", failed.join("; ")),
                    ));
                }
                None => {}
            }
            next_at = waiter.now().saturating_add(HEAD_START);
        }
        let until = (waiting.len() > 0).then_some(next_at);
        let mut fds: Vec<_> =
            trying.iter().map(|(_, socket)| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)).collect();
        waiter.wait(&mut fds, until)?;
        let Some(at) = fds.iter().position(|fd| !fd.revents().is_empty()) else { continue };
        drop(fds);
        let (address, socket) = trying.swap_remove(at);
        match socket_error(&socket) {
            Ok(Ok(())) => {
                let _ = set_tcp_nodelay(&socket, true);
                return Ok(socket);
            }
            Ok(Err(error)) | Err(error) => failed.push(format!("{address}: {}", cause(&error.into()))),
        }
        next_at = Duration::ZERO;
    }
}

fn begin(address: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn unix(path: &PathBuf, waiter: &Waiter<'_>) -> Result<OwnedFd, Failure> {
    let failed = |error: Errno| {
        Failure::new(
            Fault::Connect,
            format!("cannot connect to the socket {}: {}", path.display(), cause(&error.into())),
        )
    };
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            // Its queue is full: there is nothing to wait for but time.
            Err(Errno::AGAIN) => waiter.wait(&mut Vec::new(), Some(waiter.now() + Duration::from_millis(10)))?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
