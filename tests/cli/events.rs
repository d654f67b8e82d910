//! `--events`: what the lines hold, that writers can share a file, and that trouble with
//! them never breaks the job.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Events, Lab, bytes, number, texts, wait_until};

fn keys(event: &Value) -> Vec<&str> {
    event.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn every_event_has_its_documented_fields() {
    let lab = Lab::new();
    let options = "-n 2 --base-delay 100ms --jitter full --deadline 100 --max-backoff 3";
    let run = lab.run(options).sh("[ $RETRYX_RUN_ATTEMPT = 2 ] || exit 75").finish();
    run.exited(0);
    let kinds = texts(&run.events, "event");
    assert_eq!(
        kinds,
        [
            "run_started",
            "attempt_started",
            "attempt_finished",
            "retry_scheduled",
            "attempt_started",
            "attempt_finished",
            "stopped"
        ]
    );
    let common = ["schema", "time", "run_id", "event"];
    let own: [&[&str]; 7] = [
        &["program", "argument_count", "mode", "max_attempts", "deadline_ms"],
        &["attempt"],
        &[
            "attempt",
            "outcome",
            "exit_code",
            "signal",
            "timed_out",
            "http_status",
            "error_code",
            "error",
            "class",
            "rule",
            "duration_ms",
        ],
        &[
            "attempt",
            "delay_ms",
            "delay_source",
            "base_ms",
            "exponent",
            "cap_ms",
            "jitter",
            "server_delay_ms",
            "quota_left",
        ],
        &["attempt"],
        &[
            "attempt",
            "outcome",
            "exit_code",
            "signal",
            "timed_out",
            "http_status",
            "error_code",
            "error",
            "class",
            "rule",
            "duration_ms",
        ],
        &["reason", "attempts", "exit_status", "elapsed_ms", "waited_ms", "quota_left", "server_delay_ms"],
    ];
    for (event, own) in run.events.iter().zip(own) {
        assert_eq!(keys(event), [&common[..], own].concat());
        assert_eq!(event["schema"], 1);
        let time = event["time"].as_str().unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok() && time.ends_with('Z'), "{time}");
        assert_eq!(event["run_id"], run.events[0]["run_id"]);
    }
    let [started, first, finished, scheduled, second, last_finished, stopped] = &run.events[..] else { unreachable!() };
    assert_eq!(started["program"], "sh");
    assert_eq!(started["argument_count"], 2);
    assert_eq!((&started["mode"], &started["max_attempts"]), (&"standard".into(), &2.into()));
    assert_eq!(started["deadline_ms"], 100_000.0);
    assert_eq!((&first["attempt"], &second["attempt"], &scheduled["attempt"]), (&1.into(), &2.into(), &2.into()));
    assert_eq!((&finished["exit_code"], &finished["class"]), (&75.into(), &"transient".into()));
    assert_eq!((&finished["rule"], &last_finished["rule"]), (&"default:exit".into(), &"default:success".into()));
    assert!(number(scheduled, "delay_ms") < 100.0);
    assert_eq!(scheduled["base_ms"], 100.0);
    assert_eq!(scheduled["cap_ms"], 3000.0);
    assert_eq!((&scheduled["exponent"], &scheduled["jitter"]), (&0.into(), &"full".into()));
    assert_eq!((&stopped["reason"], &stopped["exit_status"]), (&"success".into(), &0.into()));
    assert!(number(stopped, "elapsed_ms") >= number(stopped, "waited_ms"));
}

#[test]
fn two_runs_have_two_names_and_the_quota_is_counted() {
    let lab = Lab::new();
    let runs = [(); 2].map(|()| lab.run("--base-delay 0").command(&["false"]).finish());
    assert_ne!(runs[0].last()["run_id"], runs[1].last()["run_id"]);
    let left: Vec<f64> = runs[0].of("retry_scheduled").iter().map(|event| number(event, "quota_left")).collect();
    assert_eq!(left, [486.0, 472.0]);
    assert_eq!(runs[0].last()["quota_left"], 472);
    let run = lab.run("-n 3 --base-delay 0").command(&["false"]).finish();
    assert!(run.last()["quota_left"].is_null());
}

