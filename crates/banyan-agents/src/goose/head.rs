//! What goose knows of a session, in the form of its export, whichever form it was read from.

use std::path::Path;

use banyan_model::{Object, SessionId, SessionStatus};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::ID;
use crate::own::OwnIds;
use crate::{Head, session_id};

/// The key of the extension data that our own ids stand under. Goose's keys end in a version.
pub(super) const OWN_KEY: &str = "x_banyan.v0";

/// A session's own record.
pub(super) struct Session {
    pub(super) record: Object,
    pub(super) own: Option<OwnIds>,
}

impl Session {
    /// Takes the record in the form of the export.
    pub(super) fn new(mut record: Object) -> Self {
        let own = record.get_mut("extension_data").and_then(Value::as_object_mut);
        let own = own.and_then(|data| data.remove(OWN_KEY)).and_then(|own| serde_json::from_value(own).ok());
        Self { record, own }
    }

    /// A text of the record that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.record.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.record.get("model_config")?.get("model_name")?.as_str()
    }

    /// Goose counts sessions by the day, so the time and the place have to tell machines apart.
    pub(super) fn id(&self) -> SessionId {
        match &self.own {
            Some(own) => own.session.clone(),
            None => global_id(
                self.text("id").unwrap_or_default(),
                self.time("created_at").unwrap_or_default(),
                self.text("working_dir").unwrap_or_default(),
            ),
        }
    }

    pub(super) fn time(&self, key: &str) -> Option<i64> {
        time(self.text(key)?)
    }

    /// What is told of the session.
    pub(super) fn head(&self, source: &Path, parent: Option<(SessionId, Option<String>)>) -> Head {
        let created_at = self.time("created_at").unwrap_or_default();
        let mut metadata = Object::new();
        let mut know = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.into());
            }
        };
        know("agent", Some(ID));
        know("native_id", self.text("id"));
        know("cwd", self.text("working_dir"));
        know("model", self.model());
        know("provider", self.text("provider_name"));
        know("source", source.to_str());
        if let Some((session, call)) = &parent {
            know("parent_session_id", Some(session.as_str()));
            know("parent_call_id", call.as_deref());
        }
        if self.text("archived_at").is_some() {
            metadata.insert("archived".to_owned(), true.into());
        }
        Head {
            session: self.id(),
            title: self.text("name").or_else(|| self.text("description")).unwrap_or_default().to_owned(),
            created_at,
            updated_at: self.time("updated_at").unwrap_or(created_at),
            status: SessionStatus::Idle,
            metadata,
            forked_from: None,
        }
    }
}

/// A session's id among those of all machines.
pub(super) fn global_id(native: &str, created_at: i64, directory: &str) -> SessionId {
    let seed = format!("{} {directory}", created_at.div_euclid(1000));
    let hash = blake3::hash(seed.as_bytes()).to_hex();
    session_id(ID, &format!("{native}_{}", &hash[..8]))
}

/// A time as the database has it (UTC, without saying so) or as the export has it.
pub(super) fn time(text: &str) -> Option<i64> {
    crate::build::millis(text).or_else(|| {
        let time: DateTime = text.parse().ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
    })
}
