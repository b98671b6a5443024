//! Frames around JSON that is text already: it is put in as it is, and not read again.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::wire::{InvocationResult, Message, RegisterTrigger};

/// A frame that offers a function.
pub fn function_frame(id: &str, description: &str, request: &Value, response: &Value) -> String {
    Message::RegisterFunction {
        id: Cow::Borrowed(id),
        description: Some(Cow::Borrowed(description)),
        request_format: raw(request),
        response_format: raw(response),
        metadata: None,
    }
    .write()
}

/// A frame that offers a kind of trigger.
pub fn trigger_type_frame(id: &str, description: &str, config: Option<&Value>, payload: Option<&Value>) -> String {
    Message::RegisterTriggerType {
        id: Cow::Borrowed(id),
        description: Cow::Borrowed(description),
        trigger_request_format: config.and_then(raw),
        call_request_format: payload.and_then(raw),
    }
    .write()
}

/// A frame that binds a function to a kind of trigger.
pub fn trigger_frame(id: &str, trigger_type: &str, function_id: &str, config: &Value) -> String {
    Message::RegisterTrigger(RegisterTrigger {
        id: Cow::Borrowed(id),
        trigger_type: Cow::Borrowed(trigger_type),
        function_id: Cow::Borrowed(function_id),
        config: raw(config).unwrap_or(Cow::Borrowed(RawValue::NULL)),
        metadata: None,
        namespace: None,
        trigger_namespace: None,
    })
    .write()
}

fn raw(value: &Value) -> Option<Cow<'static, RawValue>> {
    to_raw_value(value).ok().map(Cow::Owned)
}

/// The frame of a call. `metadata` and `data` are JSON.
pub(super) fn invoke(
    invocation_id: &str,
    function_id: &str,
    data: &str,
    metadata: Option<&str>,
    namespace: Option<&str>,
) -> String {
    let mut text = String::with_capacity(data.len() + function_id.len() + metadata.map_or(0, str::len) + 160);
    text.push_str(r#"{"type":"invokefunction","invocation_id":""#);
    text.push_str(invocation_id);
    text.push_str(r#"","function_id":"#);
    quote(&mut text, function_id);
    if let Some(metadata) = metadata {
        text.push_str(r#","metadata":"#);
        text.push_str(metadata);
    }
    if let Some(namespace) = namespace {
        text.push_str(r#","namespace":"#);
        quote(&mut text, namespace);
    }
    text.push_str(r#","data":"#);
    text.push_str(data);
    text.push('}');
    text
}

/// The frame of an answer; `result` is JSON.
pub(super) fn answer(invocation_id: &str, function_id: &str, result: &str) -> String {
    let mut text = String::with_capacity(result.len() + function_id.len() + 120);
    text.push_str(r#"{"type":"invocationresult","invocation_id":"#);
    quote(&mut text, invocation_id);
    text.push_str(r#","function_id":"#);
    quote(&mut text, function_id);
    text.push_str(r#","result":"#);
    text.push_str(result);
    text.push('}');
    text
}

/// The frame of an answer that is an error.
pub(super) fn refusal(invocation_id: &str, function_id: &str, error: crate::wire::ErrorBody<'_>) -> String {
    Message::InvocationResult(InvocationResult {
        invocation_id: Cow::Borrowed(invocation_id),
        function_id: Cow::Borrowed(function_id),
        result: None,
        error: Some(error),
        traceparent: None,
        baggage: None,
    })
    .write()
}

fn quote(text: &mut String, word: &str) {
    // A string can always be written as JSON.
    text.push_str(&serde_json::to_string(word).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_everything_is_read_as_it_was_meant() {
        let frame = invoke("id-1", "a\"b", r#"{"x":1}"#, Some(r#"{"m":2}"#), Some("staging"));
        let Ok(Some(Message::InvokeFunction(call))) = Message::read(&frame) else { panic!("{frame}") };
        assert_eq!(call.function_id, "a\"b");
        assert_eq!(call.data.get(), r#"{"x":1}"#);
        assert_eq!(call.metadata.map(|it| it.get().to_owned()).as_deref(), Some(r#"{"m":2}"#));
        assert_eq!(call.namespace.as_deref(), Some("staging"));
    }

    #[test]
    fn an_answer_of_null_is_an_answer() {
        let frame = answer("id-1", "f", "null");
        let Ok(Some(Message::InvocationResult(answer))) = Message::read(&frame) else { panic!("{frame}") };
        assert!(answer.error.is_none());
        assert_eq!(answer.invocation_id, "id-1");
    }
}
