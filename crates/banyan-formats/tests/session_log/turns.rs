//! Turns: status, usage, durations, tools, and the facts that an audit asks for.

use banyan_formats::audit::Facts;
use banyan_formats::turns::{Outlook, Turns};
use banyan_model::*;
use serde_json::{Value, json};

use crate::given::{Session, assistant, call, result, session, user};

pub(crate) fn of(session: &Session) -> Vec<Turn> {
    let meta = &session.meta;
    let mut turns = Turns::new(Facts::of_metadata(meta.metadata.as_ref()));
    let mut told: Vec<Turn> = session.entries.iter().filter_map(|entry| turns.push(entry)).collect();
    let outlook = Outlook::of(meta.status, meta.status_reason.clone(), meta.updated_at, meta.updated_at);
    told.extend(turns.finish(&outlook));
    told
}

fn told(contents: &[Value], status: SessionStatus) -> Vec<Turn> {
    let mut session = session(contents);
    session.meta.status = status;
    session.meta.status_reason = (status == SessionStatus::Error).then(|| "Out of money".to_owned());
    of(&session)
}

#[test]
fn given_a_turn_with_tools_when_it_is_told_then_nothing_but_its_facts_is_there() {
    let usage = |message: Value, input: u64| {
        let mut message = message;
        message["usage"] = json!({"input": input, "output": 1, "cost_usd": 0.5});
        message
    };
    let turns = told(
        &[
            json!({"custom_type": "codex.turn_context", "data": {"cwd": "/elsewhere", "instructions": [
                {"path": "/AGENTS.md", "sha256": "ff", "truncated": true}, "/more.md"]}}),
            user("go"),
            usage(assistant(json!([call("a"), call("b")]), "function_call"), 10),
            result("a", "fine"),
            json!({"role": "function_result", "function_call_id": "b", "function_id": "read", "content": [],
                "is_error": true, "details": {"duration_ms": 7}}),
            usage(assistant(json!([{"type": "text", "text": "done"}]), "end"), 20),
        ],
        SessionStatus::Idle,
    );
    let expected = json!([{
        "turn_id": "e1", "status": "finished", "model": "m-1", "provider": "p",
        "usage": {"input": 30, "output": 2, "cost_usd": 1.0},
        "started_at": 1_717_800_001_000_i64, "ended_at": 1_717_800_005_000_i64, "duration_ms": 4000,
        "first_entry_id": "e1", "last_entry_id": "e5",
        "tools": [
            {"call_id": "a", "name": "read", "state": "ok", "started_at": 1_717_800_002_000_i64,
                "ended_at": 1_717_800_003_000_i64, "duration_ms": 1000, "entry_id": "e2", "result_entry_id": "e3"},
            {"call_id": "b", "name": "read", "state": "failed", "started_at": 1_717_800_002_000_i64,
                "ended_at": 1_717_800_004_000_i64, "duration_ms": 7, "entry_id": "e2", "result_entry_id": "e4"},
        ],
        "errors": [],
        "working_directory": "/elsewhere",
        "instructions": [{"path": "/AGENTS.md", "hash": "ff", "truncated": true}, {"path": "/more.md"}],
    }]);
    assert_eq!(serde_json::to_value(&turns).unwrap(), expected);
}

#[test]
fn given_a_call_without_a_result_when_it_is_told_then_its_state_follows_from_what_came_after() {
    let asked = |stop: &str| vec![user("go"), assistant(json!([call("a")]), stop)];
    let then = |stop: &str, more: &[Value]| [asked(stop).as_slice(), more].concat();
    let cases: Vec<(Vec<Value>, SessionStatus, TurnStatus, ToolState)> = vec![
        (asked("function_call"), SessionStatus::Idle, TurnStatus::Pending, ToolState::Pending),
        (asked("function_call"), SessionStatus::Working, TurnStatus::Running, ToolState::Pending),
        (asked("function_call"), SessionStatus::Done, TurnStatus::Interrupted, ToolState::Interrupted),
        (asked("function_call"), SessionStatus::Error, TurnStatus::Failed, ToolState::Interrupted),
        (asked("aborted"), SessionStatus::Idle, TurnStatus::Cancelled, ToolState::Skipped),
        (asked("error"), SessionStatus::Idle, TurnStatus::Failed, ToolState::Skipped),
        (asked("length"), SessionStatus::Idle, TurnStatus::Finished, ToolState::Skipped),
        (
            then("function_call", &[user("never mind")]),
            SessionStatus::Idle,
            TurnStatus::Interrupted,
            ToolState::Interrupted,
        ),
        (
            then("function_call", &[assistant(json!([]), "end")]),
            SessionStatus::Idle,
            TurnStatus::Finished,
            ToolState::Skipped,
        ),
    ];
    for (contents, session, status, state) in cases {
        let turn = told(&contents, session).remove(0);
        assert_eq!((turn.status, turn.tools[0].state), (status, state), "{contents:?} {session:?}");
        assert_eq!(turn.ended_at.is_some(), status.is_over());
    }
}

#[test]
fn given_a_question_without_an_answer_when_it_is_told_then_it_waits_or_was_left() {
    let status =
        |contents: &[Value], session| told(contents, session).iter().map(|turn| turn.status).collect::<Vec<_>>();
    assert_eq!(status(&[user("a")], SessionStatus::Idle), [TurnStatus::Pending]);
    assert_eq!(status(&[user("a")], SessionStatus::Working), [TurnStatus::Running]);
    assert_eq!(status(&[user("a"), user("b")], SessionStatus::Done), [TurnStatus::Interrupted; 2]);
}

#[test]
fn given_errors_when_they_are_told_then_in_the_words_that_people_saw_and_without_secrets() {
    let mut failed = assistant(json!([]), "error");
    failed["error_message"] = json!(format!("no such key: sk-ant-{}", "a1".repeat(20)));
    failed["error_kind"] = json!("auth_expired");
    let turn = told(&[user("a"), failed], SessionStatus::Error).remove(0);
    let expected = json!([
        {"kind": "auth_expired", "message": "no such key: [redacted:anthropic-key]", "entry_id": "e1"},
        {"message": "Out of money"},
    ]);
    assert_eq!(serde_json::to_value(&turn.errors).unwrap(), expected);
}

#[test]
fn given_results_in_a_persons_message_when_they_are_told_then_the_turn_goes_on() {
    let block = json!({"role": "user", "content": [{"type": "function_result", "function_call_id": "a",
        "content": [{"type": "text", "text": "x"}], "is_error": true}]});
    let turns = told(&[user("go"), assistant(json!([call("a")]), "function_call"), block], SessionStatus::Idle);
    assert_eq!((turns.len(), turns[0].tools[0].state), (1, ToolState::Failed));
    assert_eq!(turns[0].tools[0].result_entry_id, Some("e2".into()));
}

#[test]
fn given_an_id_that_is_used_twice_when_results_come_then_each_settles_a_call_of_its_own() {
    let asks = || assistant(json!([call("a")]), "function_call");
    let turns = told(&[user("go"), asks(), result("a", "1"), asks(), result("a", "2")], SessionStatus::Idle);
    let results: Vec<_> = turns[0].tools.iter().map(|tool| tool.result_entry_id.clone().unwrap()).collect();
    assert_eq!(results, [EntryId::from("e2"), EntryId::from("e4")]);
}
