//! What is known of a thread as a whole, told whenever it has changed.

use banyan_model::{ContentBlock, Json, Object, SessionId, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::{millis, title_of};
use crate::native::text_at;
use crate::{Head, OWN, Own, Problem, Sink, session_id};

/// A session's head, and what of it was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Telling {
    pub(super) head: Head,
    /// Whether the title is a name that somebody gave.
    pub(super) named: bool,
    #[serde(skip)]
    told: Option<Head>,
}

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
        Telling { head, named: title.is_some(), told: None }
    }
}

impl Telling {
    /// Goes on from what an earlier reading knew.
    pub(super) fn resume(&mut self, before: &Self) {
        if !self.named {
            self.head.title.clone_from(&before.head.title);
        }
        if let Some(model) = before.head.metadata.get("model") {
            self.head.metadata.insert("model".to_owned(), model.clone());
        }
        self.head.updated_at = before.head.updated_at;
    }

    /// Tells the head if it has changed.
    pub(super) fn tell(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.told.as_ref() != Some(&self.head) {
            sink.head(&self.head)?;
            self.told = Some(self.head.clone());
        }
        Ok(())
    }

    pub(super) fn model(&mut self, model: &str) {
        if self.head.metadata.get("model").and_then(Value::as_str) != Some(model) {
            self.head.metadata.insert("model".to_owned(), model.into());
        }
    }

    pub(super) fn provider(&self) -> String {
        text_of(&self.head.metadata, "provider")
    }

    /// The human said something: a thread without a name is called after the first of it.
    pub(super) fn said(&mut self, content: &[ContentBlock], sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.named || !self.head.title.is_empty() {
            return Ok(());
        }
        let text = content.iter().find_map(|block| match block {
            ContentBlock::Text(block) => Some(title_of(&block.text)).filter(|title| !title.starts_with('<')),
            _ => None,
        });
        self.head.title = text.unwrap_or_default();
        self.tell(sink)
    }
}

fn text_of(object: &Object, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The mark of a source, as far as it can be read.
pub(super) fn parse<T: serde::de::DeserializeOwned>(mark: Option<&crate::Mark>) -> Option<T> {
    mark.map(|mark| &mark.0).filter(|mark| !Json::is_null(mark)).and_then(|mark| mark.parse().ok())
}
