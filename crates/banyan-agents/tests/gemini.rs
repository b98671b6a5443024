//! Gemini CLI.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
#[path = "common/shown.rs"]
mod shown;

use std::fs;
use std::path::{Path, PathBuf};

use shown::{assert_can_be_continued, assert_same, fixtures, path, read, said, session, write};

#[test]
fn show() {
    let told = read("gemini", &fixtures("gemini"));
    for (id, session) in &told.sessions {
        println!("{id} {:?}", session.head);
        for line in path(session) {
            println!("  {line}");
        }
        println!("  all {}", session.entries.len());
        let path: Vec<_> = session.outgoing().path().into_iter().map(|e| e.id().clone()).collect();
        for entry in &session.entries {
            if !path.contains(entry.id()) {
                println!("  off {}", shown::line(entry));
            }
        }
    }
    println!("{:?}", told.notes);
}
