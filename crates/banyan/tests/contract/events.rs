//! What fires, with which payload, in which order; and what stays silent.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    creating_fires_created
    appending_fires_message_added
    a_batch_fires_one_event_per_entry_in_order
    updating_fires_message_updated_with_the_whole_message
    extending_fires_message_updated_with_the_whole_message
    a_request_origin_is_on_the_event_of_the_update_only
    a_status_that_changes_fires_status_changed
    setting_meta_fires_meta_updated
    deleting_fires_deleted
    events_come_in_the_order_of_their_calls
    settling_a_grown_message_is_silent
    a_message_that_grows_between_sessions_is_told_whole
    positions_grow_and_are_never_given_twice
}

fn one(listener: &mut Box<dyn Listener>) -> (String, Value) {
    let mut heard = said(&listener.heard());
    assert_eq!(heard.len(), 1, "{heard:?}");
    heard.remove(0)
}

fn creating_fires_created(store: &dyn Door) {
    let mut events = store.listen_to_all();
    let created = store.ok("create", json!({"title": "T", "description": "D", "metadata": {"a": 1}}));
    let payload = |answer: &Value| {
        let meta = &answer["meta"];
        json!({"session_id": meta["session_id"], "title": meta["title"], "description": meta["description"],
            "status": "idle", "created_at": meta["created_at"]})
    };
    assert_eq!(one(&mut events), ("session::created".to_owned(), payload(&created)));
    let ensured = store.ok("ensure", json!({"session_id": "mine"}));
    assert_eq!(one(&mut events), ("session::created".to_owned(), payload(&ensured)));
}

fn appending_fires_message_added(store: &dyn Door) {
    let id = store.session();
    let mut events = store.listen_to_all();
    let first = store.ok("append", json!({"session_id": id, "message": user("hi"), "origin": {"by": "me"}}));
    let payload = json!({"session_id": id, "entry_id": first["entry_id"], "parent_id": null, "message": user("hi"),
        "origin": {"by": "me"}, "timestamp": first["timestamp"]});
    assert_eq!(one(&mut events), ("session::message-added".to_owned(), payload));
    let custom = json!({"custom_type": "t", "data": {"x": 1}});
    let second = store.ok("append", json!({"session_id": id, "custom": custom}));
    let payload = json!({"session_id": id, "entry_id": second["entry_id"], "parent_id": first["entry_id"],
        "custom": custom, "timestamp": second["timestamp"]});
    assert_eq!(one(&mut events), ("session::message-added".to_owned(), payload));
}

fn a_batch_fires_one_event_per_entry_in_order(store: &dyn Door) {
    let id = store.session();
    let mut events = store.listen_to_all();
    let messages = [user("a"), assistant("b"), user("c")];
    let answer = store.ok("append-many", json!({"session_id": id, "messages": messages, "origin": {"n": 1}}));
    let at = store.meta(&id)["updated_at"].clone();
    let mut parent = Value::Null;
    let mut expected = Vec::new();
    for (entry, message) in answer["entry_ids"].as_array().unwrap().iter().zip(&messages) {
        let payload = json!({"session_id": id, "entry_id": entry, "parent_id": parent, "message": message,
            "origin": {"n": 1}, "timestamp": at});
        expected.push(("session::message-added".to_owned(), payload));
        parent = entry.clone();
    }
    assert_eq!(said(&events.heard()), expected);
}

fn updating_fires_message_updated_with_the_whole_message(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("a")}));
    let mut events = store.listen_to_all();
    for (revision, said) in [(1, "ab"), (2, "other"), (3, "other")] {
        store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": text(said)}));
        let payload = json!({"session_id": id, "entry_id": entry, "message": assistant(said), "revision": revision,
            "timestamp": store.meta(&id)["updated_at"]});
        assert_eq!(one(&mut events), ("session::message-updated".to_owned(), payload));
    }
}

fn extending_fires_message_updated_with_the_whole_message(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("")}));
    let mut events = store.listen_to_all();
    let mut whole = String::new();
    for (revision, token) in (1..).zip(["It ", "is ", "", "sunny"]) {
        store.ok(
            "extend-message",
            json!({"session_id": id, "entry_id": entry, "text": token, "origin": {"r": revision}}),
        );
        whole.push_str(token);
        let payload = json!({"session_id": id, "entry_id": entry, "message": assistant(&whole), "revision": revision,
            "origin": {"r": revision}, "timestamp": store.meta(&id)["updated_at"]});
        assert_eq!(one(&mut events), ("session::message-updated".to_owned(), payload));
    }
}

fn a_request_origin_is_on_the_event_of_the_update_only(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": user("x"), "origin": {"by": "first"}}));
    let mut events = store.listen_to_all();
    for (content, origin) in
        [("xy", json!({"by": "second"})), ("z", json!({"by": "third"})), ("zz", Value::Null), ("q", Value::Null)]
    {
        store.ok(
            "update-message",
            json!({"session_id": id, "entry_id": entry, "content": text(content), "origin": origin}),
        );
        assert_eq!(one(&mut events).1.get("origin"), Some(&origin).filter(|origin| !origin.is_null()));
    }
}

