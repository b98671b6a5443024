//! What a history of another system looks like when it comes out again.

use serde_json::{Map, Value, json};

/// Who it is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    ToAll,
    ToOperators,
}

/// What goes out for a message of the framework. Everything that is not named here stays as it is.
pub(crate) fn normal(message: &Value, shown: Shown) -> Value {
    let mut out = message.as_object().unwrap().clone();
    // Stored documents call the time `created_at`.
    if let Some(created) = out.shift_remove("created_at") {
        out.insert("timestamp".into(), created);
    }
    // Everybody is told how a message ended, and nobody but operators what the other store noted down.
    out.insert("status".into(), json!("complete"));
    if shown == Shown::ToAll {
        for key in "message_id session_id user_id agent_id agent_type sequence_number parent_message_id \
                    related_message_ids token_count is_partial interruption_type interruption_reason \
                    interruption_timestamp"
            .split_whitespace()
        {
            out.shift_remove(key);
        }
    }
    let mut parts: Vec<Value> =
        message["parts"].as_array().unwrap().iter().flat_map(|part| normal_part(part, shown)).collect();
    // A question with parts has its text among them.
    if message["role"] == "user" && !parts.is_empty() {
        parts.insert(0, json!({"type": "text_output", "text": message["text_content"]}));
    }
    // The old form is there for every activity, and never null.
    let old: Vec<Value> = parts.iter().filter(|part| part["type"] == "activity").map(old_form).collect();
    out.insert("parts".into(), parts.into());
    out.insert("activity_parts".into(), old.into());
    out.into()
}

fn normal_part(part: &Value, shown: Shown) -> Vec<Value> {
    let mut part = part.as_object().unwrap().clone();
    let kind = part["type"].as_str().unwrap().to_owned();
    if shown == Shown::ToAll || part.get("technical_details").is_some_and(Value::is_null) {
        part.shift_remove("technical_details");
    }
    match kind.as_str() {
        // One consolidated call is a request, and then its result with everything that came of it.
        "activity" if part["activity_type"] == "tool_call" => {
            let mut request = part.clone();
            request.insert("activity_type".into(), json!("tool_request"));
            request.insert("content".into(), Value::Null);
            request.insert("results".into(), Value::Null);
            request.shift_remove("technical_details");
            part.insert("activity_type".into(), json!("tool_result"));
            part.insert("tools".into(), Value::Null);
            vec![request.into(), part.into()]
        }
        "chart_js" => {
            let config = part.shift_remove("config").unwrap();
            part.insert("chartConfig".into(), config);
            vec![called(part, "chart")]
        }
        "table_data" => vec![called(part, "table")],
        "form_definition" => vec![called(part, "form")],
        // What a person sends has the names of what an agent sends.
        "text" => vec![called(part, "text_output")],
        "image_url" => vec![json!({"type": "image", "url": part["image_url"]["url"]})],
        // A request or a result as a part of its own is an activity.
        "tool_request" => vec![single(
            &part,
            "tool_request",
            json!([{"name": part["tool_name"], "arguments": part["arguments"], "id": part["call_id"]}]),
            Value::Null,
            json!({"id": "tool_request", "friendly_name": "🔧 T", "description": "Calls a tool", "icon": "🔧",
                "category": "tool", "color": null}),
        )],
        "tool_result" => vec![single(
            &part,
            "tool_result",
            Value::Null,
            json!([{"name": part["tool_name"], "content": part["result_content"], "is_error": part["is_error"],
                "call_id": part["call_id"]}]),
            json!({"id": "tool_result", "friendly_name": "✅ Result", "description": "What the tool gave back",
                "icon": "✅", "category": "tool", "color": null}),
        )],
        _ => vec![part.into()],
    }
}

fn called(mut part: Map<String, Value>, name: &str) -> Value {
    part.insert("type".into(), json!(name));
    part.into()
}

fn single(part: &Map<String, Value>, kind: &str, tools: Value, results: Value, display: Value) -> Value {
    json!({"type": "activity", "activity_type": kind, "source": "agent", "content": null,
        "timestamp": part["timestamp"], "tools": tools, "results": results, "display_info": display})
}

fn old_form(part: &Value) -> Value {
    let mut old = part.as_object().unwrap().clone();
    let kind = old.shift_remove("activity_type").unwrap();
    old.insert("type".into(), kind);
    old.retain(|_, value| !value.is_null());
    old.into()
}
