//! One HTTP request, repeated until its answer is good.
//!
//! Theory of operation. A [`Requester`] makes the attempts of a run. An attempt is a chain
//! of steps: the request, and what redirects lead to; the next attempt starts at the first
//! again. A step takes the connection that the one before left open, where that is to the
//! same place and nobody has closed it, or makes a new one; sends the request while it looks
//! for an early answer; and receives the body into `output::Output`, which holds it until
//! it is known to be whole, and keeps what it has across attempts, so that a download that
//! broke off is continued where the server can.
//!
//! Nothing here blocks but [`Waiter`], where the network, signals and the limits of
//! the attempt and the run are awaited together: so one limit holds for the whole chain, a
//! dripping server is no excuse, and Ctrl-C ends at once. Nor is a flood: what never has to wait
//! tells the waiter what passes ([`Waiter::pass`]), which looks at both from time to time.

mod address;
mod asked;
mod beside;
mod body;
mod decoder;
mod exchange;
mod fields;
mod form;
mod framing;
mod meter;
mod output;
mod place;
mod proxy;
mod redirect;
mod refusal;
mod request;
mod schemes;
mod variables;
mod version;
mod write_out;

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

pub use address::without_password;
pub use asked::plan_request;
use body::Body;
use decoder::Decoder;
use exchange::{Answered, exchange, receive};
use framing::Head;
use meter::Meter;
use output::{Failures, Output};
use place::{SideFile, write_stdout};
use proxy::Proxy;
use redirect::{Step, is_harmless};
pub use refusal::Refusal;
pub use request::RequestPlan;
use request::Safety;

use crate::cause::cause;
use crate::clock::{Clock, SystemClock, wall};
use crate::driver::{AttemptRunner, Attempted, Conclusion, Facts, Wake};
use crate::exit::{HTTP_FAILURE, REQUEST_TIMED_OUT, WRITE_FAILED};
use crate::net::{Connection, Connector, Ends, Failure, Fault, Moments, Origin, Over, Waiter};
use crate::policy::matcher::Stream;
use crate::policy::response::Response;
use crate::policy::{Lookout, Obstacle, Outcome, Sightings, StopReason, TimeLimit};
use crate::process::{Spool, between, reader_is_gone};

/// What requests say that they are sent by.
pub const USER_AGENT: &str = concat!("retryx/", env!("CARGO_PKG_VERSION"));

/// The most bytes of an answer's body that an error code is looked for in.
const LOOKED_AT: usize = 1024 * 1024;
/// The most bytes of a body that nobody wants which are received so that the connection can
/// be used again.
const DRAINED: u64 = 256 * 1024;
/// How long such a body may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of the heads of a chain of redirects that are kept to be shown.
const MAX_HEADS: usize = 4 * 1024 * 1024;
/// Statuses after which a request can be repeated whatever it is: it was not acted on.
const TOO_MANY_REQUESTS: u16 = 429;
const UNAVAILABLE: u16 = 503;
const RANGE_NOT_SATISFIABLE: u16 = 416;

/// What the last answer came to, for the end of the run.
#[derive(Default)]
struct Last {
    /// Its head and those before it; of a body that was continued, those of the answer that it
    /// began with.
    heads: Heads,
    /// Where it came from.
    url: String,
    method: String,
    redirects: u32,
    /// Bytes of the body that were received.
    size: u64,
    took: Duration,
    times: write_out::Times,
    /// Who answered.
    peer: Option<SocketAddr>,
    /// What kept it from an answer: curl's code, and in words.
    failure: Option<(u8, String)>,
}

/// The heads of a chain of answers.
#[derive(Debug, Clone, Default)]
struct Heads {
    /// The last one.
    last: Head,
    /// All of them as they came, where they are shown.
    raw: Vec<u8>,
    /// Bytes of all of them.
    size: usize,
}

/// How far the request of an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// No server has anything of it, or the one that had sent it elsewhere as it is.
    Nowhere,
    /// A server may have it.
    Somewhere,
    /// A server has acted on it, and sends the client on to look at what came of that.
    Acted,
}

