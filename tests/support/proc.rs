//! What `/proc` tells of other processes.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The fields of `/proc/PID/stat` from the state on; none where the process is gone.
fn stat(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    line.rfind(')').map(|end| line[end + 1..].split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

/// The state of a process: `S` and `R` run, `T` is stopped, `Z` has ended; `None` is gone.
pub fn state(pid: i32) -> Option<char> {
    stat(pid).first()?.chars().next()
}

/// Whether a process is stopped by a signal.
pub fn is_stopped(pid: i32) -> bool {
    state(pid) == Some('T')
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Group and session of a process.
pub fn group_and_session(pid: i32) -> Option<(i32, i32)> {
    let stat = stat(pid);
    Some((stat.get(2)?.parse().ok()?, stat.get(3)?.parse().ok()?))
}

/// The children of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let parent = pid.to_string();
    all().into_iter().filter(|&child| stat(child).get(1) == Some(&parent)).collect()
}

/// Whether a process has a file of that name open.
pub fn holds_open(pid: i32, name: &str) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path.ends_with(name))
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Ends every process of a session.
pub fn kill_session(leader: i32) {
    let members = all().into_iter().filter(|&pid| group_and_session(pid).is_some_and(|(_, session)| session == leader));
    for pid in members {
        kill(pid, Signal::KILL);
    }
}

/// Sends a signal to a process that may be gone.
pub fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Gone is as good.
        let _ = kill_process(pid, signal);
    }
}

/// What a process used so far. Can be read until it is reaped.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// Time on a processor.
    pub cpu: Duration,
    /// How often it gave the processor away to wait for something.
    pub waits: u64,
}

impl Use {
    /// What was used since an earlier look.
    pub fn since(self, earlier: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), waits: self.waits - earlier.waits }
    }
}

/// What a process of one thread used so far.
pub fn usage(pid: i32) -> Use {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).expect("a process that is not reaped");
    let nanos = read("schedstat").split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("schedstat");
    let status = read("status");
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Use { cpu: Duration::from_nanos(nanos), waits: waits.and_then(|n| n.trim().parse().ok()).expect("status") }
}
