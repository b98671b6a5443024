//! A session told as a context: its actions, and the tool calls of its conversation. Nothing leaves with a secret in it.

use banyan_model::{
    AgentMessage, ContentBlock, CustomEntry, EntryId, FunctionCallBlock, FunctionResultMessage, Json,
    MessageEntry, Object, SessionEntry, SessionMeta, SessionStatus,
};
use serde_json::Value;

use super::action::{Action, union};
use super::context::{Context, DEFAULT_AGENT};
use super::date::{Instant, of_ms};
use super::id::id_of_session;
use super::keep::{ACTION, Kept, mark};
use super::read::{Fallback, read_fields};
use crate::redact::{Finding, Redactor};

/// A result is told in so many characters.
const RESULT: usize = 200;
/// Arguments with more bytes of JSON are told by their beginning.
const ARGUMENTS: usize = 2048;
const BEGINNING: usize = 512;

/// Gathers what a session's entries say was done.
#[derive(Default)]
pub struct Gathering {
    actions: Vec<Action>,
    redactor: Redactor,
}

/// A session as a context.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The context, without secrets.
    pub context: Context,
    /// What was taken out.
    pub redacted: Vec<Finding>,
}

/// The key within `session` that lists what was taken out.
pub(super) const REDACTED: &str = "redacted";

impl Told {
    /// The context with a list, within `session`, of what was taken out.
    pub fn listed(mut self) -> Context {
        if !self.redacted.is_empty() {
            let list = serde_json::to_value(&self.redacted).unwrap_or_default();
            self.context.session.insert(REDACTED.to_owned(), list);
        }
        self.context
    }
}

impl Gathering {
    /// Takes an entry: one of the active path, or one that holds an action.
    pub fn entry(&mut self, entry: &SessionEntry) {
        match entry {
            SessionEntry::Custom(entry) if entry.custom_type == ACTION => self.kept(entry),
            SessionEntry::Custom(_) => {}
            SessionEntry::Message(entry) => self.message(entry),
        }
    }

    fn kept(&mut self, entry: &CustomEntry) {
        let Ok(Value::Object(item)) = entry.data.parse::<Value>() else { return };
        let list = Object::from_iter([("history".to_owned(), Value::Array(vec![Value::Object(item)]))]);
        for mut action in read_fields(list, Fallback::default(), entry.timestamp).context.history {
            let clean = self.clean(&action);
            if clean != action {
                action = clean;
                // It no longer says what it said, so its content does not tell that it is here already.
                mark(&mut action, &entry.id);
            }
            self.actions.push(action);
        }
    }

    fn message(&mut self, entry: &MessageEntry) {
        match entry.message.parse() {
            Ok(AgentMessage::Assistant(message)) => {
                for block in &message.content {
                    if let ContentBlock::FunctionCall(call) = block {
                        self.call(&entry.id, call, message.timestamp);
                    }
                }
            }
            Ok(AgentMessage::FunctionResult(message)) => self.result(&entry.id, &message),
            _ => {}
        }
    }

    fn call(&mut self, entry: &EntryId, call: &FunctionCallBlock, timestamp: i64) {
        let place = format!("entry {entry}");
        let arguments = self.redactor.json(&call.arguments, &place);
        let metadata = Object::from_iter([
            ("tool_name".to_owned(), Value::from(call.function_id.as_str())),
            ("call_id".to_owned(), Value::from(call.id.as_str())),
            ("parameters".to_owned(), shortened(&arguments)),
        ]);
        self.derived(
            entry,
            timestamp,
            format!("tool_call:{}", call.function_id),
            "executing".to_owned(),
            metadata,
        );
    }

    fn result(&mut self, entry: &EntryId, message: &FunctionResultMessage) {
        let texts = message.content.iter().filter_map(|block| match block {
            ContentBlock::Text(block) => Some(block.text.as_str()),
            _ => None,
        });
        let text: String = texts.collect::<Vec<_>>().join("\n");
        // Whole first: half a secret has no shape.
        let clean = self.redactor.text(&text, &format!("entry {entry}")).into_owned();
        let line: String = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        let result = match line.chars().count() > RESULT {
            true => line.chars().take(RESULT - 1).chain(['…']).collect(),
            false => line,
        };
        let metadata = Object::from_iter([
            ("tool_name".to_owned(), Value::from(message.function_id.as_str())),
            ("call_id".to_owned(), Value::from(message.function_call_id.as_str())),
            ("success".to_owned(), Value::from(!message.is_error)),
        ]);
        let word = if message.is_error { "tool_error" } else { "tool_response" };
        self.derived(entry, message.timestamp, format!("{word}:{}", message.function_id), result, metadata);
    }

