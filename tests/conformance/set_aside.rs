//! The rows that are not run, each with the reason.

/// Rows that are not run.
pub struct SetAside {
    /// A row, or what holds several.
    pub place: &'static str,
    /// A part of what stands there, so that the entry cannot come to mean another row.
    pub holding: &'static str,
    /// Why, and what retryx does instead.
    pub reason: &'static str,
}

const fn aside(place: &'static str, holding: &'static str, reason: &'static str) -> SetAside {
    SetAside { place, holding, reason }
}

const TRANSPORT: &str = "failures without a response are outcomes of `retryx http`, which this version does not have; \
                         design §3 makes them transient";
const MODELLED: &str = "the retryable trait is part of a service's model and compiled into its SDK; retryx sees the \
                        answer only, and takes a 400 with a code of no list for permanent";
const CHECKSUM: &str =
    "checksums of bodies are no part of a retry policy (design §3 has none); an answer with 200 is a success";
const SPEC_2_0: &str = "the rules before 2.1, which AWS replaced in November 2026; retryx has those of 2.1 only";
const BY_SERVICE: &str = "a rule for one service in the legacy mode; design §3 leaves per-service exceptions out, so it is \
                          permanent there";
const EVERY_SERVICE: &str = "botocore leaves this code to one service or none; design §3 takes the documented lists for every \
                             service, so it is transient";
const BARE_429: &str =
    "the SDKs disagree about 429 without a code; design §3 takes it for throttling, as JavaScript does";
const EXIT_CODES: &str = "what the AWS CLI's exit codes mean is for its program preset (design §4), which this version does \
                          not have; by design §3 the code is transient";
const CLI_WORDS: &str = "reading this line is for the aws preset (design §4), which this version does not have";
const TOKEN_BUCKET: &str = "botocore's bucket class has a settable rate, floor and price; the limiter's floor is 0.5/s, \
                            its price 1 token, and only answers change its rate";
const HARNESS: &str = "judged wrong: this harness of Go and Rust stores the reduced rate; retryx follows the specification, \
                       as the SDKs' own production code does (cubic_mixed_spec, reference §4.5)";
const CREDENTIALS: &str = "retry settings never stand in the credentials file; retryx reads the config file only";
const BUILDER: &str = "a strict builder of another library; in retryx zero means no wait (design §1), and a cap below the \
                       base is the delay";
const ATTEMPT_TIMEOUT: &str = "gax hands the shorter of two times to the call; retryx ends an attempt at the earlier of \
                               --timeout and --total-timeout, in process::supervise, and has no function that tells";
const SDK_HEADERS: &str = "a header that an SDK sends with its requests; retryx changes no request";

