//! Names: the hosts file and name servers, the same whatever nsswitch.conf says, in the
//! static release as in a dynamic build. Each test has a network and files of its own.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::namespace::own_network_and_mounts;
use crate::server::{HELLO, Server};
use crate::support::{Lab, is_root, skip, variable};

/// The binaries whose answers must be the same.
fn binaries() -> Vec<PathBuf> {
    let mut binaries = vec![Lab::binary().to_owned()];
    binaries.extend(variable("STATIC_RETRYX").map(PathBuf::from));
    binaries
}

const NSSWITCH: &str = "hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns wins\n";

/// A place with its own network, `/etc/hosts`, `/etc/resolv.conf` and `/etc/nsswitch.conf`.
struct Place {
    lab: Lab,
}

impl Place {
    /// Runs a test in such a place; skips it where that is not allowed.
    fn test(hosts: &str, resolv: &str, test: impl FnOnce(&Place) + Send) {
        if !is_root() {
            skip!("only root gets a network of its own");
        }
        let told = thread::scope(|scope| {
            let inside = scope.spawn(|| {
                if !own_network_and_mounts() {
                    return Err("no network of one's own is allowed");
                }
                let lab = Lab::new();
                lab.tool("mount", &["--make-rprivate", "/"]);
                for (name, content) in [("hosts", hosts), ("resolv.conf", resolv), ("nsswitch.conf", NSSWITCH)] {
                    let path = lab.write(name, content);
                    let target = PathBuf::from("/etc").join(name);
                    if !target.exists() {
                        return Err("a file in /etc is not there to be mounted over");
                    }
                    let target = std::fs::canonicalize(target).expect("a path");
                    lab.tool("mount", &["--bind", &path.to_string_lossy(), &target.to_string_lossy()]);
                }
                lab.tool("ip", &["link", "set", "lo", "up"]);
                let _server = Server::at("127.0.0.1:80");
                test(&Place { lab });
                Ok(())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Err(reason) = told {
            skip!("{reason}");
        }
    }

    /// Asks the server by this URL with each binary; it must answer.
    #[track_caller]
    fn finds(&self, words: &str) {
        for binary in binaries() {
            let run = self.lab.program(&binary).words("-n 1 http").words(words).finish();
            run.exited(0);
            assert_eq!(run.text(), HELLO, "{words}");
        }
    }

    /// Asks with each binary; it must end with this code and say that.
    #[track_caller]
    fn fails(&self, words: &str, code: i32, said: &[&str]) {
        for binary in binaries() {
            let run = self.lab.program(&binary).words("-n 1 http").words(words).finish();
            run.exited(code).says(said);
        }
    }
}

/// The name, kind and number of a question, and the question as it was.
#[derive(Debug, Clone)]
struct Question {
    id: [u8; 2],
    name: String,
    kind: u16,
    bytes: Vec<u8>,
}

const A: u16 = 1;
const AAAA: u16 = 28;

fn question(packet: &[u8]) -> Question {
    let mut at = 12;
    let mut labels = Vec::new();
    while packet[at] != 0 {
        let length = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).into_owned());
        at += length + 1;
    }
    let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
    Question { id: [packet[0], packet[1]], name: labels.join("."), kind, bytes: packet[12..at + 5].to_vec() }
}

fn wire_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> =
        labels.flat_map(|label| [&[u8::try_from(label.len()).expect("a length")], label.as_bytes()].concat()).collect();
    bytes.push(0);
    bytes
}

/// A record: name, kind, data.
fn record(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("a length").to_be_bytes();
    [&wire_name(name)[..], &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &length, data].concat()
}

fn address(name: &str, address: &str) -> Vec<u8> {
    match address.parse().expect("an address") {
        IpAddr::V4(address) => record(name, A, &address.octets()),
        IpAddr::V6(address) => record(name, AAAA, &address.octets()),
    }
}

fn alias(name: &str, target: &str) -> Vec<u8> {
    record(name, 5, &wire_name(target))
}

/// An answer with this code and these records.
fn reply(question: &Question, code: u8, records: &[Vec<u8>]) -> Vec<u8> {
    let count = u16::try_from(records.len()).expect("a length").to_be_bytes();
    let head = [&question.id[..], &[0x81, 0x80 | code, 0, 1], &count, &[0; 4], &question.bytes].concat();
    [head, records.concat()].concat()
}

/// What a name server sends for a question: any number of packets.
type Script = fn(&Question) -> Vec<Vec<u8>>;

/// A name server on port 53 of this address. Returns what it was asked.
fn name_server(at: [u8; 4], script: Script) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let socket = UdpSocket::bind(SocketAddr::from((at, 53))).expect("port 53");
    let listener = TcpListener::bind(SocketAddr::from((at, 53))).expect("port 53");
    let log = Arc::clone(&asked);
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let question = question(&buffer[..count]);
            log.lock().expect("the record").push(format!("{} {}", question.name, question.kind));
            for packet in script(&question) {
                let _ = socket.send_to(&packet, from);
            }
        }
    });
    let log = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                let mut length = [0; 2];
                stream.read_exact(&mut length).ok()?;
                let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut packet).ok()?;
                let question = question(&packet);
                log.lock().expect("the record").push(format!("{} {} tcp", question.name, question.kind));
                let number = question.name.split('.').next().and_then(|name| name.strip_prefix("tcp-"));
                let count = number.and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
                let mut records = vec![record(&question.name, 16, &[b'x'; 255]); count];
                if question.kind == A {
                    records.push(address(&question.name, "127.0.0.1"));
                }
                let answer = reply(&question, 0, &records);
                let length = u16::try_from(answer.len()).ok()?.to_be_bytes();
                // In two pieces, as a network may have it.
                stream.write_all(&length[..1]).ok()?;
                stream.write_all(&[&length[1..], &answer].concat()).ok()
            });
        }
    });
    asked
}

