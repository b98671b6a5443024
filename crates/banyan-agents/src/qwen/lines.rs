//! The lines of a chat that is being written.

use std::collections::HashSet;

use banyan_model::{AssistantMessage, ContentBlock, EntryId, MessageEntry, Object, ThinkingBlock};
use serde_json::{Value, json};

use super::record::{Piece, pieces, text};
use crate::build::iso;
use crate::parts::{self, Pictures};
use crate::{Call, OWN, Outgoing, Own};

/// The version that lines of other agents are written as.
const VERSION: &str = "0.24.4";

/// A chat that is being written.
pub(super) struct Chat<'a> {
    session: &'a Outgoing,
    native: &'a str,
    cwd: &'a str,
    ids: HashSet<String>,
    lines: Vec<Object>,
}

/// What a line stands for.
#[derive(Clone, Copy)]
pub(super) enum Whose<'a> {
    /// An entry.
    Entry(&'a EntryId),
    /// Nothing: it was made up so that the agent is content.
    Nobody,
}

impl<'a> Chat<'a> {
    pub(super) fn new(session: &'a Outgoing, native: &'a str, cwd: &'a str) -> Self {
        Self { session, native, cwd, ids: HashSet::new(), lines: Vec::new() }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            crate::native::push_line(&mut text, &json!(line));
        }
        text
    }

    pub(super) fn user(&mut self, entry: &MessageEntry, content: &[ContentBlock], at: i64) {
        let piece = pieces(entry.origin.as_ref()).into_iter().next();
        let kept = piece.as_ref().map(|piece| piece.kept.clone()).unwrap_or_default();
        let record = piece.map_or_else(|| self.record("user", at), |piece| piece.record);
        self.push(with_parts(record, "user", parts::write(content, &kept)), Whose::Entry(&entry.id));
    }

    pub(super) fn assistant(
        &mut self,
        entry: &MessageEntry,
        message: &AssistantMessage,
        at: i64,
        lost: &mut Vec<String>,
    ) {
        let mut pieces = pieces(entry.origin.as_ref());
        let mut content = message.content.clone();
        if pieces.iter().map(|piece| piece.blocks).sum::<usize>() != content.len() {
            pieces.clear();
        }
        if let Some(error) = &message.error_message {
            lost.push(format!("that an answer failed: {error}"));
        }
        if pieces.is_empty() {
            unsign(&mut content, lost);
            let mut record = self.record("assistant", at);
            record.insert("model".to_owned(), message.model.clone().into());
            let mut record = with_parts(record, "model", parts::write(&content, &[]));
            record.extend(usage(message).map(|usage| ("usageMetadata".to_owned(), usage)));
            return self.push(record, Whose::Entry(&entry.id));
        }
        let mut rest = content.as_slice();
        for Piece { blocks, record, kept } in pieces {
            let (here, later) = rest.split_at(blocks.min(rest.len()));
            rest = later;
            self.push(with_parts(record, "model", parts::write(here, &kept)), Whose::Entry(&entry.id));
        }
    }

    pub(super) fn result(&mut self, call: &Call, pieces: &[Piece]) {
        let Call { call, outcome } = call;
        let piece = pieces.first();
        let is_this = |part: &&Value| part["functionResponse"]["id"].as_str() == Some(&call.id);
        let kept = piece.into_iter().flat_map(|piece| &piece.kept).find(is_this).cloned();
        let made = || {
            let (id, name) = (&call.id, &call.function_id);
            parts::response_parts(id, name, &outcome.content, outcome.is_error, Pictures::Within)
        };
        let parts = kept.map_or_else(made, |kept| vec![kept]);
        let record = piece.map(|piece| piece.record.clone()).unwrap_or_else(|| {
            let mut record = self.record("tool_result", outcome.at);
            let status = if outcome.is_error { "error" } else { "success" };
            let shown = outcome.content.iter().filter_map(text).collect::<Vec<_>>().join("\n");
            record.insert("message".to_owned(), Value::Null);
            let result = json!({"callId": call.id, "status": status, "resultDisplay": shown});
            record.insert("toolCallResult".to_owned(), result);
            record
        });
        let whose = outcome.entry.as_ref().map_or(Whose::Nobody, Whose::Entry);
        self.push(with_parts(record, "user", parts), whose);
    }

    /// A record that is written as it was.
    pub(super) fn again(&mut self, record: Object, entry: &EntryId) {
        self.push(record, Whose::Entry(entry));
    }

    /// The title, unless the last record of one says it already.
    pub(super) fn title(&mut self, title: &str) {
        let is_title = |line: &&Object| line.get("subtype").is_some_and(|subtype| subtype == "custom_title");
        let known =
            self.lines.iter().rev().find(is_title).map(|line| line["systemPayload"]["customTitle"].clone());
        if title.is_empty() || known == Some(title.into()) {
            return;
        }
        let mut record = self.record("system", self.session.meta.updated_at);
        record.insert("subtype".to_owned(), "custom_title".into());
        record.insert("systemPayload".to_owned(), json!({"customTitle": title, "titleSource": "manual"}));
        self.push(record, Whose::Nobody);
    }

    /// What every line has.
    pub(super) fn record(&self, kind: &str, at: i64) -> Object {
        let provenance = match kind {
            "user" => "real_user",
            "assistant" => "assistant_output",
            other => other,
        };
        let fields = [
            ("uuid", Value::Null),
            ("parentUuid", Value::Null),
            ("sessionId", Value::Null),
            ("timestamp", iso(at).into()),
            ("type", kind.into()),
            ("provenance", provenance.into()),
            ("cwd", Value::Null),
            ("version", VERSION.into()),
        ];
        let mut record: Object = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        if let Some(branch) = self.session.metadata("git_branch") {
            record.insert("gitBranch".to_owned(), branch.into());
        }
        record
    }

    /// Adds a line after the last one.
    pub(super) fn push(&mut self, mut record: Object, whose: Whose<'_>) {
        let known = record.get("uuid").and_then(Value::as_str).map(str::to_owned);
        let ours = || match whose {
            Whose::Entry(entry) => entry.as_uuid().map(|uuid| uuid.to_string()),
            Whose::Nobody => None,
        };
        let number = self.lines.len();
        let fresh = || {
            let hash =
                blake3::hash(format!("{}\0{}\0{number}", self.native, self.session.meta.session_id).as_bytes());
            let bytes = hash.as_bytes().first_chunk::<16>().copied().unwrap_or_default();
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        };
        let unused = |id: &String| !self.ids.contains(id);
        let uuid = known.filter(unused).or_else(|| ours().filter(unused)).unwrap_or_else(fresh);
        let parent = self.lines.last().map_or(Value::Null, |line| line["uuid"].clone());
        let (entry, made_up) = match whose {
            Whose::Entry(entry) => (Some(entry.clone()), false),
            Whose::Nobody => (None, true),
        };
        let own = Own { session: self.session.meta.session_id.clone(), entry, made_up };
        self.ids.insert(uuid.clone());
        record.insert("uuid".to_owned(), uuid.into());
        record.insert("parentUuid".to_owned(), parent);
        record.insert("sessionId".to_owned(), self.native.into());
        record.insert("cwd".to_owned(), self.cwd.into());
        for key in ["agentId", "agentName", "isSidechain"] {
            record.shift_remove(key);
        }
        record.insert(OWN.to_owned(), json!(own));
        self.lines.push(record);
    }
}

fn with_parts(mut record: Object, role: &str, parts: Vec<Value>) -> Object {
    let message = record.entry("message").or_insert(Value::Null);
    if message.is_null() {
        *message = json!({"role": role});
    }
    message["parts"] = parts.into();
    record
}

/// Takes away signatures, which are another service's.
fn unsign(content: &mut [ContentBlock], lost: &mut Vec<String>) {
    for block in content {
        if let ContentBlock::Thinking(ThinkingBlock { signature, .. }) = block {
            if signature.take().is_some() {
                lost.push("the signature of thinking, which is another service's".to_owned());
            }
        }
    }
}

fn usage(message: &AssistantMessage) -> Option<Value> {
    let usage = message.usage.as_ref()?;
    let count = |count: Option<u64>| count.unwrap_or_default();
    let (input, output, thoughts) = (count(usage.input), count(usage.output), count(usage.reasoning));
    Some(json!({
        "promptTokenCount": input,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": input + output + thoughts,
        "cachedContentTokenCount": count(usage.cache_read),
    }))
}
