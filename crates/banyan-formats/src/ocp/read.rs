//! Contexts of whoever wrote them are read as far as they go. What comes out is valid against the schema; what the schema has no
//! place for is kept aside, and what cannot be kept is named.

use banyan_model::Object;
use serde_json::Value;

use super::Ignored;
use super::action::{Action, union};
use super::context::{Context, DEFAULT_AGENT, MOST_CHANGES, is_spec_name, is_uri};
use super::date::{Instant, date_time, of_ms};
use super::gather::REDACTED;
use super::id::canonical_id;
use super::value::Unreadable;
use super::write::{COUNTS, SHORTENED};

/// A context as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The context, valid against the schema.
    pub context: Context,
    /// The id that it was given, when the schema does not take that.
    pub given_id: Option<String>,
    /// Fields that the schema does not have.
    pub extra: Object,
    /// It does not say when it last changed.
    pub undated: bool,
    /// What was left out.
    pub ignored: Vec<Ignored>,
}

/// What a context that does not name itself goes by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fallback<'a> {
    pub(super) context_id: Option<&'a str>,
    pub(super) agent_type: Option<&'a str>,
}

/// The fields that are a text or nothing.
const TEXTS: [&str; 6] = ["user", "workspace", "current_file", "current_goal", "context_summary", "error_context"];

/// Reads a context object. `now_ms` stands in for times that it does not say.
pub fn read(value: Value, now_ms: i64) -> Result<Received, Unreadable> {
    match value {
        Value::Object(fields) if fields.get("context_id").is_some_and(Value::is_string) => {
            Ok(read_fields(fields, Fallback::default(), now_ms))
        }
        _ => Err(Unreadable::NotAnObject),
    }
}

/// Reads a file of `~/.ocp/sessions`: a context, and the name of the session, which is kept aside.
pub fn read_file(bytes: &[u8], now_ms: i64) -> Result<Received, Unreadable> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    read(serde_json::from_slice(bytes).map_err(|_| Unreadable::NotJson)?, now_ms)
}

pub(super) fn read_fields(mut fields: Object, fallback: Fallback<'_>, now_ms: i64) -> Received {
    let mut reader = Reader { ignored: Vec::new(), extra: Object::new() };
    let own_id = fields.shift_remove("context_id").and_then(|id| reader.text("context_id", id));
    let given_id =
        own_id.filter(|id| !id.is_empty()).or(fallback.context_id.map(str::to_owned)).unwrap_or_default();
    let context_id = canonical_id(&given_id);
    let agent = fields.shift_remove("agent_type").and_then(|agent| reader.text("agent_type", agent));
    let agent_type = agent.filter(|agent| !agent.is_empty());
    let agent_type = agent_type.unwrap_or_else(|| fallback.agent_type.unwrap_or(DEFAULT_AGENT).to_owned());
    let mut texts =
        TEXTS.map(|name| fields.shift_remove(name).and_then(|text| reader.text(name, text))).into_iter();
    let mut text = || texts.next().flatten();
    let (user, workspace, current_file) = (text(), text(), text());
    let (current_goal, context_summary, error_context) = (text(), text(), text());

    let created = fields.shift_remove("created_at").and_then(|time| reader.time("created_at", time));
    let updated = fields.shift_remove("last_updated").and_then(|time| reader.time("last_updated", time));
    let undated = updated.is_none();
    let history = fields.shift_remove("history").map(|list| reader.history(list, created.as_deref()));
    let history = union(history.unwrap_or_default());
    let (first, last) = (history.first(), history.last());
    let of = |action: Option<&Action>| action.map(|action| action.timestamp.clone());
    let last_updated = updated.or_else(|| of(last)).or_else(|| created.clone()).unwrap_or_else(|| of_ms(now_ms));
    let created_at = created.or_else(|| of(first)).unwrap_or_else(|| last_updated.clone());

    let session =
        fields.shift_remove("session").map(|session| reader.object("session", session)).unwrap_or_default();
    let session = tracking(session, &created_at, &agent_type);
    let recent_changes =
        fields.shift_remove("recent_changes").map(|list| reader.changes(list)).unwrap_or_default();
    let api_specs = fields.shift_remove("api_specs").map(|specs| reader.specs(specs)).unwrap_or_default();
    reader.extra.extend(fields);
    let Reader { ignored, extra } = reader;
    let given_id = Some(given_id).filter(|given| *given != context_id && !given.is_empty());
    let context = Context {
        context_id,
        agent_type,
        user,
        workspace,
        current_file,
        session,
        history,
        current_goal,
        context_summary,
        error_context,
        recent_changes,
        api_specs,
        created_at,
        last_updated,
    };
    Received { context, given_id, extra, undated, ignored }
}

