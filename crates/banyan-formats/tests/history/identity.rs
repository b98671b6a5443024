//! Who is who: interactions, entries, turns, and what a repeated or longer message adds.

use banyan_formats::history::identity::{entry_id, interaction_id, starts};
use banyan_formats::history::*;
use banyan_model::{EntryId, StopReason};
use serde_json::{Value, json};

use crate::given::*;
use crate::store::{Store, read};

fn answer(parts: &Value) -> Value {
    json!({"role": "assistant", "interaction_id": "i1", "timestamp": "2026-01-22T21:47:29", "parts": parts})
}

fn said(text: &str) -> Value {
    json!({"type": "text_output", "text": text})
}

#[test]
fn given_a_minted_entry_id_when_it_names_an_interaction_then_it_is_a_uuid_and_leads_back() {
    let minted = EntryId::from("e_01932f4e8c007abc8def0123456789ab");
    let own = EntryId::from("my question");
    assert_eq!(interaction_id(&minted), "01932f4e-8c00-7abc-8def-0123456789ab");
    assert_eq!(interaction_id(&own), "my question");
    assert_eq!(starts("01932f4e-8c00-7abc-8def-0123456789ab", Speaker::User).last(), Some(&minted));
    assert_eq!(starts("my question", Speaker::Assistant).last(), Some(&own));
}

#[test]
fn given_a_posted_message_when_its_entries_are_made_then_their_ids_are_always_the_same() {
    let message = read(&answer(&json!([said("a"), {"type": "hologram"}])));
    let ids: Vec<EntryId> = entries_of(&message).into_iter().map(|entry| entry.entry_id).collect();
    assert_eq!(ids, [entry_id("i1", Speaker::Assistant, 0), entry_id("i1", Speaker::Assistant, 1)]);
    assert!(ids.iter().all(|id| id.as_uuid().is_some()));
    assert_eq!(starts("i1", Speaker::Assistant)[0], ids[0]);
    assert_ne!(entry_id("i1", Speaker::User, 0), ids[0]);
}

#[test]
fn given_entries_before_the_first_question_when_they_are_told_then_they_are_a_message_of_their_own() {
    let mut store = Store::default();
    store.append(
        "e_01932f4e8c007abc8def0123456789ab",
        assistant(vec![text("Welcome!")], StopReason::End, 1),
        None,
    );
    store.append("u1", user(vec![text("hi")], 2), None);
    let history = store.history();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0]["interaction_id"], "01932f4e-8c00-7abc-8def-0123456789ab");
    assert_eq!(history[0]["is_welcome_message"], false);
}

#[test]
fn given_a_turn_of_many_entries_when_it_is_told_then_it_is_one_answer_with_its_times_and_model() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("hi")], 1_769_118_449_763), None);
    store.append(
        "a1",
        assistant(
            vec![thinking("hm"), call("c", "f", &json!({"n": 1}))],
            StopReason::FunctionCall,
            1_769_118_450_000,
        ),
        None,
    );
    store.append("r1", result("c", "f", vec![text("18C"), image("AAAA")], 1_769_118_451_000), None);
    store.append("n1", custom("note", vec![], Some("Looking at the picture"), 1_769_118_452_000), None);
    store.append("n2", custom("note", vec![text("shown as it is")], None, 1_769_118_452_000), None);
    store.append("n3", custom("note", vec![text("not shown")], Some(""), 1_769_118_452_000), None);
    store.append_custom("x1", "app.state", &json!({"cursor": 3}));
    store.append_custom("x2", "app.state", &json!({"display": "Saved"}));
    store.append("a2", assistant(vec![text("It is 18C.")], StopReason::End, 1_769_118_453_763), None);

    let history = store.history();

    assert_eq!(history.len(), 2);
    let answer = &history[1];
    let shown: Vec<String> = answer["parts"].as_array().unwrap().iter().map(brief).collect();
    assert_eq!(
        shown,
        [
            "thought hm",
            "tool_request f",
            "tool_result 18C",
            "image",
            "other Looking at the picture",
            "other shown as it is",
            "other Saved",
            "text_output It is 18C."
        ]
    );
    assert_eq!(answer["interaction_id"], "u1");
    assert_eq!(answer["timestamp"], "2026-01-22T21:47:30.000000+00:00");
    assert_eq!(answer["processed_at"], "2026-01-22T21:47:33.763000+00:00");
    assert_eq!(answer["processing_time_ms"], 4000);
    assert_eq!((&answer["model_used"], &answer["response_text_main"]), (&json!("m-1"), &json!("It is 18C.")));
    assert_eq!(answer["activity_parts"].as_array().unwrap().len(), 6);
}

