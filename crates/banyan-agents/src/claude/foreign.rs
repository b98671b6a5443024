//! What was said elsewhere, as records of Claude Code.

use banyan_model::{AssistantMessage, ContentBlock, EntryId, StopReason, Usage};
use serde_json::{Value, json};
use uuid::Uuid;

use super::blocks::{block, plain};
use super::write::mark;
use crate::build::iso;
use crate::story::{Call, Step};
use crate::{Destination, Outgoing};

/// The version that records from elsewhere say they were written by: the newest one that this was tried with.
const VERSION: &str = "2.1.325";

/// Makes records of what was said elsewhere.
pub(super) struct Foreign<'a> {
    session: &'a Outgoing,
    native: &'a str,
    cwd: String,
    pub(super) lost: Vec<String>,
}

impl<'a> Foreign<'a> {
    pub(super) fn new(session: &'a Outgoing, native: &'a str, to: &Destination) -> Self {
        Self { session, native, cwd: to.cwd.to_string_lossy().into_owned(), lost: Vec::new() }
    }

    /// The records of one step, each after the one before it. `last` is the record that they follow.
    pub(super) fn step(&mut self, step: &Step, last: &mut Option<String>) -> Vec<Value> {
        match step {
            Step::User { entry, content, at } => {
                let content = match content.as_slice() {
                    [ContentBlock::Text(only)] => Value::String(only.text.clone()),
                    blocks => blocks.iter().filter_map(block).collect(),
                };
                let message = json!({ "role": "user", "content": content });
                vec![self.record("user", message, *at, entry, 0, last)]
            }
            Step::Assistant { entry, message, calls, at } => self.assistant(entry, message, calls, *at, last),
        }
    }

    fn assistant(
        &mut self,
        entry: &EntryId,
        message: &AssistantMessage,
        calls: &[Call],
        at: i64,
        last: &mut Option<String>,
    ) -> Vec<Value> {
        let id = format!("msg_{}", uuid_of(entry, "").simple());
        let stop = match message.stop_reason {
            _ if !calls.is_empty() => "tool_use",
            StopReason::Length => "max_tokens",
            _ => "end_turn",
        };
        let mut records = Vec::new();
        let mut made_calls = Vec::new();
        for part in &message.content {
            if matches!(part, ContentBlock::Thinking(thinking) if message.provider != "anthropic" || thinking.signature.is_none())
            {
                self.lose("thinking, which Claude takes back only with its own seal");
                continue;
            }
            if matches!(part, ContentBlock::Image(_)) {
                self.lose("a picture that the model made");
                continue;
            }
            let Some(content) = block(part) else { continue };
            let said = json!({
                "id": id, "type": "message", "role": "assistant", "model": message.model, "content": [content],
                "stop_reason": stop, "stop_sequence": null, "usage": usage(message.usage.as_ref()),
            });
            records.push(self.record("assistant", said, at, entry, records.len(), last));
            if let ContentBlock::FunctionCall(call) = part {
                made_calls.push((call.id.clone(), last.clone()));
            }
        }
        for call in calls {
            let made = made_calls.iter().find(|(id, _)| *id == call.call.id);
            let mut parent = made.and_then(|(_, record)| record.clone());
            records.push(self.result(call, entry, &mut parent));
            *last = parent;
        }
        records
    }

    /// What came of a call hangs off the call.
    fn result(&mut self, Call { call, outcome }: &Call, entry: &EntryId, parent: &mut Option<String>) -> Value {
        let content = match outcome.content.as_slice() {
            [] => Value::String(String::new()),
            [ContentBlock::Text(only)] => Value::String(only.text.clone()),
            blocks => blocks.iter().filter_map(block).collect(),
        };
        let mut result = json!({ "tool_use_id": plain(&call.id), "type": "tool_result", "content": content });
        if outcome.is_error {
            result["is_error"] = true.into();
        }
        let source = parent.clone();
        let message = json!({ "role": "user", "content": [result] });
        let mut record = match &outcome.entry {
            Some(entry) => self.record("user", message, outcome.at, entry, 0, parent),
            None => self.named("user", message, outcome.at, None, uuid_of(entry, &call.id), parent),
        };
        record["sourceToolAssistantUUID"] = json!(source);
        record
    }

    fn record(
        &self,
        kind: &str,
        message: Value,
        at: i64,
        entry: &EntryId,
        part: usize,
        last: &mut Option<String>,
    ) -> Value {
        let uuid = uuid_of(entry, &part.to_string());
        self.named(kind, message, at, Some(entry), uuid, last)
    }

    fn named(
        &self,
        kind: &str,
        message: Value,
        at: i64,
        entry: Option<&EntryId>,
        uuid: Uuid,
        last: &mut Option<String>,
    ) -> Value {
        let uuid = uuid.to_string();
        let mut record = json!({
            "parentUuid": last, "isSidechain": false, "userType": "external", "cwd": self.cwd,
            "sessionId": self.native, "version": VERSION, "gitBranch": "", "type": kind, "message": message,
            "uuid": uuid, "timestamp": iso(at),
        });
        mark(&mut record, self.session, entry, self.native);
        *last = Some(uuid);
        record
    }

    fn lose(&mut self, what: &str) {
        if self.lost.iter().all(|known| known != what) {
            self.lost.push(what.to_owned());
        }
    }
}

/// The name of the record of an entry, or of a part of it.
fn uuid_of(entry: &EntryId, part: &str) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry.as_str().as_bytes()).update(b"\0").update(part.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

fn usage(usage: Option<&Usage>) -> Value {
    let usage = usage.cloned().unwrap_or_default();
    json!({
        "input_tokens": usage.input.unwrap_or_default(), "output_tokens": usage.output.unwrap_or_default(),
        "cache_read_input_tokens": usage.cache_read.unwrap_or_default(),
        "cache_creation_input_tokens": usage.cache_write.unwrap_or_default(),
    })
}
