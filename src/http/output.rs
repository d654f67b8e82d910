//! Where an answer's body goes: held until it is known to be good and whole, continued
//! where it broke off, and put in its place at once.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::Heads;
use super::beside::{Beside, beside};
use super::framing::Head;
use super::place::{Place, append, lost, open_special, place, put, put_spool, write_special, write_to};
use super::version::{Part, Range, Version, content_range};
use crate::cause::cause;

use crate::net::{Failure, Fault, Waiter};
use crate::policy::matcher::Stream;
use crate::policy::{Lookout, Outcome, Scanner, Sightings, TimeLimit};
use crate::process::{IN_MEMORY, Spool, Target};
use crate::report::text::describe;

/// What becomes of bodies; immutable for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputPlan {
    /// The file that gets it (`-o`, `-O`); `None` for standard output.
    pub file: Option<PathBuf>,
    /// Whether bytes are passed on as they come (`-N`).
    pub live: bool,
    /// Whether the heads stand before it (`-i`).
    pub include: bool,
    /// Whether the body of a failure is kept too.
    pub failures: Failures,
    /// What it must be, as SHA-256.
    pub checksum: Option<[u8; 32]>,
    /// Where to go on with a file that is partly there (`-C`).
    pub resume: Option<Resume>,
    /// Where what is kept goes, once it is too much for memory.
    pub spool_folder: PathBuf,
}

/// What becomes of the bodies of failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Failures {
    /// They are not kept.
    #[default]
    Dropped,
    /// They are kept, because a rule of the user's (`--succeed-on`) may make a success of one.
    MaySucceed,
    /// The last one is written (`--fail-with-body`).
    Written,
}

/// `-C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// After what the file has.
    AfterFile,
    /// From this byte.
    At(u64),
}

/// The body of a run's answers, across its attempts.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Output<'a> {
    plan: &'a OutputPlan,
    place: Place,
    store: Store,
    /// The heads that stand before it, until they are written.
    heads: Vec<u8>,
    /// The heads of the answer that it began with, while that may be continued.
    begun: Option<Heads>,
    /// Bytes of the body that are there.
    have: u64,
    /// Bytes of the file that is gone on with.
    there: u64,
    /// The first byte of the whole that is asked for by the user's own `-C`.
    first: u64,
    /// Which byte of the whole the first one that is there is.
    start: u64,
    /// The last byte of the whole that is wanted, where the user wants a part (`-r`).
    last: Option<u64>,
    /// The length of the whole, where an answer told it.
    total: Option<u64>,
    /// What the server's version is known by, and where it came from.
    version: Option<Version>,
    source: String,
    /// Whether what broke off was coded, so that no offset in it means anything to the server.
    coded: bool,
    /// Whether bytes went to where they cannot be taken back from.
    released: bool,
    /// Whether the body is there to its end.
    whole: bool,
    /// The sum over what is there, where it is to be checked.
    sum: Option<Sha256>,
    /// What rules look for in the body, and how far they have looked.
    lookout: &'a Lookout,
    scanner: Scanner,
    /// The special file, once it is open.
    special: Option<OwnedFd>,
    /// Standard output, once something was written there.
    stdout: Option<Target>,
    /// Whether the server says that what the user has is still good (304).
    unchanged: bool,
}

/// Where bytes are until they are known to be good.
enum Store {
    /// In memory, or a nameless file.
    Spool(Spool),
    /// In a nameless file beside the one that it is to become.
    Beside(Beside),
}

