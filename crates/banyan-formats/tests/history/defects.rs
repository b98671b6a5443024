//! What another system does badly, and what happens here instead. Numbers are those of the list of its defects.

use banyan_formats::history::*;
use banyan_model::StopReason;
use serde_json::{Value, json};

use crate::given::*;
use crate::samples::{admin_messages, es_history, memory_history};
use crate::store::{Store, has_key, json, projector, read};

const STREAM_OF_BASE_AGENT: &str = include_str!("../fixtures/history/memory_42_stream_baseagent.json");

fn question(id: &str, text: &str) -> Value {
    json!({"role": "user", "interaction_id": id, "timestamp": "2026-01-22T21:47:29.763430", "text_content": text,
        "parts": []})
}

fn answer(id: &str, parts: &Value) -> Value {
    json!({"role": "assistant", "interaction_id": id, "timestamp": "2026-01-22T21:47:30.763430", "parts": parts})
}

fn who(history: &[Value]) -> Vec<String> {
    let name = |message: &Value| {
        format!("{} {}", message["role"].as_str().unwrap(), message["interaction_id"].as_str().unwrap())
    };
    history.iter().map(name).collect()
}

#[test]
fn defect_6_1_1_order_does_not_depend_on_numbers_or_times() {
    // Ten messages with one sequence number and one time.
    let messages: Value = (0..10)
        .map(|n| {
            let mut message = question(&format!("i{n}"), &format!("m{n}"));
            message["sequence_number"] = json!(1);
            message
        })
        .collect();
    let mut store = Store::default();
    store.post_all(&messages);
    let texts: Vec<Value> = store.history().iter().map(|message| message["text_content"].clone()).collect();
    assert_eq!(texts, ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"].map(Value::from));
}

#[test]
fn defect_6_1_1_a_history_that_was_written_in_reverse_is_not_mixed_up_further() {
    let mut store = Store::default();
    store.post_all(&es_history());
    assert_eq!(who(&store.history()), who(es_history().as_array().unwrap()));
}

#[test]
fn defect_6_1_3_a_second_question_during_an_answer_takes_nothing_from_the_first() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("first")], 1), None);
    store.append("a1", assistant(vec![text("begin")], StopReason::Aborted, 2), None);
    store.append("u2", user(vec![text("second")], 3), None);
    store.append("a2", assistant(vec![text("done")], StopReason::End, 4), None);

    let history = store.history();

    assert_eq!(who(&history), ["user u1", "assistant u1", "user u2", "assistant u2"]);
    assert_eq!(history[1]["status"], "cancelled");
    assert_eq!(history[1]["parts"], json!([{"type": "text_output", "text": "begin"}]));
    assert_eq!(history[3]["status"], "complete");
}

#[test]
fn defect_6_1_3_an_answer_that_is_posted_late_stays_with_its_question() {
    let mut store = Store::default();
    let mut late = answer("i1", &json!([{"type": "text_output", "text": "begin"}]));
    late["is_partial"] = json!(true);
    late["interruption_type"] = json!("cancelled_by_user");
    let second = answer("i2", &json!([{"type": "text_output", "text": "done"}]));
    store.post_all(&json!([question("i1", "first"), question("i2", "second"), late, second]));

    let history = store.history();

    assert_eq!(who(&history), ["user i1", "user i2", "assistant i1", "assistant i2"]);
    assert_eq!((&history[2]["status"], &history[3]["status"]), (&json!("cancelled"), &json!("complete")));
}

#[test]
fn defect_6_2_1_a_reader_that_goes_away_loses_nothing_of_what_was_streamed() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("hi")], 1), None);
    store.append("a1", assistant(vec![text("")], StopReason::End, 2), None);
    for n in 0..6 {
        store.extend(&"a1".into(), 0, &format!("word{n} "));
    }
    let history = store.history_as(Disclosure::Public, Standing::Abandoned);
    assert_eq!(
        history[1]["parts"],
        json!([{"type": "text_output", "text": "word0 word1 word2 word3 word4 word5 "}])
    );
    assert_eq!(history[1]["status"], "interrupted");
}

#[test]
fn defect_6_2_1_marks_of_the_wire_do_not_reach_the_reader() {
    let mut store = Store::default();
    store.post_all(&json!([answer(
        "i1",
        &json!([{"type": "text_output_stream", "text": "__STREAM_CHUNK__word5 "}, {"type": "text_output", "text": "__STREAM_CHUNK__more"}])
    )]));
    let texts = json!([{"type": "text_output", "text": "word5 "}, {"type": "text_output", "text": "more"}]);
    assert_eq!(store.history()[0]["parts"], texts);
}

