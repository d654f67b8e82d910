//! Servers on loopback for one case: threads of the test that answer as they are told, or
//! hand each connection to a real server as inetd did.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::{Lab, command};

/// A port of loopback where nobody listens.
pub const REFUSED: u16 = 1;

/// A name that cannot be resolved, which is known without asking anybody.
pub const UNRESOLVED: &str = "no..host";

/// A server that lives until the case ends.
pub struct Server {
    /// Where it listens.
    pub port: u16,
    requests: Arc<AtomicUsize>,
}

/// What was asked over HTTP.
pub struct Request {
    /// `GET` and the like.
    pub method: String,
    /// Path and query.
    pub target: String,
}

impl Server {
    /// Calls a function for each connection, in a thread each.
    fn each(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handle = Arc::clone(&handle);
                thread::spawn(move || handle(stream));
            }
        });
        Self { port, requests: Arc::default() }
    }

    /// Answers each request over HTTP with these bytes; with none it hangs up,
    /// and after those that say `Connection: close`.
    pub fn answering(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let server = Self::each(move |stream| {
            let input = stream.try_clone().expect("a copy");
            serve(input, stream, &|request| {
                count.fetch_add(1, Ordering::Relaxed);
                answer(request)
            });
        });
        Self { requests, ..server }
    }

    /// Takes each connection, reads a little, and drops it.
    pub fn dropping() -> Self {
        Self::each(|mut stream| {
            // Whatever came is as good.
            let _ = stream.read(&mut [0; 1]);
        })
    }

    /// Joins each connection to one at a socket in the file system.
    pub fn joined_to(path: &Path) -> Self {
        let path = path.to_owned();
        Self::each(move |mut near| {
            let mut far = UnixStream::connect(&path).expect("a connection");
            let (mut from, mut to) = (near.try_clone().expect("a copy"), far.try_clone().expect("a copy"));
            thread::spawn(move || io::copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write)));
            // Whoever ends it, the other side is told.
            let _ = io::copy(&mut far, &mut near).and_then(|_| near.shutdown(Shutdown::Write));
        })
    }

    /// Gives each connection to a program as its standard input and output.
    pub fn handing_to(lab: &Lab, program: &str, arguments: &[&str]) -> Self {
        let words: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        // sshd wants to be started by its whole path.
        let program = lab.tool("sh", &["-c", "command -v -- \"$0\"", program]).trim().to_owned();
        let (home, scratch) = (lab.path("home"), lab.path("tmp"));
        Self::each(move |stream| {
            let output = OwnedFd::from(stream.try_clone().expect("a copy"));
            let mut server = command(&program);
            server.args(&words).env("HOME", &home).env("TMPDIR", &scratch).stderr(Stdio::null());
            server.stdin(OwnedFd::from(stream)).stdout(output);
            server.status().unwrap_or_else(|error| panic!("{program}: {error}"));
        })
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Answers requests over HTTP at a socket in the file system.
pub fn answering_at(path: &Path, answer: fn(&Request) -> Vec<u8>) {
    let listener = UnixListener::bind(path).expect("a socket");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream.try_clone().expect("a copy"), stream, &answer));
        }
    });
}

/// An answer over HTTP.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

/// One connection: requests are answered until the other end or an empty answer ends it.
fn serve(input: impl Read, mut output: impl Write, answer: &dyn Fn(&Request) -> Vec<u8>) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = String::new();
        let (mut first, mut length) = (String::new(), 0);
        while input.read_line(&mut line).is_ok_and(|count| count > 0) && !line.trim().is_empty() {
            if first.is_empty() {
                first.clone_from(&line);
            }
            let header = line.to_ascii_lowercase();
            length = header.strip_prefix("content-length:").and_then(|n| n.trim().parse().ok()).unwrap_or(length);
            line.clear();
        }
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
        let body_was_read = input.read_exact(&mut vec![0; length]).is_ok();
        let head = method == "HEAD";
        let mut bytes = if body_was_read { answer(&Request { method, target }) } else { Vec::new() };
        if head && let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(end + 4);
        }
        let last = bytes.windows(17).any(|part| part == b"Connection: close");
        if bytes.is_empty() || output.write_all(&bytes).is_err() || last {
            return;
        }
    }
}
