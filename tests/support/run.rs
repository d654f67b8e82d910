//! One run of a program, retryx as a rule: how it is started, watched and judged.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde_json::Value;

use super::unix::{Setup, out_of_the_way, reap};
use super::{Events, LIMIT, Lab, Leash, Timer, proc};

/// The descriptor at which a leashed run finds its leash.
const LEASH: i32 = 99;

/// A run to be started. Unless said otherwise it reads `/dev/null`, writes to files, has
/// a session of its own, and finds every signal at its default action.
pub struct Run<'a> {
    lab: &'a Lab,
    command: Command,
    setup: Setup,
    leash: Option<Leash>,
    prefix: PathBuf,
    captured: [bool; 2],
}

impl<'a> Run<'a> {
    pub(super) fn new(lab: &'a Lab, program: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let prefix = lab.path(&format!("run-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let mut command = lab.prepare(program);
        command.stdin(Stdio::null());
        Self { lab, command, setup: Setup::default(), leash: None, prefix, captured: [true, true] }
    }

    pub(super) fn with_events(self) -> Self {
        let events = self.prefix.with_extension("events");
        self.arg("--events").arg(events)
    }

    /// Adds the words of a line.
    pub fn words(self, line: &str) -> Self {
        self.args(line.split_whitespace())
    }

    /// Adds an argument.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Adds arguments.
    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.command.args(words);
        self
    }

    /// Adds `--` and a script for `sh`.
    pub fn sh(self, script: &str) -> Self {
        self.args(["--", "sh", "-c", script])
    }

    /// Adds `--` and a script for `perl`, which can catch any signal at any moment.
    pub fn perl(self, script: &str) -> Self {
        self.args(["--", "perl", "-e", script])
    }

    /// Adds `--` and a command.
    pub fn command(self, words: &[&str]) -> Self {
        self.arg("--").args(words)
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets variables to any bytes.
    pub fn envs(mut self, variables: &[(&str, &[u8])]) -> Self {
        for (name, value) in variables {
            self.command.env(name, bytes(value));
        }
        self
    }

    /// Takes a variable away.
    pub fn no_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Takes all variables away.
    pub fn empty_env(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Reads from there.
    pub fn stdin(mut self, source: impl Into<Stdio>) -> Self {
        self.command.stdin(source);
        self
    }

    /// Reads a file of the scratch folder, opened for reading.
    pub fn stdin_file(self, name: &str) -> Self {
        let file = File::open(self.lab.path(name)).expect("the input");
        self.stdin(file)
    }

    /// Reads a pipe that holds these bytes (at most one pipe-full) and has no writer.
    pub fn input(self, bytes: &[u8]) -> Self {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        File::from(write).write_all(bytes).expect("room in the pipe");
        self.stdin(read)
    }

    /// Writes there.
    pub fn stdout(mut self, target: impl Into<Stdio>) -> Self {
        self.command.stdout(target);
        self.captured[0] = false;
        self
    }

    /// Complains there.
    pub fn stderr(mut self, target: impl Into<Stdio>) -> Self {
        self.command.stderr(target);
        self.captured[1] = false;
        self
    }

    /// Starts with these signals ignored.
    pub fn ignoring(mut self, signals: &[Signal]) -> Self {
        self.setup.ignored.extend(signals);
        self
    }

    /// Starts with these signals blocked.
    pub fn blocking(mut self, signals: &[Signal]) -> Self {
        self.setup.blocked.extend(signals);
        self
    }

    /// Starts with these descriptors closed.
    pub fn closing(mut self, descriptors: &[i32]) -> Self {
        self.setup.closed.extend(descriptors);
        self
    }

    /// Starts with this descriptor at that number.
    pub fn giving(mut self, descriptor: &OwnedFd, number: i32) -> Self {
        self.setup.given.push((out_of_the_way(descriptor), number));
        self
    }

    /// Holds a leash, which tells whether any process of the run lives.
    pub fn leashed(mut self) -> Self {
        let (leash, held) = Leash::new();
        self.leash = Some(leash);
        self.giving(&held, LEASH)
    }

    /// Starts it.
    #[track_caller]
    pub fn start(mut self) -> Running {
        let streams = ["stdout", "stderr"].map(|name| self.prefix.with_extension(name));
        if self.captured[0] {
            self.command.stdout(File::create(&streams[0]).expect("a file"));
        }
        if self.captured[1] {
            self.command.stderr(File::create(&streams[1]).expect("a file"));
        }
        self.setup.install(&mut self.command);
        let timer = Timer::start();
        #[expect(clippy::zombie_processes, reason = "reaped by number, so that it can be looked at before")]
        let child = self.command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        let pid = i32::try_from(child.id()).expect("a pid");
        let events = Events::at(self.prefix.with_extension("events"));
        Running { pid, timer, streams, events, leash: self.leash, ended: false }
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn finish(self) -> Finished {
        self.start().finish()
    }
}

/// A run that was started. Dropped before its end, it is killed with its session.
pub struct Running {
    /// Its process, which leads a session and a group.
    pub pid: i32,
    /// Its events.
    pub events: Events,
    timer: Timer,
    streams: [PathBuf; 2],
    leash: Option<Leash>,
    ended: bool,
}

impl Running {
    /// Sends a signal to this process only.
    pub fn signal(&self, signal: Signal) {
        proc::kill(self.pid, signal);
    }

    /// Sends a signal to its whole group.
    pub fn signal_group(&self, signal: Signal) {
        let group = Pid::from_raw(self.pid).expect("a pid");
        kill_process_group(group, signal).expect("a group");
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        proc::is_alive(self.pid)
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.streams[1]).unwrap_or_default()).into_owned()
    }

    /// Waits until it has ended and not one moment longer; it is not reaped yet.
    #[track_caller]
    pub fn await_end(&self) {
        let ended = await_end(self.pid, LIMIT);
        assert!(
            ended,
            "did not end within {LIMIT:?}; its messages: {}; its events: {:?}",
            self.stderr(),
            self.events.all()
        );
    }

    /// Waits for its end.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        self.await_end();
        let elapsed = self.timer.elapsed();
        let status = reap(self.pid);
        self.ended = true;
        let [stdout, stderr] = self.streams.each_ref().map(|path| fs::read(path).unwrap_or_default());
        Finished {
            status,
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            elapsed,
            events: self.events.all(),
            leash: self.leash.take(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            proc::kill_session(self.pid);
            proc::kill(self.pid, Signal::KILL);
            reap(self.pid);
        }
    }
}

