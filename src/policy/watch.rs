//! Looking at what a command writes or a server answers, line by line, while it passes.
//!
//! Most output matches nothing, so many lines are first searched at once by an expression
//! that matches wherever the pattern would; only where that finds something is each line
//! looked at.

use super::matcher::{Pattern, Stream};
use super::text::{MAX_LINE, has_escapes, last_line_end, line_end, lines, plain};

/// What is looked for, and where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lookout {
    wanted: Vec<Wanted>,
}

#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    pattern: Pattern,
    on_terminals: bool,
}

impl Lookout {
    /// Looks for a pattern; `on_terminals` also where the stream is a terminal.
    pub fn add(&mut self, pattern: &Pattern, on_terminals: bool) {
        if let Some(known) = self.wanted.iter_mut().find(|known| known.pattern == *pattern) {
            known.on_terminals |= on_terminals;
        } else {
            self.wanted.push(Wanted { pattern: pattern.clone(), on_terminals });
        }
    }

    /// Whether a stream has to be read for it.
    pub fn wants(&self, stream: Stream, is_terminal: bool) -> bool {
        let here = |wanted: &&Wanted| wanted.pattern.looks_at(stream);
        self.wanted.iter().filter(here).any(|wanted| wanted.on_terminals || !is_terminal)
    }

    /// A look at these streams together, for one attempt.
    pub fn scanner(&self, streams: &[Stream]) -> Scanner {
        let here = |wanted: &&Wanted| streams.iter().any(|stream| wanted.pattern.looks_at(*stream));
        Scanner::new(self.wanted.iter().filter(here).map(|wanted| wanted.pattern.clone()))
    }

    /// What whole texts hold, as an attempt that wrote them would have been seen.
    pub fn sightings(&self, texts: &[(Stream, &[u8])]) -> Sightings {
        let mut sightings = Sightings::default();
        for (stream, text) in texts {
            let mut scanner = self.scanner(&[*stream]);
            scanner.feed(text);
            sightings.add(scanner);
        }
        sightings
    }
}

/// What was found in what an attempt wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sightings {
    found: Vec<(Pattern, String)>,
    /// Whether a stream was not read that something is looked for in, since it is a terminal.
    unread: bool,
}

impl Sightings {
    /// Nothing.
    pub const NONE: &'static Self = &Self { found: Vec::new(), unread: false };

    /// Adds what was found on a stream, which has ended.
    pub fn add(&mut self, mut scanner: Scanner) {
        scanner.end_line();
        self.found.extend(scanner.found);
    }

    /// Notes that a stream was not read that something is looked for in.
    pub fn note_unread(&mut self) {
        self.unread = true;
    }

    /// Whether there may be more to see than was read.
    pub(super) fn is_unread(&self) -> bool {
        self.unread
    }

    /// Whether a pattern was found.
    pub fn has(&self, pattern: &Pattern) -> bool {
        self.captured(pattern).is_some()
    }

    /// What the group of a pattern held last.
    pub fn captured(&self, pattern: &Pattern) -> Option<&str> {
        self.found.iter().rev().find_map(|(found, text)| (found == pattern).then_some(text.as_str()))
    }
}

/// The least bytes that are searched at once before their lines are looked at: for less,
/// to make one more expression would cost more than it saves.
const WORTH_A_SEARCH: usize = 4096;

/// A look at one stream of an attempt, piece by piece.
#[derive(Debug, Clone)]
pub struct Scanner {
    /// What may still be found.
    open: Vec<Pattern>,
    found: Vec<(Pattern, String)>,
    /// The line that has not ended yet, its first [`MAX_LINE`] bytes.
    line: Vec<u8>,
    /// Whether the last piece ended in CR, so that an LF belongs to the same line end.
    after_cr: bool,
}

impl Scanner {
    fn new(patterns: impl Iterator<Item = Pattern>) -> Self {
        Self { open: patterns.collect(), found: Vec::new(), line: Vec::new(), after_cr: false }
    }

    /// Looks at what comes next.
    pub fn feed(&mut self, mut piece: &[u8]) {
        if self.open.is_empty() || piece.is_empty() {
            return;
        }
        if std::mem::take(&mut self.after_cr) && piece.starts_with(b"\n") {
            piece = &piece[1..];
        }
        if !self.line.is_empty() {
            let Some(end) = line_end(piece) else { return self.keep(piece) };
            self.keep(&piece[..end]);
            self.end_line();
            let crlf = piece[end..].starts_with(b"\r\n");
            self.after_cr = piece[end..] == *b"\r";
            piece = &piece[end + 1 + usize::from(crlf)..];
        }
        if let Some(end) = last_line_end(piece) {
            let (whole, rest) = piece.split_at(end + 1);
            self.look_at_lines(whole);
            self.after_cr = rest.is_empty() && whole.ends_with(b"\r");
            piece = rest;
        }
        self.keep(piece);
    }

    /// Whether nothing that may come can add to what was found.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes what was written so far for a whole line.
    fn end_line(&mut self) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.look_at(&plain(&line), |_| true);
            self.line = line;
            self.line.clear();
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = MAX_LINE - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn look_at_lines(&mut self, whole: &[u8]) {
        if whole.len() < WORTH_A_SEARCH || has_escapes(whole) {
            return lines(whole).for_each(|line| self.look_at(&line, |_| true));
        }
        let among: Vec<_> = self.open.iter().filter(|pattern| pattern.may_be_among(whole)).cloned().collect();
        if !among.is_empty() {
            lines(whole).for_each(|line| self.look_at(&line, |pattern| among.contains(pattern)));
        }
    }

