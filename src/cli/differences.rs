//! Where `retryx http` does on purpose what curl does not, each with its reason; the tests
//! that run command lines through both allow these differences and no other.

/// A difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Its name, for the tests.
    pub name: &'static str,
    /// What differs.
    pub what: &'static str,
    /// Why.
    pub reason: &'static str,
}

const fn difference(name: &'static str, what: &'static str, reason: &'static str) -> Difference {
    Difference { name, what, reason }
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    difference(
        "failure-exits-22",
        "a status that is a failure exits 22 and its body is not written, with or without -f; --fail-with-body writes it",
        "an error page is not what was asked for, and a script has to see that",
    ),
    difference("usage-exits-125", "what is wrong on the command line exits 125, but a URL that cannot be read 3", "125 is retryx's own code"),
    difference(
        "read-before",
        "a file to send that cannot be read is found before anything is sent",
        "a request is not made in part",
    ),
    difference(
        "length-known",
        "standard input is read to its end and sent with its Content-Length, not in chunks",
        "it has to be sent again in a retry",
    ),
    difference(
        "complete-is-success",
        "-C - with a file that is complete exits 0",
        "there is nothing left to do",
    ),
    difference(
        "headers-stay",
        "at a redirect to another origin only headers that cannot carry credentials go along",
        "a key in a header of one's own is a secret too",
    ),
];
