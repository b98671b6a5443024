//! A session as pi would have written it: with all branches if it is pi's own, else its active path.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use banyan_model::{AgentMessage, AssistantMessage, ContentBlock, EntryId, SessionEntry, StopReason, Usage};
use serde_json::{Value, json};

use super::blocks;
use crate::build::{iso, title_of};
use crate::files::{files_below, write_new};
use crate::native::{Native, natives, push_line, put_own, text_at};
use crate::story::{Call, Step, Story};
use crate::{Destination, Outgoing, Own, Problem, Written, native_uuid};

/// Writes a session into a home.
pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let sessions = to.home.join("sessions");
    let old = session.native_id("pi");
    let taken = |id: &str| {
        let named = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
        files_below(&sessions, &named).map(|files| files.iter().any(|file| named(file)))
    };
    let native_id = match old {
        Some(old) if !taken(old)? => old.to_owned(),
        _ => native_uuid(&session.meta, to.now_ms),
    };
    let mut file = Lines { session, text: String::new(), ids: HashMap::new(), last: None, lost: Vec::new() };
    file.header(&native_id, to);
    file.entries();
    let time = iso(session.meta.created_at).replace([':', '.'], "-");
    let path = sessions.join(folder(&to.cwd)).join(format!("{time}_{native_id}.jsonl"));
    write_new(&path, file.text.as_bytes())?;
    let command = ["pi", "--session", &native_id].map(str::to_owned).to_vec();
    Ok(Written { native_id, paths: vec![path], command, lost: file.lost })
}

/// The folder of a working directory.
fn folder(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let cwd = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", cwd.replace(['/', '\\', ':'], "-"))
}

/// A file on its way.
struct Lines<'a> {
    session: &'a Outgoing,
    text: String,
    /// The ids that entries have in the file.
    ids: HashMap<EntryId, String>,
    last: Option<String>,
    lost: Vec<String>,
}

