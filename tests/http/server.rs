//! A scripted server on loopback that speaks bytes: what it answers, when, and how it ends a
//! connection is up to the test, which can ask afterwards for what it was sent.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::support::{LIMIT, Timer, pause, wait_until};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Head and body.
    pub raw: Vec<u8>,
    /// Bytes of the head.
    head: usize,
    /// When its head was there, since the server's start.
    pub at: Duration,
    /// Which connection it came over, from 0.
    pub connection: usize,
}

impl Request {
    /// The head as text.
    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.raw[..self.head]).into_owned()
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.raw[self.head..]
    }

    /// Method and target.
    pub fn line(&self) -> String {
        self.head().lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned()
    }

    /// The values of a field.
    pub fn values(&self, name: &str) -> Vec<String> {
        let head = self.head();
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).collect()
    }

    /// The only value of a field.
    #[track_caller]
    pub fn value(&self, name: &str) -> Option<String> {
        let mut values = self.values(name);
        assert!(values.len() < 2, "{name} twice in {}", self.head());
        values.pop()
    }

    /// The first byte that a `Range` asks for.
    pub fn from(&self) -> Option<usize> {
        self.value("range")?.strip_prefix("bytes=")?.split('-').next()?.parse().ok()
    }
}

/// Opened by a test, awaited by an answer.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets those go on who wait here.
    pub fn open(&self) {
        *locked(&self.0.0) = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = locked(&self.0.0);
        drop(self.0.1.wait_timeout_while(open, LIMIT, |open| !*open));
    }
}

/// A step of an answer.
#[derive(Clone)]
enum Act {
    Send(Vec<u8>),
    Drip(Vec<u8>, Duration),
    Repeat(Vec<u8>),
    Wait(Gate),
    Pause(Duration),
    /// Says nothing more until the client has gone.
    Stall,
    Close,
    Reset,
}

/// What the server does about a request.
#[derive(Clone, Default)]
pub struct Answer {
    acts: Vec<Act>,
    early: bool,
}

impl Answer {
    /// A status with these field lines and a body of known length.
    pub fn new(status: u16, fields: &[&str], body: impl AsRef<[u8]>) -> Self {
        let length = format!("Content-Length: {}", body.as_ref().len());
        Self::head(status, &[fields, &[&length]].concat()).send(body)
    }

    /// Only the head of an answer.
    pub fn head(status: u16, fields: &[&str]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\n");
        for field in fields {
            head.push_str(field);
            head.push_str("\r\n");
        }
        Self::default().send(head + "\r\n")
    }

    /// Any bytes.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::default().send(bytes)
    }

    /// Never a word.
    pub fn silence() -> Self {
        Self::default().stall()
    }

    fn with(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    /// And then these bytes.
    pub fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with(Act::Send(bytes.as_ref().to_vec()))
    }

    /// And then these bytes one by one, with so much time before each.
    pub fn drip(self, bytes: impl AsRef<[u8]>, period: Duration) -> Self {
        self.with(Act::Drip(bytes.as_ref().to_vec(), period))
    }

    /// And then these bytes again and again until nobody takes them.
    pub fn repeat(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with(Act::Repeat(bytes.as_ref().to_vec()))
    }

    /// And then nothing until the gate is open.
    pub fn wait(self, gate: &Gate) -> Self {
        self.with(Act::Wait(gate.clone()))
    }

    /// And then nothing for a time that is part of what is tested.
    pub fn pause(self, time: Duration) -> Self {
        self.with(Act::Pause(time))
    }

    /// And then nothing more.
    pub fn stall(self) -> Self {
        self.with(Act::Stall)
    }

    /// And then the connection is closed.
    pub fn close(self) -> Self {
        self.with(Act::Close)
    }

    /// And then it is reset.
    pub fn reset(self) -> Self {
        self.with(Act::Reset)
    }

    /// As soon as the request's head is there: its body is never read.
    pub fn early(mut self) -> Self {
        self.early = true;
        self
    }
}

