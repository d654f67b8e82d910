//! What a server's refusal means, in words for the user. Pure.

/// The most characters of a server's own words.
const MOST_WORDS: usize = 200;

/// What servers say, and what that means. The first that is found counts: newer servers pass
/// the word in front through a script, older ones have it somewhere inside.
const KNOWN: [(&str, &str); 24] = [
    ("NOAUTH", WANTS_PASSWORD),
    // What is said where a request has more than 10 words.
    ("unauthenticated", WANTS_PASSWORD),
    ("WRONGPASS", WRONG_PASSWORD),
    ("invalid password", WRONG_PASSWORD),
    ("NOPERM", NOT_PERMITTED),
    ("ACL failure", NOT_PERMITTED),
    ("can't run this command", NOT_PERMITTED),
    ("DENIED", "the server takes connections from its own machine only (protected mode)"),
    ("LOADING", "the server is still loading its data"),
    ("READONLY", "the server is a read-only replica; name the primary"),
    ("MASTERDOWN", "the server is a replica without its primary; name the primary"),
    ("MISCONF", NOT_SAFE),
    ("NOREPLICAS", NOT_SAFE),
    ("OOM ", "the server's memory is full (maxmemory)"),
    ("is busy running", "the server is busy with a script of somebody else's"),
    ("CLUSTERDOWN", "the server's cluster is down"),
    ("TRYAGAIN", "the server's cluster is being rearranged"),
    ("max number of clients", "the server has as many connections as it takes (maxclients)"),
    ("DB index is out of range", NO_DATABASE),
    ("not allowed in cluster mode", NO_DATABASE),
    ("invalid DB index", NO_DATABASE),
    ("unknown command", NO_COMMAND),
    ("Unknown Redis command", NO_COMMAND),
    ("Unknown command called", NO_COMMAND),
];

const WANTS_PASSWORD: &str = "the server wants a password; give USER:PASSWORD@ in the address, or ?password-file=FILE";
const WRONG_PASSWORD: &str = "the server refuses the user or the password";
const NOT_PERMITTED: &str = "the server does not permit it; the user needs ~retryx:* and +eval +select +time +type \
                             +hmget +hset +pexpire +rename, and +scan +del for retryx quota";
const NOT_SAFE: &str = "the server takes no writes, since it cannot keep them safe";
const NO_DATABASE: &str = "the server has no database of that number";
const NO_COMMAND: &str = "the server lacks a command that is needed (eval, select, time, type, hmget, hset, pexpire, \
                          rename; for retryx quota scan and del too)";

/// What a refusal means.
pub(super) fn refusal(words: &str) -> String {
    if let Some(node) = words.strip_prefix("MOVED ").or_else(|| words.strip_prefix("ASK ")) {
        let node = node.split(' ').nth(1).map(shown).unwrap_or_default();
        return format!("another node of the cluster has this scope; name that: {node}");
    }
    let known = KNOWN.iter().find(|(word, _)| words.contains(word));
    let unknown = || match &shown(words)[..] {
        "" => "the server refuses, and does not say why".to_owned(),
        words => format!("the server refuses: {words}"),
    };
    known.map_or_else(unknown, |(_, meaning)| (*meaning).to_owned())
}

/// What a refused password means. A server may repeat what it was given: nothing of its words
/// is shown.
pub(super) fn no_entrance(words: &str) -> String {
    if words.contains("unknown command") {
        "the server knows no AUTH; give an address without a password".into()
    } else if words.contains("wrong number of arguments") {
        "the server knows no users; give :PASSWORD@ in the address".into()
    } else {
        let known = KNOWN.iter().find(|(word, _)| words.contains(word));
        let unknown =
            "the server refuses the password, and for what reason is not shown, as it may repeat the password";
        known.map_or(unknown, |(_, meaning)| meaning).into()
    }
}

/// Whether a password is refused only because none is needed.
pub(super) fn is_open(words: &str) -> bool {
    words.contains("without any password configured") || words.contains("no password is set")
}

/// Somebody else's words, without what could play tricks on a terminal.
pub(super) fn shown(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(MOST_WORDS).collect()
}

/// The options that the transport's remedies speak of, and what they are called in an address.
const TERMS: [(&str, &str); 6] = [
    (" (-k takes any)", ""),
    ("with --cacert FILE, or anybody with -k", "with ?cacert=FILE in the address, or SSL_CERT_FILE"),
    ("--cacert FILE", "?cacert=FILE in the address"),
    ("(--cert)", "(cert in the address)"),
    ("--cert FILE", "?cert=FILE&key=FILE in the address"),
    ("--key", "key in the address"),
];

/// The transport's words about a failure, in terms of addresses of servers.
pub(super) fn of_transport(text: &str) -> String {
    let text = TERMS.iter().fold(text.to_owned(), |text, (option, term)| text.replace(option, term));
    text.replace("does the port speak plain HTTP?", "is the port one without TLS? that is redis://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_a_password_repeats_nothing() {
        for words in ["ERR unknown command 'AUTH', with args beginning with: 'hush'", "ERR hush", "hush"] {
            assert!(!no_entrance(words).contains("hush"));
        }
        assert_eq!(refusal("ERR \u{1b}[31mx"), "the server refuses: ERR [31mx");
        assert!(refusal(&"x".repeat(10_000)).len() < 300);
    }

    #[test]
    fn the_transports_remedies_name_no_option() {
        let source = include_str!("../../net/tls.rs");
        for line in source.lines().filter(|line| line.contains('"') && !line.trim_start().starts_with("//")) {
            let told = of_transport(line);
            assert!(!told.contains("--") && !told.contains(" -k"), "{told}");
        }
    }
}
