//! One line as Qwen Code writes it, and what it is to us.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, ErrorKind, FunctionResultMessage, Json, Object,
    Origin, StopReason, Usage, UserMessage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ID;
use crate::build::millis;
use crate::parts::{self, Parts, Pictures};
use crate::rest::{Text, if_text};
use crate::{COMPACTION, OWN, Own};

/// What a line is to us.
pub(super) enum Told {
    /// A message, whose origin is given.
    Message(Box<AgentMessage>, Object),
    /// The results of calls, with what the line has besides.
    Results(Vec<FunctionResultMessage>, Object),
    /// Anything else, kept as it is.
    Record(String, Object),
}

/// A line, with what most of them have.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, rename = "parentUuid")]
    pub(super) parent: Option<Text<'a>>,
    #[serde(borrow, rename = "sessionId")]
    pub(super) session: Text<'a>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) subtype: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text", rename = "agentId")]
    pub(super) agent: Option<Text<'a>>,
    #[serde(default, rename = "x_banyan")]
    pub(super) own: Option<Own>,
    #[serde(default, rename = "forkedFrom")]
    pub(super) forked_from: Option<Forked>,
}

/// Where a line of a fork was copied from.
#[derive(Deserialize)]
pub(super) struct Forked {
    #[serde(rename = "sessionId")]
    pub(super) session: String,
}

/// What a part of a message was in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    /// How many blocks of the message it has.
    pub(super) blocks: usize,
    /// The line without its content.
    pub(super) record: Object,
    /// What blocks have no place for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) kept: Vec<Value>,
}

impl Line<'_> {
    pub(super) fn at(&self) -> Option<i64> {
        millis(self.timestamp.as_deref()?)
    }

    /// What the line is. `model` is the model that was last heard of.
    pub(super) fn told(&self, mut record: Object, model: &str, at: i64) -> Told {
        record.shift_remove(OWN);
        let message = record.get("message").and_then(|message| message.get("parts")).cloned().unwrap_or_default();
        let said = parts::read(&message, Pictures::Within);
        match &*self.kind {
            "assistant" => assistant(said, record, model, at),
            "tool_result" if !said.responses.is_empty() => results(said, record, at),
            "user" => self.user(said, record, at),
            "system" => self.system(record, model, at),
            other => Told::Record(other.to_owned(), record),
        }
    }

    fn user(&self, said: Parts, record: Object, timestamp: i64) -> Told {
        let provenance = record.get("provenance").and_then(Value::as_str).unwrap_or("real_user");
        let by_hand = matches!(self.subtype.as_deref(), None | Some("mid_turn_user_message"));
        let first = said.blocks.iter().find_map(text).unwrap_or_default();
        let context = if first.trim_start().starts_with("<system-reminder>") {
            Some("system_reminder")
        } else if !by_hand {
            self.subtype.as_deref()
        } else {
            Some(provenance).filter(|provenance| *provenance != "real_user")
        };
        let custom_type = context.map(|context| format!("{ID}.{context}"));
        let content = said.blocks.clone();
        let origin = origin(vec![piece(record, &said)]);
        let message = match custom_type {
            Some(custom_type) => {
                let (display, details) = (None, None);
                AgentMessage::Custom(CustomMessage { custom_type, content, display, details, timestamp })
            }
            None => AgentMessage::User(UserMessage { content, timestamp }),
        };
        Told::Message(Box::new(message), origin)
    }

    fn system(&self, record: Object, model: &str, timestamp: i64) -> Told {
        let subtype = self.subtype.as_deref().unwrap_or("system");
        let payload = record.get("systemPayload").unwrap_or(&Value::Null);
        if subtype == "chat_compression" {
            let first = payload.get("compressedHistory").and_then(|history| history.get(0)?.get("parts"));
            let content = first.map(|first| parts::read(first, Pictures::Within).blocks).unwrap_or_default();
            let custom_type = COMPACTION.to_owned();
            let details = Json::of(&record).ok();
            let message = CustomMessage { custom_type, content, display: None, details, timestamp };
            return Told::Message(
                Box::new(AgentMessage::Custom(message)),
                Object::from_iter([(ID.to_owned(), Value::Null)]),
            );
        }
        let failed = payload.get("uiEvent").and_then(failure);
        match failed {
            Some(failure) => {
                let mut message = empty(model, timestamp);
                message.stop_reason = StopReason::Error;
                message.error_kind = failure.kind;
                message.error_message = Some(failure.message);
                let pieces = vec![Piece { blocks: 0, record, kept: Vec::new() }];
                Told::Message(Box::new(AgentMessage::Assistant(message)), origin(pieces))
            }
            None => Told::Record(subtype.to_owned(), record),
        }
    }
}