fn a_status_that_changes_fires_status_changed(store: &dyn Door) {
    let id = store.session();
    let mut events = store.listen_to_all();
    for (status, previous, reason) in
        [("working", "idle", None), ("error", "working", Some("why")), ("idle", "error", None)]
    {
        store.ok("set-status", json!({"session_id": id, "status": status, "reason": "why"}));
        let mut payload = json!({"session_id": id, "status": status, "previous_status": previous,
            "timestamp": store.meta(&id)["updated_at"]});
        if let Some(reason) = reason {
            payload["status_reason"] = json!(reason);
        }
        assert_eq!(one(&mut events), ("session::status-changed".to_owned(), payload));
    }
}

fn setting_meta_fires_meta_updated(store: &dyn Door) {
    let id = store.ok("create", json!({"title": "T", "description": "D"}))["session_id"].clone();
    let mut events = store.listen_to_all();
    for change in [json!({"title": "T2"}), json!({"metadata": {"a": 1}}), json!({"description": "D2"})] {
        let mut request = change;
        request["session_id"] = id.clone();
        store.ok("set-meta", request);
        let meta = store.meta(&id);
        let mut payload = json!({"session_id": id, "title": meta["title"], "description": meta["description"],
            "timestamp": meta["updated_at"]});
        if let Some(metadata) = meta.get("metadata") {
            payload["metadata"] = metadata.clone();
        }
        assert_eq!(one(&mut events), ("session::meta-updated".to_owned(), payload));
    }
}

fn deleting_fires_deleted(store: &dyn Door) {
    let id = store.session();
    store.say(&id, "hi");
    let mut events = store.listen_to_all();
    let before = now();
    store.ok("delete", json!({"session_id": id}));
    let (event_type, payload) = one(&mut events);
    let at = payload["timestamp"].as_i64().unwrap();
    assert!((before..=now()).contains(&at));
    assert_eq!((event_type.as_str(), payload), ("session::deleted", json!({"session_id": id, "timestamp": at})));
}

fn events_come_in_the_order_of_their_calls(store: &dyn Door) {
    let mut events = store.listen_to_all();
    let (one, other) = (store.session(), store.session());
    let entry = store.say(&one, "hi");
    store.say(&other, "hi");
    store.ok("update-message", json!({"session_id": one, "entry_id": entry, "content": text("ho")}));
    store.ok("set-status", json!({"session_id": other, "status": "done"}));
    store.ok("set-meta", json!({"session_id": one, "title": "T"}));
    store.ok("fork", json!({"session_id": one, "entry_id": entry}));
    store.ok("delete", json!({"session_id": one}));
    assert_eq!(
        types(&events.heard()),
        [
            "created",
            "created",
            "message-added",
            "message-added",
            "message-updated",
            "status-changed",
            "meta-updated",
            "created",
            "deleted"
        ]
    );
}

fn settling_a_grown_message_is_silent(store: &dyn Door) {
    let id = store.session();
    let entry = store.append(&id, json!({"message": assistant("")}));
    store.ok("set-status", json!({"session_id": id, "status": "working"}));
    store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": "grown"}));
    let mut events = store.listen_to_all();
    store.ok("set-status", json!({"session_id": id, "status": "done"}));
    store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": "!"}));
    store.say(&id, "next");
    assert_eq!(types(&events.heard()), ["status-changed", "message-updated", "message-added"]);
    assert_eq!(store.entry(&id, &entry)["revision"], 2);
}

fn a_message_that_grows_between_sessions_is_told_whole(store: &dyn Door) {
    let ids = [store.session(), store.session()];
    let entries = ids.each_ref().map(|id| store.append(id, json!({"message": assistant("")})));
    let mut events = store.listen_to_all();
    for token in ["a", "b", "c"] {
        for (id, entry) in ids.iter().zip(&entries) {
            store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": token}));
        }
    }
    let heard: Vec<(Value, String)> = events
        .heard()
        .iter()
        .map(|heard| (heard.payload["session_id"].clone(), said_in(&heard.payload["message"])))
        .collect();
    let expected: Vec<(Value, String)> =
        ["a", "ab", "abc"].iter().flat_map(|text| ids.iter().map(|id| (id.clone(), (*text).to_owned()))).collect();
    assert_eq!(heard, expected);
}

fn positions_grow_and_are_never_given_twice(store: &dyn Door) {
    let mut events = store.listen_to_all();
    let id = store.session();
    store.ok("append-many", json!({"session_id": id, "messages": [user("a"), user("b"), user("c")]}));
    store.ok("set-status", json!({"session_id": id, "status": "done"}));
    let heard = events.heard();
    assert_eq!(heard.len(), 5);
    assert!(
        heard
            .windows(2)
            .all(|two| two[0].position < two[1].position
                && two[0].position.to_string() < two[1].position.to_string())
    );
}