    /// Looks at one line for those of the open patterns.
    fn look_at(&mut self, line: &[u8], is_wanted: impl Fn(&Pattern) -> bool) {
        let mut index = 0;
        while let Some(pattern) = self.open.get(index) {
            let Some(text) = Some(pattern).filter(|p| is_wanted(p)).and_then(|pattern| pattern.capture(line)) else {
                index += 1;
                continue;
            };
            if pattern.groups() == 0 {
                let pattern = self.open.swap_remove(index);
                self.found.push((pattern, text));
            } else {
                // Of what a group captures the last counts.
                match self.found.iter_mut().find(|(found, _)| found == pattern) {
                    Some((_, found)) => *found = text,
                    None => self.found.push((pattern.clone(), text)),
                }
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::matcher::Check;

    fn lookout(patterns: &[&str]) -> Lookout {
        let mut lookout = Lookout::default();
        for pattern in patterns {
            lookout.add(&Pattern::parse(pattern, Check::Now).unwrap(), true);
        }
        lookout
    }

    #[test]
    fn a_line_is_seen_wherever_the_pieces_are_cut() {
        let text = b"first\r\nretry in \x1b[1m7\x1b[0ms\rretry in 9s\n\nlast".as_slice();
        let patterns = ["stderr:/^retry in (\\d+)s$/", "stderr:/^$/", "stderr:/last$/", "stderr:/first.+/"];
        let lookout = lookout(&patterns);
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut scanner = lookout.scanner(&[Stream::Stderr]);
                for piece in [&text[..cut], &text[cut..second], &text[second..]] {
                    scanner.feed(piece);
                }
                let mut seen = Sightings::default();
                seen.add(scanner);
                let found: Vec<_> = patterns
                    .iter()
                    .map(|pattern| seen.captured(&Pattern::parse(pattern, Check::Now).unwrap()))
                    .collect();
                assert_eq!(found, [Some("9"), Some(""), Some(""), None], "{cut} {second}");
            }
        }
    }

    #[test]
    fn the_first_64_kib_of_a_line_are_seen() {
        let seen = |text: &[u8]| lookout(&["stdout:/needle/"]).sightings(&[(Stream::Stdout, text)]).found.len();
        let padded = |size| [&vec![b'x'; size][..], b"needle"].concat();
        assert_eq!(seen(&padded(MAX_LINE - 6)), 1);
        assert_eq!(seen(&padded(MAX_LINE - 5)), 0);
        assert_eq!(seen(&[&padded(MAX_LINE)[..], b"\nneedle"].concat()), 1);
    }

    #[test]
    fn a_pattern_looks_where_it_says() {
        let lookout = lookout(&["stdout:/a/", "stderr:/b/", "output:/c/"]);
        let found = |stream, text: &[u8]| lookout.sightings(&[(stream, text)]).found.len();
        let all =
            [(Stream::Stdout, &b"abc"[..]), (Stream::Stderr, b"abc"), (Stream::Stderr, b"a"), (Stream::Body, b"abc")];
        assert_eq!(all.map(|(stream, text)| found(stream, text)), [2, 2, 0, 0]);
        assert!(lookout.wants(Stream::Stdout, true) && lookout.wants(Stream::Stderr, true));
        assert!(!lookout.wants(Stream::Body, false));
        let mut only = Lookout::default();
        only.add(&Pattern::parse("stderr:/x/", Check::Now).unwrap(), false);
        assert!(!only.wants(Stream::Stdout, false) && !only.wants(Stream::Stderr, true));
        assert!(only.wants(Stream::Stderr, false));
    }

    /// Sources that speak of lines and texts in every way there is.
    const SOURCES: [&str; 16] = [
        "ab",
        "^ab",
        "ab$",
        "^ab$",
        "^$",
        r"\Aab",
        r"ab\z",
        r"\bb",
        r"b\B",
        "(?m)^b",
        "(?-m:b$)",
        "a.b",
        "a[^x]b",
        r"a\sb",
        "(?x) a # b",
        "(?s)a.b",
    ];

    proptest! {
        /// To search many lines at once finds what a look at each finds.
        #[test]
        fn the_short_cut_misses_nothing(
            sources in proptest::collection::vec(0..SOURCES.len(), 1..4),
            pieces in proptest::collection::vec(r"[ab \r\n\x1b\u{ff}]{0,6}", 0..5),
        ) {
            let patterns: Vec<_> = sources.iter().map(|&at| format!("stdout:/{}/", SOURCES[at])).collect();
            let patterns: Vec<_> = patterns.iter().map(|pattern| Pattern::parse(pattern, Check::Now).unwrap()).collect();
            let mut scanner = Scanner::new(patterns.iter().cloned());
            // Once as they are, once as a piece that is long enough to be searched at once.
            let long = "c\r\n".repeat(WORTH_A_SEARCH) + &pieces.concat() + "\n";
            let pieces: Vec<_> = pieces.into_iter().chain([long]).collect();
            for piece in &pieces {
                scanner.feed(piece.as_bytes());
            }
            let mut seen = Sightings::default();
            seen.add(scanner);
            let text = pieces.concat();
            for pattern in &patterns {
                let slow = lines(text.as_bytes()).any(|line| pattern.capture(&line).is_some());
                prop_assert_eq!(seen.has(pattern), slow, "{:?} in {:?}", pattern, text);
            }
        }
    }
}
