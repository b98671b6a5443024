//! Events put together again, as a front end does it.

use serde_json::{Value, json};

/// The messages that events tell.
pub(super) fn messages_of(events: &[Value]) -> Vec<Value> {
    let mut messages = Vec::new();
    for event in events {
        apply(event, &mut messages);
    }
    messages
}

fn apply(event: &Value, messages: &mut Vec<Value>) {
    let id = event["messageId"].as_str().unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "MESSAGES_SNAPSHOT" => *messages = event["messages"].as_array().cloned().unwrap_or_default(),
        "TEXT_MESSAGE_START" => begin(messages, id, event["role"].as_str().unwrap_or("assistant"), event),
        "REASONING_MESSAGE_START" => begin(messages, id, "reasoning", event),
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
            if let Some(message) = find(messages, id) {
                append(&mut message["content"], &event["delta"]);
            }
        }
        "REASONING_ENCRYPTED_VALUE" => {
            if let Some(message) = find(messages, event["entityId"].as_str().unwrap_or_default()) {
                message["encryptedValue"] = event["encryptedValue"].clone();
            }
        }
        "TOOL_CALL_START" => {
            let call = json!({"id": event["toolCallId"], "type": "function",
                "function": {"name": event["toolCallName"], "arguments": ""}, "metadata": event["metadata"]});
            let parent = event["parentMessageId"].as_str().or(event["toolCallId"].as_str()).unwrap_or_default();
            if find(messages, parent).is_none() {
                messages.push(json!({"id": parent, "role": "assistant"}));
            }
            if let Some(message) = find(messages, parent) {
                match message["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => message["toolCalls"] = json!([call]),
                }
            }
        }
        "TOOL_CALL_ARGS" => {
            let calls = messages.iter_mut();
            let calls = calls.filter_map(|message| message.get_mut("toolCalls")?.as_array_mut()).flatten();
            for call in calls.filter(|call| call["id"] == event["toolCallId"]) {
                append(&mut call["function"]["arguments"], &event["delta"]);
            }
        }
        "TOOL_CALL_RESULT" => messages.push(json!({"id": id, "role": "tool", "toolCallId": event["toolCallId"],
            "content": event["content"], "metadata": event["metadata"]})),
        "ACTIVITY_SNAPSHOT" => {
            let message = json!({"id": id, "role": "activity", "activityType": event["activityType"],
                "content": event["content"], "metadata": event["metadata"]});
            match find(messages, id) {
                Some(known) => *known = message,
                None => messages.push(message),
            }
        }
        _ => {}
    }
}

fn begin(messages: &mut Vec<Value>, id: &str, role: &str, event: &Value) {
    if find(messages, id).is_none() {
        let mut message = json!({"id": id, "role": role, "content": ""});
        if event["metadata"].is_object() {
            message["metadata"] = event["metadata"].clone();
        }
        messages.push(message);
    }
}

fn find<'a>(messages: &'a mut [Value], id: &str) -> Option<&'a mut Value> {
    messages.iter_mut().find(|message| message["id"] == id)
}

fn append(text: &mut Value, more: &Value) {
    *text = format!("{}{}", text.as_str().unwrap_or_default(), more.as_str().unwrap_or_default()).into();
}