impl Lines<'_> {
    fn own(&self, entry: Option<&EntryId>) -> Own {
        Own { session: self.session.meta.session_id.clone(), entry: entry.cloned(), made_up: entry.is_none() }
    }

    fn header(&mut self, id: &str, to: &Destination) {
        let written = self.session.entries.iter().find_map(|entry| match entry {
            SessionEntry::Custom(custom) if custom.custom_type == "pi.session" => {
                Some((custom.data.parse().ok()?, entry))
            }
            _ => None,
        });
        let (mut header, entry): (Value, _) = written.map_or_else(
            || (json!({ "type": "session", "version": 3 }), None),
            |(header, entry)| (header, Some(entry.id().clone())),
        );
        header["version"] = 3.into();
        header["id"] = id.into();
        header["timestamp"] = iso(self.session.meta.created_at).into();
        header["cwd"] = to.cwd.to_string_lossy().into();
        let mut own = self.own(entry.as_ref());
        own.made_up = false;
        put_own(&mut header, &own);
        push_line(&mut self.text, &header);
    }

    fn entries(&mut self) {
        let session = self.session;
        let path = session.path();
        let is_own = |entry: &SessionEntry| own_record(entry).is_some();
        if session.entries.iter().all(is_own) {
            let (ordered, ends_elsewhere) = ordered(session, &path);
            for entry in ordered {
                self.put_own_record(entry);
            }
            if ends_elsewhere {
                let parent = session.leaf.as_ref().and_then(|leaf| self.ids.get(leaf)).cloned();
                self.add("custom", json!({ "customType": "banyan.leaf" }), parent, session.meta.updated_at);
            }
            return;
        }
        let story = Story::of(session);
        self.lost.extend(story.lost);
        let first_said = story.steps.iter().find_map(|step| match step {
            Step::User { content, .. } => content.iter().find_map(|block| match block {
                ContentBlock::Text(block) => Some(title_of(&block.text)),
                _ => None,
            }),
            Step::Assistant { .. } => None,
        });
        let mut steps: HashMap<EntryId, Step> = HashMap::new();
        for step in story.steps {
            let (Step::User { entry, .. } | Step::Assistant { entry, .. }) = &step;
            steps.insert(entry.clone(), step);
        }
        let mut named = false;
        for entry in path {
            if is_own(entry) {
                named |= matches!(entry, SessionEntry::Custom(custom) if custom.custom_type == "pi.session_info");
                self.put_own_record(entry);
            } else if let Some(step) = steps.remove(entry.id()) {
                self.step(&step);
            }
        }
        let title = session.meta.title.trim();
        if !named && !title.is_empty() && first_said.as_deref() != Some(title) {
            let last = self.last.clone();
            self.add("session_info", json!({ "name": title }), last, session.meta.updated_at);
        }
    }

    /// A record that no entry stands for.
    fn add(&mut self, kind: &str, fields: Value, parent: Option<String>, at: i64) {
        let id = format!("b{:07x}", self.text.len() & 0x0fff_ffff);
        let mut record = json!({ "type": kind, "id": id, "parentId": parent, "timestamp": iso(at) });
        if let (Some(record), Value::Object(fields)) = (record.as_object_mut(), fields) {
            record.extend(fields);
        }
        put_own(&mut record, &self.own(None));
        push_line(&mut self.text, &record);
        self.last = Some(id);
    }

    fn put_own_record(&mut self, entry: &SessionEntry) {
        let Some(mut record) = own_record(entry) else { return };
        if text_at(&record, "type") == "session" {
            return;
        }
        let parent = entry.parent_id().and_then(|parent| self.ids.get(parent)).cloned();
        if record.get("id").is_none_or(|id| !id.is_string()) {
            record["id"] = short(entry.id()).into();
            record["parentId"] = json!(self.last);
            if text_at(&record, "type") == "compaction" && record.get("firstKeptEntryId").is_none() {
                record["firstKeptEntryId"] = record["id"].clone();
            }
        } else if text_at(&record, "parentId") != parent.as_deref().unwrap_or_default() {
            record["parentId"] = json!(parent);
        }
        let id = text_at(&record, "id").to_owned();
        put_own(&mut record, &self.own(Some(entry.id())));
        push_line(&mut self.text, &record);
        self.ids.insert(entry.id().clone(), id.clone());
        self.last = Some(id);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::User { entry, content, at } => {
                let content: Vec<Value> = content.iter().filter_map(block).collect();
                let message = json!({ "role": "user", "content": content, "timestamp": at });
                self.message(Some(entry), message, *at, &short(entry));
            }
            Step::Assistant { entry, message, calls, at } => {
                let said = self.assistant(message, *at);
                self.message(Some(entry), said, *at, &short(entry));
                for Call { call, outcome } in calls {
                    let content: Vec<Value> = outcome.content.iter().filter_map(block).collect();
                    let result = json!({
                        "role": "toolResult", "toolCallId": call.id, "toolName": call.function_id, "content": content,
                        "isError": outcome.is_error, "timestamp": outcome.at,
                    });
                    let made_up = || short(&EntryId::from(format!("{entry} {}", call.id)));
                    let id = outcome.entry.as_ref().map_or_else(made_up, short);
                    self.message(outcome.entry.as_ref(), result, outcome.at, &id);
                }
            }
        }
    }

    fn assistant(&mut self, message: &AssistantMessage, at: i64) -> Value {
        let is_anthropic = message.provider == "anthropic";
        let mut content = Vec::new();
        for part in &message.content {
            if let ContentBlock::Thinking(thinking) = part {
                let mut block = json!({ "type": "thinking", "thinking": thinking.text });
                match &thinking.signature {
                    Some(signature) if is_anthropic => block["thinkingSignature"] = signature.as_str().into(),
                    Some(_) => {
                        self.lose("the seal on thinking, which pi reads only in the form of its own providers")
                    }
                    None => {}
                }
                content.push(block);
            } else {
                content.extend(block(part));
            }
        }
        let api = match message.provider.as_str() {
            "anthropic" => "anthropic-messages",
            "openai" => "openai-responses",
            _ => "openai-completions",
        };
        let stop = match message.stop_reason {
            StopReason::Length => "length",
            StopReason::FunctionCall => "toolUse",
            StopReason::Error => "error",
            StopReason::Aborted => "aborted",
            StopReason::End => "stop",
        };
        let mut said = json!({
            "role": "assistant", "content": content, "api": api, "provider": message.provider, "model": message.model,
            "usage": usage(message.usage.as_ref()), "stopReason": stop, "timestamp": at,
        });
        // pi does not send what failed; what was said before it failed is worth sending.
        if message.stop_reason == StopReason::Error {
            said["stopReason"] = if content_has_calls(message) { "toolUse".into() } else { "stop".into() };
        }
        said
    }

    fn message(&mut self, entry: Option<&EntryId>, message: Value, at: i64, id: &str) {
        let mut record = json!({
            "type": "message", "id": id, "parentId": self.last, "timestamp": iso(at), "message": message,
        });
        put_own(&mut record, &self.own(entry));
        push_line(&mut self.text, &record);
        if let Some(entry) = entry {
            self.ids.insert(entry.clone(), id.to_owned());
        }
        self.last = Some(id.to_owned());
    }

    fn lose(&mut self, what: &str) {
        if self.lost.iter().all(|known| known != what) {
            self.lost.push(what.to_owned());
        }
    }
}

