//! Histories that a real framework wrote, posted and read again.

use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;
use crate::normal::{Shown, normal};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../banyan-formats/tests/fixtures/history/", $name))
    };
}

/// The recorded histories: of both back ends, whole and just begun, and as they are stored.
pub(crate) fn samples() -> Vec<Value> {
    let body = |text: &str| serde_json::from_str::<Value>(text).unwrap()["body"].take();
    let documents: Value = serde_json::from_str(sample!("es_docs_agent-sessions-messages.json")).unwrap();
    let documents = documents["hits"]["hits"].as_array().unwrap().iter().map(|hit| hit["_source"].clone());
    vec![
        body(sample!("memory_04_history_after_init.json")),
        body(sample!("memory_08_history.json")),
        body(sample!("es_04_history_after_init.json")),
        body(sample!("es_08_history.json")),
        serde_json::from_str(sample!("es_85_admin_session_messages.json")).unwrap(),
        documents.collect(),
    ]
}

#[test]
fn given_recorded_histories_when_they_are_posted_then_they_come_out_equal_in_content_and_order() {
    let server = Server::new();
    for (at, sample) in samples().into_iter().enumerate() {
        let id = format!("s{at}");
        let count = sample.as_array().unwrap().len();

        let posted = server.post(&format!("/sessions/{id}/history?create=1"), &sample);

        assert_eq!((posted.status, posted.json()["added"].as_u64()), (200, Some(count as u64)), "{posted:?}");
        let messages = sample.as_array().unwrap();
        let public: Vec<Value> = messages.iter().map(|message| normal(message, Shown::ToAll)).collect();
        assert_eq!(server.history(&id), public);
        let paged = server.get(&format!("/v1/sessions/{id}/history?limit=500")).json();
        assert_eq!(paged, json!(public));
        let mut screen = Screen::default();
        screen.until_ready(&mut server.open(&format!("/sessions/{id}/history?stream=1")));
        assert_eq!(screen.messages, public);
    }
}

#[test]
fn given_recorded_histories_when_an_operator_reads_them_then_everything_is_there() {
    let server = Server::new();
    // What only the old form tells of technical details is with the part afterwards.
    for sample in samples().into_iter().skip(4) {
        server.session("s");
        server.post("/sessions/s/history", &sample);

        let read = server.get("/sessions/s/history?technical_details=1").json();

        let messages = sample.as_array().unwrap();
        let expected: Vec<Value> = messages.iter().map(|message| normal(message, Shown::ToOperators)).collect();
        assert_eq!(read, json!(expected));
        server.call("delete", json!({"session_id": "s"}));
    }
}

#[test]
fn given_recorded_histories_when_they_are_posted_again_then_nothing_is_added() {
    let server = Server::new();
    for (at, sample) in samples().into_iter().enumerate() {
        let path = format!("/v1/sessions/s{at}/history");
        server.post(&format!("{path}?create=1"), &sample);
        let tag = server.get(&path).header("etag").unwrap().to_owned();

        for again in [sample, server.get(&path).json()] {
            let posted = server.post(&path, &again);
            assert_eq!((posted.status, posted.json()), (200, json!({"added": 0, "messages": []})));
        }

        assert_eq!(server.get(&path).header("etag"), Some(tag.as_str()), "not even the session was touched");
    }
}
