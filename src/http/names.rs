//! Names to addresses, the same in a static program as in a dynamic one: `--resolve`,
//! literals, the hosts file, then the name servers of resolv.conf. The C library's own
//! resolver loads modules that a static program cannot load safely, so it is not asked.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};

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
    let mut found = match bare.parse::<IpAddr>() {
        Ok(address) if family.admits(&address) => return Ok(vec![address]),
        Ok(_) => return Err(Failure::new(Fault::Connect, format!("{host} is no address of the kind asked for"))),
        Err(_) => by_name(bare, waiter)?,
    };
    found.retain(|address| family.admits(address));
    if found.is_empty() {
        return Err(Failure::new(Fault::Name, format!("{host} has no address of the kind asked for")));
    }
    // Where both ways are open the newer one goes first, as everywhere.
    let (v6, v4): (Vec<_>, Vec<_>) = found.into_iter().partition(IpAddr::is_ipv6);
    Ok(if v6.iter().any(has_route) { [v6, v4].concat() } else { [v4, v6].concat() })
}

fn by_name(name: &str, waiter: &Waiter<'_>) -> Result<Vec<IpAddr>, Failure> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let hosts = read("/etc/hosts").unwrap_or_default();
    let found = in_hosts(&String::from_utf8_lossy(&hosts), name);
    if !found.is_empty() {
        return Ok(found);
    }
    if name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost") {
        return Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
    }
    by_servers(name, waiter)
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

/// Asks the name servers, with the search list of resolv.conf.
fn by_servers(name: &str, waiter: &Waiter<'_>) -> Result<Vec<IpAddr>, Failure> {
    let text = read("/etc/resolv.conf").unwrap_or_default();
    let config = resolv_conf::Config::parse(&text).unwrap_or_default();
    let mut servers: Vec<IpAddr> = config.nameservers.iter().map(IpAddr::from).collect();
    if servers.is_empty() {
        servers.push(Ipv4Addr::LOCALHOST.into());
    }
    let dots = name.bytes().filter(|&byte| byte == b'.').count();
    let searched = config.get_last_search_or_domain().map(|domain| format!("{name}.{domain}"));
    let mut candidates: Vec<String> = searched.collect();
    let at = if dots >= usize::try_from(config.ndots).unwrap_or(1) { 0 } else { candidates.len() };
    candidates.insert(at, name.to_owned());
    let patience = Duration::from_secs(u64::from(config.timeout.max(1)));
    let mut silent = false;
    for candidate in &candidates {
        for _ in 0..config.attempts.max(1) {
            match ask_all(candidate, &servers, patience, waiter)? {
                Reply::Addresses(found) => return Ok(found),
                Reply::None => break,
                Reply::Silence => silent = true,
            }
        }
    }
    let why = if silent { "no name server answers" } else { "no such name" };
    Err(Failure::new(Fault::Name, format!("cannot resolve {name}: {why}")))
}

enum Reply {
    Addresses(Vec<IpAddr>),
    /// The name has none.
    None,
    /// Nobody has answered, or could.
    Silence,
}

fn ask_all(name: &str, servers: &[IpAddr], patience: Duration, waiter: &Waiter<'_>) -> Result<Reply, Failure> {
    for server in servers {
        match ask(name, *server, patience, waiter)? {
            Reply::Silence => {}
            reply => return Ok(reply),
        }
    }
    Ok(Reply::Silence)
}

/// Asks one server for both kinds of addresses at once.
fn ask(name: &str, server: IpAddr, patience: Duration, waiter: &Waiter<'_>) -> Result<Reply, Failure> {
    let wrong = |_| Failure::new(Fault::Name, format!("cannot resolve {name}: it is no name"));
    let mut id = [0; 4];
    let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
    let ids = [u16::from_le_bytes([id[0], id[1]]), u16::from_le_bytes([id[2], id[3]])];
    let kinds = [TYPE::A, TYPE::AAAA];
    let Some(socket) = datagram_to(server) else { return Ok(Reply::Silence) };
    for (id, kind) in ids.into_iter().zip(kinds) {
        let mut packet = Packet::new_query(id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let name = Name::new(name).map_err(wrong)?;
        packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
        let bytes = packet.build_bytes_vec().map_err(wrong)?;
        if send(&socket, &bytes, SendFlags::NOSIGNAL).is_err() {
            return Ok(Reply::Silence);
        }
    }
    let end = waiter.now().saturating_add(patience);
    let (mut open, mut found, mut refused) = (vec![ids[0], ids[1]], Vec::new(), false);
    while !open.is_empty() {
        let mut fds = vec![rustix::event::PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        waiter.wait(&mut fds, Some(end))?;
        let mut buffer = [0; 4096];
        match recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                let Ok(packet) = Packet::parse(&buffer[..count]) else { continue };
                let Some(at) = open.iter().position(|id| *id == packet.id()) else { continue };
                match packet.rcode() {
                    RCODE::NoError | RCODE::NameError => {}
                    _ => refused = true,
                }
                open.swap_remove(at);
                found.extend(packet.answers.iter().filter_map(|record| match &record.rdata {
                    RData::A(address) => Some(IpAddr::from(Ipv4Addr::from(address.address))),
                    RData::AAAA(address) => Some(IpAddr::from(Ipv6Addr::from(address.address))),
                    _ => None,
                }));
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) if waiter.now() < end => {}
            // Nobody there, or silence.
            Err(_) => break,
        }
    }
    Ok(match (found.is_empty(), open.is_empty() && !refused) {
        (false, _) => Reply::Addresses(found),
        (true, true) => Reply::None,
        (true, false) => Reply::Silence,
    })
}

/// The port of name servers.
const DNS: u16 = 53;

fn datagram_to(server: IpAddr) -> Option<OwnedFd> {
    datagram(SocketAddr::new(server, DNS))
}

fn datagram(address: SocketAddr) -> Option<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None).ok()?;
    connect(&socket, &address).ok()?;
    Some(socket)
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
}
