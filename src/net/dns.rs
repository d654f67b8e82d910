//! Questions to name servers and their answers, as bytes (RFC 1035). Pure.
//!
//! An answer is untrusted: whoever guesses the port may have sent it. It counts only where
//! its number and its question are those that were asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most bytes of a name (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;
/// The most bytes of one of its labels.
const MAX_LABEL: usize = 63;
/// The most steps from part to part of a name that is compressed.
const MAX_JUMPS: usize = 32;
/// The most aliases from a name to its addresses.
const MAX_ALIASES: usize = 16;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
}

impl Kind {
    fn number(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

const ALIAS: u16 = 5;
const INTERNET: u16 = 1;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    id: u16,
    kind: Kind,
    /// The name as it goes over the wire, in lower case.
    name: Vec<u8>,
}

/// An answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The addresses of the name; none where it has none of that kind.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoName,
    /// The server cannot say.
    Failed,
    /// It does not fit into a datagram.
    Truncated,
}

impl Query {
    /// The question for a name; `None` where that can be no name.
    pub fn new(id: u16, kind: Kind, name: &str) -> Option<Self> {
        let mut wire = Vec::new();
        for label in name.strip_suffix('.').unwrap_or(name).split('.') {
            if label.is_empty() || label.len() > MAX_LABEL || !label.is_ascii() {
                return None;
            }
            wire.push(u8::try_from(label.len()).ok()?);
            wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        wire.push(0);
        (wire.len() <= MAX_NAME).then_some(Self { id, kind, name: wire })
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(18 + self.name.len());
        // A standard query, recursion desired, one question.
        for number in [self.id, 0x0100, 1, 0, 0, 0] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(&self.name);
        bytes.extend(self.kind.number().to_be_bytes());
        bytes.extend(INTERNET.to_be_bytes());
        bytes
    }

    /// What these bytes say to it; `None` where they are no answer to this question.
    pub fn answer(&self, bytes: &[u8]) -> Option<Answer> {
        let mut reader = Reader { bytes, at: 0 };
        let (id, flags) = (reader.number()?, reader.number()?);
        let (questions, answers) = (reader.number()?, reader.number()?);
        reader.skip(4)?;
        // An answer, to a standard query.
        if id != self.id || flags & 0xf800 != 0x8000 || questions != 1 {
            return None;
        }
        let same = reader.name()? == self.name;
        if !same || reader.number()? != self.kind.number() || reader.number()? != INTERNET {
            return None;
        }
        if flags & 0x0200 != 0 {
            return Some(Answer::Truncated);
        }
        match flags & 0xf {
            0 => Some(self.addresses(reader, answers).map_or(Answer::Failed, Answer::Addresses)),
            3 => Some(Answer::NoName),
            _ => Some(Answer::Failed),
        }
    }

    /// The addresses of the name and of what it is another name for; `None` where the
    /// records are broken.
    fn addresses(&self, mut reader: Reader<'_>, count: u16) -> Option<Vec<IpAddr>> {
        let (mut found, mut aliases) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let name = reader.name()?;
            let (kind, class) = (reader.number()?, reader.number()?);
            reader.skip(4)?;
            let length = usize::from(reader.number()?);
            let start = reader.at;
            reader.skip(length)?;
            let data = &reader.bytes[start..reader.at];
            if class != INTERNET {
                continue;
            }
            if kind == ALIAS {
                let target = Reader { bytes: reader.bytes, at: start }.name()?;
                aliases.push((name, target));
            } else if kind == self.kind.number() {
                let address = match self.kind {
                    Kind::A => <[u8; 4]>::try_from(data).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
                    Kind::Aaaa => <[u8; 16]>::try_from(data).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
                };
                found.push((name, address?));
            }
        }
        let mut name = &self.name;
        for _ in 0..MAX_ALIASES {
            match aliases.iter().find(|(alias, _)| alias == name) {
                Some((_, target)) => name = target,
                None => break,
            }
        }
        let mut addresses = Vec::new();
        for (owner, address) in &found {
            if owner == name && !addresses.contains(address) {
                addresses.push(*address);
            }
        }
        Some(addresses)
    }
}

