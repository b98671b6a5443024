//! OpenCode: what its files say, what we write, and that nothing of the user's changes.

use std::path::{Path, PathBuf};

use crate::common::Collected;
use crate::common::generate::{sessions, told};
use crate::common::shown::{transcript, tree};
use banyan_agents::{Destination, Outgoing, Source, Written, agent};
use banyan_model::SessionEntry;
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::Value;

const MAIN: &str = "opencode_ses_e1fa48844ffeNwtqQBjEmGxza0";
const FORK: &str = "opencode_ses_e1fa2ecc6ffeYWuE0acQykEuvX";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/opencode").join(name)
}

fn sources(place: &Path) -> Vec<Source> {
    agent("opencode").unwrap().sources(place).unwrap()
}

fn read(place: &Path) -> Collected {
    let mut all = Collected::default();
    for source in sources(place) {
        agent("opencode").unwrap().read(&source, None, &mut all).unwrap();
    }
    all
}

fn write(session: &Outgoing, home: &Path) -> Written {
    let to = Destination { home: home.to_owned(), cwd: "/home/dev/proj01".into(), now_ms: 1_794_767_400_000 };
    agent("opencode").unwrap().write(session, &to).unwrap()
}

/// A home with a copy of the sample.
fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("opencode.db");
    std::fs::copy(fixture("opencode.db"), &database).unwrap();
    (home, database)
}

#[test]
fn the_sample_is_what_its_note_says() {
    let all = read(&fixture("opencode.db"));
    assert_eq!(all.sessions.len(), 5);
    assert!(all.notes.is_empty(), "{:?}", all.notes);
    let main = &all.sessions[MAIN];
    assert_eq!(main.head.title, "Fake title of scratch session");
    assert_eq!(main.head.metadata["provider"], "fake");
    let expected = [
        "(opencode.session)",
        "user: \"Please list the files. @@shell@@\"",
        "assistant: I will run a tool. | calls bash#50c5 {\"command\":\"echo hello-from-tool; ls\"}",
        "bash#50c5 gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: hello-from-",
        "user: \"Read two things @@two@@\"",
        "assistant: I will run a tool. | calls bash#7f6d {\"command\":\"echo hello-from-tool; ls\"} | calls read#ed7e {\"filePath\":\"/home/dev/proj01/README.md\"",
        "bash#7f6d gave: hello-from-tool AGENTS.md README.md calc",
        "read#ed7e gave: <path>/home/dev/proj01/README.md</path> ",
        "assistant: Final answer. The tool said: <path>/home",
        "user: \"Think please @@thinkshell@@\"",
        "assistant: thinks Let me think: the user wants a scripted  | I will run a tool. | calls bash#f55d {\"command\":\"echo hello-from-tool; ls\"}",
        "bash#f55d gave: hello-from-tool AGENTS.md README.md calc",
        "assistant: Final answer. The tool said: hello-from-",
        "user: \"Run a bad thing @@fail@@\"",
        "assistant: I will run a tool. | calls bash#0e93 {\"command\":\"echo bad-thing >&2; exit 3\"}",
        "bash#0e93 gave: bad-thing ",
        "assistant: Final answer. The tool said: bad-thing ",
        "user: \"Fail now @@err400@@\"",
        "assistant failed [scripted error 400]: ",
        "user: \"Go on after the error\"",
        "assistant: Reply to: \"Go on after the error\"",
        "user: picture image/png 620 | \"Look at the picture\"",
        "opencode.synthetic: Called the Read tool with the following  | Image read successfully",
        "assistant: Reply to: he following input: {\"filePath",
        "user: \"Delegate @@sub@@\"",
        "assistant: I will run a tool. | calls task#86b3 {\"description\":\"child_task\",\"prompt\":\"Yo",
        "task#86b3 gave: <task id=\"ses_e1fa2fd3affebCsnJyZA3AEUrG",
        "assistant: Final answer. The tool said: <task id=\"s",
        "(opencode.compaction)",
        "compaction: <summary>FAKE SUMMARY: user asked script",
        "user: After compaction, hello",
        "assistant: Reply to: After compaction, hello",
    ];
    assert_eq!(transcript(main), expected);
    let child = &all.sessions["opencode_ses_e1fa2fd3affebCsnJyZA3AEUrG"];
    assert_eq!(child.head.metadata["parent_session_id"], MAIN);
    assert_eq!(child.head.metadata["parent_call_id"], "call_c8feaeda1918442d998c86b3");
    let renamed = &all.sessions["opencode_ses_e1fa2d5afffeQaVJlgJMMylzN5"];
    assert_eq!(
        (renamed.head.title.as_str(), &renamed.head.metadata["archived"]),
        ("My renamed session", &true.into())
    );
}