#[test]
fn the_hosts_file_is_read_whatever_nsswitch_says() {
    let hosts = "127.0.0.1 localhost\n127.0.0.1\tWeb.example web # old\n::1 six\n10.255.255.1 127.0.0.9x\n";
    Place::test(hosts, "nameserver 127.0.0.1\n", |place| {
        for name in ["web.example", "WEB", "web.example.", "localhost", "any.localhost"] {
            place.finds(&format!("http://{name}/"));
        }
        // Nobody is on port 53.
        place.fails("http://old/", 6, &["old", "no name server answers", "127.0.0.1"]);
        place.fails("-4 http://six/", 6, &["six"]);
        place.fails("http://six/", 7, &["[::1]:80"]);
        place.fails("http://a..b/", 6, &["no name"]);
    });
}

#[test]
fn localhost_is_this_machine_by_either_protocol() {
    Place::test("127.0.0.1 localhost\n", "", |place| {
        let six = Server::at("[::1]:81");
        place.finds("http://localhost/");
        place.finds("http://localhost:81/");
        place.finds("-6 http://localhost:81/");
        place.finds("-4 http://localhost/");
        assert!(six.take().len() >= 2);
        place.fails("-4 http://localhost:81/", 7, &["127.0.0.1:81: connection refused"]);
        place.fails("http://localhost:82/", 7, &["127.0.0.1:82: connection refused", "[::1]:82: connection refused"]);
        // Without IPv6 at all.
        if place.lab.program("sysctl").words("-qw net.ipv6.conf.all.disable_ipv6=1").finish().status.success() {
            place.finds("http://localhost/");
            place.fails("http://localhost:82/", 7, &["127.0.0.1:82: connection refused"]);
        }
    });
}

#[test]
fn addresses_are_tried_until_one_answers() {
    Place::test("127.0.0.9 two\n127.0.0.1 two\n10.9.9.9 hole\n127.0.0.1 hole\n", "", |place| {
        place.finds("http://two/");
        place.fails("http://two:82/", 7, &["127.0.0.9:82", "127.0.0.1:82"]);
        // A wire to nobody, who is said to be there: what is sent goes nowhere.
        let made = place.lab.program("ip").words("link add hole type veth peer name end").finish().status.success();
        if !made {
            skip!("no pair of interfaces can be made");
        }
        for line in [
            "addr add 10.9.9.1/24 dev hole",
            "link set end up",
            "link set hole up",
            "neigh add 10.9.9.9 lladdr 02:00:00:00:00:09 dev hole nud permanent",
        ] {
            place.lab.tool("ip", &line.split(' ').collect::<Vec<_>>());
        }
        place.finds("http://hole/");
        place.fails("--connect-timeout 0.5 http://10.9.9.9/", 28, &["--connect-timeout"]);
    });
}

