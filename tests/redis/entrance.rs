//! Passwords, users, TLS: who gets in, what is said to those who do not, and that no secret is
//! told to anybody.

use std::fs;

use proptest::prelude::*;
use retryx::policy::QuotaPlan;
use retryx::store::{RedisAddress, RedisStore, StateStore as _};

use crate::keys::{plan, retry, scope};
use crate::server::{Server, is_there, patient_store};
use crate::support::{Lab, has_programs, skip};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_address_tells_what_it_holds(start in "(redis|rediss|unix|):?/{0,2}", tail in "[a-z/?#@:%=&.0-9\\[\\]]{0,20}", rest in ".{0,20}") {
        let told = match RedisAddress::parse(&format!("{start}:hush{tail}@h{rest}")) {
            Ok(address) => format!("{address} {address:?}"),
            Err(problem) => problem,
        };
        prop_assert!(!told.contains("hush"), "{}", told);
    }
}

/// What an operation by that address comes to: nothing, or why it failed.
fn trouble(address: &str) -> Option<String> {
    patient_store(address).apply(&scope("x"), &plan(100, 0), &retry(1), None).err().map(|problem| problem.0)
}

#[track_caller]
fn gets_in(address: &str) {
    assert_eq!(trouble(address), None, "{address}");
}

#[track_caller]
fn stays_out(address: &str, why: &str) {
    let said = trouble(address).unwrap_or_else(|| panic!("{address} gets in"));
    assert!(said.contains(why) && !said.contains("hush"), "{address}: {said}");
}

#[test]
fn passwords_and_users() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let path = server.address().replacen("unix://", "", 1);
    let at = |entrance: &str| format!("unix://{entrance}{path}");
    // A password that nobody asked for does no harm.
    gets_in(&at(":hush@"));
    // Who is refused has done nothing, though the server lets everybody do all.
    stays_out(&at("someone:hush@"), "refuses the user or the password");
    let mut refused = patient_store(&at("someone:hush@"));
    assert!(refused.set(&scope("x"), 7, QuotaPlan::default()).is_err() && refused.reset(&scope("x").name).is_err());
    assert_eq!(server.ask(&["HGET", "retryx:scope:{x}", "tokens"]), "99");

    for words in [
        "ACL SETUSER whole on >hush:/?#[]@%41 ~retryx:* +eval +select +time +type +hmget +hset +pexpire +rename +scan +del",
        "ACL SETUSER empty on >hush ~retryx:* -@all",
        "ACL SETUSER bare on >hush ~retryx:* +eval",
        "ACL SETUSER half on >hush ~retryx:* +eval +select +time +type +hmget +hset +rename",
        "ACL SETUSER elsewhere on >hush ~other:* +@all",
        "ACL SETUSER off off >hush ~* +@all",
    ] {
        server.ask(&words.split(' ').collect::<Vec<_>>());
    }
    let whole = at("whole:hush%3A%2F%3F%23%5B%5D%40%2541@");
    gets_in(&whole);
    let mut store = patient_store(&whole);
    assert_eq!(store.list().map(|scopes| scopes.len()), Ok(1));
    assert_eq!(store.reset(&scope("x").name), Ok((true, None)));
    server.ask(&["DEL", "retryx:scope:{x}"]);
    for user in ["empty", "bare", "half", "elsewhere"] {
        stays_out(&at(&format!("{user}:hush@")), "does not permit it");
    }
    assert_eq!(server.ask(&["EXISTS", "retryx:scope:{x}"]), "0");
    stays_out(&at("off:hush@"), "refuses the user or the password");
    stays_out(&at("whole:hush@"), "refuses the user or the password");

    for (name, content) in [("good", "hush\n"), ("bad", "not hush"), ("empty", "\n"), ("large", &"hush".repeat(2000))] {
        lab.write(name, content);
    }
    let file = |name: &str| format!("{}?password-file={}", at(""), lab.path(name).display());
    server.ask(&["CONFIG", "SET", "requirepass", "hush"]);
    gets_in(&at(":hush@"));
    gets_in(&at("default:hush@"));
    gets_in(&file("good"));
    stays_out(&at(""), "wants a password; give");
    stays_out(&at(":hush-hush@"), "refuses the user or the password");
    stays_out(&file("bad"), "refuses the user or the password");
    stays_out(&file("empty"), "it is empty");
    stays_out(&file("large"), "too large");
    stays_out(&file("missing"), "no such file");
}

