//! Proxies: which one is used, what it is told, and what nobody else is.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::server::{HELLO, Request, Server, read_request};
use crate::support::{Finished, Lab, Running, has_programs, skip, wait_until};
use crate::tls::{TlsServer, lab_with_authority};

/// A proxy that opens tunnels, or refuses them with this answer.
struct Tunnels {
    port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Tunnels {
    fn start(answer: fn(usize) -> &'static str) -> Self {
        Self::at("127.0.0.1:0", answer)
    }

    fn at(address: &str, answer: fn(usize) -> &'static str) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                thread::spawn(move || {
                    let request = read_request(&mut stream, &mut Vec::new())?;
                    let target = request.target().to_owned();
                    let count = {
                        let mut log = log.lock().expect("the record");
                        log.push(request);
                        log.len()
                    };
                    let answer = answer(count);
                    stream.write_all(answer.as_bytes()).ok()?;
                    if !answer.contains(" 200 ") {
                        return None;
                    }
                    let server = TcpStream::connect(target.replace("proxied.example", "127.0.0.1")).ok()?;
                    let (mut from, mut to) = (stream.try_clone().ok()?, server.try_clone().ok()?);
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Write);
                    });
                    let (mut from, mut to) = (server, stream);
                    let _ = std::io::copy(&mut from, &mut to);
                    to.shutdown(std::net::Shutdown::Both).ok()
                });
            }
        });
        Self { port, seen }
    }

    fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.seen.lock().expect("the record"))
    }
}

const OPEN: &str = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n";

/// Asserts that nothing that was told holds a secret.
#[track_caller]
fn is_silent(run: &Finished) {
    let told = format!("{} {:?} {}", run.stderr, run.events, run.text());
    for secret in ["s3cr3t", "czNjcjN0", "us3r"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
}

#[test]
fn https_goes_through_a_tunnel() {
    let Some(lab) = lab_with_authority() else { skip!("openssl is not installed") };
    let server = TlsServer::start(&lab, "good", "");
    for (at, host) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]")] {
        let proxy = Tunnels::at(at, |_| OPEN);
        let proxy_url = format!("http://us3r:s3cr3t%21@{host}:{}", proxy.port);
        let run = lab.run("-vv http --cacert ca.pem -u o:p -H").args(["X-Own: 1", "-x", &proxy_url]).arg(server.url());
        let run = run.finish();
        run.exited(0).stopped(1, "success");
        is_silent(&run);
        let seen = proxy.take();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].line, format!("CONNECT localhost:{} HTTP/1.1", server.port));
        assert_eq!(seen[0].field("host"), Some(&*format!("localhost:{}", server.port)));
        assert_eq!(seen[0].field("proxy-authorization"), Some("Basic dXMzcjpzM2NyM3Qh"));
        // What is for the server is not for the proxy.
        assert!(!seen[0].holds("X-Own") && seen[0].field("authorization").is_none(), "{seen:?}");
    }
    // Another place to connect to is the proxy's to find, and the certificate stays the host's.
    let proxy = Tunnels::start(|_| OPEN);
    let run = lab.run("http --cacert ca.pem --connect-to").arg(format!("::127.0.0.1:{}", server.port)).arg("-x");
    let run = run.arg(format!("http://us3r:s3cr3t@127.0.0.1:{}", proxy.port)).arg("https://localhost/").finish();
    run.exited(0);
    is_silent(&run);
    assert_eq!(proxy.take()[0].target(), format!("127.0.0.1:{}", server.port));
    // The name is the proxy's to resolve, and the certificate is checked against it.
    let proxy = Tunnels::start(|_| OPEN);
    let url = format!("https://proxied.example:{}/", server.port);
    let run = lab.run("http --cacert ca.pem -x").arg(format!("127.0.0.1:{}", proxy.port)).arg(&url).finish();
    run.exited(60).stopped(1, "permanent").says(&["another name"]);
    // A literal of IPv6 keeps its brackets.
    let url = format!("https://[::1]:{}/", server.port);
    lab.run("-n 1 http -k -x").arg(format!("127.0.0.1:{}", proxy.port)).arg(&url).finish();
    assert_eq!(proxy.take()[1].target(), format!("[::1]:{}", server.port));
}

#[test]
fn a_tunnel_tells_the_server_nothing_of_the_proxy() {
    let Some(lab) = lab_with_authority() else { skip!("openssl is not installed") };
    // This one answers nothing, but writes what it reads.
    let server = TlsServer::silent(&lab, "good");
    let proxy = Tunnels::start(|_| OPEN);
    let run = lab.run("-n 1 http --cacert ca.pem -m 2 -x").arg(format!("http://us3r:s3cr3t@127.0.0.1:{}", proxy.port));
    run.arg(server.url()).finish();
    let seen = server.log();
    assert!(seen.contains("GET / HTTP/1.1") && !seen.to_ascii_lowercase().contains("proxy"), "{seen}");
}

