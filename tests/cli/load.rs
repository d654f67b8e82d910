//! Many runs at once, and many attempts in one.

use crate::support::{Events, Lab};

#[test]
fn two_hundred_runs_at_once_each_do_their_own() {
    let lab = Lab::new();
    let script = "echo x >>$D/m$0; [ $RETRYX_RUN_ATTEMPT = $(($0 % 3 + 1)) ] || exit 1; exec sleep 0.5";
    let start = |number: usize| {
        let options = ["", "--timeout 1000", "--mode google --base-delay 1ms --max-backoff 20ms"][number % 3];
        let run = lab.run("-n 3 --base-delay 20ms").words(options).leashed().sh(script).arg(number.to_string());
        (number, run.start())
    };
    let runs: Vec<_> = (0..200).map(start).collect();
    for (number, run) in runs {
        let attempts = number as u64 % 3 + 1;
        run.finish().exited(0).stopped(attempts, "success").alone();
        assert_eq!(lab.lines(&format!("m{number}")).len() as u64, attempts);
    }
}

#[test]
fn a_thousand_attempts_in_a_row_use_up_nothing() {
    let lab = Lab::new();
    let script = "ulimit -n 16; exec retryx -q -n 1000 --base-delay 0 --timeout 1000 --events $D/e -- false";
    lab.shell(script).leashed().finish().exited(1).alone();
    let last = Events::at(lab.path("e")).wait("stopped", 1);
    assert_eq!(last["attempts"], 1000);
}

#[test]
fn limits_under_load_end_their_own_families_only() {
    let lab = Lab::new();
    let start = |number: usize| {
        let options = if number.is_multiple_of(2) { "-n 1 --timeout 1" } else { "-n 1 --timeout 1000" };
        let run = lab
            .run(options)
            .leashed()
            .sh("setsid sleep 300 & echo $! >$D/pid$0; sleep 3; kill $!")
            .arg(number.to_string());
        (number, run.start())
    };
    let runs: Vec<_> = (0..20).map(start).collect();
    for (number, run) in runs {
        run.finish().exited(if number.is_multiple_of(2) { 124 } else { 0 }).alone();
    }
}
