//! `retryx http` beside the real curl, and against real servers, proxies and name servers:
//! what goes over the wire, what comes out, how it ends.

mod compare;
mod lines;
mod names;
mod namespace;
mod nginx;
mod options;
mod proxies;
mod server;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what the other end-to-end tests need")]
mod support;
mod tls;
