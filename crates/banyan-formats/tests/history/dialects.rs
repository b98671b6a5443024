//! Every way of writing a message that is accepted, and the one way that goes out.

use banyan_formats::history::*;
use banyan_model::{AgentMessage, ContentBlock};
use serde_json::{Value, json};

use crate::store::{Store, json, read};

fn message(role: &str, parts: &Value) -> Value {
    json!({"role": role, "interaction_id": "i1", "timestamp": "2026-01-22T21:47:29", "parts": parts})
}

/// The parts that go out for the parts of an answer.
fn out(parts: &Value) -> Value {
    let mut store = Store::default();
    store.post_all(&json!([message("assistant", parts)]));
    store.history()[0]["parts"].clone()
}

#[test]
fn given_the_names_of_the_code_when_they_go_in_then_the_documents_names_come_out() {
    let table = [
        (
            json!({"type": "chart_js", "config": {"type": "bar"}, "width": 3}),
            json!({"type": "chart", "chartConfig": {"type": "bar"}, "width": 3}),
        ),
        (
            json!({"type": "table_data", "headers": ["h"], "rows": [[1]], "caption": "c"}),
            json!({"type": "table", "headers": ["h"], "rows": [[1]], "caption": "c"}),
        ),
        (
            json!({"type": "form_definition", "definition": {"fields": []}}),
            json!({"type": "form", "definition": {"fields": []}}),
        ),
        (json!({"type": "text", "text": "t"}), json!({"type": "text_output", "text": "t"})),
        (json!({"text": "t"}), json!({"type": "text_output", "text": "t"})),
        (
            json!({"type": "file_data", "filename": "f", "content_base64": "aGk="}),
            json!({"type": "file_content_output", "filename": "f", "content_base64": "aGk="}),
        ),
        (
            json!({"type": "file_reference", "file_id": "1"}),
            json!({"type": "file_reference_output", "file_id": "1"}),
        ),
        (
            json!({"type": "image_url", "image_url": {"url": "u"}, "url": null}),
            json!({"type": "image", "url": "u"}),
        ),
        (
            json!({"type": "image_url", "url": "u", "mime_type": "image/png"}),
            json!({"type": "image", "url": "u", "mime_type": "image/png"}),
        ),
    ];
    for (given, documented) in table {
        assert_eq!(out(&json!([given])), json!([documented]));
        assert_eq!(out(&json!([documented])), json!([documented]));
    }
}

#[test]
fn given_a_consolidated_call_of_two_when_it_goes_in_then_one_request_and_one_result_come_out() {
    let tools =
        json!([{"name": "f", "arguments": {"n": 1}, "id": "c1"}, {"name": "g", "arguments": {}, "id": "c2"}]);
    let results = json!([{"name": "f", "content": "one", "is_error": false, "call_id": "c1"},
        {"name": "g", "content": "two", "is_error": true, "call_id": "c2"}]);
    let display = json!({"id": "d", "friendly_name": "Both", "icon": "🔧"});
    let both = json!({"type": "activity", "activity_type": "tool_call", "source": "s", "content": "done",
        "timestamp": "2026-01-22 21:47:29.5", "tools": tools, "results": results, "display_info": display, "took": 3});

    let parts = out(&json!([both]));

    assert_eq!(
        parts,
        json!([
            {"type": "activity", "activity_type": "tool_request", "source": "s", "content": null,
             "timestamp": "2026-01-22T21:47:29.5", "tools": tools, "results": null, "display_info": display},
            {"type": "activity", "activity_type": "tool_result", "source": "s", "content": "done",
             "timestamp": "2026-01-22T21:47:29.5", "tools": null, "results": results, "display_info": display, "took": 3},
        ])
    );
}

