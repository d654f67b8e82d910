//! A real server of `PostgreSQL`, on a socket in the scratch folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{LIMIT, Lab, Running, await_end, has_programs, is_root, wait_until};

/// The server; ended with its processes when dropped.
pub struct Postgres {
    running: Running,
    folder: PathBuf,
}

impl Postgres {
    /// Starts it: `admin` may all, `secret` has a password; the database `closed` has no room.
    pub fn start(lab: &Lab) -> Result<Self, String> {
        let [initdb, postgres] = ["initdb", "postgres"].map(program);
        let (Some(initdb), Some(postgres)) = (initdb, postgres) else { return Err("no PostgreSQL server".into()) };
        if !has_programs(&["psql", "pg_dump"]) {
            return Err("psql is not installed".into());
        }
        // It refuses to run as the superuser.
        let (prefix, owner) = if is_root() {
            ("setpriv --reuid=nobody --regid=nogroup --clear-groups", "chmod 711 .; chown nobody pg")
        } else {
            ("env", "")
        };
        lab.tool("sh", &["-ec", &format!("mkdir pg; {owner}")]);
        let folder = lab.path("pg");
        let words = |program: &Path, line: &str| -> Vec<String> {
            let words = prefix.split(' ').chain([program.to_str().expect("a path")]).chain(line.split(' '));
            words.map(str::to_owned).collect()
        };
        let data = folder.join("data");
        let data = data.to_string_lossy();
        let make = words(&initdb, &format!("-D {data} -U admin -A trust --no-locale -E UTF8 --no-sync"));
        lab.tool(&make[0], &make[1..].iter().map(String::as_str).collect::<Vec<_>>());
        fs::write(folder.join("data/pg_hba.conf"), "local all secret scram-sha-256\nlocal all all trust\n")
            .expect("a file");
        let socket = folder.to_string_lossy();
        let settings = "-c listen_addresses= -c fsync=off -c dynamic_shared_memory_type=mmap -c max_connections=5 \
                        -c superuser_reserved_connections=0 -c max_wal_senders=0 -c max_worker_processes=1 \
                        -c shared_buffers=1MB -c autovacuum=off";
        let serve = words(&postgres, &format!("-D {data} -k {socket} {settings}"));
        let running = lab.program(&serve[0]).args(&serve[1..]).start();
        let server = Self { running, folder: folder.clone() };
        wait_until("PostgreSQL is ready", || {
            assert!(server.running.is_running(), "{}", server.running.stderr());
            server.running.stderr().contains("database system is ready to accept connections")
        });
        let setup = "create role secret login password 'right'; create role barred; \
                     create role few login connection limit 0";
        lab.tool("psql", &["-q", "-X", "-h", &socket, "-U", "admin", "-d", "postgres", "-c", setup]);
        Ok(server)
    }

    /// The folder of its socket, which is its host's name for clients.
    pub fn host(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Connects and does nothing, until it is dropped.
    pub fn idle(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.socket()).expect("a connection");
        let body = b"\0\x03\0\0user\0admin\0database\0postgres\0\0";
        let length = u32::try_from(body.len() + 4).expect("a length").to_be_bytes();
        stream.write_all(&[&length[..], body].concat()).expect("a server");
        let mut kind = [0];
        stream.read_exact(&mut kind).expect("an answer");
        assert_eq!(kind, *b"R", "not let in");
        stream
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It ends its processes, and gives back what it shared with them.
        self.running.signal(Signal::QUIT);
        await_end(self.running.pid, LIMIT);
    }
}

/// A program of the server, also where the distribution keeps them out of the way.
fn program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).find(|path| path.exists());
    found.or_else(|| has_programs(&[name]).then(|| name.into()))
}
