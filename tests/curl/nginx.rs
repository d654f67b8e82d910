//! A real nginx: parts, coded bodies, throttling, client certificates, uploads that it
//! refuses before it has read them.

use crate::proxies::on_free_port;
use crate::support::{Lab, Running, has_programs, is_root, skip};
use crate::tls::lab_with_authority;

/// An nginx with a page for each theme.
struct Nginx {
    lab: Lab,
    port: u16,
    _running: Running,
}

fn configuration(lab: &Lab, port: u16) -> String {
    let user = if is_root() { "user root;" } else { "" };
    let here = lab.path("");
    let here = here.display();
    format!(
        r#"daemon off; master_process off; pid {here}/nginx.pid; error_log {here}/error.log warn; {user}
events {{ worker_connections 64; }}
http {{
    default_type text/plain; access_log {here}/access.log combined;
    client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;
    uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
    limit_req_zone $uri zone=one:1m rate=5r/s;
    server {{
        listen unix:{here}/plain.sock; listen 127.0.0.1:{port} ssl;
        ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate good.crt; ssl_certificate_key good.key;
        ssl_client_certificate ca.pem; ssl_verify_client optional;
        root {here}/www; client_max_body_size 64k; gzip_types text/plain; gzip_min_length 1;
        location /gzip/ {{ gzip on; alias {here}/www/; }}
        location /limited/ {{ limit_req zone=one; limit_req_status 429; alias {here}/www/; }}
        location /away {{ return 307 https://localhost:{port}/big.bin; }}
        location /who {{
            if ($ssl_client_verify != SUCCESS) {{ return 403; }}
            return 200 "$ssl_client_s_dn $ssl_protocol";
        }}
        location /put {{ proxy_pass http://unix:{here}/plain.sock:/taken; }}
        location /taken {{ return 201; }}
    }}
}}
"#
    )
}

impl Nginx {
    fn start() -> Option<Self> {
        if !has_programs(&["nginx"]) {
            return None;
        }
        let lab = lab_with_authority()?;
        std::fs::create_dir(lab.path("www")).expect("a folder");
        let big: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
        lab.write("www/big.bin", big);
        lab.write("www/text.txt", "the same line\n".repeat(10_000));
        let (port, running) = on_free_port(&lab, |lab, port| {
            let _ = std::fs::remove_file(lab.path("plain.sock"));
            lab.write("nginx.conf", configuration(lab, port));
            let place = lab.path("");
            lab.program("nginx").arg("-p").arg(&place).arg("-c").arg(lab.path("nginx.conf")).start()
        });
        Some(Self { lab, port, _running: running })
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.port)
    }
}

macro_rules! nginx {
    () => {
        match Nginx::start() {
            Some(nginx) => nginx,
            None => skip!("nginx or openssl is not installed"),
        }
    };
}

#[test]
fn whole_files_parts_and_coded_bodies() {
    let nginx = nginx!();
    let lab = &nginx.lab;
    let get = |words: &str, url: &str| lab.run("http -4 --cacert ca.pem").words(words).arg(url).finish();
    let big = std::fs::read(lab.path("www/big.bin")).unwrap();
    get("-o out", &nginx.url("big.bin")).exited(0).stopped(1, "success");
    assert!(std::fs::read(lab.path("out")).unwrap() == big);
    get("-o moved -L", &nginx.url("away")).exited(0);
    assert!(std::fs::read(lab.path("moved")).unwrap() == big);
    let part = get("-r 5-14", &nginx.url("big.bin"));
    part.exited(0);
    assert_eq!(part.stdout, big[5..15]);
    lab.write("part", &big[..1_000_000]);
    get("-C - -o part", &nginx.url("big.bin")).exited(0).stopped(1, "success");
    assert!(std::fs::read(lab.path("part")).unwrap() == big);
    get("-C - -o part", &nginx.url("big.bin")).exited(0).stopped(1, "success");
    assert!(std::fs::read(lab.path("part")).unwrap() == big);
    let text = lab.read("www/text.txt");
    let coded = get("--compressed -w %{size_download}|%header{content-encoding}", &nginx.url("gzip/text.txt"));
    coded.exited(0);
    let shown = coded.text();
    assert!(shown.starts_with(&text) && shown.ends_with("|gzip"), "{}", &shown[shown.len() - 40..]);
    let plain = get("-w %header{content-encoding}", &nginx.url("gzip/text.txt"));
    assert_eq!(plain.text(), text);
    get("-I", &nginx.url("big.bin")).exited(0);
    get("", &nginx.url("missing")).exited(22).stopped(1, "permanent");
    let unix = lab.bare("http --unix-socket plain.sock http://any.example/text.txt").finish();
    // It wants TLS on neither name nor socket.
    unix.exited(0);
    assert_eq!(unix.text(), text);
}

#[test]
fn throttling_is_waited_out() {
    let nginx = nginx!();
    let url = nginx.url("limited/text.txt");
    let get = || nginx.lab.run("-n 1 http -4 --cacert ca.pem -o /dev/null").arg(&url).finish();
    // One is let through in 200 ms.
    let mut seen = Vec::new();
    while seen.len() < 50 && !seen.contains(&Some(22)) {
        seen.push(get().status.code());
    }
    assert!(seen.contains(&Some(0)) && seen.contains(&Some(22)), "{seen:?}");
    let run = nginx.lab.run("--max-attempts 20 --throttle-base-delay 50ms http -4 --cacert ca.pem -o /dev/null");
    let run = run.arg(&url).finish();
    run.exited(0);
    for class in run.each("attempt_finished", "class").iter().rev().skip(1) {
        assert_eq!(class, "throttling");
    }
}

#[test]
fn client_certificates_are_seen() {
    let nginx = nginx!();
    let get = |words: &str| nginx.lab.run("http -4 --cacert ca.pem").words(words).arg(nginx.url("who")).finish();
    let run = get("--cert client.both");
    run.exited(0);
    assert_eq!(run.text(), "CN=client TLSv1.3");
    get("--cert client.crt --key client.key").exited(0);
    get("").exited(22).stopped(1, "permanent").says(&["403"]);
    // nginx says it in HTTP, as status 400.
    get("--cert stranger.both").exited(22).stopped(1, "permanent").says(&["400"]);
}

#[test]
fn an_upload_that_is_refused_early_is_believed() {
    let nginx = nginx!();
    nginx.lab.write("large", vec![b'x'; 40_000_000]);
    for words in ["-T large", "--data-binary @large", "-F f=@large"] {
        let run = nginx.lab.run("http -4 --cacert ca.pem").words(words).arg(nginx.url("put")).finish();
        run.exited(22).stopped(1, "permanent").says(&["413"]);
        let run = nginx.lab.run("http --unix-socket plain.sock").words(words).arg("http://localhost/put").finish();
        run.exited(22).stopped(1, "permanent").says(&["413"]);
    }
    nginx.lab.write("small", vec![b'x'; 60_000]);
    let run =
        nginx.lab.run("http -4 --cacert ca.pem -T small -w %{http_code}|%{size_upload}").arg(nginx.url("put")).finish();
    run.exited(0);
    assert!(run.text().ends_with("201|60000"), "{}", run.text());
}
