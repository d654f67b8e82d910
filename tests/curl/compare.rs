//! One command line through curl and through `retryx http`, against the same server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use retryx::cli::differences::DIFFERENCES;

use crate::server::{Request, Server};
use crate::support::Lab;

/// A command line and where its two runs may differ.
pub struct Line {
    /// The words as a shell would read them, single quotes only; `{}` is the server's host
    /// and port, `{p}` its port.
    pub words: &'static str,
    /// What standard input holds.
    pub stdin: &'static str,
    /// What differs, each with the name of its reason in `DIFFERENCES`.
    pub differs: &'static [(Aspect, &'static str)],
}

/// Something that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// The requests.
    Wire,
    /// Standard output.
    Stdout,
    /// The files that were written.
    Files,
    /// The exit status.
    Exit,
}

/// A line whose runs agree.
pub const fn same(words: &'static str) -> Line {
    Line { words, stdin: "", differs: &[] }
}

/// A line that reads this, and whose runs agree.
pub const fn reading(words: &'static str, stdin: &'static str) -> Line {
    Line { words, stdin, differs: &[] }
}

/// A line whose runs differ there, and why.
pub const fn differs(words: &'static str, differs: &'static [(Aspect, &'static str)]) -> Line {
    Line { words, stdin: "", differs }
}

/// What a run came to.
#[derive(Debug)]
struct Seen {
    wire: Vec<Request>,
    stdout: String,
    files: BTreeMap<String, String>,
    exit: Option<i32>,
    stderr: String,
}

impl Seen {
    fn shown(&self, aspect: Aspect) -> String {
        match aspect {
            Aspect::Wire => self.wire.iter().fold(String::new(), |text, request| {
                let body = request.body.escape_ascii();
                format!("{text}\n    {} | {} | {body}", request.line, request.fields.join(" | "))
            }),
            Aspect::Stdout => format!("{:?}", self.stdout),
            Aspect::Files => format!("{:?}", self.files),
            Aspect::Exit => format!("{:?}", self.exit),
        }
    }
}

/// The files that the lines find.
const FILES: [(&str, &str); 9] = [
    ("f", "file content\r\nsecond line\n"),
    ("f.txt", "some text\n"),
    ("g.html", "<p>"),
    ("odd name;x", "odd"),
    ("head", "X-From-File: 1\nX-Second: two words\r\n\n"),
    ("part", "hel"),
    ("long", "hello\n"),
    ("format", "%{http_code} from file\n"),
    ("json", "{\n  \"a\": 1\n}\n"),
];

/// Runs all lines; fails with all that is wrong.
pub fn compare(lines: &[Line]) {
    let lab = Lab::new();
    let server = Server::start();
    server.also_at(&lab.path("socket"));
    let mut wrong = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let text = line.words.replace("{}", &server.address.to_string()).replace("{p}", &server.port().to_string());
        let words = split(&text.replace("{D}", &lab.path("").to_string_lossy()));
        let curl = run(&lab, &server, &format!("curl-{number}"), &["curl"], &words, line.stdin);
        let own = ["retryx", "-n", "1", "http"];
        let retryx = run(&lab, &server, &format!("retryx-{number}"), &own, &words, line.stdin);
        let aspects = [
            (Aspect::Wire, curl.wire == retryx.wire),
            (Aspect::Stdout, curl.stdout == retryx.stdout),
            (Aspect::Files, curl.files == retryx.files),
            (Aspect::Exit, curl.exit == retryx.exit),
        ];
        for (aspect, agrees) in aspects {
            let reason = line.differs.iter().find(|(known, _)| *known == aspect).map(|(_, reason)| *reason);
            assert!(reason.is_none_or(|reason| DIFFERENCES.iter().any(|known| known.name == reason)), "{reason:?}");
            if agrees != reason.is_none() {
                let (one, other) = (curl.shown(aspect), retryx.shown(aspect));
                let said = retryx.stderr.trim();
                wrong
                    .push(format!("## {}: {aspect:?}, {reason:?}: {said}\n  curl {one}\n  retryx {other}", line.words));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn run(lab: &Lab, server: &Server, folder: &str, program: &[&str], words: &[String], stdin: &str) -> Seen {
    let place = lab.path(folder);
    fs::create_dir_all(place.join("folder")).expect("a folder");
    for (name, content) in FILES {
        fs::write(place.join(name), content).expect("a file");
    }
    server.take();
    let run = lab.shell("cd \"$1\"; shift; exec \"$@\"").arg("sh").arg(&place).args(program).args(words);
    let finished = run.input(stdin.as_bytes()).finish();
    let mut files = BTreeMap::new();
    collect(&place, &place, &mut files);
    for (name, content) in FILES {
        if files.get(name).is_some_and(|now| now == content) {
            files.remove(name);
        }
    }
    Seen {
        wire: server.take().iter().map(normalised).collect(),
        stdout: normalise(&finished.text()),
        files,
        exit: finished.status.code(),
        stderr: finished.stderr,
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("a file in it").to_string_lossy().into_owned();
            files.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned());
        }
    }
}

/// The request with what may differ made equal: the program's name and the boundary.
fn normalised(request: &Request) -> Request {
    let mut text = request.fields.join("\n");
    let mut body = String::from_utf8_lossy(&request.body).into_owned();
    if let Some(at) = text.find("boundary=") {
        let boundary: String = text[at + 9..].chars().take_while(|c| !c.is_whitespace()).collect();
        text = text.replace(&boundary, "BOUNDARY");
        body = body.replace(&boundary, "BOUNDARY");
        assert!(boundary.len() == 40, "a boundary as long as curl's: {boundary}");
    }
    let fields = text.lines().map(normalise).collect();
    Request { line: same_case(&request.line), fields, body: body.into_bytes() }
}

/// The same with the digits after each percent sign in upper case: both mean the same, and
/// curl changed its mind.
fn same_case(line: &str) -> String {
    let mut after = 0;
    line.chars()
        .map(|c| {
            after = if c == '%' { 3usize } else { after.saturating_sub(1) };
            if after > 0 { c.to_ascii_uppercase() } else { c }
        })
        .collect()
}

fn normalise(text: &str) -> String {
    let own = format!("retryx/{}", env!("CARGO_PKG_VERSION"));
    let mut text = text.replace(&own, "AGENT");
    while let Some(at) = text.find("curl/") {
        let end = text[at..].find(|c: char| c.is_whitespace()).map_or(text.len(), |length| at + length);
        text.replace_range(at..end, "AGENT");
    }
    text
}

/// The words of a line: spaces separate, single quotes hold together.
pub fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}
