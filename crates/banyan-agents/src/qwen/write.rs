//! Writes a chat as Qwen Code would have.

use std::collections::HashSet;
use std::path::Path;

use banyan_model::{AgentMessage, EntryId, MessageEntry, Object, SessionEntry};
use serde_json::{Value, json};

use super::ID;
use super::lines::{Chat, Whose};
use super::record::pieces;
use crate::files::write_new;
use crate::ids::unused_uuid;
use crate::steps::Steps;
use crate::{Call, Destination, Outgoing, Problem, Step, Written};

pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let cwd = to.cwd.to_string_lossy().into_owned();
    let folder = to.home.join("projects").join(slug(&cwd));
    let file = |id: &str| folder.join("chats").join(format!("{id}.jsonl"));
    // A sub-agent's id is no UUID, so its session gets one of its own.
    let native_id =
        unused_uuid(session.native_id(ID), &session.meta.session_id, to.now_ms, &|id| Ok(is_there(&file(id))))?;
    let mut chat = Chat::new(session, &native_id, &cwd);
    let lost = conversation(session, &mut chat);
    chat.title(&session.meta.title);
    let path = file(&native_id);
    write_new(&path, chat.text().as_bytes())?;
    let command = ["qwen", "--resume", &native_id].map(str::to_owned).to_vec();
    Ok(Written { native_id, paths: vec![path], command, lost })
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The name of a directory's folder.
fn slug(cwd: &str) -> String {
    cwd.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect()
}

/// Writes the active path: steps as messages, and what came from this agent as it was.
fn conversation(session: &Outgoing, chat: &mut Chat<'_>) -> Vec<String> {
    let mut steps = Steps::of(session, ID);
    // Results that stand where the agent had put them.
    let mut in_place: Vec<Call> = Vec::new();
    for entry in session.path() {
        let message = match entry {
            SessionEntry::Message(message) => message,
            SessionEntry::Custom(custom) => {
                if let (true, Ok(record)) =
                    (custom.custom_type.starts_with("qwen."), custom.data.parse::<Object>())
                {
                    chat.again(record, &custom.id);
                }
                continue;
            }
        };
        match steps.take(entry.id()) {
            Some(Step::User { content, at, .. }) => chat.user(message, &content, at),
            Some(Step::Assistant { message: said, calls, at, .. }) => {
                chat.assistant(message, &said, at, &mut steps.lost);
                let own = from_here(session);
                let is_own = !pieces(message.origin.as_ref()).is_empty();
                let (later, now): (Vec<Call>, Vec<Call>) = calls
                    .into_iter()
                    .partition(|call| is_own && call.outcome.entry.as_ref().is_some_and(|id| own.contains(id)));
                for call in &now {
                    chat.result(call, &[]);
                }
                in_place.extend(later);
            }
            None => {
                let found = in_place.iter().position(|call| call.outcome.entry.as_ref() == Some(entry.id()));
                match found {
                    Some(place) => chat.result(&in_place.swap_remove(place), &pieces(message.origin.as_ref())),
                    None => steps.left_out |= !beside(message, chat),
                }
            }
        }
    }
    steps.lost()
}

/// The results that came from this agent.
fn from_here(session: &Outgoing) -> HashSet<EntryId> {
    let own = session.entries.iter().filter(|entry| !pieces(entry.origin()).is_empty());
    own.map(|entry| entry.id().clone()).collect()
}

/// Writes a message that is no part of the story. Says whether that was possible.
fn beside(entry: &MessageEntry, chat: &mut Chat<'_>) -> bool {
    let is_own = entry.origin.as_ref().is_some_and(|origin| origin.has(ID));
    match entry.message.parse() {
        Ok(AgentMessage::Custom(custom)) if is_own => {
            match custom.details.as_ref().and_then(|details| details.parse::<Object>().ok()) {
                Some(record) => chat.again(record, &entry.id),
                None => chat.user(entry, &custom.content, custom.timestamp),
            }
            true
        }
        Ok(AgentMessage::Custom(_)) | Err(_) => false,
        Ok(AgentMessage::Assistant(failed)) => {
            let known = pieces(entry.origin.as_ref()).into_iter().next().map(|piece| piece.record);
            let event = json!({
                "event.name": "qwen-code.api_error",
                "event.timestamp": crate::build::iso(failed.timestamp),
                "model": failed.model,
                "duration_ms": 0,
                "error_message": failed.error_message,
            });
            let record = known.unwrap_or_else(|| {
                let fields = [("subtype", "ui_telemetry".into()), ("systemPayload", json!({"uiEvent": event}))];
                let fields = fields.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value));
                chat.record("system", failed.timestamp).into_iter().chain(fields).collect()
            });
            chat.push(record, Whose::Entry(&entry.id));
            true
        }
        Ok(AgentMessage::User(_) | AgentMessage::FunctionResult(_)) => true,
    }
}