#[test]
fn a_name_that_comes_late_is_found_in_a_later_attempt() {
    Place::test("127.0.0.1 localhost\n", "nameserver 127.0.0.1\n", |place| {
        for binary in binaries() {
            place.lab.write("hosts", "127.0.0.1 localhost\n");
            let events = place.lab.path("late-events");
            let _ = std::fs::remove_file(&events);
            let run = place.lab.program(&binary).words("-n 50 --delays 50ms --events").arg(&events);
            let run = run.words("http http://late/").start();
            let seen = crate::support::Events::at(events);
            seen.wait("attempt_finished", 1);
            place.lab.write("hosts", "127.0.0.1 late\n");
            run.finish().exited(0);
            assert_eq!(seen.of("attempt_finished")[0]["exit_code"], 6);
        }
    });
}

#[test]
fn name_servers_are_asked() {
    fn script(question: &Question) -> Vec<Vec<u8>> {
        let name = question.name.as_str();
        let found = |records: &[Vec<u8>]| vec![reply(question, 0, records)];
        let is_a = question.kind == A;
        match name {
            "plain.example" | "half.example" if is_a => found(&[address(name, "127.0.0.1")]),
            "plain.example" | "nothing.example" => found(&[]),
            "six.example" if is_a => found(&[]),
            "six.example" => found(&[address(name, "::1")]),
            "both.example" => found(&[address(name, if is_a { "127.0.0.1" } else { "::1" })]),
            "alias.example" if is_a => {
                found(&[alias(name, "b.example"), alias("b.example", "c.other"), address("c.other", "127.0.0.1")])
            }
            "alias.example" => found(&[alias(name, "b.example"), alias("b.example", "c.other")]),
            "half.example" => Vec::new(),
            "tcp-0.example" | "tcp-200.example" => {
                let mut answer = reply(question, 0, &[]);
                answer[2] |= 0x02;
                vec![answer]
            }
            "forged.example" => {
                let other = Question { id: [!question.id[0], question.id[1]], ..question.clone() };
                let mut name = question.clone();
                name.bytes[1] ^= 0x01;
                let records = [address("forged.example", "127.0.0.66")];
                let mut no_answer = reply(question, 0, &records);
                no_answer[2] &= 0x7f;
                vec![
                    reply(&other, 0, &records),
                    reply(&name, 0, &records),
                    no_answer,
                    question.id.to_vec(),
                    Vec::new(),
                    reply(
                        question,
                        0,
                        &[address("other.example", "127.0.0.66"), address("forged.example", "127.0.0.1")],
                    ),
                ]
            }
            "bomb.example" => {
                let mut packet = reply(question, 0, &[record("x", A, &[127, 0, 0, 1])]);
                let at = 12 + question.bytes.len();
                // The name of the record is the record itself.
                packet.splice(at..at + 3, [0xc0, u8::try_from(at).expect("a length")]);
                vec![packet]
            }
            "broken.example" => vec![reply(question, 2, &[])],
            "refused.example" => vec![reply(question, 5, &[])],
            _ => vec![reply(question, 3, &[])],
        }
    }
    Place::test("", "nameserver 127.0.0.1\noptions timeout:1 attempts:2 trust-ad what:ever\n", |place| {
        let _six = Server::at("[::1]:80");
        let asked = name_server([127, 0, 0, 1], script);
        for name in ["plain", "six", "both", "alias", "half", "forged", "tcp-0", "tcp-200"] {
            place.finds(&format!("http://{name}.example/"));
        }
        place.finds("http://PLAIN.example./");
        place.finds("-6 http://both.example/");
        place.finds("-4 http://both.example/");
        place.finds("--connect-to ::plain.example:80 http://elsewhere.example/");
        place.fails("-4 http://six.example/", 6, &["six.example", "no such name"]);
        place.fails("http://nothing.example/", 6, &["no such name"]);
        place.fails("http://none.example/", 6, &["none.example", "no such name"]);
        place.fails("http://broken.example/", 6, &["name servers failed"]);
        place.fails("http://refused.example/", 6, &["name servers failed"]);
        place.fails("http://bomb.example/", 6, &["name servers failed"]);
        place.fails("-x http://none.example/ http://plain.example/", 5, &["none.example"]);
        let asked = asked.lock().expect("the record");
        assert!(asked.contains(&"tcp-200.example 1 tcp".to_owned()), "{asked:?}");
        // With -4 nobody is asked for the other kind.
        let binaries = binaries().len();
        assert_eq!(asked.iter().filter(|line| *line == "both.example 28").count(), 2 * binaries);
    });
}

