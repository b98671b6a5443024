//! What holds for every session and every history.

use banyan_formats::opa::*;
use banyan_model::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given::*;

/// Any JSON, with numbers and strings that are awkward.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z]{1,6}", inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn source() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "attachment", "path": "session/attachments/image.png"})),
        Just(json!({"type": "attachment", "path": "session/attachments/report.pdf"})),
        Just(json!({"type": "attachment", "path": "session/attachments/missing.bin"})),
        Just(json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="})),
        Just(json!({"type": "url", "url": "https://example.com/x.png"})),
    ]
}

fn foreign_block() -> impl Strategy<Value = Value> {
    let extra = option::weighted(0.2, any_json());
    let block = prop_oneof![
        ".{0,12}".prop_map(|text| json!({"type": "text", "text": text})),
        source().prop_map(|source| json!({"type": "image", "source": source})),
        source().prop_map(|source| json!({"type": "file", "source": source})),
        Just(json!({"type": "image", "path": "session/attachments/image.png", "media_type": "image/png"})),
        ("[a-c]", any_json())
            .prop_map(|(id, input)| json!({"type": "tool_use", "id": id, "name": "f", "input": input})),
        ("[a-c]", ".{0,6}")
            .prop_map(|(id, text)| json!({"type": "tool_result", "tool_use_id": id, "content": text})),
        ("[a-c]", ".{0,6}", any::<bool>())
            .prop_map(|(id, text, is_error)| json!({"type": "tool_result", "tool_use_id": id,
            "is_error": is_error, "content": [{"type": "text", "text": text}]})),
        Just(json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        any_json(),
    ];
    (block, extra).prop_map(|(mut block, extra)| {
        if let (Some(fields), Some(extra)) = (block.as_object_mut(), extra) {
            fields.insert("x_extra".into(), extra);
        }
        block
    })
}

fn foreign_message() -> impl Strategy<Value = Value> {
    let role = prop_oneof![
        4 => Just("user"), 4 => Just("assistant"), 1 => Just("system"), 4 => Just("tool"), 1 => Just("Critic"), 1 => Just("USER"),
    ];
    let result = ("[a-c]", ".{0,6}")
        .prop_map(|(id, text)| json!({"type": "tool_result", "tool_use_id": id, "content": text}));
    let content = prop_oneof![
        3 => ".{0,20}".prop_map(Value::from),
        3 => vec(foreign_block(), 0..4).prop_map(Value::from),
        2 => vec(result, 1..4).prop_map(Value::from),
        1 => any_json(),
    ];
    let time = prop_oneof![
        Just(json!("2026-03-01T10:00:00Z")),
        Just(json!("2026-03-01T10:00:00.078067+00:00")),
        Just(json!("2026-03-01T10:00:04.250Z")),
        Just(json!("soon")),
        any_json(),
    ];
    let id = prop_oneof!["[0-9]{1,3}".prop_map(Value::from), any_json()];
    let parts = (
        role,
        content,
        option::of(id),
        option::of(time),
        option::of(any_json()),
        option::weighted(0.2, any_json()),
    );
    parts.prop_map(|(role, content, id, time, metadata, extra)| {
        let mut message = json!({"role": role, "content": content});
        for (key, value) in [("id", id), ("timestamp", time), ("metadata", metadata), ("x_vendor", extra)] {
            if let Some(value) = value {
                message[key] = value;
            }
        }
        message
    })
}

fn with_files(history: &Value) -> Vec<u8> {
    let history = history.to_string();
    let source = sample("spec_full.opa");
    let (png, pdf) =
        (file(&source, "session/attachments/image.png"), file(&source, "session/attachments/report.pdf"));
    archive(&[
        ("session/history.json", history.as_bytes()),
        ("session/attachments/image.png", &png),
        ("session/attachments/report.pdf", &pdf),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_history_comes_out_as_it_went_in(messages in vec(foreign_message(), 0..8), extra in any_json()) {
        let given = json!({"opa_version": "0.1", "session_id": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "created_at": "2026-03-01T10:00:00Z", "x_vendor": extra, "messages": messages});
        let bytes = with_files(&given);
        for plain in [false, true] {
            let (again, written) = Session::imported(&bytes).written(Options { plain, sign: None });
            let found = history(&again);
            for field in ["opa_version", "session_id", "created_at", "x_vendor", "messages"] {
                prop_assert_eq!(&found[field], &given[field], "{}", field);
            }
            prop_assert_eq!((written.left_out, written.missing), (0, 0));
            prop_assert_eq!(open(&again).unwrap().prompt().to_owned(), "Hello");
        }
    }

    #[test]
    fn reading_twice_gives_the_same(messages in vec(foreign_message(), 0..8)) {
        let bytes = with_messages(&messages.into());
        let once = taken(&open(&bytes).unwrap());
        let mut ids: Vec<_> = once.0.iter().map(|entry| entry.entry_id.clone()).collect();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), once.0.len());
        prop_assert_eq!(taken(&open(&bytes).unwrap()), once);
    }

    #[test]
    fn a_session_comes_back_from_a_plain_archive(messages in vec(own_message(), 0..10)) {
        let entries = messages.into_iter().enumerate().map(|(at, message)| (EntryId::from(format!("e_{at:032x}")), message, None));
        let session = Session::new(entries.collect());
        let (bytes, written) = session.written(Options { plain: true, sign: None });
        let back = Session::imported(&bytes);
        let expected: Vec<_> = session.entries.iter().filter(|(_, message, _)| has_a_place(message)).map(|(id, message, _)| (id, without_attachment_ids(message))).collect();
        let found: Vec<_> = back.entries.iter().map(|(id, message, _)| (id, without_attachment_ids(message))).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(written.left_out as usize, session.entries.len() - back.entries.len());
        // And once more: what was read from our own archive makes the same history.
        let (again, _) = back.written(Options { plain: true, sign: None });
        prop_assert_eq!(&history(&again)["messages"], &history(&bytes)["messages"]);
    }

    #[test]
    fn equal_sessions_make_equal_archives(messages in vec(own_message(), 0..6)) {
        let entries = messages.into_iter().enumerate().map(|(at, message)| (EntryId::from(format!("e_{at:032x}")), message, None));
        let session = Session::new(entries.collect());
        let (bytes, _) = session.written(Options::default());
        prop_assert_eq!(&session.written(Options::default()).0, &bytes);
        let archive = open(&bytes).unwrap();
        prop_assert!(archive.extension().unwrap().is_true());
        prop_assert_eq!(String::from_utf8(file(&bytes, "META-INF/extensions/banyan-session/session.jsonl")).unwrap(), session.records());
    }
}

fn has_a_place(message: &AgentMessage) -> bool {
    !matches!(message, AgentMessage::Custom(custom) if custom.custom_type != "system")
}

fn own_block() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => ".{0,20}".prop_map(|text| json!({"type": "text", "text": text})),
        1 => (".{0,20}", option::of("[a-z]{1,5}")).prop_map(|(text, signature)| match signature {
            Some(signature) => json!({"type": "thinking", "text": text, "signature": signature}),
            None => json!({"type": "thinking", "text": text}),
        }),
        1 => prop_oneof![Just("image/png"), Just("image/jpeg"), Just("image/x-odd")]
            .prop_map(|mime| json!({"type": "image", "mime": mime, "data": "iVBORw0KGgo="})),
        1 => ("[a-c]", any_json()).prop_map(|(id, arguments)| json!({"type": "function_call", "id": id, "function_id": "f", "arguments": arguments})),
        1 => ("[a-c]", ".{0,6}").prop_map(|(id, text)| json!({"type": "function_result", "function_call_id": id,
            "content": [{"type": "text", "text": text}], "is_error": true})),
    ]
}

