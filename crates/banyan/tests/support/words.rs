//! Messages, cursors and moments, briefly.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

pub fn user(said: &str) -> Value {
    json!({"role": "user", "content": text(said), "timestamp": 1})
}

pub fn assistant(said: &str) -> Value {
    assistant_with(text(said))
}

pub fn assistant_with(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "timestamp": 2, "model": "m", "provider": "p", "stop_reason": "end"})
}

/// An assistant that calls a function.
pub fn calling(call: &str) -> Value {
    assistant_with(json!([
        {"type": "thinking", "text": "hm"},
        {"type": "text", "text": "calling"},
        {"type": "function_call", "id": call, "function_id": "f", "arguments": {"secret": 1}},
    ]))
}

pub fn result(call: &str, said: &str) -> Value {
    json!({"role": "function_result", "function_call_id": call, "function_id": "f", "content": text(said),
        "details": {"of": call}, "is_error": false, "timestamp": 3})
}

/// A message of an application's own type.
pub fn note(custom_type: &str, said: &str) -> Value {
    json!({"role": "custom", "custom_type": custom_type, "content": text(said), "timestamp": 4})
}

/// The first text of each item of a page; custom entries by their type.
pub fn texts(items: &Value) -> Vec<String> {
    let of_item = |item: &Value| match &item["custom"]["custom_type"] {
        Value::Null => said_in(&item["message"]),
        custom_type => custom_type.as_str().expect("a custom type").to_owned(),
    };
    items.as_array().expect("items").iter().map(of_item).collect()
}

/// The first text of a message.
pub fn said_in(message: &Value) -> String {
    let blocks = message["content"].as_array().expect("content");
    let first = blocks.iter().find_map(|block| block["text"].as_str());
    first.unwrap_or_default().to_owned()
}

/// Ids of a page's items.
pub fn ids(items: &Value) -> Vec<Value> {
    items.as_array().expect("items").iter().map(|item| item["entry_id"].clone()).collect()
}

/// A cursor with this content.
pub fn cursor(content: &Value) -> String {
    STANDARD.encode(content.to_string())
}

/// What is in a cursor.
pub fn cursor_text(cursor: &Value) -> String {
    let bytes = STANDARD.decode(cursor.as_str().expect("a cursor")).expect("standard base64 with padding");
    String::from_utf8(bytes).expect("text")
}

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292278994")
}

/// Returns when the clock shows a later millisecond, so that what follows has a later timestamp.
pub fn a_later_moment() {
    let start = now();
    while now() <= start {
        std::thread::yield_now();
    }
}

pub fn strings(value: &Value) -> Vec<String> {
    value.as_array().expect("an array").iter().map(|it| it.as_str().expect("a string").to_owned()).collect()
}