#[test]
fn a_fork_knows_its_origin_and_a_revert_is_a_branch() {
    let all = read(&fixture("opencode.db"));
    let fork = &all.sessions[FORK];
    assert_eq!(fork.head.forked_from.as_ref().unwrap().as_str(), MAIN);
    assert_eq!(transcript(fork).last().unwrap(), "assistant: Final answer. The tool said: <task id=\"s");
    let lines = tree(fork);
    assert_eq!(
        lines[lines.len() - 3..lines.len() - 1],
        ["user: \"In the fork: hello\" < 29", "assistant: Reply to: \"In the fork: hello\" < 30"]
    );
}

#[test]
fn the_second_generation_is_read() {
    let all = read(&fixture("opencode.db"));
    let session = &all.sessions["opencode_ses_e1f8796b5ffea7RJuyRmDN1q3Z"];
    assert_eq!(session.head.title, "V2 please list @@two@@");
    let lines = transcript(session);
    assert_eq!(lines.len(), 17);
    assert_eq!(lines[4], "bash#f7be gave: hello-from-tool AGENTS.md README.md calc | Command exited with code 0.");
    assert_eq!(
        lines[8],
        "assistant: thinks Let me think: the user wants a scripted  | I will run a tool. | calls bash#d761 {\"command\":\"echo hello-from-tool; ls\"}"
    );
    assert!(lines[16].starts_with("assistant failed [Provider request failed"));
    // It goes out as one of the first, which every door of OpenCode reads.
    let home = tempfile::tempdir().unwrap();
    let back = read(&write(&session.outgoing(), home.path()).paths[0]);
    let words = |lines: Vec<String>| lines.into_iter().map(|line| line.replace('\n', " ")).collect::<String>();
    let expected = told(&session.outgoing(), true);
    let joined = words(expected).replace("result of call_5b3f7f094eb3409895f3f7be: Command", "Command");
    for said in told(&back.sessions.values().next().unwrap().outgoing(), true) {
        let first = said.split('\n').next().unwrap();
        assert!(joined.contains(first), "{first}");
    }
}

#[test]
fn the_export_is_the_same_session() {
    let (database, export) =
        (read(&fixture("opencode.db")), read(&fixture("export_ses_e1fa48844ffeNwtqQBjEmGxza0.json")));
    assert_eq!(tree(&database.sessions[MAIN]), tree(&export.sessions[MAIN]));
}

#[test]
fn the_files_of_old_versions_are_read() {
    let export: Value =
        serde_json::from_slice(&std::fs::read(fixture("export_ses_e1fa48844ffeNwtqQBjEmGxza0.json")).unwrap())
            .unwrap();
    let home = tempfile::tempdir().unwrap();
    let put = |folder: &str, parent: &str, value: &Value| {
        let folder = home.path().join("storage").join(folder).join(parent);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.json", value["id"].as_str().unwrap()));
        std::fs::write(path, serde_json::to_vec_pretty(value).unwrap()).unwrap();
    };
    put("session", "project", &export["info"]);
    for message in export["messages"].as_array().unwrap() {
        put("message", export["info"]["id"].as_str().unwrap(), &message["info"]);
        for part in message["parts"].as_array().unwrap() {
            put("part", message["info"]["id"].as_str().unwrap(), part);
        }
    }
    assert!(agent("opencode").unwrap().recognise(home.path(), b""));
    let all = read(home.path());
    assert_eq!(tree(&all.sessions[MAIN]), tree(&read(&fixture("opencode.db")).sessions[MAIN]));
    // A message that was torn is said, and the rest is there.
    let torn =
        home.path().join("storage/message/ses_e1fa48844ffeNwtqQBjEmGxza0/msg_1e05b839c0017qUooSsJa93jgh.json");
    std::fs::write(torn, "{\"role\":\"assi").unwrap();
    let all = read(home.path());
    assert_eq!((all.notes.len(), transcript(&all.sessions[MAIN]).len()), (1, 31));
}

