//! `banyan ls`, `show` and `tail`: looking at what is there.

use std::io::Read;
use std::process::Stdio;

use crate::common::{Place, assistant, user};
use serde_json::{Value, json};

#[test]
fn an_empty_directory_says_what_to_do_next() {
    let place = Place::new();
    let said = place.run(&["ls"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert!(said.err.contains("There are no sessions in") && said.err.contains("session::create"), "{}", said.err);
    assert_eq!(place.run(&["ls", "--json"]).ok().out, "");
    assert!(!place.dir().exists());
}

#[test]
fn sessions_are_listed_in_a_table_without_colour_for_programs() {
    let place = Place::new();
    place.session("alpha", "The \u{1b}[31mfirst\none", &["hi"]);
    place.session("beta", "天気予報", &[]);
    let said = place.run(&["ls", "--order", "created_asc"]).ok();
    let rows: Vec<Vec<&str>> = said.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec!["ID", "UPDATED", "STATUS", "MESSAGES", "TITLE"],
            vec!["alpha", "just", "now", "idle", "1", "The", "\u{fffd}[31mfirst", "one"],
            vec!["beta", "just", "now", "idle", "0", "天気予報"],
        ]
    );
}

#[test]
fn lists_are_filtered_ordered_and_continued() {
    let place = Place::new();
    for (id, labels) in
        [("a", json!({"user": "ada"})), ("b", json!({"user": "ada", "n": 7})), ("c", json!({"agent": "pi"}))]
    {
        place.call("session::ensure", &json!({"session_id": id, "metadata": labels}));
    }
    place.call("session::set-status", &json!({"session_id": "b", "status": "working"}));
    let list = |args: &[&str]| place.run(&[&["ls", "--json", "--order", "created_asc"], args].concat()).ids();
    assert_eq!(list(&[]), ["a", "b", "c"]);
    assert_eq!(list(&["--meta", "user=ada"]), ["a", "b"]);
    assert_eq!(list(&["--meta", "user=ada", "--meta", "n=7"]), ["b"]);
    assert_eq!(list(&["--meta", r#"n="7""#]), Vec::<String>::new());
    assert_eq!(list(&["--agent", "pi"]), ["c"]);
    assert_eq!(list(&["--agent", "codex"]), Vec::<String>::new());
    assert_eq!(list(&["--status", "working"]), ["b"]);

    let first = place.run(&["ls", "--json", "--order", "created_asc", "--limit", "2"]);
    assert_eq!(first.ids(), ["a", "b"]);
    let cursor = first.err.trim().rsplit(' ').next().unwrap();
    assert_eq!(list(&["--cursor", cursor]), ["c"]);
    assert_eq!(place.run(&["ls", "--status", "asleep"]).code, Some(2));
    assert_eq!(place.run(&["ls", "--meta", "user"]).code, Some(2));
    assert_eq!(
        place.run(&["ls", "--cursor", "nonsense", "--json"]).refusal(),
        (Some(1), "session/invalid_cursor".into())
    );
}

#[test]
fn a_conversation_reads_like_one() {
    let place = Place::new();
    place.session("talk", "A talk", &["What is in the folder?"]);
    let append =
        |message: Value| place.call("session::append", &json!({"session_id": "talk", "message": message}));
    append(assistant(json!([
        {"type": "thinking", "text": "I should look."},
        {"type": "text", "text": "Let me look."},
        {"type": "function_call", "id": "c1", "function_id": "fs::list", "arguments": {"path": "."}},
    ])));
    append(json!({"role": "function_result", "function_call_id": "c1", "function_id": "fs::list",
        "content": [{"type": "text", "text": "a.txt\nb.txt\nc.txt"}], "is_error": false, "timestamp": 1}));
    append(assistant(json!([{"type": "text", "text": "Three files."}])));
    append(json!({"role": "user", "timestamp": 1, "content": [
        {"type": "image", "mime": "image/png", "data": "aGVsbG8gd29ybGQ="}, {"type": "text", "text": "Like this?"}]}));
    place.call(
        "session::append",
        &json!({"session_id": "talk", "custom": {"custom_type": "note", "data": {"n": 1}}}),
    );

    let said = place.run(&["show", "talk", "--custom"]).ok();

    let lines: Vec<&str> = said.out.lines().collect();
    let conversation = &lines[2..];
    assert_eq!(lines[0], "A talk");
    assert_eq!(lines[1], "talk · idle · 5 messages · changed just now");
    assert_eq!(
        conversation,
        [
            "",
            "user · 2024-06-07 22:40",
            "What is in the folder?",
            "",
            "assistant · m-1 · 22:40",
            "┊ I should look.",
            "",
            "Let me look.",
            "",
            "→ fs::list path: .",
            "← fs::list",
            "  a.txt",
            "  b.txt",
            "  c.txt",
            "",
            "Three files.",
            "",
            "user · 1970-01-01 00:00",
            "[image image/png, 11 B]",
            "",
            "Like this?",
            "· note {\"n\":1}",
        ]
    );
    let entries = place.run(&["show", "talk", "--json"]).ok().json_lines();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries[0]["message"], user("What is in the folder?"));
}

#[test]
fn what_is_long_is_cut_with_a_hint_and_shown_whole_when_asked() {
    let place = Place::new();
    place.session("long", "", &[]);
    let numbers = |upto: usize| (1..=upto).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let append =
        |message: Value| place.call("session::append", &json!({"session_id": "long", "message": message}));
    append(assistant(json!([
        {"type": "thinking", "text": numbers(12)},
        {"type": "text", "text": numbers(12)},
        {"type": "function_call", "id": "c1", "function_id": "run", "arguments": {"n": 2, "script": numbers(12)}},
    ])));
    append(json!({"role": "function_result", "function_call_id": "c1", "function_id": "run", "timestamp": 1,
        "content": [{"type": "text", "text": numbers(40)}], "is_error": true}));

    let short = place.run(&["show", "long"]).ok().out;
    let told = |hint: &str| short.lines().filter(|line| *line == hint).count();
    assert_eq!(told("┊ … 4 lines more (--full shows all)"), 1, "{short}");
    assert_eq!(told("          … 4 lines more (--full shows all)"), 1, "{short}");
    assert_eq!(told("  … 32 lines more (--full shows all)"), 1, "{short}");
    assert!(short.contains("\n← run failed:\n  line 1\n"), "{short}");
    assert!(short.contains("\n→ run\n  n: 2\n  script: line 1\n          line 2\n"), "{short}");
    assert!(short.contains(&numbers(12)), "what was said is never cut: {short}");

    let full = place.run(&["show", "long", "--full"]).ok().out;
    assert!(full.contains("\n  line 40\n") && !full.contains("--full"), "{full}");
}

#[test]
fn every_page_of_a_long_conversation_is_shown() {
    let place = Place::new();
    place.session("long", "", &[]);
    let messages: Vec<Value> = (0..1_234).map(|number| user(&format!("message {number}"))).collect();
    let request = json!({"session_id": "long", "messages": messages}).to_string();
    place.feed(&["call", "session::append-many", "-"], &request).ok();
    assert_eq!(place.run(&["show", "long", "--json"]).ok().json_lines().len(), 1_234);
    assert!(place.run(&["show", "long"]).ok().out.ends_with("message 1233\n"));
}

#[test]
fn branches_are_drawn_and_can_be_read() {
    let place = Place::new();
    let entries = place.session("tree", "Tree", &["root", "first try"]);
    let request = json!({"session_id": "tree", "message": user("second try"), "parent_id": entries[0]});
    let second = place.call("session::append", &request)["entry_id"].as_str().unwrap().to_owned();

    let said = place.run(&["show", "tree", "--tree"]).ok();
    let drawn: Vec<&str> = said.out.lines().skip(3).map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(drawn, [format!("● {}", entries[0]), format!("├─ ○ {}", entries[1]), format!("● {second}")]);
    let nodes = place.run(&["show", "tree", "--tree", "--json"]).ok().json_lines();
    assert_eq!(
        nodes.iter().map(|node| node["on_active_path"].as_bool().unwrap()).collect::<Vec<_>>(),
        [true, false, true]
    );

    assert_eq!(place.texts("tree", &[]), ["root", "second try"]);
    assert_eq!(place.texts("tree", &["--branch", &entries[1]]), ["root", "first try"]);
    let unknown = place.run(&["show", "tree", "--branch", "e_none", "--json"]).refusal();
    assert_eq!(unknown, (Some(1), "session/entry_not_found".into()));
}

#[test]
fn the_beginning_of_an_id_is_enough_when_it_is_the_only_one() {
    let place = Place::new();
    place.session("apple", "Red", &["a"]);
    place.session("apricot", "Orange", &["b"]);
    place.session("ap", "Whole", &["c"]);
    assert_eq!(place.run(&["show", "appl", "--json"]).ok().json_lines()[0]["message"], user("a"));
    assert_eq!(place.run(&["show", "ap", "--json"]).ok().json_lines()[0]["message"], user("c"));
    let several = place.run(&["show", "a"]);
    assert_eq!((several.code, several.out.as_str()), (Some(2), ""));
    for candidate in ["apple  Red", "apricot  Orange", "ap  Whole"] {
        assert!(several.err.contains(candidate), "{}", several.err);
    }
    assert_eq!(place.run(&["show", "banana", "--json"]).refusal(), (Some(1), "session/not_found".into()));
}

#[test]
fn the_past_is_told_event_by_event_and_from_any_position_on() {
    let place = Place::new();
    let entries = place.session("s", "Told", &["one"]);
    place.session("other", "", &[]);
    place.call("session::extend-message", &json!({"session_id": "s", "entry_id": entries[0], "text": " two"}));
    place.call("session::set-status", &json!({"session_id": "s", "status": "working"}));

    let all = place.run(&["tail", "--json"]).ok().json_lines();
    let kinds: Vec<&str> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "session::created",
            "session::message-added",
            "session::created",
            "session::message-updated",
            "session::status-changed"
        ]
    );
    for event in &all {
        assert_eq!(event.as_object().unwrap().keys().collect::<Vec<_>>(), ["position", "type", "data"]);
    }
    let after = all[2]["position"].as_str().unwrap();
    assert_eq!(place.run(&["tail", "--json", "--after", after, "--once"]).ok().json_lines(), all[3..]);
    let only = |args: &[&str]| place.run(&[&["tail", "--json"], args].concat()).ok().json_lines();
    assert_eq!(only(&["other"]), [all[2].clone()]);
    assert_eq!(only(&["s", "--type", "status-changed,created"]), [all[0].clone(), all[4].clone()]);
    assert_eq!(only(&["--roles", "user"]), [all[1].clone(), all[3].clone()]);
    assert_eq!(only(&["--roles", "assistant"]), Vec::<Value>::new());
    assert_eq!(only(&["--meta", "user=ada"]), Vec::<Value>::new());

    let lines = place.run(&["tail", "s"]).ok().out;
    assert!(lines.contains("user: one two") && lines.contains("idle → working"), "{lines}");
    assert_eq!(place.run(&["tail", "--after", "yesterday"]).code, Some(2));
    let no_messages = place.run(&["tail", "--json", "--roles", "user", "--type", "created,deleted"]);
    assert_eq!(no_messages.refusal(), (Some(2), "cli/usage".into()));
    assert_eq!(place.run(&["tail", "nobody", "--json"]).refusal(), (Some(1), "session/not_found".into()));
}

#[test]
fn a_snapshot_is_the_session_as_it_is() {
    let place = Place::new();
    place.session("s", "Now", &["one", "two"]);
    let told = place.run(&["tail", "s", "--snapshot", "--json"]).ok().json_lines();
    let kinds: Vec<(bool, &str)> =
        told.iter().map(|event| (event["position"].is_null(), event["type"].as_str().unwrap())).collect();
    assert_eq!(
        kinds,
        [
            (true, "session::created"),
            (true, "session::message-added"),
            (true, "session::message-added"),
            (false, "banyan::snapshot-end")
        ]
    );
    assert_eq!(place.run(&["tail", "--snapshot"]).code, Some(2));
}

#[test]
fn a_reader_that_leaves_early_is_no_trouble() {
    let place = Place::new();
    place.session("long", "", &[]);
    let messages: Vec<Value> = (0..2_000).map(|_| user(&"words ".repeat(100))).collect();
    let request = json!({"session_id": "long", "messages": messages}).to_string();
    place.feed(&["call", "session::append-many", "-"], &request).ok();
    for args in [&["show", "long"][..], &["show", "long", "--json"], &["tail"], &["tail", "--json"]] {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut some = [0; 10];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut some).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}
