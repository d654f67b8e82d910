//! The standard streams that retryx stands in: input that is kept for every attempt, and
//! output that is looked at or held back. A stream that nobody asked that of is not touched.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags};

use rustix::io::Errno;

use super::channel::Channel;
use super::inherited::Inherited;
use super::plan::{Output, SupervisionPlan};
use super::replay::Replay;
use super::spool::Spool;
use super::stdin::Source;
use super::stdout::Wrote;
use crate::policy::matcher::Stream;
use crate::policy::{Lookout, Sightings};

/// The streams of a run.
pub(super) struct Streams {
    replay: Option<Replay>,
    channels: Vec<Channel>,
    /// Whether something is looked for in a terminal that is not read.
    unread: bool,
    /// What becomes of standard output and standard error.
    ways: [Way; 2],
    lookout: Lookout,
}

/// What becomes of one output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is the caller's.
    Through,
    /// It goes into the channel of this number.
    Into(usize, Output),
}

impl Way {
    fn channel(self) -> Option<usize> {
        match self {
            Self::Through => None,
            Self::Into(number, _) => Some(number),
        }
    }
}

const OUTPUTS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

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
    /// The streams by what the plan asks for. An output stream is stood in where it is held
    /// back, looked at, or must be seen to be silent.
    pub(super) fn new(plan: &SupervisionPlan, inherited: &Inherited) -> Self {
        let spool = || Spool::new(plan.spool_folder.clone());
        let replays = plan.stdin == Source::Replay && plan.may_retry && inherited.was_open(0) && can_be_kept();
        let targets = [rustix::stdio::stdout(), rustix::stdio::stderr()];
        let is_terminal = |index: usize| rustix::termios::isatty(targets[index]);
        // What cannot be written fails for the command as it would without retryx.
        let is_open = |index: usize| inherited.was_open(index + 1) && is_writable(targets[index]);
        let is_looked_at = |index: usize| {
            is_open(index)
                && plan.lookout.wants(OUTPUTS[index], false)
                && plan.lookout.wants(OUTPUTS[index], is_terminal(index))
        };
        let is_stood_in = |index: usize| {
            is_open(index)
                && (plan.outputs[index] != Output::Each || plan.idle_timeout.is_some() || is_looked_at(index))
        };
        let mut stood_in = [is_stood_in(0), is_stood_in(1)];
        let mut outputs = plan.outputs;
        // Two pipes would lose the order in which the lines were written.
        let joined = (stood_in[0] || stood_in[1])
            && is_open(0)
            && is_open(1)
            && (outputs[0] != Output::Each || outputs[1] == Output::Each)
            && are_one_file();
        if joined {
            (stood_in, outputs) = ([true; 2], [outputs[0]; 2]);
        }
        let mut channels = Vec::new();
        let mut ways = [Way::Through; 2];
        for index in (0..2).filter(|&index| stood_in[index]) {
            if !(joined && index == 1) {
                channels.push(match outputs[index] {
                    Output::Each => Channel::passing(targets[index]),
                    Output::Final | Output::Success => Channel::holding(targets[index], spool()),
                });
            }
            ways[index] = Way::Into(channels.len() - 1, outputs[index]);
        }
        let replay = replays.then(|| Replay::new(spool()));
        let is_unread = |index: usize| {
            let way = ways[index] == Way::Through && is_open(index) && is_terminal(index);
            way && plan.lookout.wants(OUTPUTS[index], false)
        };
        let unread = is_unread(0) || is_unread(1);
        Self { replay, channels, unread, ways, lookout: plan.lookout.clone() }
    }

    /// Whether standard output is held back.
    pub(super) fn holds_stdout(&self) -> bool {
        matches!(self.ways[0], Way::Into(_, Output::Final | Output::Success))
    }

    /// Whether the last attempt wrote to standard output, where that was seen.
    pub(super) fn wrote_to_stdout(&self) -> Option<Wrote> {
        let number = self.ways[0].channel()?;
        if rustix::termios::isatty(rustix::stdio::stdout()) {
            return Some(Wrote::No);
        }
        Some(match self.channels.get(number)?.of_attempt() {
            0 => Wrote::No,
            _ if self.ways[1].channel() == Some(number) => Wrote::Perhaps,
            _ => Wrote::Yes,
        })
    }

    /// Bytes that were written on behalf of the streams, or into them.
    pub(super) fn counted(&self) -> u64 {
        self.replay.as_ref().map_or(0, Replay::written) + self.channels.iter().map(Channel::counted).sum::<u64>()
    }

    /// Begins an attempt.
    pub(super) fn begin(&mut self) -> io::Result<Ends> {
        let mut ends = Ends::default();
        if let Some(replay) = &mut self.replay {
            ends.set(0, replay.begin()?);
        }
        let first = ends.ends.len();
        for (number, channel) in self.channels.iter_mut().enumerate() {
            let into = |index: &usize| self.ways[*index].channel() == Some(number);
            let streams: Vec<_> = (0..2).filter(into).map(|index| OUTPUTS[index]).collect();
            ends.ends.push(channel.begin(self.lookout.scanner(&streams))?);
        }
        for (index, way) in self.ways.into_iter().enumerate() {
            ends.at[index + 1] = way.channel().map(|number| first + number);
        }
        Ok(ends)
    }

    /// What to wait for.
    pub(super) fn interests(&self) -> Vec<PollFd<'_>> {
        let replay = self.replay.iter().flat_map(Replay::interests);
        replay.chain(self.channels.iter().filter_map(Channel::interest)).collect()
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
        for channel in &mut self.channels {
            if channel.interest().is_some() && ready.next().is_some_and(|came| !came.is_empty()) {
                channel.work();
            }
        }
        result
    }

    /// Takes what the command has written, without waiting for more.
    pub(super) fn take(&mut self) {
        self.channels.iter_mut().for_each(Channel::work);
    }

    /// Bytes that came from the current attempt.
    pub(super) fn of_attempt(&self) -> u64 {
        self.channels.iter().map(Channel::of_attempt).sum()
    }

    /// Whether somebody does not take what the command wrote.
    pub(super) fn is_blocked(&self) -> bool {
        self.channels.iter().any(Channel::is_blocked)
    }

    /// Takes and passes on what an attempt left whose command has ended; true once it is done.
    pub(super) fn finish(&mut self) -> bool {
        let waiting = self.channels.iter_mut().filter_map(|channel| (!channel.finish()).then_some(()));
        waiting.count() == 0
    }

    /// What to wait for until the rest can be passed on.
    pub(super) fn blocked(&self) -> Vec<PollFd<'_>> {
        self.channels.iter().filter(|channel| channel.is_blocked()).filter_map(Channel::interest).collect()
    }

    /// Ends an attempt; returns what was seen of it.
    pub(super) fn end(&mut self) -> Sightings {
        if let Some(replay) = &mut self.replay {
            replay.end();
        }
        let mut sightings = Sightings::default();
        self.channels.iter_mut().filter_map(Channel::end).for_each(|scanner| sightings.add(scanner));
        if self.unread {
            sightings.note_unread();
        }
        sightings
    }

    /// Tells the command's terminals of a new size; true where one has changed.
    pub(super) fn resize(&self) -> bool {
        self.channels.iter().filter(|channel| channel.resize()).count() > 0
    }

    /// What ended the passing on of a stream, and the stream's name.
    pub(super) fn broken(&self) -> Option<(&'static str, Errno)> {
        self.channels.iter().find_map(|channel| Some((channel.target().name(), channel.broken()?)))
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
    pub(super) fn wanted(&mut self, success: bool) -> impl Iterator<Item = &mut Channel> {
        let ways = self.ways;
        let is_wanted = move |number| {
            let way = ways.iter().find(|way| way.channel() == Some(number));
            match way {
                Some(Way::Into(_, Output::Final)) => true,
                Some(Way::Into(_, Output::Success)) => success,
                _ => false,
            }
        };
        self.channels.iter_mut().enumerate().filter(move |(number, _)| is_wanted(*number)).map(|(_, channel)| channel)
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

/// Whether a stream is open for writing.
fn is_writable(stream: BorrowedFd<'_>) -> bool {
    let flags = rustix::fs::fcntl_getfl(stream);
    flags.is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::RDONLY && !flags.contains(OFlags::PATH))
}

/// Whether standard output and standard error go to the same place.
fn are_one_file() -> bool {
    let [Ok(out), Ok(err)] = [rustix::stdio::stdout(), rustix::stdio::stderr()].map(rustix::fs::fstat) else {
        return false;
    };
    let kinds = [out.st_mode, err.st_mode].map(FileType::from_raw_mode);
    kinds[0] == kinds[1] && (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}
