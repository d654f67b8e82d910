//! A real server of a test's own, on a socket in its scratch folder.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use retryx::store::{RedisAddress, RedisStore};

use crate::support::{Lab, Running, has_programs, variable, wait_until};

/// A server. Dropped, it is killed.
pub struct Server<'a> {
    lab: &'a Lab,
    options: String,
    socket: PathBuf,
    /// Its process.
    pub process: Running,
    client: RefCell<Option<Client>>,
}

/// A connection to a server, which waits for each reply.
pub struct Client(BufReader<UnixStream>);

impl Client {
    /// Asks, and returns the reply with its type: the first line, or the whole of a string.
    pub fn ask(&mut self, words: &[&str]) -> String {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(request, "${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(request.as_bytes()).expect("a request");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a reply");
        if let Some(length) = line.trim_end().strip_prefix('$').and_then(|length| length.parse::<usize>().ok()) {
            let mut text = vec![0; length + 2];
            self.0.read_exact(&mut text).expect("a string");
            text.truncate(length);
            return format!("${}", String::from_utf8_lossy(&text));
        }
        line.trim_end().to_owned()
    }
}

/// Whether servers can be had.
pub fn is_there() -> bool {
    variable("REDIS_SERVER").is_some() || has_programs(&["redis-server"])
}

/// The server's program: what the variable `REDIS_SERVER` names, such as Valkey's, or Redis's.
fn program() -> PathBuf {
    variable("REDIS_SERVER").map_or_else(|| "redis-server".into(), PathBuf::from)
}

impl<'a> Server<'a> {
    /// Starts a server without a port.
    pub fn start(lab: &'a Lab) -> Self {
        Self::with(lab, "redis", "")
    }

    /// Starts a server with more options. There may be several of different names.
    pub fn with(lab: &'a Lab, name: &str, options: &str) -> Self {
        let socket = lab.path(&format!("{name}.sock"));
        let process = Self::process(lab, &socket, options);
        let server = Self { lab, options: options.to_owned(), socket, process, client: RefCell::default() };
        server.await_ready();
        server
    }

    /// Starts a server that listens at a port too, by the option of that name.
    pub fn at_port(lab: &'a Lab, name: &str, option: &str, options: &str) -> (Self, u16) {
        // Somebody else may take the port before the server does.
        for _ in 0..20 {
            let port = free_port();
            let socket = lab.path(&format!("{name}.sock"));
            let options = format!("{option} {port} {options}");
            let process = Self::process(lab, &socket, &options);
            let server = Self { lab, options, socket, process, client: RefCell::default() };
            wait_until("the server listens or ends", || server.listens() || !server.process.is_running());
            if server.process.is_running() {
                server.await_ready();
                return (server, port);
            }
        }
        panic!("no port for the server");
    }

    fn process(lab: &Lab, socket: &std::path::Path, options: &str) -> Running {
        let _ = std::fs::remove_file(socket);
        let port = if options.split(' ').any(|word| word == "--port") { "" } else { "--port 0" };
        lab.program(program())
            .words("--appendonly no --daemonize no --save")
            .arg("")
            .words(port)
            .words(options)
            .arg("--unixsocket")
            .arg(socket)
            .arg("--dir")
            .arg(lab.path(""))
            .start()
    }

    fn listens(&self) -> bool {
        UnixStream::connect(&self.socket).is_ok()
    }

    fn await_ready(&self) {
        wait_until("the server listens", || self.listens());
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.client.take();
        self.process.signal(rustix::process::Signal::KILL);
        self.process.await_end();
    }

    /// Starts it anew, without its data.
    pub fn restart(&mut self) {
        self.client.take();
        self.process = Self::process(self.lab, &self.socket, &self.options);
        self.await_ready();
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Its address for runs that are as patient as a test has to be.
    pub fn patient_address(&self) -> String {
        patient(&self.address())
    }

    /// A store in it that is as patient as a test has to be.
    pub fn store(&self) -> RedisStore {
        patient_store(&self.address())
    }

    /// A connection of its own.
    pub fn client(&self) -> Client {
        Client(BufReader::new(UnixStream::connect(&self.socket).expect("a connection")))
    }

    /// Asks it, and returns the reply, which must be no error, without its type.
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> String {
        let reply = self.client.borrow_mut().get_or_insert_with(|| self.client()).ask(words);
        assert!(!reply.starts_with('-'), "{words:?}: {reply}");
        reply[1..].to_owned()
    }

    /// How often a command was called since the figures were reset.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.ask(&["INFO", "commandstats"]);
        let start = format!("cmdstat_{command}:calls=");
        let found = stats.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next()?.parse().ok());
        found.unwrap_or(0)
    }

    /// A number among its figures.
    pub fn figure(&self, section: &str, name: &str) -> u64 {
        let info = self.ask(&["INFO", section]);
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{name} in {info}"))
    }
}

/// An address with as much patience as a test has to have.
fn patient(address: &str) -> String {
    format!("{address}{}timeout=10", if address.contains('?') { '&' } else { '?' })
}

/// A store at that address that is as patient as a test has to be.
pub fn patient_store(address: &str) -> RedisStore {
    RedisStore::new(RedisAddress::parse(&patient(address)).expect("an address"))
}

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}
