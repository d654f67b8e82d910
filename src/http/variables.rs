//! Values that do not stand in the words: curl's `--variable`, and the `--expand-` in front
//! of an option's name. Pure, but for what its callers read for it.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The variables of a command line.
#[derive(Default)]
pub struct Variables(HashMap<String, Vec<u8>>);

/// Where a variable's content comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source<'a> {
    /// It stands here.
    Text(&'a str),
    /// A file; `-` is standard input.
    File(&'a str),
}

impl Variables {
    /// Sets one as it is written: `name=content`, `name@file`, `%NAME` for a variable of the
    /// environment, `%NAME=content` and `%NAME@file` where that may be missing.
    pub fn set(
        &mut self,
        written: &str,
        environment: impl Fn(&str) -> Option<Vec<u8>>,
        read: impl Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        let imported = written.strip_prefix('%');
        let rest = imported.unwrap_or(written);
        let (name, source) = match rest.find(['=', '@']) {
            Some(at) if rest[at..].starts_with('=') => (&rest[..at], Some(Source::Text(&rest[at + 1..]))),
            Some(at) => (&rest[..at], Some(Source::File(&rest[at + 1..]))),
            None => (rest, None),
        };
        if !is_name(name) {
            return Err(format!("'{name}' is no name of a variable; valid are letters, digits and _"));
        }
        let found = imported.and_then(|_| environment(name));
        let content = match (found, source) {
            (Some(content), _) => content,
            (None, Some(Source::Text(text))) => text.as_bytes().to_vec(),
            (None, Some(Source::File(path))) => read(path)?,
            (None, None) if imported.is_some() => return Err(format!("the environment has no variable '{name}'")),
            (None, None) => {
                return Err(format!("'{name}' has no content; write NAME=CONTENT, NAME@FILE or %NAME"));
            }
        };
        self.0.insert(name.to_owned(), content);
        Ok(())
    }

    /// The text with each `{{name}}`, `{{name:function}}` filled in; `\{{` is itself.
    pub fn expand(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            if let Some(before) = rest[..at].strip_suffix('\\') {
                expanded.push_str(before);
                expanded.push_str("{{");
                rest = &rest[at + 2..];
                continue;
            }
            expanded.push_str(&rest[..at]);
            let (inside, after) =
                rest[at + 2..].split_once("}}").ok_or("a '{{' has no '}}' after it; write \\{{ for itself")?;
            expanded.push_str(&self.value(inside)?);
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, inside: &str) -> Result<String, String> {
        let mut words = inside.split(':').map(str::trim);
        let name = words.next().unwrap_or_default();
        let known = self.0.get(name);
        let mut value = known.cloned().ok_or_else(|| format!("the variable '{name}' was not set by --variable"))?;
        for function in words {
            value = match function {
                "trim" => value.trim_ascii().to_vec(),
                "json" => {
                    let quoted = serde_json::Value::from(String::from_utf8_lossy(&value)).to_string();
                    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
                }
                "url" => super::address::percent_encoded(&value).into_bytes(),
                "b64" => STANDARD.encode(&value).into_bytes(),
                other => {
                    return Err(format!("'{other}' is no function of variables; valid are trim, json, url and b64"));
                }
            };
        }
        let text = String::from_utf8(value).ok().filter(|text| !text.contains('\0'));
        text.ok_or_else(|| format!("the variable '{name}' is no UTF-8 text; {{{{{name}:b64}}}} or :url make it so"))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_and_filled_in() {
        let mut variables = Variables::default();
        let environment = |name: &str| (name == "HOME").then(|| b"/home".to_vec());
        let read = |path: &str| if path == "f" { Ok(b" a\"b\n".to_vec()) } else { Err("missing".to_owned()) };
        for written in ["a=1=2", "b@f", "%HOME", "%HOME=no", "%NO=yes", "%NO2@f", "e="] {
            variables.set(written, environment, read).unwrap();
        }
        for (text, expanded) in [
            ("{{a}}-{{ b:trim }}-{{HOME}}-{{NO}}", "1=2-a\"b-/home-yes"),
            ("{{b:trim:json}} {{a:url}} {{a:b64}}", "a\\\"b 1%3D2 MT0y"),
            ("\\{{a}} {a} {{e}}|", "{{a}} {a} |"),
            ("", ""),
        ] {
            assert_eq!(variables.expand(text).unwrap(), expanded);
        }
        for wrong in ["{{", "{{c}}", "{{a:x}}", "{{}}"] {
            assert!(variables.expand(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "=x", "1a=x", "a b=x", "%NONE", "name", "x@missing"] {
            assert!(variables.set(wrong, environment, read).is_err(), "{wrong}");
        }
    }
}
