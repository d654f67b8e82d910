//! Delays that servers ask for (design §7), over the wire.

use std::time::{Duration, SystemTime};

use crate::server::{Answer, Server};
use crate::support::{Finished, Lab, number};

/// Runs with a first answer of these fields and then a good one, but without waiting: the
/// deadline is so near that a wait of a second is refused.
#[track_caller]
fn refused(lab: &Lab, options: &str, fields: &[&str]) -> Finished {
    let server = Server::new([Answer::new(503, fields, ""), Answer::new(200, &[], "good")]);
    lab.run(options).arg("http").arg(server.url("/")).finish()
}

/// What the server asked for, in seconds, where the run ended for it.
#[track_caller]
fn wanted(run: &Finished) -> f64 {
    run.exited(22).stopped(1, "server_delay").says(&["asked to stay away"]);
    number(run.last(), "server_delay_ms") / 1000.0
}

/// A date in one of the three forms.
fn date(moment: SystemTime, form: usize) -> String {
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    let text = httpdate::fmt_http_date(moment);
    let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
    let weekday = match &text[..3] {
        "Mon" => "Monday",
        "Tue" => "Tuesday",
        "Wed" => "Wednesday",
        "Thu" => "Thursday",
        "Fri" => "Friday",
        "Sat" => "Saturday",
        _ => "Sunday",
    };
    match form {
        0 => text,
        1 => format!("{weekday}, {day}-{month}-{} {time} GMT", &year[2..]),
        _ => format!("{} {month} {:>2} {time} {year}", &text[..3], day.trim_start_matches('0')),
    }
}

fn epoch(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Seconds since 1970 of now, asked of the system's own program.
fn now(lab: &Lab) -> u64 {
    lab.tool("date", &["+%s"]).trim().parse().expect("a number")
}

// B70, B79, B119.
#[test]
fn the_latest_answers_header_sets_the_wait() {
    let lab = Lab::new();
    for words in ["", "--fail"] {
        let server = Server::new([
            Answer::new(429, &["Retry-After: 1"], ""),
            Answer::new(503, &[], ""),
            Answer::new(200, &[], "good"),
        ]);
        let options = "--base-delay 100ms --throttle-base-delay 100ms --jitter none http";
        let run = lab.run(options).words(words).arg(server.url("/")).finish();
        run.exited(0).stopped(3, "success");
        assert_eq!(run.text(), "good");
        assert_eq!(run.each("retry_scheduled", "delay_ms"), [1000.0, 200.0]);
        assert_eq!(run.each("retry_scheduled", "delay_source"), ["server", "backoff"]);
        let gaps = server.gaps();
        assert!(gaps[0] >= 1.0 && gaps[1] >= 0.2, "{gaps:?}");
        run.says(&["retrying in 1 s", "retrying in 200 ms"]);
    }
}

// B72.
#[test]
fn a_shorter_wait_than_ours_is_none() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &["Retry-After: 1"], ""), Answer::new(200, &[], "good")]);
    let run = lab.run("--base-delay 1.2 --jitter none http").arg(server.url("/")).finish();
    run.exited(0);
    assert_eq!(run.each("retry_scheduled", "delay_ms"), [1200.0]);
    assert_eq!(run.each("retry_scheduled", "server_delay_ms"), [1000.0]);
    assert!(server.gaps()[0] >= 1.2);
}

#[test]
fn a_random_part_is_added_but_not_without_jitter() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &["Retry-After: 1"], ""), Answer::new(200, &[], "good")]);
    let run = lab.run("--base-delay 1ms http").arg(server.url("/")).finish();
    run.exited(0);
    let delay = number(&run.of("retry_scheduled")[0], "delay_ms");
    assert!((1000.0..=1100.0).contains(&delay), "{delay}");
    assert!(server.gaps()[0] >= delay / 1000.0);
}

