//! The composition root: wires plan, session, clock, supervisor and reporters into the
//! driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::cli::options::{Id, OPTIONS, Sub};
use crate::cli::{Given, Invocation, UsageError, parse};
use crate::clock::{SystemClock, wall};
use crate::config::env::{Environment, ProcessEnvironment};
use crate::config::{EventsTarget, Note, Plan, ScopesPlan, Verbosity, check_for_a_request, gather, gather_own};
use crate::driver::Driver;
use crate::exit::{ExitStatus, OWN_FAILURE, REQUEST_TIMED_OUT};
use crate::forecast;
use crate::http::{Refusal, Requester, plan_request, without_password};
use crate::net::{Ends, Failure, Input, Waiter};
use crate::policy::{Session, Signal, TimeLimit};
use crate::process::unix::SignalSet;
use crate::process::{Inherited, Supervisor};
use crate::report::json::Json;
use crate::report::text::{Text, say};
use crate::scopes;
use crate::signal::Signals;
use crate::store::RunBudget;

/// Does what the words ask for, the program's own name first, and says how to end.
pub fn run(words: &[OsString]) -> ExitStatus {
    try_run(words).unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        ExitStatus::Code(error.downcast_ref().map_or(OWN_FAILURE, Refusal::exit_code))
    })
}

fn try_run(words: &[OsString]) -> Result<ExitStatus> {
    let inherited = Inherited::take();
    let (sub, given, command) = match parse(words)? {
        Invocation::Print(text) => return print(&text),
        Invocation::Do { sub, given, command } => (sub, given, command),
    };
    let (given, warnings) = match sub {
        // AWS's settings are nothing to it.
        Sub::Quota => {
            let (mut given, warnings) = gather_own(given, &ProcessEnvironment);
            // What the variables of a run say is none of its business.
            given.retain(|given| OPTIONS.iter().any(|option| option.id == given.id && option.of(sub)));
            (given, warnings)
        }
        _ => gather(given, &command, &ProcessEnvironment)?,
    };
    let has = |id| given.iter().any(|given| given.id == id);
    // What runs nothing says little: whether more was asked for is enough to know.
    let verbosity = match (has(Id::Quiet), has(Id::Verbose)) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    match sub {
        Sub::Run => run_command(&inherited, &given, command, &warnings),
        Sub::Http => run_request(&inherited, &given, &command, &warnings),
        Sub::Plan => {
            say_from(verbosity, &warnings);
            print(&forecast::plan::show(&given, command, state_folder().as_deref())?)
        }
        Sub::Explain => {
            say_from(verbosity, &warnings);
            print(&forecast::explain::show(&given, &command)?)
        }
        Sub::Quota => mend_scopes(&given, &command, &warnings),
    }
}

fn say_from(verbosity: Verbosity, notes: &[Note]) {
    notes.iter().filter(|(from, _)| verbosity >= *from).for_each(|(_, note)| say(note));
}

fn print(text: &str) -> Result<ExitStatus> {
    // The library takes a closed standard output for one that swallows all.
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error)).context("standard output"),
        }
    }
    Ok(ExitStatus::Code(0))
}

fn mend_scopes(given: &[Given], words: &[OsString], warnings: &[Note]) -> Result<ExitStatus> {
    let plan = ScopesPlan::resolve(given)?;
    say_from(plan.verbosity, warnings);
    // A limit on the size of files is an error like others.
    SignalSet::of([Signal::XFSZ]).block();
    let mut store = plan.store.open(state_folder());
    let told = scopes::answer(&plan, words, store.as_mut(), wall())?;
    let said = told.said.iter().filter(|_| plan.verbosity > Verbosity::Quiet);
    said.for_each(|text| say(text));
    print(&told.printed)
}

fn run_command(
    inherited: &Inherited,
    given: &[Given],
    command: Vec<OsString>,
    warnings: &[Note],
) -> Result<ExitStatus> {
    let random = random_bytes()?;
    let run_id = format!("{:032x}", u128::from_le_bytes(std::array::from_fn(|i| random[i])));
    let mut plan = Plan::resolve(given, command, run_id)?;
    plan.supervision.spool_folder = spool_folder();
    plan.supervision.counts_down &= redraws();
    plan.check_for_a_run()?;
    let seed = plan.seed.map_or(random, Session::seed_from);
    let mut reporter = (Text::new(&plan), events(&plan)?);
    say_from(plan.verbosity, warnings);
    say_from(plan.verbosity, &plan.notes);
    note_outer_run(&plan);
    let signals = Signals::open(inherited).context("cannot read signals")?;
    let clock = SystemClock::start(signals);
    let mut supervisor =
        Supervisor::new(&plan.supervision, &clock, inherited).context("--stdin null: cannot open /dev/null")?;
    if plan.verbosity >= Verbosity::Verbose && supervisor.limits_reach_the_command_only() {
        say("there is no /proc to see the command's descendants in: a time limit ends the command only");
    }
    let driver = Driver {
        session: Session::new(&plan.session, seed),
        budget: budget(&plan),
        plan: &plan,
        clock: &clock,
        runner: &mut supervisor,
        reporter: &mut reporter,
        waited: std::time::Duration::ZERO,
    };
    Ok(driver.run().exit_status)
}

