//! The header fields of a request: defaults, and what the user makes of them. Pure.

/// A header field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Where it stands.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// The line, as it is sent.
    pub line: String,
    /// Whether it says that the field is not to be sent at all.
    pub is_absent: bool,
}

/// Where in a head a field stands: the order is curl's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Host,
    ProxyAuthorization,
    Authorization,
    Range,
    UserAgent,
    Accept,
    AcceptEncoding,
    Referer,
    ProxyConnection,
    Cookie,
    /// What the user gave.
    Own,
    ContentLength,
    ContentType,
}

impl Field {
    /// A field that is sent.
    pub fn new(place: Place, name: &str, value: &str) -> Self {
        Self { place, name: name.to_owned(), line: format!("{name}: {value}"), is_absent: false }
    }

    /// What it says.
    pub fn value(&self) -> &str {
        self.line.split_once(':').map_or("", |(_, value)| value.trim())
    }

    /// Whether it is called so.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The most fields of a request.
const MAX_FIELDS: usize = 5000;

/// Header fields: defaults, each of which the user may replace or take away.
#[derive(Default)]
pub struct Fields(pub Vec<Field>);

impl Fields {
    /// Adds a default; what the user gives replaces it.
    pub fn set(&mut self, place: Place, name: &str, value: &str) {
        self.0.push(Field::new(place, name, value));
    }

    /// A type that the user gave for a form's body says where its parts end.
    pub fn add_boundary(&mut self, boundary: &str) {
        let own = self.0.iter_mut().find(|field| field.is("content-type") && field.place == Place::Own);
        if let Some(field) = own.filter(|field| !field.is_absent) {
            field.place = Place::ContentType;
            field.line.push_str("; boundary=");
            field.line.push_str(boundary);
        }
    }

    /// Adds `Name: value`, empties `Name;` and takes `Name:` away.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let (name, value) = match line.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (line.trim_end().strip_suffix(';').ok_or("a header is written as 'Name: value'")?, None),
        };
        if name.is_empty() || !name.bytes().all(token) {
            return Err("a header's name is a word".to_owned());
        }
        if line.contains(['\r', '\n', '\0']) {
            return Err(format!("the value of {name} breaks the line, which would be another header"));
        }
        if self.0.len() >= MAX_FIELDS {
            return Err(format!("there are more than {MAX_FIELDS} headers; no server takes so many"));
        }
        self.0.retain(|field| field.place == Place::Own || !field.is(name));
        let place = if name.eq_ignore_ascii_case("host") { Place::Host } else { Place::Own };
        let is_absent = value.is_some_and(|value| value.trim().is_empty());
        let line = if value.is_none() { format!("{name}:") } else { line.to_owned() };
        self.0.push(Field { place, name: name.to_owned(), line, is_absent });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_added_emptied_and_taken_away() {
        let mut fields = Fields::default();
        fields.set(Place::UserAgent, "User-Agent", "x");
        fields.set(Place::Accept, "Accept", "*/*");
        for line in ["X-A: 1", "X-A: 2", "accept: text/html", "User-Agent:", "X-B;"] {
            fields.add(line).unwrap();
        }
        let lines: Vec<_> = fields.0.iter().filter(|field| !field.is_absent).map(|field| field.line.as_str()).collect();
        assert_eq!(lines, ["X-A: 1", "X-A: 2", "accept: text/html", "X-B:"]);
        for wrong in ["", "no colon", "X Y: 1", "X-A: 1\r\nX-B: 2", ": 1", "X\n: 1"] {
            assert!(fields.add(wrong).is_err(), "{wrong:?}");
        }
    }
}
