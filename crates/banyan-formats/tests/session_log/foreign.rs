//! Logs that others write: the document's own example first.

use banyan_formats::session_log::{Log, recognise};
use banyan_model::*;
use serde_json::{Value, json};

use crate::given::{Session, taken};

/// The example of the document, with times.
const EXAMPLE: &str = r#"{"schema_version":1,"seq":0,"time":"2026-01-01T00:00:00Z","type":"session_meta","session_id":"s-x","cwd":"/repo","title":"scratch","model":"m","provider":"p"}
{"schema_version":1,"seq":1,"time":"2026-01-01T00:00:01Z","type":"context","sources":[{"kind":"project_instructions","path":"/repo/AGENTS.md","hash":"h","truncated":false}]}
{"schema_version":1,"seq":2,"time":"2026-01-01T00:00:02Z","type":"user","turn_id":"turn_1","text":"explain this repo"}
{"schema_version":1,"seq":3,"time":"2026-01-01T00:00:03Z","type":"tool_started","turn_id":"turn_1","call_id":"call_1","name":"search_text","input":{"pattern":"main"}}
{"schema_version":1,"seq":4,"time":"2026-01-01T00:00:04Z","type":"tool_finished","turn_id":"turn_1","call_id":"call_1","status":"ok","duration_ms":31,"output":{"matches":3,"truncated":false}}
{"schema_version":1,"seq":5,"time":"2026-01-01T00:00:05Z","type":"assistant_finished","turn_id":"turn_1","message_id":"msg_1","text":"It is a repo.","usage":{"input":10,"output":2}}
"#;

fn messages(log: &Log) -> Vec<Value> {
    let of = |entry: &SessionEntry| match entry {
        SessionEntry::Message(entry) => serde_json::from_str(entry.message.get()).unwrap(),
        SessionEntry::Custom(entry) => json!({"custom_type": entry.custom_type, "data": entry.data}),
    };
    log.entries.iter().map(of).collect()
}

