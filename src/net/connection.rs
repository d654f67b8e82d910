//! A connection that never waits by itself: bytes in, bytes out, with or without TLS.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::ClientConnection;

use super::failure::{Failure, Fault};
use super::tls;
use super::waiter::Waiter;
use crate::cause::cause;

/// Bytes read at once, where there are many.
const CHUNK: usize = 64 * 1024;
/// Bytes read at first: most answers are short, and room costs time.
const FIRST_CHUNK: usize = 4 * 1024;

/// What a look at the connection brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// More bytes.
    Some,
    /// Nothing now.
    Nothing,
    /// The other side has sent all that it will.
    End,
}

/// A connection.
pub struct Connection {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    inbound: Inbound,
    /// How many bytes are read at once now.
    chunk: usize,
    ended: bool,
    /// Whether sending failed, after which an end may be none.
    broken: bool,
    /// What comes in before TLS is taken off.
    buffer: Vec<u8>,
}

impl Connection {
    /// A connection over a socket that does not wait.
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            tls: None,
            inbound: Inbound::default(),
            chunk: FIRST_CHUNK,
            ended: false,
            broken: false,
            buffer: Vec::new(),
        }
    }

    /// Speaks TLS from now on; returns once the handshake is over.
    pub fn secure(&mut self, mut tls: ClientConnection, name: &str, waiter: &Waiter<'_>) -> Result<(), Failure> {
        // What a proxy sent after its answer belongs to no handshake.
        let is_early = !self.received().is_empty();
        tls.set_buffer_limit(Some(CHUNK));
        self.buffer = vec![0; CHUNK];
        self.tls = Some(Box::new(tls));
        if is_early {
            return Err(Failure::new(Fault::Tls, format!("{name}: the server speaks before the handshake")));
        }
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            self.flush().map_err(|error| Failure::new(Fault::Tls, format!("{name}: {}", cause(&error))))?;
            let mut fds = vec![self.interest(false)];
            waiter.wait(&mut fds, None)?;
            if self.fill().map_err(|error| tls::failure(name, &error))? == Got::End {
                return Err(Failure::new(
                    Fault::Tls,
                    format!("{name}: the connection was closed in the TLS handshake"),
                ));
            }
        }
        self.flush().map_err(|error| Failure::new(Fault::Tls, format!("{name}: {}", cause(&error))))?;
        Ok(())
    }

    /// The address of the other side, where it has one.
    pub fn peer(&self) -> Option<SocketAddr> {
        rustix::net::getpeername(&self.socket).ok()??.try_into().ok()
    }

    /// What was received and not yet taken.
    pub fn received(&self) -> &[u8] {
        self.inbound.received()
    }

    /// Takes bytes off the front of that.
    pub fn consume(&mut self, count: usize) {
        self.inbound.consume(count);
    }

    /// What to wait for; `writing` where there is more to send.
    pub fn interest(&self, writing: bool) -> PollFd<'_> {
        let writing = writing || self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        let flags = if writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        PollFd::from_borrowed_fd(self.socket.as_fd(), flags)
    }

    /// Receives what is there.
    pub fn fill(&mut self) -> io::Result<Got> {
        if self.ended {
            return Ok(Got::End);
        }
        let room = if self.tls.is_some() { &mut self.buffer[..] } else { self.inbound.room(self.chunk) };
        let got = match recv(&self.socket, room, RecvFlags::DONTWAIT) {
            Ok((0, _)) if self.broken => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok((0, _)) => {
                self.ended = true;
                0
            }
            Ok((count, _)) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Got::Nothing),
            Err(error) => return Err(error.into()),
        };
        let Some(tls) = &mut self.tls else {
            if got == self.chunk {
                self.chunk = CHUNK;
            }
            self.inbound.filled(got);
            return Ok(if got == 0 { Got::End } else { Got::Some });
        };
        let mut bytes = &self.buffer[..got];
        let mut brought = 0;
        loop {
            // At the end of the stream this tells the session so.
            let taken = tls.read_tls(&mut bytes)?;
            let state = tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let count = state.plaintext_bytes_to_read();
            tls.reader().read_exact(self.inbound.room(count))?;
            self.inbound.filled(count);
            brought += count;
            if state.peer_has_closed() {
                self.ended = true;
                return Ok(if brought > 0 { Got::Some } else { Got::End });
            }
            if taken == 0 || bytes.is_empty() {
                break;
            }
        }
        match (brought > 0, self.ended) {
            (true, _) => Ok(Got::Some),
            (false, false) => Ok(Got::Nothing),
            // The other side went without a word of farewell: whatever ended may be cut.
            (false, true) if tls.is_handshaking() => Ok(Got::End),
            (false, true) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends some of these bytes and says how many.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let put = match &mut self.tls {
            None => write_to(&self.socket, bytes),
            Some(tls) => {
                let count = tls.writer().write(bytes);
                count.and_then(|count| self.flush().map(|_| count))
            }
        };
        // The news of a reset comes once only.
        self.broken |= put.is_err();
        put
    }

    /// Sends what TLS still holds, as far as there is room; true where nothing is left.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Socket(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether the other side has neither closed it nor sent what nobody asked for.
    pub fn is_fresh(&mut self) -> bool {
        self.received().is_empty() && matches!(self.fill(), Ok(Got::Nothing)) && self.received().is_empty()
    }
}

/// Bytes that were received and not yet taken, with room behind them that is kept.
#[derive(Default)]
struct Inbound {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbound {
    fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room for so many bytes behind them.
    fn room(&mut self, count: usize) -> &mut [u8] {
        if self.start > 0 && self.end + count > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end + count > self.bytes.len() {
            self.bytes.resize(self.end + count, 0);
        }
        &mut self.bytes[self.end..self.end + count]
    }

    /// Takes over so many bytes that were written there.
    fn filled(&mut self, count: usize) {
        self.end += count;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket as something to write to.
struct Socket<'a>(&'a OwnedFd);

impl io::Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match write_to(self.0, bytes)? {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_to(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut inbound = Inbound::default();
        let (mut put, mut got) = (0u8, 0u8);
        // Rooms and takings of all sizes, whole and in part.
        for round in 0..2000usize {
            let room = round * 7 % 50;
            let count = round * 13 % (room + 1);
            for byte in &mut inbound.room(room)[..count] {
                *byte = put;
                put = put.wrapping_add(1);
            }
            inbound.filled(count);
            let taken = round * 11 % (inbound.received().len() + 1);
            for &byte in &inbound.received()[..taken] {
                assert_eq!(byte, got);
                got = got.wrapping_add(1);
            }
            inbound.consume(taken);
        }
        assert!(inbound.bytes.len() < 5000, "{}", inbound.bytes.len());
        assert_eq!(got.wrapping_add(u8::try_from(inbound.received().len() % 256).unwrap()), put);
    }
}