    fn derived(&mut self, entry: &EntryId, timestamp: i64, action: String, result: String, metadata: Object) {
        let result = Some(result).filter(|result| !result.is_empty());
        let mut action = Action { timestamp: of_ms(timestamp), action, api_endpoint: None, result, metadata };
        mark(&mut action, entry);
        self.actions.push(action);
    }

    /// An action without secrets.
    fn clean(&mut self, action: &Action) -> Action {
        let place = "history";
        let mut text =
            |text: &Option<String>| text.as_ref().map(|text| self.redactor.text(text, place).into_owned());
        let (api_endpoint, result) = (text(&action.api_endpoint), text(&action.result));
        let metadata = self.redactor.object(action.metadata.clone(), place);
        Action { api_endpoint, result, metadata, ..action.clone() }
    }

    /// How many actions there are so far.
    pub fn count(&self) -> usize {
        self.actions.len()
    }

    /// The context. What a session was never told follows from the session itself.
    pub fn finish(mut self, meta: &SessionMeta) -> Told {
        let mut context = match Kept::of(meta.metadata.as_ref()) {
            Some(kept) => kept_context(kept, meta),
            None => own_context(meta),
        };
        context.history = union(self.actions);
        let redactor = &mut self.redactor;
        for (name, text) in [
            ("user", &mut context.user),
            ("workspace", &mut context.workspace),
            ("current_file", &mut context.current_file),
            ("current_goal", &mut context.current_goal),
            ("context_summary", &mut context.context_summary),
            ("error_context", &mut context.error_context),
        ] {
            *text = text.take().map(|text| redactor.text(&text, name).into_owned());
        }
        for change in &mut context.recent_changes {
            *change = redactor.text(change, "recent_changes").into_owned();
        }
        context.session = redactor.object(context.session, "session");
        let specs = redactor.object(context.api_specs.clone(), "api_specs");
        // An address without its secret may be none.
        context.api_specs.retain(|name, spec| specs.get(name) == Some(spec));
        Told { context, redacted: self.redactor.findings().to_vec() }
    }
}

fn kept_context(kept: Kept, meta: &SessionMeta) -> Context {
    let mut context = kept.received.context;
    let said = Instant::of(&context.last_updated).max(Instant::of(&context.created_at));
    if said.is_none_or(|said| said.ms() < meta.updated_at) {
        context.last_updated = of_ms(meta.updated_at);
    }
    if let Some(given) = kept.received.given_id {
        context.session.insert("given_context_id".to_owned(), given.into());
    }
    context
}

fn own_context(meta: &SessionMeta) -> Context {
    let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let created_at = of_ms(meta.created_at);
    let session = Object::from_iter([
        ("start_time".to_owned(), Value::from(created_at.as_str())),
        ("interaction_count".to_owned(), Value::from(meta.message_count)),
        ("agent_type".to_owned(), Value::from(DEFAULT_AGENT)),
    ]);
    Context {
        context_id: id_of_session(&meta.session_id),
        agent_type: DEFAULT_AGENT.to_owned(),
        user: None,
        workspace: None,
        current_file: None,
        session,
        history: Vec::new(),
        current_goal: said(&meta.title),
        context_summary: said(&meta.description),
        error_context: meta.status_reason.clone().filter(|_| meta.status == SessionStatus::Error),
        recent_changes: Vec::new(),
        api_specs: Object::new(),
        created_at,
        last_updated: of_ms(meta.updated_at),
    }
}

/// Arguments, or the beginning of long ones.
fn shortened(arguments: &Json) -> Value {
    let text = arguments.get();
    match text.len() > ARGUMENTS {
        true => {
            let beginning: String = text.chars().take(BEGINNING).collect();
            Value::Object(Object::from_iter([("shortened".to_owned(), Value::from(beginning))]))
        }
        false => arguments.parse().unwrap_or_default(),
    }
}