/// Makes attempts of one request.
pub struct Requester<'a> {
    plan: &'a RequestPlan,
    /// What rules look for in bodies, and what of it was found in the last.
    lookout: &'a Lookout,
    sightings: Sightings,
    clock: &'a SystemClock,
    connector: Connector<'a>,
    /// When the last redirect was followed.
    redirected: Duration,
    body: &'a Body,
    output: Output<'a>,
    /// Where the heads go (`-D`).
    dump: Option<SideFile>,
    /// A connection that may be used again, and where it leads.
    kept: Option<(Origin, Option<Proxy>, Connection)>,
    /// The answer by which a proxy refused the attempt the way to the server.
    refusal: Option<Response>,
    /// How far the attempt's request has come.
    reach: Reach,
    /// Whether some of it went where the key that makes it safe did not go.
    without_key: bool,
    /// The body of a failure that may be written, and how much of it is there.
    failed_body: Spool,
    failed: Failed,
    reader_gone: bool,
    last: Last,
    attempts: u64,
    waited: Duration,
}

impl<'a> Requester<'a> {
    /// Prepares what the attempts share. Fails where the output can never be written.
    pub fn new(
        plan: &'a RequestPlan,
        lookout: &'a Lookout,
        body: &'a Body,
        clock: &'a SystemClock,
    ) -> Result<Self, String> {
        let output = Output::new(&plan.output, lookout)?;
        let dump = plan.dump_heads.as_deref().map(SideFile::new).transpose()?;
        if dump.as_ref().is_some_and(|dump| dump.is_same(output.place())) {
            return Err("--dump-header and --output name the same file; -i writes the heads before the body".to_owned());
        }
        Ok(Self {
            plan,
            lookout,
            sightings: Sightings::default(),
            clock,
            connector: Connector::new(&plan.connect),
            redirected: Duration::ZERO,
            body,
            output,
            dump,
            kept: None,
            refusal: None,
            reach: Reach::Nowhere,
            without_key: false,
            failed_body: Spool::new(plan.output.spool_folder.clone()),
            failed: Failed::None,
            reader_gone: false,
            last: Last::default(),
            attempts: 0,
            waited: Duration::ZERO,
        })
    }

