//! Codex: genuine rollouts are read as they were lived, and written so that they come back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};

use common::lines::read;
use common::transcript::transcript;

const MAIN: &str = "codex_01a1e056-cb67-7272-a2a2-b98ab2fa24b7";

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version)
}

#[test]
fn the_main_session_is_read_as_it_was_lived() {
    let all = read("codex", &fixtures("codex"));
    for (id, session) in &all.sessions {
        println!("== {id} {} {:?}", session.head.title, session.head.metadata);
        for line in transcript(&session.outgoing()) {
            println!("  {line}");
        }
    }
    assert_eq!(all.sessions.len(), 6);
    panic!("{:?} {}", all.notes, MAIN);
}
