//! Messages in the shapes of front ends: what goes in.

use serde_json::{Value, json};

use super::sample::everything;
use crate::front_end::*;
use crate::listening::Server;

const NAMES: [&str; 3] = ["assistant-ui", "ai-sdk", "ag-ui"];

fn address(session: &str, format: &str) -> String {
    format!("/v1/sessions/{session}/messages?format={format}")
}

fn added(answer: &Answer) -> usize {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["added"].as_array().unwrap().len()
}

#[test]
fn given_what_the_server_said_when_it_is_posted_to_it_then_nothing_is_added() {
    let server = Server::new();
    everything(&server);
    let before = server.call("tree", json!({"session_id": "s"}));
    for name in NAMES {
        let form = server.get(&address("s", name)).json();
        let answer = server.post(&address("s", name), &form);
        assert_eq!(answer.json(), json!({"added": [], "extended": []}), "{name}");
    }
    assert_eq!(server.call("tree", json!({"session_id": "s"})), before);
}

#[test]
fn given_what_the_server_said_when_it_is_posted_to_another_session_then_that_looks_the_same() {
    let server = Server::new();
    everything(&server);
    for name in NAMES {
        server.session(name);
        let form = server.get(&address("s", name)).json();
        assert!(added(&server.post(&address(name, name), &form)) > 8);
        let copy = server.get(&address(name, name)).text;
        let same: Value =
            serde_json::from_str(&copy.replace(&format!("/{name}/attachments"), "/s/attachments")).unwrap();
        assert_eq!(same, form, "{name}");
        assert_eq!(added(&server.post(&address(name, name), &form)), 0, "{name}");
    }
}

#[test]
fn given_a_conversation_that_goes_on_when_only_what_is_new_is_posted_then_it_follows_what_is_there() {
    let server = Server::new();
    everything(&server);
    let tree = server.get(&address("s", "assistant-ui")).json();
    let message = |id: &str| {
        json!({"id": id, "role": "user", "createdAt": "2026-01-22T21:47:28.000Z", "attachments": [],
        "content": [{"type": "text", "text": id}], "metadata": {"custom": {}}})
    };
    // The answer to the first question is a turn of several entries; what follows it, follows its last one.
    let parent = tree["messages"][1]["message"]["id"].clone();
    let body = json!({"headId": "new", "messages": [{"parentId": parent, "message": message("new")}]});
    assert_eq!(added(&server.post(&address("s", "assistant-ui"), &body)), 1);
    let after = server.get(&address("s", "assistant-ui")).json();
    let new = after["messages"].as_array().unwrap().iter().find(|item| item["message"]["id"] == "new").unwrap();
    assert_eq!((&new["parentId"], &after["headId"]), (&parent, &json!("new")));

    let only_new = json!([{"id": "u9", "role": "user", "parts": [{"type": "text", "text": "And?"}]}]);
    assert_eq!(added(&server.post(&address("s", "ai-sdk"), &only_new)), 1);
    let path = server.get(&address("s", "ai-sdk")).json();
    let last: Vec<&Value> = path.as_array().unwrap().iter().rev().take(2).map(|message| &message["id"]).collect();
    assert_eq!(last, ["u9", "new"]);
}

#[test]
fn given_a_message_that_grew_when_it_is_posted_again_then_it_is_longer() {
    let server = Server::new();
    server.session("s");
    let message = |parts: Value| {
        json!([{"id": "u", "role": "user", "parts": [{"type": "text", "text": "Hi"}]},
        {"id": "m", "role": "assistant", "parts": parts}])
    };
    let post = |parts: Value| server.post(&address("s", "ai-sdk"), &message(parts));
    assert_eq!(added(&post(json!([{"type": "text", "text": "Hel"}]))), 2);
    let call = json!({"type": "dynamic-tool", "toolName": "f", "toolCallId": "t", "state": "input-available", "input": {}});
    let answer = post(json!([{"type": "text", "text": "Hello"}, call]));
    assert_eq!(answer.json(), json!({"added": [], "extended": ["m"]}));
    // A copy from before is no news.
    assert_eq!(post(json!([{"type": "text", "text": "Hel"}])).json(), json!({"added": [], "extended": []}));
    let shown = server.get(&address("s", "ai-sdk")).json();
    assert_eq!(
        (&shown[1]["parts"][0]["text"], &shown[1]["parts"][1]["state"]),
        (&json!("Hello"), &json!("input-available"))
    );
}

#[test]
fn given_something_that_contradicts_the_session_when_it_is_posted_then_it_is_refused_and_nothing_is_written() {
    let server = Server::new();
    everything(&server);
    let before = server.call("tree", json!({"session_id": "s"}));
    let shown = server.get(&address("s", "ai-sdk")).json();
    let new = json!({"id": "new", "role": "user", "parts": [{"type": "text", "text": "new"}]});

    let mut edited = shown[0].clone();
    edited["parts"][0]["text"] = json!("Look at that");
    let mut nameless = shown[1].clone();
    nameless["metadata"] = Value::Null;
    let mut torn = shown[1].clone();
    torn["parts"].as_array_mut().unwrap().remove(0);
    for (status, body) in [
        (409, json!([new, edited])),
        (409, json!([new, nameless])),
        (400, json!([new, torn])),
        (400, json!({"a": 1})),
    ] {
        let answer = server.post(&address("s", "ai-sdk"), &body);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let root = json!({"id": "root", "role": "user", "content": [{"type": "text", "text": "again"}]});
    for (parent, refused) in
        [(Value::Null, (409, "session/conflict")), (json!("nobody"), (404, "session/parent_not_found"))]
    {
        let body = json!({"messages": [{"parentId": parent, "message": root}]});
        let answer = server.post(&address("s", "assistant-ui"), &body);
        assert_eq!(answer.refused(), (refused.0, refused.1.to_owned()), "{answer:?}");
    }
    assert_eq!(
        server.post(&address("no", "ai-sdk"), &json!([new])).refused(),
        (404, "session/not_found".to_owned())
    );
    assert_eq!(server.call("tree", json!({"session_id": "s"})), before);
}