#[test]
fn given_the_documents_example_when_it_is_read_then_every_record_has_its_place() {
    assert!(recognise(EXAMPLE.as_bytes()));
    let log = taken(EXAMPLE);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let at = |second: i64| 1_767_225_600_000 + second * 1000;
    assert_eq!(
        messages(&log),
        [
            json!({"custom_type": "context", "data": {"sources": [
                {"kind": "project_instructions", "path": "/repo/AGENTS.md", "hash": "h", "truncated": false}]}}),
            json!({"role": "user", "content": text("explain this repo"), "timestamp": at(2)}),
            json!({"role": "assistant", "content": [
                {"type": "function_call", "id": "call_1", "function_id": "search_text", "arguments": {"pattern": "main"}}],
                "model": "m", "provider": "p", "stop_reason": "function_call", "timestamp": at(3)}),
            json!({"role": "function_result", "function_call_id": "call_1", "function_id": "search_text",
                "content": text(r#"{"matches":3,"truncated":false}"#),
                "details": {"matches": 3, "truncated": false, "duration_ms": 31}, "is_error": false, "timestamp": at(4)}),
            json!({"role": "assistant", "content": text("It is a repo."), "model": "m", "provider": "p",
                "stop_reason": "end", "usage": {"input": 10, "output": 2}, "timestamp": at(5)}),
        ]
    );
    assert_eq!((log.report.invented.len(), log.report.aside.len()), (0, 0), "{:?}", log.report);
    assert_eq!((log.meta.session_id.as_str(), log.meta.title.as_str()), ("s-x", "scratch"));
    assert_eq!(
        Value::from(log.meta.metadata.clone().unwrap()),
        json!({"cwd": "/repo", "model": "m", "provider": "p"})
    );
    assert_eq!((log.meta.created_at, log.meta.updated_at), (at(0), at(5)));
    assert_eq!(log.active_leaf.as_ref().unwrap().as_str(), "msg_1");
    assert_eq!(taken(EXAMPLE), log, "reading is always the same");

    let session = Session::of(log);
    let turns = crate::turns::of(&session);
    assert_eq!((turns.len(), turns[0].turn_id.as_str(), turns[0].status), (1, "turn_1", TurnStatus::Finished));
    assert_eq!(turns[0].tools[0].duration_ms, Some(31));
    assert_eq!(turns[0].working_directory.as_deref(), Some("/repo"));
    assert_eq!(turns[0].instructions[0].hash.as_deref(), Some("h"));
    assert!(session.log().contains(r#""type":"user","turn_id":"turn_1""#), "a turn keeps its name");
    assert_eq!(Session::of(taken(&session.log())), session);
}

fn event(seq: u64, rest: Value) -> String {
    let mut line = json!({"schema_version": 1, "seq": seq, "time": format!("2026-01-01T00:00:{:02}Z", seq % 60)});
    line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    line.to_string()
}

fn log(events: &[Value]) -> Log {
    let meta = json!({"type": "session_meta", "session_id": "s"});
    let lines: Vec<String> =
        std::iter::once(&meta).chain(events).zip(0..).map(|(rest, seq)| event(seq, rest.clone())).collect();
    taken(&lines.join("\n"))
}

#[test]
fn given_turns_that_end_badly_when_they_are_read_then_they_are_told_so() {
    let log = log(&[
        json!({"type": "user", "turn_id": "a", "text": "1"}),
        json!({"type": "assistant_started", "turn_id": "a", "message_id": "m1", "model": "x", "provider": "y"}),
        json!({"type": "cancelled", "turn_id": "a", "reason": "by the user"}),
        json!({"type": "user", "turn_id": "b", "text": "2"}),
        json!({"type": "failed", "turn_id": "b", "reason": "auth", "message": "Sign in again"}),
        json!({"type": "user", "turn_id": "c", "text": "3"}),
        json!({"type": "tool_started", "turn_id": "c", "call_id": "k1", "name": "f", "input": 1}),
        json!({"type": "tool_started", "turn_id": "c", "call_id": "k2", "name": "f", "input": 1}),
        json!({"type": "tool_finished", "turn_id": "c", "call_id": "k1", "status": "interrupted"}),
        json!({"type": "tool_finished", "turn_id": "c", "call_id": "k2", "status": "skipped"}),
        json!({"type": "session_renamed", "title": "First"}),
        json!({"type": "session_renamed", "title": "Second"}),
    ]);
    assert_eq!(log.meta.title, "Second");
    let turns = crate::turns::of(&Session::of(log));
    let told: Vec<_> = turns.iter().map(|turn| (turn.turn_id.as_str(), turn.status)).collect();
    assert_eq!(told, [("a", TurnStatus::Cancelled), ("b", TurnStatus::Failed), ("c", TurnStatus::Pending)]);
    assert_eq!(turns[1].errors[0].message, "Sign in again");
    let tools: Vec<_> = turns[2].tools.iter().map(|tool| tool.state).collect();
    assert_eq!(tools, [ToolState::Interrupted, ToolState::Skipped]);
}

#[test]
fn given_fields_and_types_that_nobody_knows_when_they_are_read_then_they_are_kept() {
    let log = log(&[
        json!({"type": "user", "turn_id": "t", "text": "1", "attachments": [{"path": "a"}]}),
        json!({"type": "assistant_finished", "turn_id": "t", "text": "2", "provider_request_id": "r1", "finish_reason": "odd"}),
        json!({"type": "archived", "turn_id": "t", "at": 7}),
    ]);
    let origin = |at: usize| Value::from(log.entries[at].origin().unwrap().object());
    assert_eq!(origin(0), json!({"session_log": {"turn_id": "t", "more": {"attachments": [{"path": "a"}]}}}));
    assert_eq!(origin(1), json!({"session_log": {"more": {"provider_request_id": "r1"}}}));
    assert_eq!(messages(&log)[1]["native_stop_reason"], "odd");
    assert_eq!(
        messages(&log)[2],
        json!({"custom_type": "session-log.archived", "data": {"turn_id": "t", "at": 7}})
    );
    let session = Session::of(log);
    assert_eq!(Session::of(taken(&session.log())), session);
}

#[test]
fn given_a_log_that_grew_when_it_is_read_again_then_what_was_there_keeps_its_ids() {
    let all: Vec<String> = EXAMPLE.lines().map(str::to_owned).collect();
    let whole = taken(EXAMPLE);
    for kept in [3, 5] {
        let earlier = taken(&all[..kept].join("\n"));
        assert_eq!(earlier.entries[..], whole.entries[..earlier.entries.len()]);
    }
}

#[test]
fn given_other_files_when_they_are_looked_at_then_they_are_not_taken_for_logs() {
    for other in [
        "",
        "{}",
        "PK\x03\x04",
        r#"{"timestamp":"2026","type":"session_meta","payload":{}}"#,
        r#"{"schema_version":1,"seq":0,"time":"t","commit":"0","type":"created","session_id":"s"}"#,
        "# A title\n",
    ] {
        assert!(!recognise(other.as_bytes()), "{other}");
    }
    let long = format!(r#"{{"schema_version":1,"seq":0,"time":"t","type":"user","text":"{}"#, "x".repeat(5000));
    assert!(recognise(long.as_bytes()));
    assert!(recognise(format!("broken\n{}", event(1, json!({"type": "user", "text": ""}))).as_bytes()));
}