#[test]
fn a_name_server_that_fails_is_followed_by_the_next() {
    let resolv = "nameserver 127.0.0.11\nnameserver 127.0.0.12\nnameserver 127.0.0.13\noptions timeout:1\n";
    Place::test("", resolv, |place| {
        // Nobody is at the first, the second fails.
        let second = name_server([127, 0, 0, 12], |question| vec![reply(question, 2, &[])]);
        let _third = name_server([127, 0, 0, 13], |question| {
            let found = if question.kind == A { vec![address(&question.name, "127.0.0.1")] } else { Vec::new() };
            vec![reply(question, 0, &found)]
        });
        place.finds("http://any.example/");
        assert!(!second.lock().expect("the record").is_empty());
    });
}

#[test]
fn silent_name_servers_are_left_and_bounded_by_limits() {
    let resolv = "nameserver 127.0.0.11\nnameserver 127.0.0.12\noptions timeout:1 attempts:1\n";
    Place::test("", resolv, |place| {
        let silent = name_server([127, 0, 0, 11], |_| Vec::new());
        place.fails("http://any.example/", 6, &["no name server answers", "127.0.0.11, 127.0.0.12"]);
        let _second = name_server([127, 0, 0, 12], |question| {
            let found = if question.kind == A { vec![address(&question.name, "127.0.0.1")] } else { Vec::new() };
            vec![reply(question, 0, &found)]
        });
        place.finds("http://any.example/");
        assert!(!silent.lock().expect("the record").is_empty());
        place.lab.write("resolv.conf", "nameserver 127.0.0.11\noptions timeout:30\n");
        place.fails("--connect-timeout 0.3 http://any.example/", 28, &["--connect-timeout"]);
        for binary in binaries() {
            let run = place.lab.program(&binary).words("-n 1 --timeout 0.3 http http://any.example/").finish();
            assert!([28, 124].contains(&run.status.code().unwrap()), "{}", run.stderr);
        }
    });
}

#[test]
fn short_names_are_searched_for() {
    fn script(question: &Question) -> Vec<Vec<u8>> {
        let known = ["short.two.example", "a.b.c", "x.y.two.example"];
        let found = known.contains(&question.name.as_str());
        let records = if found && question.kind == A { vec![address(&question.name, "127.0.0.1")] } else { Vec::new() };
        let code = if found {
            0
        } else if question.name.ends_with("one.example") {
            2
        } else {
            3
        };
        vec![reply(question, code, &records)]
    }
    Place::test("", "nameserver 127.0.0.1\nsearch one.example two.example\n", |place| {
        let asked = name_server([127, 0, 0, 1], script);
        let asked_now = || {
            let lines = std::mem::take(&mut *asked.lock().expect("the record"));
            lines.into_iter().filter_map(|line| line.strip_suffix(" 1").map(str::to_owned)).collect::<Vec<_>>()
        };
        let times = binaries().len();
        place.finds("http://short/");
        assert_eq!(asked_now(), ["short.one.example", "short.two.example"].repeat(times));
        // As many dots as ndots: first as it is.
        place.finds("http://a.b.c/");
        assert_eq!(asked_now(), ["a.b.c"].repeat(times));
        place.finds("http://x.y/");
        assert_eq!(asked_now(), ["x.y", "x.y.one.example", "x.y.two.example"].repeat(times));
        // A dot at the end: no search.
        place.fails("http://short./", 6, &["no such name"]);
        assert_eq!(asked_now(), ["short"].repeat(times));
        place.lab.write("resolv.conf", "nameserver 127.0.0.1\nsearch two.example\noptions ndots:3\n");
        place.finds("http://a.b.c/");
        assert_eq!(asked_now(), ["a.b.c.two.example", "a.b.c"].repeat(times));
    });
}