#[test]
fn arguments_are_held_only_where_it_is_asked_for() {
    let lab = Lab::new();
    let run = lab.run("").command(&["echo", "secret"]).finish();
    assert!(run.events.iter().all(|event| !event.to_string().contains("secret")));
    assert_eq!(run.events[0]["argument_count"], 1);
    let run = lab.run("--log-arguments").args(["--", "echo", "one"]).arg(bytes(b"t\xffwo")).finish();
    assert_eq!(run.events[0]["arguments"], serde_json::json!(["one", "t\u{fffd}wo"]));
    assert_eq!(run.stdout, b"one t\xffwo\n");
}

#[test]
fn a_line_is_bounded_and_valid_whatever_the_words() {
    let lab = Lab::new();
    for word in ["x".repeat(100_000), "\u{1}".repeat(100_000), "ü\"\\".repeat(20_000)] {
        let file = lab.path("bounded");
        for words in [vec![word.clone(); 5], vec![word[..12].to_owned(); 3000]] {
            let run = lab.bare("--log-arguments -q --events").arg(&file).args(["--", "true"]).args(words).finish();
            run.exited(0);
            // A program of that name is not found, which an event tells.
            lab.bare("-q --events").arg(&file).arg("--").arg(&word[..100]).finish().exited(127);
        }
        Events::at(file.clone()).all();
        let content = std::fs::read(&file).unwrap();
        assert!(content.split(|&byte| byte == b'\n').all(|line| line.len() < 64 * 1024));
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn many_runs_can_share_a_file() {
    let lab = Lab::new();
    let file = lab.write("shared", "");
    let start = |_| lab.bare("-n 20 --base-delay 0 -q --events").arg(&file).args(["--", "false"]).start();
    let runs: Vec<_> = (0..20).map(start).collect();
    for run in runs {
        run.finish().exited(1);
    }
    let events = Events::at(file).all();
    let names: BTreeSet<String> = texts(&events, "run_id").into_iter().collect();
    assert_eq!(names.len(), 20);
    for name in names {
        let own = events.iter().filter(|event| event["run_id"] == name.as_str()).count();
        assert_eq!(own, 1 + 20 + 20 + 19 + 1);
    }
}

#[test]
fn a_descriptor_of_the_callers_takes_events_too() {
    let lab = Lab::new();
    let script = "exec retryx -n 2 --base-delay 0 --events fd:5 -- false 5>>$D/five";
    lab.shell(script).finish().exited(1);
    assert_eq!(Events::at(lab.path("five")).all().len(), 7);
    // One of the standard ones as well.
    let run = lab.bare("-q --events fd:1 -- sh -c").arg("echo hello").finish();
    run.exited(0);
    assert_eq!(run.text().lines().filter(|line| line.starts_with('{')).count(), 4);
    assert!(run.text().contains("\nhello\n"));
}

// B122
#[test]
fn events_that_cannot_be_opened_stop_before_anything_runs() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("folder")).unwrap();
    for target in ["missing/e", "folder", "/dev/full/x", "fd:9", "fd:99999999999999", "fd:-1", "fd:", "fd:0"] {
        let run = lab.bare("--events").args([target, "touch", "ran"]).finish();
        run.exited(125).says(&["--events"]);
        assert_eq!(run.messages().len(), 1, "{}", run.stderr);
        assert!(!lab.path("ran").exists(), "{target}");
    }
}

