//! Goose: what its files say, what we write, and that nothing of the user's changes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::common::Collected;
use crate::common::generate::{sessions, told};
use crate::common::shown::{transcript, tree};
use banyan_agents::{Destination, Outgoing, Problem, Source, Written, agent};
use banyan_model::SessionEntry;
use proptest::prelude::*;
use rusqlite::Connection;

const MAIN: &str = "goose_20261115_1_74ed8f2d";

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

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_794_766_400_000 };
    agent("goose").unwrap().write(session, &to).unwrap()
}

/// A home with a copy of the sample.
fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("sessions.db");
    std::fs::copy(fixture("sessions.db"), &database).unwrap();
    (home, database)
}

#[test]
fn the_sample_is_what_its_note_says() {
    let all = read(&fixture("sessions.db"));
    assert_eq!(all.sessions.len(), 3);
    assert!(all.notes.is_empty(), "{:?}", all.notes);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "first-session");
    assert_eq!(main.head.metadata["cwd"], "/home/dev/proj01");
    assert_eq!(main.head.metadata["model"], "gpt-4o");
    let lines: Vec<String> =
        transcript(main).into_iter().filter(|line| !line.starts_with("goose.turn_context")).collect();
    let expected = [
        "(goose.session)",
        "user: Please list the files. @@shell@@",
        "assistant: I will run a tool. | calls shell#31ca {\"command\":\"echo hello-from-tool; ls\"}",
        "shell#31ca gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: hello-from-",
        "user: Read two things @@two@@",
        "assistant: I will run a tool. | calls shell#6b7c {\"command\":\"echo hello-from-tool; ls\"} | calls shell#6f8d {\"command\":\"echo hello-from-tool; ls\"}",
        "shell#6b7c gave: hello-from-tool AGENTS.md README.md calc",
        "shell#6f8d gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: hello-from-",
        "user: Think please @@thinkshell@@",
        "assistant: I will run a tool. | thinks Let me think: the user wants a scripted  | calls shell#73be {\"command\":\"echo hello-from-tool; ls\"}",
        "shell#73be gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: hello-from-",
        "user: Run a bad thing @@fail@@",
        "assistant: I will run a tool. | calls shell#2d46 {\"command\":\"echo bad-thing >&2; exit 3\"}",
        "shell#2d46 failed: bad-thing  Command exited with code 3",
        "assistant: Final answer. The tool said: bad-thing  ",
        "user: Fail now @@err400@@",
        "user: Go on after the error",
        "user: Delegate @@sub@@",
        "assistant: I will run a tool. | calls delegate#2974 {\"instructions\":\"You are the child. Say ",
        "delegate#2974 gave: Final answer. The tool said: hello-from-",
        "assistant: Final answer. The tool said: Final answe",
        "compaction: <summary>FAKE SUMMARY: user asked script",
        "goose.continuation: Your context was compacted at the user's",
        "user: /compact",
        "assistant: Compaction complete",
        "user: After compaction, hello",
        "assistant: Reply to: [vendor text removed].........",
    ];
    assert_eq!(lines, expected);
    let child = all.sessions.values().find(|session| session.head.title == "Delegated task").unwrap();
    assert_eq!(child.head.metadata["parent_session_id"], MAIN);
    assert_eq!(child.head.metadata["parent_call_id"], "call_917df01589e844749e342974");
    assert!(all.sessions.values().any(|session| session.head.title == "Fake title of scratch session"));
}

#[test]
fn the_export_is_the_same_session() {
    let (database, export) = (read(&fixture("sessions.db")), read(&fixture("export_20261115_1.json")));
    assert_eq!(tree(&database.sessions[MAIN]), tree(&export.sessions[MAIN]));
}

#[test]
fn an_old_file_is_read_unless_the_database_has_it() {
    let old = fixture("legacy_handmade_20250325_200615.jsonl");
    let all = read(&old);
    let session = all.sessions.values().next().unwrap();
    assert_eq!(session.head.title, "Legacy session");
    assert_eq!(transcript(session)[1..], ["user: LEGACY user", "assistant: LEGACY assistant"]);
    let (home, _database) = home();
    std::fs::copy(&old, home.path().join("20250325_200615.jsonl")).unwrap();
    std::fs::copy(&old, home.path().join("20261115_1.jsonl")).unwrap();
    let keys: Vec<_> = sources(home.path()).into_iter().map(|source| source.key).collect();
    assert_eq!(keys.iter().filter(|key| key.is_none()).count(), 1, "{keys:?}");
    assert_eq!(keys.len(), 4);
}

