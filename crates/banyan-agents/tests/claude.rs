#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
mod common;
use common::lines::read;
use common::transcript::transcript;
use std::path::Path;
#[test]
fn show() {
    let all = read("claude", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude"));
    for (id, session) in &all.sessions {
        println!("== {id} {} {:?}", session.head.title, session.head.metadata);
        println!("{} entries, {} on path", session.entries.len(), session.outgoing().path().len());
        for line in transcript(&session.outgoing()) {
            println!("  {line}");
        }
    }
    panic!("{:?}", all.notes);
}
