//! An HTTP server on loopback that answers as a case says, and counts what it is asked.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// An address of loopback where nobody listens.
pub const REFUSED: &str = "http://127.0.0.1:1";

/// A host that cannot be resolved: a label of it is too long, which is seen without asking
/// anybody.
pub const UNRESOLVED: &str = "http://a234567890123456789012345678901234567890123456789012345678901234.invalid";

/// What was asked.
pub struct Request {
    /// `GET` and the like.
    pub method: String,
    /// The path, with its slash.
    pub path: String,
    /// The server, `http://127.0.0.1:PORT`.
    pub server: String,
}

/// What is done about it.
pub enum Reply {
    /// An answer with this status, these headers, each with its line end, and this body.
    Answer(u16, String, Vec<u8>),
    /// These bytes, and the end.
    Raw(Vec<u8>),
    /// A reset of the connection.
    Reset,
}

/// What a server does about each request.
type Script = dyn Fn(&Request) -> Reply + Send + Sync;

impl Reply {
    /// A status and nothing of interest.
    pub fn status(status: u16) -> Self {
        Self::Answer(status, String::new(), b"nothing\n".to_vec())
    }

    /// Success with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Answer(200, String::new(), text.into().into_bytes())
    }

    /// A redirection to there.
    pub fn redirect(target: &str) -> Self {
        Self::Answer(302, format!("Location: {target}\r\n"), Vec::new())
    }

    /// An answer that breaks off long before its end.
    pub fn part(status: u16) -> Self {
        Self::Raw(format!("HTTP/1.1 {status} OK\r\nContent-Length: 1000\r\n\r\nthe beginning").into_bytes())
    }
}

/// What many cases need: `/404` and the like answer with that status, `/part` breaks off,
/// `/empty` says nothing, `/reset` resets, `/loop` redirects to itself, `/to?URL` elsewhere, `/astray` to no URL at all,
/// and all else is there.
pub fn plain(request: &Request) -> Reply {
    let word = request.path.trim_start_matches('/');
    match word {
        "part" => Reply::part(200),
        "empty" => Reply::Raw(Vec::new()),
        "reset" => Reply::Reset,
        "garbage" => Reply::Raw(b"\x00\x01 who are you?\r\n\r\n".to_vec()),
        "loop" => Reply::redirect("/loop"),
        "astray" => Reply::redirect("http://[::1"),
        _ if word.starts_with("to?") => Reply::redirect(&word["to?".len()..]),
        _ => word.parse().map_or_else(|_| Reply::text("here\n"), Reply::status),
    }
}

/// A server that lives until the case ends.
pub struct Server {
    port: u16,
    requests: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
}

impl Server {
    /// Starts one that answers by a script.
    pub fn new(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self { port, requests: Arc::default(), stopping: Arc::default() };
        let (url, script): (String, Arc<Script>) = (server.url(""), Arc::new(script));
        let (requests, stopping) = (Arc::clone(&server.requests), Arc::clone(&server.stopping));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopping.load(Ordering::SeqCst) {
                    break;
                }
                let (url, requests, script) = (url.clone(), Arc::clone(&requests), Arc::clone(&script));
                // A client that goes away is no fault here.
                thread::spawn(move || serve(stream, &url, &requests, &*script).ok());
            }
        });
        server
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes it, so that it sees the flag.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Takes one request of a connection and ends it.
fn serve(mut stream: TcpStream, server: &str, count: &AtomicUsize, script: &Script) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    // The last byte is left for now: a connection that ends with it unread is reset.
    while !head.ends_with(b"\r\n\r") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    count.fetch_add(1, Ordering::SeqCst);
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, headers, body) = match script(&Request { method, path, server: server.to_owned() }) {
        Reply::Reset => return Ok(()),
        Reply::Raw(bytes) => {
            stream.read_exact(&mut byte)?;
            return stream.write_all(&bytes);
        }
        Reply::Answer(status, headers, body) => (status, headers, body),
    };
    stream.read_exact(&mut byte)?;
    let header = |wanted: &str| {
        let mut headers = head.split("\r\n").filter_map(|line| line.split_once(": "));
        headers.find_map(|(name, value)| name.eq_ignore_ascii_case(wanted).then_some(value))
    };
    if header("Expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let sent = header("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
    io::copy(&mut (&stream).take(sent), &mut io::sink())?;
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(&[head.as_bytes(), &body].concat())
}
