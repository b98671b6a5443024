//! Reading everything that a store holds, through the functions that anybody reads it with.

use std::collections::BTreeMap;

use banyan::{Banyan, block_on};
use serde_json::{Value, json};

use crate::model::{Attachment, Body, Entry, Model, Session};

/// Calls a function that must succeed.
pub type Ask<'a> = &'a mut dyn FnMut(&str, Value) -> Value;

/// Everything that an open store holds.
pub fn observe(store: &Banyan) -> Model {
    observe_with(&mut |function, request| {
        let answer = block_on(store.call(function, request.to_string().as_bytes()));
        let answer = answer.unwrap_or_else(|error| panic!("{function} {request}: {error}"));
        serde_json::from_str(&answer).unwrap()
    })
}

/// Everything that a store behind some door holds. Reads that overlap must agree.
pub fn observe_with(ask: Ask<'_>) -> Model {
    let mut sessions = BTreeMap::new();
    for meta in listed(ask) {
        let id = text(&meta, "session_id");
        let got = ask("session::get", json!({"session_id": id}));
        assert_eq!(got["meta"], meta, "session::get and session::list tell the same");
        assert!(sessions.insert(id.clone(), session(ask, &id, &meta)).is_none(), "{id} is listed once");
    }
    Model { sessions }
}

fn listed(ask: Ask<'_>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut request = json!({"limit": 3, "order": "created_asc"});
    loop {
        let page = ask("session::list", request.clone());
        all.extend(page["sessions"].as_array().unwrap().iter().cloned());
        match page.get("next_cursor") {
            Some(cursor) => request["cursor"] = cursor.clone(),
            None => return all,
        }
    }
}

fn session(ask: Ask<'_>, id: &str, meta: &Value) -> Session {
    let tree = ask("session::tree", json!({"session_id": id}));
    let nodes = tree["entries"].as_array().unwrap();
    let entries: Vec<Entry> = nodes.iter().map(|node| entry(ask, id, node)).collect();
    let messages = entries.iter().filter(|entry| matches!(entry.body, Body::Message(_))).count();
    assert_eq!(meta["message_count"], json!(messages), "the message count of {id}");
    let session = Session {
        title: text(meta, "title"),
        description: text(meta, "description"),
        status: text(meta, "status"),
        reason: optional(meta, "status_reason"),
        metadata: meta.get("metadata").cloned(),
        forked_from: optional(meta, "forked_from"),
        leaf: optional(&tree, "active_leaf"),
        entries,
        attachments: attachments(ask, id),
    };
    check_path(ask, id, &session);
    session
}

fn entry(ask: Ask<'_>, session: &str, node: &Value) -> Entry {
    let request = json!({"session_id": session, "entry_id": node["entry_id"]});
    let got = ask("session::get-message", request);
    let entry = &got["entry"];
    assert!(!entry.is_null(), "{node} of {session} is in the tree and cannot be read");
    assert_eq!((&entry["id"], &entry["parent_id"]), (&node["entry_id"], &node["parent_id"]), "{entry} {node}");
    let body = match entry.get("message") {
        Some(message) => Body::Message(message.clone()),
        None => Body::Custom(json!({"custom_type": entry["custom_type"], "data": entry["data"]})),
    };
    Entry {
        id: text(node, "entry_id"),
        parent: optional(node, "parent_id"),
        revision: node["revision"].as_u64().unwrap(),
        body,
        origin: entry.get("origin").cloned(),
    }
}

/// The pages of `session::messages` are the active path.
fn check_path(ask: Ask<'_>, id: &str, session: &Session) {
    let mut shown = Vec::new();
    let mut request = json!({"session_id": id, "include_custom": true, "limit": 100});
    loop {
        let page = ask("session::messages", request.clone());
        for item in page["messages"].as_array().unwrap() {
            let body = match item.get("message") {
                Some(message) => Body::Message(message.clone()),
                None => Body::Custom(item["custom"].clone()),
            };
            shown.push((text(item, "entry_id"), body));
        }
        match page.get("next_cursor") {
            Some(cursor) => request["cursor"] = cursor.clone(),
            None => break,
        }
    }
    let path = session.leaf.as_ref().map(|leaf| session.path(leaf)).unwrap_or_default();
    let path: Vec<_> = path.into_iter().map(|entry| (entry.id.clone(), entry.body.clone())).collect();
    assert_eq!(shown, path, "the active path of {id}");
}

fn attachments(ask: Ask<'_>, id: &str) -> BTreeMap<String, Attachment> {
    let listed = ask("session::list-attachments", json!({"session_id": id}));
    let listed = listed["attachments"].as_array().unwrap().clone();
    let mut found = BTreeMap::new();
    for meta in listed {
        let request = json!({"session_id": id, "attachment_id": meta["attachment_id"]});
        let got = ask("session::get-attachment", request);
        assert_eq!(got["attachment"], meta);
        let attachment =
            Attachment { name: text(&meta, "name"), mime: text(&meta, "mime"), data: text(&got, "data") };
        found.insert(text(&meta, "attachment_id"), attachment);
    }
    found
}

fn text(value: &Value, field: &str) -> String {
    optional(value, field).unwrap_or_else(|| panic!("no `{field}` in {value}"))
}

fn optional(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}
