//! Messages and entries as JSON: what is read, what is written, what is refused.

use banyan_model::*;
use serde_json::{Value, json};

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn given_a_call_with_odd_json_when_it_is_read_and_written_then_the_arguments_are_verbatim() {
    let text = r#"{"role":"assistant","content":[{"type":"function_call","id":"c1","function_id":"f","arguments":{"z":1.0,"a":12345678901234567890123,"s":"\u00e9 x"}}],"model":"m","provider":"p","stop_reason":"function_call","timestamp":7}"#;

    let message: AgentMessage = read(text).unwrap();

    assert_eq!(serde_json::to_string(&message).unwrap(), text);
}

#[test]
fn given_blanks_between_tokens_when_json_is_read_then_it_fits_on_one_line() {
    let payload: CustomPayload =
        read("{ \"custom_type\": \"t\", \"data\": {\r\n\t\"a b\" : [ 1 , \" \\\" \" ]\n} }").unwrap();

    assert_eq!(payload.data.get(), r#"{"a b":[1," \" "]}"#);
}

#[test]
fn given_the_tag_first_or_last_when_a_message_is_read_then_it_is_the_same() {
    let fields = r#""content":[{"text":"hi","type":"text"},{"arguments":[1],"function_id":"f","id":"c","type":"function_call"}],"timestamp":7"#;

    let first: AgentMessage = read(&format!(r#"{{"role":"user",{fields}}}"#)).unwrap();
    let last: AgentMessage = read(&format!(r#"{{{fields},"role":"user"}}"#)).unwrap();

    let expected = AgentMessage::User(UserMessage {
        content: vec![
            ContentBlock::text("hi"),
            ContentBlock::FunctionCall(FunctionCallBlock {
                id: "c".into(),
                function_id: "f".into(),
                arguments: Json::from_text("[1]").unwrap(),
            }),
        ],
        timestamp: 7,
    });
    assert_eq!((first, last), (expected.clone(), expected));
}

#[test]
fn given_null_for_optional_fields_when_a_message_is_read_then_they_count_as_left_out() {
    let nulls = json!({
        "role": "function_result", "function_call_id": "c", "function_id": "f", "content": [],
        "details": null, "is_error": null, "timestamp": 7, "unknown": {"ignored": true}
    });

    let message: AgentMessage = serde_json::from_value(nulls).unwrap();

    let written = serde_json::to_value(&message).unwrap();
    let expected = json!({
        "role": "function_result", "function_call_id": "c", "function_id": "f", "content": [],
        "details": null, "is_error": false, "timestamp": 7
    });
    assert_eq!(written, expected);
}

#[test]
fn given_absent_optionals_when_an_assistant_message_is_written_then_they_are_omitted() {
    let message = AgentMessage::Assistant(AssistantMessage {
        content: vec![],
        model: "m".into(),
        provider: "p".into(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: Some(Usage { output: Some(3), ..Usage::default() }),
        warnings: None,
        agent: None,
        timestamp: 7,
    });

    let written = serde_json::to_value(&message).unwrap();

    let expected = json!({
        "role": "assistant", "content": [], "model": "m", "provider": "p", "stop_reason": "end",
        "usage": {"output": 3}, "timestamp": 7
    });
    assert_eq!(written, expected);
}

#[test]
fn given_malformed_messages_when_they_are_read_then_the_error_says_what_is_wrong() {
    let refused = [
        (r#"{"role":"robot","content":[],"timestamp":1}"#, "unknown variant `robot`, expected one of `user`"),
        (r#"{"content":[],"timestamp":1}"#, "missing field `role`"),
        (r#"{"role":"user","content":[]}"#, "missing field `timestamp`"),
        (r#"{"content":"x","timestamp":1,"role":"user"}"#, "invalid type: string \"x\""),
        (r#"{"role":"user","content":[{"type":"text"}],"timestamp":1}"#, "missing field `text`"),
        (r#""user""#, "expected an object with the field `role`"),
    ];
    for (text, reason) in refused {
        let error = read::<AgentMessage>(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn given_json_that_readers_could_not_parse_when_it_is_read_then_it_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let refused = [
        (deep.as_str(), "nested deeper"),
        (r#""\ud83d""#, "half of a surrogate pair"),
        (r#""\ude00""#, "half of a surrogate pair"),
        ("[1e999]", "out of range"),
    ];
    for (text, reason) in refused {
        let error = read::<Json>(text).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(
        read::<Json>(r#"["\ud83d\ude00",1e300,"\\ud83d"]"#).unwrap().get(),
        r#"["\ud83d\ude00",1e300,"\\ud83d"]"#
    );
}

#[test]
fn given_results_nested_without_end_when_they_are_read_then_they_are_refused_and_nothing_overflows() {
    let opened_by_tag = r#"{"type":"function_result","function_call_id":"c","content":["#;
    let tag_first = format!("{}{}", opened_by_tag.repeat(100_000), "]}".repeat(100_000));
    let tag_last = format!(
        "{}{}",
        r#"{"function_call_id":"c","content":["#.repeat(100_000),
        r#"],"type":"function_result"}"#.repeat(100_000)
    );

    assert!(read::<ContentBlock>(&tag_first).is_err());
    assert!(read::<ContentBlock>(&tag_last).is_err());
}

#[test]
fn given_an_entry_of_session_manager_when_it_is_read_and_written_then_it_is_the_same() {
    let message = json!({
        "kind": "message", "id": "e_1", "parent_id": null, "timestamp": 5, "revision": 2, "origin": {"by": "x"},
        "message": {"role": "user", "content": [], "timestamp": 7}
    });
    let custom = json!({
        "kind": "custom", "id": "e_2", "parent_id": "e_1", "timestamp": 6, "revision": 0, "custom_type": "t", "data": null
    });
    for entry in [message, custom] {
        let read: SessionEntry = serde_json::from_value(entry.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), entry);
    }
}

#[test]
fn given_a_stored_message_when_it_goes_out_then_its_text_is_untouched_and_parses_on_demand() {
    let text = r#"{"role":"user","content":[],"timestamp":7}"#;
    let message = AgentMessage::User(UserMessage { content: vec![], timestamp: 7 });
    let item = MessageItem {
        entry_id: "e_1".into(),
        message: Some(Raw::of(&message).unwrap()),
        custom: None,
        origin: None,
        elided: false,
    };

    assert_eq!(serde_json::to_string(&item).unwrap(), format!(r#"{{"entry_id":"e_1","message":{text}}}"#));
    assert_eq!(Raw::<AgentMessage>::from_text(text.into()).unwrap().parse(), Ok(message));
    assert_eq!(Raw::<AgentMessage>::from_text("{}".into()).unwrap().parse().unwrap_err().code, ErrorCode::Storage);
}

#[test]
fn given_a_root_entry_when_its_append_is_answered_then_the_parent_is_null_and_present() {
    let response = AppendResponse { entry_id: "e_1".into(), parent_id: None, timestamp: 7 };

    let written: Value = serde_json::to_value(&response).unwrap();

    assert_eq!(written, json!({"entry_id": "e_1", "parent_id": null, "timestamp": 7}));
}

#[test]
fn given_arguments_as_deep_as_allowed_when_a_message_is_read_then_the_order_of_its_fields_does_not_matter() {
    let arguments = format!("{}{}", "[".repeat(112), "]".repeat(112));
    let content =
        format!(r#""content":[{{"type":"function_call","id":"c","function_id":"f","arguments":{arguments}}}]"#);

    let first: AgentMessage = read(&format!(r#"{{"role":"user",{content},"timestamp":7}}"#)).unwrap();
    let last: AgentMessage = read(&format!(r#"{{{content},"timestamp":7,"role":"user"}}"#)).unwrap();
    let carried: Raw<AgentMessage> = read(&serde_json::to_string(&first).unwrap()).unwrap();

    assert_eq!((last, carried.parse()), (first.clone(), Ok(first)));
}
