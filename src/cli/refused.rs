//! Options of curl's that `retryx http` does not take, each with the reason and the way to
//! do it here: none is ignored in silence. The names are those of curl 7.88 to 8.16.

/// Options that are refused for one reason, and what to say.
#[derive(Debug)]
pub struct Refused {
    /// Their long names, with the letter of those that have one.
    pub options: &'static [(&'static str, Option<char>)],
    /// Why, and what to do.
    pub reason: &'static str,
}

/// The table of a reason for each option: its names, then the reason.
macro_rules! refused {
    ($($($long:literal $($letter:literal)?),+ => $reason:literal;)+) => {
        &[$(Refused { options: &[$(($long, letter!($($letter)?))),+], reason: $reason }),+]
    };
}

macro_rules! letter {
    () => {
        None
    };
    ($letter:literal) => {
        Some($letter)
    };
}

/// All of them.
pub const REFUSED: &[Refused] = refused! {
    "retry" => "retryx retries by itself; --max-attempts N counts the first attempt too";
    "retry-delay" => "use --mode fixed --base-delay DURATION";
    "retry-max-time" => "use --deadline or --total-timeout";
    "retry-all-errors" => "use --retry-on any";
    "retry-connrefused" => "a refused connection is retried anyway";
    "netrc" 'n', "netrc-file", "netrc-optional" =>
        "no netrc file is read; give the header by -H @FILE (attempts are counted by --max-attempts)";
    "cookie-jar" 'c', "junk-session-cookies" 'j' => "cookies are not kept; send some with -b";
    "config" 'K', "disable" => "no file of options is read; settings of retryx's own are variables (RETRYX_*)";
    "socks4", "socks4a", "socks5", "socks5-hostname", "socks5-basic", "socks5-gssapi", "socks5-gssapi-nec",
    "socks5-gssapi-service" => "SOCKS is not spoken; --proxy takes HTTP proxies, and retryx -- curl ... speaks it";
    "preproxy" => "one proxy is used; --proxy names it";
    "proxy1.0" => "use --proxy; HTTP/1.1 is spoken to it";
    "proxy-user" 'U' => "put it into the proxy's URL, best in the variable https_proxy: http://USER:PASSWORD@HOST:PORT";
    "proxytunnel" 'p' => "a tunnel is used for https only";
    "proxy-header" => "the proxy gets no headers of its own but Proxy-Authorization, from its URL";
    "proxy-basic" => "Basic is what a proxy's URL with USER:PASSWORD gives anyway";
    "proxy-anyauth", "proxy-digest", "proxy-negotiate", "proxy-ntlm", "proxy-service-name" =>
        "only Basic authentication is known to proxies: --proxy http://USER:PASSWORD@HOST:PORT";
    "proxy-cacert", "proxy-capath", "proxy-ca-native", "proxy-cert", "proxy-cert-type", "proxy-ciphers",
    "proxy-crlfile", "proxy-http2", "proxy-insecure", "proxy-key", "proxy-key-type", "proxy-pass",
    "proxy-pinnedpubkey", "proxy-ssl-allow-beast", "proxy-ssl-auto-client-cert", "proxy-tls13-ciphers",
    "proxy-tlsauthtype", "proxy-tlspassword", "proxy-tlsuser", "proxy-tlsv1" =>
        "no TLS is spoken to proxies; https: goes through an http: proxy by CONNECT";
    "http2", "http2-prior-knowledge", "http3", "http3-only", "http1.0" '0', "http0.9", "no-alpn", "no-npn", "alt-svc",
    "ipfs-gateway" => "HTTP/1.1 is what is spoken";
    "digest", "ntlm", "ntlm-wb", "negotiate", "anyauth", "delegation", "krb", "service-name" =>
        "only Basic authentication is known: -u, or a header by -H @FILE";
    "aws-sigv4" => "requests are not signed; the AWS CLI does that: retryx -- aws ...";
    "oauth2-bearer" => "give the header from a file: -H @FILE with 'Authorization: Bearer ...'";
    "parallel" 'Z', "parallel-immediate", "parallel-max", "parallel-max-host", "rate" =>
        "one request is made a run; use xargs -P, and --scope shares the retry quota";
    "next" ':', "remote-name-all" => "one request is made a run";
    "url-query" => "write the query into the URL, or use -G with --data-urlencode";
    "data-ascii" => "it is another name of --data; use that";
    "form-string" => "use -F, the text in double quotes: -F 'name=\"text\"'";
    "form-escape" => "names are escaped as browsers do it, which is what servers expect";
    "tlsv1" '1', "tlsv1.0", "tlsv1.1", "tlsv1.3", "tls-max", "tls-earlydata" =>
        "TLS 1.2 and 1.3 are spoken, whichever the server takes; older ones never";
    "sslv2" '2', "sslv3" '3' => "SSL is not safe and not spoken";
    "ssl", "ssl-reqd", "ftp-ssl", "ftp-ssl-reqd" => "write https: in the URL";
    "ciphers", "tls13-ciphers", "curves", "sigalgs", "false-start", "ech", "no-sessionid", "sessionid", "ssl-sessions",
    "ssl-allow-beast", "ssl-auto-client-cert", "ssl-no-revoke", "ssl-revoke-best-effort", "egd-file", "random-file",
    "engine", "tlsauthtype", "tlspassword", "tlsuser" => "TLS's details are rustls's own, all of them safe";
    "capath" => "use --cacert FILE, or the variable SSL_CERT_DIR";
    "ca-native" => "the system's store is what is used anyway";
    "dump-ca-embed" => "no certificates are built in; the system's are used";
    "crlfile", "cert-status" => "whether a certificate was revoked is not asked";
    "pass" => "keys with a passphrase are not read: openssl pkey -in KEY -out PLAIN makes one without";
    "cert-type", "key-type" => "certificates and keys are PEM: openssl x509 -inform DER makes one";
    "pinnedpubkey" => "no key is pinned; use --cacert with the authority's certificate";
    "hsts" => "no list of hosts is kept; write https: in the URL";
    "proto-default" => "write the scheme into the URL";
    "disallow-username-in-url" => "a name in the URL is taken for -u; check the URL before";
    "interface", "dns-interface", "dns-ipv4-addr", "dns-ipv6-addr" => "the system chooses the interface";
    "local-port" => "the system chooses the port";
    "dns-servers", "doh-url", "doh-cert-status", "doh-insecure", "httpsrr" =>
        "the servers of /etc/resolv.conf are asked; --resolve gives an address";
    "abstract-unix-socket" => "use --unix-socket with a socket that has a path";
    "happy-eyeballs-timeout-ms" => "another address is tried after 250 ms (RFC 8305)";
    "tcp-fastopen", "tcp-nodelay", "mptcp", "ip-tos", "vlan-priority", "haproxy-protocol", "haproxy-clientip" =>
        "connections are made as usual: TCP, without delay";
    "keepalive", "no-keepalive", "keepalive-time", "keepalive-cnt" =>
        "no probes are sent; --timeout notices a connection that died";
    "limit-rate" => "the rate is not limited; for a download to a pipe use pv -L";
    "speed-limit" 'Y', "speed-time" 'y' => "use --timeout for an attempt";
    "max-filesize" => "the size is not limited; ask for a part with -r";
    "time-cond" 'z' => "give the header by -H 'If-Modified-Since: ...'";
    "etag-compare", "etag-save" => "give the header by -H 'If-None-Match: ...'; -D FILE has the tag";
    "remote-header-name" 'J' => "a server does not choose the name of a file here; use -o";
    "remote-time" 'R' => "the file gets the time at which it is written";
    "create-file-mode" => "the umask gives the file's mode";
    "remove-on-error" => "a file is put in its place only when it is whole";
    "no-clobber", "clobber", "skip-existing" => "test for the file before: [ -e FILE ] || retryx http ...";
    "out-null" => "use -o /dev/null";
    "xattr" => "no extended attributes are written";
    "crlf" => "what is sent is sent as it is; use sed before";
    "use-ascii" 'B' => "what is received is written as it is";
    "trace", "trace-ascii", "trace-time", "trace-ids", "trace-config" => "use -v, and -D - for the answer's heads";
    "stderr" => "messages go to standard error; redirect it";
    "styled-output" => "heads are written as they come";
    "suppress-connect-headers" => "what a proxy says of its tunnel is never written";
    "libcurl" => "there is no program to write";
    "progress-meter" => "no meter is shown but on a terminal; -s for none at all";
    "path-as-is" => "dots in the path are taken out, as the URL standard has it";
    "request-target" => "the target is that of the URL";
    "expect100-timeout" => "no Expect is sent; an early answer is heard anyway";
    "post301", "post302", "post303", "follow" => "use -X POST, which is kept on redirects";
    "ignore-content-length" => "the length is what tells that a body is whole";
    "raw" => "a body is always taken out of its chunks";
    "tr-encoding" => "use --compressed";
    "manual" 'M' => "see man retryx, or --help";
    "append" 'a', "disable-eprt", "disable-epsv", "eprt", "epsv", "ftp-account", "ftp-alternative-to-user",
    "ftp-create-dirs", "ftp-method", "ftp-pasv", "ftp-port" 'P', "ftp-pret", "ftp-skip-pasv-ip", "ftp-ssl-ccc",
    "ftp-ssl-ccc-mode", "ftp-ssl-control", "quote" 'Q', "list-only" 'l' => "FTP is not spoken; retryx -- curl ... speaks it";
    "compressed-ssh", "hostpubmd5", "hostpubsha256", "knownhosts", "pubkey" => "SSH is not spoken; use retryx -- scp ...";
    "login-options", "mail-auth", "mail-from", "mail-rcpt", "mail-rcpt-allowfails", "sasl-authzid", "sasl-ir",
    "upload-flags" => "mail is not spoken; retryx -- curl ... speaks it";
    "telnet-option" 't', "tftp-blksize", "tftp-no-options", "metalink" =>
        "only HTTP is spoken; retryx -- curl ... speaks the rest";
};

/// What to say of an option, as it was written, that is one of these.
pub(super) fn refusal(written: &str) -> Option<String> {
    let known =
        || REFUSED.iter().flat_map(|row| row.options.iter().map(move |(long, letter)| (*long, *letter, row.reason)));
    if let Some(name) = written.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or_default();
        let meant = name.strip_prefix("no-");
        let (_, _, reason) = known().find(|(long, ..)| *long == name || meant == Some(*long))?;
        return Some(format!("http does not take --{name}: {reason}"));
    }
    let written = written.strip_prefix('-')?.chars().next()?;
    let (long, _, reason) = known().find(|(_, letter, _)| *letter == Some(written))?;
    Some(format!("http does not take -{written} (--{long}): {reason}"))
}