fn run_request(inherited: &Inherited, given: &[Given], words: &[OsString], warnings: &[Note]) -> Result<ExitStatus> {
    let random = random_bytes()?;
    let run_id = format!("{:032x}", u128::from_le_bytes(std::array::from_fn(|i| random[i])));
    let mut plan = Plan::resolve(given, Vec::new(), run_id)?;
    check_for_a_request(given)?;
    let folder = spool_folder();
    let signals = Signals::open(inherited).context("cannot read signals")?;
    let clock = SystemClock::start(signals);
    let total = plan.supervision.total_timeout.map(|limit| (limit, TimeLimit::Total(limit)));
    let input = Input::new(Waiter::new(&clock, Ends { total, ..Ends::default() }));
    let planned = plan_request(given, words, &folder, &ProcessEnvironment, &input);
    match input.ended() {
        Some(Failure::Interrupted(signal)) => return Ok(ExitStatus::Signal(signal)),
        Some(Failure::TimedOut(_)) => {
            say("--total-timeout passed before all of the input was read");
            return Ok(ExitStatus::Code(REQUEST_TIMED_OUT));
        }
        _ => {}
    }
    let (mut request, body) = planned?;
    request.timeout = plan.supervision.timeout;
    request.total_timeout = plan.supervision.total_timeout;
    request.shows_progress &= plan.verbosity >= Verbosity::Normal && redraws();
    plan.supervision.command = vec![without_password(request.url.as_str()).into()];
    let seed = plan.seed.map_or(random, Session::seed_from);
    let mut reporter = (Text::new(&plan), events(&plan)?);
    if let Some(file) = reporter.1.as_ref().and_then(Json::file) {
        let place = &plan.events_place;
        if let Some(option) = request.option_that_writes(file) {
            return Err(UsageError(format!("{place} and {option} name the same file; give each its own")).into());
        }
        if input.has_opened(file) {
            return Err(UsageError(format!("{place}: the request is read from the same file; name another")).into());
        }
    }
    say_from(plan.verbosity, warnings);
    let mut requester = Requester::new(&request, &plan.supervision.lookout, &body, &clock).map_err(UsageError)?;
    let driver = Driver {
        session: Session::new(&plan.session, seed),
        budget: budget(&plan),
        plan: &plan,
        clock: &clock,
        runner: &mut requester,
        reporter: &mut reporter,
        waited: std::time::Duration::ZERO,
    };
    Ok(driver.run().exit_status)
}

/// What a run draws on.
fn budget(plan: &Plan) -> RunBudget {
    match &plan.scope {
        None => RunBudget::private(plan.session.budget),
        Some((scope, store)) => RunBudget::shared(plan.session.budget, store.open(state_folder()), scope.clone()),
    }
}

/// The user's own folder for state, if the environment tells of one.
fn state_folder() -> Option<PathBuf> {
    let folder = |name, rest: &str| {
        // What is no absolute path is to be ignored (XDG Base Directory Specification).
        let base = ProcessEnvironment.get(name).map(PathBuf::from).filter(|base| base.is_absolute());
        base.map(|base| base.join(rest))
    };
    // A home that is not there is nobody's to make.
    let home = || ProcessEnvironment.get("HOME").is_some_and(|home| Path::new(&home).is_dir());
    folder("XDG_STATE_HOME", "retryx").or_else(|| folder("HOME", ".local/state/retryx").filter(|_| home()))
}

/// Whether a terminal, where there is one, can draw a line anew.
fn redraws() -> bool {
    ProcessEnvironment.get("TERM").is_none_or(|name| name != "dumb")
}

/// Where what is too much for memory is kept.
fn spool_folder() -> PathBuf {
    ProcessEnvironment.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// The reporter of events, where they were asked for.
fn events(plan: &Plan) -> Result<Option<Json<'_>>> {
    let events = plan.events.as_ref().map(|target| {
        let given = &plan.events_place;
        let place = || match target {
            EventsTarget::File(path) => format!("{given}: '{}' cannot be opened for appending", path.display()),
            EventsTarget::Descriptor(number) => {
                format!("{given}: descriptor {number} is not open for writing; open it, as in {number}>FILE")
            }
        };
        Json::open(plan, target).with_context(place)
    });
    events.transpose()
}

/// The seed of a run without `--seed`, and the source of its identity.
fn random_bytes() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    // Up to 256 bytes come whole (getrandom(2)); no device file is needed.
    getrandom(&mut bytes, GetRandomFlags::empty()).context("the system gives no random numbers")?;
    Ok(bytes)
}

/// Says at `-v` that a retryx runs this one: their attempts multiply.
fn note_outer_run(plan: &Plan) {
    if plan.verbosity < Verbosity::Verbose {
        return;
    }
    let fact = |name: &str| ProcessEnvironment.get(name).map(|value| value.to_string_lossy().into_owned());
    if let Some(outer) = fact("RETRYX_RUN_ID") {
        let attempt = fact("RETRYX_RUN_ATTEMPT").unwrap_or_default();
        let most = fact("RETRYX_RUN_MAX_ATTEMPTS").unwrap_or_default();
        say(&format!(
            "this run is inside attempt {attempt} of {most} of the retryx run {outer}: their attempts multiply"
        ));
    }
}
