//! What these tests share.

use banyan_formats::ocp::{decode, encode};
use banyan_server::Settings;
use serde_json::{Value, json};

use crate::wire::{Answer, settings};

pub(super) const ID: &str = "ocp-a1b2c3d4";

/// A server that begins sessions for contexts.
pub(super) fn creating() -> Settings {
    Settings { create_context_sessions: true, ..settings() }
}

/// A context with so many actions.
pub(super) fn context(id: &str, actions: usize) -> Value {
    let history: Vec<Value> = (0..actions)
        .map(|at| {
            json!({"timestamp": format!("2026-03-01T{:02}:{:02}:{:02}+00:00", at / 3600, at / 60 % 60, at % 60),
                "action": format!("step_{at}"), "api_endpoint": null, "result": "done", "metadata": {"at": at}})
        })
        .collect();
    json!({"context_id": id, "agent_type": "tester", "user": "alice", "workspace": "shop", "current_file": null,
        "session": {"start_time": "2026-03-01T00:00:00+00:00", "interaction_count": 2, "agent_type": "tester"},
        "history": history, "current_goal": "mend the shop", "context_summary": null, "error_context": null,
        "recent_changes": [], "api_specs": {}, "created_at": "2026-03-01T00:00:00+00:00",
        "last_updated": "2026-03-01T12:00:00+00:00"})
}

/// The headers of a context, as lines.
pub(super) fn lines(context: &Value) -> String {
    let (id, value) = (context["context_id"].as_str().unwrap(), encode(&context.to_string()));
    format!("OCP-Context-ID: {id}\r\nOCP-Agent-Type: tester\r\nOCP-Session: {value}\r\n")
}

/// The context that an answer carries.
pub(super) fn told(answer: &Answer) -> Value {
    let value = answer.header_as_sent("ocp-session").unwrap_or_else(|| panic!("a context on {answer:?}"));
    assert!(value.len() <= 8192);
    decode(value.as_bytes()).unwrap()
}

/// The names of a context's actions.
pub(super) fn actions(context: &Value) -> Vec<String> {
    context["history"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap().to_owned()).collect()
}
