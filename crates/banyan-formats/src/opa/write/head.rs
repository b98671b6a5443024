//! What an archive says besides messages: its manifest, and the fields of its history.

use banyan_model::{EntryId, Object, SessionId, SessionMeta};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::extension::EXTENSION_URI;
use super::super::identity;
use super::super::manifest::{Manifest, is_name, one_line};
use super::super::render::{PromptEntry, PromptNote};
use super::super::{HISTORY, PROMPT, path, time};

/// Attributes that a writer decides on.
const OWN_ATTRIBUTES: [&str; 12] = [
    "Manifest-Version",
    "OPA-Version",
    "Prompt-File",
    "Session-File",
    "Data-Root",
    "Execution-Mode",
    "Title",
    "Description",
    "Created-By",
    "Created-At",
    "Schema-Extensions",
    "Name",
];
/// Fields of a history that a writer decides on.
const OWN_FIELDS: [&str; 7] =
    ["opa_version", "version", "session_id", "created_at", "updated_at", "messages", "banyan"];

/// What an archive says of a session as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The session's id, as a UUID.
    pub session_id: String,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// What people call it.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// More attributes of the manifest.
    pub attributes: Vec<(String, String)>,
    /// More fields of the history, as JSON text.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// What is known of a session. What an archive that it came from said besides is in its metadata, under `opa`.
    pub fn of(meta: &SessionMeta) -> Self {
        let none = Object::new();
        let opa = meta.metadata.as_ref().and_then(|metadata| metadata.get("opa")).and_then(Value::as_object);
        let opa = opa.unwrap_or(&none);
        let text = |key: &str| opa.get(key).and_then(Value::as_str);
        let object = |key: &str| opa.get(key).and_then(Value::as_object).unwrap_or(&none);
        // A fork has the metadata of the session that it was forked from, and not its id.
        let given = text("session_id")
            .filter(|id| Uuid::try_parse(id).is_ok_and(|id| SessionId::from_uuid(id) == meta.session_id));
        let attributes =
            object("manifest").iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let mut fields: Vec<(String, String)> =
            object("extra").iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let exact =
            object("exact").iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        fields.extend(exact.filter(|(_, text)| serde_json::from_str::<&RawValue>(text).is_ok()));
        Self {
            session_id: given.map_or_else(|| uuid_of(&meta.session_id), str::to_owned),
            created_at: text("created_at").map_or_else(|| time::written(meta.created_at), str::to_owned),
            updated_at: time::written(meta.updated_at),
            title: meta.title.clone(),
            description: meta.description.clone(),
            attributes: attributes.collect(),
            fields,
        }
    }

    pub(super) fn note_prompt(&mut self, entry: &EntryId, timestamp: i64) {
        let note = PromptNote { prompt: PromptEntry { entry: entry.to_string(), timestamp } };
        let note = serde_json::to_string(&note).unwrap_or_default();
        self.fields.retain(|(name, _)| name != "banyan");
        self.fields.push(("banyan".to_owned(), note));
    }

    pub(super) fn manifest(&self, plain: bool) -> Manifest {
        let given = |name: &str| self.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let given = |name: &str| given(name).map(|(_, value)| value.as_str());
        let mut manifest = Manifest::default();
        manifest.push("Manifest-Version", "1.0");
        manifest.push("OPA-Version", "0.1");
        manifest.push("Prompt-File", PROMPT);
        manifest.push("Session-File", HISTORY);
        if let Some(root) = given("Data-Root").filter(|root| path::source_flaw(root).is_none()) {
            manifest.push("Data-Root", root);
        }
        let mode = given("Execution-Mode").filter(|mode| matches!(*mode, "interactive" | "batch" | "autonomous"));
        manifest.push("Execution-Mode", mode.unwrap_or("interactive"));
        manifest.push("Title", &self.title);
        manifest.push("Description", &self.description);
        manifest.push("Created-By", "Banyan");
        manifest.push("Created-At", &self.created_at);
        if !plain {
            manifest.push("Schema-Extensions", EXTENSION_URI);
        }
        for (name, value) in &self.attributes {
            let is_own = OWN_ATTRIBUTES.iter().any(|own| own.eq_ignore_ascii_case(name));
            if is_name(name) && !is_own && manifest.get(name).is_none() {
                manifest.push(name, &one_line(value));
            }
        }
        manifest
    }

    /// The beginning of the history, up to its first message.
    pub(super) fn beginning(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let mut fields = vec![("opa_version", text("0.1")), ("session_id", text(&self.session_id))];
        fields.push(("created_at", text(&self.created_at)));
        fields.push(("updated_at", text(&self.updated_at)));
        let mut beginning = String::from("{");
        for (name, value) in fields {
            beginning.push_str(&format!("{}:{value},", text(name)));
        }
        let mut written: Vec<&str> = Vec::new();
        for (name, value) in &self.fields {
            let is_own = OWN_FIELDS.contains(&name.as_str()) && name != "banyan";
            let is_json = serde_json::from_str::<&RawValue>(value).is_ok();
            if !is_own && is_json && !written.contains(&name.as_str()) {
                beginning.push_str(&format!("{}:{value},", text(name)));
                written.push(name);
            }
        }
        beginning.push_str("\"messages\":[");
        beginning
    }
}

/// The UUID that stands for a session: its own, when it has one.
fn uuid_of(id: &SessionId) -> String {
    let own = id.as_uuid().or_else(|| Uuid::try_parse(id.as_str()).ok());
    own.unwrap_or_else(|| identity::uuid("session id", &[id.as_str()])).hyphenated().to_string()
}