impl<'a> Output<'a> {
    /// An output that has nothing yet. Fails where the file can never be written.
    pub fn new(plan: &'a OutputPlan, lookout: &'a Lookout) -> Result<Self, String> {
        let place = place(plan.file.as_deref(), plan.resume.is_some())?;
        let spool = || Store::Spool(Spool::new(plan.spool_folder.clone()));
        let store = match &place {
            Place::File(path) => match beside(path) {
                Ok(beside) => Store::Beside(beside),
                // Where a neighbour cannot be made it is copied into place in the end.
                Err(_) if path.exists() => spool(),
                Err(error) => return Err(format!("{} cannot be written: {}", path.display(), cause(&error))),
            },
            _ => spool(),
        };
        let there = plan.file.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |metadata| metadata.len());
        let first = match plan.resume {
            Some(Resume::AfterFile) => there,
            Some(Resume::At(at)) => at,
            None => 0,
        };
        if let Place::After(path) = &place
            && there > 0
            && there != first
        {
            let path = path.display();
            return Err(format!(
                "--continue-at: {path} has {there} bytes, and what begins at byte {first} does not follow them; \
                 -C - goes on where the file ends"
            ));
        }
        Ok(Self {
            plan,
            place,
            store,
            heads: Vec::new(),
            begun: None,
            have: 0,
            there,
            first,
            start: first,
            last: None,
            total: None,
            version: None,
            source: String::new(),
            coded: false,
            released: false,
            whole: false,
            sum: plan.checksum.map(|_| Sha256::new()),
            lookout,
            scanner: lookout.scanner(&[Stream::Body]),
            special: None,
            stdout: None,
            unchanged: false,
        })
    }

    /// Makes ready for another attempt: a body that was whole, and yet a failure by the
    /// user's rules, is not what is continued.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        if self.whole {
            return self.start_over();
        }
        if self.released && !self.can_continue() {
            // A rule of the user's wants another attempt all the same.
            return Err(Failure::new(Fault::Lost, "the body broke off".to_owned() + &self.cannot_continue()));
        }
        Ok(())
    }

    /// The fields that ask for the rest only. They take the place of the user's own.
    pub fn continuation(&self, method: &str) -> Vec<(String, String)> {
        if self.have == 0 {
            let range = ("Range".to_owned(), format!("bytes={}-", self.first));
            return if self.first > 0 { vec![range] } else { Vec::new() };
        }
        // Another method has no ranges (RFC 9110 §14.2), and without a guard two versions
        // could be joined.
        let Some(version) = self.version.as_ref().filter(|_| method == "GET") else { return Vec::new() };
        let last = self.last.map(|last| last.to_string()).unwrap_or_default();
        vec![
            ("Range".to_owned(), format!("bytes={}-{last}", self.start.saturating_add(self.have))),
            ("If-Range".to_owned(), version.text().to_owned()),
        ]
    }

    /// Makes ready for the body of a successful answer from that source, whose chain had these
    /// heads. `range` is the part that the user asks for.
    pub fn begin(
        &mut self,
        heads: &Heads,
        source: &str,
        range: Option<Range>,
        waiter: &Waiter<'_>,
    ) -> Result<(), Failure> {
        let head = &heads.last;
        let part = head.value("content-range").and_then(content_range);
        let is_one = range.is_some_and(|range| range != Range::Other) || self.first > 0;
        self.unchanged = head.status == 304;
        if head.status == 206 && self.have > 0 {
            let same = |part: &Part| {
                let total = self.total.is_none() || part.total.is_none() || self.total == part.total;
                total && part.first == self.start.saturating_add(self.have)
            };
            // A redirect may lead elsewhere now, where the same tag means something else.
            let goes_on = self.source == source && self.version.as_ref().is_some_and(|version| version.is_still(head));
            if let Some(part) = part.filter(|part| goes_on && same(part)) {
                self.total = self.total.or(part.total);
                return Ok(());
            }
            self.start_over()?;
            return Err(Failure::new(
                Fault::Range,
                "the server has another version of the body now, or sends another part of it than was asked for",
            ));
        }
        if !matches!(head.status, 206 | 304) && self.first > 0 {
            let text = "the server does not continue (-C): it sends the whole; leave -C out to take that";
            return Err(Failure::new(Fault::NoRange, text));
        }
        self.start_over()?;
        self.version = Version::of(head);
        source.clone_into(&mut self.source);
        (self.start, self.last, self.total) = (self.first, None, None);
        if self.plan.include {
            self.heads.clone_from(&heads.raw);
        }
        self.begun = Some(heads.clone());
        match (head.status, part) {
            (206, Some(part)) if range.map_or(part.first == self.first, |range| range.is_met_by(&part)) => {
                (self.start, self.total) = (part.first, part.total);
                self.last = range.map(|range| range.last_of(&part));
                self.look_at_file(waiter)
            }
            (206, None) if !is_one => {
                // Several parts in one body: whatever they are, they cannot be continued.
                self.version = None;
                Ok(())
            }
            (206, Some(_)) => Err(Failure::new(Fault::NoRange, "the server sends another part than was asked for")),
            (206, None) => {
                let text = "the server does not say which part it sends (Content-Range)";
                Err(Failure::new(Fault::NoRange, text))
            }
            _ => {
                self.total = head.length();
                Ok(())
            }
        }
    }

    /// Starts over: what came of an earlier attempt is no longer wanted.
    pub fn start_over(&mut self) -> Result<(), Failure> {
        if self.released {
            return Err(Failure::new(
                Fault::Lost,
                "what was passed on already is not what the server sends now, and cannot be taken back: \
                 -o FILE or --checksum holds it until it is whole",
            ));
        }
        (self.version, self.total, self.last, self.whole, self.begun) = (None, None, None, false, None);
        (self.start, self.coded) = (self.first, false);
        self.scanner = self.lookout.scanner(&[Stream::Body]);
        self.sum = self.plan.checksum.map(|_| Sha256::new());
        if std::mem::take(&mut self.have) == 0 {
            return Ok(());
        }
        let cleared = match &mut self.store {
            Store::Spool(spool) => spool.clear(),
            Store::Beside(beside) => beside.file.set_len(0).and_then(|()| io::Seek::rewind(&mut beside.file)),
        };
        cleared.map_err(|error| lost(&error))
    }

    /// Looks for what rules look for in the part that the file has already (`-C`).
    pub fn look_at_file(&mut self, waiter: &Waiter<'_>) -> Result<(), Failure> {
        let Place::After(path) = &self.place else { return Ok(()) };
        if self.have > 0 || self.there == 0 || self.scanner.is_done() {
            return Ok(());
        }
        let unreadable = |error: io::Error| {
            let text =
                format!("{}, in which a rule looks for something, cannot be read: {}", path.display(), cause(&error));
            Failure::new(Fault::Read, text)
        };
        let mut file = fs::File::open(path).map_err(unreadable)?.take(self.there);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.scanner.feed(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
            waiter.look()?;
        }
    }

    /// The heads of the answer that the body which is there began with.
    pub fn begun(&self) -> Option<&Heads> {
        self.begun.as_ref()
    }

    /// Whether an answer 416 says that everything is there.
    pub fn is_complete_by(&self, head: &Head) -> bool {
        let total =
            head.value("content-range").and_then(|value| value.trim().strip_prefix("bytes */")?.trim().parse().ok());
        let there = self.start.saturating_add(self.have);
        there > 0 && total == Some(there)
    }

    /// Takes bytes of the body.
    pub fn take(&mut self, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        if self.scanner.is_done() {
            waiter.pass(bytes.len())?;
        } else {
            self.scanner.feed(bytes);
            waiter.look()?;
        }
        if let Some(sum) = &mut self.sum {
            sum.update(bytes);
        }
        let is_much = self.have.saturating_add(bytes.len() as u64) > IN_MEMORY as u64;
        let streams = self.plan.live || self.released || is_much && self.sum.is_none();
        if streams && matches!(self.place, Place::Stdout | Place::Special(_)) {
            self.release(waiter)?;
            self.have += bytes.len() as u64;
            return self.write(bytes, waiter);
        }
        self.have += bytes.len() as u64;
        let kept = match &mut self.store {
            Store::Spool(spool) => spool.append(bytes),
            Store::Beside(beside) => beside.file.write_all(bytes),
        };
        kept.map_err(|error| lost(&error))
    }

    /// Notes that a body broke off, and says why that is the end where it is.
    pub fn broke_off(&mut self, failure: Failure, coded: bool) -> Failure {
        self.coded = coded;
        let (can_continue, why) = (self.can_continue(), self.cannot_continue());
        match failure {
            Failure::TimedOut(limit @ TimeLimit::Attempt(_)) if self.released && !can_continue => {
                let text = format!("{}{why}", describe(&Outcome::TimedOut(limit)));
                Failure::new(Fault::LostInTime, text)
            }
            Failure::Fault { fault, text }
                if self.released && !can_continue && fault.may_pass() && fault != Fault::ReaderGone =>
            {
                Failure::new(Fault::Lost, text + &why)
            }
            other => {
                if !can_continue && !self.released {
                    let _ = self.start_over();
                }
                other
            }
        }
    }

    fn can_continue(&self) -> bool {
        self.version.is_some() && !self.coded
    }

    /// Why a body that broke off is the end.
    fn cannot_continue(&self) -> String {
        let why =
            if self.coded { "it is coded (--compressed)" } else { "the server told no strong ETag or Last-Modified" };
        format!(
            "; it cannot be continued, because {why}, nor begun again, because its beginning was passed on already: \
             -o FILE or --checksum holds it until it is whole"
        )
    }

    /// Notes that the body has come to its end: whether it is all, and what it should be.
    pub fn complete(&mut self, head: &Head) -> Result<(), Failure> {
        let end = self.last.map(|last| last.saturating_add(1)).or(self.total).filter(|_| head.status == 206);
        let there = self.start.saturating_add(self.have);
        match end {
            Some(end) if there < end => {
                return Err(Failure::new(
                    Fault::Partial,
                    format!("the server sent the bytes up to {there} of {end} only"),
                ));
            }
            Some(end) if there > end => {
                self.start_over()?;
                return Err(Failure::new(
                    Fault::Range,
                    format!("the server sent more than the {end} bytes that it has"),
                ));
            }
            _ => {}
        }
        // What the user has is not looked at.
        if let (Some(wanted), Some(sum), false) = (self.plan.checksum, &self.sum, self.unchanged) {
            let got: [u8; 32] = sum.clone().finalize().into();
            if got != wanted {
                let text = format!("the body's SHA-256 is {}, not {}", hex(&got), hex(&wanted));
                // What is wrong is not continued.
                return Err(match self.start_over() {
                    Ok(()) => Failure::new(Fault::Checksum, text),
                    Err(_) => Failure::new(Fault::Lost, text),
                });
            }
        }
        self.whole = true;
        Ok(())
    }

    /// What was found in the body.
    pub fn sightings(&self) -> Sightings {
        let mut sightings = Sightings::default();
        sightings.add(self.scanner.clone());
        sightings
    }

    /// Where it goes.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it goes to standard output.
    pub fn is_stdout(&self) -> bool {
        self.place == Place::Stdout
    }

    /// Whether something was passed on already.
    pub fn is_released(&self) -> bool {
        self.released
    }

    /// Whether a whole body is there.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Passes on what is held.
    fn release(&mut self, waiter: &Waiter<'_>) -> Result<(), Failure> {
        self.released = true;
        let heads = std::mem::take(&mut self.heads);
        self.write(&heads, waiter)?;
        let Store::Spool(spool) = &mut self.store else { return Ok(()) };
        if spool.length() == 0 {
            return Ok(());
        }
        let spool = std::mem::replace(spool, Spool::new(self.plan.spool_folder.clone()));
        self.write_spool(&spool, waiter)
    }

    fn write_spool(&mut self, spool: &Spool, waiter: &Waiter<'_>) -> Result<(), Failure> {
        let mut buffer = vec![0; 64 * 1024];
        let mut offset = 0;
        loop {
            match spool.read_at(offset, &mut buffer).map_err(|error| lost(&error))? {
                0 => return Ok(()),
                count => {
                    waiter.pass(count)?;
                    self.write(&buffer[..count], waiter)?;
                    offset += count as u64;
                }
            }
        }
    }

    /// Writes where bytes are passed on as they come.
    fn write(&mut self, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        match &self.place {
            Place::Special(path) if !bytes.is_empty() => {
                if self.special.is_none() {
                    self.special = Some(open_special(path, waiter)?);
                }
                let Some(file) = &self.special else { return Ok(()) };
                write_special(file, path, bytes, waiter)
            }
            _ => {
                let target = self.stdout.get_or_insert_with(|| Target::new(rustix::stdio::stdout()));
                write_to(target, bytes, waiter)
            }
        }
    }

    /// Puts what is known to be good in its place.
    pub fn finish(&mut self, waiter: &Waiter<'_>) -> Result<(), Failure> {
        let heads = std::mem::take(&mut self.heads);
        match (&self.place, &mut self.store) {
            (Place::File(_) | Place::After(_), _) if self.unchanged => Ok(()),
            (Place::Stdout | Place::Special(_), _) => {
                self.heads = heads;
                self.release(waiter)
            }
            (Place::After(path), Store::Spool(spool)) => append(path, self.there, &heads, spool, waiter),
            (Place::File(path), Store::Spool(spool)) => put_spool(path, &heads, spool, waiter),
            (Place::File(_) | Place::After(_), Store::Beside(beside)) => put(beside, &heads, waiter),
        }
    }

    /// Puts the body of a failure in the place of a good one.
    pub fn finish_failure(&mut self, heads: &[u8], body: &Spool, waiter: &Waiter<'_>) -> Result<(), Failure> {
        match &self.place {
            Place::Stdout | Place::Special(_) => {
                self.write(heads, waiter)?;
                self.write_spool(body, waiter)
            }
            // What is there of the file is a part of something else.
            Place::After(_) => Ok(()),
            Place::File(path) => put_spool(path, heads, body, waiter),
        }
    }

    /// Bytes of the body that are there.
    pub fn size(&self) -> u64 {
        self.have
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
