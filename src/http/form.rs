//! The parts of a form (`-F`), read as curl reads them, and their heads. Pure.

use std::borrow::Cow;
use std::path::Path;

/// Where a part's content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was given.
    Text,
    /// From a file that is uploaded with its name.
    File,
    /// From a file that is not.
    ContentOf,
}

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    name: String,
    /// Where the content comes from.
    pub source: Source,
    /// The content, or the file that has it.
    pub content: String,
    kind: Option<String>,
    file_name: Option<String>,
}

impl Part {
    /// Reads `name=text`, `name=@file` or `name=<file`, each with `;type=` and `;filename=`.
    pub fn parse(whole: &str) -> Result<Self, String> {
        let (name, rest) = whole.split_once('=').ok_or("a part is written as name=content")?;
        let (source, rest) = match rest.as_bytes().first() {
            Some(b'@') => (Source::File, &rest[1..]),
            Some(b'<') => (Source::ContentOf, &rest[1..]),
            _ => (Source::Text, rest),
        };
        if source == Source::Text && rest.starts_with('(') {
            return Err(format!(
                "a ( begins a form within the form, which is not sent; as text it stands in double quotes: {name}=\"(...\""
            ));
        }
        let (content, settings) = word(rest);
        if source == Source::File && content.contains(',') && !rest.trim_start().starts_with('"') {
            return Err(format!(
                "'{content}' means several files in one part, which is not sent; give each a -F of its own, and a name \
                 with a comma in double quotes: {name}=@\"{content}\""
            ));
        }
        let (name, content) = (name.to_owned(), content.into_owned());
        let mut part = Self { name, source, content, kind: None, file_name: None };
        part.settings(settings)?;
        let path = Path::new(&part.content);
        match source {
            Source::File => {
                let base = path.file_name().map(|name| name.to_string_lossy().into_owned());
                part.file_name = part.file_name.or(base);
            }
            Source::ContentOf => part.file_name = None,
            Source::Text => {}
        }
        part.kind = part.kind.take().or_else(|| part.kind_by_name().map(str::to_owned));
        Ok(part)
    }

    /// The type that curl gives a part by its names.
    fn kind_by_name(&self) -> Option<&'static str> {
        let by_name = self.file_name.as_deref().and_then(media_type);
        if self.source == Source::Text || self.content == "-" {
            return by_name;
        }
        let found = by_name.or_else(|| media_type(&self.content));
        match self.source {
            Source::File => found.or(Some(OCTETS)),
            _ => found.filter(|kind| *kind != PLAIN),
        }
    }

    fn settings(&mut self, mut settings: &str) -> Result<(), String> {
        while let Some(setting) = settings.trim_start().strip_prefix(';') {
            let setting = setting.trim_start();
            if let Some(value) = setting.strip_prefix("type=") {
                // A type may have parameters of its own: up to the next setting that is known.
                let starts = value.match_indices(';').map(|(at, _)| at);
                let end = starts.into_iter().find(|at| is_setting(&value[at + 1..])).unwrap_or(value.len());
                let kind = value[..end].trim();
                if kind.contains(['\r', '\n', '\0']) {
                    return Err("the type breaks the line, which would be another header".to_owned());
                }
                let is_whole = kind.split_once('/').is_some_and(|(one, other)| {
                    !one.is_empty() && !one.contains(' ') && !other.trim_start_matches([' ', ',', ';']).is_empty()
                });
                if !is_whole {
                    return Err(format!("'type={kind}' names no type; valid is one such as type=text/plain"));
                }
                self.kind = Some(kind.to_owned());
                settings = &value[end..];
            } else if let Some(value) = setting.strip_prefix("filename=") {
                let (value, after) = word(value);
                self.file_name = Some(value.into_owned());
                settings = after;
            } else if is_setting(setting) {
                let name = setting.split('=').next().unwrap_or_default();
                return Err(format!("'{name}=' is not taken; valid are type= and filename="));
            } else if self.source == Source::Text {
                // Text may hold semicolons of its own.
                let (more, after) = word(setting);
                self.content.push_str(&settings[..settings.len() - setting.len()]);
                self.content.push_str(&more);
                settings = after;
            } else {
                return Err(format!("'{setting}' is not known; valid are type= and filename="));
            }
        }
        Ok(())
    }

    /// What stands before its content.
    pub fn head(&self, boundary: &str, disposition: &str) -> String {
        let escaped = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let named = |what: &str, text: &str| format!("; {what}=\"{}\"", escaped(text));
        let name = if self.name.is_empty() { String::new() } else { named("name", &self.name) };
        let file_name = self.file_name.as_ref().map(|name| named("filename", name)).unwrap_or_default();
        let kind = self.kind.as_ref().map(|kind| format!("Content-Type: {kind}\r\n")).unwrap_or_default();
        format!("--{boundary}\r\nContent-Disposition: {disposition}{name}{file_name}\r\n{kind}\r\n")
    }
}

