use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::SystemTime;

use super::*;
use crate::policy::{Entry, Grant, NANO, Start};

const PLAN: QuotaPlan = QuotaPlan { capacity: 10, transient_cost: 5, throttling_cost: 5, refill: 0 };

/// Puts something where a scope's file should be.
type Plant<'a> = &'a dyn Fn();

/// A store whose time stands still unless it is moved.
struct Bench {
    store: FileStore,
    now: Rc<RefCell<Moment>>,
    folder: tempfile::TempDir,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let now = Moment { boot: Some("one".into()), since_boot: Duration::from_secs(100), wall };
    let now = Rc::new(RefCell::new(now));
    let told = Rc::clone(&now);
    let store = FileStore::with_moments(Some(folder.path().to_owned()), move || told.borrow().clone());
    Bench { store, now, folder }
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pass(&self, seconds: u64) {
        let mut now = self.now.borrow_mut();
        now.since_boot += Duration::from_secs(seconds);
        now.wall += Duration::from_secs(seconds);
    }

    /// Asks for a retry of that price.
    fn pay(&mut self, plan: QuotaPlan, cost: u32) -> Applied {
        let entry = Entry::Retry { cost, start: Some(Start { delay: Duration::ZERO, longest: None }) };
        let plan = BudgetPlan { quota: Some(plan), limiter: false };
        self.store.apply(&scope("x"), &plan, &Operation::Book { throttled: false, entry }, None).unwrap()
    }

    fn tokens(&mut self, plan: QuotaPlan, cost: u32) -> (Grant, Option<u32>) {
        let answer = self.pay(plan, cost).answer;
        (answer.grant, answer.tokens)
    }

    fn shown(&mut self) -> (u32, u32) {
        let state = self.store.show(&scope("x").name).unwrap().unwrap().unwrap();
        let quota = state.budget.quota.unwrap();
        (quota.tokens(), quota.plan().capacity)
    }
}

