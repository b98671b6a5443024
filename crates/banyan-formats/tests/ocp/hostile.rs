//! Values that are made to hurt. Each is refused with a reason, or read for what it is.

use banyan_formats::ocp::{
    Headers, LARGEST_CONTEXT, LONGEST_HEADER, Unreadable, decode, encode, from_headers, read, to_headers,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::schema::assert_valid;

fn packed(bytes: &[u8]) -> String {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    format!("gzip:{}", BASE64_STANDARD.encode(packer.finish().unwrap()))
}

#[test]
fn given_values_that_are_none_when_they_are_read_then_the_reason_is_said() {
    let plain = |text: &str| BASE64_STANDARD.encode(text);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(3000), "]".repeat(3000));
    let cases = [
        ("a".repeat(LONGEST_HEADER + 1), Unreadable::Oversized),
        ("gzip:".to_owned() + &plain("{}"), Unreadable::NotGzip),
        ("GZIP:AAAA".to_owned(), Unreadable::NotBase64),
        ("%%%".to_owned(), Unreadable::NotBase64),
        ("gzip:".to_owned(), Unreadable::NotGzip),
        (String::new(), Unreadable::NotJson),
        (plain("{\"context_id\":"), Unreadable::NotJson),
        (plain("[1]"), Unreadable::NotAnObject),
        (plain("null"), Unreadable::NotAnObject),
        (packed(deep.as_bytes()), Unreadable::NotJson),
        (packed(&vec![b' '; LARGEST_CONTEXT + 1]), Unreadable::InflatesTooFar),
        (packed(&vec![b' '; 5 << 20]), Unreadable::InflatesTooFar),
    ];
    for (value, why) in cases {
        assert_eq!(decode(value.as_bytes()), Err(why), "{}", &value[..value.len().min(60)]);
    }
    assert_eq!(decode(&[0xff, 0xfe, 0x00]), Err(Unreadable::NotBase64));
}

#[test]
fn given_packed_and_plain_values_when_they_are_read_then_spelling_does_not_matter() {
    let object = json!({"context_id": "ocp-a1b2c3d4", "text": "?>?>~~ÿ"});
    let text = object.to_string();
    let standard = BASE64_STANDARD.encode(&text);
    for value in [
        standard.clone(),
        standard.trim_end_matches('=').to_owned(),
        standard.replace('+', "-").replace('/', "_"),
        format!("  {standard} "),
        packed(text.as_bytes()),
        packed(text.as_bytes()).replace("gzip:", ""),
        encode(&text),
    ] {
        assert_eq!(decode(value.as_bytes()).unwrap(), object, "{value}");
    }
}

#[test]
fn given_fields_of_the_wrong_kind_when_they_are_read_then_the_rest_is_taken_and_they_are_named() {
    let given = json!({
        "context_id": "ocp-a1b2c3d4", "agent_type": 7, "user": ["x"], "session": "none", "history": [
            1, {"no": "action"}, {"action": "a"}, {"action": "b", "timestamp": "soon", "result": {"k": 1}, "why": "?", "metadata": 3}],
        "recent_changes": ["one", 2], "api_specs": {"good": "https://a.example", "bad name": "https://b", "cache": "cache"},
        "created_at": 5, "last_updated": null,
    });
    let received = read(given, 0).unwrap();
    assert_valid(&serde_json::to_value(&received.context).unwrap());
    let mut said: Vec<&str> = received.ignored.iter().map(|ignored| ignored.what).collect();
    said.sort_unstable();
    assert_eq!(said, ["agent_type", "created_at", "history", "recent_changes", "session", "user"]);
    assert_eq!(received.context.recent_changes, ["one"]);
    assert_eq!(received.context.history.len(), 2);
    let kept = &received.context.history[1].metadata;
    assert_eq!(
        Value::from(kept.clone()),
        json!({"metadata": 3, "timestamp": "soon", "result": {"k": 1}, "why": "?"})
    );
    assert_eq!(received.extra["api_specs"], json!({"bad name": "https://b", "cache": "cache"}));
    assert!(received.undated);
}

#[test]
fn given_headers_out_of_bounds_when_they_are_read_then_each_is_left_out_on_its_own() {
    let long = "g".repeat(257);
    let headers = Headers {
        context_id: Some(b"ocp-a1b2c3d4"),
        agent_type: Some(b"two words"),
        current_goal: Some(long.as_bytes()),
        user: Some(&[0xff]),
        workspace: Some(b"here"),
        ..Headers::default()
    };
    let reading = from_headers(&headers, 0);
    let said: Vec<&str> = reading.ignored.iter().map(|ignored| ignored.what).collect();
    assert_eq!(said, ["ocp-agent-type", "ocp-current-goal", "ocp-user"]);
    let context = reading.received.unwrap().context;
    assert_eq!((context.workspace.as_deref(), context.user), (Some("here"), None));
    for id in ["", "a b", "../../etc/passwd", "ocp-a1b2c3d4\u{e9}", &"x".repeat(65)] {
        let headers = Headers { context_id: Some(id.as_bytes()), ..Headers::default() };
        let reading = from_headers(&headers, 0);
        assert_eq!((reading.received, reading.ignored.len()), (None, 1), "{id}");
    }
}

#[test]
fn given_texts_that_would_break_a_header_when_headers_are_written_then_only_the_context_has_them() {
    for goal in ["two\r\nlines", "prüfen", " padded ", ""] {
        let received =
            read(json!({"context_id": "ocp-a1b2c3d4", "agent_type": "a b", "current_goal": goal}), 0).unwrap();
        let lines = to_headers(&received.context, Default::default());
        let names: Vec<&str> = lines.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["ocp-context-id", "ocp-version", "ocp-session"], "{goal:?}");
        assert_eq!(decode(lines[2].1.as_bytes()).unwrap()["current_goal"], json!(goal));
    }
}
