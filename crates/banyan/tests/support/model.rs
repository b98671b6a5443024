//! The contract once more, as plainly as it can be written: vectors, maps, copies. It decides nothing that the store
//! chooses (ids and times); those it takes from the store's answer, and checks everything else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Door;

/// All sessions, and everything that subscribers must have heard.
#[derive(Default)]
pub struct Model {
    pub sessions: BTreeMap<String, Session>,
    pub events: Vec<Told>,
    births: usize,
}

/// An event, and which life of which session it is about.
pub struct Told {
    pub event_type: &'static str,
    pub payload: Value,
    pub life: usize,
}

/// A session, all of it.
#[derive(Clone)]
pub struct Session {
    pub meta: Value,
    pub entries: Vec<Value>,
    pub leaf: Option<String>,
    pub attachments: Vec<(Value, String)>,
    life: usize,
}

type Answer = Result<Value, &'static str>;

impl Session {
    pub fn find(&self, id: &Value) -> Option<usize> {
        self.entries.iter().position(|entry| entry["id"] == *id)
    }

    /// Entries from the root to one of them.
    pub fn chain(&self, id: &str) -> Vec<&Value> {
        let mut chain = Vec::new();
        let mut next = json!(id);
        while let Some(at) = self.find(&next) {
            chain.push(&self.entries[at]);
            next = self.entries[at]["parent_id"].clone();
        }
        chain.reverse();
        chain
    }

    pub fn path(&self) -> Vec<&Value> {
        self.leaf.as_deref().map(|leaf| self.chain(leaf)).unwrap_or_default()
    }

    /// Which life this is, counted from the first session on.
    pub fn life(&self) -> usize {
        self.life
    }

    fn leaf(&self) -> Value {
        json!(self.leaf)
    }

    fn uses(&self, attachment: &Value) -> bool {
        self.entries.iter().any(|entry| used_in(entry).contains(attachment))
    }
}

