//! Whole runs around the real AWS CLI, whose preset knows its operations and its retries.

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::aws::{Version, cli};
use crate::aws_endpoint::{Answer, Endpoint, bare, json as json_error, query, s3, success};
use crate::support::{Lab, number, numbers, skipped};

/// A run, or what this machine lacks for it.
type Body = fn(&Lab) -> Result<(), String>;

/// All of them.
pub fn trials() -> Vec<Trial> {
    let all: [(&str, Body); 9] = [
        ("aws_throttled_twice", throttled_twice),
        ("aws_denied_once_and_for_all", denied),
        ("aws_dynamodb_has_its_own_defaults", dynamodb),
        ("aws_dynamodb_defaults_yield_to_options", dynamodb_with_options),
        ("aws_long_polling_sleeps_before_it_gives_up", long_polling),
        ("aws_sole_retrier_v1", |lab| sole_retrier(lab, Version::V1)),
        ("aws_sole_retrier_v2", |lab| sole_retrier(lab, Version::V2)),
        ("aws_a_user_s_rule_goes_first", own_rule),
        ("aws_other_ways_to_write_an_error", |lab| {
            other_formats(lab);
            Ok(())
        }),
    ];
    let trial = |(name, body): (&str, Body)| {
        Trial::test(name, move || -> Result<(), Failed> {
            if let Err(lacking) = body(&Lab::new()) {
                skipped(&lacking);
            }
            Ok(())
        })
    };
    all.into_iter().map(trial).collect()
}

fn identity() -> Answer {
    let result = "<GetCallerIdentityResult><Account>1</Account></GetCallerIdentityResult>";
    success("text/xml", &format!("<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"))
}

fn throttled_twice(lab: &Lab) -> Result<(), String> {
    let slow = query(400, "Throttling", "Rate exceeded");
    for version in [Version::V1, Version::V2] {
        let endpoint = Endpoint::start(&[slow.clone(), slow.clone(), identity()]);
        let options = "-n 3 --jitter none --throttle-base-delay 0.3 --base-delay 0.01";
        let finished = cli(lab, options, version, &endpoint.url(), "sts get-caller-identity")?.finish();
        finished.exited(0).stopped(3, "success");
        assert_eq!(numbers(&finished.of("retry_scheduled"), "base_ms"), [300.0, 300.0]);
        assert_eq!(numbers(&finished.of("retry_scheduled"), "delay_ms"), [300.0, 600.0]);
        let codes = finished.each("attempt_finished", "error_code");
        assert_eq!(codes, [json!("Throttling"), json!("Throttling"), Value::Null]);
        assert_eq!(endpoint.requests(), 3);
        assert!(finished.text().contains("\"Account\": \"1\""), "{}", finished.text());
    }
    Ok(())
}

fn denied(lab: &Lab) -> Result<(), String> {
    for (version, code) in [(Version::V1, 255), (Version::V2, 254)] {
        let endpoint = Endpoint::start(&[s3(403, "AccessDenied", "Access Denied")]);
        let finished = cli(lab, "-n 5", version, &endpoint.url(), "s3api list-buckets")?.finish();
        finished.exited(code).stopped(1, "permanent").says(&["An error occurred (AccessDenied)", "retryx: "]);
        assert_eq!(endpoint.requests(), 1);
    }
    Ok(())
}

fn dynamodb(lab: &Lab) -> Result<(), String> {
    let endpoint = Endpoint::start(&[json_error(500, "InternalServerError", "m")]);
    let words = "--output json --region us-east-2 dynamodb list-tables";
    let finished = cli(lab, "--jitter none", Version::V1, &endpoint.url(), words)?.finish();
    finished.stopped(4, "attempts");
    assert_eq!(numbers(&finished.of("retry_scheduled"), "base_ms"), [25.0; 3]);
    assert_eq!(numbers(&finished.of("retry_scheduled"), "delay_ms"), [25.0, 50.0, 100.0]);
    assert_eq!(endpoint.requests(), 4);
    Ok(())
}

