//! What a call does to a store, said a second time and as simply as can be.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::model::{Attachment, Body, Entry, Model, NEW_ATTACHMENT, NEW_SESSION, Session, new_entry};

/// A call that is valid for the model that it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's id.
    pub function: &'static str,
    /// The request.
    pub request: Value,
}

impl Call {
    /// A call.
    pub fn new(function: &'static str, request: Value) -> Self {
        Self { function, request }
    }

    fn text(&self, field: &str) -> Option<String> {
        self.request[field].as_str().map(str::to_owned)
    }

    fn session(&self) -> String {
        self.text("session_id").unwrap_or_else(|| panic!("{self:?} names no session"))
    }

    /// The store after this call, with placeholders for what the store will name.
    pub fn predict(&self, model: &Model) -> Model {
        let mut model = model.clone();
        match self.function {
            "session::create" => self.begin(&mut model, NEW_SESSION.to_owned()),
            "session::ensure" if model.sessions.contains_key(&self.session()) => {}
            "session::ensure" => self.begin(&mut model, self.session()),
            "session::delete" => {
                model.sessions.remove(&self.session());
            }
            "session::fork" => self.fork(&mut model),
            "session::tree" => {}
            _ => self.change(model.session(&self.session())),
        }
        model
    }

    fn begin(&self, model: &mut Model, id: String) {
        let session = Session {
            title: self.text("title").unwrap_or_default(),
            description: self.text("description").unwrap_or_default(),
            status: "idle".to_owned(),
            metadata: self.request.get("metadata").cloned(),
            ..Session::default()
        };
        model.sessions.insert(id, session);
    }

    fn fork(&self, model: &mut Model) {
        let source = model.session(&self.session()).clone();
        let path = source.path(&self.text("entry_id").unwrap());
        let used: Vec<String> = path.iter().flat_map(|entry| entry.body.attachments()).collect();
        let entries = path.iter().enumerate().map(|(at, entry)| Entry {
            id: new_entry(at),
            parent: at.checked_sub(1).map(new_entry),
            revision: 0,
            ..(*entry).clone()
        });
        let fork = Session {
            title: self.text("title").unwrap_or_else(|| source.title.clone()),
            status: "idle".to_owned(),
            reason: None,
            forked_from: Some(self.session()),
            leaf: path.len().checked_sub(1).map(new_entry),
            entries: entries.collect(),
            attachments: source.attachments.clone().into_iter().filter(|(id, _)| used.contains(id)).collect(),
            description: source.description.clone(),
            metadata: source.metadata.clone(),
        };
        model.sessions.insert(NEW_SESSION.to_owned(), fork);
    }

    fn change(&self, session: &mut Session) {
        match self.function {
            "session::set-meta" => {
                session.title = self.text("title").unwrap_or_else(|| session.title.clone());
                session.metadata = self.request.get("metadata").cloned().or_else(|| session.metadata.clone());
            }
            "session::set-status" => {
                let status = self.text("status").unwrap();
                if status != session.status {
                    session.reason = self.text("reason").filter(|_| status == "error");
                    session.status = status;
                }
            }
            "session::append" => self.append(session),
            "session::append-many" => {
                let mut parent = self.text("parent_id").or_else(|| session.leaf.clone());
                for (at, message) in self.request["messages"].as_array().unwrap().iter().enumerate() {
                    let body = Body::Message(message.clone());
                    session.entries.push(Entry { id: new_entry(at), parent, revision: 0, body, origin: None });
                    parent = Some(new_entry(at));
                }
                session.leaf = parent;
            }
            "session::update-message" => self.edit(session, |content| *content = self.request["content"].clone()),
            "session::extend-message" => {
                self.edit(session, |content| extend(content, &self.text("text").unwrap()))
            }
            "session::store::put-entry" => {
                let put = &self.request["entry"];
                let entry = session.entries.iter_mut().find(|entry| put["id"] == entry.id.as_str()).unwrap();
                entry.revision = put["revision"].as_u64().unwrap();
                entry.body = Body::Message(put["message"].clone());
            }
            "session::set-active-leaf" | "session::store::set-active-leaf" => session.leaf = self.text("entry_id"),
            "session::put-attachment" => {
                let [name, mime, data] = ["name", "mime", "data"].map(|field| self.text(field).unwrap());
                session.attachments.insert(NEW_ATTACHMENT.to_owned(), Attachment { name, mime, data });
            }
            "session::delete-attachment" => {
                session.attachments.remove(&self.text("attachment_id").unwrap());
            }
            other => panic!("the model knows no {other}"),
        }
    }

