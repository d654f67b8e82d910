//! Names to addresses, the same in a static program as in a dynamic one: `--resolve`,
//! literals, the hosts file, then the name servers of resolv.conf. The C library's own
//! resolver loads modules that a static program cannot load safely, so it is not asked.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};

use super::dns::{Answer, Kind, Query};
use super::failure::{Failure, Fault};
use super::waiter::Waiter;

/// Which addresses are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Both kinds.
    #[default]
    Any,
    /// IPv4 only (`-4`).
    V4,
    /// IPv6 only (`-6`).
    V6,
}

impl Family {
    fn admits(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// The most bytes of the files that are read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// All addresses of a host, those to be tried first in front; never empty.
pub fn resolve(host: &str, family: Family, waiter: &Waiter<'_>) -> Result<Vec<IpAddr>, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = match bare.parse::<IpAddr>() {
        Ok(address) if family.admits(&address) => return Ok(vec![address]),
        Ok(_) => return Err(Failure::new(Fault::Connect, format!("{host} is no address of the kind asked for"))),
        Err(_) => by_name(bare, family, waiter)?,
    };
    // Where both ways are open the newer one goes first, as everywhere.
    let (v6, v4): (Vec<_>, Vec<_>) = found.into_iter().partition(IpAddr::is_ipv6);
    Ok(if v6.iter().any(has_route) { [v6, v4].concat() } else { [v4, v6].concat() })
}

fn by_name(name: &str, family: Family, waiter: &Waiter<'_>) -> Result<Vec<IpAddr>, Failure> {
    let relative = name.strip_suffix('.').unwrap_or(name);
    let hosts = read("/etc/hosts").unwrap_or_default();
    let mut found = in_hosts(&String::from_utf8_lossy(&hosts), relative);
    let lower = relative.to_ascii_lowercase();
    if lower == "localhost" || lower.ends_with(".localhost") {
        // This machine, whatever the file leaves out (RFC 6761 §6.3).
        for address in [IpAddr::from(Ipv6Addr::LOCALHOST), Ipv4Addr::LOCALHOST.into()] {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    found.retain(|address| family.admits(address));
    if found.is_empty() { by_servers(name, family, waiter) } else { Ok(found) }
}

fn read(path: &str) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let mut content = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut content).ok()?;
    Some(content)
}

/// The addresses of a name in a hosts file.
fn in_hosts(hosts: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in hosts.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse) else { continue };
        if words.any(|known| known.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// What resolv.conf says; the limits are the C library's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Servers {
    addresses: Vec<SocketAddr>,
    search: Vec<String>,
    /// A name with so many dots is first taken as it is.
    dots: usize,
    patience: Duration,
    rounds: u32,
}

impl Servers {
    /// Reads the file; what is not known in it is passed over, as the C library does.
    fn parse(text: &str) -> Self {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, DNS));
        let mut servers =
            Self { addresses: Vec::new(), search: Vec::new(), dots: 1, patience: Duration::from_secs(5), rounds: 2 };
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") if servers.addresses.len() < 3 => {
                    servers.addresses.extend(words.next().and_then(server_address));
                }
                Some("search") => servers.search = words.map(str::to_owned).collect(),
                Some("domain") => servers.search = words.take(1).map(str::to_owned).collect(),
                Some("options") => {
                    for word in words {
                        let Some((name, value)) = word.split_once(':') else { continue };
                        match (name, value.parse::<u32>()) {
                            ("ndots", Ok(dots)) => servers.dots = usize::try_from(dots.min(15)).unwrap_or(1),
                            ("timeout", Ok(seconds)) => {
                                servers.patience = Duration::from_secs(seconds.clamp(1, 30).into());
                            }
                            ("attempts", Ok(rounds)) => servers.rounds = rounds.clamp(1, 5),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        if servers.addresses.is_empty() {
            servers.addresses.push(loopback);
        }
        servers
    }

    /// The whole names that a name may stand for, in the order in which they are tried.
    fn candidates(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return vec![name.to_owned()];
        }
        let mut candidates: Vec<String> =
            self.search.iter().map(|domain| format!("{name}.{}", domain.trim_matches('.'))).collect();
        let dots = name.bytes().filter(|&byte| byte == b'.').count();
        let at = if dots >= self.dots { 0 } else { candidates.len() };
        candidates.insert(at, name.to_owned());
        candidates
    }
}

