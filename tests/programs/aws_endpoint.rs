//! An endpoint of AWS on loopback: answers as it is told, in the protocols of the services,
//! and counts the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// What becomes of a request.
#[derive(Clone)]
pub enum Answer {
    /// A status, a content type, more lines of the head, a body.
    Says(u16, &'static str, String, String),
    /// The connection ends without an answer.
    Drops,
    /// Nothing, until the client goes away.
    Hangs,
}

/// An error as STS, IAM and other services of the query protocol tell it.
pub fn query(status: u16, code: &str, message: &str) -> Answer {
    let body = format!("<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>");
    Answer::Says(status, "text/xml", String::new(), body)
}

/// An error as S3 tells it.
pub fn s3(status: u16, code: &str, message: &str) -> Answer {
    let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    Answer::Says(status, "application/xml", String::new(), body)
}

/// An error as EC2 tells it.
pub fn ec2(status: u16, code: &str, message: &str) -> Answer {
    let body =
        format!("<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>");
    Answer::Says(status, "text/xml", String::new(), body)
}

/// An error as `DynamoDB`, KMS and other services of the JSON protocol tell it.
pub fn json(status: u16, code: &str, message: &str) -> Answer {
    let body = format!(r#"{{"__type":"com.amazonaws.service#{code}","message":"{message}"}}"#);
    Answer::Says(status, "application/x-amz-json-1.0", String::new(), body)
}

/// An error as Lambda and other services of the REST-JSON protocol tell it.
pub fn rest_json(status: u16, code: &str, message: &str) -> Answer {
    let head = format!("x-amzn-errortype: {code}\r\n");
    Answer::Says(status, "application/json", head, format!(r#"{{"message":"{message}"}}"#))
}

/// A status and nothing else.
pub fn bare(status: u16) -> Answer {
    Answer::Says(status, "text/plain", String::new(), String::new())
}

/// Success, with this body.
pub fn success(media_type: &'static str, body: &str) -> Answer {
    Answer::Says(200, media_type, String::new(), body.to_owned())
}

/// A server that answers until it is dropped.
pub struct Endpoint {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    closed: Arc<AtomicBool>,
}

impl Endpoint {
    /// Answers the requests in this order; the last answer is for all that follow.
    pub fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let endpoint = Self { address, requests: Arc::default(), closed: Arc::default() };
        let (requests, closed) = (Arc::clone(&endpoint.requests), Arc::clone(&endpoint.closed));
        let answers = Arc::new(answers.to_vec());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let (answers, requests) = (Arc::clone(&answers), Arc::clone(&requests));
                thread::spawn(move || {
                    // A client that went away is none of the endpoint's business.
                    let _ = serve(&stream, &answers, &requests);
                });
            }
        });
        endpoint
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the listener up.
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads one request, answers it, and closes once the client has read the answer.
fn serve(mut stream: &TcpStream, answers: &[Answer], requests: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let (mut is_head, mut length, mut waits) = (None, 0, false);
    while reader.read_line(&mut line)? > 2 {
        is_head.get_or_insert(line.starts_with("HEAD "));
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        waits |= lower.starts_with("expect:");
        line.clear();
    }
    let Some(is_head) = is_head else { return Ok(()) };
    if waits {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let number = requests.fetch_add(1, Ordering::Relaxed);
    match &answers[number.min(answers.len() - 1)] {
        Answer::Says(status, media_type, head, body) => {
            let size = body.len();
            let body = if is_head { "" } else { body };
            let answer = format!(
                "HTTP/1.1 {status} Scripted\r\ncontent-type: {media_type}\r\ncontent-length: {size}\r\n\
                 connection: close\r\n{head}\r\n{body}"
            );
            stream.write_all(answer.as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
        }
        Answer::Drops => return stream.shutdown(Shutdown::Both),
        Answer::Hangs => {}
    }
    std::io::copy(&mut reader, &mut std::io::sink()).map(drop)
}