#[test]
fn refused_tunnels() {
    let lab = Lab::new();
    let get = |proxy: &Tunnels, words: &str| {
        let run = lab.run("--base-delay 0 http -k").words(words).arg("-x");
        let run = run.arg(format!("http://us3r:s3cr3t@127.0.0.1:{}", proxy.port)).arg("https://proxied.example:1/");
        let run = run.finish();
        is_silent(&run);
        run
    };
    let proxy = Tunnels::start(|_| "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno");
    get(&proxy, "").exited(56).stopped(1, "permanent").says(&["407", "USER:PASSWORD", "127.0.0.1"]);
    let proxy = Tunnels::start(|_| "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    get(&proxy, "").exited(56).stopped(1, "permanent").says(&["403", "proxied.example:1"]);
    let proxy = Tunnels::start(|_| "HTTP/1.1 502 Bad Gateway\r\n\r\n");
    get(&proxy, "").exited(56).stopped(3, "attempts").says(&["502"]);
    // Nothing has reached the server: an unsafe request can be repeated too.
    get(&proxy, "-d x").exited(56).stopped(3, "attempts");
    let proxy = Tunnels::start(|_| "");
    get(&proxy, "").exited(56).stopped(3, "attempts").says(&["closed the connection"]);
    let proxy = Tunnels::start(|_| "nonsense\r\n\r\n");
    get(&proxy, "").exited(8).stopped(3, "attempts");
    // Whoever speaks before the handshake is no server that was asked for.
    let proxy = Tunnels::start(|_| "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    get(&proxy, "").exited(35).stopped(3, "attempts").says(&["before the handshake"]);
    // Refused once, then open: the second attempt goes further.
    let proxy = Tunnels::start(|count| if count == 1 { "HTTP/1.1 503 Busy\r\n\r\n" } else { OPEN });
    get(&proxy, "").says(&["503"]);
    assert!(proxy.take().len() >= 2);
}

#[test]
fn a_proxy_that_refuses_the_way_says_when_to_come_back() {
    let lab = Lab::new();
    let busy = Tunnels::start(|_| "HTTP/1.1 503 Busy\r\nRetry-After: 3\r\n\r\n");
    let slow = Tunnels::start(|_| "HTTP/1.1 429 Slow\r\nretry-after: 3\r\n\r\n");
    for (proxy, class) in [(busy, "transient"), (slow, "throttling")] {
        let run = |words: &str| {
            let run = lab.run(words).words("http -k -d x -x").arg(format!("127.0.0.1:{}", proxy.port));
            run.arg("https://proxied.example:1/").finish()
        };
        let refused = run("--max-retry-after 2");
        refused.exited(56).stopped(1, "server_delay");
        assert_eq!(refused.each("attempt_finished", "class"), [class]);
        assert_eq!(refused.last()["server_delay_ms"], 3000.0);
        run("--deadline 2").exited(56).stopped(1, "server_delay");
    }
}

#[test]
fn a_silent_proxy_is_bounded_by_the_limit_on_connecting() {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = listener.local_addr().expect("an address");
    let run = lab.run("-n 2 --base-delay 0 http --connect-timeout 0.2 -k -x").arg(proxy.to_string());
    run.arg("https://proxied.example/").finish().exited(28).stopped(2, "attempts").says(&["--connect-timeout"]);
}

#[test]
fn the_variables_choose_the_proxy() {
    let lab = Lab::new();
    let server = Server::start();
    let proxy = Server::start();
    let here = format!("http://{}/x", server.address);
    let proxy_url = format!("http://us3r:s3cr3t@{}", proxy.address);
    let dead = "http://127.0.0.1:1";
    // Who is asked: the proxy, the server, or nobody.
    let asked = |variables: &[(&str, &str)], words: &str, url: &str| {
        let mut run = lab.run("-n 1 -vv http").words(words).arg(url);
        for (name, value) in variables {
            run = run.env(name, value);
        }
        let run = run.finish();
        is_silent(&run);
        let (proxied, direct) = (proxy.take(), server.take());
        assert!(direct.iter().all(|request| !request.holds("Proxy-")), "{direct:?}");
        match (proxied.len(), direct.len()) {
            (1, 0) => "proxy",
            (0, 1) => "server",
            _ => "nobody",
        }
    };
    let p = proxy_url.as_str();
    let bare = proxy.address.to_string();
    for (variables, words, url, who) in [
        (&[("http_proxy", p)][..], "", &*here, "proxy"),
        (&[("http_proxy", bare.as_str())], "", &here, "proxy"),
        (&[("HTTP_PROXY", p)], "", &here, "proxy"),
        // Unlike curl ("upper-case-variable"). In a CGI program that is a client's header (httpoxy).
        (&[("HTTP_PROXY", p), ("REQUEST_METHOD", "GET")], "", &here, "server"),
        (&[("http_proxy", p), ("REQUEST_METHOD", "GET")], "", &here, "proxy"),
        (&[("http_proxy", p), ("HTTP_PROXY", dead)], "", &here, "proxy"),
        (&[("https_proxy", p), ("HTTPS_PROXY", p)], "", &here, "server"),
        (&[("all_proxy", p)], "", &here, "proxy"),
        (&[("ALL_PROXY", p)], "", &here, "proxy"),
        (&[("ALL_PROXY", dead), ("http_proxy", p)], "", &here, "proxy"),
        (&[("http_proxy", ""), ("all_proxy", "")], "", &here, "server"),
        (&[("http_proxy", dead)], "", &here, "nobody"),
        (&[("http_proxy", dead)], "--proxy=", &here, "server"),
        (&[("http_proxy", p), ("NO_PROXY", "127.0.0.1,localhost")], "", &here, "server"),
        (&[("HTTP_PROXY", dead), ("NO_PROXY", "127.0.0.1,localhost")], "", &here, "server"),
        (&[("http_proxy", p), ("no_proxy", "localhost, 127.0.0.0/8")], "", &here, "server"),
        (&[("http_proxy", p), ("no_proxy", "*")], "", &here, "server"),
        (&[("http_proxy", p), ("no_proxy", "a,*")], "", &here, "proxy"),
        (&[("http_proxy", p)], "--noproxy *,a", &here, "proxy"),
        (&[("http_proxy", p), ("no_proxy", "10.0.0.0/8 ,example")], "", &here, "proxy"),
        (&[("http_proxy", p), ("no_proxy", "27.0.0.1")], "", &here, "proxy"),
        (&[("http_proxy", p), ("no_proxy", "")], "", &here, "proxy"),
        (&[("http_proxy", p), ("no_proxy", "other"), ("NO_PROXY", "*")], "", &here, "proxy"),
        (&[("http_proxy", p), ("no_proxy", "*")], "--noproxy x", &here, "proxy"),
        (&[("http_proxy", p)], "--noproxy 127.0.0.1", &here, "server"),
        (&[("http_proxy", p), ("no_proxy", ".example")], "", "http://no-such.example/", "nobody"),
        (&[("http_proxy", p), ("no_proxy", "example")], "", "http://no-such.example/", "nobody"),
        (&[("http_proxy", p), ("no_proxy", "ample")], "", "http://no-such.example/", "proxy"),
        (&[("http_proxy", p), ("no_proxy", "such.example")], "", "http://no-such.example/", "proxy"),
        (&[("http_proxy", p), ("no_proxy", "EXAMPLE.")], "", "http://no-such.example/", "nobody"),
        (&[("http_proxy", p)], "", "http://no-such.example/", "proxy"),
    ] {
        assert_eq!(asked(variables, words, url), who, "{variables:?} {words} {url}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_by_its_place() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/", server.address);
    for (variable, value, said) in [
        ("all_proxy", "socks5://us3r:s3cr3t@127.0.0.1:1", "SOCKS"),
        ("ALL_PROXY", "socks5h://127.0.0.1:1", "SOCKS"),
        ("http_proxy", "https://127.0.0.1:1", "no TLS"),
        ("http_proxy", "ftp://127.0.0.1:1", "http:"),
        ("http_proxy", "http://us3r:s3cr3t@127.0.0.1:99999", "port"),
        ("http_proxy", "http://127.0.0.1:0", "port 0"),
        ("http_proxy", "http://us3r:s3cr3t/s3cr3t@127.0.0.1:1", "%2F"),
        ("http_proxy", "us3r:12?s3cr3t@127.0.0.1:1", "%3F"),
    ] {
        let run = lab.bare("http").arg(&url).env(variable, value).finish();
        run.exited(125).says(&[variable, said]);
        is_silent(&run);
        let run = lab.bare("http -x").args([value, &url]).finish();
        run.exited(125).says(&["--proxy", said]);
        is_silent(&run);
        lab.bare("http --noproxy * -x").args([value, &url]).finish().exited(0);
        lab.bare("http").arg(&url).env(variable, value).env("no_proxy", "127.0.0.1").finish().exited(0);
    }
    assert_eq!(server.take().len(), 16);
}

#[test]
fn a_redirect_past_the_proxy_takes_nothing_of_it_along() {
    let lab = Lab::new();
    let (server, proxy) = (Server::start(), Server::start());
    // The proxy itself plays the first server, and redirects to one that is reached directly.
    let first = format!("http://first.example/away/x/{}", server.address);
    let run = lab.run("-vv http -L").arg(first).env("http_proxy", format!("http://us3r:s3cr3t@{}", proxy.address));
    let run = run.env("no_proxy", "127.0.0.1").finish();
    run.exited(0);
    is_silent(&run);
    assert_eq!(run.text(), HELLO);
    assert_eq!(proxy.take()[0].field("proxy-authorization"), Some("Basic dXMzcjpzM2NyM3Q="));
    let seen = server.take();
    assert!(seen.len() == 1 && !seen[0].holds("Proxy") && seen[0].target() == "/there", "{seen:?}");
    // One connection serves hosts that share the proxy, but each gets its own credentials.
    let first = "http://first.example/away/x/second.example";
    let run = lab.run("http -L -u o:p -x").arg(proxy.address.to_string()).arg(first).finish();
    run.exited(0);
    let seen = proxy.take();
    assert!(seen[0].field("authorization").is_some() && seen[1].field("authorization").is_none(), "{seen:?}");
    assert_eq!(seen[1].line, "GET http://second.example/there HTTP/1.1");
}

#[test]
fn names_of_proxies_that_are_none() {
    let lab = Lab::new();
    let server = Server::start();
    let run =
        lab.run("-n 1 http -x http://us3r:s3cr3t@no..such:3128").arg(format!("http://{}/", server.address)).finish();
    run.exited(5).says(&["cannot resolve the proxy no..such: "]);
    is_silent(&run);
    let run =
        lab.run("-n 1 http -x http://us3r:s3cr3t@127.0.0.1:1").arg(format!("http://{}/", server.address)).finish();
    run.exited(7).says(&["cannot connect to the proxy 127.0.0.1:1 (", "127.0.0.1:1: connection refused"]);
    is_silent(&run);
    assert!(server.take().is_empty());
}

/// A port that nobody has; somebody may take it before it is used.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// Starts a server on a free port, which is written into its configuration, and waits until
/// it answers; another time with another where that was taken.
pub fn on_free_port(lab: &Lab, start: impl Fn(&Lab, u16) -> Running) -> (u16, Running) {
    for _ in 0..20 {
        let port = free_port();
        let running = start(lab, port);
        let mut open = false;
        wait_until("the server listens or has ended", || {
            open = TcpStream::connect(("127.0.0.1", port)).is_ok();
            open || !running.is_running()
        });
        if open && running.is_running() {
            return (port, running);
        }
    }
    panic!("the server never started");
}

#[test]
fn a_real_proxy_serves_it() {
    if !has_programs(&["tinyproxy"]) {
        skip!("tinyproxy is not installed");
    }
    let Some(lab) = lab_with_authority() else { skip!("openssl is not installed") };
    let (port, _proxy) = on_free_port(&lab, |lab, port| {
        let config = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth us3r s3cr3t\nLogFile \"{}\"\n",
            lab.path("tinyproxy.log").display()
        );
        lab.write("tinyproxy.conf", config);
        lab.program("tinyproxy").words("-d -c tinyproxy.conf").start()
    });
    let plain = Server::start();
    let secure = TlsServer::start(&lab, "good", "");
    let proxied = format!("http://us3r:s3cr3t@127.0.0.1:{port}");
    let run =
        lab.run("-vv http -d x -L -x").args([&proxied, &format!("http://{}/redirect/302/x", plain.address)]).finish();
    run.exited(0);
    is_silent(&run);
    assert_eq!(run.text(), HELLO);
    let seen = plain.take();
    assert!(seen.len() == 2 && seen.iter().all(|request| request.field("proxy-authorization").is_none()), "{seen:?}");
    let run = lab.run("-vv http --cacert ca.pem -x").args([&proxied, &secure.url()]).finish();
    run.exited(0);
    is_silent(&run);
    assert!(run.text().contains("s_server"), "{}", run.text());
    let wrong = format!("http://us3r:wrong@127.0.0.1:{port}");
    for proxy in [wrong, format!("127.0.0.1:{port}")] {
        let secure = lab.run("http --cacert ca.pem -x").args([&proxy, &secure.url()]).finish();
        assert!([22, 56].contains(&secure.status.code().unwrap()), "{}", secure.stderr);
        secure.stopped(1, "permanent");
        lab.run("http -x")
            .args([&proxy, &format!("http://{}/", plain.address)])
            .finish()
            .exited(22)
            .stopped(1, "permanent");
    }
    let run = lab.run("-n 2 --base-delay 0 http -k -x").args([&proxied, "https://127.0.0.1:1/"]).finish();
    run.exited(56).says(&["status 5"]);
    let _ = plain.take();
}
