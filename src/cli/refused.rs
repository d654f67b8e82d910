//! Options of curl's that `retryx http` does not take, each with the reason and the way to
//! do it here: none is ignored in silence.

use std::ffi::OsString;

/// Long name, letter, and what to say.
pub const REFUSED: &[(&str, Option<char>, &str)] = &[
    ("retry", None, "retryx retries by itself; --max-attempts N counts the first attempt too"),
    ("retry-delay", None, "use --mode fixed --base-delay DURATION"),
    ("retry-max-time", None, "use --deadline or --total-timeout"),
    ("retry-all-errors", None, "use --retry-on any"),
    ("retry-connrefused", None, "a refused connection is retried anyway"),
    ("netrc", Some('n'), "no netrc file is read; give the header by -H @FILE"),
    ("netrc-file", None, "no netrc file is read; give the header by -H @FILE"),
    ("netrc-optional", None, "no netrc file is read; give the header by -H @FILE"),
    ("cookie-jar", Some('c'), "cookies are not kept; send some with -b"),
    ("config", Some('K'), "no file of options is read"),
    ("socks4", None, "SOCKS is not spoken; --proxy takes HTTP proxies"),
    ("socks4a", None, "SOCKS is not spoken; --proxy takes HTTP proxies"),
    ("socks5", None, "SOCKS is not spoken; --proxy takes HTTP proxies"),
    ("socks5-hostname", None, "SOCKS is not spoken; --proxy takes HTTP proxies"),
    ("preproxy", None, "one proxy is used; --proxy names it"),
    ("proxy-user", Some('U'), "put it into the proxy's URL: --proxy http://USER:PASSWORD@HOST:PORT"),
    ("proxytunnel", Some('p'), "a tunnel is used for https only"),
    ("http2", None, "HTTP/1.1 is spoken"),
    ("http2-prior-knowledge", None, "HTTP/1.1 is spoken"),
    ("http3", None, "HTTP/1.1 is spoken"),
    ("http3-only", None, "HTTP/1.1 is spoken"),
    ("http1.0", Some('0'), "HTTP/1.1 is spoken"),
    ("http0.9", None, "HTTP/1.1 is spoken"),
    ("digest", None, "only Basic authentication is known: -u, or a header by -H"),
    ("ntlm", None, "only Basic authentication is known: -u, or a header by -H"),
    ("negotiate", None, "only Basic authentication is known: -u, or a header by -H"),
    ("anyauth", None, "only Basic authentication is known: -u, or a header by -H"),
    ("aws-sigv4", None, "requests are not signed; the AWS CLI does that: retryx -- aws ..."),
    ("oauth2-bearer", None, "give the header from a file: -H @FILE with 'Authorization: Bearer ...'"),
    ("parallel", Some('Z'), "one request is made a run; use xargs -P"),
    ("next", Some(':'), "one request is made a run"),
    ("append", Some('a'), "it is for FTP, which is not spoken"),
    ("ftp-port", Some('P'), "FTP is not spoken"),
    ("quote", Some('Q'), "FTP is not spoken"),
    ("list-only", Some('l'), "FTP is not spoken"),
    ("use-ascii", Some('B'), "FTP is not spoken"),
    ("tlsv1", Some('1'), "TLS 1.2 and 1.3 are spoken, whichever the server takes"),
    ("tlsv1.0", None, "TLS 1.2 and 1.3 are spoken"),
    ("tlsv1.1", None, "TLS 1.2 and 1.3 are spoken"),
    ("tlsv1.2", None, "TLS 1.2 and 1.3 are spoken anyway"),
    ("tlsv1.3", None, "TLS 1.2 and 1.3 are spoken, whichever the server takes"),
    ("sslv2", Some('2'), "SSL is not safe and not spoken"),
    ("sslv3", Some('3'), "SSL is not safe and not spoken"),
    ("ciphers", None, "the cipher suites are rustls's own"),
    ("capath", None, "use --cacert FILE, or the variable SSL_CERT_DIR"),
    ("crlfile", None, "revocation lists are not read"),
    ("pass", None, "keys with a passphrase are not read; use one without"),
    ("cert-type", None, "certificates and keys are PEM"),
    ("key-type", None, "certificates and keys are PEM"),
    ("pinnedpubkey", None, "no key is pinned; use --cacert with the authority's certificate"),
    ("interface", None, "the system chooses the interface"),
    ("local-port", None, "the system chooses the port"),
    ("dns-servers", None, "the servers of /etc/resolv.conf are asked; --resolve gives an address"),
    ("doh-url", None, "the servers of /etc/resolv.conf are asked; --resolve gives an address"),
    ("limit-rate", None, "the rate is not limited"),
    ("speed-limit", Some('Y'), "use --timeout for an attempt"),
    ("speed-time", Some('y'), "use --timeout for an attempt"),
    ("max-filesize", None, "the size is not limited"),
    ("time-cond", Some('z'), "give the header by -H 'If-Modified-Since: ...'"),
    ("remote-header-name", Some('J'), "a server does not choose the name of a file here; use -o"),
    ("remote-time", Some('R'), "the file gets the time at which it is written"),
    ("remote-name-all", None, "one request is made a run; use -O"),
    ("create-dirs", None, "make the folder before"),
    ("remove-on-error", None, "a file is put in its place only when it is whole"),
    ("no-clobber", None, "test for the file before"),
    ("xattr", None, "no extended attributes are written"),
    ("trace", None, "use -v"),
    ("trace-ascii", None, "use -v"),
    ("stderr", None, "messages go to standard error; redirect it"),
    ("libcurl", None, "there is no program to write"),
    ("progress-bar", Some('#'), "no progress is shown"),
    ("globoff", Some('g'), "brackets and braces in the URL mean themselves anyway"),
    ("form-string", None, "use -F; write name=text with no @ or < in front"),
    ("form-escape", None, "names are escaped as browsers do it"),
    ("url", None, "write the URL without an option"),
    ("url-query", None, "write the query into the URL, or use -G with --data-urlencode"),
    ("path-as-is", None, "dots in the path are taken out, as the URL standard has it"),
    ("request-target", None, "the target is that of the URL"),
    ("haproxy-protocol", None, "it is not spoken"),
    ("keepalive-time", None, "a connection is kept across attempts"),
    ("tcp-fastopen", None, "connections are made as usual"),
    ("expect100-timeout", None, "no Expect is sent; an early answer is heard anyway"),
    ("post301", None, "use -X POST, which is kept on redirects"),
    ("post302", None, "use -X POST, which is kept on redirects"),
    ("post303", None, "use -X POST, which is kept on redirects"),
    ("ignore-content-length", None, "the length is what tells that a body is whole"),
    ("raw", None, "a body is always taken out of its chunks"),
    ("tr-encoding", None, "use --compressed"),
    ("disable", None, "no file of options is read"),
    ("manual", Some('M'), "see man retryx"),
];

/// What to say of the first word that is such an option.
pub(super) fn refusal(words: &[OsString]) -> Option<String> {
    let words = words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    words.filter_map(|word| word.strip_prefix("--")).find_map(|word| {
        let name = word.split('=').next().unwrap_or_default();
        let known = REFUSED.iter().find(|(long, ..)| *long == name || name.strip_prefix("no-") == Some(long));
        known.map(|(long, _, reason)| format!("http does not take --{long}: {reason}"))
    })
}

/// What to say of a letter that is such an option.
pub(super) fn refusal_of_letter(letter: char) -> Option<String> {
    let known = REFUSED.iter().find(|(_, known, _)| *known == Some(letter));
    known.map(|(long, _, reason)| format!("http does not take -{letter} (--{long}): {reason}"))
}
