//! How long one update of a scope takes while other processes are at it too: in a file, and in
//! a Redis server on a socket, where `redis-server` is installed.
//!
//! ```text
//! cargo bench --bench updates -- [UPDATES]
//! ```
//!
//! For 1, 8, 64 and 256 processes: each opens a store of its own on one folder and, once all
//! are ready, makes its share of the updates, taking the time of each. Once without a pause
//! between them, which no real runs do, and once as if each were a run of some milliseconds.
//! Printed are the median and the 99th percentile of all, and how many updates were not made
//! in time; that no other is lost is asserted.

#![expect(clippy::disallowed_methods, reason = "a measurement starts processes and takes times itself")]
#![expect(clippy::unwrap_used, reason = "what fails ends the measurement")]

use std::env;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use retryx::policy::{BudgetPlan, Entry, Operation, QuotaPlan, Start};
use retryx::store::{FileStore, RedisAddress, RedisStore, Scope, ScopeName, StateStore};

const CAPACITY: u32 = u32::MAX;
/// How long a run of the second kind takes from one update to the next.
const RUN: Duration = Duration::from_millis(5);

fn main() {
    let words: Vec<String> = env::args().collect();
    if words.get(1).map(String::as_str) == Some("worker") {
        return work(&words[2..]);
    }
    let updates = words.iter().find_map(|word| word.parse().ok()).unwrap_or(40_000);
    println!("{:<40} {:>9} {:>9} {:>9} {:>8}", "", "p50 µs", "p99 µs", "most µs", "not made");
    for pause in [Duration::ZERO, RUN] {
        for processes in [1, 8, 64, 256] {
            let folder = tempfile::tempdir().unwrap();
            measure("file", folder.path().to_str().unwrap(), processes, updates, pause);
        }
    }
    for pause in [Duration::ZERO, RUN] {
        for processes in [1, 8, 64, 256] {
            let folder = tempfile::tempdir().unwrap();
            let Some(mut server) = redis(folder.path()) else {
                return println!("redis-server is not installed");
            };
            let address = format!("{SOCKET}{}", folder.path().join("socket").display());
            measure("Redis", &address, processes, updates / 4, pause);
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

const SOCKET: &str = "unix://";

/// A server on a socket in that folder, if there can be one.
fn redis(folder: &Path) -> Option<Child> {
    let words = ["--port", "0", "--unixsocket", "socket", "--save", "", "--maxclients", "1000"];
    let mut command = Command::new("redis-server");
    let mut server = command.args(words).current_dir(folder).stdout(Stdio::piped()).spawn().ok()?;
    let log = BufReader::new(server.stdout.take().unwrap());
    assert!(log.lines().any(|line| line.unwrap().contains("accept connections")), "it did not start");
    Some(server)
}

/// The store at a folder or an address.
fn store(place: &str) -> Box<dyn StateStore> {
    if place.starts_with(SOCKET) {
        Box::new(RedisStore::new(RedisAddress::parse(place).unwrap()))
    } else {
        Box::new(FileStore::new(Some(place.into())))
    }
}

fn scope() -> Scope {
    Scope { name: ScopeName::new("bench").unwrap(), ttl: Duration::from_secs(3600) }
}

/// Makes updates in this process and prints the nanoseconds of each; nothing for one that
/// could not be made.
fn work(words: &[String]) {
    let (updates, pause) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let mut store = store(&words[0]);
    let scope = scope();
    let quota = QuotaPlan { capacity: CAPACITY, refill: 0, ..QuotaPlan::default() };
    let plan = BudgetPlan { quota: Some(quota), limiter: false };
    let entry = Entry::Retry { cost: 1, start: Some(Start { delay: Duration::ZERO, longest: None }) };
    let operation = Operation::Book { throttled: false, entry };
    println!("ready");
    io::stdin().read_exact(&mut [0]).unwrap();
    let mut times = Vec::new();
    for _ in 0..updates {
        let start = Instant::now();
        let done = store.apply(&scope, &plan, &operation, None);
        times.push(done.is_ok().then(|| start.elapsed().as_nanos()));
        sleep(Duration::from_micros(pause));
    }
    let mut stdout = BufWriter::new(io::stdout().lock());
    for time in times.into_iter().flatten() {
        writeln!(stdout, "{time}").unwrap();
    }
    stdout.flush().unwrap();
}

fn measure(kind: &str, place: &str, processes: u32, updates: u32, pause: Duration) {
    // Without a pause, so that it is long enough to mean something; with one, to end.
    let share = if pause.is_zero() { updates / processes } else { (updates / processes).min(400) };
    let mut workers: Vec<Child> = (0..processes).map(|_| worker(place, share, pause)).collect();
    let mut outputs: Vec<_> = workers.iter_mut().map(|worker| BufReader::new(worker.stdout.take().unwrap())).collect();
    for output in &mut outputs {
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
    }
    for worker in &mut workers {
        worker.stdin.take().unwrap().write_all(b"!").unwrap();
    }
    let mut times: Vec<u64> = Vec::new();
    for output in outputs {
        times.extend(output.lines().map(|line| line.unwrap().parse::<u64>().unwrap()));
    }
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let state = store(place).show(&scope().name).unwrap().unwrap().unwrap();
    let paid = (CAPACITY - state.budget.quota.unwrap().tokens()) as usize;
    let missed = (share * processes) as usize - times.len();
    // What a server did not answer in time it may have done.
    let most = if place.starts_with(SOCKET) { times.len() + missed } else { times.len() };
    assert!((times.len()..=most).contains(&paid), "updates were lost");
    times.sort_unstable();
    let at = |part: usize| micros(times[(times.len() - 1) * part / 1000]);
    let how = if pause.is_zero() { "without a pause" } else { "5 ms apart" };
    let name = format!("{kind}: {processes} processes, {how}");
    println!("{name:<40} {:>9.1} {:>9.1} {:>9.1} {missed:>8}", at(500), at(990), at(1000));
}

fn worker(place: &str, updates: u32, pause: Duration) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg("worker").arg(place).arg(updates.to_string()).arg(pause.as_micros().to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "to be read by people")]
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}
