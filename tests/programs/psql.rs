//! psql, `pg_dump` and their siblings.

use crate::Case;
use crate::loopback::{REFUSED, Server, UNRESOLVED};
use crate::postgres::Postgres;
use crate::support::{Finished, Lab, has_programs};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn refused(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "psql", row, class: "permanent", how, provoke }
}

/// The server has no room.
const fn crowded(how: &'static str, provoke: Provoke) -> Case {
    Case { class: "throttling", ..refused("too many connections", how, provoke) }
}

/// A failure that may pass by itself.
const fn passing(how: &'static str, provoke: Provoke) -> Case {
    Case { class: "transient", ..refused("default:exit", how, provoke) }
}

/// Runs a command, whose words stand in one line, and one more.
fn run(lab: &Lab, line: &str, last: &str) -> Result<Finished, String> {
    if !has_programs(&["psql", "pg_dump"]) {
        return Err("psql is not installed".into());
    }
    let last = (!last.is_empty()).then_some(last);
    Ok(lab.run("-n 1 --").words(line).args(last).env("PGPASSWORD", "wrong").finish())
}

fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    run(lab, line, "")
}

/// Runs a command beside a server, whose place is put for `HOST`.
fn served(lab: &Lab, line: &str, last: &str) -> Result<Finished, String> {
    let server = Postgres::start(lab)?;
    run(lab, &line.replace("HOST", &server.host()), last)
}

/// Runs psql against a host, on loopback or of no name.
fn at(lab: &Lab, host: &str, port: u16) -> Result<Finished, String> {
    run(lab, &format!("psql -X -h {host} -p {port} -U admin -d postgres -c"), "select 1")
}

/// Each way that they were brought to fail.
pub const CASES: &[Case] = &[
    refused("bad usage", "psql", |lab| alone(lab, "psql --nope")),
    refused("bad usage", "pg_dump", |lab| alone(lab, "pg_dump --nope")),
    refused("bad connection string", "option", |lab| run(lab, "psql -X", "nope=1 host=127.0.0.1")),
    refused("bad connection string", "value", |lab| run(lab, "pg_dump", "sslmode=nope host=127.0.0.1")),
    refused("bad connection string", "number", |lab| run(lab, "psql -X", "port=x host=127.0.0.1")),
    refused("authentication refused", "psql", |lab| {
        served(lab, "psql -X -h HOST -U secret -d postgres -c", "select 1")
    }),
    refused("authentication refused", "quiet", |lab| {
        served(lab, "psql -qXAt -h HOST -U secret -d postgres -c", "select 1")
    }),
    refused("authentication refused", "pg_dump", |lab| served(lab, "pg_dump -h HOST -U secret postgres", "")),
    refused("authentication refused", "createdb", |lab| served(lab, "createdb -h HOST -U secret x", "")),
    refused("authentication refused", "second address", |lab| {
        let server = Postgres::start(lab)?;
        let port = Server::joined_to(&server.socket()).port;
        let hosts = "host=localhost,localhost user=secret dbname=postgres";
        run(lab, "psql -X", &format!("{hosts} port={REFUSED},{port}"))
    }),
    refused("no password", "", |lab| {
        let server = Postgres::start(lab)?;
        let run = lab.run("-n 1 -- psql -X -w -h").arg(server.host()).words("-U secret -d postgres -c").arg("select 1");
        Ok(run.finish())
    }),
    refused("no such database", "psql", |lab| served(lab, "psql -X -h HOST -U admin -d nosuch -c", "select 1")),
    refused("no such database", "pg_dump", |lab| served(lab, "pg_dump -h HOST -U admin nosuch", "")),
    refused("no such role", "", |lab| served(lab, "psql -X -h HOST -U nosuch -d postgres -c", "select 1")),
    refused("role may not log in", "", |lab| served(lab, "psql -X -h HOST -U barred -d postgres -c", "select 1")),
    refused("bad SQL", "", |lab| served(lab, "psql -X -h HOST -U admin -d postgres -c", "selec 1")),
    refused("bad SQL in a script", "", |lab| {
        lab.write("a script.sql", "select 1;\nselec 1;\n");
        served(lab, "psql -X -v ON_ERROR_STOP=1 -h HOST -U admin -d postgres -f", "a script.sql")
    }),
    crowded("server", |lab| {
        let server = Postgres::start(lab)?;
        let mut others = Vec::new();
        // What made the roles may still be leaving.
        while others.len() < 5 {
            others.push(server.idle());
        }
        at(lab, &server.host(), 5432)
    }),
    crowded("role", |lab| served(lab, "psql -X -h HOST -U few -d postgres -c", "select 1")),
    passing("refused", |lab| at(lab, "127.0.0.1", REFUSED)),
    passing("not resolved", |lab| at(lab, UNRESOLVED, 5432)),
    passing("other host refused", |lab| {
        let server = Postgres::start(lab)?;
        run(
            lab,
            "psql -X",
            &format!("host=127.0.0.1,{} port={REFUSED},5432 user=secret dbname=postgres", server.host()),
        )
    }),
    passing("dropped", |lab| at(lab, "127.0.0.1", Server::dropping().port)),
    passing("not started", |lab| at(lab, &lab.path("tmp").to_string_lossy(), 5432)),
    passing("pg_dump refused", |lab| alone(lab, &format!("pg_dump -h 127.0.0.1 -p {REFUSED} -U admin postgres"))),
    passing("session ended", |lab| {
        let end = "select pg_terminate_backend(pg_backend_pid())";
        served(lab, "psql -X -h HOST -U admin -d postgres -c", end)
    }),
    passing("statement cancelled", |lab| {
        let slow = "set statement_timeout = '10ms'; select pg_sleep(60);";
        lab.write("slow.sql", slow);
        served(lab, "psql -X -v ON_ERROR_STOP=1 -h HOST -U admin -d postgres -f", "slow.sql")
    }),
    passing("no such table", |lab| served(lab, "psql -X -h HOST -U admin -d postgres -c", "select * from nosuch")),
];