#[test]
fn given_calls_and_results_when_they_go_in_then_the_entries_have_typed_content() {
    let parts = json!([
        {"type": "activity", "activity_type": "thought", "source": "s", "timestamp": "2026-01-22T21:47:29", "content": "hm"},
        {"type": "activity", "activity_type": "tool_call", "source": "s", "timestamp": "2026-01-22T21:47:30",
         "tools": [{"name": "f", "arguments": {"n": 1}, "id": "c1"}],
         "results": [{"name": "f", "content": "one", "is_error": false, "call_id": "c1"}]},
        {"type": "image", "url": "data:image/png;base64,AAAA", "alt": "a cat"},
        {"type": "activity", "activity_type": "error", "source": "s", "timestamp": "2026-01-22T21:47:31", "content": "no"},
        {"type": "text_output", "text": "done"},
    ]);
    let entries = entries_of(&read(&message("assistant", &parts)));

    let kinds: Vec<String> = entries.iter().map(|entry| kind(&entry.message)).collect();
    assert_eq!(kinds, ["thinking hm", "call f c1", "result f c1 one", "image AAAA", "error no", "text done"]);
    assert_eq!(entries[1].message.timestamp(), 1_769_118_450_000);
}

fn kind(message: &AgentMessage) -> String {
    match (message, message.content()) {
        (AgentMessage::FunctionResult(result), [ContentBlock::Text(block)]) => {
            format!("result {} {} {}", result.function_id, result.function_call_id, block.text)
        }
        (AgentMessage::Assistant(message), []) => format!("error {}", message.error_message.as_ref().unwrap()),
        (_, [ContentBlock::Text(block)]) => format!("text {}", block.text),
        (_, [ContentBlock::Thinking(block)]) => format!("thinking {}", block.text),
        (_, [ContentBlock::FunctionCall(call)]) => format!("call {} {}", call.function_id, call.id),
        (_, [ContentBlock::Image(image)]) => format!("image {}", image.data),
        other => panic!("{other:?}"),
    }
}

#[test]
fn given_activities_only_in_the_old_form_when_they_go_in_then_they_come_out_in_both() {
    let old = json!([{"type": "activity", "source": "agent", "content": "Agent loop started",
        "timestamp": "2026-01-22T21:47:29.763430", "display_info": {"friendly_name": "🧠 Raisonnement", "icon": "🧠"}}]);
    let mut given = message("assistant", &json!([{"type": "text_output", "text": "Voici"}]));
    given["activity_parts"] = old.clone();
    let mut store = Store::default();
    store.post_all(&json!([given]));

    let history = store.history();

    assert_eq!(history[0]["activity_parts"], old);
    assert_eq!(history[0]["parts"][0]["activity_type"], "activity");
    assert_eq!(history[0]["parts"][1]["text"], "Voici");
    assert_eq!(store.post_all(&json!([given])), 0);
}

#[test]
fn given_an_activity_that_was_sent_a_second_time_as_text_when_it_goes_in_then_it_is_there_once() {
    let activity = json!({"type": "activity", "activity_type": "activity", "source": "agent", "content": "go",
        "timestamp": "2026-01-22T21:47:29", "display_info": {"friendly_name": "n", "icon": "i"}});
    let echo = json!({"type": "text_output_stream", "text": format!("__STREAM_ACTIVITY__{}",
        json!({"type": "activity", "source": "agent", "content": "go", "timestamp": "2026-01-22T21:47:29"}))});
    assert_eq!(out(&json!([activity, echo])).as_array().unwrap().len(), 1);
    let alone = out(&json!([{"type": "text_output", "text": "t"}, echo]));
    assert_eq!((&alone[0]["text"], &alone[1]["content"]), (&json!("t"), &json!("go")));
}