    fn append(&self, session: &mut Session) {
        let id = self.text("entry_id").unwrap_or_else(|| new_entry(0));
        if session.entries.iter().any(|entry| entry.id == id) {
            return;
        }
        let parent = self.text("parent_id").or_else(|| session.leaf.clone());
        let body = match (self.request.get("message"), self.request.get("custom")) {
            (Some(message), _) => Body::Message(message.clone()),
            (None, custom) => Body::Custom(custom.unwrap().clone()),
        };
        let origin = self.request.get("origin").cloned();
        session.entries.push(Entry { id: id.clone(), parent, revision: 0, body, origin });
        session.leaf = Some(id);
    }

    fn edit(&self, session: &mut Session, edit: impl FnOnce(&mut Value)) {
        let id = self.text("entry_id").unwrap();
        let entry = session.entries.iter_mut().find(|entry| entry.id == id).unwrap();
        entry.revision += 1;
        if let Body::Message(message) = &mut entry.body {
            edit(&mut message["content"]);
        }
    }

    /// Puts the names that an answer tells in the place of placeholders, and checks what else it says.
    pub fn learn(&self, predicted: Model, answer: &Value) -> Model {
        let mut model = predicted;
        let told = |field: &str| answer[field].as_str().unwrap_or_else(|| panic!("{self:?}: {answer}")).to_owned();
        match self.function {
            "session::create" | "session::fork" => {
                let session = model.sessions.remove(NEW_SESSION).unwrap();
                model.sessions.insert(told("session_id"), session);
            }
            "session::delete" | "session::delete-attachment" => {
                assert_eq!(answer, &json!({"deleted": true}), "{self:?}")
            }
            "session::append" => {
                let session = model.session(&self.session());
                session.rename_entries(&HashMap::from([(new_entry(0), told("entry_id"))]));
                assert_eq!(answer["parent_id"].as_str(), session.entry(&told("entry_id")).parent.as_deref());
            }
            "session::append-many" => {
                let ids = texts(&answer["entry_ids"], |id| id).enumerate();
                let names = ids.map(|(at, id)| (new_entry(at), id)).collect();
                model.session(&self.session()).rename_entries(&names);
            }
            "session::tree" => {
                let session = model.session(&self.session());
                assert_eq!(
                    session.entries.len(),
                    answer["entries"].as_array().unwrap().len(),
                    "{self:?}: {answer}"
                );
                let ids = texts(&answer["entries"], |entry| &entry["entry_id"]);
                let names = session.entries.iter().map(|entry| entry.id.clone()).zip(ids);
                let names = names.filter(|(old, _)| old.starts_with('?')).collect();
                session.rename_entries(&names);
            }
            "session::update-message" | "session::extend-message" => {
                let entry = model.session(&self.session()).entry(&self.text("entry_id").unwrap()).clone();
                assert_eq!(answer, &json!({"updated": true, "revision": entry.revision}), "{self:?}");
            }
            "session::put-attachment" => {
                let id = answer["attachment"]["attachment_id"].as_str().unwrap().to_owned();
                let session = model.session(&self.session());
                let attachment = session.attachments.remove(NEW_ATTACHMENT).unwrap();
                session.attachments.insert(id, attachment);
            }
            _ => {}
        }
        model
    }

    /// The call that learns the ids of a fork's entries, after a fork.
    pub fn follow_up(&self, answer: &Value) -> Option<Self> {
        let look = || Self::new("session::tree", json!({"session_id": answer["session_id"]}));
        (self.function == "session::fork").then(look)
    }
}

fn texts<'a>(listed: &'a Value, text: impl Fn(&'a Value) -> &'a Value) -> impl Iterator<Item = String> {
    listed.as_array().unwrap().iter().map(move |item| text(item).as_str().unwrap().to_owned())
}

fn extend(content: &mut Value, text: &str) {
    let blocks = content.as_array_mut().unwrap();
    match blocks.iter_mut().rev().find(|block| block["type"] == "text") {
        Some(block) => block["text"] = json!(format!("{}{text}", block["text"].as_str().unwrap())),
        None => blocks.push(json!({"type": "text", "text": text})),
    }
}