/// An address, which may say by which interface it is reached.
fn server_address(text: &str) -> Option<SocketAddr> {
    let Some((address, scope)) = text.split_once('%') else {
        return Some(SocketAddr::new(text.parse().ok()?, DNS));
    };
    let scope = scope.parse().ok().or_else(|| {
        let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
        rustix::net::netdevice::name_to_index(&socket, scope).ok()
    })?;
    Some(SocketAddrV6::new(address.parse().ok()?, DNS, 0, scope).into())
}

/// Asks the name servers, with the search list of resolv.conf.
fn by_servers(name: &str, family: Family, waiter: &Waiter<'_>) -> Result<Vec<IpAddr>, Failure> {
    let text = read("/etc/resolv.conf").unwrap_or_default();
    let servers = Servers::parse(&String::from_utf8_lossy(&text));
    let mut failed = false;
    for candidate in servers.candidates(name) {
        match ask_all(&candidate, family, &servers, waiter)? {
            Reply::Addresses(found) => return Ok(found),
            Reply::None => {}
            // There may still be a longer name.
            Reply::Failed => failed = true,
            Reply::Silence => {
                let asked: Vec<_> = servers.addresses.iter().map(|server| server.ip().to_string()).collect();
                return Err(unresolved(name, &format!("no name server answers (asked: {})", asked.join(", "))));
            }
            Reply::NoName => return Err(unresolved(name, "it is no name")),
        }
    }
    Err(unresolved(name, if failed { "the name servers failed" } else { "no such name" }))
}

fn unresolved(name: &str, why: &str) -> Failure {
    Failure::new(Fault::Name, format!("cannot resolve {name}: {why}"))
}

enum Reply {
    Addresses(Vec<IpAddr>),
    /// The name has none.
    None,
    /// Servers answer, but do not know.
    Failed,
    /// Nobody has answered, or could.
    Silence,
    /// It cannot be asked for.
    NoName,
}

fn ask_all(name: &str, family: Family, servers: &Servers, waiter: &Waiter<'_>) -> Result<Reply, Failure> {
    let mut last = Reply::Silence;
    for _ in 0..servers.rounds {
        let mut all_failed = true;
        for server in &servers.addresses {
            match ask(name, family, *server, servers.patience, waiter)? {
                Reply::Silence => all_failed = false,
                Reply::Failed => last = Reply::Failed,
                reply => return Ok(reply),
            }
        }
        // Who was asked and does not know is not asked again at once.
        if all_failed {
            break;
        }
    }
    Ok(last)
}

/// How long an answer of one kind is awaited once the other kind is there (RFC 8305 §3 has
/// 50 ms, which is for people who watch).
const SECOND_KIND: Duration = Duration::from_millis(500);

/// Asks one server for all kinds of addresses that are wanted at once.
fn ask(
    name: &str,
    family: Family,
    server: SocketAddr,
    patience: Duration,
    waiter: &Waiter<'_>,
) -> Result<Reply, Failure> {
    let kinds = match family {
        Family::Any => &[Kind::A, Kind::Aaaa][..],
        Family::V4 => &[Kind::A],
        Family::V6 => &[Kind::Aaaa],
    };
    let mut queries = Vec::new();
    for kind in kinds {
        let mut id = [0; 2];
        let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
        let Some(query) = Query::new(u16::from_ne_bytes(id), *kind, name) else { return Ok(Reply::NoName) };
        queries.push(query);
    }
    let Some(socket) = datagram(server) else { return Ok(Reply::Silence) };
    for query in &queries {
        if send(&socket, &query.bytes(), SendFlags::NOSIGNAL).is_err() {
            return Ok(Reply::Silence);
        }
    }
    let mut end = waiter.now().saturating_add(patience);
    let (mut found, mut failed, mut none) = (Vec::new(), false, false);
    while !queries.is_empty() && waiter.now() < end {
        let mut fds = vec![PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        waiter.wait(&mut fds, Some(end))?;
        let mut buffer = [0; 4096];
        let count = match recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((count, _)) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
            // Nobody there.
            Err(_) => break,
        };
        let told = queries.iter().enumerate().find_map(|(at, query)| Some((at, query.answer(&buffer[..count])?)));
        let Some((at, mut answer)) = told else { continue };
        let query = queries.swap_remove(at);
        if answer == Answer::Truncated {
            answer = ask_by_stream(&query, server, end, waiter)?.unwrap_or(Answer::Failed);
        }
        match answer {
            Answer::Addresses(addresses) => {
                none |= addresses.is_empty();
                found.extend(addresses);
            }
            // There is none of the other kind then.
            Answer::NoName if found.is_empty() => return Ok(Reply::None),
            Answer::NoName => {}
            Answer::Failed | Answer::Truncated => failed = true,
        }
        if !found.is_empty() {
            end = end.min(waiter.now().saturating_add(SECOND_KIND));
        }
    }
    Ok(match (found.is_empty(), queries.is_empty()) {
        (false, _) => Reply::Addresses(found),
        (true, false) if !failed && !none => Reply::Silence,
        (true, true) if !failed => Reply::None,
        (true, _) => Reply::Failed,
    })
}