// B122
#[test]
fn events_that_fail_later_are_said_once_and_the_run_goes_on() {
    let lab = Lab::new();
    let flaky = "[ $RETRYX_RUN_ATTEMPT = 3 ] || exit 1";
    let once = |run: &crate::support::Finished| {
        run.exited(0);
        let complaints = run.messages().iter().filter(|line| line.contains("goes on without events")).count();
        assert_eq!(complaints, 1, "{}", run.stderr);
    };
    once(&lab.bare("--events /dev/full -n 3 --base-delay 0").sh(flaky).finish());
    // A reader that goes away in the middle.
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let run = lab.bare("--events fd:7 -n 3 --mode fixed --base-delay 1").giving(&write, 7).sh(flaky).start();
    drop(write);
    let mut first = [0; 10];
    let mut read = File::from(read);
    read.read_exact(&mut first).unwrap();
    wait_until("a retry is announced", || run.stderr().contains("retrying"));
    drop(read);
    once(&run.finish());
    // One that never reads.
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let full = rustix::pipe::fcntl_getpipe_size(&write).unwrap();
    rustix::io::write(&write, &vec![b'x'; full]).unwrap();
    once(&lab.bare("--events fd:7 -n 3 --base-delay 0").giving(&write, 7).sh(flaky).finish());
}

#[test]
fn a_long_line_into_a_pipe_with_little_room_holds_nothing_up() {
    let lab = Lab::new();
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&write).unwrap() - 4096;
    rustix::io::write(&write, &vec![b'x'; room]).unwrap();
    let run =
        lab.bare("--log-arguments --events fd:7").giving(&write, 7).command(&["true"]).args(vec!["y".repeat(3000); 20]);
    run.finish().exited(0).says(&["goes on without events"]);
}

#[test]
fn a_file_that_is_replaced_or_cut_meanwhile_harms_nothing() {
    let lab = Lab::new();
    let script = "rm -f $D/e; [ $RETRYX_RUN_ATTEMPT = 2 ] || exit 1";
    lab.bare("--events e -n 2 --base-delay 0").sh(script).finish().exited(0);
    lab.write("f", "old\n".repeat(100));
    let script = "[ $RETRYX_RUN_ATTEMPT = 2 ] || { : >$D/f; exit 1; }";
    lab.bare("--events f -n 2 --base-delay 0").sh(script).finish().exited(0);
    assert_eq!(Events::at(lab.path("f")).all().len(), 5, "{}", lab.read("f"));
}

#[test]
fn every_outcome_and_every_end_has_its_words() {
    let lab = Lab::new();
    for (options, script, outcome, class, rule, reason) in [
        ("", "exit 0", "exited", "success", "default:success", "success"),
        ("-n 1", "exit 1", "exited", "transient", "default:exit", "attempts"),
        ("", "exit 126", "exited", "permanent", "default:cannot-run", "permanent"),
        ("", "exit 130", "exited", "permanent", "default:interrupted", "permanent"),
        ("", "exit 141", "exited", "permanent", "default:broken-pipe", "permanent"),
        ("-n 1", "kill -9 $$", "signaled", "transient", "default:signal", "attempts"),
        ("", "kill -INT $$", "signaled", "permanent", "default:interrupted", "permanent"),
        ("", "kill -PIPE $$", "signaled", "permanent", "default:broken-pipe", "permanent"),
        ("-n 1 --timeout 0.3", "sleep 300", "timed_out", "transient", "default:timeout", "attempts"),
        ("--total-timeout 0.3", "sleep 300", "timed_out", "transient", "default:timeout", "total_timeout"),
        ("--deadline 5 --mode fixed --base-delay 10", "exit 1", "exited", "transient", "default:exit", "deadline"),
    ] {
        let run = lab.run(options).sh(script).finish();
        let event = &run.of("attempt_finished")[0];
        assert_eq!(
            (&event["outcome"], &event["class"], &event["rule"]),
            (&outcome.into(), &class.into(), &rule.into())
        );
        assert_eq!(run.last()["reason"], reason, "{script}");
        let status = run.status;
        let shown =
            std::os::unix::process::ExitStatusExt::signal(&status).map_or_else(|| status.code(), |n| Some(128 + n));
        assert_eq!(run.last()["exit_status"], shown.unwrap());
    }
}

#[test]
fn a_run_that_is_killed_leaves_whole_lines() {
    let lab = Lab::new();
    for count in 1..20 {
        let run = lab.run("-n unlimited --base-delay 0").sh("exit 1").start();
        run.events.wait("attempt_started", count);
        run.signal(Signal::KILL);
        run.finish().died_of(Signal::KILL);
    }
}