type Rows = Vec<(String, Value)>;

fn rows(database: &Path, table: &str, session: &str) -> Rows {
    let connection = Connection::open(database).unwrap();
    let order = if table == "message" { "time_created, id" } else { "message_id, id" };
    let mut statement = connection
        .prepare(&format!("SELECT id, data FROM {table} WHERE session_id = ?1 ORDER BY {order}"))
        .unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
    let rows = statement.query_map([session], row).unwrap().map(Result::unwrap);
    rows.map(|(id, data)| (id, serde_json::from_str(&data).unwrap())).collect()
}

#[test]
fn opencode_to_opencode_gives_the_same_rows() {
    let (home, database) = home();
    let all = read(&database);
    let id = "ses_e1fa48844ffeNwtqQBjEmGxza0";
    Connection::open(&database).unwrap().execute("DELETE FROM session WHERE id = ?1", [id]).unwrap();
    Connection::open(&database).unwrap().execute_batch("DELETE FROM message WHERE session_id NOT IN (SELECT id FROM session); DELETE FROM part WHERE session_id NOT IN (SELECT id FROM session)").unwrap();
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_eq!(written.command, ["opencode", "-s", id]);
    for table in ["message", "part"] {
        assert_eq!(rows(&database, table, id), rows(&fixture("opencode.db"), table, id), "{table}");
    }
    assert_eq!(tree(&read(&database).sessions[MAIN]), tree(&all.sessions[MAIN]));
    // Once more: all ids are taken now, so it gets new ones, and it is still known as the same session.
    let written = write(&all.sessions[MAIN].outgoing(), home.path());
    assert_ne!(written.native_id, id);
    assert_eq!(rows(&database, "part", &written.native_id).len(), rows(&database, "part", id).len());
    let mut again = Collected { sessions: all.sessions, ..Collected::default() };
    let before = tree(&again.sessions[MAIN]);
    for source in sources(&database) {
        agent("opencode").unwrap().read(&source, None, &mut again).unwrap();
    }
    assert_eq!((again.sessions.len(), tree(&again.sessions[MAIN])), (5, before));
}

#[test]
fn a_directory_that_opencode_does_not_know_is_left_to_its_own_import() {
    let (home, database) = home();
    let all = read(&database);
    let to = Destination { home: home.path().to_owned(), cwd: "/elsewhere".into(), now_ms: 1_794_767_400_000 };
    let written = agent("opencode").unwrap().write(&all.sessions[MAIN].outgoing(), &to).unwrap();
    assert_eq!(written.command[..2], ["sh", "-c"]);
    let back = read(&written.paths[0]);
    assert_eq!(tree(&back.sessions[MAIN]), tree(&all.sessions[MAIN]));
    assert_eq!(back.sessions[MAIN].head.metadata["cwd"], "/elsewhere");
}