/// What the schema asks for within `session`, and whatever else is there. What writers here count is counted anew each time.
fn tracking(given: Object, created_at: &str, agent_type: &str) -> Object {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let begun = text("start_time").and_then(date_time).unwrap_or_else(|| created_at.to_owned());
    let agent = text("agent_type").unwrap_or(agent_type).to_owned();
    let count = given.get("interaction_count").and_then(|count| {
        let float = || count.as_f64().filter(|count| count.fract() == 0.0 && (0.0..9e15).contains(count));
        count.as_u64().or_else(|| float().map(|count| count as u64))
    });
    let mut session = Object::new();
    session.insert("start_time".to_owned(), begun.into());
    session.insert("interaction_count".to_owned(), count.unwrap_or(0).into());
    session.insert("agent_type".to_owned(), agent.into());
    for (key, value) in given {
        if !session.contains_key(&key) && !COUNTS.contains(&key.as_str()) && key != SHORTENED && key != REDACTED {
            session.insert(key, value);
        }
    }
    session
}

struct Reader {
    ignored: Vec<Ignored>,
    extra: Object,
}

impl Reader {
    fn ignore(&mut self, what: &'static str, why: &'static str) {
        let ignored = Ignored { what, why };
        if !self.ignored.contains(&ignored) {
            self.ignored.push(ignored);
        }
    }

    fn text(&mut self, what: &'static str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => {
                self.ignore(what, "not-text");
                None
            }
        }
    }

    fn time(&mut self, what: &'static str, value: Value) -> Option<String> {
        let text = self.text(what, value)?;
        let time = date_time(&text);
        if time.is_none() {
            self.ignore(what, "not-a-time");
        }
        time
    }

    fn object(&mut self, what: &'static str, value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            Value::Null => Object::new(),
            _ => {
                self.ignore(what, "not-an-object");
                Object::new()
            }
        }
    }

    fn list(&mut self, what: &'static str, value: Value) -> Vec<Value> {
        match value {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            _ => {
                self.ignore(what, "not-a-list");
                Vec::new()
            }
        }
    }

    fn changes(&mut self, value: Value) -> Vec<String> {
        let given = self.list("recent_changes", value);
        let mut changes: Vec<String> = Vec::with_capacity(given.len());
        for change in given {
            match change {
                Value::String(change) => changes.push(change),
                _ => self.ignore("recent_changes", "not-text"),
            }
        }
        if changes.len() > MOST_CHANGES {
            self.ignore("recent_changes", "more-than-10");
            changes.drain(..changes.len() - MOST_CHANGES);
        }
        changes
    }

    /// Addresses of API descriptions. What the schema does not take is kept aside.
    fn specs(&mut self, value: Value) -> Object {
        let given = self.object("api_specs", value);
        let fits = |name: &str, spec: &Value| is_spec_name(name) && spec.as_str().is_some_and(is_uri);
        let (fine, other): (Object, Object) = given.into_iter().partition(|(name, spec)| fits(name, spec));
        if !other.is_empty() {
            self.extra.insert("api_specs".to_owned(), Value::Object(other));
        }
        fine
    }

    fn history(&mut self, value: Value, created: Option<&str>) -> Vec<Action> {
        // A time that is missing must be the same each time the action is read, or the action would be a new one.
        let mut before = created.map_or_else(|| of_ms(0), str::to_owned);
        let mut actions = Vec::new();
        for item in self.list("history", value) {
            match item {
                Value::Object(fields) if fields.get("action").is_some_and(Value::is_string) => {
                    let action = read_action(fields, &before);
                    before.clone_from(&action.timestamp);
                    actions.push(action);
                }
                _ => self.ignore("history", "not-an-action"),
            }
        }
        actions
    }
}

/// Reads an action. What the schema has no place for goes to its metadata.
fn read_action(mut fields: Object, before: &str) -> Action {
    let mut metadata = match fields.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => Object::new(),
        Some(other) => Object::from_iter([("metadata".to_owned(), other)]),
    };
    let mut aside = |key: &str, value: Value| {
        if !metadata.contains_key(key) {
            metadata.insert(key.to_owned(), value);
        }
    };
    let timestamp = match fields.shift_remove("timestamp") {
        Some(Value::String(text)) => date_time(&text).unwrap_or_else(|| {
            aside("timestamp", Value::String(text));
            before.to_owned()
        }),
        _ => before.to_owned(),
    };
    let action = fields.shift_remove("action").and_then(|action| action.as_str().map(str::to_owned));
    let mut text = |key: &str| match fields.shift_remove(key)? {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => {
            aside(key, other);
            None
        }
    };
    let (api_endpoint, result) = (text("api_endpoint"), text("result"));
    fields.into_iter().for_each(|(key, value)| aside(&key, value));
    Action { timestamp, action: action.unwrap_or_default(), api_endpoint, result, metadata }
}

/// When a context last changed.
pub(super) fn updated(context: &Context) -> Instant {
    Instant::of(&context.last_updated).unwrap_or_default()
}