    fn waiter(&self) -> Waiter<'a> {
        let now = self.clock.elapsed().running;
        let attempt = self.plan.timeout.map(|limit| (now.saturating_add(limit), TimeLimit::Attempt(limit)));
        let total = self.plan.total_timeout.map(|limit| (limit, TimeLimit::Total(limit)));
        Waiter::new(self.clock, Ends { attempt, total, ..Ends::default() })
    }

    /// Makes the request and follows where it leads; returns the last answer, its body
    /// received.
    fn chain(&mut self, waiter: &Waiter<'_>) -> Result<Response, Failure> {
        if let Some(path) = self.body.changed() {
            return Err(Failure::new(Fault::Read, format!("{} has changed since the first attempt", path.display())));
        }
        self.output.prepare()?;
        let mut step = self.plan.first_step();
        loop {
            let (head, mut kept) = self.step(&step, waiter)?;
            self.keep_head(&head)?;
            let mut url = step.url.clone();
            if step.redirects > 0 {
                url.set_fragment(None);
            }
            self.last.url = url.to_string();
            self.last.method.clone_from(&step.method);
            self.last.redirects = step.redirects;
            let next = step.next(head.status, head.value("location"), &self.plan.redirects);
            if let Err(Failure::Fault { fault: Fault::Url | Fault::Scheme, .. }) = next {
                // curl counts one that leads nowhere, too.
                self.last.redirects += 1;
            }
            let next = next?;
            let response = self.body_of(&head, &mut kept, &step, next.is_some(), waiter)?;
            // A server that sends the request elsewhere as it is has not acted on it.
            // One that sends the client on with another method has.
            if let Some(next) = &next {
                self.reach = if next.method != step.method || self.reach == Reach::Acted {
                    Reach::Acted
                } else if matches!(head.status, 307 | 308) {
                    Reach::Nowhere
                } else {
                    self.reach
                };
            }
            self.kept = kept.may_keep.then_some((kept.origin, kept.proxy, kept.connection));
            match next {
                Some(next) => {
                    step = next;
                    self.redirected = waiter.now();
                }
                None => return Ok(response),
            }
        }
    }

    /// Keeps a head to be shown, where it will be.
    fn keep_head(&mut self, head: &Head) -> Result<(), Failure> {
        let heads = &mut self.last.heads;
        heads.last.clone_from(head);
        heads.size = heads.size.saturating_add(head.raw.len());
        if self.plan.dump_heads.is_none() && !self.plan.output.include {
            return Ok(());
        }
        if heads.raw.len() + head.raw.len() > MAX_HEADS {
            return Err(Failure::new(
                Fault::Receive,
                format!("the heads of the answers are longer than {} MiB", MAX_HEADS >> 20),
            ));
        }
        heads.raw.extend_from_slice(&head.raw);
        Ok(())
    }

    /// Sends a request and receives the head of its answer.
    fn step(&mut self, step: &Step, waiter: &Waiter<'_>) -> Result<(Head, Kept), Failure> {
        let origin = origin(step)?;
        let proxy = self.plan.proxy_for(&origin)?;
        let target = self.plan.connect.target(&origin);
        // The proxy knows no other way to a host than its name.
        let tunnels = origin.secure || target != origin;
        let through = proxy.as_ref().filter(|_| !tunnels);
        let fields = self.output.continuation(&step.method);
        self.without_key |=
            self.plan.safety == Safety::ByKey && !step.with_credentials && step.method == self.plan.method;
        let nothing = Body::default();
        let body = if step.with_body { self.body } else { &nothing };
        let request = self.plan.head(step, body.length(), through, &fields, is_harmless);
        // The server may close a connection that was kept at the very moment at which it is
        // used again; who may not ask twice does not take the risk.
        let is_same = |(to, over, _): &(Origin, Option<Proxy>, Connection)| (to, over) == (&origin, &proxy);
        let kept = self.kept.take().filter(|kept| self.plan.is_safe() && is_same(kept));
        if let Some((_, _, mut connection)) = kept
            && connection.is_fresh()
        {
            self.note_sending();
            match exchange(&mut connection, &request, body, waiter, self.sender(body, waiter)) {
                Ok(answered) => return Ok(Kept::after(answered, origin, proxy, connection)),
                Err(Failure::Fault { fault: Fault::Empty | Fault::Send | Fault::Receive, .. })
                    if connection.received().is_empty() => {}
                Err(failure) => return Err(failure),
            }
        }
        let refusal = Cell::new(None);
        let tunnel = |connection: &mut Connection, waiter: &Waiter<'_>| {
            proxy.as_ref().map_or(Ok(()), |proxy| proxy.tunnel(connection, &target, &self.plan.agent, waiter, &refusal))
        };
        let over = proxy.as_ref().map(|proxy| Over {
            host: &proxy.host,
            port: proxy.port,
            tunnel: tunnels.then_some(&tunnel),
        });
        let connected = self.connector.connect(&origin, over.as_ref(), waiter);
        self.refusal = refusal.take();
        let mut connection = connected?;
        self.note_sending();
        let answered = exchange(&mut connection, &request, body, waiter, self.sender(body, waiter))?;
        self.last.peer = connection.peer();
        self.last.times =
            write_out::Times { made: self.connector.moments, answered: waiter.now(), redirected: self.redirected };
        Ok(Kept::after(answered, origin, proxy, connection))
    }

    /// From here on a server may have the request.
    fn note_sending(&mut self) {
        if self.reach == Reach::Nowhere {
            self.reach = Reach::Somewhere;
        }
    }

    /// Shows how far the sending of a body is.
    fn sender<'b>(&self, body: &Body, waiter: &'b Waiter<'_>) -> impl FnMut(u64) -> Option<Duration> + use<'b, 'a> {
        let whole = body.length();
        let mut meter = Meter::new(self.plan.shows_progress && whole > 0, waiter.now());
        let mut sent = 0;
        move |count| {
            sent += count;
            meter.is_on().then(|| {
                meter.at(waiter.now(), "sent", sent, Some(whole));
                meter.next()
            })
        }
    }

    /// Receives the body of an answer: into the output where it is wanted, else to judge it.
    fn body_of(
        &mut self,
        head: &Head,
        kept: &mut Kept,
        step: &Step,
        redirects: bool,
        waiter: &Waiter<'_>,
    ) -> Result<Response, Failure> {
        // With -I and a method of the user's own a body comes that nobody asked for.
        let unread = self.plan.head_only && step.method != "HEAD";
        kept.may_keep &= !unread;
        let mut framing = head.framing(if unread { "HEAD" } else { &step.method })?;
        let mut response = self.last.heads.response();
        if head.status == RANGE_NOT_SATISFIABLE && !redirects {
            if self.output.is_complete_by(head) {
                kept.may_keep = false;
                self.output.look_at_file(waiter)?;
                self.output.complete(head)?;
                self.sightings = self.output.sightings();
                if self.continued() {
                    return Ok(self.last.heads.response());
                }
                response.status = 200;
                return Ok(response);
            }
            if self.output.size() > 0 {
                self.output.start_over()?;
                return Err(Failure::new(Fault::Range, "the server has less than was received of it before"));
            }
        }
        if !redirects && (200..400).contains(&head.status) {
            self.receive_good(head, kept, &mut framing, step, waiter)?;
            self.sightings = self.output.sightings();
            response = self.last.heads.response();
        } else {
            self.receive_bad(&mut response, kept, &mut framing, redirects, waiter)?;
        }
        kept.may_keep &= !matches!(framing, framing::Framing::UntilClosed);
        Ok(response)
    }

    fn receive_good(
        &mut self,
        head: &Head,
        kept: &mut Kept,
        framing: &mut framing::Framing,
        step: &Step,
        waiter: &Waiter<'_>,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::of(head, self.plan.compressed)?;
        self.output.begin(&self.last.heads, &step.place(), self.plan.range(), waiter)?;
        self.continued();
        let length = head.value("content-length").and_then(|length| length.trim().parse::<u64>().ok());
        let mut done = if head.status == 206 { self.output.size() } else { 0 };
        let whole = length.map(|length| length.saturating_add(done));
        let to_terminal = self.plan.output.file.is_none() && rustix::termios::isatty(rustix::stdio::stdout());
        let mut meter = Meter::new(self.plan.shows_progress && !to_terminal, waiter.now());
        let output = &mut self.output;
        let received = receive(&mut kept.connection, framing, waiter, |bytes| {
            done += bytes.len() as u64;
            if meter.is_on() {
                meter.at(waiter.now(), "received", done, whole);
            }
            decoder.take(bytes, |plain| output.take(plain, waiter))
        });
        meter.clear();
        let ended = received.and_then(|()| decoder.finish(|plain| output.take(plain, waiter)));
        ended.map_err(|failure| output.broke_off(failure, decoder.is_coded()))?;
        output.complete(head)
    }

    /// Takes the answer that a body began with for the one to what the user asks: those that
    /// continue it are to requests of retryx's own. Whether there is one.
    fn continued(&mut self) -> bool {
        let begun = self.output.begun();
        if let Some(heads) = begun {
            self.last.heads.clone_from(heads);
        }
        begun.is_some()
    }

    /// Receives what is not the body that was asked for. Its status was read: where it is cut
    /// short or takes too long it is a failure, or redirects, all the same.
    fn receive_bad(
        &mut self,
        response: &mut Response,
        kept: &mut Kept,
        framing: &mut framing::Framing,
        redirects: bool,
        waiter: &Waiter<'_>,
    ) -> Result<(), Failure> {
        let keep = self.plan.output.failures != Failures::Dropped && !redirects;
        let mut scanner = self.lookout.scanner(if redirects { &[] } else { &[Stream::Body] });
        let is_judged = !scanner.is_done();
        let most = if redirects { DRAINED } else { DRAINED.max(LOOKED_AT as u64) };
        let patient = waiter.patient(PATIENCE);
        let failed = &mut self.failed_body;
        if keep {
            self.failed = Failed::Part;
        }
        let mut seen = 0u64;
        let received =
            receive(&mut kept.connection, framing, if keep || is_judged { waiter } else { &patient }, |bytes| {
                seen += bytes.len() as u64;
                let room = LOOKED_AT - response.body.len();
                response.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if !scanner.is_done() {
                    scanner.feed(bytes);
                    waiter.look()?;
                }
                if keep {
                    failed.append(bytes).map_err(|error| {
                        Failure::new(Fault::Write, format!("what is received cannot be kept: {}", cause(&error)))
                    })
                } else if seen > most && scanner.is_done() {
                    Err(Failure::new(Fault::Receive, "nobody needs the rest"))
                } else {
                    Ok(())
                }
            });
        self.sightings.add(scanner);
        match received {
            Ok(()) => {
                if keep {
                    self.failed = Failed::Whole;
                }
                Ok(())
            }
            Err(Failure::Fault { fault, .. }) if fault != Fault::Write => {
                kept.may_keep = false;
                Ok(())
            }
            Err(other) => Err(other),
        }
    }

    /// Whether the attempt can be repeated without doing twice what should be done once.
    fn may_repeat(&self, outcome: &Outcome, response: Option<&Response>) -> bool {
        let asks_back = || response.is_some_and(|response| response.asks_back(wall()));
        self.plan.is_safe() && !self.without_key
            || self.reach == Reach::Nowhere
            || self.reach == Reach::Somewhere
                && match outcome {
                    Outcome::Responded(TOO_MANY_REQUESTS) => true,
                    Outcome::Responded(UNAVAILABLE) => asks_back(),
                    _ => false,
                }
    }
}

