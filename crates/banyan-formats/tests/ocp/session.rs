//! Contexts in sessions, and sessions as contexts.

use banyan_formats::ocp::{
    Action, Gathering, Kept, Received, action_entry, action_id, canonical_id, id_of_session, mark_of, read,
    sessions_named_by,
};
use banyan_model::{SessionEntry, SessionId, SessionMeta};
use serde_json::{Value, json};

use crate::schema::assert_valid;

const NOW: i64 = 1_900_000_000_000;

/// A context in a session and out again.
pub(crate) fn there_and_back(received: &Received) -> Value {
    let session_id = SessionId::from("s");
    let mut bare = received.clone();
    let actions = std::mem::take(&mut bare.context.history);
    let meta = Kept { received: bare, last_action: None }.session(session_id.clone(), NOW);
    let mut gathering = Gathering::default();
    for action in &actions {
        let entry = action_entry(action_id(&session_id, action), None, action, NOW).unwrap();
        gathering.entry(&SessionEntry::Custom(entry));
    }
    serde_json::to_value(gathering.finish(&meta).context).unwrap()
}

fn meta(id: &str) -> SessionMeta {
    serde_json::from_value(json!({"session_id": id, "title": "Find the bug", "description": "", "status": "idle",
        "message_count": 3, "created_at": 1_772_359_200_000_i64, "updated_at": 1_772_359_260_000_i64}))
    .unwrap()
}

fn message(id: &str, message: Value) -> SessionEntry {
    serde_json::from_value(
        json!({"kind": "message", "id": id, "parent_id": null, "timestamp": 0, "message": message}),
    )
    .unwrap()
}

#[test]
fn given_a_conversation_when_it_is_told_then_tool_calls_are_actions_and_secrets_stay_here() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let mut gathering = Gathering::default();
    gathering.entry(&message(
        "e_0",
        json!({"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1}),
    ));
    gathering.entry(&message("e_1", json!({"role": "assistant", "model": "m", "provider": "p", "stop_reason": "function_call",
        "timestamp": 1_772_359_200_000_i64, "content": [
            {"type": "function_call", "id": "c1", "function_id": "http", "arguments": {"password": "hunter2", "url": format!("https://x.example/?t={key}")}},
            {"type": "function_call", "id": "c2", "function_id": "read", "arguments": {"text": "x".repeat(5000)}}]})));
    gathering.entry(&message("e_2", json!({"role": "function_result", "function_call_id": "c1", "function_id": "http",
        "content": [{"type": "text", "text": format!("{}\n {key} and so on {}", "word ".repeat(50), "more ".repeat(90))}],
        "details": null, "is_error": true, "timestamp": 1_772_359_201_000_i64})));
    assert_eq!(gathering.count(), 3);
    let told = gathering.finish(&meta("s_019f0000000070008000000000000001"));
    let context = serde_json::to_value(&told.context).unwrap();
    assert_valid(&context);
    let text = context.to_string();
    assert!(!text.contains("hunter2") && !text.contains(&key) && !text.contains("hello"), "{text}");
    assert!(told.redacted.len() >= 2, "{:?}", told.redacted);
    assert_eq!(context["context_id"], "ocp-019f0000000070008000000000000001");
    assert_eq!(context["current_goal"], "Find the bug");
    let actions: Vec<&str> =
        context["history"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["tool_call:http", "tool_call:read", "tool_error:http"]);
    assert!(context["history"][1]["metadata"]["parameters"]["shortened"].is_string());
    assert_eq!(context["history"][2]["metadata"]["success"], false);
    assert!(context["history"][2]["result"].as_str().unwrap().chars().count() <= 200);
    assert_eq!(mark_of(&told.context.history[2]).unwrap().as_str(), "e_2");
    assert_valid(&serde_json::to_value(told.listed()).unwrap());
}

#[test]
fn given_an_action_with_a_secret_when_it_is_told_then_it_names_the_entry_that_has_it() {
    let action = Action {
        timestamp: "2026-03-01T10:00:00Z".to_owned(),
        action: "api_call_get".to_owned(),
        api_endpoint: Some("https://me:sesame-open@x.example/".to_owned()),
        result: None,
        metadata: json!({"api_key": "abcdef"}).as_object().cloned().unwrap(),
    };
    let id = action_id(&SessionId::from("s"), &action);
    let entry = action_entry(id.clone(), None, &action, NOW).unwrap();
    let mut gathering = Gathering::default();
    gathering.entry(&SessionEntry::Custom(entry));
    let told = gathering.finish(&meta("s"));
    let text = told.context.to_json();
    assert!(!text.contains("sesame") && !text.contains("abcdef"), "{text}");
    assert_eq!(mark_of(&told.context.history[0]), Some(id));
}

#[test]
fn given_ids_when_contexts_are_named_after_sessions_then_they_lead_back() {
    for id in ["s_019f0000000070008000000000000001", "019f0000-0000-7000-8000-000000000001"] {
        let context = id_of_session(&SessionId::from(id));
        assert!(sessions_named_by(&context).contains(&SessionId::from(id)), "{context}");
    }
    for id in ["mine", "s_1", "S_019F0000000070008000000000000001"] {
        let context = id_of_session(&SessionId::from(id));
        assert_eq!(canonical_id(&context), context);
    }
    assert_eq!(canonical_id("ocp-a1b2c3d4"), "ocp-a1b2c3d4");
    for other in ["ocp-A1B2C3D4", "ocp-a1b2", "x", &format!("ocp-{}", "a".repeat(61))] {
        assert_ne!(canonical_id(other), other);
        assert_eq!(canonical_id(other), canonical_id(other));
    }
}

#[test]
fn given_metadata_of_any_shape_when_it_is_read_then_there_is_a_context_or_none() {
    let kept = |metadata: Value| Kept::of(metadata.as_object());
    assert_eq!(kept(json!({"ocp": {"agent_type": "a"}})), None);
    assert_eq!(kept(json!({"ocp.context_id": 3})), None);
    for ocp in [json!(null), json!(7), json!({"session": 3, "created_at": "?", "last_action": [], "extra": 1})] {
        let kept = kept(json!({"ocp.context_id": "ocp-a1b2c3d4", "ocp": ocp})).unwrap();
        assert_valid(&serde_json::to_value(&kept.received.context).unwrap());
    }
}

#[test]
fn given_a_file_of_the_protocols_own_when_it_is_read_then_the_name_is_kept_aside() {
    let received = read(
        json!({"context_id": "ocp-a1b2c3d4", "session_id": "mine", "last_updated": "2026-03-01T10:00:00Z"}),
        NOW,
    )
    .unwrap();
    assert_eq!(received.extra["session_id"], "mine");
    assert_eq!(there_and_back(&received), serde_json::to_value(&received.context).unwrap());
}