/// Asks over TCP, where an answer of any length fits. `None` where that fails.
fn ask_by_stream(
    query: &Query,
    server: SocketAddr,
    end: Duration,
    waiter: &Waiter<'_>,
) -> Result<Option<Answer>, Failure> {
    let Some(socket) = socket_to(server, SocketType::STREAM) else { return Ok(None) };
    let message = query.bytes();
    let length = u16::try_from(message.len()).unwrap_or_default();
    let out = [&length.to_be_bytes()[..], &message].concat();
    let (mut sent, mut received, mut connected) = (0, Vec::new(), false);
    while waiter.now() < end {
        let flags = if sent < out.len() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = vec![PollFd::from_borrowed_fd(socket.as_fd(), flags)];
        waiter.wait(&mut fds, Some(end))?;
        if !connected {
            if fds.iter().all(|fd| fd.revents().is_empty()) {
                continue;
            }
            if !matches!(socket_error(&socket), Ok(Ok(()))) {
                return Ok(None);
            }
            connected = true;
        }
        if sent < out.len() {
            match send(&socket, &out[sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(_) => return Ok(None),
            }
        }
        let mut buffer = [0; 4096];
        match recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(None),
            Ok((count, _)) => received.extend_from_slice(&buffer[..count]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        if let [high, low, rest @ ..] = received.as_slice()
            && let Some(whole) = rest.get(..usize::from(u16::from_be_bytes([*high, *low])))
        {
            return Ok(query.answer(whole).filter(|answer| *answer != Answer::Truncated));
        }
    }
    Ok(None)
}

/// The port of name servers.
const DNS: u16 = 53;

fn datagram(address: SocketAddr) -> Option<OwnedFd> {
    socket_to(address, SocketType::DGRAM)
}

fn socket_to(address: SocketAddr, kind: SocketType) -> Option<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, kind, flags, None).ok()?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => Some(socket),
        Err(_) => None,
    }
}

/// Whether this machine knows a way to an address; nothing is sent.
fn has_route(address: &IpAddr) -> bool {
    datagram(SocketAddr::new(*address, DNS)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_is_read_as_the_c_library_reads_it() {
        let hosts = "# a\n127.0.0.1 localhost loop # x\n::1\tlocalhost\n10.0.0.1 Web\nnonsense web\n10.0.0.2 web\n";
        let found = |name| in_hosts(hosts, name).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
        assert_eq!(found("LOOP"), ["127.0.0.1"]);
        assert_eq!(found("web"), ["10.0.0.1", "10.0.0.2"]);
        assert!(found("x").is_empty() && found("127.0.0.1").is_empty());
    }

    #[test]
    fn resolv_conf_is_read_as_the_c_library_reads_it() {
        let text = "# x\nnameserver 10.0.0.1\nnameserver ::1 # y\nnameserver nonsense\nnameserver fe80::1%3\n\
                    nameserver 10.0.0.4\ndomain a\nsearch b.example. c\n; z\n\
                    options ndots:2 timeout:99 attempts:0 rotate edns0 what:ever nonsense\nwhat\n";
        let servers = Servers::parse(text);
        let shown: Vec<_> = servers.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.1:53", "[::1]:53", "[fe80::1%3]:53"]);
        assert_eq!((servers.dots, servers.patience, servers.rounds), (2, Duration::from_secs(30), 1));
        assert_eq!(servers.candidates("x"), ["x.b.example", "x.c", "x"]);
        assert_eq!(servers.candidates("x.y.z"), ["x.y.z", "x.y.z.b.example", "x.y.z.c"]);
        assert_eq!(servers.candidates("x."), ["x."]);
        let none = Servers::parse("\u{feff}");
        assert_eq!(
            (none.addresses[0].to_string().as_str(), none.candidates("x")),
            ("127.0.0.1:53", vec!["x".to_owned()])
        );
    }
}