/// Reads a message from front to back.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.bytes.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A name, put together where it is compressed, in lower case.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        let (mut at, mut jumps) = (self.at, 0);
        loop {
            let length = usize::from(*self.bytes.get(at)?);
            match length {
                0 => {
                    name.push(0);
                    if jumps == 0 {
                        self.at = at + 1;
                    }
                    return (name.len() <= MAX_NAME).then_some(name);
                }
                1..=MAX_LABEL => {
                    let label = self.bytes.get(at..=at + length)?;
                    name.extend(label.iter().map(u8::to_ascii_lowercase));
                    at += length + 1;
                }
                0xc0.. => {
                    let low = usize::from(*self.bytes.get(at + 1)?);
                    if jumps == 0 {
                        self.at = at + 2;
                    }
                    at = (length & 0x3f) << 8 | low;
                    jumps += 1;
                }
                _ => return None,
            }
            if jumps > MAX_JUMPS || name.len() > MAX_NAME {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record: name, kind, data.
    type Record<'a> = (&'a [u8], u16, &'a [u8]);

    /// An answer with these records.
    fn message(query: &Query, flags: u16, records: &[Record<'_>]) -> Vec<u8> {
        let mut bytes = query.bytes();
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
        for (name, kind, data) in records {
            bytes.extend(*name);
            bytes.extend(kind.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 60]);
            bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    const FINE: u16 = 0x8180;
    /// The name of the question, as a compressed name.
    const ASKED: &[u8] = &[0xc0, 12];

    #[test]
    fn addresses_are_found_by_their_names() {
        let query = Query::new(7, Kind::A, "Www.Example.COM.").unwrap();
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let other = b"\x01x\x01y\x00";
        let third = b"\x01z\x00";
        let cases: [(&[Record<'_>], &[u8]); 6] = [
            (&[(ASKED, 1, &[10, 0, 0, 1]), (ASKED, 1, &[10, 0, 0, 2]), (ASKED, 1, &[10, 0, 0, 1])], &[1, 2]),
            (&[(ASKED, ALIAS, other), (other, ALIAS, third), (third, 1, &[10, 0, 0, 3])], &[3]),
            (&[(third, 1, &[10, 0, 0, 3]), (other, ALIAS, third), (ASKED, ALIAS, b"\x01X\x01Y\x00")], &[3]),
            // What nobody asked for, another kind, and none at all.
            (&[(other, 1, &[10, 0, 0, 9]), (ASKED, 28, &[0; 16]), (ASKED, 16, b"text")], &[]),
            (&[(ASKED, ALIAS, ASKED), (ASKED, 1, &[10, 0, 0, 4])], &[4]),
            (&[], &[]),
        ];
        for (records, found) in cases {
            let found: Vec<_> = found.iter().map(|&last| address(last)).collect();
            assert_eq!(query.answer(&message(&query, FINE, records)), Some(Answer::Addresses(found)), "{records:?}");
        }
        let query = Query::new(7, Kind::Aaaa, "x").unwrap();
        let mut data = [0; 16];
        data[15] = 1;
        let answer = query.answer(&message(&query, FINE, &[(ASKED, 28, &data)]));
        assert_eq!(answer, Some(Answer::Addresses(vec![Ipv6Addr::LOCALHOST.into()])));
        for (flags, answer) in
            [(0x8183, Answer::NoName), (0x8182, Answer::Failed), (0x8185, Answer::Failed), (0x8380, Answer::Truncated)]
        {
            assert_eq!(query.answer(&message(&query, flags, &[])), Some(answer));
        }
    }

    #[test]
    fn answers_to_other_questions_do_not_count() {
        let query = Query::new(7, Kind::A, "www.example").unwrap();
        let records: [Record<'_>; 1] = [(ASKED, 1, &[6, 6, 6, 6])];
        for (other, kind, id) in
            [("www.example", Kind::A, 8), ("www.examplf", Kind::A, 7), ("www.example", Kind::Aaaa, 7)]
        {
            let other = Query::new(id, kind, other).unwrap();
            assert_eq!(query.answer(&message(&other, FINE, &records)), None);
        }
        // A question is none, and so is an answer to something else than a query.
        assert_eq!(query.answer(&message(&query, 0x0100, &records)), None);
        assert_eq!(query.answer(&message(&query, 0xa880, &records)), None);
        let mut none = message(&query, FINE, &records);
        none[5] = 0;
        assert_eq!(query.answer(&none), None);
    }

    #[test]
    fn broken_and_malicious_answers_are_refused() {
        let query = Query::new(7, Kind::A, "www.example").unwrap();
        let start = query.bytes().len();
        let itself = [0xc0, u8::try_from(start).unwrap()];
        let records: [&[Record<'_>]; 5] = [
            &[(&itself, 1, &[1, 2, 3, 4])],
            &[(ASKED, 1, &[1, 2, 3])],
            &[(ASKED, ALIAS, &[0xff, 0xff])],
            &[(&[0x80, 0], 1, &[1, 2, 3, 4])],
            &[(&[63; 300], 1, &[1, 2, 3, 4])],
        ];
        for records in records {
            assert_eq!(query.answer(&message(&query, FINE, records)), Some(Answer::Failed), "{records:?}");
        }
        let whole = message(&query, FINE, &[(ASKED, ALIAS, b"\x01x\x00"), (b"\x01x\x00", 1, &[1, 2, 3, 4])]);
        for end in 0..whole.len() {
            assert!(!matches!(query.answer(&whole[..end]), Some(Answer::Addresses(_))), "{end}");
        }
        for at in 0..whole.len() {
            for value in 0..=u8::MAX {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = query.answer(&damaged);
            }
        }
    }

    #[test]
    fn what_can_be_no_name_is_not_asked_for() {
        let long = "a".repeat(64);
        let longer = vec!["a".repeat(63); 4].join(".");
        for wrong in ["", ".", "a..b", ".a", "ü", &long, &longer, "a.."] {
            assert_eq!(Query::new(1, Kind::A, wrong), None, "{wrong}");
        }
        assert_eq!(Query::new(1, Kind::A, "A.b").unwrap().bytes()[12..], *b"\x01a\x01b\x00\x00\x01\x00\x01");
    }
}
