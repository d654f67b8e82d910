//! The standard streams that retryx stands between: input that is kept for every attempt,
//! and output that is held back. A stream that nobody asked that of is not touched.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags};

use super::held::Held;
use super::inherited::Inherited;
use super::replay::Replay;
use super::spool::Spool;

/// What happens to an output stream of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Each attempt writes to it directly.
    Each,
    /// Only the last attempt's bytes are written, when it is over.
    Final,
    /// As final, and nothing unless the run succeeds.
    Success,
}

/// The streams of a run.
pub(super) struct Streams {
    replay: Option<Replay>,
    held: Vec<Held>,
    /// What becomes of standard output and standard error.
    ways: [Way; 2],
}

/// What becomes of one output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is the caller's.
    Through,
    /// It goes into the held stream of this number.
    Held(usize, Output),
}

/// The descriptors that an attempt gets in place of inherited ones.
#[derive(Default)]
pub(super) struct Ends {
    ends: Vec<OwnedFd>,
    /// For each standard descriptor, the number of its end.
    at: [Option<usize>; 3],
}

impl Ends {
    /// What an attempt gets as its standard descriptors, where that is not inherited.
    pub(super) fn descriptors(&self) -> [Option<RawFd>; 3] {
        self.at.map(|end| end.and_then(|end| self.ends.get(end)).map(AsRawFd::as_raw_fd))
    }

    /// Sets one.
    pub(super) fn set(&mut self, descriptor: usize, end: OwnedFd) {
        self.at[descriptor] = Some(self.ends.len());
        self.ends.push(end);
    }
}

impl Streams {
    /// The streams by what was asked for. What spills is kept in this folder.
    pub(super) fn new(replays: bool, outputs: [Output; 2], folder: &Path, inherited: &Inherited) -> Self {
        let spool = || Spool::new(folder.to_owned());
        let replay = (replays && inherited.was_open(0) && can_be_kept()).then(|| Replay::new(spool()));
        let targets = [rustix::stdio::stdout(), rustix::stdio::stderr()];
        let mut held = Vec::new();
        let mut ways = [Way::Through; 2];
        for (index, (output, target)) in outputs.into_iter().zip(targets).enumerate() {
            if output == Output::Each || !inherited.was_open(index + 1) {
                continue;
            }
            ways[index] = Way::Held(held.len(), output);
            held.push(Held::new(target, spool()));
        }
        if let Way::Held(0, _) = ways[0]
            && are_one_file()
        {
            // Two pipes would lose the order in which the lines were written.
            ways[1] = ways[0];
            held.truncate(1);
        }
        Self { replay, held, ways }
    }

    /// Whether standard output is held back.
    pub(super) fn holds_stdout(&self) -> bool {
        self.ways[0] != Way::Through
    }

    /// Bytes that were written on behalf of the streams.
    pub(super) fn written(&self) -> u64 {
        self.replay.as_ref().map_or(0, Replay::written) + self.held.iter().map(Held::written).sum::<u64>()
    }

    /// Begins an attempt.
    pub(super) fn begin(&mut self) -> io::Result<Ends> {
        let mut ends = Ends::default();
        if let Some(replay) = &mut self.replay {
            ends.set(0, replay.begin()?);
        }
        let first = ends.ends.len();
        for held in &mut self.held {
            ends.ends.push(held.begin()?);
        }
        for (index, way) in self.ways.into_iter().enumerate() {
            if let Way::Held(number, _) = way {
                ends.at[index + 1] = Some(first + number);
            }
        }
        Ok(ends)
    }

    /// What to wait for.
    pub(super) fn interests(&self) -> Vec<PollFd<'_>> {
        let replay = self.replay.iter().flat_map(Replay::interests);
        replay.chain(self.held.iter().filter_map(Held::interest)).collect()
    }

    /// Does what those interests allow; `ready` is what came of each, in their order.
    /// Fails where a command's input cannot be given on.
    pub(super) fn work(&mut self, ready: &[PollFlags]) -> io::Result<()> {
        let mut ready = ready.iter().copied();
        let mut result = Ok(());
        if let Some(replay) = &mut self.replay {
            let mut flags = [PollFlags::empty(); 2];
            let count = replay.interests().count();
            for (flag, came) in flags.iter_mut().zip(ready.by_ref().take(count)) {
                *flag = came;
            }
            result = replay.work(flags[0], flags[1]);
        }
        for held in &mut self.held {
            if held.interest().is_some() && ready.next().is_some_and(|came| !came.is_empty()) {
                held.work();
            }
        }
        result
    }

    /// Ends an attempt.
    pub(super) fn end(&mut self) {
        if let Some(replay) = &mut self.replay {
            replay.end();
        }
        self.held.iter_mut().for_each(Held::end);
    }

    /// Tells a held terminal of a new size.
    pub(super) fn resize(&self) {
        self.held.iter().for_each(Held::resize);
    }

    /// Whether standard input could not be read to its end.
    pub(super) fn input_unreadable(&self) -> bool {
        self.replay.as_ref().is_some_and(Replay::is_unreadable)
    }

    /// Why a further attempt would find other input than the first, if so.
    pub(super) fn input_lost(&self) -> Option<&io::Error> {
        self.replay.as_ref()?.lost()
    }

    /// The held streams that are to be written in the end, by whether the run succeeded.
    pub(super) fn wanted(&mut self, success: bool) -> impl Iterator<Item = &mut Held> {
        let ways = self.ways;
        let is_wanted = move |number| {
            let way = ways.iter().find(|way| matches!(way, Way::Held(held, _) if *held == number));
            matches!(way, Some(Way::Held(_, output)) if success || *output == Output::Final)
        };
        self.held.iter_mut().enumerate().filter(move |(number, _)| is_wanted(*number)).map(|(_, held)| held)
    }
}

/// Whether standard input can be kept: it is open for reading and has bytes to read. A
/// terminal is passed on, since only what has it can wait for its foreground and its keys.
fn can_be_kept() -> bool {
    let stdin = rustix::stdio::stdin();
    let (Ok(stat), Ok(flags)) = (rustix::fs::fstat(stdin), rustix::fs::fcntl_getfl(stdin)) else { return false };
    let readable = flags & OFlags::RWMODE != OFlags::WRONLY && !flags.contains(OFlags::PATH);
    readable && FileType::from_raw_mode(stat.st_mode) != FileType::Directory && !rustix::termios::isatty(stdin)
}

/// Whether standard output and standard error go to the same place.
fn are_one_file() -> bool {
    let [Ok(out), Ok(err)] = [rustix::stdio::stdout(), rustix::stdio::stderr()].map(rustix::fs::fstat) else {
        return false;
    };
    let kinds = [out.st_mode, err.st_mode].map(FileType::from_raw_mode);
    kinds[0] == kinds[1] && (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}
