//! TLS with real servers and a test authority: who is trusted, who is refused and what is
//! said then, and handshakes that go wrong.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::server::Server;
use crate::support::{Finished, Lab, Running, has_programs, is_root, skip, wait_until};

/// Makes two authorities, and certificates by them and by nobody.
const AUTHORITY: &str = r#"set -e
cd "$D"
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() {
    new_key "$1"
    openssl req -x509 -new -key "$1.key" -out "$1.pem" -days 30 -subj "/CN=Test $1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
# NAME AUTHORITY SUBJECT-ALTERNATIVE-NAME START END
certificate() {
    new_key "$1"
    openssl req -new -key "$1.key" -out "$1.csr" -subj "/CN=$1"
    touch index.txt
    cat >ca.conf <<END
[ca]
default_ca = x
[x]
database = index.txt
rand_serial = yes
new_certs_dir = .
default_md = sha256
policy = y
unique_subject = no
x509_extensions = z
[y]
commonName = supplied
[z]
subjectAltName = $3
extendedKeyUsage = serverAuth, clientAuth
END
    openssl ca -batch -notext -config ca.conf -cert "$2.pem" -keyfile "$2.key" -in "$1.csr" -out "$1.crt" \
        -startdate "$4" -enddate "$5"
    cat "$1.crt" "$1.key" >"$1.both"
}
authority ca
authority other
past=20200101000000Z future=20700101000000Z
certificate good ca DNS:localhost,IP:127.0.0.1 $past $future
certificate expired ca DNS:localhost $past 20210101000000Z
certificate early ca DNS:localhost 20600101000000Z $future
certificate wrong ca DNS:elsewhere.example $past $future
certificate unknown other DNS:localhost $past $future
certificate client ca DNS:client $past $future
certificate stranger other DNS:client $past $future
new_key self
openssl req -x509 -new -key self.key -out self.crt -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost
openssl pkcs8 -topk8 -in client.key -out locked.key -passout pass:secret
"#;

/// A place with the authority and its certificates.
pub fn lab_with_authority() -> Option<Lab> {
    if !has_programs(&["openssl"]) {
        return None;
    }
    let lab = Lab::new();
    lab.bash(AUTHORITY).finish().exited(0);
    Some(lab)
}

/// A real server that answers each request with a page, on a port that it chose.
pub struct TlsServer {
    /// Where it listens.
    pub port: u16,
    log: std::path::PathBuf,
    _running: Running,
}

impl TlsServer {
    /// Starts one with this certificate and options of `openssl s_server`.
    pub fn start(lab: &Lab, certificate: &str, options: &str) -> Self {
        Self::with(lab, certificate, &format!("-www {options}"), Stdio::null())
    }

    /// Starts one that answers nothing but writes what it reads.
    pub fn silent(lab: &Lab, certificate: &str) -> Self {
        // At the end of its input it would end.
        let (read, write) = std::io::pipe().expect("a pipe");
        std::mem::forget(write);
        Self::with(lab, certificate, "-no_ticket", read.into())
    }

    fn with(lab: &Lab, certificate: &str, options: &str, stdin: Stdio) -> Self {
        // With -accept 0 it says which port it got.
        let log = lab.path(&format!("s_server-{certificate}-{}", options.len()));
        let run = lab
            .program("openssl")
            .words("s_server -accept 127.0.0.1:0 -cert")
            .arg(format!("{certificate}.crt"))
            .arg("-key")
            .arg(format!("{certificate}.key"))
            .words(options)
            .stdin(stdin)
            .stdout(std::fs::File::create(&log).expect("a file"))
            .start();
        let mut port = 0;
        wait_until("the TLS server listens", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let found = text.lines().find_map(|line| line.strip_prefix("ACCEPT ")?.rsplit(':').next()?.parse().ok());
            port = found.unwrap_or(0);
            port != 0
        });
        Self { port, log, _running: run }
    }

    /// What it has written.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}

fn get(lab: &Lab, options: &str, url: &str) -> Finished {
    lab.run("--base-delay 0 http -4").words(options).arg(url).finish()
}

macro_rules! lab {
    () => {
        match lab_with_authority() {
            Some(lab) => lab,
            None => skip!("openssl is not installed"),
        }
    };
}

#[test]
fn a_certificate_is_trusted_by_its_authority() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    let page = |run: &Finished| {
        run.exited(0).stopped(1, "success");
        assert!(run.text().contains("s_server"), "{}", run.text());
    };
    page(&get(&lab, "--cacert ca.pem", &server.url()));
    page(&get(&lab, "--cacert ca.pem", &format!("https://127.0.0.1:{}/", server.port)));
    page(&get(&lab, "--cacert ca.pem", &format!("https://localhost.:{}/", server.port)));
    page(&get(&lab, "-k", &server.url()));
    page(&lab.run("http -4").arg(server.url()).env("SSL_CERT_FILE", lab.path("ca.pem")).finish());
    page(&lab.run("http -4").arg(server.url()).env("CURL_CA_BUNDLE", lab.path("ca.pem")).finish());
    page(&lab.run("http -4 --cacert ca.pem").arg(server.url()).env("CURL_CA_BUNDLE", "/no/such").finish());
    std::fs::create_dir(lab.path("folder")).unwrap();
    std::fs::copy(lab.path("ca.pem"), lab.path("folder/ca.pem")).unwrap();
    lab.tool("openssl", &["rehash", "folder"]);
    page(&lab.run("http -4").arg(server.url()).env("SSL_CERT_DIR", lab.path("folder")).finish());
    // What -w says of it.
    let run =
        get(&lab, "--cacert ca.pem -o /dev/null -w %{ssl_verify_result}|%{scheme}|%{time_appconnect}", &server.url());
    assert!(run.text().starts_with("0|https|0.") && !run.text().ends_with("|0.000000"), "{}", run.text());
}

