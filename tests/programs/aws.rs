//! The AWS CLI, version 1 (a virtual environment of `.ci/install`) and version 2 (Debian's).

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::Case;
use crate::aws_endpoint::{Answer, Endpoint, bare, ec2, json, query, rest_json, s3, success};
use crate::support::{Finished, Lab, Run, command};

/// A version of the CLI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 1, which exits 255 for nearly everything.
    V1,
    /// 2.
    V2,
}
use Version::{V1, V2};

impl Version {
    /// Where it is installed.
    pub fn program(self) -> Result<PathBuf, String> {
        let path = match self {
            V1 => Path::new(env!("CARGO_TARGET_TMPDIR")).join("awscli-1/bin/aws"),
            V2 => PathBuf::from("/usr/bin/aws"),
        };
        if path.exists() { Ok(path) } else { Err(format!("{} is missing: run .ci/install", path.display())) }
    }
}

/// Where nobody listens.
const NOBODY: &str = "http://127.0.0.1:1";

/// `retryx OPTIONS -- aws --endpoint-url URL WORDS`, with a key, a region, and no other
/// retries than those of retryx.
pub fn cli<'a>(lab: &'a Lab, options: &str, version: Version, url: &str, words: &str) -> Result<Run<'a>, String> {
    let program = version.program()?;
    let run = lab.run(options).arg("--").arg(program).args(["--endpoint-url", url]).words(words);
    Ok(run
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_MAX_ATTEMPTS", "1"))
}

/// The CLI against an endpoint that answers like this.
fn answered(lab: &Lab, version: Version, answers: &[Answer], words: &str) -> Result<Finished, String> {
    lab.write("one", "1");
    let endpoint = Endpoint::start(answers);
    Ok(cli(lab, "-n 1", version, &endpoint.url(), words)?.finish())
}

/// The CLI against nobody, with a variable set, or taken away where it is empty.
fn alone(lab: &Lab, version: Version, (name, value): (&str, &str), words: &str) -> Result<Finished, String> {
    lab.write("one", "1");
    let run = cli(lab, "-n 1", version, NOBODY, words)?;
    let run = if value.is_empty() { run.no_env(name) } else { run.env(name, value) };
    Ok(run.finish())
}

/// An upload of two files, one after the other.
fn two_transfers(lab: &Lab, version: Version, first: Answer) -> Result<Finished, String> {
    std::fs::create_dir(lab.path("two")).expect("a folder");
    lab.write("two/a", "a");
    lab.write("two/b", "b");
    let config = lab.write("aws-config", "[default]\ns3 =\n  max_concurrent_requests = 1\n");
    let endpoint = Endpoint::start(&[first, s3(403, "AccessDenied", "Access Denied")]);
    let run = cli(lab, "-n 1", version, &endpoint.url(), "s3 cp --recursive two s3://bucket")?;
    Ok(run.env("AWS_CONFIG_FILE", config).finish())
}

/// A server with a certificate that nobody trusts.
struct TlsServer(Child);