fn own_message() -> impl Strategy<Value = AgentMessage> {
    let content = || vec(own_block(), 0..4);
    let text = || vec(".{0,9}".prop_map(|text| json!({"type": "text", "text": text})), 0..3);
    let time = 0..4_000_000_000_000_i64;
    let message = prop_oneof![
        content().prop_map(|content| json!({"role": "user", "content": content})),
        (content(), option::of(any_json())).prop_map(|(content, agent)| {
            let mut message = json!({"role": "assistant", "content": content, "model": "m", "provider": "p",
                "stop_reason": "length", "usage": {"output": 7, "cost_usd": 0.25}, "warnings": ["w"]});
            // A null here is the same as nothing.
            if let Some(agent) = agent.filter(|agent| !agent.is_null()) {
                message["agent"] = agent;
            }
            message
        }),
        (text(), any_json(), any::<bool>()).prop_map(|(content, details, is_error)| json!({"role": "function_result",
            "content": content, "function_call_id": "a", "function_id": "g", "details": details, "is_error": is_error})),
        content().prop_map(|content| json!({"role": "custom", "custom_type": "system", "content": content, "display": "d"})),
        Just(json!({"role": "custom", "custom_type": "note", "content": [], "details": {"a": 1}})),
    ];
    (message, time).prop_map(|(mut message, time)| {
        message["timestamp"] = time.into();
        serde_json::from_value(message).unwrap()
    })
}
