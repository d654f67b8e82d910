//! How a process under test begins: signals, descriptors, session. The only unsafe code
//! of the tests.

#![expect(unsafe_code, reason = "what runs between fork and exec, and wait4; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::process::Signal;

/// What a process finds when it begins, beside program and environment: every signal at
/// its default action and none blocked, descriptors above 2 closed, unless said here.
#[derive(Default)]
pub struct Setup {
    /// Signals that are ignored.
    pub ignored: Vec<Signal>,
    /// Signals that are blocked.
    pub blocked: Vec<Signal>,
    /// Descriptors that are closed.
    pub closed: Vec<i32>,
    /// Descriptors that are given, each with its number.
    pub given: Vec<(OwnedFd, i32)>,
    /// Whether it stays in the session and group of the tests.
    pub same_session: bool,
}

impl Setup {
    /// Makes the command begin so.
    pub fn install(self, command: &mut Command) {
        // SAFETY: `apply` makes system calls only, on values prepared before the fork.
        unsafe { command.pre_exec(move || self.apply()) };
    }

    /// The same for a command on a terminal, which has a new session already.
    pub fn install_on_terminal(mut self, command: pty_process::blocking::Command) -> pty_process::blocking::Command {
        self.same_session = true;
        // SAFETY: as above.
        unsafe { command.pre_exec(move || self.apply()) }
    }

    fn apply(&self) -> io::Result<()> {
        if !self.same_session {
            rustix::process::setsid()?;
        }
        // SAFETY: plain system calls with valid arguments; signal numbers that cannot be
        // changed are refused, which is fine.
        unsafe {
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in &self.blocked {
                libc::sigaddset(&raw mut set, signal.as_raw());
            }
            for signal in &self.ignored {
                libc::signal(signal.as_raw(), libc::SIG_IGN);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
            // Nothing of another test that runs at the same time may leak in.
            let on_exec = libc::CLOSE_RANGE_CLOEXEC;
            if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, on_exec) != 0 {
                return Err(io::Error::last_os_error());
            }
            for (given, number) in &self.given {
                if libc::dup2(given.as_raw_fd(), *number) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            for number in &self.closed {
                libc::close(*number);
            }
        }
        Ok(())
    }
}

/// A copy of a descriptor with a number so high that it is in nobody's way.
pub fn out_of_the_way(descriptor: &OwnedFd) -> OwnedFd {
    // SAFETY: the copy is new and nobody else's.
    unsafe {
        let copy = libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 200);
        assert!(copy >= 0, "{}", io::Error::last_os_error());
        OwnedFd::from_raw_fd(copy)
    }
}

/// Two connected stream sockets.
pub fn socket_pair() -> (OwnedFd, OwnedFd) {
    let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    (one.into(), other.into())
}

/// Reaps a child that has ended and returns how.
pub fn reap(pid: i32) -> ExitStatus {
    let mut status = 0;
    // SAFETY: the status is a valid place; the pid is that of an unreaped child.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(reaped, pid, "{}", io::Error::last_os_error());
    ExitStatus::from_raw(status)
}