#[test]
fn given_notes_of_a_cancelled_agent_when_they_go_in_then_what_is_new_in_them_comes_out() {
    let mut given = message(
        "assistant",
        &json!([{"type": "text_output", "text": "Let me look. "},
            {"type": "activity", "activity_type": "tool_request", "source": "s", "timestamp": "2026-01-22T21:47:29",
             "tools": [{"name": "f", "arguments": {}, "id": "c1"}]}]),
    );
    given["activity_parts"] = json!([
        {"type": "text", "role": "assistant", "content": "Let me look."},
        {"type": "tool_call", "tool_call_id": "c1", "tool_name": "f", "arguments": {}},
        {"type": "tool_result", "tool_call_id": "c1", "tool_name": "f", "result": {"rows": 2}},
    ]);
    given["is_partial"] = json!(true);
    given["interruption_type"] = json!("cancelled");
    let mut store = Store::default();
    store.post_all(&json!([given]));

    let history = store.history();

    let parts = history[0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!(
        parts[0]["results"],
        json!([{"name": "f", "content": "{\"rows\":2}", "is_error": false, "call_id": "c1"}])
    );
    assert_eq!(history[0]["status"], "cancelled");
    assert_eq!(store.post_all(&json!([given])), 0);
}

#[test]
fn given_how_a_message_was_cut_off_when_it_goes_in_then_its_status_says_so() {
    let table = [
        (json!({}), "complete"),
        (json!({"is_partial": false}), "complete"),
        (json!({"is_partial": true, "interruption_type": "cancelled"}), "cancelled"),
        (
            json!({"is_partial": true, "interruption_type": "cancelled", "interruption_reason": "client_disconnect"}),
            "interrupted",
        ),
        (json!({"is_partial": true}), "interrupted"),
        (json!({"status": "error"}), "error"),
        (json!({"status": "streaming"}), "streaming"),
    ];
    for (fields, status) in table {
        let mut given = message("assistant", &json!([{"type": "text_output", "text": "t"}]));
        given.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut store = Store::default();
        store.post_all(&json!([given]));
        assert_eq!(store.history()[0]["status"], status);
    }
}

#[test]
fn given_an_answer_said_to_be_streaming_when_something_follows_then_it_was_interrupted() {
    let mut given = message("assistant", &json!([{"type": "text_output", "text": "t"}]));
    given["status"] = json!("streaming");
    let next =
        json!({"role": "user", "interaction_id": "i2", "timestamp": "2026-01-22T21:48:29", "text_content": "?"});
    let mut store = Store::default();
    store.post_all(&json!([given, next]));
    assert_eq!(store.history()[0]["status"], "interrupted");
}

#[test]
fn given_a_question_in_many_forms_when_it_goes_in_then_all_of_it_is_visible() {
    let image = json!({"type": "image", "url": "data:image/png;base64,AAAA", "alt": null});
    let text = |text: &str| json!({"type": "text_output", "text": text});
    let file = json!({"type": "file_reference_output", "file_id": "1"});
    let table = [
        (json!("hi"), json!([]), json!("hi"), json!([])),
        (json!("hi"), json!([{"type": "text", "text": "hi"}]), json!("hi"), json!([])),
        (
            Value::Null,
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            json!("a\n\nb"),
            json!([]),
        ),
        (json!("hi"), json!([image]), json!("hi"), json!([text("hi"), image])),
        (json!("hi"), json!([file, image]), json!("hi"), json!([text("hi"), file, image])),
        (
            json!("hi"),
            json!([{"type": "text", "text": "of a file"}]),
            json!("hi"),
            json!([text("hi"), text("of a file")]),
        ),
        (Value::Null, json!([image, {"type": "text", "text": "b"}]), json!("b"), json!([image, text("b")])),
        (json!(""), json!([]), json!(""), json!([])),
        (Value::Null, Value::Null, Value::Null, json!([])),
    ];
    for (text_content, parts, shown_text, shown) in table {
        let mut given = message("user", &parts);
        given["text_content"] = text_content;
        let mut store = Store::default();
        store.post_all(&json!([given]));

        let history = store.history();

        assert_eq!((&history[0]["text_content"], &history[0]["parts"]), (&shown_text, &shown), "{given}");
        assert_eq!(history.len(), 1);
        assert_eq!(store.post_all(&history.into()) + store.post_all(&json!([given])), 0, "{given}");
    }
}

#[test]
fn given_a_message_without_what_it_needs_when_it_is_read_then_the_error_says_what_is_missing() {
    let table = [
        (
            json!({"interaction_id": "i", "timestamp": "t"}),
            "a history message needs `role`: `user` or `assistant`",
        ),
        (
            json!({"role": "system", "interaction_id": "i", "timestamp": "t"}),
            "`role` of a history message must be `user` or `assistant`",
        ),
        (json!({"role": "user", "timestamp": "t"}), "a history message needs `interaction_id`: a string"),
        (
            json!({"role": "user", "interaction_id": "", "timestamp": "t"}),
            "`interaction_id` of a history message must not be empty",
        ),
        (json!({"role": "user", "interaction_id": "i"}), "a history message needs a `timestamp`"),
        (
            json!({"role": "user", "interaction_id": "i", "timestamp": "t", "parts": 3}),
            "`parts` of a history message must be an array",
        ),
        (
            json!({"role": "user", "interaction_id": "i", "timestamp": "t", "status": "fine"}),
            "`status` of a history message must be complete, streaming, cancelled, error or interrupted",
        ),
    ];
    for (given, words) in table {
        let error = serde_json::from_str::<HistoryMessage>(&given.to_string()).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn given_numbers_with_many_digits_when_unknown_parts_go_in_then_their_digits_come_out() {
    let part = r#"{"type":"hologram","big":123456789012345678901234567890,"small":0.1000000000000000055}"#;
    let raw = format!(
        r#"{{"role":"assistant","interaction_id":"i","timestamp":"2026-01-22T21:47:29","parts":[{part}]}}"#
    );
    let mut store = Store::default();
    store.post(&serde_json::from_str(&raw).unwrap()).unwrap();
    let known = &store.projected(Disclosure::Public, Standing::Over)[0];
    assert!(serde_json::to_string(&known.message).unwrap().contains(part));
}

#[test]
fn given_an_activity_without_a_display_when_it_comes_out_then_it_has_a_friendly_name_and_an_icon() {
    let activity = |kind: &str, fields: Value| {
        let mut activity =
            json!({"type": "activity", "activity_type": kind, "source": "s", "timestamp": "2026-01-22T21:47:29"});
        activity.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        activity
    };
    let failed = json!([{"name": "f", "content": "x", "is_error": true, "call_id": "c"}]);
    let parts = out(&json!([
        activity("activity", json!({})),
        activity("thought", json!({"content": "hm"})),
        activity("tool_request", json!({"tools": [{"name": "search_web", "arguments": {}, "id": "c"}]})),
        activity("tool_result", json!({"results": failed})),
        activity("error", json!({"content": "no"})),
        activity("web_fetch", json!({})),
        activity("activity", json!({"display_info": {"friendly_name": "Mine", "category": "x"}})),
    ]));
    let names: Vec<_> =
        parts.as_array().unwrap().iter().map(|part| &part["display_info"]["friendly_name"]).collect();
    assert_eq!(
        json!(names),
        json!(["🧠 Reasoning", "💭 Thought", "🔧 Search web", "❌ Failed", "❌ Error", "⚙️ Web fetch", "Mine"])
    );
    assert_eq!(parts[6]["display_info"], json!({"friendly_name": "Mine", "category": "x", "icon": "🧠"}));
}

#[test]
fn given_a_message_when_it_is_written_then_its_keys_are_the_documents_in_their_order() {
    let written = json(&read(&message("assistant", &json!([]))));
    let keys: Vec<_> = written.as_object().unwrap().keys().map(String::as_str).collect();
    let documented = "role text_content parts activity_parts response_text_main timestamp interaction_id \
                      processing_time_ms processed_at model_used selection_mode is_welcome_message message_type status";
    assert_eq!(keys.join(" "), documented.split_whitespace().collect::<Vec<_>>().join(" "));
}
