//! All descendants of an attempt: finding them and ending them.
//!
//! With a limit set, retryx is a child subreaper: a process whose parent ends becomes a
//! child of retryx, whatever sessions and groups it made for itself. So while any
//! descendant lives, retryx has a child, and the tree below retryx in `/proc` holds all of
//! them. Children that retryx had from before (a shell that started a background job and
//! then became retryx by `exec`) are strangers and left alone.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::unix;
use crate::policy::Signal;

/// A process, told apart from a later one with the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its number.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    start: u64,
}

/// One line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: i32,
    start: u64,
    alive: bool,
}

/// The descendants of this process, and which of its children are strangers.
pub struct Family {
    own: i32,
    strangers: Vec<Member>,
}

/// How often one sweep looks for those who were born meanwhile; what is born faster is left
/// to the next.
const LOOKS: usize = 8;

/// A process that could not be signalled.
#[derive(Debug)]
pub struct Refused {
    /// Which one.
    pub pid: i32,
    /// What the system said.
    pub error: io::Error,
}

impl Family {
    /// Takes every child that this process has now for a stranger.
    pub fn from_now_on(own: i32, has_children: bool) -> Self {
        let mut family = Self { own, strangers: Vec::new() };
        if has_children {
            family.strangers = scan().map(|table| children_of(&table, own)).unwrap_or_default();
        }
        family
    }

    /// Whether there are children that do not belong to an attempt.
    pub fn has_strangers(&self) -> bool {
        !self.strangers.is_empty()
    }

    /// All living descendants but strangers and `others`, and what descends from those; `None`
    /// where they cannot be seen.
    pub fn members(&self, others: &HashSet<Member>) -> Option<Vec<Member>> {
        let table = scan()?;
        let mut below: HashMap<i32, Vec<i32>> = HashMap::new();
        for (&pid, stat) in &table {
            below.entry(stat.parent).or_default().push(pid);
        }
        let mut found = Vec::new();
        let mut open = vec![self.own];
        while let Some(parent) = open.pop() {
            for &pid in below.get(&parent).into_iter().flatten() {
                let member = Member { pid, start: table[&pid].start };
                if self.strangers.contains(&member) || others.contains(&member) {
                    continue;
                }
                open.push(pid);
                if table[&pid].alive {
                    found.push(member);
                }
            }
        }
        Some(found)
    }

    /// Sends the signals one after the other to every living descendant that is not among
    /// `reached`, until a look finds no other, and adds them there. What descends from one of
    /// `reached` that lives is left to that: a handler may run what puts things in order. A
    /// process that is gone by then is no error. Returns those that may not be signalled.
    pub fn sweep(&self, reached: &mut HashSet<Member>, signals: &[Signal]) -> Vec<Refused> {
        let mut refused = Vec::new();
        for _ in 0..LOOKS {
            let found = self.members(reached).unwrap_or_default();
            if found.is_empty() {
                break;
            }
            refused.extend(found.iter().filter_map(|member| member.refuses(signals)));
            reached.extend(found);
        }
        refused
    }
}

impl Member {
    /// Sends it the signals, one after the other.
    fn refuses(&self, signals: &[Signal]) -> Option<Refused> {
        let error = signals.iter().try_for_each(|&signal| self.signal(signal)).err()?;
        (error.raw_os_error() != Some(libc::ESRCH)).then_some(Refused { pid: self.pid, error })
    }

    /// Signals this very process, never another that got its number.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        let pid = Pid::from_raw(self.pid).ok_or_else(gone)?;
        let handle = pidfd_open(pid, PidfdFlags::empty());
        // With the handle held, the number cannot be given away between look and deed.
        if stat(self.pid).is_none_or(|stat| stat.start != self.start) {
            return Err(gone());
        }
        match (handle, rustix::process::Signal::from_named_raw(signal.0)) {
            (Ok(handle), Some(named)) => Ok(pidfd_send_signal(handle, named)?),
            // A kernel without handles (before 5.3), or a real-time signal.
            _ => unix::kill(self.pid, signal),
        }
    }
}

fn children_of(table: &HashMap<i32, Stat>, parent: i32) -> Vec<Member> {
    let child = |(&pid, stat): (&i32, &Stat)| (stat.parent == parent).then_some(Member { pid, start: stat.start });
    table.iter().filter_map(child).collect()
}

/// Whether the processes can be seen: not where `/proc` is missing, or shows the numbers of
/// another PID namespace.
pub fn is_visible() -> bool {
    let own = rustix::process::getpid().as_raw_pid().to_string();
    fs::read_link("/proc/self").ok().as_deref() == Some(own.as_ref())
}

/// Every process; `None` where they cannot be seen.
fn scan() -> Option<HashMap<i32, Stat>> {
    if !is_visible() {
        return None;
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(|pid| Some((pid, stat(pid)?))).collect())
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads state, parent and start time. The name, in parentheses, may hold anything.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let after_name = line.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = std::str::from_utf8(line.get(after_name..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of proc(5); the state is field 3.
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, start, alive: !matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a ) S 1 (\xff) R 7 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(parse_stat(line), Some(Stat { parent: 7, start: 12345, alive: true }));
        let zombie = b"42 (x) Z 7 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert!(!parse_stat(zombie).unwrap().alive);
        for broken in [&b""[..], b"42 (x", b"42 (x)", b"42 (x) S", b"42 (x) S a b"] {
            assert_eq!(parse_stat(broken), None);
        }
    }

    #[test]
    fn this_process_is_found_with_its_parent() {
        let own = i32::try_from(std::process::id()).unwrap();
        let parent = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        assert_eq!(stat(own).unwrap().parent, parent);
    }
}
