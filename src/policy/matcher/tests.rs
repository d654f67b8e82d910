use super::*;

#[test]
fn every_form_reads_and_prints_back() {
    for list in [
        "7",
        "0",
        "255",
        "100-110",
        "signal:KILL",
        "signal:RTMIN+1",
        "timeout",
        "http:503",
        "http:5xx",
        "http:500-504",
        "error:ThrottlingException",
        "stdout:/a,b and c/",
        "stderr:/x\\/y/i",
        "output:/^\\d+$/",
        "output:/(?-u:\\w){300}/",
        "body:/\"code\"/",
        "any",
        "default",
        "0 and output:/could not be loaded/",
        "http:503 and error:SlowDown and body:/x/",
        "7 and 1-9",
        "any and 0-1",
        "signal:KILL and signal:KILL",
        "timeout and stderr:/x/",
        "http:5xx and http:503",
        "signal:RTMIN",
        "signal:RTMIN+1 and any",
        "timeout and body:/x/",
        "http:500-501 and http:501-502",
        "0-1 and http:503",
        "http:204-205 and body:/x/",
        "http:1xx",
    ] {
        let terms = parse(list).unwrap();
        assert_eq!(terms.len(), 1, "{list}");
        assert_eq!(terms[0].to_string(), list);
        assert_eq!(parse(&terms[0].to_string()).unwrap(), terms);
    }
    assert_eq!(parse("2,75-78, signal:9 ,default").unwrap().len(), 4);
    assert_eq!(parse("signal:9").unwrap()[0].to_string(), "signal:KILL");
}

#[test]
fn impossible_forms_are_refused_with_a_hint() {
    for (list, hint) in [
        ("-1", "255"),
        ("256", "exits 0"),
        ("5-2", "2-5"),
        ("1,,2", "missing"),
        ("", "missing"),
        ("1,", "missing"),
        ("a", "valid are"),
        ("1-", "valid are"),
        ("SIGKILL", "signal:KILL"),
        ("TERM", "signal:TERM"),
        ("75..78", "75-78"),
        ("75:78", "75-78"),
        ("1e2", "valid are"),
        ("http:99", "http:503"),
        ("http:600", "http:503"),
        ("http:504-500", "http:503"),
        ("http:", "http:503"),
        ("signal:NOPE", "KILL"),
        ("error:", "code"),
        ("stdout:x", "slashes"),
        ("stdout:/x", "closing slash"),
        ("stdout:/(/", "cannot be read at character 1: unclosed group"),
        ("stdout:/ab)/", "at character 3"),
        ("stdout:/x{99999}{99999}/", "cannot be read"),
        // As the manual says.
        ("stdout:/\\w{300}/", "size limit"),
        ("stdout:/a(?=b)/", "look-around"),
        ("1 2", "comma"),
        ("stdout:/x/q", "comma"),
        ("1 and", "missing after '1 and'"),
        ("1 and  ", "missing after '1 and'"),
        ("1 and ,2", "missing after '1 and'"),
        ("1 and timeout and,2", "missing after '1 and timeout and'"),
        ("1 android", "comma"),
        ("and 1", "'and' is not a condition"),
        // What can hold for no outcome.
        ("7 and 8", "write 7,8"),
        ("1,2,7 and 8-9", "'7 and 8-9' can never hold"),
        ("7 and timeout", "write 7,timeout"),
        ("signal:KILL and 137", "write signal:KILL,137"),
        ("signal:KILL and signal:TERM", "never"),
        ("signal:KILL and timeout", "never"),
        ("stderr:/x/ and 1 and stdout:/y/ and 2", "never"),
        ("http:503 and http:404", "never"),
        ("error:A and error:B", "never"),
        ("0 and any", "'any' stands for failures"),
        ("timeout and http:503", "write timeout,http:503"),
        ("signal:KILL and error:A", "never"),
        ("0 and http:200", "write 0,http:200"),
        ("http:204 and body:/x/", "status 204 has no body"),
        ("http:3xx and body:/x/ and http:304-399 and http:300-304", "status 304 has no body"),
    ] {
        let error = parse(list).unwrap_err();
        assert!(error.contains(hint), "{list}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_can_give_a_class_to_a_request_is_told_from_what_cannot() {
    let obstacle = |list: &str, class, head_only| parse(list).unwrap()[0].obstacle_for_a_request(class, head_only);
    for (list, class) in [
        ("http:2xx", Class::Transient),
        ("http:100-599", Class::Transient),
        ("http:200 and body:/x/", Class::Permanent),
        ("http:300-599 and any", Class::Transient),
        ("http:503 and default", Class::Permanent),
        ("http:200 and default", Class::Success),
        ("default", Class::Success),
        ("timeout and body:/x/", Class::Permanent),
        ("http:503 and error:A", Class::Throttling),
    ] {
        assert_eq!(obstacle(list, class, false), None, "{list}");
    }
    for (list, class, said) in [
        ("7", Class::Transient, "speaks of a command"),
        ("any and stdout:/x/", Class::Transient, "speaks of a command"),
        ("http:1xx", Class::Transient, "200 at least"),
        ("http:2xx and any", Class::Transient, "speaks of failures"),
        ("default and http:200", Class::Transient, "speaks of failures"),
        ("http:200-399 and error:A", Class::Success, "speaks of failures"),
        ("http:500 and default", Class::Success, "no success"),
    ] {
        assert!(obstacle(list, class, false).is_some_and(|text| text.contains(said)), "{list}");
    }
    assert!(obstacle("http:503 and body:/x/", Class::Transient, true).is_some());
    assert_eq!(obstacle("http:503 and error:A", Class::Transient, true), None);
}
