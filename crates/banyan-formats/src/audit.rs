//! The facts about a session that an audit asks for, taken from where agents leave them: metadata, origins, custom data.
//!
//! Only names of things are taken: a directory, a model, a file and its hash. What was in the file, and what a provider sent,
//! stays where it is.

use banyan_model::{AgentMessage, CustomPayload, InstructionSource, Object, Origin};
use serde_json::Value;

use crate::body::Body;

/// The custom type of entries that hold a `context` record of a session log.
pub(crate) const CONTEXT: &str = "context";

/// Names of custom types that tell of the surroundings, without what stands before the last `.`, `:` or `/`.
const TELLING: &[&str] = &[
    CONTEXT,
    "environment",
    "environment_context",
    "instructions",
    "session_context",
    "session_meta",
    "session_start",
    "turn_context",
];

const DIRECTORY: &[&str] = &["cwd", "working_directory", "workingDirectory", "working_dir", "workspace_root"];
const MODEL: &[&str] = &["model", "model_id", "modelID", "modelId"];
const PROVIDER: &[&str] = &["provider", "provider_id", "providerID", "model_provider", "modelProvider"];
const SOURCES: &[&str] = &["sources", "instruction_sources", "instructions"];
const HASH: &[&str] = &["hash", "sha256", "digest", "content_hash"];

/// What is known of the surroundings at some place of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Where the agent works.
    pub directory: Option<String>,
    /// The model that is meant to answer.
    pub model: Option<String>,
    /// Who serves it.
    pub provider: Option<String>,
    /// The instructions that were loaded.
    pub sources: Vec<InstructionSource>,
}

impl Facts {
    /// What a session's metadata tells.
    pub fn of_metadata(metadata: Option<&Object>) -> Self {
        let mut facts = Self::default();
        if let Some(metadata) = metadata {
            facts.take(metadata);
        }
        facts
    }

    /// Learns from an entry of the path. Says which of the facts are news, in their order.
    pub(crate) fn learn(&mut self, body: &Body, origin: Option<&Origin>) -> [bool; 4] {
        let before = self.clone();
        if let Some(origin) = origin {
            self.take(&origin.only(&told()));
        }
        match body {
            Body::Custom(CustomPayload { custom_type, data }) if is_telling(custom_type) => {
                self.take_json(data.parse().ok());
            }
            Body::Message(message) => match &**message {
                AgentMessage::Custom(message) if is_telling(&message.custom_type) => {
                    self.take_json(message.details.as_ref().and_then(|details| details.parse().ok()));
                }
                _ => {}
            },
            Body::Custom(_) | Body::Unreadable => {}
        }
        [
            self.directory != before.directory,
            self.model != before.model,
            self.provider != before.provider,
            self.sources != before.sources,
        ]
    }

    fn take_json(&mut self, object: Option<Object>) {
        if let Some(object) = object {
            self.take(&object);
        }
    }

    fn take(&mut self, object: &Object) {
        if let Some(Value::Object(inner)) = object.get(CONTEXT) {
            self.take(inner);
        }
        let learn = |place: &mut Option<String>, keys: &[&str]| {
            if let Some(text) = text(object, keys) {
                *place = Some(text);
            }
        };
        learn(&mut self.directory, DIRECTORY);
        learn(&mut self.model, MODEL);
        learn(&mut self.provider, PROVIDER);
        let lists = SOURCES.iter().filter_map(|key| object.get(*key)?.as_array());
        if let Some(sources) = lists.map(|list| list.iter().filter_map(source).collect::<Vec<_>>()).next() {
            self.sources = sources;
        }
    }
}

/// The keys that anything is told under.
fn told() -> Vec<&'static str> {
    [&[CONTEXT], DIRECTORY, MODEL, PROVIDER, SOURCES].concat()
}

/// Whether a custom type is one that tells of the surroundings.
fn is_telling(custom_type: &str) -> bool {
    let name = custom_type.rsplit(['.', ':', '/']).next().unwrap_or(custom_type);
    TELLING.contains(&name)
}

fn source(value: &Value) -> Option<InstructionSource> {
    match value {
        Value::String(path) => {
            Some(InstructionSource { path: Some(path.clone()), ..InstructionSource::default() })
        }
        Value::Object(fields) => {
            let source = InstructionSource {
                kind: text(fields, &["kind", "type"]),
                path: text(fields, &["path", "file", "name", "uri"]),
                scope: text(fields, &["scope"]),
                hash: text(fields, HASH),
                truncated: fields.get("truncated").and_then(Value::as_bool),
                error: text(fields, &["error", "load_error"]),
            };
            if source == InstructionSource::default() { None } else { Some(source) }
        }
        _ => None,
    }
}

fn text(object: &Object, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| object.get(*key)?.as_str());
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}