fn content_has_calls(message: &AssistantMessage) -> bool {
    message.content.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)))
}

/// The id that an entry from elsewhere has in the file.
fn short(entry: &EntryId) -> String {
    blake3::hash(entry.as_str().as_bytes()).to_hex().chars().take(8).collect()
}

/// All entries, with the active path's end last, and whether that end has others behind it.
fn ordered<'a>(session: &'a Outgoing, path: &[&'a SessionEntry]) -> (Vec<&'a SessionEntry>, bool) {
    let on_path: HashSet<&EntryId> = path.iter().map(|entry| entry.id()).collect();
    let by_id: HashMap<&EntryId, &SessionEntry> =
        session.entries.iter().map(|entry| (entry.id(), entry)).collect();
    let mut needed: HashSet<&EntryId> = HashSet::new();
    for entry in session.entries.iter().filter(|entry| !on_path.contains(entry.id())) {
        let mut next = entry.parent_id();
        while let Some(parent) = next.filter(|parent| needed.insert(parent)) {
            next = by_id.get(parent).and_then(|parent| parent.parent_id());
        }
    }
    let early = |entry: &&SessionEntry| !on_path.contains(entry.id()) || needed.contains(entry.id());
    let mut ordered: Vec<&SessionEntry> = session.entries.iter().filter(|entry| early(entry)).collect();
    let late: Vec<&SessionEntry> = path.iter().copied().filter(|entry| !early(entry)).collect();
    let ends_elsewhere = late.is_empty() && ordered.last().map(|entry| entry.id()) != session.leaf.as_ref();
    ordered.extend(late);
    (ordered, ends_elsewhere)
}

/// The record that an entry was read from, if it was and if it still fits what it says.
fn own_record(entry: &SessionEntry) -> Option<Value> {
    let Native { mut record, .. } = natives(entry, "pi")?.into_iter().next()?;
    let entry = match entry {
        SessionEntry::Custom(custom) => return custom.data.parse().ok(),
        SessionEntry::Message(entry) => entry,
    };
    let message = entry.message.parse().ok()?;
    if !matches!(message, AgentMessage::Custom(_)) {
        blocks::fill(&mut record, &message)?;
    }
    Some(record)
}

fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(block) => Some(json!({ "type": "text", "text": block.text })),
        ContentBlock::Image(image) => Some(json!({ "type": "image", "data": image.data, "mimeType": image.mime })),
        ContentBlock::FunctionCall(call) => {
            let arguments = match call.arguments.parse().unwrap_or_default() {
                Value::Object(fields) => Value::Object(fields),
                Value::Null => json!({}),
                other => json!({ "input": other }),
            };
            Some(json!({ "type": "toolCall", "id": call.id, "name": call.function_id, "arguments": arguments }))
        }
        ContentBlock::Thinking(_) | ContentBlock::FunctionResult(_) | ContentBlock::File(_) => None,
    }
}

fn usage(usage: Option<&Usage>) -> Value {
    let usage = usage.cloned().unwrap_or_default();
    let [input, output, read, write] =
        [usage.input, usage.output, usage.cache_read, usage.cache_write].map(Option::unwrap_or_default);
    json!({
        "input": input, "output": output, "cacheRead": read, "cacheWrite": write,
        "totalTokens": input + output + read + write,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": usage.cost_usd.unwrap_or_default() },
    })
}