#[test]
fn defect_6_2_2_a_failure_keeps_what_was_said_and_is_told() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("hi")], 1), None);
    store.append("a1", failed(vec![thinking("hm"), text("Let me ")], "The model is overloaded.", 2), None);

    let history = store.history();

    let parts = history[1]["parts"].as_array().unwrap();
    let kinds: Vec<_> = parts.iter().map(|part| part.get("activity_type").unwrap_or(&part["type"])).collect();
    assert_eq!(kinds, ["thought", "text_output", "error"]);
    assert_eq!((&parts[1]["text"], &parts[2]["content"]), (&json!("Let me "), &json!("The model is overloaded.")));
    assert_eq!(history[1]["status"], "error");
}

#[test]
fn defect_6_2_3_a_text_that_was_streamed_is_there_once() {
    // The same deltas as in the recorded stream, written as they came.
    let sample: Value = serde_json::from_str(STREAM_OF_BASE_AGENT).unwrap();
    let frames = sample["body"].as_str().unwrap().split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    let mut store = Store::default();
    store.append("u1", user(vec![text("baseagent weather")], 1), None);
    let mut entries = 0;
    for part in frames.flat_map(|frame| serde_json::from_str::<Value>(frame).unwrap()["parts"].as_array().cloned())
    {
        for part in part {
            let delta = part["text"].as_str().and_then(|text| text.strip_prefix("__STREAM_CHUNK__"));
            let last = store.items.last().unwrap().entry_id.clone();
            match (delta, part["activity_type"].as_str()) {
                (Some(delta), _) if last.as_str().starts_with("text") => store.extend(&last, 0, delta),
                (Some(delta), _) => {
                    entries += 1;
                    let said = assistant(vec![text(delta)], StopReason::End, 2);
                    store.append(format!("text{entries}"), said, None);
                }
                (None, Some("tool_call")) if last.as_str().starts_with("text1") => {
                    store.append(
                        "call",
                        assistant(vec![call("c", "f", &json!({}))], StopReason::FunctionCall, 3),
                        None,
                    );
                    store.append("result", result("c", "f", vec![text("18C")], 4), None);
                }
                _ => {}
            }
        }
    }
    let texts: Vec<Value> = store.history()[1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "text_output")
        .map(|part| part["text"].clone())
        .collect();
    assert_eq!(texts, ["Let me search.", "It is 18C."]);
}

#[test]
fn defect_6_2_5_one_part_that_nobody_knows_hides_nothing() {
    let parts = json!([
        {"type": "text_output", "text": "before"},
        {"type": "hologram", "depth": 3, "nested": {"a": [1, 2.5, null]}},
        {"type": "text_output"},
        {"type": "activity", "activity_type": "odd"},
        "a scalar",
        17,
        {"type": "text_output", "text": "after"},
    ]);
    let mut store = Store::default();
    store.post_all(&json!([answer("i1", &parts)]));
    assert_eq!(store.history()[0]["parts"], parts);
    assert_eq!(store.history()[0]["activity_parts"], json!([{"type": "odd"}]));
}

#[test]
fn defect_6_2_5_one_entry_that_cannot_be_read_hides_nothing() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("hi")], 1), None);
    store.append("a1", assistant(vec![text("before")], StopReason::End, 2), None);
    store.append("a2", assistant(vec![text("broken")], StopReason::End, 3), None);
    store.append("a3", assistant(vec![text("after")], StopReason::End, 4), None);
    store.items[2].message = Some(serde_json::from_value(json!({"role": "ghost", "surprise": true})).unwrap());

    let parts = store.history()[1]["parts"].clone();

    assert_eq!((&parts[0]["text"], &parts[2]["text"]), (&json!("before"), &json!("after")));
    assert_eq!(parts[1]["content"], "This entry could not be read.");
}

#[test]
fn defect_6_2_5_one_field_that_nobody_knows_hides_nothing() {
    let mut message = question("i1", "hi");
    message["mood"] = json!({"level": 3});
    let mut store = Store::default();
    store.post_all(&json!([message]));
    assert_eq!(store.history()[0]["mood"], json!({"level": 3}));
}

#[test]
fn defect_6_2_6_an_answer_is_there_from_its_first_word() {
    let mut projector = projector(Disclosure::Public);
    projector.set_standing(Standing::Running);
    projector.push(Entry::of_message("u1".into(), user(vec![text("hi")], 1), None));
    projector.push(Entry::of_message("a1".into(), assistant(vec![text("Hel")], StopReason::End, 2), None));
    let now = json(&projector.open().unwrap().message);
    assert_eq!(now["parts"], json!([{"type": "text_output", "text": "Hel"}]));
    assert_eq!((&now["status"], &now["processed_at"]), (&json!("streaming"), &Value::Null));
}

