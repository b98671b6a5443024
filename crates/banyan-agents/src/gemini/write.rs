//! Writes a chat as Gemini CLI would have.

use std::fs;
use std::path::{Path, PathBuf};

use banyan_model::{AgentMessage, MessageEntry, Object, SessionEntry};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::ID;
use super::lines::{Chat, from_us};
use crate::build::iso;
use crate::files::{files_below, write_new};
use crate::ids::unused_uuid;
use crate::steps::Steps;
use crate::{COMPACTION, Destination, OWN, Outgoing, Own, Problem, Step, Written};

pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let native_id =
        unused_uuid(session.native_id(ID), &session.meta.session_id, to.now_ms, &|id| is_taken(&to.home, id))?;
    let mut chat = Chat::new(session.meta.session_id.clone());
    chat.lines.push(metadata(session, to, &native_id));
    let lost = conversation(session, &mut chat);
    if !session.meta.title.is_empty() {
        chat.lines.push(json!({"$set": {"summary": session.meta.title}}));
    }
    let mut text = String::new();
    for line in &chat.lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let folder = project_folder(to)?;
    let minute = iso(session.meta.created_at).get(..16).unwrap_or_default().replace(':', "-");
    let short = native_id.get(..8).unwrap_or(&native_id);
    let path = folder.join("chats").join(format!("session-{minute}-{short}.jsonl"));
    write_new(&path, text.as_bytes())?;
    let command = ["gemini", "--resume", &native_id].map(str::to_owned).to_vec();
    Ok(Written { native_id, paths: vec![path], command, lost })
}

/// Sessions are found by the first eight digits of their ids, and by the ids themselves.
fn is_taken(home: &Path, id: &str) -> Result<bool, Problem> {
    let short = id.get(..8).unwrap_or(id).to_owned();
    let named = |path: &Path| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        super::is_chat(path) && (stem.ends_with(&short) || stem == id)
    };
    Ok(files_below(&home.join("tmp"), &named)?.iter().any(|file| named(file)))
}

/// The first line. A sub-agent's session goes out as one that can be resumed by itself.
fn metadata(session: &Outgoing, to: &Destination, native_id: &str) -> Value {
    let entries = session.path();
    let first = entries.iter().find_map(|entry| match entry {
        SessionEntry::Custom(entry) if entry.custom_type == "gemini.metadata" => entry.data.parse::<Object>().ok(),
        _ => None,
    });
    let hash = Sha256::digest(to.cwd.to_string_lossy().as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let own = Own { session: session.meta.session_id.clone(), entry: None, made_up: false };
    let mut line = Object::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("sessionId", native_id.into());
    put("projectHash", hash.into());
    put("startTime", iso(session.meta.created_at).into());
    put("lastUpdated", iso(session.meta.updated_at).into());
    put("kind", "main".into());
    put(OWN, json!(own));
    for (key, value) in first.into_iter().flatten() {
        if key != "directories" {
            line.entry(key).or_insert(value);
        }
    }
    Value::Object(line)
}

/// Writes the active path: steps as messages, and what came from this agent as it was.
fn conversation(session: &Outgoing, chat: &mut Chat) -> Vec<String> {
    let mut steps = Steps::of(session, ID);
    for entry in session.path() {
        match (entry, steps.take(entry.id())) {
            (SessionEntry::Message(entry), Some(Step::User { content, at, .. })) => chat.user(entry, &content, at),
            (SessionEntry::Message(entry), Some(Step::Assistant { message, calls, at, .. })) => {
                chat.model(session, entry, &message, &calls, at, &mut steps.lost);
            }
            (SessionEntry::Message(entry), None) => steps.left_out |= !beside(entry, chat),
            (SessionEntry::Custom(entry), _) if entry.custom_type == "gemini.metadata" => {}
            (SessionEntry::Custom(entry), _) if entry.custom_type.starts_with("gemini.") => {
                chat.lines.extend(entry.data.parse::<Value>());
            }
            (SessionEntry::Custom(_), _) => {}
        }
    }
    steps.lost()
}

/// Writes a message that is no part of the story. Says whether that was possible.
fn beside(entry: &MessageEntry, chat: &mut Chat) -> bool {
    let Ok(message) = entry.message.parse() else { return false };
    match &message {
        AgentMessage::Custom(custom) if from_us(entry).is_some() => {
            if custom.custom_type == COMPACTION {
                chat.compaction(entry, custom);
            } else {
                chat.user(entry, &custom.content, custom.timestamp);
            }
            true
        }
        AgentMessage::Custom(_) => false,
        AgentMessage::Assistant(failed) => {
            chat.failed(entry, failed);
            true
        }
        AgentMessage::User(_) | AgentMessage::FunctionResult(_) => true,
    }
}

/// The folder of a project: the one that says it is for this directory, else a new one.
fn project_folder(to: &Destination) -> Result<PathBuf, Problem> {
    let cwd = to.cwd.to_string_lossy();
    let tmp = to.home.join("tmp");
    let owner = |folder: &Path| fs::read_to_string(folder.join(".project_root")).ok();
    let registry = fs::read_to_string(to.home.join("projects.json")).unwrap_or_default();
    let registry: Value = serde_json::from_str(&registry).unwrap_or_default();
    let projects = registry.get("projects").and_then(Value::as_object).cloned().unwrap_or_default();
    let registered = projects.get(&*cwd).and_then(Value::as_str).map(|name| tmp.join(name));
    if let Some(folder) = registered
        && owner(&folder).is_none_or(|owner| owner.trim() == cwd)
    {
        return Ok(folder);
    }
    let folders = fs::read_dir(&tmp).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> =
        folders.filter(|folder| owner(folder).is_some_and(|owner| owner.trim() == cwd)).collect();
    folders.sort();
    if let Some(folder) = folders.into_iter().next() {
        return Ok(folder);
    }
    let name = short_name(&to.cwd);
    let is_free = |name: &String| {
        let registered = projects.values().any(|taken| taken.as_str() == Some(name));
        !registered && !tmp.join(name).exists()
    };
    let names = (0_u32..).map(|count| if count == 0 { name.clone() } else { format!("{name}-{count}") });
    let name = names.into_iter().find(is_free).unwrap_or_default();
    write_new(&tmp.join(&name).join(".project_root"), cwd.as_bytes())?;
    Ok(tmp.join(name))
}

/// A folder's name, made of the directory's.
fn short_name(cwd: &Path) -> String {
    let name = cwd.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if name.is_empty() { "project".to_owned() } else { name }
}