#[test]
fn certificates_are_refused_at_once_and_it_is_said_why() {
    let lab = lab!();
    for (certificate, said) in [
        ("self", "nobody trusted has signed it"),
        ("unknown", "nobody trusted has signed it"),
        ("expired", "expired"),
        ("early", "not valid yet"),
        ("wrong", "another name"),
    ] {
        let server = TlsServer::start(&lab, certificate, "");
        let run = get(&lab, "--cacert ca.pem", &server.url());
        run.exited(60).stopped(1, "permanent").says(&[said, "-k", "localhost"]);
        let is_unknown = ["self", "unknown"].contains(&certificate);
        assert_eq!(run.stderr.contains("--cacert"), is_unknown, "{}", run.stderr);
        get(&lab, "-k", &server.url()).exited(0).stopped(1, "success");
    }
    // What is trusted itself needs no authority, but the rest must be right.
    let server = TlsServer::start(&lab, "self", "");
    get(&lab, "--cacert self.crt", &server.url()).exited(0);
    get(&lab, "--cacert self.crt", &format!("https://127.0.0.1:{}/", server.port)).exited(60).says(&["another name"]);
    let server = TlsServer::start(&lab, "good", "");
    get(&lab, "--cacert good.crt", &server.url()).exited(60);
    get(&lab, "", &server.url()).exited(60).stopped(1, "permanent").says(&["--cacert"]);
    get(&lab, "--cacert other.pem", &server.url()).exited(60);
    // An unsafe post was not made either, and is no other case.
    get(&lab, "-d x", &server.url()).exited(60).stopped(1, "permanent");
}

#[test]
fn without_a_store_it_is_said_how_to_get_one() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    lab.write("empty", "");
    lab.write("junk", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    for file in ["empty", "junk", "missing", "bin"] {
        let run = lab.run("http -4 --cacert").arg(file).arg(server.url()).finish();
        if ["missing", "bin"].contains(&file) {
            run.exited(125).says(&["--cacert", file]);
        } else {
            run.exited(77).stopped(1, "permanent").says(&[file]);
        }
        for variable in ["SSL_CERT_FILE", "CURL_CA_BUNDLE"] {
            let run = lab.run("http -4").arg(server.url()).env(variable, lab.path(file)).finish();
            run.exited(77).stopped(1, "permanent").says(&[&format!("{variable}: "), file]);
        }
    }
    if !is_root() {
        skip!("only root can change the root folder");
    }
    let Some(binary) = crate::support::variable("STATIC_RETRYX") else {
        skip!("STATIC_RETRYX names no release binary")
    };
    std::fs::create_dir(lab.path("root")).unwrap();
    std::fs::copy(binary, lab.path("root/retryx")).unwrap();
    let inside = |words: &str| {
        let run = lab.shell("exec env -i \"$(command -v chroot)\" $D/root /retryx http -4 $0 $1").arg(words);
        run.arg(server.url()).finish()
    };
    inside("-sS").exited(77).says(&["no store", "ca-certificates", "--cacert"]);
    inside("-k").exited(0);
}

