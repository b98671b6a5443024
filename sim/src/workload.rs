//! Which call comes next: a little of everything that a store is used for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::model::{Body, Model, Session};
use crate::predict::Call;

/// Calls of one worker, which only touches sessions of its own.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Decides.
    pub dice: Dice,
    worker: String,
    made: u64,
    /// How many bytes most texts have at most.
    pub usual: usize,
    /// How many bytes a few texts have at most; a store keeps long ones as blobs.
    pub long: usize,
    /// Whether things are put as they are, as instances do that store here. No server lets just anyone.
    pub puts: bool,
}

/// Sessions of a worker, above which it makes no more.
const MOST_SESSIONS: usize = 7;

impl Workload {
    /// The workload of a worker, by its name.
    pub fn new(worker: &str, seed: u64) -> Self {
        Self { dice: Dice::new(seed), worker: worker.to_owned(), made: 0, usual: 60, long: 700, puts: false }
    }

    /// The next call, valid for what the store holds.
    pub fn next(&mut self, model: &Model) -> Call {
        self.made += 1;
        // By title and by name, for ids of the store's making are different in each run.
        let mut ids: Vec<&String> = model.sessions.keys().collect();
        ids.sort_by_key(|id| &model.sessions[*id].title);
        let Some(id) = self.dice.pick(&ids).copied().filter(|_| !self.dice.percent(4)) else {
            return self.begin();
        };
        let session = &model.sessions[id];
        let entries = self.some_entry(session);
        let room = model.sessions.len() < MOST_SESSIONS;
        match (self.dice.below(100), entries) {
            (0..6, _) if room => self.begin(),
            (0..9, _) if !room => Call::new("session::delete", json!({"session_id": id})),
            (6..9, _) => Call::new("session::delete", json!({"session_id": id})),
            (9..17, Some((entry, _))) if room => self.fork(id, &entry),
            (17..23, _) => self.status(id),
            (23..26, _) => self.meta(id),
            (26..32, _) => self.put(id),
            (32..35, _) if self.unused_attachment(session).is_some() => {
                let attachment = self.unused_attachment(session).unwrap();
                Call::new("session::delete-attachment", json!({"session_id": id, "attachment_id": attachment}))
            }
            (35..37, Some((entry, _))) if self.puts => {
                Call::new("session::store::set-active-leaf", json!({"session_id": id, "entry_id": entry}))
            }
            (41..45, Some((entry, Body::Message(message)))) if self.puts => {
                self.put_entry(id, session, &entry, message)
            }
            (35..41, Some((entry, _))) => {
                Call::new("session::set-active-leaf", json!({"session_id": id, "entry_id": entry}))
            }
            (41..50, Some((entry, Body::Message(message)))) => self.update(id, &entry, &message),
            (50..70, Some((entry, Body::Message(_)))) => self.extend(id, session, &entry),
            (70..80, parent) => self.append_many(id, parent.map(|(entry, _)| entry)),
            (_, parent) => self.append(id, session, parent.map(|(entry, _)| entry)),
        }
    }

    fn title(&mut self) -> String {
        format!("{} {}", self.worker, self.dice.text(8))
    }

    /// Under an id of the store's making, or under one of a few that come again after they were deleted.
    fn begin(&mut self) -> Call {
        let title = self.title();
        let metadata = json!({"worker": self.worker, "n": self.made});
        let named = match self.dice.below(6) {
            0 => format!("{}-again", self.worker),
            1 => format!("{}/../odd name", self.worker),
            2 => format!("{}-{}", self.worker, "long".repeat(80)),
            _ => {
                return Call::new(
                    "session::create",
                    json!({"title": title, "description": "d", "metadata": metadata}),
                );
            }
        };
        Call::new("session::ensure", json!({"session_id": named, "title": title, "metadata": metadata}))
    }

    fn fork(&mut self, id: &str, entry: &str) -> Call {
        let title = self.title();
        Call::new("session::fork", json!({"session_id": id, "entry_id": entry, "title": title}))
    }

    fn status(&mut self, id: &str) -> Call {
        let status = *self.dice.pick(&["idle", "working", "working", "done", "error"]).unwrap();
        Call::new("session::set-status", json!({"session_id": id, "status": status, "reason": "because"}))
    }

    fn meta(&mut self, id: &str) -> Call {
        let title = self.title();
        Call::new("session::set-meta", json!({"session_id": id, "title": title, "metadata": {"n": self.made}}))
    }

    fn put(&mut self, id: &str) -> Call {
        let text = self.words();
        let name = format!("{}.txt", self.made);
        let data = STANDARD.encode(text);
        Call::new(
            "session::put-attachment",
            json!({"session_id": id, "name": name, "mime": "text/plain", "data": data}),
        )
    }

