//! `plan` and `explain`: what would be done, without doing it.

use serde_json::Value;

use crate::support::Lab;

fn plan(lab: &Lab, options: &str) -> Value {
    let run = lab.bare(&format!("plan --format json {options}")).finish();
    run.exited(0);
    serde_json::from_slice(&run.stdout).expect("JSON")
}

fn column(plan: &Value, name: &str) -> Vec<f64> {
    plan["retries"].as_array().expect("rows").iter().map(|row| row[name].as_f64().expect("a number")).collect()
}

#[test]
fn the_tables_are_the_documented_ones() {
    let lab = Lab::new();
    let aws = plan(&lab, "--mode standard -n 12");
    let greatest = [50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 12800.0, 20000.0, 20000.0];
    assert_eq!(column(&aws, "max_ms"), greatest);
    assert_eq!(column(&aws, "mean_ms"), greatest.map(|delay| delay / 2.0));
    assert!(column(&aws, "min_ms").iter().all(|delay| *delay == 0.0));
    let throttling = plan(&lab, "--mode standard -n 12 --class throttling");
    assert_eq!(column(&throttling, "max_ms")[..6], [1000.0, 2000.0, 4000.0, 8000.0, 16000.0, 20000.0]);
    let google = plan(&lab, "--mode google");
    assert_eq!(column(&google, "min_ms")[..6], [1000.0, 2000.0, 4000.0, 8000.0, 16000.0, 32000.0]);
    assert_eq!(column(&google, "max_ms")[..6], [2000.0, 3000.0, 5000.0, 9000.0, 17000.0, 32000.0]);
    assert_eq!(google["ended_by"], "deadline");
    let total = column(&google, "total_mean_ms");
    assert!(total[total.len() - 1] <= 300_000.0 && total[total.len() - 1] + 32_000.0 > 300_000.0);
    assert_eq!(plan(&lab, "--mode google --max-backoff 64")["retries"][6]["max_ms"], 64000.0);
}

#[test]
fn a_plan_ends_where_the_run_would() {
    let lab = Lab::new();
    for (options, rows, by) in [
        ("-n 1", 0, "attempts"),
        ("-n 3", 2, "attempts"),
        ("-n unlimited", 20, "rows"),
        ("-n unlimited --deadline 1h --base-delay 0 --jitter none", 20, "rows"),
        ("--mode fixed -n 9 --deadline 3.5", 3, "deadline"),
        ("--mode fixed -n 9 --deadline 3", 3, "deadline"),
        ("--mode fixed -n 9 --total-timeout 3", 2, "total_timeout"),
        ("-n 99 --quota-capacity 500", 35, "quota"),
        ("-n 99 --quota-capacity 500 --class throttling", 98, "attempts"),
    ] {
        let plan = plan(&lab, options);
        assert_eq!(
            (plan["retries"].as_array().map(Vec::len), &plan["ended_by"]),
            (Some(rows), &by.into()),
            "{options}"
        );
    }
}

#[test]
fn the_plan_and_the_run_agree_draw_by_draw() {
    let lab = Lab::new();
    for options in [
        "--seed 7 -n 6 --base-delay 2ms",
        "--seed 8 -n 6 --base-delay 2ms --jitter equal",
        "--seed 9 -n 4 --mode decorrelated --base-delay 1ms",
        "--seed 10 -n 4 --mode exponential --base-delay 1ms --min-delay 2ms",
        "--seed 11 -n 4 --base-delay 2ms --stagger 3ms",
    ] {
        let planned = column(&plan(&lab, options), "drawn_ms");
        let run = lab.run(&format!("-q {options}")).command(&["false"]).finish();
        assert_eq!(run.each("retry_scheduled", "delay_ms"), planned, "{options}");
    }
}

#[test]
fn options_stand_before_or_after_the_name() {
    let lab = Lab::new();
    let words = ["plan --mode fixed -n 4", "--mode fixed plan -n 4", "--mode fixed -n 4 plan"];
    let texts = words.map(|words| lab.bare(words).finish().text());
    assert!(texts[0].contains("at most 4 attempts"), "{}", texts[0]);
    assert!(texts[1] == texts[0] && texts[2] == texts[0]);
}

#[test]
fn csv_has_a_row_a_retry() {
    let lab = Lab::new();
    let run = lab.bare("plan --mode fixed -n 3 --format csv").finish();
    run.exited(0);
    let lines: Vec<_> = run.text().lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("retry,min_ms,mean_ms,max_ms,drawn_ms,total_min_ms"));
    assert_eq!(lines[1..], ["1,1000,1000,1000,,1000,1000,1000,", "2,1000,1000,1000,,2000,2000,2000,"]);
}

#[test]
fn the_table_says_where_the_cap_bites_and_what_ends_it() {
    let lab = Lab::new();
    let text = lab.bare("plan --mode google").finish().text();
    assert!(text.contains("ends there: the mean delays of one more retry would pass --deadline 5m"), "{text}");
    assert_eq!(text.lines().filter(|line| line.ends_with(" cap")).count(), 8, "{text}");
    assert!(lab.bare("plan -n 1").finish().text().contains("no retry"));
}