// B74, B75, B76, B78.
#[test]
fn every_form_of_retry_after_is_read() {
    let lab = Lab::new();
    let digits = "9".repeat(400);
    let many = "8".repeat(8192);
    for (value, seconds) in [
        ("400", 400.0),
        ("  300  ", 300.0),
        ("300.75", 301.0),
        ("100.0", 100.0),
        ("007200", 7200.0),
        ("8888888888", 8_888_888_888.0),
    ] {
        let run = refused(&lab, "--base-delay 1ms", &[&format!("Retry-After: {value}")]);
        assert!((wanted(&run) - seconds).abs() < 1e-6, "{value}: {}", run.stderr);
    }
    for value in ["18446744073709551616", &digits, &many] {
        for options in ["", "--deadline 1000", "--total-timeout 1000", "--max-retry-after 1y"] {
            let run = refused(&lab, options, &[&format!("Retry-After: {value}")]);
            run.exited(22).stopped(1, "server_delay").says(&["asked to stay away"]);
        }
    }
    // Of several headers the longest counts, whatever their order.
    for fields in [["Retry-After: 200", "retry-after: 900"], ["Retry-After: 900", "Retry-After: soon"]] {
        assert!((wanted(&refused(&lab, "", &fields)) - 900.0).abs() < 1e-6);
    }
}

#[test]
fn dates_count_from_the_answers_own_date() {
    let lab = Lab::new();
    for form in 0..3 {
        // A server whose clock is years off.
        let fields = [
            format!("Date: {}", httpdate::fmt_http_date(epoch(784_111_777))),
            format!("Retry-After: {}", date(epoch(784_111_777 + 500), form)),
        ];
        let run = refused(&lab, "", &fields.each_ref().map(String::as_str));
        assert!((wanted(&run) - 500.0).abs() < 1e-6, "{form}: {}", run.stderr);
        // Without one of its own, from ours.
        let in_time = date(epoch(now(&lab) + 1000), form);
        let run = refused(&lab, "", &[&format!("Retry-After: {in_time}")]);
        let seconds = wanted(&run);
        assert!(seconds > 800.0 && seconds <= 1000.0, "{form}: {seconds}");
        // What is past, or now, is the ordinary delay.
        for past in [784_111_777, now(&lab)] {
            let fields = [format!("Retry-After: {}", date(epoch(past), form))];
            let run = refused(&lab, "--base-delay 1ms --jitter none", &fields.each_ref().map(String::as_str));
            run.exited(0);
            assert_eq!(run.each("retry_scheduled", "delay_ms"), [1.0]);
        }
    }
}

// B76, B78.
#[test]
fn junk_is_ignored_and_said_to_who_asks() {
    let lab = Lab::new();
    let zero = refused(&lab, "--base-delay 1ms --jitter none -v", &["Retry-After: 0"]);
    zero.exited(0);
    assert!(!zero.stderr.contains("ignored"), "{}", zero.stderr);
    for value in [
        "-5",
        "nan",
        "inf",
        "1e400",
        "",
        "+3",
        "0x10",
        "3;a",
        "soon",
        "1 Jan 2099 00:00:00",
        "30 Nov",
        "SUN, 06 NOV 2094 08:49:37 GMT",
        "\u{665}\u{665}",
    ] {
        let field = format!("Retry-After: {value}");
        let run = refused(&lab, "--base-delay 1ms --jitter none -v", &[&field]);
        run.exited(0).stopped(2, "success").says(&["retry-after", "it is ignored", value]);
        assert_eq!(run.each("retry_scheduled", "delay_ms"), [1.0], "{value}");
        let quiet = refused(&lab, "--base-delay 1ms --jitter none", &[&field]);
        quiet.exited(0);
        assert!(!quiet.stderr.contains("ignored"));
    }
    let server = Server::new([
        Answer::raw(b"HTTP/1.1 503 x\r\nRetry-After: \xff\xfe\r\nContent-Length: 0\r\n\r\n"),
        Answer::new(200, &[], "good"),
    ]);
    lab.run("--base-delay 1ms -v http").arg(server.url("/")).finish().exited(0).says(&["it is ignored"]);
}

