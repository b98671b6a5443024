//! Writes a session as Copilot CLI would have: a log, and the small file about it.

use std::collections::HashSet;
use std::path::Path;

use banyan_model::{AgentMessage, EntryId, MessageEntry, Object, SessionEntry};
use serde_json::Value;

use super::lines::{Log, from_us};
use super::{EVENTS, ID, WORKSPACE};
use crate::build::iso;
use crate::files::write_new;
use crate::ids::unused_uuid;
use crate::steps::Steps;
use crate::{Call, Destination, Outgoing, Problem, Step, Written};

pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let folder = |id: &str| to.home.join("session-state").join(id);
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let is_taken = |id: &str| Ok(is_there(&folder(id)));
    let native_id = unused_uuid(session.native_id(ID), &session.meta.session_id, to.now_ms, &is_taken)?;
    let cwd = to.cwd.to_string_lossy().into_owned();
    let mut log = Log::new(session, &native_id, &cwd);
    let lost = conversation(session, &mut log);
    let paths = vec![folder(&native_id).join(EVENTS), folder(&native_id).join(WORKSPACE)];
    for (path, text) in paths.iter().zip([log.text(), workspace(session, &native_id, &cwd)]) {
        write_new(path, text.as_bytes())?;
    }
    let command = vec!["copilot".to_owned(), format!("--resume={native_id}")];
    Ok(Written { native_id, paths, command, lost })
}

/// The small file. Its texts are written as JSON has them, which YAML reads.
fn workspace(session: &Outgoing, native_id: &str, cwd: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!("id: {native_id}\ncwd: {}\n", quoted(cwd));
    if let Some(branch) = session.metadata("git_branch") {
        text.push_str(&format!("branch: {}\n", quoted(branch)));
    }
    if !session.meta.title.is_empty() {
        text.push_str(&format!("name: {}\nuser_named: true\n", quoted(&session.meta.title)));
    }
    let (created, updated) = (iso(session.meta.created_at), iso(session.meta.updated_at));
    text.push_str(&format!("summary_count: 0\nfork_count: 0\ncreated_at: {created}\nupdated_at: {updated}\n"));
    text
}

/// Writes the active path: steps as messages, and what came from this agent as it was.
fn conversation(session: &Outgoing, log: &mut Log<'_>) -> Vec<String> {
    let mut steps = Steps::of(session, ID);
    let own = from_here(session);
    // Results that stand where the agent had put them.
    let mut in_place: Vec<Call> = Vec::new();
    let path = session.path();
    let begins = path.first().is_some_and(
        |first| matches!(first, SessionEntry::Custom(custom) if custom.custom_type == "copilot.session.start"),
    );
    if !begins {
        log.start();
    }
    for entry in path {
        let message = match entry {
            SessionEntry::Message(message) => message,
            SessionEntry::Custom(custom) => {
                if let (true, Ok(record)) =
                    (custom.custom_type.starts_with("copilot."), custom.data.parse::<Object>())
                {
                    log.again(record, &custom.id);
                }
                continue;
            }
        };
        match steps.take(entry.id()) {
            Some(Step::User { content, at, .. }) => log.user(message, &content, at),
            Some(Step::Assistant { message: said, calls, at, .. }) => {
                log.assistant(message, &said, at, &mut steps.lost);
                let is_own = from_us(message).is_some();
                let stays = |call: &Call| is_own && call.outcome.entry.as_ref().is_some_and(|id| own.contains(id));
                let (later, now): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(stays);
                for call in &now {
                    log.result(call, None, &said.model, &mut steps.lost);
                }
                in_place.extend(later);
            }
            None => match in_place.iter().position(|call| call.outcome.entry.as_ref() == Some(entry.id())) {
                Some(place) => {
                    let call = in_place.swap_remove(place);
                    log.result(&call, from_us(message).as_ref(), "", &mut steps.lost);
                }
                None => steps.left_out |= !beside(message, log),
            },
        }
    }
    steps.lost()
}

/// The entries that came from this agent.
fn from_here(session: &Outgoing) -> HashSet<EntryId> {
    let own = session.entries.iter().filter(|entry| entry.origin().is_some_and(|origin| origin.has(ID)));
    own.map(|entry| entry.id().clone()).collect()
}

/// Writes a message that is no part of the story. Says whether that was possible.
fn beside(entry: &MessageEntry, log: &mut Log<'_>) -> bool {
    match entry.message.parse() {
        Ok(AgentMessage::Custom(custom)) if from_us(entry).is_some() => {
            log.context(entry, &custom);
            true
        }
        Ok(AgentMessage::Custom(_)) | Err(_) => false,
        Ok(AgentMessage::Assistant(failed)) => {
            log.failed(entry, &failed);
            true
        }
        Ok(AgentMessage::User(_) | AgentMessage::FunctionResult(_)) => true,
    }
}