impl Heads {
    /// The answer that the last one is of, its body left out.
    fn response(&self) -> Response {
        Response { status: self.last.status, headers: self.last.fields.clone(), body: Vec::new() }
    }
}

/// How much of a failure's body is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failed {
    /// There is none, or none that is kept.
    None,
    /// It broke off, or a time limit passed.
    Part,
    /// All of it.
    Whole,
}

/// A connection with what must be known to use it again.
struct Kept {
    origin: Origin,
    proxy: Option<Proxy>,
    connection: Connection,
    may_keep: bool,
}

impl Kept {
    fn after(answered: Answered, origin: Origin, proxy: Option<Proxy>, connection: Connection) -> (Head, Self) {
        let may_keep = answered.sent_all && answered.head.keeps_alive();
        (answered.head, Self { origin, proxy, connection, may_keep })
    }
}

fn origin(step: &Step) -> Result<Origin, Failure> {
    let host = step.url.host_str().unwrap_or_default().to_owned();
    let port = step.url.port_or_known_default();
    let (false, Some(port)) = (host.is_empty(), port) else {
        return Err(Failure::new(Fault::Url, "the URL names no host"));
    };
    Ok(Origin { secure: step.url.scheme() == "https", host, port })
}

impl AttemptRunner for Requester<'_> {
    const TIMED_OUT: u8 = REQUEST_TIMED_OUT;
    const LOST: u8 = WRITE_FAILED;

    fn attempt(&mut self, facts: &Facts) -> Attempted {
        let waiter = self.waiter();
        let started = self.clock.elapsed().running;
        self.attempts = facts.attempt;
        (self.reach, self.failed) = (Reach::Nowhere, Failed::None);
        self.without_key = false;
        self.refusal = None;
        self.sightings = Sightings::default();
        self.last = Last { url: self.plan.url.to_string(), method: self.plan.method.clone(), ..Last::default() };
        self.connector.moments = Moments::default();
        self.redirected = Duration::ZERO;
        let cleared = self.failed_body.clear().map_err(|error| Failure::new(Fault::Write, cause(&error)));
        let result = cleared.and_then(|()| self.chain(&waiter));
        self.reader_gone = matches!(result, Err(Failure::Fault { fault: Fault::ReaderGone, .. }));
        self.last.took = self.clock.elapsed().running.saturating_sub(started);
        self.last.size = self.output.size();
        self.last.times = self.last.times.since(started);
        let (outcome, response) = match result {
            Ok(response) => (Outcome::Responded(response.status), Some(response)),
            Err(Failure::TimedOut(limit)) => {
                self.last.failure = Some((REQUEST_TIMED_OUT, "a time limit passed".to_owned()));
                (Outcome::TimedOut(limit), None)
            }
            Err(Failure::Interrupted(signal)) => (Outcome::Interrupted(signal), None),
            Err(Failure::Fault { fault, text }) => {
                self.last.failure = Some((fault.code(), text.clone()));
                let (code, prospect) = (fault.code(), fault.prospect());
                (Outcome::TransportFailed { code, prospect, error: text }, self.refusal.take())
            }
        };
        let obstacle = match outcome {
            Outcome::Interrupted(signal) => Some(Obstacle::Interrupted(signal)),
            _ if self.reader_gone => Some(Obstacle::ReaderGone),
            Outcome::Responded(_) if self.output.is_whole() && self.output.is_released() => Some(Obstacle::PassedOn),
            _ if !self.may_repeat(&outcome, response.as_ref()) => {
                Some(Obstacle::UnsafeRequest { lost_key: self.without_key })
            }
            _ => None,
        };
        Attempted { obstacle, response, sightings: std::mem::take(&mut self.sightings), ..Attempted::with(outcome) }
    }

    fn wait(&mut self, delay: Duration) -> Wake {
        let before = self.clock.elapsed().boot;
        let wake = between::wait(self.clock, delay, self.plan.shows_progress);
        self.waited += self.clock.elapsed().boot.saturating_sub(before);
        wake
    }

    fn conclude(&mut self, reason: &StopReason) -> Result<(), Conclusion> {
        if matches!(reason, StopReason::Interrupted(_)) {
            return Ok(());
        }
        if self.reader_gone {
            return Err(Conclusion::ReaderGone);
        }
        let total = self.plan.total_timeout.filter(|_| *reason == StopReason::Success);
        let total = total.map(|limit| (limit, TimeLimit::Total(limit)));
        let waiter = Waiter::new(self.clock, Ends { total, ..Ends::default() });
        let written = self.write_result(*reason == StopReason::Success, &waiter);
        written.map_err(|failure| match failure {
            Failure::Interrupted(signal) => Conclusion::Interrupted(signal),
            Failure::TimedOut(_) => Conclusion::TooLate("the rest of the body is lost: nobody reads it".to_owned()),
            Failure::Fault { fault: Fault::ReaderGone, .. } => Conclusion::ReaderGone,
            other @ Failure::Fault { .. } => Conclusion::Lost(other.to_string()),
        })
    }

    fn prepare_retry(&mut self) -> Result<(), Obstacle> {
        if self.output.is_stdout() && reader_is_gone() {
            return Err(Obstacle::ReaderGone);
        }
        Ok(())
    }
}