fn rows(database: &Path, session: &str) -> Vec<(String, String, String, i64, Option<String>)> {
    let connection = Connection::open(database).unwrap();
    let sql = "SELECT message_id, role, content_json, created_timestamp, metadata_json FROM messages
        WHERE session_id = ?1 ORDER BY created_timestamp, id";
    let mut statement = connection.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    statement.query_map([session], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn goose_to_goose_gives_the_same_rows() {
    let (home, database) = home();
    let before = read(&database);
    let written = write(&before.sessions[MAIN].outgoing(), home.path());
    assert_eq!(written.native_id, "20261115_4");
    assert_eq!(written.command, ["goose", "session", "--resume", "--session-id", "20261115_4"]);
    assert_eq!(rows(&database, "20261115_1"), rows(&database, "20261115_4"));
    assert!(
        written.lost.is_empty() || written.lost.iter().all(|lost| lost.starts_with("context")),
        "{:?}",
        written.lost
    );
    // The copy is known as the same session, and nothing of it is new.
    let mut again = Collected { sessions: before.sessions, ..Collected::default() };
    let count = again.sessions[MAIN].entries.len();
    for source in sources(&database) {
        agent("goose").unwrap().read(&source, None, &mut again).unwrap();
    }
    assert_eq!((again.sessions.len(), again.sessions[MAIN].entries.len()), (3, count));
}

#[test]
fn what_goose_adds_to_our_session_is_added_to_ours() {
    let (home, database) = home();
    let session = crate::common::generate::session(&[crate::common::generate::Round {
        back: 0,
        question: "What is there?".to_owned(),
        picture: true,
        answers: vec![crate::common::generate::Answer {
            thinking: Some("hm".to_owned()),
            text: Some("A tree.".to_owned()),
            calls: Vec::new(),
            failed: false,
        }],
    }]);
    let written = write(&session, home.path());
    assert_eq!(written.lost, ["1 x thinking, which only its own provider takes back"]);
    let connection = Connection::open(&database).unwrap();
    let sql = "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp)
        VALUES ('new', ?1, 'user', '[{\"type\":\"text\",\"text\":\"And now?\"}]', 1794766500)";
    connection.execute(sql, [&written.native_id]).unwrap();
    let all = read(&database);
    let back = &all.sessions["s_generated"];
    let ids: Vec<_> = back.entries.iter().map(SessionEntry::id).collect();
    assert_eq!(ids[..2], session.entries.iter().map(SessionEntry::id).collect::<Vec<_>>());
    assert_eq!(transcript(back).last().unwrap(), "user: And now?");
    assert_eq!(back.entries.len(), 3);
}

#[test]
fn a_session_that_grows_is_read_on() {
    let whole = read(&fixture("sessions.db"));
    let whole = tree(&whole.sessions[MAIN]);
    let count = rows(&fixture("sessions.db"), "20261115_1").len();
    for cut in 0..=count {
        let (_home, database) = home();
        let connection = Connection::open(&database).unwrap();
        connection.execute_batch("CREATE TABLE kept AS SELECT * FROM messages").unwrap();
        let sql = "DELETE FROM messages WHERE session_id = '20261115_1' AND id NOT IN (SELECT id FROM messages
            WHERE session_id = '20261115_1' ORDER BY created_timestamp, id LIMIT ?1)";
        connection.execute(sql, [cut as i64]).unwrap();
        let mut all = Collected::default();
        let source =
            |database: &Path| sources(database).into_iter().find(|one| one.key.as_deref() == Some("20261115_1"));
        let first = source(&database).unwrap();
        let mark = agent("goose").unwrap().read(&first, None, &mut all).unwrap();
        connection.execute_batch("DELETE FROM messages; INSERT INTO messages SELECT * FROM kept").unwrap();
        let second = source(&database).unwrap();
        assert_eq!(first.stamp != second.stamp, cut < count);
        let mark = agent("goose").unwrap().read(&second, Some(&mark), &mut all).unwrap();
        assert_eq!(tree(&all.sessions[MAIN]), whole, "cut after {cut}");
        // With nothing new nothing is told, which the sink checks.
        assert_eq!(agent("goose").unwrap().read(&second, Some(&mark), &mut all).unwrap(), mark);
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn reading_leaves_every_file_as_it_was() {
    let (home, database) = home();
    let as_it_was = files(home.path());
    assert_eq!(read(&database).sessions.len(), 3);
    assert_eq!(files(home.path()), as_it_was);
    // With a write-ahead log that was put away.
    let connection = Connection::open(&database).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute("UPDATE sessions SET name = 'in the log' WHERE id = '20261115_1'", []).unwrap();
    // A copy as a crash leaves it, or somebody who copies files: the log is there, its index is not.
    let crashed = tempfile::tempdir().unwrap();
    for name in ["sessions.db", "sessions.db-wal"] {
        std::fs::copy(home.path().join(name), crashed.path().join(name)).unwrap();
    }
    let as_it_was = files(crashed.path());
    assert_eq!(read(&crashed.path().join("sessions.db")).sessions[MAIN].head.title, "in the log");
    assert_eq!(files(crashed.path()), as_it_was);
    // While goose has it open.
    assert_eq!(read(&database).sessions[MAIN].head.title, "in the log");
    drop(connection);
    let as_it_was = files(home.path());
    assert_eq!(as_it_was.len(), 1);
    assert_eq!(read(&database).sessions[MAIN].head.title, "in the log");
    assert_eq!(files(home.path()), as_it_was);
}

#[test]
fn a_locked_database_is_read_another_time() {
    let (home, database) = home();
    let source = sources(&database).remove(0);
    let session = read(&database).sessions.remove(MAIN).unwrap().outgoing();
    let connection = Connection::open(&database).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let to = Destination { home: home.path().to_owned(), cwd: "/".into(), now_ms: 0 };
    let is_lock =
        |problem: Problem| matches!(problem, Problem::Io { error, .. } if error.kind() == ErrorKind::WouldBlock);
    let agent = agent("goose").unwrap();
    assert!(is_lock(agent.read(&source, None, &mut Collected::default()).unwrap_err()));
    assert!(is_lock(agent.write(&session, &to).unwrap_err()));
    connection.execute_batch("ROLLBACK").unwrap();
    agent.read(&source, None, &mut Collected::default()).unwrap();
}

#[test]
fn a_change_that_was_cut_off_is_taken_back_in_a_copy() {
    let (home, database) = home();
    let connection = Connection::open(&database).unwrap();
    connection
        .execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; UPDATE sessions SET name = 'half';")
        .unwrap();
    connection
        .execute_batch("UPDATE messages SET content_json = content_json || ' '; UPDATE messages SET tokens = 1;")
        .unwrap();
    let crashed = tempfile::tempdir().unwrap();
    for name in ["sessions.db", "sessions.db-journal"] {
        std::fs::copy(home.path().join(name), crashed.path().join(name)).unwrap();
    }
    let as_it_was = files(crashed.path());
    assert_eq!(read(&crashed.path().join("sessions.db")).sessions[MAIN].head.title, "first-session");
    assert_eq!(files(crashed.path()), as_it_was);
}

#[test]
fn a_damaged_or_older_database_gives_what_it_has() {
    let (_home, database) = home();
    let connection = Connection::open(&database).unwrap();
    let damage = "ALTER TABLE sessions DROP COLUMN archived_at; ALTER TABLE sessions DROP COLUMN goose_mode;
        ALTER TABLE messages DROP COLUMN tokens; UPDATE messages SET message_id = NULL WHERE id = 43;
        UPDATE messages SET content_json = '[{\"type\":\"te' WHERE id = 49;
        UPDATE messages SET message_id = 'twice' WHERE id IN (57, 63);
        UPDATE messages SET content_json = '[{\"type\":\"newThing\",\"x\":1}]' WHERE id = 44;";
    connection.execute_batch(damage).unwrap();
    let all = read(&database);
    let lines = transcript(&all.sessions[MAIN]);
    assert_eq!(lines[1], "user: Please list the files. @@shell@@");
    assert_eq!(lines[2], "(goose.newThing)");
    assert!(lines.contains(&"(goose.message)".to_owned()));
    assert_eq!(all.notes.len(), 2, "{:?}", all.notes);
    assert_eq!(all.sessions[MAIN].entries.len(), read(&fixture("sessions.db")).sessions[MAIN].entries.len());
    std::fs::write(&database, "SQLite format 3\0 and then nothing").unwrap();
    assert!(agent("goose").unwrap().sources(&database).is_err());
}

#[test]
fn a_database_of_another_form_is_left_to_gooses_own_import() {
    let (home, database) = home();
    let connection = Connection::open(&database).unwrap();
    connection.execute_batch("INSERT INTO schema_version (version) VALUES (17)").unwrap();
    let all = read(&database);
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert!(written.paths[0].to_str().unwrap().ends_with("20261115_1.import.json"));
    assert_eq!(tree(&read(&written.paths[0]).sessions[MAIN]), tree(&all.sessions[MAIN]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        let back = read(&written.paths[0]);
        let back = back.sessions["s_generated"].outgoing();
        prop_assert_eq!(told(&back, false), told(&session, false));
        let ids: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| ids.contains(&entry.id())));
    }
}