#[test]
fn certificates_that_never_come_or_never_end_are_not_waited_for() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    lab.tool("mkfifo", &["silent"]);
    lab.write("huge", "");
    std::fs::File::options().write(true).open(lab.path("huge")).unwrap().set_len(1 << 32).unwrap();
    let ways = ["--cacert F", "--cacert ca.pem --cert F", "--cacert ca.pem --cert client.crt --key F"];
    for way in ways.into_iter().chain(["CURL_CA_BUNDLE", "SSL_CERT_FILE"]) {
        for (file, limit) in
            [("silent", "--timeout 0.2"), ("silent", "--total-timeout 0.2"), ("/dev/zero", ""), ("huge", "")]
        {
            let script = "ulimit -d 98304; exec retryx -n 1 $L http -4 $W $U";
            let options = if way.starts_with('-') { way.replace('F', file) } else { String::new() };
            let run = lab.shell(script).env("L", limit).env("W", options).env("U", server.url());
            let run = if way.starts_with('-') { run } else { run.env(way, file) }.finish();
            if limit.is_empty() {
                run.says(&["16 MiB", file]);
            } else {
                run.exited(28);
            }
        }
        let options = if way.starts_with('-') { way.replace('F', "silent") } else { String::new() };
        let run = lab.run("http -4").words(&options).arg(server.url());
        let run = if way.starts_with('-') { run } else { run.env(way, "silent") }.start();
        run.events.wait("attempt_started", 1);
        run.signal(Signal::TERM);
        run.finish().died_of(Signal::TERM);
    }
}

#[test]
fn certificates_are_read_from_pipes() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "-Verify 1 -CAfile ca.pem -verify_return_error");
    let script = "exec retryx -n 1 http -4 --cacert <(cat ca.pem) --cert <(cat client.both) $0";
    let run = lab.bash(script).arg(server.url());
    run.finish().exited(0);
    let script =
        "SSL_CERT_FILE=<(cat ca.pem) exec retryx -n 1 http -4 --cert <(cat client.crt) --key <(cat client.key) $0";
    let run = lab.bash(script).arg(server.url());
    run.finish().exited(0);
}

#[test]
fn both_versions_of_tls_are_spoken() {
    let lab = lab!();
    for option in ["-tls1_2", "-tls1_3", "-no_ticket", "-cipher ECDHE-ECDSA-AES256-GCM-SHA384 -tls1_2"] {
        let server = TlsServer::start(&lab, "good", option);
        get(&lab, "--cacert ca.pem", &server.url()).exited(0);
        get(&lab, "-k", &server.url()).exited(0);
    }
    let server = TlsServer::start(&lab, "good", "-tls1_1 -cipher ALL:@SECLEVEL=0");
    get(&lab, "--cacert ca.pem", &server.url()).exited(35);
}

#[test]
fn client_certificates() {
    let lab = lab!();
    for version in ["-tls1_2", "-tls1_3"] {
        let server =
            TlsServer::start(&lab, "good", &format!("-Verify 1 -verify_return_error -CAfile ca.pem {version}"));
        let url = server.url();
        let get = |options: &str| get(&lab, &format!("--cacert ca.pem {options}"), &url);
        get("--cert client.crt --key client.key").exited(0).stopped(1, "success");
        get("-E client.both").exited(0);
        let refused = |run: &Finished| {
            assert!([35, 56].contains(&run.status.code().unwrap()), "{:?} {}", run.status, run.stderr);
            run.stopped(1, "permanent").says(&["certificate", "--cert"]);
        };
        refused(&get(""));
        refused(&get("--cert stranger.both"));
    }
    let server = TlsServer::start(&lab, "good", "-verify 1");
    let bad = |options: &str, said: &[&str]| {
        get(&lab, &format!("--cacert ca.pem {options}"), &server.url()).exited(58).stopped(1, "permanent").says(said);
    };
    for options in ["--cert missing", "--cert client.crt --key missing"] {
        get(&lab, &format!("--cacert ca.pem {options}"), &server.url()).exited(125).says(&["missing"]);
    }
    bad("--cert client.crt", &["client.crt", "private key", "--key"]);
    bad("--cert client.crt --key locked.key", &["locked.key", "passphrase", "openssl pkey"]);
    bad("--cert client.crt --key stranger.key", &["client.crt"]);
    bad("--cert ca.conf --key client.key", &["ca.conf", "no certificate"]);
    // As curl writes a passphrase: it is shown nowhere.
    let run = get(&lab, "--cacert ca.pem --cert client.both:s3cr3t", &server.url());
    run.exited(125);
    assert!(!format!("{} {:?}", run.stderr, run.events).contains("s3cr3t"), "{}", run.stderr);
}

