//! One session in all shapes, whole.

use banyan_model::*;
use serde_json::json;

use crate::given;
use crate::session::*;

fn session() -> Session {
    let mut session = Session::default();
    session.say("e_1", given::user(vec![given::text("What is 6 × 7?")], 1000));
    let call = given::call("c", "multiply", &json!({"a": 6, "b": 7}));
    let asks = given::assistant(vec![given::thinking("I multiply."), call], StopReason::FunctionCall, 2000);
    session.say("e_2", asks);
    session.say("e_3", given::result("c", "multiply", vec![given::text("42")], 3000));
    session.say("e_4", given::assistant(vec![given::text("It is 42.")], StopReason::End, 4000));
    session
}

#[test]
fn given_a_turn_with_a_call_when_assistant_ui_reads_it_then_it_is_one_message_with_the_result_in_the_call() {
    let out = session().shown(find("assistant-ui"));
    assert_eq!(out["headId"], "e_2");
    let answer = &out["messages"][1];
    assert_eq!((&answer["parentId"], &answer["message"]["id"]), (&json!("e_1"), &json!("e_2")));
    assert_eq!(
        answer["message"]["content"],
        json!([
            {"type": "reasoning", "text": "I multiply."},
            {"type": "tool-call", "toolCallId": "c", "toolName": "multiply", "args": {"a": 6, "b": 7},
                "argsText": "{\"a\":6,\"b\":7}", "result": "42", "isError": false},
            {"type": "text", "text": "It is 42."},
        ])
    );
    assert_eq!(answer["message"]["status"], json!({"type": "complete", "reason": "stop"}));
    assert_eq!(answer["message"]["createdAt"], "1970-01-01T00:00:02.000000+00:00");
}

#[test]
fn given_a_branch_within_a_turn_when_assistant_ui_reads_it_then_the_turn_ends_there() {
    let mut session = session();
    session.leaf = Some("e_3".into());
    session.say("e_5", given::assistant(vec![given::text("42, I think.")], StopReason::End, 5000));
    let out = session.shown(find("assistant-ui"));
    let tree: Vec<_> = out["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["message"]["id"].as_str().unwrap(), item["parentId"].as_str()))
        .collect();
    assert_eq!(tree, [("e_1", None), ("e_2", Some("e_1")), ("e_4", Some("e_2")), ("e_5", Some("e_2"))]);
    assert_eq!(out["headId"], "e_5");
}

#[test]
fn given_a_turn_with_a_call_when_the_ai_sdk_reads_it_then_it_is_one_message_with_the_result_in_the_call() {
    let out = session().shown(find("ai-sdk"));
    assert_eq!((&out[1]["id"], &out[1]["role"]), (&json!("e_2"), &json!("assistant")));
    assert_eq!(
        out[1]["parts"],
        json!([
            {"type": "reasoning", "text": "I multiply.", "state": "done"},
            {"type": "dynamic-tool", "toolName": "multiply", "toolCallId": "c", "state": "output-available",
                "input": {"a": 6, "b": 7}, "output": "42"},
            {"type": "step-start"},
            {"type": "text", "text": "It is 42.", "state": "done"},
        ])
    );
}

#[test]
fn given_a_turn_with_a_call_when_ag_ui_reads_it_then_each_entry_has_its_messages() {
    let mut out = session().shown(find("ag-ui"));
    for message in out.as_array_mut().unwrap() {
        let message = message.as_object_mut().unwrap();
        message.remove("metadata");
        if let Some(calls) = message.get_mut("toolCalls") {
            calls[0].as_object_mut().unwrap().remove("metadata");
        }
    }
    assert_eq!(
        out,
        json!([
            {"id": "e_1", "role": "user", "content": "What is 6 × 7?"},
            {"id": "e_2#0", "role": "reasoning", "content": "I multiply."},
            {"id": "e_2", "role": "assistant", "toolCalls": [{"id": "c", "type": "function",
                "function": {"name": "multiply", "arguments": "{\"a\":6,\"b\":7}"}}]},
            {"id": "e_3", "role": "tool", "toolCallId": "c", "content": "42"},
            {"id": "e_4", "role": "assistant", "content": "It is 42."},
        ])
    );
}
