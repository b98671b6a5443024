//! Histories that a real framework wrote go in, and come out equal in content and order.

use banyan_formats::history::{Disclosure, Standing};
use serde_json::Value;

use crate::normal::{Shown, normal};
use crate::store::{Store, has_key};

const MEMORY_WELCOME: &str = include_str!("../fixtures/history/memory_04_history_after_init.json");
const MEMORY: &str = include_str!("../fixtures/history/memory_08_history.json");
const ES_EMPTY: &str = include_str!("../fixtures/history/es_04_history_after_init.json");
const ES: &str = include_str!("../fixtures/history/es_08_history.json");
const ADMIN: &str = include_str!("../fixtures/history/es_85_admin_session_messages.json");
const DOCUMENTS: &str = include_str!("../fixtures/history/es_docs_agent-sessions-messages.json");

pub(crate) fn memory_history() -> Value {
    body(MEMORY)
}

pub(crate) fn es_history() -> Value {
    body(ES)
}

pub(crate) fn admin_messages() -> Value {
    serde_json::from_str(ADMIN).unwrap()
}

fn body(sample: &str) -> Value {
    serde_json::from_str::<Value>(sample).unwrap()["body"].take()
}

fn documents() -> Value {
    let answer: Value = serde_json::from_str(DOCUMENTS).unwrap();
    answer["hits"]["hits"].as_array().unwrap().iter().map(|hit| hit["_source"].clone()).collect()
}

#[test]
fn given_recorded_histories_when_they_go_in_then_they_come_out_equal_in_content_and_order() {
    for sample in
        [body(MEMORY_WELCOME), body(ES_EMPTY), memory_history(), es_history(), admin_messages(), documents()]
    {
        let mut store = Store::default();
        store.post_all(&sample);

        let out = store.history();

        let expected: Vec<Value> =
            sample.as_array().unwrap().iter().map(|message| normal(message, Shown::ToAll)).collect();
        assert_eq!(Value::from(out.clone()), Value::from(expected));
        assert!(!has_key(&Value::from(out), "technical_details"));
    }
}

#[test]
fn given_recorded_histories_when_they_are_posted_again_then_nothing_is_added() {
    for sample in [memory_history(), es_history(), admin_messages(), documents()] {
        let mut store = Store::default();
        assert!(store.post_all(&sample) > 0);

        assert_eq!(store.post_all(&sample), 0);
        assert_eq!(store.post_all(&store.history().into()), 0);
    }
}

#[test]
fn given_documents_of_another_store_when_an_operator_reads_them_then_everything_is_there() {
    for sample in [admin_messages(), documents()] {
        let mut store = Store::default();
        store.post_all(&sample);

        let out = store.history_as(Disclosure::Operator, Standing::Over);

        let expected: Vec<Value> =
            sample.as_array().unwrap().iter().map(|message| normal(message, Shown::ToOperators)).collect();
        assert_eq!(Value::from(out), Value::from(expected));
    }
}

#[test]
fn given_technical_details_only_among_the_old_activities_when_an_operator_reads_then_they_are_with_the_part() {
    let mut store = Store::default();
    store.post_all(&memory_history());

    let out = store.history_as(Disclosure::Operator, Standing::Over);

    let result = &out[2]["parts"][2];
    assert_eq!(result["activity_type"], "tool_result");
    assert_eq!(result["technical_details"], memory_history()[2]["activity_parts"][0]["technical_details"]);
}