/// What is done to a connection.
type Spoil = fn(TcpStream);

/// Hands each connection on to a server, but the first ones to a function.
fn in_front_of(port: u16, first: usize, spoil: Spoil) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if counted.fetch_add(1, Ordering::SeqCst) < first {
                spoil(stream);
                continue;
            }
            let Ok(target) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut from, mut to) = (stream.try_clone().expect("a copy"), target.try_clone().expect("a copy"));
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
            let (mut from, mut to) = (target, stream);
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    (own, count)
}

#[test]
fn a_handshake_that_is_cut_short_is_tried_again() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    let spoils: [(&str, Spoil); 4] = [
        ("closed at once", |stream| drop(stream)),
        ("closed after the hello", |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
        }),
        ("closed within a record", |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&[22, 3, 3, 0, 100, 2, 0]);
        }),
        ("refused by an alert", |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 80]);
        }),
    ];
    for (how, spoil) in spoils {
        let (port, count) = in_front_of(server.port, 1, spoil);
        let run = get(&lab, "--cacert ca.pem", &format!("https://localhost:{port}/"));
        assert_eq!(run.status.code(), Some(0), "{how}: {}", run.stderr);
        run.stopped(2, "success");
        assert_eq!(run.each("attempt_finished", "exit_code")[0], 35, "{how}");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn plain_text_on_the_port_of_tls_is_told() {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno TLS here\n");
        }
    });
    let run = get(&lab, "-k", &format!("https://127.0.0.1:{port}/"));
    run.exited(35).says(&["no TLS", "plain HTTP"]);
    // And the other way around.
    let Some(lab) = lab_with_authority() else { skip!("openssl is not installed") };
    let server = TlsServer::start(&lab, "good", "");
    let run = get(&lab, "--max-attempts 1", &format!("http://localhost:{}/", server.port));
    assert_ne!(run.status.code(), Some(0));
    assert_ne!(run.status.code(), Some(22));
}

#[test]
fn an_end_without_a_farewell_is_an_end_only_where_the_length_is_known() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    // `-www` sends no length and closes; through this it is cut before the farewell.
    let port = cutting(server.port);
    let run = get(&lab, "--max-attempts 1 --cacert ca.pem -o out", &format!("https://localhost:{port}/"));
    run.exited(56);
    assert!(!lab.path("out").exists());
}

/// Passes on all that a server sends but the farewell of TLS.
fn cutting(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Ok(mut target) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut from, mut to) = (stream.try_clone().expect("a copy"), target.try_clone().expect("a copy"));
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            thread::spawn(move || {
                let mut head = [0; 5];
                while target.read_exact(&mut head).is_ok() {
                    let mut record = head.to_vec();
                    record.resize(5 + usize::from(u16::from_be_bytes([head[3], head[4]])), 0);
                    // Only an alert of TLS 1.3 is so short.
                    if target.read_exact(&mut record[5..]).is_err() || record.len() == 24 {
                        break;
                    }
                    let _ = stream.write_all(&record);
                }
                let _ = stream.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    own
}

#[test]
fn a_system_store_is_used() {
    let lab = lab!();
    let server = TlsServer::start(&lab, "good", "");
    let store = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if !is_root() || !store.exists() {
        skip!("the system's store cannot be replaced for a test");
    }
    let script = "mount --make-rprivate / && mount --bind $D/ca.pem \"$(readlink -f $0)\" && \
                  exec \"$R\" http -4 -fsSL \"$1\"";
    let run = lab.program("unshare").args(["-m", "sh", "-c", script]).arg(store).arg(server.url()).finish();
    if run.stderr.contains("unshare") {
        skip!("mounts of one's own are not allowed");
    }
    run.exited(0);
}

#[test]
fn plain_requests_need_no_store() {
    let lab = Lab::new();
    let server = Server::start();
    let run = lab.bare("http").arg(format!("http://{}/", server.address)).env("SSL_CERT_FILE", "/no/such");
    run.env("SSL_CERT_DIR", "/no/such").env("CURL_CA_BUNDLE", "/no/such").finish().exited(0);
}
