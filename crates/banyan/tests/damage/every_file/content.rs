//! What a store says, as a value that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use banyan::Banyan;
use serde_json::{Value, json};

use crate::support::*;

/// What each session says. A session that cannot be read has its refusal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Content {
    sessions: BTreeMap<String, Session>,
}

#[derive(Clone, Debug, PartialEq)]
struct Session {
    meta: Value,
    /// The items of the active path, as they are answered.
    path: Vec<Value>,
    attachments: BTreeMap<String, Value>,
    /// Why it cannot be read, or is not listed.
    refused: Option<String>,
}

/// How one content differs from another.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    None,
    /// These sessions lack something.
    Sessions(BTreeSet<String>),
    /// Something is there that was never written.
    Wrong(String),
}

impl Content {
    /// What the sessions say that are listed, and those that were: one that is not listed any more is missed.
    pub(super) fn of(store: &Banyan, known: &[String]) -> Self {
        let listed = door(store).call("list", json!({"limit": 100}));
        let listed: Vec<String> = match &listed {
            Ok(answer) => {
                let sessions = answer["sessions"].as_array().expect("sessions").iter();
                sessions.map(|meta| meta["session_id"].as_str().expect("an id").to_owned()).collect()
            }
            Err(refusal) => vec![format!("the list is refused: {refusal:?}")],
        };
        let names: BTreeSet<String> = listed.iter().chain(known).cloned().collect();
        let sessions = names.into_iter().filter_map(|name| {
            let mut session = Session::of(store, &name)?;
            if !listed.contains(&name) {
                session.refused.get_or_insert_with(|| "not listed".to_owned());
            }
            Some((name, session))
        });
        Self { sessions: sessions.collect() }
    }

    /// All sessions.
    pub(super) fn names(&self) -> Vec<String> {
        self.sessions.keys().cloned().collect()
    }

    /// The title of a session.
    pub(super) fn title(&self, session: &str) -> String {
        let title = self.sessions.get(session).and_then(|session| session.meta["title"].as_str());
        title.unwrap_or_default().to_owned()
    }

    /// What another one lacks of this one, or has beyond it.
    pub(super) fn difference(&self, other: &Self) -> Difference {
        let mut differing = BTreeSet::new();
        for (name, found) in &other.sessions {
            let Some(written) = self.sessions.get(name) else {
                return Difference::Wrong(format!("session {name}: {found:?}"));
            };
            if let Some(wrong) = written.wrong_in(found) {
                return Difference::Wrong(format!("session {name}: {wrong}"));
            }
            if found != written {
                differing.insert(name.clone());
            }
        }
        differing.extend(self.sessions.keys().filter(|name| !other.sessions.contains_key(*name)).cloned());
        if differing.is_empty() { Difference::None } else { Difference::Sessions(differing) }
    }
}

impl Session {
    fn of(store: &Banyan, name: &str) -> Option<Self> {
        let mut session =
            Self { meta: Value::Null, path: Vec::new(), attachments: BTreeMap::new(), refused: None };
        match door(store).call("get", json!({"session_id": name})) {
            Ok(Value::Null) => return None,
            Ok(got) => session.meta = got["meta"].clone(),
            Err(refusal) => {
                session.refused = Some(refusal.code);
                return Some(session);
            }
        }
        let page = json!({"session_id": name, "include_custom": true, "limit": 500});
        match door(store).call("messages", page) {
            Ok(page) => session.path = page["messages"].as_array().expect("messages").clone(),
            Err(refusal) => session.refused = Some(refusal.code),
        }
        match door(store).call("list-attachments", json!({"session_id": name})) {
            Ok(list) => {
                for attachment in list["attachments"].as_array().expect("attachments") {
                    let id = attachment["attachment_id"].clone();
                    let got = door(store).call("get-attachment", json!({"session_id": name, "attachment_id": id}));
                    session.attachments.insert(id.to_string(), got.unwrap_or(Value::Null));
                }
            }
            Err(refusal) => session.refused = Some(refusal.code),
        }
        Some(session)
    }

    /// Something that was found and never written: an item of the path or an attachment that is not as it was, or metadata of another session.
    fn wrong_in(&self, found: &Self) -> Option<String> {
        let entry = |item: &Value| item["entry_id"].clone();
        for item in &found.path {
            let Some(written) = self.path.iter().find(|written| entry(written) == entry(item)) else {
                return Some(format!("an entry that was never on the path: {item}"));
            };
            if !is_part(item, written) {
                return Some(format!("{item} was {written}"));
            }
        }
        for (id, content) in &found.attachments {
            let written = self.attachments.get(id);
            if !content.is_null() && written != Some(content) {
                return Some(format!("attachment {id}"));
            }
        }
        let title = &found.meta["title"];
        let known = ["", "Title", "Renamed"];
        let titles = title.is_null() || *title == self.meta["title"] || known.iter().any(|known| title == known);
        (!titles).then(|| format!("title {title}"))
    }
}

/// Whether a value is another one, or lacks some of it: strings that cannot be read are null.
fn is_part(found: &Value, written: &Value) -> bool {
    match (found, written) {
        (Value::Null, _) => true,
        (Value::Object(found), Value::Object(written)) => {
            found.iter().all(|(key, value)| written.get(key).is_some_and(|written| is_part(value, written)))
        }
        (Value::Array(found), Value::Array(written)) => {
            found.len() == written.len()
                && found.iter().zip(written).all(|(found, written)| is_part(found, written))
        }
        // An earlier revision was written too.
        (found, written) => {
            found == written || (found.is_number() && written.is_number()) || is_earlier_text(found)
        }
    }
}

/// Texts that entries of the samples had before they were changed.
fn is_earlier_text(found: &Value) -> bool {
    found.as_str().is_some_and(|text| ["first version", "alpha ", "alpha beta ", ""].contains(&text))
}