fn brief(part: &Value) -> String {
    let kind = part.get("activity_type").unwrap_or(&part["type"]).as_str().unwrap();
    let says = [&part["text"], &part["content"], &part["tools"][0]["name"], &part["results"][0]["content"]];
    let says = says.into_iter().find_map(Value::as_str).unwrap_or_default();
    format!("{kind} {says}").trim_end().to_owned()
}

#[test]
fn given_how_a_turn_stopped_when_it_is_told_then_its_status_says_so() {
    let table = [
        (StopReason::End, Standing::Over, "complete"),
        (StopReason::Length, Standing::Over, "complete"),
        (StopReason::Aborted, Standing::Over, "cancelled"),
        (StopReason::Error, Standing::Over, "error"),
        (StopReason::FunctionCall, Standing::Over, "interrupted"),
        (StopReason::FunctionCall, Standing::Running, "streaming"),
        (StopReason::End, Standing::Failed, "error"),
        (StopReason::End, Standing::Abandoned, "interrupted"),
    ];
    for (stop, standing, status) in table {
        let mut store = Store::default();
        store.append("u1", user(vec![text("hi")], 1), None);
        store.append("a1", assistant(vec![text("t")], stop, 2), None);
        assert_eq!(store.history_as(Disclosure::Public, standing)[1]["status"], status);
        // Only the newest message can be anything but over.
        store.append("u2", user(vec![text("next")], 3), None);
        let history = store.history_as(Disclosure::Public, standing);
        assert_eq!(history[1]["status"], store.history()[1]["status"]);
        assert_eq!(history[2]["status"], "complete");
    }
}

#[test]
fn given_a_longer_message_when_it_is_posted_then_only_the_rest_is_added() {
    let mut store = Store::default();
    store.post_all(&json!([answer(&json!([said("Hel")]))]));
    let longer = answer(&json!([said("Hello"), {"type": "hologram"}, said("there")]));

    assert_eq!(store.post_all(&json!([longer])), 3);

    assert_eq!(store.history()[0]["parts"], longer["parts"]);
    assert_eq!(store.post_all(&json!([longer])), 0);
    assert_eq!(store.post_all(&json!([answer(&json!([said("Hel")]))])), 0, "what was said before is no news");
    assert!(store.post(&read(&answer(&json!([said("Help")])))).is_err());
    assert!(store.post(&read(&answer(&json!([said("Hello"), said("there")])))).is_err());
}

#[test]
fn given_fields_that_were_not_known_when_they_are_posted_then_they_are_added_and_cannot_change() {
    let mut store = Store::default();
    let mut message = answer(&json!([said("Hello")]));
    store.post_all(&json!([message]));
    message["processed_at"] = json!("2026-01-22T21:47:30");
    message["status"] = json!("cancelled");

    assert_eq!(store.post_all(&json!([message])), 1);

    let history = store.history();
    assert_eq!(
        (&history[0]["processed_at"], &history[0]["status"]),
        (&message["processed_at"], &message["status"])
    );
    assert_eq!(history[0]["parts"], message["parts"]);
    assert_eq!(store.post_all(&json!([message])), 0);
    message["processed_at"] = json!("2026-01-22T21:47:31");
    assert!(store.post(&read(&message)).is_err());
}

#[test]
fn given_a_turn_of_banyans_own_when_its_answer_is_posted_longer_then_the_rest_joins_it() {
    let mut store = Store::default();
    store.append("u1", user(vec![text("hi")], 1), None);
    store.append("a1", assistant(vec![text("Hel")], StopReason::End, 2), None);
    let mut longer = store.history()[1].clone();
    longer["parts"] = json!([said("Hello"), said("there")]);

    assert_eq!(store.post(&read(&longer)), Ok(2));

    let history = store.history();
    assert_eq!(history.len(), 2);
    assert_eq!(history[1]["parts"], longer["parts"]);
}
