//! One thing that an agent did.

use banyan_model::Object;
use serde::Serialize;
use serde_json::Value;

use super::date::Instant;

/// One thing that an agent did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// When.
    pub timestamp: String,
    /// What, for example `tool_call:search`.
    pub action: String,
    /// The API that was called.
    pub api_endpoint: Option<String>,
    /// What came of it, in short.
    pub result: Option<String>,
    /// What else is known of it.
    pub metadata: Object,
}

impl Action {
    /// Tells two actions apart by what they say. The order of keys and the spelling of a time do not matter.
    pub fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 an action of an OCP context");
        let when = match Instant::of(&self.timestamp) {
            Some(instant) => instant.to_string(),
            None => self.timestamp.clone(),
        };
        let mut canonical = String::new();
        write_object(&self.metadata, &mut canonical);
        let absent_or = |text: &Option<String>| text.as_ref().map_or_else(String::new, |text| format!("={text}"));
        for part in [&when, &self.action, &absent_or(&self.api_endpoint), &absent_or(&self.result), &canonical] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// When it happened, to order by.
    pub(super) fn instant(&self) -> Instant {
        Instant::of(&self.timestamp).unwrap_or_default()
    }
}

/// Joins actions: each once, in the order of their times. Those of one moment stay in the order in which they come.
pub(super) fn union(actions: impl IntoIterator<Item = Action>) -> Vec<Action> {
    let mut seen = std::collections::HashSet::new();
    let mut all: Vec<Action> = actions.into_iter().filter(|action| seen.insert(action.key())).collect();
    all.sort_by_key(Action::instant);
    all
}

fn write_object(object: &Object, out: &mut String) {
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort_unstable();
    out.push('{');
    for key in keys {
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write_value(&object[key], out);
        out.push(',');
    }
    out.push('}');
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => write_object(object, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_value(item, out);
                out.push(',');
            }
            out.push(']');
        }
        // Some write 1.0 as 1.
        Value::Number(number) => match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
            Some(float) if float.abs() < 9e15 => out.push_str(&format!("{float:.0}")),
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}
