//! Taking secrets out of what leaves: keys of well-known providers, tokens, private keys, passwords in addresses.
//!
//! A [`Redactor`] is given texts, JSON and whole entries on their way out, and gives the same back with every secret replaced by
//! `[redacted:KIND]`. What it took out is listed by kind, place and number, never by content. It knows secrets by their shape
//! (`shapes.rs`) and by the names of the fields that hold them, so it can miss one that looks like nothing. Every export that
//! leaves secrets out uses this one.

mod json;
mod shapes;

use std::borrow::Cow;

use banyan_model::{CustomEntry, Error, Json, MessageEntry, Object, Origin, Raw, SessionEntry, SessionMeta};
use serde::{Deserialize, Serialize};

use shapes::{SHAPES, Shape};

/// Replaces secrets, and counts what it replaced.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    findings: Vec<Finding>,
}

/// Secrets of one kind that were taken out of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of secret, for example `github-token`.
    pub kind: String,
    /// Where it was, for example `entry e_1`.
    #[serde(rename = "where")]
    pub place: String,
    /// How often.
    pub count: u64,
}

/// What stands in the place of a secret of this kind.
fn placeholder(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

impl Redactor {
    /// A redactor that has found nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was taken out so far, in the order in which it was met.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// A text without secrets.
    pub fn text<'t>(&mut self, text: &'t str, place: &str) -> Cow<'t, str> {
        if json::is_binary(text) {
            return Cow::Borrowed(text);
        }
        let mut clean = Cow::Borrowed(text);
        let met: Vec<&Shape> = SHAPES.matching(text).collect();
        for shape in met {
            let (replaced, count) = shape.replace(&clean);
            if count > 0 {
                clean = Cow::Owned(replaced);
                self.note(shape.kind, place, count);
            }
        }
        clean
    }

    /// A JSON value without secrets: none in its strings, and none under the names that fields with secrets have.
    pub fn json(&mut self, value: &Json, place: &str) -> Json {
        match json::redacted(value.get(), place, self) {
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(text) => Json::from_text(&text).unwrap_or_default(),
        }
    }

    /// An object without secrets.
    pub fn object(&mut self, object: Object, place: &str) -> Object {
        let Ok(text) = serde_json::to_string(&object) else { return Object::new() };
        match json::redacted(&text, place, self) {
            Cow::Borrowed(_) => object,
            Cow::Owned(text) => serde_json::from_str(&text).unwrap_or_default(),
        }
    }

    fn origin(&mut self, origin: Origin, place: &str) -> Origin {
        match json::redacted(origin.text(), place, self) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(Origin::vouched(&text).unwrap_or_default()),
        }
        .unwrap_or(origin)
    }

    /// An entry without secrets. Its ids stay as they are.
    pub fn entry(&mut self, entry: SessionEntry) -> Result<SessionEntry, Error> {
        let place = format!("entry {}", entry.id());
        Ok(match entry {
            SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message }) => {
                let origin = origin.map(|origin| self.origin(origin, &place));
                let message = match json::redacted(message.get(), &place, self) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(text) => Some(Raw::from_text(text)?),
                }
                .unwrap_or(message);
                SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message })
            }
            SessionEntry::Custom(CustomEntry {
                id,
                parent_id,
                timestamp,
                revision,
                origin,
                custom_type,
                data,
            }) => {
                let origin = origin.map(|origin| self.origin(origin, &place));
                let data = self.json(&data, &place);
                SessionEntry::Custom(CustomEntry { id, parent_id, timestamp, revision, origin, custom_type, data })
            }
        })
    }

    /// What a session is known by, without secrets.
    pub fn meta(&mut self, meta: SessionMeta) -> SessionMeta {
        let place = "session";
        SessionMeta {
            title: self.text(&meta.title, place).into_owned(),
            description: self.text(&meta.description, place).into_owned(),
            status_reason: meta.status_reason.map(|reason| self.text(&reason, place).into_owned()),
            metadata: meta.metadata.map(|metadata| self.object(metadata, place)),
            ..meta
        }
    }

    fn note(&mut self, kind: &str, place: &str, count: u64) {
        let here = self.findings.iter_mut().rev().take_while(|finding| finding.place == place);
        match here.into_iter().find(|finding| finding.kind == kind) {
            Some(finding) => finding.count += count,
            None => self.findings.push(Finding { kind: kind.to_owned(), place: place.to_owned(), count }),
        }
    }
}
