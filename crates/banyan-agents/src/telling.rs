//! What is known of a session as a whole, told whenever it has changed.

use banyan_model::{ContentBlock, Json, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::build::title_of;
use crate::{Head, Mark, Problem, Sink};

/// A session's head, and what of it was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Telling {
    pub(crate) head: Head,
    /// Whether the title is a name that somebody gave.
    pub(crate) named: bool,
    /// Whether we wrote the file ourselves.
    pub(crate) own: bool,
    #[serde(skip)]
    told: Option<Head>,
}

impl Telling {
    pub(crate) fn new(head: Head, named: bool, own: bool) -> Self {
        Self { head, named, own, told: None }
    }

    /// Goes on from what an earlier reading knew.
    pub(crate) fn resume(&mut self, before: &Self) {
        if !self.named {
            self.head.title.clone_from(&before.head.title);
        }
        if let Some(model) = before.head.metadata.get("model") {
            self.head.metadata.insert("model".to_owned(), model.clone());
        }
        self.head.updated_at = before.head.updated_at;
        if self.head.created_at == 0 {
            self.head.created_at = before.head.created_at;
        }
    }

    /// A record of the session is there, which was written at this time. The first one begins the session.
    pub(crate) fn begin(&mut self, at: Option<i64>, sink: &mut dyn Sink) -> Result<(), Problem> {
        if let (0, Some(at)) = (self.head.created_at, at) {
            self.head.created_at = at;
            self.head.updated_at = self.head.updated_at.max(at);
        }
        if self.told.is_none() { self.tell(sink) } else { Ok(()) }
    }

    /// The end of what there is: tells the head if it has changed. A file without a record is no session.
    pub(crate) fn end(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.told.is_some() { self.tell(sink) } else { Ok(()) }
    }

    /// Tells the head if it has changed.
    pub(crate) fn tell(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.told.as_ref() != Some(&self.head) {
            sink.head(&self.head)?;
            self.told = Some(self.head.clone());
        }
        Ok(())
    }

    pub(crate) fn model(&mut self, model: &str) {
        self.put("model", model);
    }

    /// Something that is known now.
    pub(crate) fn put(&mut self, key: &str, value: &str) {
        if self.head.metadata.get(key).and_then(Value::as_str) != Some(value) {
            self.head.metadata.insert(key.to_owned(), value.into());
        }
    }

    /// Somebody gave it a name.
    pub(crate) fn name(&mut self, title: &str) {
        self.head.title = title.to_owned();
        self.named = true;
    }

    pub(crate) fn provider(&self) -> String {
        text_of(&self.head.metadata, "provider")
    }

    /// The human said something: a thread without a name is called after the first of it.
    pub(crate) fn said(&mut self, content: &[ContentBlock], sink: &mut dyn Sink) -> Result<(), Problem> {
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
pub(crate) fn parse<T: serde::de::DeserializeOwned>(mark: Option<&Mark>) -> Option<T> {
    mark.map(|mark| &mark.0).filter(|mark| !Json::is_null(mark)).and_then(|mark| mark.parse().ok())
}
