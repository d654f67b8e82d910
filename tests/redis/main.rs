//! Scopes in a real Redis server: that it does what the state in memory does, whatever
//! happens to the server, and who may know what.

mod agreement;
mod entrance;
mod faults;
mod fleet;
mod keys;
mod machines;
#[path = "../curl/namespace.rs"]
mod namespace;
mod quota;
mod server;
mod strangers;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what the other end-to-end tests need")]
mod support;
