//! A server that records the bytes of every request and answers by the path: what curl and
//! `retryx http` are compared against.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The request line.
    pub line: String,
    /// The lines of the fields, in their order.
    pub fields: Vec<String>,
    /// The body, out of its chunks.
    pub body: Vec<u8>,
}

impl Request {
    /// The path and query that are asked for.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// Whether anything in it holds this text.
    pub fn holds(&self, text: &str) -> bool {
        self.line.contains(text) || self.fields.iter().any(|line| line.contains(text))
    }
}

/// The server; its threads end with the process.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Listens on a port of 127.0.0.1.
    pub fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    /// Listens there.
    pub fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Self { address, seen: Arc::default() };
        let seen = Arc::clone(&server.seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        server
    }

    /// Answers on a Unix socket too.
    pub fn also_at(&self, path: &Path) {
        let listener = UnixListener::bind(path).expect("a socket");
        let seen = Arc::clone(&self.seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream, &seen));
            }
        });
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What was asked since the last look.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.seen.lock().expect("the record"))
    }
}

/// A stream of bytes to a client.
pub trait Stream: std::io::Read + std::io::Write {
    /// Another handle of the same.
    fn close(&self);
}

impl Stream for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Stream for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

fn serve(mut stream: impl Stream, seen: &Mutex<Vec<Request>>) {
    let mut pending = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut pending) {
        let answer = answer(&request);
        seen.lock().expect("the record").push(request);
        if stream.write_all(&answer.bytes).is_err() {
            break;
        }
        if answer.hangs {
            let _ = stream.read(&mut [0; 1]);
        }
        if answer.closes {
            break;
        }
    }
    stream.close();
}

