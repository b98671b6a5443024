//! Goose: what its files say, what we write, and that nothing of the user's changes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};

use banyan_agents::{Destination, Env, Source, agent};
use common::{Collected, transcript};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goose").join(name)
}

fn sources(place: &Path) -> Vec<Source> {
    agent("goose").unwrap().sources(place).unwrap()
}

fn read(place: &Path) -> Collected {
    let mut all = Collected::default();
    for source in sources(place) {
        agent("goose").unwrap().read(&source, None, &mut all).unwrap();
    }
    all
}

#[test]
fn the_sample_is_what_its_note_says() {
    let all = read(&fixture("sessions.db"));
    for (id, session) in &all.sessions {
        println!("{id} {:?}\n{}", session.head, transcript(session).join("\n"));
    }
    panic!();
}
