//! The body that the options make.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{Asked, random_key, read, text, unreadable};
use crate::cause::cause;
use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::http::address::percent_encoded;
use crate::http::body::Body;
use crate::http::form::{Part, Source};
use crate::net::Input;

/// What the body is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Json,
    Upload,
    /// With its boundary.
    Form(String),
}

impl Asked<'_> {
    /// The body, and what it is, where there is one.
    pub(super) fn body(&self) -> Result<(Body, Option<Kind>), UsageError> {
        let mut body = Body::default();
        let mut kind: Option<Kind> = None;
        let mut set = |new: Kind, place: &str| match &kind {
            Some(old) if std::mem::discriminant(old) != std::mem::discriminant(&new) => Err(UsageError(format!(
                "{place}: the body is given in two ways; give one of data, JSON, form and file"
            ))),
            _ => {
                kind = Some(new);
                Ok(())
            }
        };
        let mut first = true;
        for given in self.given {
            match given.id {
                Id::Data | Id::DataRaw | Id::DataBinary | Id::DataUrlencode => {
                    set(Kind::Data, &given.place)?;
                    if !std::mem::take(&mut first) {
                        body.push("&");
                    }
                    self.data(given, &mut body)?;
                }
                Id::Json => {
                    set(Kind::Json, &given.place)?;
                    self.data(given, &mut body)?;
                }
                _ => {}
            }
        }
        if let Some(given) = self.last(Id::Upload) {
            set(Kind::Upload, &given.place)?;
            push_file(&mut body, &given.value, given, self.spool_folder, self.input)?;
        }
        let parts: Vec<_> = self.all(Id::Form).collect();
        if let Some(first) = parts.first() {
            let boundary = format!("------------------------{}", &random_key().replace('-', "")[..16]);
            set(Kind::Form(boundary.clone()), &first.place)?;
            // Where the user gives the type, only that of a form has forms' parts.
            let own = self.all(Id::RequestHeader).filter_map(|given| given.value.to_str()).find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_ascii_lowercase())
            });
            let is_form = own.is_none_or(|kind| kind.is_empty() || kind.starts_with("multipart/form-data"));
            let disposition = if is_form { "form-data" } else { "attachment" };
            for part in &parts {
                self.part(part, &boundary, disposition, &mut body)?;
            }
            body.push(format!("--{boundary}--\r\n"));
        }
        Ok((body, kind))
    }

    fn data(&self, given: &Given, body: &mut Body) -> Result<(), UsageError> {
        let bytes = given.value.as_bytes();
        match (given.id, bytes.strip_prefix(b"@")) {
            (Id::DataUrlencode, _) => {
                let encoded = urlencoded(given, self.input)?;
                body.push(encoded);
                Ok(())
            }
            (Id::DataRaw, _) | (_, None) => {
                body.push(bytes);
                Ok(())
            }
            (Id::Data, Some(path)) => {
                // As curl has it: the line ends and NULs of a file are no part of the data.
                let mut content = read(OsStr::from_bytes(path), given, self.input)?;
                content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                body.push(content);
                Ok(())
            }
            (_, Some(path)) => push_file(body, OsStr::from_bytes(path), given, self.spool_folder, self.input),
        }
    }

    fn part(&self, given: &Given, boundary: &str, disposition: &str, body: &mut Body) -> Result<(), UsageError> {
        let part = Part::parse(text(given)?).map_err(|what| UsageError(format!("--form: {what}")))?;
        body.push(part.head(boundary, disposition));
        if part.source == Source::Text {
            body.push(part.content.as_bytes());
        } else {
            push_file(body, OsStr::new(&part.content), given, self.spool_folder, self.input)?;
        }
        body.push("\r\n");
        Ok(())
    }
}

/// `content`, `=content`, `name=content`, `@file` or `name@file`: the first `=` counts, and
/// `@` only where there is none.
fn urlencoded(given: &Given, input: &Input<'_>) -> Result<String, UsageError> {
    let bytes = given.value.as_bytes();
    let first = |wanted| bytes.iter().position(|byte| *byte == wanted);
    let at = first(b'=').or_else(|| first(b'@'));
    let (name, content) = match at {
        None => (&b""[..], bytes.to_vec()),
        Some(at) if bytes[at] == b'=' => (&bytes[..at], bytes[at + 1..].to_vec()),
        Some(at) => (&bytes[..at], read(OsStr::from_bytes(&bytes[at + 1..]), given, input)?),
    };
    let mut text = String::from_utf8_lossy(name).into_owned();
    if !text.is_empty() {
        text.push('=');
    }
    text.push_str(&percent_encoded(&content).replace("%20", "+"));
    Ok(text)
}

fn push_file(body: &mut Body, path: &OsStr, given: &Given, folder: &Path, input: &Input<'_>) -> Result<(), UsageError> {
    let is_standard = path == "-" || path == ".";
    let opened = input.open(if is_standard { OsStr::new("-") } else { path });
    let mut reader = opened.map_err(|error| unreadable(path, given, &error))?;
    let pushed = if is_standard {
        body.push_stream(&mut reader, folder)
    } else {
        body.push_file(Path::new(path), &mut reader, folder)
    };
    pushed.map_err(|error| {
        if !reader.is_read() {
            return unreadable(path, given, &error);
        }
        let (place, folder, why) = (&given.place, folder.display(), cause(&error));
        UsageError(format!("{place}: the body cannot be kept in {folder} (the folder is that of TMPDIR): {why}"))
    })
}