/// Reads a request; `None` at the end of the stream.
pub fn read_request(stream: &mut (impl std::io::Read + std::io::Write), pending: &mut Vec<u8>) -> Option<Request> {
    let end = until(stream, pending, |bytes| bytes.windows(4).position(|window| window == b"\r\n\r\n"))?;
    let head = String::from_utf8_lossy(&pending[..end]).into_owned();
    pending.drain(..end + 4);
    let mut lines = head.split("\r\n").map(str::to_owned);
    let mut request = Request { line: lines.next()?, fields: lines.collect(), body: Vec::new() };
    if request.field("expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    if request.field("transfer-encoding") == Some("chunked") {
        loop {
            let line = until(stream, pending, |bytes| bytes.windows(2).position(|window| window == b"\r\n"))?;
            let size = usize::from_str_radix(std::str::from_utf8(&pending[..line]).ok()?, 16).ok()?;
            pending.drain(..line + 2);
            until(stream, pending, |bytes| (bytes.len() >= size + 2).then_some(0))?;
            request.body.extend(pending.drain(..size));
            pending.drain(..2);
            if size == 0 {
                return Some(request);
            }
        }
    }
    let length = request.field("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    until(stream, pending, |bytes| (bytes.len() >= length).then_some(0))?;
    request.body = pending.drain(..length).collect();
    Some(request)
}

fn until(
    stream: &mut impl std::io::Read,
    pending: &mut Vec<u8>,
    found: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    loop {
        if let Some(at) = found(pending) {
            return Some(at);
        }
        let mut buffer = [0; 16 * 1024];
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => pending.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// What is sent, and what happens then.
pub struct Answer {
    /// The bytes.
    pub bytes: Vec<u8>,
    closes: bool,
    hangs: bool,
}

/// The body of most answers.
pub const HELLO: &str = "hello\n";

fn whole(status: &str, fields: &[&str], body: &[u8]) -> Answer {
    let fields = fields.iter().fold(String::new(), |text, field| text + field + "\r\n");
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    Answer { bytes: [head.as_bytes(), body].concat(), closes: false, hangs: false }
}

/// The answer by the path: a status, `redirect/STATUS/TARGET`, or one of the words below.
fn answer(request: &Request) -> Answer {
    // A tunnel leads here, too.
    if request.line.starts_with("CONNECT ") {
        return Answer { bytes: b"HTTP/1.1 200 Open\r\n\r\n".to_vec(), closes: false, hangs: false };
    }
    let is_head = request.line.starts_with("HEAD ");
    let target = request.target();
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let path = path.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..])).unwrap_or(path);
    let mut words = path.trim_start_matches('/').splitn(3, '/');
    let (first, second, third) = (words.next().unwrap_or_default(), words.next(), words.next());
    let plain = ["Content-Type: text/plain", "X-Odd:  two  spaces "];
    let closing = |bytes: &[u8]| Answer { bytes: bytes.to_vec(), closes: true, hangs: false };
    let mut answer = match first {
        "redirect" => {
            let location = format!("Location: {}", third.map(|rest| format!("/{rest}")).unwrap_or_default());
            whole(&format!("{} Moved", second.unwrap_or("302")), &[&location], b"moved\n")
        }
        "away" => {
            let host = third.unwrap_or_default();
            whole("302 Found", &[&format!("Location: http://{host}/there")], b"moved\n")
        }
        "elsewhere" => whole("302 Found", &["Location: nonsense://x/"], b""),
        "loop" => whole("302 Found", &["Location: /loop"], b""),
        "gzip" | "deflate" if request.field("accept-encoding").is_some() => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(HELLO.as_bytes()).expect("memory");
            zlib.write_all(HELLO.as_bytes()).expect("memory");
            let (gzip, zlib) = (encoder.finish().expect("memory"), zlib.finish().expect("memory"));
            whole("200 OK", &[&format!("Content-Encoding: {first}")], if first == "gzip" { &gzip } else { &zlib })
        }
        "ungzipped" => whole("200 OK", &["Content-Encoding: gzip"], b"no gzip at all"),
        "chunked" => Answer {
            bytes: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n3\r\nlo\n\r\n0\r\nX-Trailer: 1\r\n\r\n"
                .to_vec(),
            closes: false,
            hangs: false,
        },
        "cut-chunk" => closing(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"),
        "no-size" => closing(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n\r\n3\r\nlo\n\r\n0\r\n\r\n",
        ),
        "other-part" => whole("206 Partial Content", &["Content-Range: bytes 3-5/6"], b"lo\n"),
        "old" => closing(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello\n"),
        "lf" => closing(b"HTTP/1.1 200 OK\nContent-Length: 6\nX: y\n\nhello\n"),
        "noreason" => closing(b"HTTP/1.1 200\r\nContent-Length: 6\r\n\r\nhello\n"),
        "early" => {
            let mut answer = whole("200 OK", &plain, HELLO.as_bytes());
            answer.bytes.splice(0..0, *b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
            answer
        }
        "close" => closing(b""),
        "partial" => closing(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel"),
        "weird" => closing(b"SSH-2.0-OpenSSH_9.2\r\n"),
        "junk" => closing(b"HTTP/1.1 junk\r\n\r\n"),
        "length" => closing(b"HTTP/1.1 200 OK\r\nContent-Length: junk\r\n\r\nhello\n"),
        "silence" => Answer { bytes: Vec::new(), closes: true, hangs: true },
        "ranged" => {
            let range = request.field("range").and_then(|value| value.strip_prefix("bytes="));
            let ends = range.and_then(|range| range.split_once('-'));
            match ends.and_then(|(from, to)| Some((from.parse::<usize>().ok()?, to))) {
                Some((from, _)) if from >= 6 => whole("416 Range Not Satisfiable", &["Content-Range: bytes */6"], b"no\n"),
                Some((from, to)) => {
                    let to = to.parse().unwrap_or(5usize).min(5);
                    let field = format!("Content-Range: bytes {from}-{to}/6");
                    whole("206 Partial Content", &[&field], &HELLO.as_bytes()[from..=to])
                }
                None => whole("200 OK", &plain, HELLO.as_bytes()),
            }
        }
        "cookie" => whole("200 OK", &["Set-Cookie: a=b"], HELLO.as_bytes()),
        "empty" => whole("200 OK", &plain, b""),
        "204" | "304" => {
            Answer { bytes: format!("HTTP/1.1 {first} Nothing\r\nX: y\r\n\r\n").into_bytes(), closes: false, hangs: false }
        }
        status if status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit()) => {
            whole(&format!("{status} Said so"), &plain, b"said so\n")
        }
        _ => whole("200 OK", &plain, HELLO.as_bytes()),
    };
    if is_head && let Some(end) = answer.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        answer.bytes.truncate(end + 4);
    }
    answer
}