/// A word of a form's part, up to a semicolon, without the blanks around it; in quotes it may
/// hold any. The second part is all that follows it.
fn word(text: &str) -> (Cow<'_, str>, &str) {
    let mut word = String::new();
    if let Some(quoted) = text.trim_start().strip_prefix('"') {
        let mut rest = quoted.char_indices();
        while let Some((at, c)) = rest.next() {
            match c {
                '\\' => match quoted[at + 1..].chars().next() {
                    Some(c @ ('"' | '\\')) => {
                        rest.next();
                        word.push(c);
                    }
                    _ => word.push('\\'),
                },
                // What follows the closing quote up to the semicolon is dropped, as by curl.
                '"' => {
                    let after = &quoted[at + 1..];
                    return (word.into(), &after[after.find(';').unwrap_or(after.len())..]);
                }
                c => word.push(c),
            }
        }
    }
    let text = text.trim_ascii_start();
    let word = text[..text.find(';').unwrap_or(text.len())].trim_ascii_end();
    (word.into(), &text[word.len()..])
}

fn is_setting(text: &str) -> bool {
    let text = text.trim_start();
    ["type=", "filename=", "headers=", "encoder="].iter().any(|setting| text.starts_with(setting))
}

/// The media type of bytes of no known kind.
const OCTETS: &str = "application/octet-stream";
/// That of text, which is not told of a part without a file's name.
const PLAIN: &str = "text/plain";

/// The media type that curl gives a file of a form by its name.
fn media_type(path: &str) -> Option<&'static str> {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    Some(match extension.as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => PLAIN,
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_curl_reads_them() {
        for (written, source, content, head) in [
            ("a=1", Source::Text, "1", "; name=\"a\"\r\n"),
            ("=1", Source::Text, "1", "\r\n"),
            ("a=x;y=z; w", Source::Text, "x;y=z; w", "; name=\"a\"\r\n"),
            ("a=\"x;y\\\"z\";type=t/u", Source::Text, "x;y\"z", "; name=\"a\"\r\nContent-Type: t/u\r\n"),
            ("a=\"open", Source::Text, "\"open", "; name=\"a\"\r\n"),
            ("a= x ; y ", Source::Text, "x ; y", "; name=\"a\"\r\n"),
            ("a=\" x \" ;type=t/u", Source::Text, " x ", "; name=\"a\"\r\nContent-Type: t/u\r\n"),
            ("a=\"(x\"", Source::Text, "(x", "; name=\"a\"\r\n"),
            ("a=<f", Source::ContentOf, "f", "; name=\"a\"\r\n"),
            ("a=@d/f.PNG", Source::File, "d/f.PNG", "; name=\"a\"; filename=\"f.PNG\"\r\nContent-Type: image/png\r\n"),
            (
                "a=@f;type=t/u; x=y;filename=\"b\\\"c\"",
                Source::File,
                "f",
                "; name=\"a\"; filename=\"b%22c\"\r\nContent-Type: t/u; x=y\r\n",
            ),
        ] {
            let part = Part::parse(written).unwrap();
            assert_eq!((part.source, part.content.as_str()), (source, content), "{written}");
            assert_eq!(part.head("B", "form-data"), format!("--B\r\nContent-Disposition: form-data{head}\r\n"));
        }
        for wrong in [
            "nothing",
            "a=@f;what",
            "a=x;headers=@h",
            "a=x;type=t/u\r\nX: y",
            "a=x;type=",
            "a=x;type=t",
            "a=x;type=/u",
            "a=x;type=t/;filename=y",
            "=(;type=multipart/mixed",
            "a=@f,g",
        ] {
            assert!(Part::parse(wrong).is_err(), "{wrong}");
        }
    }
}