#[test]
fn a_session_that_grows_is_read_on() {
    let whole = tree(&read(&fixture("opencode.db")).sessions[MAIN]);
    let id = "ses_e1fa48844ffeNwtqQBjEmGxza0";
    let count = rows(&fixture("opencode.db"), "part", id).len();
    for cut in (0..=count).step_by(3).chain([count]) {
        let (_home, database) = home();
        let connection = Connection::open(&database).unwrap();
        let cutting = format!(
            "CREATE TABLE kept AS SELECT * FROM part; CREATE TABLE kept_messages AS SELECT * FROM message;
             DELETE FROM part WHERE session_id = '{id}' AND id NOT IN
                (SELECT id FROM part WHERE session_id = '{id}' ORDER BY message_id, id LIMIT {cut});
             UPDATE part SET data = json_set(data, '$.state', json('{{\"status\":\"running\",\"input\":{{}}}}'))
                WHERE id = (SELECT max(id) FROM part WHERE session_id = '{id}') AND data LIKE '%\"tool\"%callID%';
             DELETE FROM message WHERE session_id = '{id}' AND id > coalesce((SELECT max(message_id) FROM part WHERE session_id = '{id}'), '')"
        );
        connection.execute_batch(&cutting).unwrap();
        let source =
            |database: &Path| sources(database).into_iter().find(|one| one.key.as_deref() == Some(id)).unwrap();
        let mut all = Collected::default();
        let first = source(&database);
        let mark = agent("opencode").unwrap().read(&first, None, &mut all).unwrap();
        let back = "DELETE FROM part; INSERT INTO part SELECT * FROM kept;
            DELETE FROM message; INSERT INTO message SELECT * FROM kept_messages";
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {back}")).unwrap();
        let second = source(&database);
        assert_eq!(first.stamp != second.stamp, cut < count);
        let mark = agent("opencode").unwrap().read(&second, Some(&mark), &mut all).unwrap();
        let mut now = all.sessions.remove(MAIN).unwrap();
        now.entries.sort_by_key(|entry| crate::common::shown::place(entry, &whole));
        assert_eq!(
            transcript(&now),
            whole.iter().take(33).map(|line| line.rsplit_once(" < ").unwrap().0).collect::<Vec<_>>(),
            "cut after {cut}"
        );
        all.sessions.insert(MAIN.to_owned(), now);
        assert_eq!(agent("opencode").unwrap().read(&second, Some(&mark), &mut all).unwrap(), mark);
    }
}

#[test]
fn what_opencode_adds_to_our_session_is_added_to_ours() {
    let (home, database) = home();
    let mut session = read(&fixture("opencode.db")).sessions.remove(MAIN).unwrap().outgoing();
    session.meta.metadata = None;
    session.meta.session_id = "s_ours".to_owned().into();
    let written = write(&session, home.path());
    let connection = Connection::open(&database).unwrap();
    let now = 1_794_767_500_000_i64;
    connection.execute("INSERT INTO message VALUES ('msg_new', ?1, ?2, ?2, '{\"role\":\"user\",\"time\":{\"created\":1794767500000}}')", (&written.native_id, now)).unwrap();
    connection.execute("INSERT INTO part VALUES ('prt_new', 'msg_new', ?1, ?2, ?2, '{\"type\":\"text\",\"text\":\"And now?\"}')", (&written.native_id, now)).unwrap();
    let back = read(&database);
    let back = &back.sessions["s_ours"];
    assert_eq!(transcript(back).last().unwrap(), "user: And now?");
    let known: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
    assert_eq!(back.entries.iter().filter(|entry| !known.contains(&entry.id())).count(), 1);
}

#[test]
fn a_damaged_or_older_database_gives_what_it_has() {
    let (_home, database) = home();
    let connection = Connection::open(&database).unwrap();
    let damage = "ALTER TABLE session DROP COLUMN metadata; ALTER TABLE session DROP COLUMN revert;
        DROP TABLE session_message; DROP TABLE event; DROP TABLE event_sequence;
        UPDATE message SET data = '{\"role\":' WHERE id = 'msg_1e05bf905001AX6SjkVtjVzBoa';
        UPDATE part SET data = 'torn' WHERE id = 'prt_1e05b901b001rsGNpGe6tYRzRM'";
    connection.execute_batch(damage).unwrap();
    let all = read(&database);
    let lines = transcript(&all.sessions[MAIN]);
    assert_eq!(lines[2], "assistant: calls bash#50c5 {\"command\":\"echo hello-from-tool; ls\"}");
    assert_eq!(lines[5], "(opencode.text)");
    assert_eq!((lines.len(), all.notes.len()), (33, 1), "{:?}", all.notes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read_again(session in sessions()) {
        let home = tempfile::tempdir().unwrap();
        let written = write(&session, home.path());
        let back = read(&written.paths[0]);
        let back = back.sessions["s_generated"].outgoing();
        // A failed call has no pictures.
        let pictures_lost = written.lost.iter().any(|lost| lost.contains("picture in the result"));
        if !pictures_lost {
            prop_assert_eq!(told(&back, true), told(&session, true));
        }
        let ids: Vec<_> = session.entries.iter().map(SessionEntry::id).collect();
        prop_assert!(back.entries.iter().all(|entry| ids.contains(&entry.id())));
    }
}