fn dynamodb_with_options(lab: &Lab) -> Result<(), String> {
    let endpoint = Endpoint::start(&[bare(503)]);
    let run = cli(lab, "--jitter none -n 2 --base-delay 0.01", Version::V2, &endpoint.url(), "dynamodb list-tables")?;
    let finished = run.finish();
    finished.stopped(2, "attempts");
    assert_eq!(numbers(&finished.of("retry_scheduled"), "delay_ms"), [10.0]);
    Ok(())
}

fn long_polling(lab: &Lab) -> Result<(), String> {
    for (operation, sleeps) in [("receive-message", true), ("get-queue-attributes", false)] {
        let endpoint = Endpoint::start(&[bare(503)]);
        let words = format!("--no-paginate sqs {operation} --queue-url {}/1/queue", endpoint.url());
        let options = "--quota-capacity 1 --jitter none --base-delay 0.3";
        let finished = cli(lab, options, Version::V2, &endpoint.url(), &words)?.finish();
        finished.exited(254).stopped(1, "quota");
        let waited = number(finished.last(), "waited_ms");
        assert_eq!(waited >= 300.0, sleeps, "{operation}: {waited}");
    }
    Ok(())
}

fn sole_retrier(lab: &Lab, version: Version) -> Result<(), String> {
    for (options, alone) in [("-n 2 --base-delay 0 --sole-retrier", true), ("-n 1", false)] {
        let endpoint = Endpoint::start(&[bare(500)]);
        let run = cli(lab, options, version, &endpoint.url(), "sts get-caller-identity")?;
        // Version 1 waits as short as version 2 then.
        let run = run.env("AWS_RETRY_MODE", "standard").env("AWS_NEW_RETRIES_2026", "true").no_env("AWS_MAX_ATTEMPTS");
        let finished = run.finish();
        let attempts = finished.of("attempt_finished").len();
        assert_eq!(attempts == endpoint.requests(), alone, "{attempts} attempts, {} requests", endpoint.requests());
        assert!(alone || endpoint.requests() > 1, "{}", finished.stderr);
    }
    Ok(())
}

fn own_rule(lab: &Lab) -> Result<(), String> {
    let denied = s3(403, "AccessDenied", "Access Denied");
    let endpoint = Endpoint::start(&[
        denied,
        success("application/xml", "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"),
    ]);
    let options = "--retry-on default,error:AccessDenied --base-delay 0";
    let finished = cli(lab, options, Version::V2, &endpoint.url(), "s3api list-buckets")?.finish();
    finished.exited(0).stopped(2, "success");
    Ok(())
}

/// Taken from version 2.36.7, which no package index has, and from versions before 1.5.
fn other_formats(lab: &Lab) {
    let json_format =
        "{\n    \"Message\": \"slow down\",\n    \"Code\": \"CODE\",\n    \"message\": \"slow down\"\n}\n";
    let yaml_format = "Code: CODE\nMessage: slow down\nmessage: slow down\n";
    let enhanced =
        "\naws: [ERROR]: An error occurred (CODE) when calling the ListTables operation (reached max retries: 0): m\n";
    let waiter = "\naws: [ERROR]: Waiter TableExists failed: An error occurred (CODE): m\n";
    let ancient = "A client error (CODE) occurred when calling the ListTables operation: m\n";
    for format in [json_format, yaml_format, enhanced, waiter, ancient] {
        for (code, class, rule) in [
            ("ThrottlingException", "throttling", "aws:code ThrottlingException"),
            ("503", "transient", "aws preset, status 503"),
            ("AccessDeniedException", "permanent", "aws preset, AccessDeniedException"),
        ] {
            let explain = lab.bare("explain --format json --program aws --exit 254 --stderr-text");
            let finished = explain.arg(format.replace("CODE", code)).finish();
            let answer: Value = serde_json::from_str(&finished.text()).expect("JSON");
            assert_eq!((&answer["class"], &answer["rule"]), (&json!(class), &json!(rule)), "{format}");
        }
    }
}
