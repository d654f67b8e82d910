//! A terminal with a person at it: starts a program on a pseudo-terminal, types keys, and
//! waits for text.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::termios::{Termios, tcgetattr, tcgetpgrp};

use super::run::await_end;
use super::unix::{Setup, reap};
use super::{LIMIT, Lab, Leash, proc, wait_until};

/// What the interactive shell prints when it is ready for a command.
pub const PROMPT: &str = "<ready-7f3a> ";

/// A pseudo-terminal and the program on it.
pub struct Terminal {
    pty: Option<Arc<Pty>>,
    reader: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<u8>>>,
    /// How much of what was seen has been awaited.
    cursor: usize,
    /// The program, which leads the session.
    pub pid: i32,
    /// Tells whether any process of it lives.
    pub leash: Leash,
    ended: bool,
}

impl Terminal {
    /// An interactive shell with job control, at its prompt.
    #[track_caller]
    pub fn shell(lab: &Lab) -> Self {
        let mut terminal = Self::start(lab, &["bash", "--norc", "--noprofile", "-i"]);
        terminal.wait_for(PROMPT);
        terminal
    }

    /// A program directly on the terminal, with no shell between.
    #[track_caller]
    pub fn start(lab: &Lab, words: &[&str]) -> Self {
        let (pty, pts) = open().expect("a pseudo-terminal");
        // Wide, so that no line is broken by the line editor.
        pty.resize(Size::new(40, 500)).expect("a size");
        let mut command = lab.prepare(Path::new(words[0]));
        // For a kind of terminal that it does not know the line editor keeps to plain text.
        command.args(&words[1..]).env("PS1", PROMPT).env("TERM", "plain").env("INPUTRC", "/dev/null");
        let (leash, held) = Leash::new();
        let setup = Setup { given: vec![(held, 99)], ..Setup::default() };
        let mut command = setup.install_on_terminal(Command::from(command));
        #[expect(clippy::zombie_processes, reason = "reaped by number, so that it can be looked at before")]
        let child = command.spawn_borrowed(&pts).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        // The command holds the other end of the leash.
        drop(command);
        let pid = i32::try_from(child.id()).expect("a pid");
        let pty = Arc::new(pty);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (source, sink, told) = (Arc::clone(&pty), Arc::clone(&seen), Arc::clone(&stop));
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !told.load(Ordering::Relaxed) {
                if !readable(&source) {
                    continue;
                }
                match (&*source).read(&mut buffer) {
                    // The last program on the terminal is gone.
                    Ok(0) | Err(_) => return,
                    Ok(count) => sink.lock().expect("the reader").extend_from_slice(&buffer[..count]),
                }
            }
        });
        let reader = Some(reader);
        Self { pty: Some(pty), reader, stop, seen, cursor: 0, pid, leash, ended: false }
    }

    fn pty(&self) -> &Pty {
        self.pty.as_ref().expect("an open terminal")
    }

    /// Gives the terminal another size, as whoever drags its window does.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.pty().resize(Size::new(rows, columns)).expect("a size");
    }

    /// Types keys.
    pub fn keys(&self, keys: &str) {
        self.pty().write_all(keys.as_bytes()).expect("typing");
    }

    /// Types a line.
    pub fn line(&self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Waits for a text after what was awaited before, and returns what came with it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let timer = super::Timer::start();
        loop {
            let seen = self.seen();
            if let Some(at) = seen[self.cursor..].find(text) {
                let end = self.cursor + at + text.len();
                let start = std::mem::replace(&mut self.cursor, end);
                return seen[start..self.cursor].to_owned();
            }
            assert!(timer.elapsed() < LIMIT, "waited in vain for {text:?} on the terminal: {seen}");
            super::pause(std::time::Duration::from_millis(2));
        }
    }

    /// Runs a command at the prompt, and returns what the terminal showed until the next.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> String {
        self.line(line);
        self.wait_for(PROMPT)
    }

    /// Waits for the prompt, asks for the exit status of the command before, and asserts it.
    #[track_caller]
    pub fn status_is(&mut self, status: u8) {
        let shown = self.run("echo status $? .");
        assert!(shown.contains(&format!("status {status} .")), "{shown}\nseen: {}", self.seen());
    }

    /// All that the terminal showed.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("the reader")).into_owned()
    }

    /// The group in the foreground.
    pub fn foreground(&self) -> i32 {
        tcgetpgrp(self.pty()).expect("a foreground group").as_raw_pid()
    }

    /// The settings of the terminal.
    pub fn settings(&self) -> Termios {
        tcgetattr(self.pty()).expect("the settings")
    }

    /// Whether the terminal echoes what is typed.
    pub fn echoes(&self) -> bool {
        self.settings().local_modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// Waits until the program in the foreground is not the shell.
    #[track_caller]
    pub fn await_job(&self) -> i32 {
        wait_until("a job is in the foreground", || self.foreground() != self.pid);
        self.foreground()
    }

    /// Hangs up.
    pub fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        self.pty = None;
    }

    /// Waits for the end of the program on the terminal.
    #[track_caller]
    pub fn finish(mut self) -> ExitStatus {
        assert!(await_end(self.pid, LIMIT), "did not end; the terminal shows: {}", self.seen());
        self.ended = true;
        reap(self.pid)
    }
}

fn readable(pty: &Pty) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let round = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&round)).is_ok_and(|count| count > 0)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if !self.ended {
            proc::kill_session(self.pid);
            proc::kill(self.pid, rustix::process::Signal::KILL);
            reap(self.pid);
        }
    }
}