#[test]
fn defect_6_5_5_technical_details_do_not_leak() {
    let mut hidden_deep = answer(
        "i9",
        &json!([
            {"type": "hologram", "a": [{"technical_details": {"secret_path": "/srv/y"}}], "technical_details": 1},
            {"type": "text_output", "text": "technical_details is a word", "technical_details": "/srv/x"},
            {"type": "activity", "activity_type": "tool_request", "source": "s", "timestamp": "2026-01-22T21:47:29",
             "tools": [{"name": "f", "id": "c", "arguments": {"q": 1, "technical_details": "/srv/z"}}]},
        ]),
    );
    hidden_deep["technical_details"] = json!({"secret_path": "/srv/x"});
    hidden_deep["extra"] = json!({"technical_details": {"secret_path": "/srv/x"}, "shown": true});
    for sample in [memory_history(), es_history(), admin_messages(), json!([hidden_deep])] {
        let mut store = Store::default();
        store.post_all(&sample);

        let shown = Value::from(store.history());
        assert!(!has_key(&shown, "technical_details"));
        assert!(!shown.to_string().contains("/srv/"), "a secret is in {shown}");

        // Whoever reads entries instead of histories gets their origin without them, too.
        let elsewhere: Vec<Value> = store
            .items
            .iter()
            .map(|item| json!([item.message, public_origin(item.origin.clone().unwrap_or_default())]))
            .collect();
        assert!(!has_key(&Value::from(elsewhere.clone()), "technical_details"));
        assert!(!Value::from(elsewhere).to_string().contains("/srv/"));

        // They are kept.
        let kept = Value::from(store.history_as(Disclosure::Operator, Standing::Over));
        assert!(kept.to_string().contains("/srv/x"));
    }
}

#[test]
fn defect_6_5_5_technical_details_do_not_leak_with_an_escaped_key() {
    let raw = r#"{"role":"assistant","interaction_id":"i","timestamp":"2026-01-22T21:47:29","parts":[{"type":"x","a":{"technical\u005fdetails":"/srv/x"}}]}"#;
    let mut store = Store::default();
    store.post(&serde_json::from_str(raw).unwrap()).unwrap();
    assert_eq!(store.history()[0]["parts"], json!([{"type": "x", "a": {}}]));
}

#[test]
fn defect_6_6_2_a_result_is_not_sent_three_times() {
    let payload = "8192 bytes of payload";
    let activity = json!({"type": "activity", "activity_type": "tool_call", "source": "s",
        "timestamp": "2026-01-22T21:47:29", "content": null,
        "tools": [{"name": "f", "id": "c", "arguments": {}}],
        "results": [{"name": "f", "content": payload, "is_error": false, "call_id": "c"}],
        "technical_details": {"raw_result": payload}});
    let mut store = Store::default();
    store.post_all(&json!([answer("i1", &json!([activity]))]));
    // Once in `parts`, and once in `activity_parts` for old front ends.
    assert_eq!(Value::from(store.history()).to_string().matches(payload).count(), 2);
    // It is stored once, and once more among the technical details.
    let stored = serde_json::to_string(&store.items).unwrap();
    assert_eq!(stored.matches(payload).count(), 2);
}

#[test]
fn defect_6_6_5_a_post_that_is_repeated_adds_nothing() {
    let mut store = Store::default();
    let turn = json!([question("i1", "hi"), answer("i1", &json!([{"type": "text_output", "text": "hello"}]))]);
    assert_eq!(store.post_all(&turn), 2);
    assert_eq!(store.post_all(&turn), 0);
    assert_eq!(store.history().len(), 2);
    let other = read(&answer("i1", &json!([{"type": "text_output", "text": "something else"}])));
    assert_eq!(store.post(&other), Err("i1".to_owned()));
}

#[test]
fn defect_6_6_6_a_token_costs_a_token_and_little_more() {
    let mut projector = projector(Disclosure::Public);
    projector.push(Entry::of_message("u1".into(), user(vec![text("hi")], 1), None));
    let long = "x".repeat(100_000);
    projector.push(Entry::of_message("a1".into(), assistant(vec![text(&long)], StopReason::End, 2), None));
    let Change::Grew(delta) = projector.grow(&"a1".into(), 0, "token") else { panic!("not a delta") };
    assert_eq!(
        json(&delta),
        json!({"interaction_id": "u1", "role": "assistant", "part": 0, "text": "token", "main": true})
    );
}