impl TlsServer {
    /// Starts it, and returns its port.
    fn start(lab: &Lab) -> Result<(Self, String), String> {
        if !crate::support::has_programs(&["openssl"]) {
            return Err("openssl is missing".into());
        }
        let words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost";
        lab.tool("openssl", &words.split(' ').collect::<Vec<_>>());
        let words = "s_server -accept 127.0.0.1:0 -www -key key.pem -cert cert.pem";
        let mut server = command("openssl");
        server.args(words.split(' ')).current_dir(lab.path("")).stdin(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(server.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?);
        let mut lines = BufReader::new(server.0.stdout.take().ok_or("no output")?).lines().map_while(Result::ok);
        let port = |line: String| line.strip_prefix("ACCEPT 127.0.0.1:").map(str::to_owned);
        let port = lines.find_map(port).ok_or("openssl s_server does not start")?;
        Ok((server, port))
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn untrusted(lab: &Lab, version: Version, words: &str) -> Result<Finished, String> {
    lab.write("one", "1");
    let (_server, port) = TlsServer::start(lab)?;
    Ok(cli(lab, "-n 1", version, &format!("https://127.0.0.1:{port}"), words)?.finish())
}

const SIGNATURE: &str = "The request signature we calculated does not match the signature you provided.";
const ONE_ERROR: &str =
    "1 validation error detected: Value &apos;x&apos; at &apos;y&apos; failed to satisfy constraint";
const EXPIRED: &str = "Signature expired: 20200101T000000Z is now earlier than 20200101T010000Z";
const GET_ITEM: &str = r#"dynamodb get-item --table-name table --key {"k":{"S":"v"}}"#;
const ROLE: &str = "The role defined for the function cannot be assumed by Lambda.";

const fn case(
    class: &'static str,
    row: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "aws", row, class, how, provoke }
}

const fn permanent(row: &'static str, how: &'static str, provoke: fn(&Lab) -> Result<Finished, String>) -> Case {
    case("permanent", row, how, provoke)
}

const fn transient(row: &'static str, how: &'static str, provoke: fn(&Lab) -> Result<Finished, String>) -> Case {
    case("transient", row, how, provoke)
}

const fn throttling(row: &'static str, how: &'static str, provoke: fn(&Lab) -> Result<Finished, String>) -> Case {
    case("throttling", row, how, provoke)
}

/// Each way that the AWS CLI was brought to fail.
pub const CASES: &[Case] = &[
    // What the lists of AWS know, whatever the protocol.
    throttling("aws:code ThrottlingException", "v1", |lab| {
        answered(lab, V1, &[json(400, "ThrottlingException", "m")], "dynamodb list-tables")
    }),
    throttling("aws:code ThrottlingException", "kms v2", |lab| {
        answered(lab, V2, &[json(400, "ThrottlingException", "m")], "kms list-keys")
    }),
    throttling("aws:code Throttling", "v2", |lab| {
        answered(lab, V2, &[query(400, "Throttling", "Rate exceeded")], "sts get-caller-identity")
    }),
    throttling("aws:code SlowDown", "v2", |lab| answered(lab, V2, &[s3(503, "SlowDown", "m")], "s3api list-buckets")),
    throttling("aws:code SlowDown", "transfer v1", |lab| {
        answered(lab, V1, &[s3(503, "SlowDown", "m")], "s3 cp one s3://bucket/key")
    }),
    throttling("aws:code RequestLimitExceeded", "v1", |lab| {
        answered(lab, V1, &[ec2(503, "RequestLimitExceeded", "m")], "ec2 describe-instances")
    }),
    throttling("aws:code TooManyRequestsException", "v1", |lab| {
        answered(lab, V1, &[rest_json(429, "TooManyRequestsException", "m")], "lambda list-functions")
    }),
    throttling("status 429", "v1", |lab| answered(lab, V1, &[bare(429)], "lambda list-functions")),
    throttling("status 429", "v2", |lab| answered(lab, V2, &[bare(429)], "dynamodb list-tables")),
    throttling("a transfer throttled", "v1", |lab| two_transfers(lab, V1, s3(503, "SlowDown", "m"))),
    throttling("a transfer throttled", "v2", |lab| two_transfers(lab, V2, s3(503, "SlowDown", "m"))),
    transient("aws:code RequestTimeout", "v1", |lab| {
        answered(lab, V1, &[s3(400, "RequestTimeout", "m")], "s3api list-buckets")
    }),
    transient("aws:code InternalError", "v2", |lab| {
        answered(lab, V2, &[s3(500, "InternalError", "m")], "s3api list-buckets")
    }),
    // Statuses in place of a code.
    transient("status 503", "v1", |lab| answered(lab, V1, &[bare(503)], "sts get-caller-identity")),
    transient("status 503", "fatal v2", |lab| answered(lab, V2, &[bare(503)], "s3 cp s3://bucket/key here")),
    transient("status 500", "v2", |lab| answered(lab, V2, &[bare(500)], "sqs list-queues")),
    permanent("status 404", "v1", |lab| answered(lab, V1, &[bare(404)], "s3api head-object --bucket bucket --key k")),
    permanent("status 404", "fatal v2", |lab| answered(lab, V2, &[bare(404)], "s3 cp s3://bucket/key here")),
    permanent("status 400", "v1", |lab| answered(lab, V1, &[bare(400)], "dynamodb list-tables")),
    transient("a bad request without a reason", "v2", |lab| {
        answered(lab, V2, &[bare(400)], "s3 cp s3://bucket/key here")
    }),
    permanent("status 403", "waiter v1", |lab| {
        answered(lab, V1, &[bare(403)], "s3api wait object-exists --bucket bucket --key k")
    }),
    permanent("status 403", "waiter v2", |lab| {
        answered(lab, V2, &[bare(403)], "s3api wait object-exists --bucket bucket --key k")
    }),
    // Codes of a service that does not know what ails it.
    transient("default:exit", "ServiceUnavailable v1", |lab| {
        answered(lab, V1, &[s3(503, "ServiceUnavailable", "m")], "s3api list-buckets")
    }),
    transient("default:exit", "InternalFailure v2", |lab| {
        answered(lab, V2, &[query(500, "InternalFailure", "m")], "sts get-caller-identity")
    }),
    transient("default:exit", "InternalServerError v2", |lab| {
        answered(lab, V2, &[json(500, "InternalServerError", "m")], "dynamodb list-tables")
    }),
    // Refusals that time may mend.
    transient("a signature out of its time", "v1", |lab| {
        answered(lab, V1, &[query(403, "SignatureDoesNotMatch", EXPIRED)], "sts get-caller-identity")
    }),
    transient("default:exit", "SignatureDoesNotMatch v2", |lab| {
        answered(lab, V2, &[query(403, "SignatureDoesNotMatch", "m")], "sts get-caller-identity")
    }),
    transient("default:exit", "ExpiredToken v2", |lab| {
        answered(lab, V2, &[query(403, "ExpiredToken", "m")], "sts get-caller-identity")
    }),
    transient("default:exit", "RequestTimeTooSkewed v1", |lab| {
        answered(lab, V1, &[s3(403, "RequestTimeTooSkewed", "m")], "s3api list-buckets")
    }),
    transient("default:exit", "NoSuchBucket v1", |lab| {
        answered(lab, V1, &[s3(404, "NoSuchBucket", "m")], "s3 ls s3://bucket")
    }),
    transient("default:exit", "ResourceNotFoundException v2", |lab| {
        answered(lab, V2, &[json(400, "ResourceNotFoundException", "m")], GET_ITEM)
    }),
    transient("default:exit", "InvalidParameterValueException v2", |lab| {
        answered(lab, V2, &[rest_json(400, "InvalidParameterValueException", ROLE)], "lambda list-functions")
    }),
    transient("default:exit", "InvalidParameterValue v1", |lab| {
        let message = "Value (x) for parameter iamInstanceProfile.name is invalid.";
        answered(lab, V1, &[ec2(400, "InvalidParameterValue", message)], "ec2 describe-instances")
    }),
    transient("default:exit", "ValidationException v2", |lab| {
        let message = "Cannot read from backfilling global secondary index";
        answered(lab, V2, &[json(400, "ValidationException", message)], GET_ITEM)
    }),
    // The network.
    transient("default:exit", "refused v1", |lab| alone(lab, V1, ("X", ""), "sts get-caller-identity")),
    transient("a transfer that may pass", "refused v2", |lab| alone(lab, V2, ("X", ""), "s3 cp one s3://bucket/key")),
    transient("default:exit", "refused fatal v2", |lab| alone(lab, V2, ("X", ""), "s3 cp s3://bucket/key here")),
    transient("default:exit", "unresolved v2", |lab| {
        Ok(cli(lab, "-n 1", V2, "http://retryx.invalid", "sts get-caller-identity")?.finish())
    }),
    transient("default:exit", "proxy v1", |lab| alone(lab, V1, ("HTTP_PROXY", NOBODY), "sts get-caller-identity")),
    transient("default:exit", "dropped v1", |lab| answered(lab, V1, &[Answer::Drops], "sts get-caller-identity")),
    transient("default:exit", "dropped v2", |lab| {
        answered(lab, V2, &[Answer::Drops], "s3api head-object --bucket bucket --key k")
    }),
    transient("default:exit", "read timeout v1", |lab| {
        answered(lab, V1, &[Answer::Hangs], "--cli-read-timeout 1 sts get-caller-identity")
    }),
    transient("default:exit", "no xml v1", |lab| answered(lab, V1, &[bare(429)], "sts get-caller-identity")),
    transient("a transfer that may pass", "dropped v1", |lab| two_transfers(lab, V1, Answer::Drops)),
    transient("a transfer that may pass", "503 v2", |lab| two_transfers(lab, V2, bare(503))),
    transient("default:exit", "quiet transfer v1", |lab| {
        answered(lab, V1, &[s3(403, "AccessDenied", "m")], "s3 cp --quiet one s3://bucket/key")
    }),
    transient("default:exit", "skipped file v2", |lab| {
        std::os::unix::fs::symlink("nowhere", lab.path("dangling")).expect("a link");
        answered(lab, V2, &[success("application/xml", "")], "s3 cp --recursive . s3://bucket --exclude run-*")
    }),
    // Access and keys.
    permanent("AccessDenied", "v1", |lab| {
        answered(lab, V1, &[s3(403, "AccessDenied", "Access Denied")], "s3api list-buckets")
    }),
    permanent("AccessDenied", "transfer v2", |lab| {
        answered(lab, V2, &[s3(403, "AccessDenied", "Access Denied")], "s3 cp one s3://bucket/key")
    }),
    permanent("AccessDeniedException", "v2", |lab| {
        answered(lab, V2, &[json(400, "AccessDeniedException", "m")], "dynamodb list-tables")
    }),
    permanent("UnauthorizedOperation", "v2", |lab| {
        answered(lab, V2, &[ec2(403, "UnauthorizedOperation", "m")], "ec2 describe-instances")
    }),
    permanent("InvalidClientTokenId", "v1", |lab| {
        answered(lab, V1, &[query(403, "InvalidClientTokenId", "m")], "iam list-users")
    }),
    permanent("UnrecognizedClientException", "v1", |lab| {
        answered(lab, V1, &[json(400, "UnrecognizedClientException", "m")], "kms list-keys")
    }),
    permanent("InvalidAccessKeyId", "v2", |lab| {
        answered(lab, V2, &[s3(403, "InvalidAccessKeyId", "m")], "s3api list-buckets")
    }),
    permanent("SignatureDoesNotMatch", "v1", |lab| {
        answered(lab, V1, &[query(403, "SignatureDoesNotMatch", SIGNATURE)], "sts get-caller-identity")
    }),
    permanent("SignatureDoesNotMatch", "s3 v2", |lab| {
        answered(lab, V2, &[s3(403, "SignatureDoesNotMatch", SIGNATURE)], "s3 ls")
    }),
    permanent("InvalidSignatureException", "v2", |lab| {
        answered(lab, V2, &[json(400, "InvalidSignatureException", SIGNATURE)], "dynamodb list-tables")
    }),
    permanent("untrusted certificate", "v1", |lab| untrusted(lab, V1, "sts get-caller-identity")),
    permanent("untrusted certificate", "v2", |lab| untrusted(lab, V2, "s3 cp one s3://bucket/key")),
    // Requests that are wrong in themselves.
    permanent("NoSuchKey", "v2", |lab| {
        answered(lab, V2, &[s3(404, "NoSuchKey", "m")], "s3api get-object --bucket bucket --key k here")
    }),
    permanent("malformed request", "v1", |lab| {
        let message = ONE_ERROR.replace("&apos;", "'");
        answered(lab, V1, &[json(400, "ValidationException", &message)], GET_ITEM)
    }),
    permanent("malformed request", "v2", |lab| {
        answered(lab, V2, &[query(400, "ValidationError", ONE_ERROR)], "cloudformation list-stacks")
    }),
    permanent("malformed item or expression", "key v1", |lab| {
        let message = "One or more parameter values were invalid: Missing the key id in the item";
        answered(lab, V1, &[json(400, "ValidationException", message)], GET_ITEM)
    }),
    permanent("malformed item or expression", "schema v2", |lab| {
        let message = "The provided key element does not match the schema";
        answered(lab, V2, &[json(400, "ValidationException", message)], GET_ITEM)
    }),
    permanent("malformed item or expression", "expression v1", |lab| {
        let message = "Invalid ProjectionExpression: Syntax error";
        answered(lab, V1, &[json(400, "ValidationException", message)], GET_ITEM)
    }),
    permanent("malformed identifier", "v1", |lab| {
        answered(lab, V1, &[ec2(400, "InvalidInstanceID.Malformed", "m")], "ec2 describe-instances")
    }),
    permanent("DryRunOperation", "v2", |lab| {
        answered(lab, V2, &[ec2(412, "DryRunOperation", "m")], "ec2 describe-instances --dry-run")
    }),
    // The command line.
    permanent("wrong command line", "operation v2", |lab| alone(lab, V2, ("X", ""), "sts no-such-operation")),
    permanent("wrong command line", "option v2", |lab| alone(lab, V2, ("X", ""), "sts get-caller-identity --frob")),
    permanent("wrong command line", "parameter v2", |lab| {
        alone(lab, V2, ("X", ""), "s3api list-objects --bucket no!bucket")
    }),
    transient("something that may come to be there", "v2", |lab| {
        alone(lab, V2, ("X", ""), "dynamodb get-item --table-name table --key file://missing")
    }),
    transient("default:exit", "missing file v1", |lab| {
        alone(lab, V1, ("X", ""), "dynamodb get-item --table-name table --key file://missing")
    }),
    permanent("wrong command line (version 1)", "", |lab| alone(lab, V1, ("X", ""), "sts no-such-operation")),
    permanent("wrong options or paths (version 1)", "option", |lab| {
        alone(lab, V1, ("X", ""), "sts get-caller-identity --frob")
    }),
    permanent("wrong options or paths (version 1)", "paths", |lab| alone(lab, V1, ("X", ""), "s3 cp here there")),
    permanent("unreadable parameter (version 1)", "json", |lab| {
        alone(lab, V1, ("X", ""), "dynamodb get-item --table-name table --key {bad")
    }),
    permanent("unreadable parameter (version 1)", "shorthand", |lab| {
        alone(lab, V1, ("X", ""), "ec2 describe-instances --filters Name")
    }),
    permanent("bad --query or --endpoint-url (version 1)", "query", |lab| {
        alone(lab, V1, ("X", ""), "--query a[ sts get-caller-identity")
    }),
    permanent("refused parameter", "v1", |lab| alone(lab, V1, ("X", ""), "s3api list-objects --bucket no!bucket")),
    permanent("refused parameter", "transfer v2", |lab| alone(lab, V2, ("X", ""), "s3 cp one s3://no!bucket/key")),
    // The configuration.
    permanent("no region (version 1)", "", |lab| alone(lab, V1, ("AWS_DEFAULT_REGION", ""), "dynamodb list-tables")),
    // This version asks the machine's metadata service, which may be slow.
    transient("default:exit", "no region v2", |lab| alone(lab, V2, ("AWS_DEFAULT_REGION", ""), "dynamodb list-tables")),
    permanent("malformed region", "v1", |lab| alone(lab, V1, ("AWS_DEFAULT_REGION", "not_one!"), "sqs list-queues")),
    permanent("malformed region", "v2", |lab| alone(lab, V2, ("AWS_DEFAULT_REGION", "not_one!"), "sqs list-queues")),
    permanent("no such profile", "v1", |lab| alone(lab, V1, ("AWS_PROFILE", "nobody"), "s3 ls")),
    permanent("no such profile", "v2", |lab| alone(lab, V2, ("AWS_PROFILE", "nobody"), "s3 ls")),
    permanent("half a key in the environment", "v1", |lab| {
        alone(lab, V1, ("AWS_SECRET_ACCESS_KEY", ""), "sts get-caller-identity")
    }),
    permanent("half a key in the environment", "v2", |lab| {
        alone(lab, V2, ("AWS_SECRET_ACCESS_KEY", ""), "s3 cp one s3://bucket/key")
    }),
    permanent("refused retry settings", "mode v2", |lab| {
        alone(lab, V2, ("AWS_RETRY_MODE", "legacy"), "sts get-caller-identity")
    }),
    permanent("refused retry settings", "attempts v1", |lab| {
        alone(lab, V1, ("AWS_MAX_ATTEMPTS", "0"), "sts get-caller-identity")
    }),
    transient("default:exit", "no credentials v1", |lab| {
        let run = cli(lab, "-n 1", V1, NOBODY, "sts get-caller-identity")?;
        Ok(run.no_env("AWS_ACCESS_KEY_ID").no_env("AWS_SECRET_ACCESS_KEY").finish())
    }),
    transient("default:exit", "no credentials v2", |lab| {
        let run = cli(lab, "-n 1", V2, NOBODY, "sts get-caller-identity")?;
        Ok(run.no_env("AWS_ACCESS_KEY_ID").no_env("AWS_SECRET_ACCESS_KEY").finish())
    }),
];
