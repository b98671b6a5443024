//! What Cline knows of a session: its manifest, and the head of its file of messages.

use std::path::Path;

use banyan_model::{Object, SessionId, SessionStatus};
use serde_json::Value;

use super::{ID, MESSAGES, content};
use crate::build::millis;
use crate::{Head, OWN, Own, session_id};

/// What the two files say besides the messages.
pub(super) struct Session {
    pub(super) manifest: Object,
    pub(super) file: Object,
    /// The session, if we wrote it.
    pub(super) own: Option<Own>,
}

impl Session {
    pub(super) fn new(mut manifest: Object, file: Object) -> Self {
        let metadata = manifest.get_mut("metadata").and_then(Value::as_object_mut);
        let own = metadata.and_then(|metadata| metadata.shift_remove(OWN));
        Self { manifest, file, own: own.and_then(|own| serde_json::from_value(own).ok()) }
    }

    fn of<'v>(&'v self, place: &str) -> Option<&'v str> {
        let (file, place) = place.split_once(':')?;
        let object = if file == "manifest" { &self.manifest } else { &self.file };
        let mut keys = place.split('.');
        let first = object.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))?.as_str().filter(|text| !text.is_empty())
    }

    /// Cline's own id for it.
    pub(super) fn native(&self, source: &Path) -> String {
        let name = source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = self.of("file:sessionId").or_else(|| self.of("manifest:session_id"));
        id.unwrap_or_else(|| name.strip_suffix(MESSAGES).unwrap_or(name)).to_owned()
    }

    pub(super) fn parent(&self) -> Option<&str> {
        self.of("file:origin.parentThreadId")
    }

    pub(super) fn head(&self, source: &Path, parent_call: Option<&str>) -> Head {
        let native = self.native(source);
        let mut metadata = Object::new();
        let mut know = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.into());
            }
        };
        know("agent", Some(ID));
        know("native_id", Some(&native));
        know("cwd", self.of("manifest:cwd"));
        know("model", self.of("manifest:model"));
        know("provider", self.of("manifest:provider"));
        know(
            "version",
            self.of("file:origin.version").or_else(|| self.of("manifest:metadata.sessionHistoryOrigin.version")),
        );
        know("git_branch", self.of("manifest:metadata.git.branch"));
        know("git_commit", self.of("manifest:metadata.checkpoint.latest.ref"));
        know("source", source.to_str());
        let parent: Option<SessionId> = self.parent().map(|parent| session_id(ID, parent));
        know("parent_session_id", parent.as_ref().map(SessionId::as_str));
        know("parent_call_id", parent_call);
        let title = self.of("manifest:metadata.title").unwrap_or_default();
        let title = content::typed(title).map_or(title, |(_, title, _)| title);
        let updated_at = self.of("file:updated_at").and_then(millis).unwrap_or_default();
        // A sub-agent has no manifest. Its id begins with the time.
        let in_id = native.rsplit("agent_").next().and_then(|id| id.split('_').next()?.parse().ok());
        Head {
            session: self.own.as_ref().map_or_else(|| session_id(ID, &native), |own| own.session.clone()),
            title: title.to_owned(),
            created_at: self.of("manifest:started_at").and_then(millis).or(in_id).unwrap_or(updated_at),
            updated_at,
            status: SessionStatus::Idle,
            metadata,
            forked_from: None,
        }
    }
}
