//! `--sole-retrier`: requests are counted at a server that always fails. A file of the
//! user's asks the program for one retry of its own, which the option takes away.

use libtest_mimic::{Failed, Trial};

use crate::cargo;
use crate::server::{Reply, Request, Server, plain};
use crate::support::{Lab, Run, has_programs, skipped};

/// One trial a program.
pub fn trials() -> Vec<Trial> {
    let programs: [(&str, Script, Prepare); 5] = [
        ("cargo", unwell, cargo),
        ("curl", unwell, curl),
        ("npm", unwell, npm),
        ("pip", unwell, pip),
        ("wget", plain, wget),
    ];
    let trial = |(name, script, prepare)| Trial::test(format!("sole_retrier_{name}"), move || check(script, prepare));
    programs.into_iter().map(trial).collect()
}

/// What the server answers.
type Script = fn(&Request) -> Reply;

/// Writes the program's settings and adds what is to be run to a run of retryx.
type Prepare = for<'a> fn(&Lab, &str, Run<'a>) -> Result<Run<'a>, String>;

fn check(script: Script, prepare: Prepare) -> Result<(), Failed> {
    for (options, requests) in [("-n 1", 2), ("-n 1 --sole-retrier", 1)] {
        let lab = Lab::new();
        let server = Server::new(script);
        let run = match prepare(&lab, &server.url(""), lab.run(options).arg("--")) {
            Ok(run) => run,
            Err(reason) => {
                skipped(&reason);
                return Ok(());
            }
        };
        let finished = run.finish();
        if server.requests() != requests || finished.status.success() {
            return Err(format!("{} requests, not {requests}: {}", server.requests(), finished.stderr).into());
        }
    }
    Ok(())
}

fn unwell(_: &Request) -> Reply {
    Reply::status(503)
}

fn is_there(program: &str) -> Result<(), String> {
    if has_programs(&[program]) { Ok(()) } else { Err(format!("{program} is not installed")) }
}

fn cargo<'a>(lab: &Lab, server: &str, run: Run<'a>) -> Result<Run<'a>, String> {
    let place = cargo::place()?;
    cargo::project(lab, "[dependencies]\ngood = {version = '1', registry = 'local'}\n");
    let run = cargo::with_settings(lab, server, run.arg(&place).arg("fetch"), &place);
    let settings = lab.read("cargo/config.toml");
    lab.write("cargo/config.toml", format!("net.retry = 1\n{settings}"));
    Ok(run)
}

fn curl<'a>(lab: &Lab, server: &str, run: Run<'a>) -> Result<Run<'a>, String> {
    is_there("curl")?;
    lab.write("home/.curlrc", "retry = 1\n");
    Ok(run.words("curl -fsS").arg(server))
}

fn npm<'a>(lab: &Lab, server: &str, run: Run<'a>) -> Result<Run<'a>, String> {
    is_there("npm")?;
    let settings = "fetch-retries=1\nfetch-retry-mintimeout=1\nupdate-notifier=false\n";
    lab.write("home/.npmrc", format!("registry={server}/\n{settings}"));
    Ok(run.words("npm view good"))
}

fn pip<'a>(lab: &Lab, server: &str, run: Run<'a>) -> Result<Run<'a>, String> {
    is_there("pip")?;
    std::fs::create_dir_all(lab.path("home/.config/pip")).expect("a folder");
    lab.write("home/.config/pip/pip.conf", "[global]\nretries = 1\n");
    let options = "--no-input --no-cache-dir --disable-pip-version-check --dest there --index-url";
    Ok(run.words("pip download").words(options).args([server, "good"]))
}

fn wget<'a>(lab: &Lab, server: &str, run: Run<'a>) -> Result<Run<'a>, String> {
    is_there("wget")?;
    lab.write("home/.wgetrc", "tries = 2\nwaitretry = 0\n");
    Ok(run.words("wget -nv").arg(format!("{server}/empty")))
}
