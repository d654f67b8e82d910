//! pip, with an index of our own.

use crate::Case;
use crate::server::{REFUSED, Reply, Request, Server, UNRESOLVED};
use crate::support::{Finished, Lab, has_programs};

/// Each way that pip was brought to fail.
pub const CASES: &[Case] = &[
    case("malformed requirement", "permanent", "", |lab| asking(lab, &["good bad"])),
    case("malformed requirement", "permanent", "quiet", |lab| asking(lab, &["-q", "=="])),
    case("malformed requirement", "permanent", "in a file", |lab| listed(lab, "good bad\n", &[])),
    case("requirements that a server gave", "transient", "", |lab| from_server(lab, "/files/page")),
    case("local path missing", "transient", "", |lab| asking(lab, &["./nosuch"])),
    case("malformed wheel name", "permanent", "", |lab| direct(lab, "good-1.0.whl")),
    case("wheel for another platform", "permanent", "", |lab| direct(lab, "good-1.0-cp20-cp20m-win32.whl")),
    case("hashes or versions not given", "permanent", "hashes", |lab| listed(lab, "good==1.0\n", HASHED)),
    case("hashes or versions not given", "permanent", "versions", |lab| listed(lab, "good\n", HASHED)),
    case("environment managed by another", "permanent", "", |lab| {
        pip_is_there()?;
        let script = "import os, sysconfig as s\nprint(os.path.exists(s.get_path('stdlib') + '/EXTERNALLY-MANAGED'))";
        if lab.tool("python3", &["-c", script]).trim() != "True" {
            return Err("no distribution manages this Python".to_owned());
        }
        Ok(lab
            .run("-n 1 -- pip install -q --no-input --disable-pip-version-check --index-url")
            .args([REFUSED, "x"])
            .finish())
    }),
    case("unknown command", "permanent", "", |lab| {
        pip_is_there()?;
        Ok(lab.run("-n 1 -- pip nosuch").finish())
    }),
    case("unknown option", "permanent", "", |lab| asking(lab, &["--nosuch", "good"])),
    case("status 401", "permanent", "", |lab| asking(lab, &["file-401"])),
    case("status 403", "permanent", "", |lab| asking(lab, &["file-403"])),
    case("status 403", "permanent", "quiet", |lab| asking(lab, &["-qq", "file-403"])),
    case("status 404", "permanent", "", |lab| direct(lab, "file_404-1.0-py3-none-any.whl")),
    case("status 404", "permanent", "requirements", |lab| from_server(lab, "/files/file-404")),
    case("file missing that its index names", "transient", "", |lab| asking(lab, &["file-404"])),
    case("status 429", "throttling", "", |lab| asking(lab, &["file-429"])),
    case("default:exit", "transient", "522", |lab| asking(lab, &["file-522"])),
    case("default:exit", "transient", "408", |lab| asking(lab, &["file-408"])),
    case("default:exit", "transient", "425", |lab| asking(lab, &["file-425"])),
    case("default:exit", "transient", "file 503", |lab| asking(lab, &["file-503"])),
    case("default:exit", "transient", "file reset", |lab| asking(lab, &["file-reset"])),
    case("default:exit", "transient", "file in part", |lab| asking(lab, &["--progress-bar=off", "file-part"])),
    case("default:exit", "transient", "other hash", |lab| {
        listed(lab, &format!("good==1.0 --hash=sha256:{:064}\n", 0), &[])
    }),
    // It says the same of all of these.
    case("default:exit", "transient", "index 401", |lab| asking(lab, &["index-401"])),
    case("default:exit", "transient", "index 404", |lab| asking(lab, &["index-404"])),
    case("default:exit", "transient", "index 429", |lab| asking(lab, &["index-429"])),
    case("default:exit", "transient", "index 503", |lab| asking(lab, &["index-503"])),
    case("default:exit", "transient", "index reset", |lab| asking(lab, &["index-reset"])),
    case("default:exit", "transient", "version not there yet", |lab| asking(lab, &["good==2.0"])),
    case("default:exit", "transient", "index refused", |lab| pip(lab, REFUSED, &["good"])),
    case("default:exit", "transient", "index unresolved", |lab| {
        pip(lab, &UNRESOLVED.replace("http:", "https:"), &["good"])
    }),
    case("default:exit", "transient", "requirements missing", |lab| asking(lab, &["-r", "nosuch"])),
];

const HASHED: &[&str] = &["--require-hashes"];

const fn case(
    row: &'static str,
    class: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "pip", row, class, how, provoke }
}

/// An index that knows every package, in version 1.0. The name of a file, or of a package
/// for its page, may say what comes instead of it: `index-503`, `file-reset`.
fn index(request: &Request) -> Reply {
    let mut parts = request.path.trim_matches('/').split('/');
    let (place, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let words: Vec<_> = name.split(['-', '_']).collect();
    match (place, words.as_slice()) {
        ("simple", ["index", "reset"]) | ("files", ["file", "reset", ..]) => Reply::Reset,
        ("files", ["file", "part", ..]) => Reply::part(200),
        ("simple", ["index", status]) | ("files", ["file", status, ..]) => Reply::status(status.parse().unwrap_or(500)),
        ("simple", _) => {
            let file = format!("/files/{}-1.0-py3-none-any.whl", name.replace('-', "_"));
            Reply::Answer(200, "Content-Type: text/html\r\n".to_owned(), format!("<a href='{file}'>it</a>").into())
        }
        _ => Reply::text("no wheel, if you look at it"),
    }
}

fn pip_is_there() -> Result<(), String> {
    if has_programs(&["pip", "python3"]) { Ok(()) } else { Err("pip is not installed".to_owned()) }
}

/// Downloads from this index.
fn pip(lab: &Lab, url: &str, arguments: &[&str]) -> Result<Finished, String> {
    pip_is_there()?;
    let options = "--no-deps --no-input --no-cache-dir --disable-pip-version-check --retries 0 --dest there";
    let run = lab.run("-n 1 -- pip download").words(options).arg("--index-url").arg(format!("{url}/simple/"));
    Ok(run.args(arguments).finish())
}

/// Downloads from an index of our own.
fn asking(lab: &Lab, arguments: &[&str]) -> Result<Finished, String> {
    let server = Server::new(index);
    pip(lab, &server.url(""), arguments)
}

/// Downloads a file by its address.
fn direct(lab: &Lab, file: &str) -> Result<Finished, String> {
    let server = Server::new(index);
    pip(lab, &server.url(""), &[&server.url(&format!("/files/{file}"))])
}

/// Downloads what a file of requirements says.
fn listed(lab: &Lab, requirements: &str, options: &[&str]) -> Result<Finished, String> {
    lab.write("requirements.txt", requirements);
    asking(lab, &[&["-r", "requirements.txt"], options].concat())
}

/// Downloads what a file of requirements at the server says.
fn from_server(lab: &Lab, path: &str) -> Result<Finished, String> {
    let server = Server::new(index);
    pip(lab, &server.url(""), &["-r", &server.url(path)])
}
