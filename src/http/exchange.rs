//! One request and the head of its answer over a connection.

use std::time::Duration;

use super::body::Body;
use super::framing::{Framing, Head, Piece};
use crate::cause::cause;
use crate::net::{Connection, Failure, Fault, Got, Waiter, tls};

/// Bytes of a body read at once.
const CHUNK: usize = 64 * 1024;
/// The least bytes of an answer's body that are worth a step of their own, where more follow.
const WORTH_A_STEP: usize = 4 * 1024;
/// The most heads of provisional answers (100 Continue and its like) before the real one.
const MAX_PROVISIONAL: usize = 64;

/// The head of an answer, and whether the request was sent to its end.
pub struct Answered {
    /// The head.
    pub head: Head,
    /// False where the server answered before it had it all.
    pub sent_all: bool,
}

/// Sends a request and receives the head of the answer. A server that answers early is
/// believed: the rest is not sent. `sent` is told what was sent, and says when it wants to be
/// told again, be it of nothing.
pub fn exchange(
    connection: &mut Connection,
    head: &[u8],
    body: &Body,
    waiter: &Waiter<'_>,
    mut sent: impl FnMut(u64) -> Option<Duration>,
) -> Result<Answered, Failure> {
    let mut out = head.to_vec();
    let (mut start, mut offset) = (0, 0);
    let length = body.length();
    let mut broken = None;
    let mut provisional = 0;
    let mut tell = None;
    // The heads before the real one, as they came: -i and -D show them too.
    let mut before = Vec::new();
    loop {
        while let Some((mut answer, taken)) = Head::parse(connection.received())? {
            connection.consume(taken);
            if answer.status >= 200 {
                answer.raw.splice(0..0, before);
                let sent_all = broken.is_none() && start == out.len() && offset == length;
                return Ok(Answered { head: answer, sent_all });
            }
            provisional += 1;
            before.extend_from_slice(&answer.raw);
            if provisional > MAX_PROVISIONAL || answer.status == 101 {
                return Err(Failure::new(Fault::Weird, format!("the answer's status is {}", answer.status)));
            }
        }
        if broken.is_none() {
            if start == out.len() && offset < length {
                out.resize(CHUNK, 0);
                let count = body.read_at(offset, &mut out)?;
                out.truncate(count);
                offset += count as u64;
                start = 0;
            }
            // Even an empty attempt to send would take the news of a reset from the reader.
            let sending = if start < out.len() { connection.put(&out[start..]) } else { Ok(0) };
            match sending {
                Ok(count) => {
                    start += count;
                    tell = sent(count as u64);
                }
                // An answer may have been sent before the connection was closed.
                Err(error) => broken = Some(error),
            }
        }
        let writing = broken.is_none() && (start < out.len() || offset < length);
        match connection.fill() {
            Ok(Got::Some) => continue,
            Ok(Got::Nothing) => {}
            Ok(Got::End) => return Err(ended(connection, broken.as_ref())),
            Err(error) => {
                if let Some(refused) = tls::refusal(&error) {
                    return Err(refused);
                }
                return Err(match broken {
                    Some(_) => ended(connection, broken.as_ref()),
                    None => Failure::new(Fault::Receive, format!("the connection broke: {}", cause(&error))),
                });
            }
        }
        let mut fds = vec![connection.interest(writing)];
        waiter.wait(&mut fds, tell.filter(|_| writing))?;
    }
}

fn ended(connection: &Connection, broken: Option<&std::io::Error>) -> Failure {
    match broken {
        _ if !connection.received().is_empty() => {
            Failure::new(Fault::Receive, "the connection was closed within the answer's head")
        }
        Some(error) => Failure::new(Fault::Send, format!("the request could not be sent: {}", cause(error))),
        None => Failure::new(Fault::Empty, "the server closed the connection without an answer"),
    }
}

/// Receives a body, piece by piece; what is done with a piece may fail. Small ones that came
/// together are handed on together.
pub fn receive(
    connection: &mut Connection,
    framing: &mut Framing,
    waiter: &Waiter<'_>,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut got = 0u64;
    let mut gathered = Vec::new();
    loop {
        let there = connection.received().len();
        let piece = framing.next(connection.received());
        let (is_small, goes_on) = match piece {
            Ok(Piece::Data(count)) => {
                let is_small = count < WORTH_A_STEP && (count < there || !gathered.is_empty());
                (is_small, is_small)
            }
            Ok(Piece::Skip(_)) => (false, true),
            _ => (false, false),
        };
        if !gathered.is_empty() && (gathered.len() >= WORTH_A_STEP || !goes_on) {
            take(&gathered)?;
            gathered.clear();
        }
        match piece? {
            Piece::Done => return Ok(()),
            Piece::Skip(count) => {
                waiter.pass(count)?;
                connection.consume(count);
            }
            Piece::Data(count) => {
                waiter.pass(count)?;
                let bytes = &connection.received()[..count];
                if is_small {
                    gathered.extend_from_slice(bytes);
                } else {
                    take(bytes)?;
                }
                connection.consume(count);
                got += count as u64;
            }
            Piece::More => match connection.fill() {
                Ok(Got::Some) => {}
                Ok(Got::Nothing) => {
                    let mut fds = vec![connection.interest(false)];
                    waiter.wait(&mut fds, None)?;
                }
                Ok(Got::End) if framing.may_end_here() => return Ok(()),
                Ok(Got::End) => return Err(Failure::new(Fault::Partial, cut(got, framing))),
                Err(error) if matches!(framing, Framing::UntilClosed) => {
                    return Err(Failure::new(
                        Fault::Receive,
                        format!("the connection broke in the body: {}", cause(&error)),
                    ));
                }
                Err(error) => {
                    return Err(Failure::new(Fault::Partial, format!("{}: {}", cut(got, framing), cause(&error))));
                }
            },
        }
    }
}

fn cut(got: u64, framing: &Framing) -> String {
    match framing {
        Framing::Length(left) => format!("the body ended after {got} of {} bytes", got + left),
        _ => format!("the body ended after {got} bytes, before its last chunk"),
    }
}