type Script = dyn Fn(usize, &Request) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    sent: AtomicUsize,
    over: AtomicBool,
    timer: Timer,
}

/// The server. Dropped, it takes no more connections.
pub struct Server {
    port: u16,
    shared: Arc<Shared>,
}

impl Server {
    /// Gives one answer after the other, the last one for ever.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<_> = answers.into_iter().collect();
        Self::by(move |number, _| answers[number.min(answers.len() - 1)].clone())
    }

    /// Answers the n-th request, from 0, by what it is.
    pub fn by(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self::at(listener, script)
    }

    /// The same on a socket that listens already.
    pub fn at(listener: TcpListener, script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            timer: Timer::start(),
        });
        let server = Self { port, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.over.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.serve(stream, number));
            }
        });
        server
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A URL of it.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.shared.requests).clone()
    }

    /// The lines of these requests.
    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }

    /// Waits for the `count`-th request, and returns all.
    #[track_caller]
    pub fn await_requests(&self, count: usize) -> Vec<Request> {
        wait_until(&format!("request {count}"), || self.requests().len() >= count);
        self.requests()
    }

    /// Seconds between the requests.
    pub fn gaps(&self) -> Vec<f64> {
        let requests = self.requests();
        requests.windows(2).map(|two| two[1].at.saturating_sub(two[0].at).as_secs_f64()).collect()
    }

    /// Connections that were made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Bytes that were sent, heads included.
    pub fn sent(&self) -> usize {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    /// Serves a connection until it ends.
    fn serve(&self, mut stream: TcpStream, connection: usize) {
        let mut inbound = Vec::new();
        while let Some(mut request) = self.head(&mut stream, &mut inbound, connection) {
            let number = self.number(&request);
            let answer = (self.script)(number, &request);
            if !answer.early {
                let length = request.value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                while inbound.len() < length && read(&mut stream, &mut inbound) {}
                request.raw.extend(inbound.drain(..length.min(inbound.len())));
                locked(&self.requests)[number] = request;
            }
            if !answer.acts.iter().all(|act| self.act(act, &mut stream)) {
                return;
            }
        }
    }

    fn head(&self, stream: &mut TcpStream, inbound: &mut Vec<u8>, connection: usize) -> Option<Request> {
        loop {
            if let Some(end) = inbound.windows(4).position(|four| four == b"\r\n\r\n") {
                let raw: Vec<u8> = inbound.drain(..end + 4).collect();
                return Some(Request { head: raw.len(), raw, at: self.timer.elapsed(), connection });
            }
            if !read(stream, inbound) {
                return None;
            }
        }
    }

    fn number(&self, request: &Request) -> usize {
        let mut requests = locked(&self.requests);
        requests.push(request.clone());
        requests.len() - 1
    }

    /// Does a step; false where it ends the connection.
    fn act(&self, act: &Act, stream: &mut TcpStream) -> bool {
        match act {
            Act::Send(bytes) => self.send(stream, bytes),
            Act::Drip(bytes, period) => bytes.iter().all(|byte| {
                pause(*period);
                self.send(stream, &[*byte])
            }),
            Act::Repeat(bytes) => {
                while self.send(stream, bytes) {}
                false
            }
            Act::Wait(gate) => {
                gate.pass();
                true
            }
            Act::Pause(time) => {
                pause(*time);
                true
            }
            Act::Stall => {
                while read(stream, &mut Vec::new()) {}
                false
            }
            Act::Close => {
                let _ = stream.shutdown(Shutdown::Both);
                false
            }
            Act::Reset => {
                let _ = rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO));
                false
            }
        }
    }

    fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> bool {
        let sent = stream.write_all(bytes).is_ok();
        if sent {
            self.sent.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        sent
    }
}

/// Reads what is there; false at the end.
fn read(stream: &mut TcpStream, inbound: &mut Vec<u8>) -> bool {
    let mut buffer = vec![0; 64 * 1024];
    match stream.read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            inbound.extend_from_slice(&buffer[..count]);
            true
        }
        Err(error) => error.kind() == ErrorKind::Interrupted,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