/// All of them.
pub const SET_ASIDE: [SetAside; 66] = [
    aside(
        "retry_after/strict_third_party/reject/3",
        "1.5",
        "stricter than retryx by choice: fractions are rounded up (design §7), so it is 2 s",
    ),
    aside(
        "retry_after/strict_third_party/choices/0",
        "values above 2147483647",
        "open in the RFC; retryx takes them as they are, and beyond any integer as longer than any limit (design §7)",
    ),
    aside(
        "retry_after/strict_third_party/choices/1",
        "repeated header",
        "open in the RFC; in retryx the longest counts (design §7)",
    ),
    aside("classification/transient_checker/6", "<connection error>", TRANSPORT),
    aside("classification/transient_checker/7", "<other HTTP client error", TRANSPORT),
    aside("classification/modeled/0", "ModeledThrottlingError", MODELLED),
    aside("classification/modeled/1", "ModeledRetryableError", MODELLED),
    aside("classification/modeled/3", "<connection error>", MODELLED),
    aside("classification/rust_error_kind/0", "response error", TRANSPORT),
    aside("classification/python_specials/1", "IDPCommunicationError", EVERY_SERVICE),
    aside("classification/python_specials/2", "x_amz_crc32", CHECKSUM),
    aside("classification/python_specials/3", "x_amz_crc32", CHECKSUM),
    aside("classification/python_specials/4", "x_amz_crc32", CHECKSUM),
    aside("quota_checker/rows/6", "acquire timeout", SPEC_2_0),
    aside("quota_checker/rows/7", "acquire other", SPEC_2_0),
    aside("adaptive/cubic_mixed_go_rust_harness/rows/4", "4.670125557970046", HARNESS),
    aside("adaptive/cubic_mixed_go_rust_harness/rows/5", "4.770870456867401", HARNESS),
    aside("adaptive/cubic_mixed_go_rust_harness/rows/6", "6.011819748005445", HARNESS),
    aside("adaptive/cubic_mixed_go_rust_harness/rows/7", "10.792973431384178", HARNESS),
    aside(
        "adaptive/beta_decrease/1",
        "0.6",
        "botocore's class takes any beta; the documented one, and retryx's, is 0.7",
    ),
    aside("adaptive/token_bucket/2", "set_rate", TOKEN_BUCKET),
    aside("adaptive/token_bucket/3", "refused", TOKEN_BUCKET),
    aside("adaptive/rust_dynamodb_integration/2", "2.0", SPEC_2_0),
    aside("legacy/policies_by_service/organizations", "TooManyRequestsException", BY_SERVICE),
    aside("legacy/policies_by_service/dynamodb", "ReplicatedWriteConflictException", BY_SERVICE),
    aside("legacy/policies_by_service/kinesis", "LimitExceededException", BY_SERVICE),
    aside("legacy/policies_by_service/sqs", "RequestThrottled", BY_SERVICE),
    aside("legacy/policies_by_service/s3", "BadDigest", BY_SERVICE),
    aside("legacy/policies_by_service/glacier", "RequestTimeoutException", BY_SERVICE),
    aside("legacy/policies_by_service/route53/1", "PriorRequestNotComplete", BY_SERVICE),
    aside("legacy/policies_by_service/sts", "IDPCommunicationError", BY_SERVICE),
    aside("legacy/exceptions", "EndpointConnectionError", TRANSPORT),
    aside("legacy/crc32", "foo", CHECKSUM),
    aside("google/gax_rust_builder_errors/0", "invalid initial delay", BUILDER),
    aside("google/gax_rust_builder_errors/1", "empty range", BUILDER),
    aside("google/gax_rust_attempt_timeout", "attempt_timeout", ATTEMPT_TIMEOUT),
    aside(
        "google/deadline_overshoot/2",
        "Go gax",
        "the libraries differ; a delay that would end past the deadline is not slept at all (design §5)",
    ),
    aside(
        "google/apitools_wait",
        "retry_attempt",
        "apitools spreads by a quarter either way; the documented strategy, and retryx's, adds up to a second",
    ),
    aside("aws_cli/v2_exit_codes/1", "s3 only", EXIT_CODES),
    aside("aws_cli/v2_exit_codes/2", "could not be parsed", EXIT_CODES),
    aside("aws_cli/v2_exit_codes/252", "bad syntax", EXIT_CODES),
    aside("aws_cli/v2_exit_codes/253", "bad environment", EXIT_CODES),
    aside("aws_cli/v2_exit_codes/254", "returned an error", EXIT_CODES),
    aside("aws_cli/v2_exit_codes/255", "any other failure", EXIT_CODES),
    aside("aws_cli/v1_exit_codes/1", "s3 only", EXIT_CODES),
    aside("aws_cli/v1_exit_codes/2", "could not be parsed", EXIT_CODES),
    aside("aws_cli/v1_exit_codes/255", "the CLI or the service", EXIT_CODES),
    aside("observed_aws_cli_v1/rows/2", "STS 429, empty body", BARE_429),
    aside("observed_aws_cli_v1/rows/5", "2.0 rules", SPEC_2_0),
    aside(
        "observed_aws_cli_v1/rows/9",
        "1_500",
        "Python reads 1_500 as a number and the other SDKs do not; retryx takes digits only (design §7)",
    ),
    aside(
        "observed_aws_cli_v1/rows/11",
        "retry-after: 5",
        "botocore ignores Retry-After; retryx waits for it, and says that this is its own (design §7)",
    ),
    aside(
        "observed_aws_cli_v1/rows/14",
        "AWS_MAX_ATTEMPTS",
        "botocore refuses an empty variable; in retryx it counts as not set (design §1)",
    ),
    aside(
        "observed_aws_cli_v1/rows/15",
        "Standard",
        "botocore insists on lower case; retryx takes any, as smithy-rs does (reference §6.1)",
    ),
    aside("observed_aws_cli_v1/rows/22", "specify a region", CLI_WORDS),
    aside("observed_aws_cli_v1/rows/23", "locate credentials", CLI_WORDS),
    aside("observed_aws_cli_v1/rows/24", "could not be found", CLI_WORDS),
    aside("observed_aws_cli_v1/status_only_standard_2_1/not_retried/4", "429", BARE_429),
    aside("observed_aws_cli_v1/code_with_status_400_standard_2_1/not_retried/0", "InternalError", EVERY_SERVICE),
    aside(
        "observed_aws_cli_v1/code_with_status_400_standard_2_1/not_retried/1",
        "IDPCommunicationError",
        EVERY_SERVICE,
    ),
    aside("observed_aws_cli_v1/amz_sdk_request", "attempt=1", SDK_HEADERS),
    aside(
        "observed_aws_cli_v1/config_file/5",
        "2 # c",
        "botocore keeps ' # c' in the value; retryx takes it for a comment, as the shared specification does",
    ),
    aside("aws_config/retry_settings/7", "2.0", SPEC_2_0),
    aside("aws_config/profile_parser/pp-50", "credentialsFile", CREDENTIALS),
    aside("aws_config/profile_parser/pp-52", "credentialsFile", CREDENTIALS),
    aside("aws_config/profile_parser/pp-53", "credentialsFile", CREDENTIALS),
    aside("aws_config/profile_parser/pp-55", "credentialsFile", CREDENTIALS),
];