#[test]
fn the_aws_header_counts_in_two_modes() {
    let lab = Lab::new();
    let fields = ["x-amz-retry-after: 700", "Retry-After: 9999"];
    for mode in ["standard", "adaptive"] {
        let run = refused(&lab, &format!("--mode {mode} --base-delay 100ms --jitter none"), &fields);
        run.exited(0);
        assert_eq!(run.each("retry_scheduled", "delay_ms"), [700.0], "{mode}");
        // It is held within five seconds of the delay by formula, which no limit touches.
        let far = ["x-amz-retry-after: 99999999999"];
        let run = refused(&lab, &format!("--mode {mode} --base-delay 100ms --jitter none --deadline 3"), &far);
        run.exited(22).stopped(1, "deadline");
    }
    for mode in ["google", "legacy", "fixed", "exponential"] {
        assert!((wanted(&refused(&lab, &format!("--mode {mode}"), &fields)) - 9999.0).abs() < 1e-6, "{mode}");
    }
    let run = refused(&lab, "-v --base-delay 1ms --jitter none", &["x-amz-retry-after: 1.5"]);
    run.exited(0).says(&["x-amz-retry-after: '1.5'", "it is ignored"]);
}

#[test]
fn rate_limit_headers_serve_where_retry_after_is_missing() {
    let lab = Lab::new();
    let at = format!("x-ratelimit-reset: {}", now(&lab) + 1000);
    let seconds = wanted(&refused(&lab, "", &[&at]));
    assert!(seconds > 800.0 && seconds <= 1000.0, "{seconds}");
    let skewed = ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "x-ratelimit-reset: 784112277"];
    assert!((wanted(&refused(&lab, "", &skewed)) - 500.0).abs() < 1e-6);
    assert!((wanted(&refused(&lab, "", &["RateLimit-Reset: 300"])) - 300.0).abs() < 1e-6);
    assert!((wanted(&refused(&lab, "", &[&at, "Retry-After: 200"])) - 200.0).abs() < 1e-6);
    refused(&lab, "", &["x-ratelimit-reset: 99999999999999999999999"]).exited(22).stopped(1, "server_delay");
    refused(&lab, "--base-delay 1ms", &["x-ratelimit-reset: 12"]).exited(0);
    let run = refused(&lab, "-v --base-delay 1ms", &["x-ratelimit-reset: tomorrow"]);
    run.exited(0).says(&["x-ratelimit-reset: 'tomorrow'"]);
}

#[test]
fn beyond_a_limit_the_run_stops_at_once_and_says_until_when() {
    let lab = Lab::new();
    for (options, seconds) in [
        ("", 61),
        ("--mode google --deadline 300", 400),
        ("--max-retry-after 5", 6),
        ("--deadline 3", 4),
        ("--total-timeout 3", 4),
        ("--mode google", 61),
        ("--mode linear", 3601),
    ] {
        let before = now(&lab);
        let run = refused(&lab, options, &[&format!("Retry-After: {seconds}")]);
        let after = now(&lab);
        run.exited(22).stopped(1, "server_delay");
        let (_, until) = run.stderr.split_once("until ").unwrap_or_else(|| panic!("no moment in: {}", run.stderr));
        let until = &until[..20];
        let moment = lab.tool("date", &["-d", until, "+%s"]).trim().parse::<u64>().expect("a moment");
        assert!((before + seconds..=after + seconds).contains(&moment), "{until}: {}", run.stderr);
    }
    // The header sets the wait; it makes nothing a failure that can pass.
    let server = Server::new([Answer::new(404, &["Retry-After: 1"], "")]);
    lab.run("http").arg(server.url("/")).finish().exited(22).stopped(1, "permanent");
    // What no calendar has is no moment.
    let run = refused(&lab, "", &["Retry-After: 999999999999999"]);
    run.exited(22).says(&["asked to stay away"]);
    assert!(!run.stderr.contains("until"), "{}", run.stderr);
}
