//! A session as it is, then what follows.

use std::collections::BTreeMap;
use std::thread;

use serde_json::{Value, json};

use crate::listening::*;

#[test]
fn a_snapshot_is_followed_by_what_happens_with_no_gap() {
    const EACH: usize = 80;
    let server = Server::new();
    server.session("s");
    let growing = server.append("s", "");
    thread::scope(|scope| {
        scope.spawn(|| (0..EACH).for_each(|_| server.extend("s", &growing, "x")));
        for writer in ["one", "two"] {
            let server = &server;
            scope.spawn(move || (0..EACH).for_each(|n| drop(server.append("s", &format!("{writer} {n}")))));
        }
        for reader in 0..4 {
            let (server, growing) = (&server, &growing);
            scope.spawn(move || {
                let deltas = if reader % 2 == 0 { "" } else { "&deltas=1" };
                follow(&mut server.open(&format!("/v1/sessions/s/events?snapshot=1{deltas}")), growing, EACH);
            });
        }
    });
    let mut late = server.open("/v1/sessions/s/events?snapshot=1");
    follow(&mut late, &growing, EACH);
    let next = server.append("s", "next");
    let rest = late.until("session::message-added");
    assert_eq!(rest.last().unwrap().json()["entry_id"], next.as_str());
    let added = rest.iter().filter(|frame| frame.event == "session::message-added").count();
    assert_eq!(added, 1, "{rest:?}");
}

/// Reads until everything was seen, each thing once.
fn follow(stream: &mut Stream, growing: &str, each: usize) {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut revision = 0;
    let mut ended = None;
    while texts.len() < 1 + 2 * each || revision < each as u64 {
        let frame = stream.next().unwrap();
        let data = frame.json();
        assert_eq!(frame.id.is_some(), ended.is_some() || frame.event == "banyan::snapshot-end", "{frame:?}");
        match frame.event.as_str() {
            "session::created" => assert!(ended.is_none() && data["session_id"] == "s"),
            "banyan::snapshot-end" => {
                assert_eq!((ended.replace(frame.position().to_owned()), frame.data.as_str()), (None, "{}"));
            }
            "session::message-added" => {
                let id = data["entry_id"].as_str().unwrap().to_owned();
                assert!(texts.insert(id, text_of(&data)).is_none(), "an entry came twice");
            }
            "session::message-updated" => {
                let next = data["revision"].as_u64().unwrap();
                assert!(next == revision + 1 || ended.is_none(), "{next} after {revision}");
                revision = next;
                texts.insert(growing.to_owned(), text_of(&data));
            }
            "banyan::delta" => {
                let next = data["revision"].as_u64().unwrap();
                let added = data["text"].as_str().unwrap();
                assert_eq!(next, revision + added.len() as u64);
                revision = next;
                texts.get_mut(growing).unwrap().push_str(added);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(texts[growing], "x".repeat(each));
}

fn text_of(data: &Value) -> String {
    data["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_snapshot_has_what_was_asked_for_and_its_end_is_a_position() {
    let server = Server::new();
    server.session("s");
    server.call("append", json!({"session_id": "s", "message": {"role": "user", "content": [], "timestamp": 1}}));
    let entry = server.append("s", "a");
    server.extend("s", &entry, "b");
    for (query, expected) in [
        ("", &["created", "message-added", "message-added", "message-updated", "banyan::snapshot-end"][..]),
        ("&roles=assistant", &["created", "message-added", "message-updated", "banyan::snapshot-end"]),
        ("&type=session::message-updated", &["message-updated", "banyan::snapshot-end"]),
        ("&type=session::deleted", &["banyan::snapshot-end"]),
    ] {
        for path in ["/v1/sessions/s/events?", "/v1/events?session_id=s&"] {
            let mut stream = server.open(&format!("{path}snapshot=1{query}"));
            assert_eq!(types(&stream.until("banyan::snapshot-end")), expected, "{path} {query}");
        }
    }
    let snapshot = server.open("/v1/sessions/s/events?snapshot=1").until("banyan::snapshot-end");
    let position = snapshot.last().unwrap().position();
    let next = server.append("s", "what follows");
    let headers = [("Last-Event-ID", position)];
    let mut back = Stream::open(server.at, "/v1/sessions/s/events?snapshot=1", &headers).unwrap();
    assert_eq!(back.next().unwrap().json()["entry_id"], next.as_str(), "there is no second snapshot");
}