impl Requester<'_> {
    /// Writes what the run came to: the body, the heads, and what `-w` asks for.
    fn write_result(&mut self, success: bool, waiter: &Waiter<'_>) -> Result<(), Failure> {
        let heads = std::mem::take(&mut self.last.heads.raw);
        if let Some(file) = &self.dump {
            file.write(&heads, waiter)?;
        }
        let include = self.plan.output.include;
        // A rule of the user's may have made a success of a failure, or a failure of a body that is
        // good and whole.
        let wanted = success || self.plan.output.failures == Failures::Written;
        match self.failed {
            _ if self.output.is_whole() && wanted => self.output.finish(waiter)?,
            Failed::Whole if wanted => {
                let heads = if include { &heads[..] } else { b"" };
                self.output.finish_failure(heads, &self.failed_body, waiter)?;
            }
            Failed::Part if wanted => {
                if include && self.output.is_stdout() && !self.output.is_released() {
                    write_stdout(&heads, waiter)?;
                }
                // Half of it would look like a whole one.
                let text = "the body of the failure broke off, and none of it is written";
                return Err(Failure::new(Fault::Partial, text));
            }
            _ if !success && include && self.output.is_stdout() && !self.output.is_released() => {
                write_stdout(&heads, waiter)?;
            }
            _ => {}
        }
        if let Some(format) = &self.plan.write_out {
            let text = write_out::fill(format, &self.figures(success));
            write_stdout(text.stdout.as_bytes(), waiter)?;
            // What cannot be said cannot be said to anybody.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.stderr.as_bytes());
        }
        Ok(())
    }

    fn figures(&self, success: bool) -> write_out::Figures<'_> {
        let (exit_code, error) = match &self.last.failure {
            _ if success => (0, ""),
            Some((code, text)) => (*code, text.as_str()),
            None => (HTTP_FAILURE, "the status is a failure"),
        };
        write_out::Figures {
            heads: self.last.heads.size,
            given_url: &self.plan.given_url,
            times: self.last.times,
            peer: self.last.peer,
            file: self.plan.output.file.as_deref(),
            exit_code,
            error,
            head: &self.last.heads.last,
            url: &self.last.url,
            method: &self.last.method,
            redirects: self.last.redirects,
            size: self.last.size,
            uploaded: self.body.length(),
            took: self.last.took,
            attempts: self.attempts,
            waited: self.waited,
        }
    }
}
