//! Imports that are killed on the way.

use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use super::{FIRST, Machine, append, session, turn};
use crate::common::served::DEADLINE;

/// Enough turns for several pieces.
const TURNS: usize = 5000;

#[test]
fn given_an_import_that_is_killed_when_it_is_made_again_then_everything_is_there_once() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, TURNS);
    // A rename at the very end, so that what the first pieces said is outdated by the last.
    let index = machine.home().join(".codex/session_index.jsonl");
    std::fs::write(
        &index,
        format!("{}\n", json!({"id": FIRST, "thread_name": "Named", "updated_at": "2026-01-02T03:04:05Z"})),
    )
    .unwrap();
    let ledger = machine.place.dir().join(".banyan/imports/ledger.jsonl");
    let lines =
        || std::fs::read_to_string(&ledger).map_or(0, |text| text.lines().filter(|line| !line.is_empty()).count());
    let mut kept = 0;
    for pieces in [0, 1, 2, 3] {
        let before = lines();
        let mut command = machine.command(&["import", "codex"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A line is written before every piece but the last, so it is killed amid another piece each time.
        let began = Instant::now();
        while lines() < before + pieces && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < DEADLINE, "the import stands still");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = machine.call("session::get", &json!({"session_id": session(FIRST)}));
        let count = found["meta"]["message_count"].as_u64().unwrap_or_default();
        assert!(count >= kept, "nothing that was taken is lost");
        kept = count;
    }
    assert!(0 < kept && kept < 2 * TURNS as u64, "it was killed on the way, with {kept} messages");
    machine.import(&["codex"]);
    append(&path, &turn(TURNS));
    machine.import(&["codex"]);
    let whole = Machine::new();
    whole.rollout(FIRST, TURNS + 1);
    std::fs::copy(&index, whole.home().join(".codex/session_index.jsonl")).unwrap();
    whole.import(&["codex"]);
    let (ours, theirs) = (machine.meta(&session(FIRST)), whole.meta(&session(FIRST)));
    assert_eq!(ours["message_count"], 2 * (TURNS as u64 + 1));
    assert_eq!((&ours["title"], &ours["message_count"]), (&theirs["title"], &theirs["message_count"]));
    let tree = |machine: &Machine| machine.call("session::tree", &json!({"session_id": session(FIRST)}));
    assert_eq!(tree(&machine), tree(&whole));
    assert!(machine.run(&["verify"]).ok().out.contains("Everything is sound."));
}
