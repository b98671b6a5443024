//! What OpenCode knows of a session, in the form of its export.

use std::path::Path;

use banyan_model::{Object, SessionId, SessionStatus};
use serde_json::Value;

use super::ID;
use crate::own::OwnIds;
use crate::{Head, OWN, session_id};

/// A session's own record.
pub(super) struct Session {
    pub(super) info: Object,
    pub(super) own: Option<OwnIds>,
}

/// What is known of a session only by looking at others.
#[derive(Default)]
pub(super) struct Kin {
    pub(super) parent_call: Option<String>,
    pub(super) forked_from: Option<SessionId>,
}

impl Session {
    pub(super) fn new(mut info: Object) -> Self {
        let metadata = info.get_mut("metadata").and_then(Value::as_object_mut);
        let own = metadata.and_then(|metadata| metadata.shift_remove(OWN));
        let own = own.and_then(|own| serde_json::from_value(own).ok());
        if info.get("metadata").and_then(Value::as_object).is_some_and(Object::is_empty) {
            info.shift_remove("metadata");
        }
        Self { info, own }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.info.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn time(&self, key: &str) -> Option<i64> {
        self.info.get("time")?.get(key)?.as_i64()
    }

    /// The message from which on everything was taken back, but can still be brought back.
    pub(super) fn reverted_from(&self) -> Option<&str> {
        self.info.get("revert")?.get("messageID")?.as_str()
    }

    pub(super) fn head(&self, source: &Path, kin: Kin) -> Head {
        let mut metadata = Object::new();
        let mut know = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.into());
            }
        };
        let model = |key: &str| self.info.get("model").and_then(|model| model.get(key)?.as_str());
        know("agent", Some(ID));
        know("native_id", self.text("id"));
        know("cwd", self.text("directory"));
        know("model", model("id"));
        know("provider", model("providerID"));
        know("version", self.text("version"));
        know("source", source.to_str());
        if let Some(parent) = self.text("parentID") {
            know("parent_session_id", Some(session_id(ID, parent).as_str()));
            know("parent_call_id", kin.parent_call.as_deref());
        }
        if self.time("archived").is_some() {
            metadata.insert("archived".to_owned(), true.into());
        }
        let created_at = self.time("created").unwrap_or_default();
        let native = self.text("id").unwrap_or_default();
        let title = self.text("title").filter(|title| !is_made_up(title)).unwrap_or_default();
        Head {
            session: self.own.as_ref().map_or_else(|| session_id(ID, native), |own| own.session.clone()),
            title: title.to_owned(),
            created_at,
            updated_at: self.time("updated").unwrap_or(created_at),
            status: SessionStatus::Idle,
            metadata,
            forked_from: kin.forked_from,
        }
    }
}

/// Whether a title is the one that every new session has.
fn is_made_up(title: &str) -> bool {
    ["New session - ", "Child session - "]
        .iter()
        .any(|begin| title.strip_prefix(begin).is_some_and(|time| crate::build::millis(time).is_some()))
}