/// The origin of a message that was made of these lines.
pub(super) fn origin(pieces: Vec<Piece>) -> Object {
    Object::from_iter([(ID.to_owned(), serde_json::to_value(pieces).unwrap_or_default())])
}

/// The lines that a message was made of, if it comes from here.
pub(super) fn pieces(origin: Option<&Origin>) -> Vec<Piece> {
    origin.and_then(|origin| serde_json::from_value(origin.get(ID)?).ok()).unwrap_or_default()
}

fn piece(mut record: Object, said: &Parts) -> Piece {
    if let Some(Value::Object(message)) = record.get_mut("message") {
        message.shift_remove("parts");
    }
    Piece { blocks: said.blocks.len(), record, kept: said.kept.clone() }
}

fn assistant(said: Parts, record: Object, model: &str, at: i64) -> Told {
    let model = record.get("model").and_then(Value::as_str).unwrap_or(model);
    let mut message = empty(model, at);
    message.usage = record.get("usageMetadata").map(usage);
    if said.blocks.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_))) {
        message.stop_reason = StopReason::FunctionCall;
    }
    let origin = origin(vec![piece(record, &said)]);
    message.content = said.blocks;
    Told::Message(Box::new(AgentMessage::Assistant(message)), origin)
}

fn results(said: Parts, record: Object, timestamp: i64) -> Told {
    let status = record.get("toolCallResult").and_then(|result| result.get("status")).and_then(Value::as_str);
    let failed = matches!(status, Some("error" | "cancelled"));
    let mut piece = piece(record, &said);
    piece.kept.extend(said.responses.iter().filter_map(|response| response.kept.clone()).flat_map(
        |kept| match kept {
            Value::Array(parts) => parts,
            other => vec![other],
        },
    ));
    let results = said.responses.into_iter().map(|response| FunctionResultMessage {
        function_call_id: response.call,
        function_id: response.name,
        content: response.content,
        details: Json::null(),
        is_error: response.is_error || failed,
        timestamp,
    });
    Told::Results(results.collect(), origin(vec![piece]))
}

fn empty(model: &str, timestamp: i64) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        model: model.to_owned(),
        provider: ID.to_owned(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp,
    }
}

struct Failure {
    message: String,
    kind: Option<ErrorKind>,
}

/// What went wrong with a request of the session's own; those of helpers are telemetry like any other.
fn failure(event: &Value) -> Option<Failure> {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    if text("event.name") != Some("qwen-code.api_error") || event.get("subagent_id").is_some() {
        return None;
    }
    let kind = event.get("status_code").and_then(Value::as_u64).map(|status| match status {
        401 | 403 => ErrorKind::AuthExpired,
        429 => ErrorKind::RateLimited,
        500.. => ErrorKind::Transient,
        _ => ErrorKind::Permanent,
    });
    Some(Failure { message: text("error_message").unwrap_or_default().to_owned(), kind })
}

fn usage(tokens: &Value) -> Usage {
    let count = |key: &str| tokens.get(key).and_then(Value::as_u64);
    Usage {
        input: count("promptTokenCount"),
        output: count("candidatesTokenCount"),
        cache_read: count("cachedContentTokenCount"),
        reasoning: count("thoughtsTokenCount"),
        ..Usage::default()
    }
}

/// The text of a block.
pub(super) fn text(block: &ContentBlock) -> Option<&str> {
    if let ContentBlock::Text(text) = block { Some(&text.text) } else { None }
}