    /// A message once more, as it is: puts are not told, and what is told must lead to what there is.
    fn put_entry(&self, id: &str, session: &Session, entry: &str, message: Value) -> Call {
        let entry = session.entry(entry);
        let mut put = json!({"kind": "message", "id": entry.id, "parent_id": entry.parent, "timestamp": self.made,
            "revision": entry.revision, "message": message});
        if let Some(origin) = &entry.origin {
            put["origin"] = origin.clone();
        }
        Call::new("session::store::put-entry", json!({"session_id": id, "entry": put}))
    }

    fn unused_attachment<'a>(&self, session: &'a Session) -> Option<&'a String> {
        let used = session.attachments_in_use();
        let unused = session.attachments.iter().filter(|(id, _)| !used.contains(*id));
        unused.min_by_key(|(_, it)| &it.name).map(|(id, _)| id)
    }

    fn some_entry(&mut self, session: &Session) -> Option<(String, Body)> {
        // Mostly near the end, where agents work.
        let recent = session.entries.len().saturating_sub(if self.dice.percent(80) { 3 } else { 1000 });
        self.dice.pick(&session.entries[recent..]).map(|entry| (entry.id.clone(), entry.body.clone()))
    }

    fn words(&mut self) -> String {
        let most = if self.dice.percent(12) { self.long } else { self.usual };
        let len = self.dice.below(most);
        self.dice.text(len)
    }

    fn message(&mut self) -> Value {
        let text = self.words();
        let content = json!([{"type": "text", "text": text}]);
        match self.dice.below(3) {
            0 => json!({"role": "user", "content": content, "timestamp": self.made}),
            1 => {
                json!({"role": "assistant", "content": [{"type": "thinking", "text": text}], "timestamp": self.made,
                "model": "m", "provider": "p", "stop_reason": "end"})
            }
            _ => json!({"role": "assistant", "content": content, "timestamp": self.made,
                "model": "m", "provider": "p", "stop_reason": "end"}),
        }
    }

    fn append(&mut self, id: &str, session: &Session, parent: Option<String>) -> Call {
        let mut request = json!({"session_id": id});
        if self.dice.percent(15) {
            request["custom"] = json!({"custom_type": "note", "data": {"text": self.words(), "n": self.made}});
        } else {
            request["message"] = self.message();
            let first = session.attachments.iter().min_by_key(|(_, it)| &it.name);
            if let Some((attachment, it)) = first.filter(|_| self.dice.percent(40)) {
                let size = STANDARD.decode(&it.data).unwrap().len();
                let block = json!({"type": "file", "attachment_id": attachment, "name": it.name, "mime": it.mime, "size": size});
                request["message"]["content"].as_array_mut().unwrap().push(block);
            }
        }
        if self.dice.percent(30) {
            request["entry_id"] = json!(format!("e-{}-{}", self.worker, self.dice.roll()));
        }
        if self.dice.percent(20) {
            request["origin"] = json!({"by": self.worker, "n": self.made});
        }
        if let Some(parent) = parent.filter(|_| self.dice.percent(20)) {
            request["parent_id"] = json!(parent);
        }
        Call::new("session::append", request)
    }

    fn append_many(&mut self, id: &str, parent: Option<String>) -> Call {
        let messages: Vec<Value> = (0..=self.dice.below(4)).map(|_| self.message()).collect();
        let mut request = json!({"session_id": id, "messages": messages});
        if let Some(parent) = parent.filter(|_| self.dice.percent(30)) {
            request["parent_id"] = json!(parent);
        }
        Call::new("session::append-many", request)
    }

    /// Sometimes other words, sometimes the same and more, as a caller does that streams whole messages.
    fn update(&mut self, id: &str, entry: &str, message: &Value) -> Call {
        let mut content = message["content"].clone();
        let more = self.words();
        match content.as_array_mut().and_then(|blocks| blocks.last_mut()).filter(|block| block["text"].is_string())
        {
            Some(block) if self.dice.percent(50) => {
                block["text"] = json!(format!("{}{more}", block["text"].as_str().unwrap()));
            }
            _ => content = json!([{"type": "text", "text": more}]),
        }
        Call::new("session::update-message", json!({"session_id": id, "entry_id": entry, "content": content}))
    }

    /// Mostly the leaf, so that one message grows for a while.
    fn extend(&mut self, id: &str, session: &Session, entry: &str) -> Call {
        let leaf = session.leaf.as_ref().filter(|leaf| matches!(session.entry(leaf).body, Body::Message(_)));
        let entry = leaf.filter(|_| self.dice.percent(80)).map_or(entry, String::as_str);
        let len = self.dice.below(20);
        let text = self.dice.text(len);
        Call::new("session::extend-message", json!({"session_id": id, "entry_id": entry, "text": text}))
    }
}
