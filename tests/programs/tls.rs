//! A TLS server on loopback, openssl's own, with a certificate that is or is not right.

use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{Lab, has_programs, wait_until};

/// What is wrong with the certificate, if anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// It signed itself.
    SelfSigned,
    /// The authority that signed it is in no store, unless [`AUTHORITY`] is given.
    Good,
    /// The same, and the authority's comes with it.
    WithAuthority,
    /// The same, by way of another authority's, which comes with it.
    Chain,
    /// It is for other names.
    OtherName,
    /// It has no names but the old kind, and that is another's.
    OtherCommonName,
    /// It was good until 2020.
    Expired,
    /// It will be good from 2900 on.
    NotYetValid,
}

/// The file in the scratch folder with the authority that signed the certificates.
pub const AUTHORITY: &str = "authority.pem";

/// A server that lives until the case ends.
pub struct TlsServer {
    process: Child,
    port: u16,
}

impl TlsServer {
    /// Starts one; says so where there is no openssl.
    pub fn new(lab: &Lab, certificate: Certificate) -> Result<Self, String> {
        if !has_programs(&["openssl"]) {
            return Err("openssl is not installed".to_owned());
        }
        make(lab, certificate);
        let log = std::fs::File::create(lab.path("tls.log")).expect("a log");
        let mut server = lab.prepare(Path::new("openssl"));
        server.args("s_server -accept 127.0.0.1:0 -www -cert server.pem -key server.key".split(' '));
        if lab.path("chain.pem").exists() {
            server.args(["-cert_chain", "chain.pem"]);
        }
        let errors = log.try_clone().expect("the same log");
        let process = server.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("openssl");
        let mut server = Self { process, port: 0 };
        let port = || lab.lines("tls.log").iter().find_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok());
        wait_until("openssl listens", || {
            let ended = server.process.try_wait().expect("a process").is_some();
            assert!(!ended, "openssl ended: {}", lab.read("tls.log"));
            port().is_some()
        });
        server.port = port().expect("a port");
        Ok(server)
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // It may be gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes `server.pem`, `server.key`, the authority, and what comes along.
fn make(lab: &Lab, certificate: Certificate) {
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -batch";
    let openssl = |line: &str| lab.tool("openssl", &line.split(' ').collect::<Vec<_>>());
    let from = if certificate == Certificate::NotYetValid { "29000101000000Z" } else { "20190101000000Z" };
    let until = if certificate == Certificate::Expired { "20200101000000Z" } else { "29990101000000Z" };
    let names = match certificate {
        Certificate::OtherName => "subjectAltName = DNS:other.invalid",
        Certificate::OtherCommonName => "",
        _ => "subjectAltName = IP:127.0.0.1",
    };
    let settings = format!(
        "[req]\nprompt = no\ndistinguished_name = name\n[name]\nCN = other.invalid\n[names]\n{names}\n\
         [between]\nbasicConstraints = critical, CA:true\n\
         [ca]\ndefault_ca = authority\n[authority]\nnew_certs_dir = .\ndatabase = index\nrand_serial = yes\n\
         default_md = sha256\npolicy = policy\nunique_subject = no\n[policy]\ncommonName = supplied\n"
    );
    lab.write("openssl.cnf", settings);
    lab.write("index", "");
    if certificate == Certificate::SelfSigned {
        openssl(&format!(
            "req -x509 -config openssl.cnf -extensions names {KEY} -days 30000 -keyout server.key -out server.pem"
        ));
        return;
    }
    openssl(&format!("req -x509 {KEY} -subj /CN=authority -days 30000 -keyout authority.key -out {AUTHORITY}"));
    let sign = |name: &str, by: &str, extensions: &str| {
        openssl(&format!("req -config openssl.cnf {KEY} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        openssl(&format!(
            "ca -config openssl.cnf -extensions {extensions} -batch -notext -cert {by}.pem -keyfile {by}.key \
             -in {name}.csr -out {name}.pem -startdate {from} -enddate {until}"
        ));
    };
    match certificate {
        Certificate::Chain => {
            sign("chain", "authority", "between");
            sign("server", "chain", "names");
        }
        Certificate::WithAuthority => {
            sign("server", "authority", "names");
            lab.write("chain.pem", lab.read(AUTHORITY));
        }
        _ => sign("server", "authority", "names"),
    }
}
