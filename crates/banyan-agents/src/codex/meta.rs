//! What the first line of a rollout says of the thread.

use banyan_model::{Object, SessionId, SessionStatus};
use serde_json::Value;

use crate::build::millis;
use crate::native::text_at;
use crate::telling::Telling;
use crate::{Head, OWN, Own, session_id};

/// What the first line of a rollout says.
#[derive(Clone, Debug, Default)]
pub(super) struct Meta(Value);

impl Meta {
    pub(super) fn of(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let is_meta = text_at(&value, "type") == "session_meta" || value.get("type").is_none();
        Self(if is_meta { value } else { Value::Null })
    }

    fn payload(&self) -> &Value {
        self.0.get("payload").unwrap_or(&self.0)
    }

    fn text(&self, key: &str) -> Option<&str> {
        Some(text_at(self.payload(), key)).filter(|text| !text.is_empty())
    }

    /// The prefix that it goes on from: whose, and from which ordinal and byte on not any more.
    pub(super) fn base(&self) -> Option<(String, u64, u64)> {
        let base = self.payload().get("history_base")?;
        let number = |key: &str| base.get(key).and_then(Value::as_u64).unwrap_or(u64::MAX);
        Some((text_at(base, "thread_id").to_owned(), number("end_ordinal_exclusive"), number("end_byte_offset")))
    }

    /// The head of the thread. `name` is what its file is called after.
    pub(super) fn telling(&self, name: &str, source: &str, archived: bool, title: Option<String>) -> Telling {
        let native_id = self.text("id").unwrap_or(name).to_owned();
        let own = self.0.get(OWN).and_then(|own| serde_json::from_value::<Own>(own.clone()).ok());
        let is_own = own.is_some();
        let created = self.text("timestamp").or_else(|| Some(text_at(&self.0, "timestamp"))).and_then(millis);
        let mut metadata = Object::new();
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.into());
            }
        };
        put("agent", Some("codex"));
        put("native_id", Some(&native_id));
        put("source", Some(source));
        put("cwd", self.text("cwd"));
        put("provider", self.text("model_provider"));
        put("version", self.text("cli_version"));
        let git = self.payload().get("git").unwrap_or(&Value::Null);
        put("git_branch", git.get("branch").and_then(Value::as_str));
        put("git_commit", git.get("commit_hash").and_then(Value::as_str));
        let spawn = self.payload().get("source").and_then(|source| source.get("subagent")?.get("thread_spawn"));
        let parent = self.text("parent_thread_id").or_else(|| spawn?.get("parent_thread_id")?.as_str());
        put("parent_session_id", parent.map(|parent| session_id("codex", parent)).as_ref().map(SessionId::as_str));
        if archived {
            metadata.insert("archived".to_owned(), true.into());
        }
        let head = Head {
            session: own.map_or_else(|| session_id("codex", &native_id), |own| own.session),
            title: title.clone().unwrap_or_default(),
            created_at: created.unwrap_or_default(),
            updated_at: created.unwrap_or_default(),
            status: SessionStatus::Idle,
            metadata,
            forked_from: self.text("forked_from_id").map(|from| session_id("codex", from)),
        };
        Telling::new(head, title.is_some(), is_own)
    }
}