/// Waits for the end of any process, at most that long.
pub fn await_end(pid: i32, limit: Duration) -> bool {
    let pid = Pid::from_raw(pid).expect("a pid");
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let limit = Timespec::try_from(limit).expect("a limit");
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)).expect("poll") > 0
}

/// A run that has ended.
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What it wrote to standard output, if that was not given.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, if that was not given.
    pub stderr: String,
    /// How long it took, from before its start to after its end.
    pub elapsed: Duration,
    /// Its events.
    pub events: Vec<Value>,
    leash: Option<Leash>,
}

impl Finished {
    /// Asserts the exit status.
    #[track_caller]
    pub fn exited(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{:?}: {}", self.status, self.stderr);
        self
    }

    /// Asserts death by a signal.
    #[track_caller]
    pub fn died_of(&self, signal: Signal) -> &Self {
        assert_eq!(self.status.signal(), Some(signal.as_raw()), "{:?}: {}", self.status, self.stderr);
        self
    }

    /// Asserts one or the other, where both are right.
    #[track_caller]
    pub fn died_of_or_exited(&self, signal: Signal, code: i32) -> &Self {
        let right = self.status.signal() == Some(signal.as_raw()) || self.status.code() == Some(code);
        assert!(right, "{:?}: {}", self.status, self.stderr);
        self
    }

    /// Asserts how many attempts the events tell of, and why the run stopped.
    #[track_caller]
    pub fn stopped(&self, attempts: u64, reason: &str) -> &Self {
        let last = self.last();
        assert_eq!((&last["attempts"], &last["reason"]), (&attempts.into(), &reason.into()), "{}", self.stderr);
        assert_eq!(self.of("attempt_started").len() as u64, attempts);
        self
    }

    /// The event that ends the run.
    #[track_caller]
    pub fn last(&self) -> &Value {
        let last = self.events.last().unwrap_or_else(|| panic!("no events; {:?}: {}", self.status, self.stderr));
        assert_eq!(last["event"], "stopped");
        last
    }

    /// The events of one kind.
    pub fn of(&self, kind: &str) -> Vec<Value> {
        self.events.iter().filter(|event| event["event"] == kind).cloned().collect()
    }

    /// The values that a field of these events had, in order.
    pub fn each(&self, kind: &str, field: &str) -> Vec<Value> {
        self.of(kind).into_iter().map(|mut event| event[field].take()).collect()
    }

    /// What it wrote to standard output, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The messages: the lines of standard error, each of which must be retryx's own.
    #[track_caller]
    pub fn messages(&self) -> Vec<String> {
        let strip =
            |line: &str| line.strip_prefix("retryx: ").unwrap_or_else(|| panic!("not retryx's own: {line}")).to_owned();
        assert!(self.stderr.is_empty() || self.stderr.ends_with('\n'), "{}", self.stderr);
        self.stderr.lines().map(strip).collect()
    }

    /// Asserts that messages hold all of these.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in: {}", self.stderr);
        }
        self
    }

    /// Waits until no process of the run is left.
    #[track_caller]
    pub fn await_alone(&self) -> &Self {
        self.leash.as_ref().expect("a leashed run").await_free();
        self
    }

    /// Asserts that no process of the run outlived it. The moment granted is for other
    /// tests, whose forks hold a copy of the leash until they exec; those who would be
    /// left here live for minutes.
    #[track_caller]
    pub fn alone(&self) -> &Self {
        let leash = self.leash.as_ref().expect("a leashed run");
        let timer = Timer::start();
        while timer.elapsed() < Duration::from_secs(3) && !leash.is_free() {
            super::pause(Duration::from_millis(5));
        }
        assert!(leash.is_free(), "a process of the run is left: {}", self.stderr);
        self
    }

    /// Whether some process of the run lives.
    pub fn left_somebody(&self) -> bool {
        !self.leash.as_ref().expect("a leashed run").is_free()
    }
}

/// Owned words for an argument that is no UTF-8.
pub fn bytes(raw: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(raw.to_vec())
}