#[test]
fn a_server_that_knows_no_passwords_repeats_none() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    // Its words for an unknown command hold what was asked.
    let server = Server::with(&lab, "renamed", "--rename-command AUTH NOAUTHHERE");
    let path = server.address().replacen("unix://", "", 1);
    stays_out(&format!("unix://u:hush@{path}"), "knows no AUTH");
    stays_out(&format!("unix://:hush@{path}"), "knows no AUTH");
    let server = Server::with(&lab, "mute", "--rename-command EVAL NOEVALHERE");
    stays_out(&server.address(), "lacks a command");
    for name in ["TIME", "TYPE", "HSET", "PEXPIRE"] {
        let server = Server::with(&lab, name, &format!("--rename-command {name} NO{name}HERE"));
        stays_out(&server.address(), "lacks a command");
        assert_eq!(server.ask(&["EXISTS", "retryx:scope:{x}"]), "0");
    }
    // The first database is where everybody begins.
    let server = Server::with(&lab, "fixed", "--rename-command SELECT NOSELECTHERE");
    gets_in(&server.address());
    assert_eq!(patient_store(&server.address()).list().map(|scopes| scopes.len()), Ok(1));
}

// B131: a password in a file, in a variable, and on the command line.
#[test]
fn no_secret_is_told_to_anybody() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::with(&lab, "redis", "--requirepass hush");
    let path = server.address().replacen("unix://", "", 1);
    let file = lab.write("secret", "hush");
    let by_file = format!("unix://{path}?password-file={}", file.display());
    for (address, is_shared) in [
        (by_file, true),
        (format!("unix://:hush@{path}"), true),
        (format!("unix://:hush-hush@{path}"), false),
        ("redis://:hush@127.0.0.1:1".to_owned(), false),
    ] {
        let run = lab
            .run("--scope x -n 2 --base-delay 0 -vv --log-arguments")
            .env("RETRYX_STORE", &address)
            .sh("echo >>n; until test -e go; do sleep 0.01; done; exit 7")
            .start();
        lab.await_lines("n", 1);
        // The leader of the session and whoever is in it.
        let words = processes_of(run.pid);
        assert!(words.contains("retryx") && !words.contains("hush"), "{words}");
        lab.write("go", "");
        let run = run.finish();
        run.exited(7);
        for file in ["n", "go"] {
            fs::remove_file(lab.path(file)).expect("a file");
        }
        assert_eq!(!run.stderr.contains("is not shared"), is_shared, "{}", run.stderr);
        let events = serde_json::to_string(&run.events).expect("events");
        assert!(!run.stderr.contains("hush") && !events.contains("hush"), "{} {events}", run.stderr);
    }
    for words in [
        "--scope x --store redis://:hush@h/hush -- true",
        "--scope x --store redis:hush@h -- true",
        "--scope x --store redis://:hush@h --state-dir . -- true",
        "--store redis://:hush@h -- true",
    ] {
        let run = lab.bare(words).finish();
        run.exited(125).says(&["--store"]);
        assert!(!run.stderr.contains("hush"), "{}", run.stderr);
    }
    let plan = lab.bare("plan --explain-config --scope x --store redis://:hush@h").finish();
    assert!(plan.exited(0).text().contains("redis://h:6379/0") && !plan.text().contains("hush"), "{}", plan.text());
    let run = lab.bare("--scope x -- true").env("RETRYX_STORE", "redis://:hush@h/hush").finish();
    run.exited(125).says(&["RETRYX_STORE"]);
    assert!(!run.stderr.contains("hush"), "{}", run.stderr);
    // A folder that a variable names is for runs that keep their scopes in files.
    let run =
        lab.bare("--scope x -- true").env("RETRYX_STATE_DIR", "/nonexistent").env("RETRYX_STORE", server.address());
    run.finish().exited(0);
}

/// The words of all processes of a session.
fn processes_of(session: i32) -> String {
    let mut all = String::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let field = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(3)?.parse::<i32>().ok());
        if field == Some(session) {
            all.push_str(&String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).unwrap_or_default()));
            all.push('\n');
        }
    }
    all
}