fn used_in(entry: &Value) -> Vec<Value> {
    let blocks = entry["message"]["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().map(|block| block["attachment_id"].clone()).filter(|id| !id.is_null()).collect()
}

impl Model {
    /// What the store must have answered. `got` is what it did answer; the store is asked for the times it chose.
    pub fn answer(&mut self, function: &str, request: &Value, got: &Value, store: &dyn Door) -> Answer {
        let id = request["session_id"].as_str().unwrap_or_default().to_owned();
        match function {
            "create" => Ok(self.create(request, &got["session_id"], got)),
            "ensure" => Ok(match self.sessions.get(&id) {
                Some(session) => json!({"session_id": id, "meta": session.meta, "created": false}),
                None => {
                    let mut answer = self.create(request, &json!(id), got);
                    answer["created"] = json!(true);
                    answer
                }
            }),
            "delete" => Ok(json!({"deleted": self.delete(&id)})),
            "fork" => self.fork(&id, request, got, store),
            _ => {
                let session = self.sessions.get_mut(&id).ok_or("session/not_found")?;
                let now = store.meta(&json!(id))["updated_at"].clone();
                let mut told = Vec::new();
                let answer = session.change(function, request, got, &now, &mut told);
                let life = session.life;
                self.events.extend(told.into_iter().map(|(event_type, mut payload)| {
                    payload["session_id"] = json!(id);
                    Told { event_type, payload, life }
                }));
                answer
            }
        }
    }

    fn begin(&mut self, id: &Value, meta: Value) -> &mut Session {
        self.births += 1;
        let mut payload = json!({"session_id": id, "title": meta["title"], "description": meta["description"],
            "status": "idle", "created_at": meta["created_at"]});
        if let Some(source) = meta.get("forked_from") {
            payload["forked_from"] = source.clone();
        }
        self.events.push(Told { event_type: "session::created", payload, life: self.births });
        let session =
            Session { meta, entries: Vec::new(), leaf: None, attachments: Vec::new(), life: self.births };
        self.sessions.entry(id.as_str().expect("an id").to_owned()).or_insert(session)
    }

    fn create(&mut self, request: &Value, id: &Value, got: &Value) -> Value {
        let text = |field: &str| json!(request[field].as_str().unwrap_or_default());
        let now = &got["meta"]["created_at"];
        let mut meta = json!({"session_id": id, "title": text("title"), "description": text("description"),
            "status": "idle", "message_count": 0, "created_at": now, "updated_at": now});
        if let Some(metadata) = request.get("metadata") {
            meta["metadata"] = metadata.clone();
        }
        self.begin(id, meta.clone());
        json!({"session_id": id, "meta": meta})
    }

    fn delete(&mut self, id: &str) -> bool {
        let Some(session) = self.sessions.remove(id) else { return false };
        // When is known to the store alone.
        let payload = json!({"session_id": id, "timestamp": null});
        self.events.push(Told { event_type: "session::deleted", payload, life: session.life });
        true
    }

    fn fork(&mut self, id: &str, request: &Value, got: &Value, store: &dyn Door) -> Answer {
        let source = self.sessions.get(id).ok_or("session/not_found")?.clone();
        let at = source.find(&request["entry_id"]).ok_or("session/entry_not_found")?;
        let fork_id = &got["session_id"];
        let tree = store.ok("tree", json!({"session_id": fork_id}));
        let fresh: Vec<Value> = super::ids(&tree["entries"]);
        let chain = source.chain(source.entries[at]["id"].as_str().expect("an id"));
        assert_eq!(fresh.len(), chain.len(), "a fork has the entries of the path");
        let mut meta = source.meta.clone();
        for (field, value) in [
            ("session_id", fork_id.clone()),
            ("status", json!("idle")),
            ("forked_from", json!(id)),
            ("message_count", json!(chain.iter().filter(|entry| entry["kind"] == "message").count())),
            ("created_at", got["meta"]["created_at"].clone()),
            ("updated_at", got["meta"]["created_at"].clone()),
        ] {
            meta[field] = value;
        }
        if let Some(title) = request.get("title") {
            meta["title"] = title.clone();
        }
        meta.as_object_mut().expect("an object").remove("status_reason");
        let mut entries: Vec<Value> = chain.into_iter().cloned().collect();
        let mut parent = Value::Null;
        for (entry, fresh) in entries.iter_mut().zip(&fresh) {
            assert!(source.find(fresh).is_none(), "a fork's ids are fresh");
            entry["id"] = fresh.clone();
            entry["parent_id"] = std::mem::replace(&mut parent, fresh.clone());
            entry["revision"] = json!(0);
        }
        let used: Vec<Value> = entries.iter().flat_map(used_in).collect();
        let mut attachments = source.attachments;
        attachments.retain(|(meta, _)| used.contains(&meta["attachment_id"]));
        for (attachment, _) in &mut attachments {
            attachment["session_id"] = fork_id.clone();
        }
        let fork = self.begin(fork_id, meta.clone());
        fork.entries = entries;
        fork.leaf = fresh.last().and_then(Value::as_str).map(str::to_owned);
        fork.attachments = attachments;
        Ok(json!({"session_id": fork_id, "meta": meta}))
    }
}

type Events = Vec<(&'static str, Value)>;

impl Session {
    fn change(&mut self, function: &str, request: &Value, got: &Value, now: &Value, told: &mut Events) -> Answer {
        match function {
            "set-meta" => Ok(self.set_meta(request, now, told)),
            "set-status" => Ok(self.set_status(request, now, told)),
            "append" => self.append(request, got, now, told),
            "append-many" => self.append_many(request, got, now, told),
            "update-message" | "extend-message" => self.update(request, now, told),
            "set-active-leaf" => {
                self.find(&request["entry_id"]).ok_or("session/entry_not_found")?;
                self.leaf = request["entry_id"].as_str().map(str::to_owned);
                Ok(json!({"active_leaf": request["entry_id"]}))
            }
            "put-attachment" => {
                self.attachments
                    .push((got["attachment"].clone(), request["data"].as_str().expect("data").to_owned()));
                Ok(got.clone())
            }
            "delete-attachment" => {
                let id = &request["attachment_id"];
                let Some(at) = self.attachments.iter().position(|(meta, _)| meta["attachment_id"] == *id) else {
                    return Ok(json!({"deleted": false}));
                };
                if self.uses(id) {
                    return Err("session/attachment_in_use");
                }
                self.attachments.remove(at);
                Ok(json!({"deleted": true}))
            }
            other => panic!("the model does not know {other}"),
        }
    }

    fn set_meta(&mut self, request: &Value, now: &Value, told: &mut Events) -> Value {
        let fields = ["title", "description", "metadata"];
        let supplied: Vec<&str> = fields.into_iter().filter(|field| request.get(field).is_some()).collect();
        if supplied.is_empty() {
            return json!({"meta": self.meta});
        }
        for field in supplied {
            self.meta[field] = request[field].clone();
        }
        self.meta["updated_at"] = now.clone();
        let mut payload = json!({"timestamp": now});
        for field in fields.into_iter().filter(|field| self.meta.get(field).is_some()) {
            payload[field] = self.meta[field].clone();
        }
        told.push(("session::meta-updated", payload));
        json!({"meta": self.meta})
    }

    fn set_status(&mut self, request: &Value, now: &Value, told: &mut Events) -> Value {
        let (status, previous) = (request["status"].clone(), self.meta["status"].clone());
        if status != previous {
            self.meta["status"] = status.clone();
            self.meta["updated_at"] = now.clone();
            self.meta.as_object_mut().expect("an object").remove("status_reason");
            let mut payload = json!({"status": status, "previous_status": previous, "timestamp": now});
            if let Some(reason) = request.get("reason").filter(|_| status == "error") {
                self.meta["status_reason"] = reason.clone();
                payload["status_reason"] = reason.clone();
            }
            told.push(("session::status-changed", payload));
        }
        json!({"status": status, "previous_status": previous})
    }

    fn parent(&self, request: &Value) -> Answer {
        match request.get("parent_id") {
            None => Ok(self.leaf()),
            Some(parent) => self.find(parent).map(|_| parent.clone()).ok_or("session/parent_not_found"),
        }
    }

    fn append(&mut self, request: &Value, got: &Value, now: &Value, told: &mut Events) -> Answer {
        if let Some(at) = request.get("entry_id").and_then(|id| self.find(id)) {
            let entry = &self.entries[at];
            return Ok(
                json!({"entry_id": entry["id"], "parent_id": entry["parent_id"], "timestamp": entry["timestamp"]}),
            );
        }
        if request.get("expected_leaf").is_some_and(|leaf| *leaf != self.leaf()) {
            return Err("session/conflict");
        }
        let parent = self.parent(request)?;
        let id = request.get("entry_id").unwrap_or(&got["entry_id"]);
        self.put(id, &parent, request, now, told);
        Ok(json!({"entry_id": id, "parent_id": parent, "timestamp": now}))
    }

    fn append_many(&mut self, request: &Value, got: &Value, now: &Value, told: &mut Events) -> Answer {
        let messages = request["messages"].as_array().expect("messages");
        if messages.is_empty() {
            return Err("session/empty_batch");
        }
        let mut parent = self.parent(request)?;
        let ids = got["entry_ids"].as_array().cloned().unwrap_or_default();
        assert_eq!(ids.len(), messages.len());
        for (id, message) in ids.iter().zip(messages) {
            let mut one = json!({"message": message});
            if let Some(origin) = request.get("origin") {
                one["origin"] = origin.clone();
            }
            self.put(id, &parent, &one, now, told);
            parent = id.clone();
        }
        Ok(json!({"entry_ids": ids, "last_entry_id": parent}))
    }

    fn put(&mut self, id: &Value, parent: &Value, body: &Value, now: &Value, told: &mut Events) {
        assert!(self.find(id).is_none(), "a minted id is fresh");
        let mut entry = json!({"kind": "message", "id": id, "parent_id": parent, "timestamp": now, "revision": 0});
        let mut payload = json!({"entry_id": id, "parent_id": parent, "timestamp": now});
        for field in ["message", "custom", "origin"] {
            if let Some(value) = body.get(field) {
                payload[field] = value.clone();
                entry[field] = value.clone();
            }
        }
        if let Some(custom) = body.get("custom") {
            entry.as_object_mut().expect("an object").remove("custom");
            entry["kind"] = json!("custom");
            entry["custom_type"] = custom["custom_type"].clone();
            entry["data"] = custom["data"].clone();
        } else {
            self.meta["message_count"] = json!(self.meta["message_count"].as_u64().expect("a count") + 1);
        }
        self.entries.push(entry);
        self.leaf = id.as_str().map(str::to_owned);
        self.meta["updated_at"] = now.clone();
        told.push(("session::message-added", payload));
    }

    fn update(&mut self, request: &Value, now: &Value, told: &mut Events) -> Answer {
        let at = self.find(&request["entry_id"]).ok_or("session/entry_not_found")?;
        let entry = &mut self.entries[at];
        if entry["kind"] == "custom" {
            return Err("session/invalid_entry_kind");
        }
        if request.get("expected_revision").is_some_and(|expected| *expected != entry["revision"]) {
            return Ok(json!({"updated": false, "revision": entry["revision"]}));
        }
        match request.get("content") {
            Some(content) => entry["message"]["content"] = content.clone(),
            None => extend(&mut entry["message"]["content"], request)?,
        }
        entry["revision"] = json!(entry["revision"].as_u64().expect("a revision") + 1);
        let mut payload = json!({"entry_id": entry["id"], "message": entry["message"], "revision": entry["revision"], "timestamp": now});
        if let Some(origin) = request.get("origin") {
            payload["origin"] = origin.clone();
        }
        told.push(("session::message-updated", payload));
        self.meta["updated_at"] = now.clone();
        Ok(json!({"updated": true, "revision": entry["revision"]}))
    }
}

fn extend(content: &mut Value, request: &Value) -> Result<(), &'static str> {
    let added = request["text"].as_str().expect("text");
    let blocks = content.as_array_mut().expect("content");
    let block = match request.get("block").and_then(Value::as_u64) {
        Some(block) => {
            let found = blocks.get_mut(usize::try_from(block).expect("an index"));
            found
                .filter(|block| block["type"] == "text" || block["type"] == "thinking")
                .ok_or("session/invalid_request")?
        }
        None if !blocks.iter().any(|block| block["type"] == "text") => {
            blocks.push(json!({"type": "text", "text": ""}));
            blocks.last_mut().expect("a block")
        }
        None => blocks.iter_mut().rfind(|block| block["type"] == "text").expect("a text block"),
    };
    block["text"] = json!(format!("{}{added}", block["text"].as_str().expect("a text")));
    Ok(())
}
