//! A call as it is passed on: the caller's data is copied once, and not parsed.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::wire::InvokeFunction;

/// Who called is told in the data, when that is an object.
const CALLER: &str = "_caller_worker_id";

/// The text of a call for the worker that has the function. Without an `answer_to` nobody waits for an answer.
pub(super) fn call(call: &InvokeFunction<'_>, answer_to: Option<&str>, caller: &str) -> String {
    let data = call.data.get();
    let metadata = call.metadata.as_ref().map(|raw| raw.get());
    let mut text = String::with_capacity(data.len() + metadata.map_or(0, str::len) + 384);
    text.push_str(r#"{"type":"invokefunction""#);
    field(&mut text, "invocation_id", answer_to);
    field(&mut text, "function_id", Some(&call.function_id));
    text.push_str(r#","data":"#);
    push_data(&mut text, data, caller);
    field(&mut text, "traceparent", call.traceparent.as_deref());
    field(&mut text, "baggage", call.baggage.as_deref());
    push_metadata(&mut text, metadata);
    text.push('}');
    text
}

/// The text of a call that the bus itself makes. `data` and `metadata` are JSON.
pub(super) fn own_call(function_id: &str, data: &str, metadata: Option<&str>) -> String {
    let mut text = String::with_capacity(data.len() + metadata.map_or(0, str::len) + 128);
    text.push_str(r#"{"type":"invokefunction""#);
    field(&mut text, "function_id", Some(function_id));
    text.push_str(r#","data":"#);
    text.push_str(data);
    push_metadata(&mut text, metadata);
    text.push('}');
    text
}

fn push_metadata(text: &mut String, metadata: Option<&str>) {
    if let Some(metadata) = metadata {
        text.push_str(r#","metadata":"#);
        text.push_str(metadata);
    }
}

fn field(text: &mut String, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    text.push_str(",\"");
    text.push_str(name);
    text.push_str("\":");
    push_string(text, value);
}

fn push_string(text: &mut String, value: &str) {
    if value.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&serde_json::to_string(value).unwrap_or_default());
    }
}

fn push_data(text: &mut String, data: &str, caller: &str) {
    let Some(inside) = data.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return text.push_str(data);
    };
    if data.contains(CALLER) {
        // Somebody else's word on who called does not count. It may also be anywhere deeper, which costs a look and changes nothing.
        if let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(data)
            && fields.remove(CALLER).is_some()
            && let Ok(without) = serde_json::to_string(&fields)
        {
            return push_data(text, &without, caller);
        }
    }
    text.push('{');
    if !inside.trim_ascii().is_empty() {
        text.push_str(inside);
        text.push(',');
    }
    text.push('"');
    text.push_str(CALLER);
    text.push_str("\":");
    push_string(text, caller);
    text.push('}');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

    use serde_json::{Value, json};

    use super::{call, push_data};
    use crate::wire::Message;

    fn data(given: &str) -> Value {
        let mut text = String::new();
        push_data(&mut text, given, "w\"1");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_caller_is_in_objects_only() {
        assert_eq!(data("{}"), json!({"_caller_worker_id": "w\"1"}));
        assert_eq!(data("{ }"), json!({"_caller_worker_id": "w\"1"}));
        assert_eq!(data(r#"{"a":[1,{}]}"#), json!({"a": [1, {}], "_caller_worker_id": "w\"1"}));
        assert_eq!(data("[{}]"), json!([{}]));
        assert_eq!(data("null"), json!(null));
        assert_eq!(data(r#""{}""#), json!("{}"));
    }

    #[test]
    fn nobody_says_they_are_somebody_else() {
        let given = r#"{"_caller_worker_id":"other","n":12345678901234567890,"a":{"_caller_worker_id":1}}"#;
        assert_eq!(
            data(given),
            json!({"a": {"_caller_worker_id": 1}, "n": 12345678901234567890_u64, "_caller_worker_id": "w\"1"})
        );
    }

    #[test]
    fn a_call_keeps_what_goes_along_with_it() {
        let given = r#"{"type":"invokefunction","invocation_id":"i","function_id":"a\"b","data":[1.50],"traceparent":"t",
            "baggage":"b","metadata":{"m":1},"action":null,"namespace":"default"}"#;
        let Some(Message::InvokeFunction(given)) = Message::read(given).unwrap() else { unreachable!() };
        assert_eq!(
            call(&given, Some("i"), "w"),
            r#"{"type":"invokefunction","invocation_id":"i","function_id":"a\"b","data":[1.50],"traceparent":"t","baggage":"b","metadata":{"m":1}}"#
        );
    }
}