/// Makes an authority, and certificates by it and by nobody.
const AUTHORITY: &str = r#"set -e
cd "$D"
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() {
    new_key "$1"
    openssl req -x509 -new -key "$1.key" -out "$1.pem" -days 30 -subj "/CN=Test $1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
# NAME SUBJECT-ALTERNATIVE-NAME
certificate() {
    new_key "$1"
    openssl req -new -key "$1.key" -out "$1.csr" -subj "/CN=$1"
    printf 'subjectAltName = %s\nextendedKeyUsage = serverAuth, clientAuth\n' "$2" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -set_serial "$3" -out "$1.crt" -days 30 -extfile "$1.ext"
    cat "$1.crt" "$1.key" >"$1.both"
}
authority ca
authority other
certificate good DNS:localhost,IP:127.0.0.1 2
certificate wrong DNS:elsewhere.example 3
certificate client DNS:client 4
"#;

#[test]
fn tls_with_real_certificates() {
    if !is_there() || !has_programs(&["openssl"]) {
        skip!("redis-server or openssl is not installed");
    }
    let lab = Lab::new();
    lab.bash(AUTHORITY).finish().exited(0);
    let path = |name: &str| lab.path(name).display().to_string();
    let options = |certificate: &str, clients: &str| {
        let [certificate, key, authority] =
            [format!("{certificate}.crt"), format!("{certificate}.key"), "ca.pem".into()].map(|name| path(&name));
        format!(
            "--tls-cert-file {certificate} --tls-key-file {key} --tls-ca-cert-file {authority} --tls-auth-clients {clients}"
        )
    };
    let (_good, port) = Server::at_port(&lab, "good", "--tls-port", &options("good", "no"));
    gets_in(&format!("rediss://localhost:{port}?cacert={}", path("ca.pem")));
    gets_in(&format!("valkeys://127.0.0.1:{port}?cacert={}", path("ca.pem")));
    let remedy = "?cacert=FILE in the address, or SSL_CERT_FILE";
    stays_out(&format!("rediss://localhost:{port}?cacert={}", path("other.pem")), remedy);
    stays_out(&format!("rediss://localhost:{port}?cacert={}", path("good.key")), "no certificate in it");
    // What speaks another way than it is spoken to.
    stays_out(&format!("redis://localhost:{port}"), "");

    // The whole way, with the authority in the environment.
    let run = lab
        .run(&format!("--scope e --quota-cost 5 -n 2 --base-delay 0 --store rediss://localhost:{port}"))
        .env("SSL_CERT_FILE", path("ca.pem"));
    let run = run.command(&["false"]).finish();
    run.exited(1).stopped(2, "attempts");
    if !run.stderr.contains("did not answer within") {
        assert!(!run.stderr.contains("is not shared"), "{}", run.stderr);
    }

    let (_wrong, port) = Server::at_port(&lab, "wrong", "--tls-port", &options("wrong", "no"));
    stays_out(&format!("rediss://localhost:{port}?cacert={}", path("ca.pem")), "it is for another name");

    // As it is by default: clients are asked for a certificate too.
    let (_asking, port) = Server::at_port(&lab, "asking", "--tls-port", &options("good", "yes"));
    let address = format!("rediss://localhost:{port}?cacert={}", path("ca.pem"));
    stays_out(&address, "cert=FILE&key=FILE in the address");
    gets_in(&format!("{address}&cert={}&key={}", path("client.crt"), path("client.key")));
    gets_in(&format!("{address}&cert={}", path("client.both")));
    stays_out(&format!("{address}&cert={}", path("client.crt")), "no private key in it");

    let (_plain, port) = Server::at_port(&lab, "plain", "--port", "");
    gets_in(&format!("redis://localhost:{port}"));
    gets_in(&format!("redis://127.0.0.1:{port}"));
    // A server takes the beginning of TLS for a line that does not end yet.
    let address = RedisAddress::parse(&format!("rediss://localhost:{port}?cacert={}", path("ca.pem")));
    let mut store = RedisStore::new(address.expect("an address"));
    assert!(store.apply(&scope("x"), &plan(100, 0), &retry(1), None).is_err());
}
