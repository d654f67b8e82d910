//! The environment of the command: passed on whole, plus the facts of its run; retryx in
//! retryx; and `--shell`.

use crate::support::Lab;

#[test]
fn each_attempt_is_told_of_its_run() {
    let lab = Lab::new();
    let script = "env | grep ^RETRYX_RUN_ | sort >$D/$RETRYX_RUN_ATTEMPT; [ $RETRYX_RUN_ATTEMPT = 1 ] && exit 7; \
                  [ $RETRYX_RUN_ATTEMPT = 2 ] && kill -9 $$; exit 0";
    let run = lab.run("-n 4 --base-delay 0 --deadline 100").sh(script).finish();
    run.exited(0).stopped(3, "success");
    let id = run.last()["run_id"].as_str().unwrap().to_owned();
    let mut left = u128::MAX;
    for (attempt, last) in [(1, None), (2, Some("7")), (3, Some("137"))] {
        let mut facts = lab.lines(&attempt.to_string());
        let at = facts.iter().position(|fact| fact.starts_with("RETRYX_RUN_DEADLINE_MS=")).expect("what is left");
        let now = facts.remove(at).split('=').nth(1).unwrap().parse().unwrap();
        assert!(now <= left && now <= 100_000);
        left = now;
        let mut expected = vec![format!("RETRYX_RUN_ATTEMPT={attempt}"), format!("RETRYX_RUN_ID={id}")];
        if let Some(last) = last {
            expected.push("RETRYX_RUN_LAST_CLASS=transient".into());
            expected.push(format!("RETRYX_RUN_LAST_EXIT={last}"));
        }
        expected.push("RETRYX_RUN_MAX_ATTEMPTS=4".into());
        assert_eq!(facts, expected);
    }
}

#[test]
fn facts_without_a_limit_say_so() {
    let lab = Lab::new();
    let run = lab.run("-n unlimited").sh("echo $RETRYX_RUN_MAX_ATTEMPTS ${RETRYX_RUN_DEADLINE_MS-none}").finish();
    assert_eq!(run.text(), "unlimited none\n");
}

#[test]
fn the_environment_is_passed_on_byte_for_byte() {
    let lab = Lab::new();
    let odd = [
        ("ODD", &b"\xff\xfe=\n x"[..]),
        ("EMPTY", b""),
        ("SPACE", b"  a  "),
        ("retryx_run_id", b"mine"),
        ("RETRYX_RUNNER", b"mine"),
    ];
    let direct = lab.program("env").args(["-0"]).envs(&odd).finish();
    let wrapped = lab.run("").command(&["env", "-0"]).envs(&odd).finish();
    let entries = |output: &[u8]| -> Vec<Vec<u8>> {
        let entries = output.split(|&byte| byte == 0).map(<[u8]>::to_vec);
        entries.filter(|entry| !entry.starts_with(b"RETRYX_RUN_")).collect()
    };
    assert_eq!(entries(&wrapped.stdout), entries(&direct.stdout));
}

#[test]
fn an_inner_retryx_is_bound_to_nothing_by_the_outer_and_says_at_v_that_it_is_inside() {
    let lab = Lab::new();
    let inner = "retryx -v -n 3 --base-delay 0 -- sh -c 'echo $RETRYX_RUN_ATTEMPT/$RETRYX_RUN_MAX_ATTEMPTS \
                 ${RETRYX_RUN_LAST_EXIT-none} ${RETRYX_RUN_DEADLINE_MS-none}; exit 4'";
    let run = lab.run("-n 2 --base-delay 0 --deadline 1000").sh(inner).finish();
    run.exited(4).stopped(2, "attempts");
    let once = "1/3 none none\n2/3 4 none\n3/3 4 none\n";
    assert_eq!(run.text(), format!("{once}{once}"));
    let id = run.last()["run_id"].as_str().unwrap();
    run.says(&[&format!("inside attempt 1 of 2 of the retryx run {id}"), "inside attempt 2 of 2"]);
}

#[test]
fn facts_that_lie_about_a_run_change_nothing() {
    let lab = Lab::new();
    let lies = [
        ("RETRYX_RUN_ID", &b"\xff\x1b[31m\n"[..]),
        ("RETRYX_RUN_ATTEMPT", b"-1"),
        ("RETRYX_RUN_MAX_ATTEMPTS", b"0"),
        ("RETRYX_RUN_LAST_EXIT", b"999"),
        ("RETRYX_RUN_LAST_CLASS", b"success"),
        ("RETRYX_RUN_DEADLINE_MS", b"0"),
    ];
    let run = lab.run("-n 2 --base-delay 0 -v").envs(&lies).sh("env | grep -c RETRYX_RUN_; exit 1").finish();
    run.exited(1).stopped(2, "attempts");
    assert_eq!(run.text(), "3\n5\n");
    assert!(run.messages().iter().all(|line| !line.contains('\x1b')));
}

#[test]
fn the_shell_fails_where_any_part_of_the_string_fails() {
    let lab = Lab::new();
    for (string, code, attempts) in [
        ("exit 0", 0, 1),
        ("exit 42", 42, 2),
        ("false | true", 1, 2),
        ("false; true", 1, 2),
        ("true | false", 1, 2),
        ("sh -c 'exit 5' | cat", 5, 2),
        ("false || true", 0, 1),
        ("if false; then :; fi", 0, 1),
        ("kill -9 $$", -1, 2),
        ("no-such-program-here", 127, 1),
        ("", 0, 1),
    ] {
        let run = lab.run("-n 2 --base-delay 0 --shell").arg("--").arg(string).finish();
        assert_eq!(run.status.code().unwrap_or(-1), code, "{string}: {}", run.stderr);
        assert_eq!(run.last()["attempts"], attempts, "{string}");
    }
}

#[test]
fn the_shell_sees_the_string_as_it_is() {
    let lab = Lab::new();
    let string = "printf '[%s]' 'a  b' \"it's\" '*' '$HOME' \"$D\" `echo id` $0 \"$#\"; x=1; echo $x";
    let run = lab.run("--shell").arg("--").arg(string).finish();
    run.exited(0);
    assert_eq!(
        run.text(),
        format!("[a  b][it's][*][$HOME][{}][id][sh][0]1\n", lab.path("").to_str().unwrap().trim_end_matches('/'))
    );
}
