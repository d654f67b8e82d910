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
    difference(
        "usage",
        "what is wrong on the command line, a file to read or to write that is not there among it, exits 125 before \
         anything is sent; only no URL, or one that cannot be read, exits 3",
        "125 is retryx's own code, and nothing is done in part",
    ),
    difference(
        "no-expect",
        "no Expect: 100-continue is sent",
        "an early answer is heard anyway, and nobody waits for a server that does not know it",
    ),
    difference(
        "length-known",
        "standard input is read to its end and sent with its Content-Length, not in chunks",
        "it has to be there for a retry",
    ),
    difference(
        "timeout-of-attempts",
        "-m bounds neither the reading of the body's input, nor the writing to standard output of a body that was \
         held back; --total-timeout bounds both",
        "it is the limit on one attempt, which begins when all that it sends is there and ends with its answer",
    ),
    difference(
        "whole-or-nothing",
        "a file is written only when the body is whole; of a body that broke off nothing is",
        "half a file looks like a whole one",
    ),
    difference(
        "only-what-follows",
        "-C with a number is refused where the file has another number of bytes, but none",
        "the joined file would have bytes twice, or lack some",
    ),
    difference(
        "right-part",
        "-r refuses an answer with another part than was asked for, and asks for the rest of one that came short",
        "it would be written as if it were what was asked for",
    ),
    difference(
        "headers-stay",
        "at a redirect to another origin only headers that cannot carry credentials go along, no cookies among them",
        "a key in a header of one's own is a secret too; --location-trusted sends them",
    ),
    difference(
        "location-credentials",
        "a name and password in a Location are not used",
        "who is asked for a password is the user's to say",
    ),
    difference(
        "other-redirects",
        "-L follows 300 to 303, 307 and 308, no other status with a Location",
        "the others are no redirects (RFC 9110)",
    ),
    difference(
        "one-level",
        "-F sends no form within a form, and not several files in one part",
        "hardly a server takes these",
    ),
    difference("codings", "--compressed asks for gzip and deflate, not for br and zstd", "these two are decoded here"),
    difference("range-asks", "-r with a body sends Range, not Content-Range", "it asks for a part of the answer"),
    difference(
        "url-standard",
        "a URL is sent as the URL standard writes it: hosts in lower case, and the characters \" < > ` ' { } \\ and those outside ASCII percent-encoded",
        "this is what servers get from browsers, and what all of them take",
    ),
    difference("hash-in-data", "a # in the data of -G is percent-encoded", "curl drops it and what follows in silence"),
    difference(
        "semicolons",
        "text of -F that has a semicolon in it is sent whole",
        "curl drops what follows it in silence",
    ),
    difference(
        "no-globbing",
        "braces and brackets in a URL mean themselves, with or without -g",
        "one request is made a run",
    ),
    difference(
        "root-name",
        "a name that ends in a dot is looked up as the same name without it",
        "both mean the same host",
    ),
    difference("scheme-lower-case", "%{scheme} of -w is in lower case", "curl 8 prints it so"),
    difference("variables-known", "a variable of -w that is not known is an error", "nothing is ignored in silence"),
    difference("error-words", "%{errormsg} of -w is in retryx's own words", "they name what was tried"),
    difference(
        "heads-apart",
        "with both -i and -D - the heads are written twice, one after the other",
        "curl mixes their lines",
    ),
    difference("trailers", "fields after the last chunk are not written by -i", "they are no part of a head"),
    difference("equals-sign", "--option=value is taken", "curl takes --option value only"),
    difference("no-http-exits-8", "an answer that is no HTTP exits 8", "curl's 1 says that the scheme is not known"),
    difference(
        "lengths-are-right",
        "Content-Length and Transfer-Encoding given by -H are refused where they are not those of the body",
        "the server would wait for more, or take the rest for another request",
    ),
    difference(
        "upper-case-variable",
        "HTTP_PROXY in upper case is heard too, but not where REQUEST_METHOD is set",
        "only in a CGI program is it a header of a client's",
    ),
    difference(
        "nobody-is-asked",
        "-u NAME without a colon is refused",
        "nobody is there to type a password in a retry",
    ),
];
