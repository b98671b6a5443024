//! Every command twice: on a data directory, and asking a server that has the same one.

use std::fs;
use std::path::Path;

use crate::common::{Place, Said, assistant, user};
use serde_json::{Value, json};

/// A store with a bit of everything.
fn filled() -> Place {
    let place = Place::new();
    let entries = place.session("alpha", "The first", &["root", "first try"]);
    place.call(
        "session::append",
        &json!({"session_id": "alpha", "message": user("other"), "parent_id": entries[0]}),
    );
    let content = json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "So ü"}]);
    let reply = place.call("session::append", &json!({"session_id": "alpha", "message": assistant(content)}));
    place.call(
        "session::extend-message",
        &json!({"session_id": "alpha", "entry_id": reply["entry_id"], "text": " and so"}),
    );
    place.call(
        "session::append",
        &json!({"session_id": "alpha", "custom": {"custom_type": "note", "data": {"n": 1}}}),
    );
    place.call(
        "session::ensure",
        &json!({"session_id": "../b /?", "title": "Odd", "metadata": {"owner": "u_1", "n": 7}}),
    );
    place.call("session::set-status", &json!({"session_id": "../b /?", "status": "working"}));
    place.session("gone", "", &["bye"]);
    place.run(&["rm", "--yes", "gone"]).ok();
    place
}