fn explain(lab: &Lab, options: &[&str]) -> (String, String) {
    let run = lab.bare("explain --format json").args(options).finish();
    run.exited(0);
    let answer: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let text = |name: &str| answer[name].as_str().expect("text").to_owned();
    (text("class"), text("rule"))
}

#[test]
fn explain_names_class_and_rule() {
    let lab = Lab::new();
    for (options, class, rule) in [
        (&["--exit", "0"][..], "success", "default:success"),
        (&["--exit", "1"], "transient", "default:exit"),
        (&["--exit", "127"], "permanent", "default:cannot-run"),
        (&["--signal", "KILL"], "transient", "default:signal"),
        (&["--signal", "PIPE"], "permanent", "default:broken-pipe"),
        (&["--timed-out"], "transient", "default:timeout"),
        (&["--exit", "75", "--retry-on", "2,75-78"], "transient", "--retry-on 75-78"),
        (&["--exit", "1", "--retry-on", "2,75-78"], "permanent", "--retry-on does not name it"),
        (
            &["--exit", "1", "--stderr-text", "connection reset", "--retry-on", "stderr:/reset/"],
            "transient",
            "--retry-on stderr:/reset/",
        ),
        (
            &["--exit", "0", "--stdout-text", "list could not be loaded", "--retry-on", "0 and output:/could not/"],
            "transient",
            "--retry-on 0 and output:/could not/",
        ),
        (
            &[
                "--exit",
                "255",
                "--program",
                "aws",
                "--stderr-text",
                "An error occurred (SlowDown) when calling the X operation: m",
            ],
            "throttling",
            "aws:code SlowDown",
        ),
        (
            &["--status", "400", "--body", "{\"__type\":\"x#ThrottlingException\"}"],
            "throttling",
            "aws:code ThrottlingException",
        ),
        (&["--status", "400", "--header", "x-amzn-errortype: RequestTimeout"], "transient", "aws:code RequestTimeout"),
        (&["--status", "503"], "transient", "default:http 503"),
        (&["--status", "404"], "permanent", "default:http 404"),
        (&["--status", "429"], "throttling", "default:http 429"),
        (&["--status", "429", "--mode", "google"], "permanent", "default:http 429"),
        (&["--status", "429", "--mode", "google", "--retry-429"], "throttling", "default:http 429"),
        (&["--status", "403", "--header", "X-RateLimit-Remaining: 0"], "throttling", "default:x-ratelimit-remaining 0"),
        (
            &["--status", "500", "--body", "{\"error\":{\"code\":8,\"status\":\"RESOURCE_EXHAUSTED\"}}"],
            "throttling",
            "google:status RESOURCE_EXHAUSTED",
        ),
        (&["--status", "404", "--retry-on", "default,http:404"], "transient", "--retry-on http:404"),
        (
            &["--status", "200", "--body", "x", "--fail-on", "http:2xx and body:/x/"],
            "permanent",
            "--fail-on http:2xx and body:/x/",
        ),
    ] {
        assert_eq!(explain(&lab, options), (class.to_owned(), rule.to_owned()), "{options:?}");
    }
    let text = lab.bare("explain --exit 1").finish().text();
    assert_eq!(text, "class: transient\nrule:  default:exit\n");
}

#[test]
fn explain_refuses_what_it_cannot_answer() {
    let lab = Lab::new();
    for (options, part) in [
        ("explain", "needs an outcome"),
        ("explain --exit 1 --status 503", "two outcomes"),
        ("explain --exit 256", "0 to 255"),
        ("explain --exit x", "0 to 255"),
        ("explain --signal NOPE", "not a signal"),
        ("explain --status 99", "100 to 599"),
        ("explain --exit 1 --body x", "--status"),
        ("explain --status 503 --stderr-text x", "--exit"),
        ("explain --status 503 --stdout-text x", "--exit"),
        ("explain --status 503 --program curl", "--exit"),
        ("explain --status 503 --header nonsense", "Name: value"),
        ("explain --exit 1 cmd", "runs nothing"),
        ("explain --exit 1 --format csv", "text, json"),
        ("plan --format text", "table, json, csv"),
        ("plan --class permanent", "transient, throttling"),
        ("plan --explode", "unknown option"),
        ("explain --explain-config --exit 1", "unknown option"),
    ] {
        let run = lab.bare(options).finish();
        run.exited(125).says(&[part]);
        assert_eq!(run.messages().len(), 1);
    }
}

#[test]
fn help_of_the_subcommands_shows_their_own_options() {
    let lab = Lab::new();
    let plan = lab.bare("plan --help").finish().text();
    assert!(plan.contains("--class") && plan.contains("--max-backoff") && !plan.contains("--stderr-text"), "{plan}");
    let explain = lab.bare("explain -h").finish().text();
    assert!(explain.contains("--stderr-text") && !explain.contains("--explain-config"), "{explain}");
}

#[test]
fn a_plan_of_any_length_is_bounded() {
    let lab = Lab::new();
    for most in ["1000000000", "18446744073709551615"] {
        let run = lab.bare(&format!("plan -n {most} --format csv")).finish();
        run.exited(0);
        assert_eq!(run.text().lines().count(), 200_001);
    }
}