fn scope(name: &str) -> Scope {
    Scope { name: ScopeName::new(name).unwrap(), ttl: Duration::from_secs(60) }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn names_of_scopes_are_names_of_files_and_back() {
    for (name, file) in [
        ("nightly", "nightly.scope"),
        ("A-z_0.9", "A-z_0.9.scope"),
        (".hidden", "%2Ehidden.scope"),
        ("..", "%2E..scope"),
        ("a/b c%", "a%2Fb%20c%25.scope"),
        ("é", "%C3%A9.scope"),
    ] {
        let scope = ScopeName::new(name).unwrap();
        assert_eq!(file_name(&scope), file);
        assert_eq!(scope_name(file), Some(scope));
    }
    let longest = ScopeName::new(&"é".repeat(32)).unwrap();
    assert!(file_name(&longest).len() + ".damaged-9".len() <= 255);
    for other in
        ["x", ".scope", "%41.scope", "%2e.scope", "a/b.scope", "%.scope", "%FF.scope", "%é.scope", "x.scope.damaged"]
    {
        assert_eq!(scope_name(other), None, "{other}");
    }
}

#[test]
fn stores_of_one_folder_share_and_time_brings_tokens() {
    let mut bench = bench();
    let rated = QuotaPlan { refill: NANO / 2, ..PLAN };
    assert_eq!(bench.tokens(rated, 5), (Grant::Granted, Some(5)));
    assert_eq!(bench.tokens(rated, 5), (Grant::Granted, Some(0)));
    let other = Rc::clone(&bench.now);
    let folder = Some(bench.folder.path().to_owned());
    let mut other = FileStore::with_moments(folder, move || other.borrow().clone());
    assert_eq!(other.show(&scope("x").name).unwrap().unwrap().unwrap().budget.quota.unwrap().tokens(), 0);
    bench.pass(3);
    assert_eq!(bench.shown(), (1, 10));
    bench.pass(3);
    assert_eq!(bench.tokens(rated, 5), (Grant::Refused, Some(3)));
    // It was looked at in between, and the half token is not lost.
    bench.pass(5);
    assert_eq!(bench.tokens(rated, 5), (Grant::Granted, Some(0)));
    bench.pass(1);
    assert_eq!(bench.tokens(rated, 1), (Grant::Granted, Some(0)));
    assert_eq!(names(bench.folder.path()), ["x.scope"]);
}

#[test]
fn a_scope_that_lay_unused_for_its_time_starts_full_again() {
    let mut bench = bench();
    assert_eq!(bench.tokens(PLAN, 10), (Grant::Granted, Some(0)));
    bench.pass(59);
    assert_eq!(bench.tokens(PLAN, 1), (Grant::Refused, Some(0)));
    bench.pass(60);
    assert_eq!(bench.shown(), (10, 10));
    let wide = QuotaPlan { capacity: 50, ..PLAN };
    assert_eq!(bench.tokens(wide, 50), (Grant::Granted, Some(0)));
    bench.pass(60);
    // A run without a quota finds it full by the numbers of those before.
    bench.store.apply(&scope("x"), &BudgetPlan::default(), &Operation::Take, None).unwrap();
    assert_eq!(bench.shown(), (50, 50));
}

// B103
#[test]
fn steps_of_the_wall_clock_and_a_reboot_neither_fill_nor_lock() {
    let mut bench = bench();
    let rated = QuotaPlan { refill: NANO, ..PLAN };
    assert_eq!(bench.tokens(rated, 7), (Grant::Granted, Some(3)));
    let start = bench.now.borrow().wall;
    for step in [Duration::from_secs(86_400), Duration::ZERO] {
        bench.now.borrow_mut().wall = SystemTime::UNIX_EPOCH + step;
        assert_eq!(bench.tokens(rated, 0), (Grant::Granted, Some(3)));
    }
    // After a reboot only the wall clock is left. Written in its future: it counts as now.
    bench.now.borrow_mut().wall = start + Duration::from_secs(86_400);
    assert_eq!(bench.tokens(rated, 0), (Grant::Granted, Some(3)));
    *bench.now.borrow_mut() = Moment { boot: Some("two".into()), since_boot: Duration::ZERO, wall: start };
    assert_eq!(bench.tokens(rated, 0), (Grant::Granted, Some(3)));
    bench.pass(2);
    assert_eq!(bench.tokens(rated, 0), (Grant::Granted, Some(5)));
    // A second reboot, which took three seconds.
    let wall = start + Duration::from_secs(5);
    *bench.now.borrow_mut() = Moment { boot: Some("three".into()), since_boot: Duration::ZERO, wall };
    assert_eq!(bench.tokens(rated, 0), (Grant::Granted, Some(8)));
}

// B103
#[test]
fn stamps_that_people_wrote_are_taken_for_what_they_can_mean() {
    for (stamp, tokens) in [
        (1_000_000_000_000_u64 + 86_400_000_000, 3),
        (999_995_000_000, 8),
        (0, 10),
        (253_402_300_799_000_000, 3),
        (u64::MAX, 3),
    ] {
        let mut bench = bench();
        let rated = QuotaPlan { refill: NANO, ..PLAN };
        bench.pay(rated, 7);
        let text = fs::read_to_string(bench.path("x.scope")).unwrap();
        let edited = text.replace("\"updated\":1000000000000,\"boot\":\"one\"", &format!("\"updated\":{stamp}"));
        assert_ne!(text, edited);
        fs::write(bench.path("x.scope"), edited).unwrap();
        let applied = bench.pay(rated, 0);
        assert_eq!((applied.answer.tokens, applied.notice), (Some(tokens), None), "{stamp}");
        let text = fs::read_to_string(bench.path("x.scope")).unwrap();
        assert!(text.contains("\"updated\":1000000000000,\"boot\":\"one\""), "{text}");
        assert_eq!(text.len(), 2 * SLOT);
    }
}

#[test]
fn what_is_damaged_is_set_aside_said_once_and_started_afresh() {
    let mut bench = bench();
    for content in ["", "{", "{\"schema\":2}"] {
        fs::write(bench.path("x.scope"), content).unwrap();
        let error = bench.store.show(&scope("x").name).unwrap().unwrap().unwrap_err().0;
        assert!(error.contains("x.scope is damaged: "), "{error}");
        assert_eq!(bench.store.list().unwrap(), [Err(Unshared(error))]);
        let applied = bench.pay(PLAN, 5);
        assert_eq!(applied.answer.tokens, Some(5));
        let notice = applied.notice.unwrap();
        assert!(notice.contains(bench.path("x.scope").to_str().unwrap()), "{notice}");
        assert!(notice.contains("it is kept as x.scope.damaged, and the scope starts afresh"), "{notice}");
        assert_eq!(bench.pay(PLAN, 5).notice, None);
        assert_eq!(fs::read_to_string(bench.path("x.scope.damaged")).unwrap(), content);
        assert_eq!(names(bench.folder.path()), ["x.scope", "x.scope.damaged"]);
    }
    let file = fs::File::options().write(true).open(bench.path("x.scope")).unwrap();
    file.set_len(1 << 40).unwrap();
    let notice = bench.pay(PLAN, 5).notice.unwrap();
    assert!(notice.contains("longer than 64 KiB"), "{notice}");
    fs::remove_file(bench.path("x.scope")).unwrap();
    fs::create_dir(bench.path("x.scope")).unwrap();
    let notice = bench.pay(PLAN, 5).notice.unwrap();
    assert!(notice.contains("it is a folder; it is kept as x.scope.damaged-2"), "{notice}");
    assert_eq!(bench.shown(), (5, 10));
}

#[test]
fn what_is_no_file_of_ours_is_left_alone() {
    let mut bench = bench();
    let victim = bench.path("victim");
    fs::write(&victim, "mine").unwrap();
    let (path, file) = (bench.path("x.scope"), bench.path("x.scope"));
    let plants: [(Plant<'_>, &str); 4] = [
        (&|| std::os::unix::fs::symlink(&victim, &path).unwrap(), "is a symbolic link"),
        (&|| std::os::unix::fs::symlink("/nowhere", &path).unwrap(), "is a symbolic link"),
        (&|| fs::hard_link(&victim, &path).unwrap(), "has another name too"),
        (
            &|| {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            },
            "is no regular file",
        ),
    ];
    for (plant, why) in plants {
        plant();
        let error = bench.store.apply(&scope("x"), &BudgetPlan::default(), &Operation::Take, None).unwrap_err().0;
        assert!(error.contains(&format!("x.scope {why}; ")), "{error}");
        assert!(fs::symlink_metadata(&file).is_ok());
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(names(bench.folder.path()), ["victim"]);
}

#[test]
fn people_may_edit_it() {
    let mut bench = bench();
    bench.pay(PLAN, 5);
    let text = fs::read_to_string(bench.path("x.scope")).unwrap();
    let line = text.lines().next().unwrap().trim_end();
    for (edited, tokens) in [
        (text.replace("\"tokens\":5", "\"tokens\":8"), 8),
        (format!("{}\n", line.replace("\"tokens\":5", "\"tokens\": 7")), 7),
        (format!("{}\n\n{}", " ".repeat(9000), line.replace("\"tokens\":5", "\"tokens\":600")), 10),
    ] {
        fs::write(bench.path("x.scope"), edited).unwrap();
        let applied = bench.pay(PLAN, 0);
        assert_eq!((applied.answer.tokens, applied.notice), (Some(tokens), None));
        assert_eq!(fs::metadata(bench.path("x.scope")).unwrap().len(), 2 * SLOT as u64);
        assert_eq!(bench.shown(), (tokens, 10));
    }
}

#[test]
fn scopes_are_listed_shown_set_and_reset() {
    let mut bench = bench();
    let nowhere = FileStore::new(Some(bench.path("none"))).list();
    assert_eq!(nowhere, Ok(Vec::new()));
    assert_eq!(bench.store.list(), Ok(Vec::new()));
    let x = scope("x").name;
    assert_eq!((bench.store.show(&x), bench.store.reset(&x)), (Ok(None), Ok((false, None))));
    assert_eq!(names(bench.folder.path()), Vec::<String>::new());

    bench.pay(PLAN, 7);
    let begun = QuotaPlan { capacity: 20, refill: NANO, ..PLAN };
    let state = bench.store.set(&scope(" y/"), 30, begun).unwrap().0;
    assert_eq!(state.budget.quota.unwrap().tokens(), 20);
    fs::write(bench.path("other"), "").unwrap();
    fs::write(bench.path("z.scope"), "{").unwrap();
    let listed = bench.store.list().unwrap();
    assert!(matches!(&listed[2..], [Err(Unshared(why))] if why.contains("z.scope is damaged")), "{listed:?}");
    let listed: Vec<_> = listed.into_iter().flatten().map(|state| state.name.to_string()).collect();
    assert_eq!(listed, [" y/", "x"]);

    // One that is there keeps its own numbers.
    let state = bench.store.set(&scope("x"), 4, begun).unwrap().0;
    assert_eq!(state.budget.quota.as_ref().unwrap().tokens(), 4);
    assert_eq!((bench.shown(), state.updated), ((4, 10), bench.now.borrow().wall));
    bench.store.set(&scope("x"), 4000, begun).unwrap();
    assert_eq!(bench.shown(), (10, 10));
    bench.pay(PLAN, 10);
    let throttled = Operation::Book { throttled: true, entry: Entry::Nothing };
    let adaptive = BudgetPlan { quota: Some(PLAN), limiter: true };
    bench.store.apply(&scope("x"), &adaptive, &throttled, None).unwrap();
    assert!(bench.store.show(&x).unwrap().unwrap().unwrap().budget.limiter.is_enabled());
    assert_eq!(bench.store.reset(&x), Ok((true, None)));
    assert!(!bench.store.show(&x).unwrap().unwrap().unwrap().budget.limiter.is_enabled());
    assert_eq!(bench.shown(), (10, 10));
    // Full is what the next run has for it.
    assert_eq!(bench.tokens(QuotaPlan { capacity: 70, ..PLAN }, 0), (Grant::Granted, Some(70)));
    assert_eq!(bench.tokens(QuotaPlan { capacity: 700, ..PLAN }, 0), (Grant::Granted, Some(70)));
    let (was_there, notice) = bench.store.reset(&scope("z").name).unwrap();
    assert!(was_there && notice.unwrap().contains("z.scope.damaged"));
    assert_eq!(bench.store.show(&scope("z").name), Ok(None));
}

#[test]
fn without_a_folder_nothing_is_shared_and_the_remedy_is_named() {
    let mut store = FileStore::new(None);
    let error = store.list().unwrap_err().0;
    assert_eq!(error, "XDG_STATE_HOME is not set to an absolute path, and HOME to no folder; give --state-dir DIR");
    assert_eq!((store.show(&scope("x").name).unwrap_err().0, store.place()), (error, String::new()));
}