/// Reads, and what is refused before anything changes: the store is the same afterwards.
const READS: &[&[&str]] = &[
    &["ls"],
    &["ls", "--json"],
    &["ls", "--json", "--meta", "owner=u_1", "--meta", "n=7", "--status", "working"],
    &["ls", "--json", "--order", "created_asc", "--limit", "1"],
    &["ls", "--json", "--cursor", "nonsense"],
    &["ls", "--status", "asleep"],
    &["show", "al"],
    &["show", "al", "--json"],
    &["show", "alpha", "--custom", "--full"],
    &["show", "alpha", "--tree"],
    &["show", "alpha", "--tree", "--json"],
    &["show", "alpha", "--branch", "e_none", "--json"],
    &["show", "../b /?"],
    &["show", "nobody", "--json"],
    &["show", "alpha", "--turns"],
    &["show", "alpha", "--turns", "--json"],
    &["show", "alpha", "--turns", "--tree"],
    &["export", "alpha", "--to", "session-log"],
    &["export", "al", "--to", "markdown", "-o", "-"],
    &["export", "alpha", "--to", "html", "--redact"],
    &["export", "../b /?", "--to", "session-log"],
    &["export", "nobody", "--to", "html", "--json"],
    &["export", "alpha", "--to", "parchment"],
    &["import", "/nonexistent", "--json"],
    &["import", "Cargo.toml", "--json"],
    &["tail", "--once"],
    &["tail", "--once", "--json"],
    &["tail", "alpha", "--once", "--json", "--type", "message-updated,created"],
    &["tail", "../b /?", "--once", "--json"],
    &["tail", "gone", "--once", "--json"],
    &["tail", "--once", "--json", "--roles", "user,assistant"],
    &["tail", "--once", "--json", "--roles", "user", "--type", "message-added,status-changed"],
    &["tail", "--once", "--json", "--meta", "owner=u_1"],
    &["tail", "--once", "--json", "--after", "000000000003-000000"],
    &["tail", "--once", "--json", "--after", "00000000ffff-000000"],
    &["tail", "--once", "--json", "--after", "now"],
    &["tail", "alpha", "--once", "--json", "--snapshot"],
    &["tail", "nobody", "--once", "--json"],
    &["call", "session::list", "--json"],
    &["call", "session::get", r#"{"session_id":"nobody"}"#],
    &["call", "session::get", r#"{"session_id":"../b /?"}"#],
    &["call", "session::messages-tail", r#"{"session_id":"alpha","limit":2}"#],
    &["call", "session::messages", "{", "--json"],
    &["call", "session::apend", "--json"],
    &[
        "call",
        "session::append",
        r#"{"session_id":"nobody","message":{"role":"user","content":[],"timestamp":1}}"#,
        "--json",
    ],
    &["call", "--list", "--json"],
    &["call", "session::fork", "--schema"],
    &["fork", "nobody", "--json"],
    &["fork", "alpha", "e_none", "--json"],
    &["rm", "alpha", "--json"],
    &["rm", "--yes", "alpha", "nobody", "--json"],
    &["key", "ls"],
    &["key", "rm", "nobody", "--json"],
    &["key", "create", "--name", " ", "--json"],
];

#[test]
fn a_server_is_read_as_its_directory_is() {
    let place = filled();
    let served = place.serve();
    let asked: Vec<Said> = READS.iter().map(|args| told(place.ask(&served, args))).collect();
    assert_eq!(served.stop("TERM"), Some(0));
    let read: Vec<Said> = READS.iter().map(|args| told(place.run(args))).collect();
    for ((asked, read), args) in asked.iter().zip(&read).zip(READS) {
        assert_eq!(asked, read, "{args:?}");
    }
    // That so much is equal means something only while something is said.
    assert_eq!(read.iter().filter(|said| said.code == Some(0) && said.out.len() > 20).count(), 31);
    assert_eq!(read.iter().filter(|said| said.code != Some(0) && said.err.len() > 20).count(), 20);
}

/// What was said, less how the next command is begun.
fn told(mut said: Said) -> Said {
    if let Some(at) = said.err.find("  Make one:") {
        said.err.truncate(at);
    }
    said
}

/// Changes; `ENTRY` stands for the first entry of the session.
const CHANGES: &[&[&str]] = &[
    &["fork", "alpha", "--json"],
    &["fork", "alpha", "ENTRY", "--title", "Another", "--json"],
    &["fork", "alpha", "ENTRY", "--title", "A third"],
    &["call", "session::create", r#"{"title":"New"}"#],
    &["call", "session::set-meta", r#"{"session_id":"alpha","title":"Renamed"}"#],
    &["call", "session::append-many", r#"{"session_id":"alpha","messages":[]}"#, "--json"],
    &["rm", "--yes", "alpha", "../b"],
    &["ls", "--json", "--order", "created_asc"],
    &["key", "create", "--name", "ci", "--scope", "owner=u_1", "--read-only", "--rate", "5", "--json"],
];

#[test]
fn a_server_is_changed_as_its_directory_is() {
    let place = filled();
    let twin = Place::new();
    copy(&place.dir(), &twin.dir());
    let nodes = place.run(&["show", "alpha", "--tree", "--json"]).ok().json_lines();
    let entry = nodes[0]["entry_id"].as_str().unwrap();
    let args =
        |args: &[&'static str]| -> Vec<String> { args.iter().map(|arg| arg.replace("ENTRY", entry)).collect() };
    let served = twin.serve();
    for change in CHANGES {
        let change = args(change);
        let change: Vec<&str> = change.iter().map(String::as_str).collect();
        let (here, there) = (place.run(&change), twin.ask(&served, &change));
        assert_eq!(blurred(here), blurred(there), "{change:?}");
    }
    assert_eq!(served.stop("TERM"), Some(0));
    twin.run(&["verify"]).ok();
}

#[test]
fn many_calls_on_one_stream_are_answered_by_a_server_too() {
    let place = filled();
    let served = place.serve();
    let input: String = (0..200)
        .map(|number| {
            let request = json!({"session_id": "alpha", "message": user(&number.to_string())});
            json!({"id": number, "function": "session::append", "request": request}).to_string() + "\n"
        })
        .collect();
    let args = ["--url", &served.url, "call", "--stream", "--concurrency", "16"];
    let answers = place.feed(&args, &input).ok().json_lines();
    let mut ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["ok"]["entry_id"].is_string()));
    assert_eq!(served.stop("TERM"), Some(0));
    assert_eq!(
        place.run(&["call", "session::get", r#"{"session_id":"alpha"}"#]).ok().json_lines()[0]["meta"]["message_count"],
        204
    );
}

/// What was said, with ids, secrets and times that cannot be the same made equal.
fn blurred(said: Said) -> (Option<i32>, Vec<Value>, String) {
    let lines = said.out.lines().map(|line| match serde_json::from_str(line) {
        Ok(value) => blur(value),
        Err(_) => blur(json!(line)),
    });
    (said.code, lines.collect(), said.err)
}

fn blur(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() == 34 && (text.starts_with("s_") || text.starts_with("e_")) => {
            json!("ID")
        }
        Value::String(text) if text.starts_with("banyan_") => json!("SECRET"),
        Value::Number(number) if number.as_i64() > Some(1_750_000_000_000) => json!("TIME"),
        Value::Array(items) => items.into_iter().map(blur).collect(),
        Value::Object(fields) => {
            let is_key = fields.contains_key("read_only");
            let blurred = |(name, value)| match is_key && name == "id" {
                true => (name, json!("ID")),
                false => (name, blur(value)),
            };
            fields.into_iter().map(blurred).collect()
        }
        value => value,
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
}
