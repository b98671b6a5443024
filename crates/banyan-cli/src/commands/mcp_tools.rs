//! The tools of `banyan mcp`. Answers are short texts, which say how to get more.

use std::fmt::Write;

use banyan::model::{
    AgentMessage, ContentBlock, EntryId, ListRequest, MessageItem, MessagesRequest, Role, SearchRequest, SessionId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::mcp::{WRONG_PARAMS, Wrong};
use crate::args::labels;
use crate::around::around;
use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;
use crate::moment::moment;
use crate::words::{count, one_line};

/// An answer has about so many bytes at most.
const MOST: usize = 16_000;
/// So much is shown of one entry, unless more is asked for.
const OF_ENTRY: usize = 1_500;
/// How long a search waits for what was just written.
const PATIENCE_MS: u64 = 2_000;

/// The tools, as an agent is told of them.
pub(super) fn described() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number =
        |about: &str, most: u64| json!({"type": "integer", "minimum": 0, "maximum": most, "description": about});
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        {
            "name": "search_sessions",
            "title": "Search sessions",
            "description": "Find messages of earlier sessions by their words, best first. All words must be there; \"quoted words\" one after another; begin* finds what begins so; -word leaves out. Identifiers and paths may be typed as they are.",
            "inputSchema": {"type": "object", "required": ["query"], "properties": {
                "query": text("What to look for."),
                "agent": text("Only in sessions of this agent, for example codex."),
                "workspace": text("Only in sessions that worked in this directory or below."),
                "role": {"type": "string", "enum": ["user", "assistant", "function_result", "custom"], "description": "Only what this role said."},
                "tool": text("Only calls of this function, and their results."),
                "since": text("Only since then: a date, an RFC 3339 time, or how long ago, like 12h or 3d."),
                "until": text("Only before then."),
                "session_id": text("Only in this session."),
                "all_branches": {"type": "boolean", "description": "Also branches that were left."},
                "limit": number("How many hits, 8 when left out.", 30),
                "cursor": text("Where the page before ended."),
            }},
            "annotations": reads,
        },
        {
            "name": "read_session",
            "title": "Read a session",
            "description": "Read messages of a session: around an entry that a search found, or from the beginning, or after an entry. Long messages are cut; ask for one entry with a larger max_chars to read it whole.",
            "inputSchema": {"type": "object", "required": ["session_id"], "properties": {
                "session_id": text("The session."),
                "entry_id": text("Read around this entry."),
                "before": number("With entry_id: how many entries before it, 2 when left out.", 20),
                "after": number("With entry_id: how many entries after it, 4 when left out.", 20),
                "after_entry_id": text("Read on after this entry of the active path."),
                "limit": number("How many entries, 8 when left out.", 30),
                "max_chars": number("How much of each entry, 1500 when left out.", 15_000),
            }},
            "annotations": reads,
        },
        {
            "name": "list_sessions",
            "title": "List sessions",
            "description": "The sessions that changed last: their ids, titles and where they worked.",
            "inputSchema": {"type": "object", "properties": {
                "agent": text("Only sessions of this agent."),
                "limit": number("How many, 15 when left out.", 50),
                "cursor": text("Where the page before ended."),
            }},
            "annotations": reads,
        },
    ])
}

#[derive(Deserialize)]
struct Asked {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Calls a tool. What the store refuses is an answer too, which the agent can read and act on.
pub(super) fn call(client: &dyn Client, params: &Value) -> Result<Value, Wrong> {
    let asked: Asked = read(params)?;
    let arguments = if asked.arguments.is_null() { json!({}) } else { asked.arguments };
    let told = match asked.name.as_str() {
        "search_sessions" => search(client, read(&arguments)?),
        "read_session" => read_session(client, read(&arguments)?),
        "list_sessions" => list(client, read(&arguments)?),
        other => {
            let message =
                format!("there is no tool `{other}`; there are search_sessions, read_session and list_sessions");
            return Err(Wrong { code: WRONG_PARAMS, message });
        }
    };
    Ok(match told {
        Ok(text) => json!({"content": [{"type": "text", "text": text}], "isError": false}),
        Err(failure) => json!({"content": [{"type": "text", "text": message_of(&failure)}], "isError": true}),
    })
}

fn message_of(failure: &Failure) -> &str {
    failure.refusal().map_or("the answer could not be given", |refusal| &refusal.message)
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Wrong> {
    serde_json::from_value(value.clone()).map_err(|error| Wrong { code: WRONG_PARAMS, message: error.to_string() })
}

#[derive(Deserialize)]
struct SearchSessions {
    query: String,
    agent: Option<String>,
    workspace: Option<String>,
    role: Option<Role>,
    tool: Option<String>,
    since: Option<String>,
    until: Option<String>,
    session_id: Option<SessionId>,
    all_branches: Option<bool>,
    limit: Option<usize>,
    cursor: Option<String>,
}

fn search(client: &dyn Client, asked: SearchSessions) -> Result<String, Failure> {
    let time = |text: Option<String>| text.map(|text| moment(&text).map_err(Failure::usage)).transpose();
    let request = SearchRequest {
        query: Some(asked.query),
        q: None,
        agent: asked.agent,
        workspace: asked.workspace,
        roles: asked.role.map(|role| vec![role]),
        tool: asked.tool,
        since: time(asked.since)?,
        until: time(asked.until)?,
        metadata: None,
        session_id: asked.session_id,
        all_branches: asked.all_branches,
        limit: Some(asked.limit.unwrap_or(8).clamp(1, 30)),
        cursor: asked.cursor,
        wait_ms: Some(PATIENCE_MS),
    };
    let found = ask(client, &request)?;
    let mut text = String::new();
    for (at, hit) in found.hits.iter().enumerate() {
        let snippet: String = hit
            .snippet
            .iter()
            .map(|piece| if piece.is_match { format!("**{}**", piece.text) } else { piece.text.clone() })
            .collect();
        let role = hit.role.map_or("entry", Role::as_str);
        let place = hit.workspace.as_deref().map(|place| format!(" in {}", one_line(place))).unwrap_or_default();
        let agent = hit.agent.as_deref().map(|agent| format!(", {}", one_line(agent))).unwrap_or_default();
        let branch = if hit.active { "" } else { ", on a branch that was left" };
        let _ = writeln!(
            text,
            "{}. {} ({role}{agent}, {}{place}{branch})\n   session_id={} entry_id={}\n   {}",
            at + 1,
            titled(&hit.title),
            day(hit.timestamp),
            hit.session_id,
            hit.entry_id,
            snippet.trim()
        );
    }
    if found.hits.is_empty() {
        text.push_str("Nothing was found. Try fewer words, or begin* for the beginning of a word.\n");
    } else {
        text.push_str("Read around a hit with read_session(session_id, entry_id).\n");
    }
    more(&mut text, found.next_cursor.as_deref());
    if !found.complete {
        text.push_str("The index is still catching up, so there may be more in a moment.\n");
    }
    Ok(text)
}

#[derive(Deserialize)]
struct ReadSession {
    session_id: SessionId,
    entry_id: Option<EntryId>,
    before: Option<usize>,
    after: Option<usize>,
    after_entry_id: Option<EntryId>,
    limit: Option<usize>,
    max_chars: Option<usize>,
}

fn read_session(client: &dyn Client, asked: ReadSession) -> Result<String, Failure> {
    let of_entry = asked.max_chars.unwrap_or(OF_ENTRY).clamp(1, 15_000);
    let (items, damaged) = match &asked.entry_id {
        Some(entry) => {
            let (before, after) = (asked.before.unwrap_or(2).min(20), asked.after.unwrap_or(4).min(20));
            (around(client, &asked.session_id, entry, before, after)?, Vec::new())
        }
        None => {
            let mut request = MessagesRequest::of(asked.session_id.clone());
            request.limit = Some(asked.limit.unwrap_or(8).clamp(1, 30));
            request.after_entry_id = asked.after_entry_id;
            request.include_image_data = Some(false);
            let page = ask(client, &request)?;
            (page.messages, page.damaged)
        }
    };
    let mut text = String::new();
    let mut last = None;
    for item in &items {
        let told = told(item, of_entry);
        if text.len() + told.len() > MOST && !text.is_empty() {
            break;
        }
        text.push_str(&told);
        last = Some(&item.entry_id);
    }
    for damaged in &damaged {
        let _ = writeln!(text, "[entry {} is damaged and was left out]", damaged.entry_id);
    }
    match last.or(damaged.last().map(|damaged| &damaged.entry_id)) {
        Some(last) => {
            let _ = writeln!(text, "Read on with after_entry_id={last}.");
        }
        None => text.push_str("There is nothing more to read.\n"),
    }
    Ok(text)
}

#[derive(Deserialize)]
struct ListSessions {
    agent: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

fn list(client: &dyn Client, asked: ListSessions) -> Result<String, Failure> {
    let pairs: Vec<(String, Value)> =
        asked.agent.map(|agent| ("agent".to_owned(), agent.into())).into_iter().collect();
    let request = ListRequest {
        limit: Some(asked.limit.unwrap_or(15).clamp(1, 50)),
        cursor: asked.cursor,
        metadata: labels(&pairs)?,
        ..ListRequest::default()
    };
    let page = ask(client, &request)?;
    let mut text = String::new();
    for meta in &page.sessions {
        let said = |key: &str| meta.metadata.as_ref()?.get(key)?.as_str().map(one_line);
        let agent = said("agent").map(|agent| format!(", {agent}")).unwrap_or_default();
        let place = said("cwd").map(|place| format!(" in {place}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} ({}{agent}, changed {}{place})\n   session_id={}",
            titled(&meta.title),
            count(meta.message_count, "message"),
            day(meta.updated_at),
            meta.session_id
        );
    }
    if page.sessions.is_empty() {
        text.push_str("There are no sessions.\n");
    }
    more(&mut text, page.next_cursor.as_deref());
    Ok(text)
}

fn more(text: &mut String, cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        let _ = writeln!(text, "There are more: pass cursor={cursor}.");
    }
}

fn titled(title: &str) -> String {
    let title = one_line(title);
    if title.is_empty() { "(no title)".to_owned() } else { title.chars().take(120).collect() }
}

fn day(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| "at an unknown time".to_owned(), |time| time.strftime("%Y-%m-%d %H:%MZ").to_string())
}

/// An entry in plain text, with its id.
fn told(item: &MessageItem, most: usize) -> String {
    let (who, said) = match (&item.message, &item.custom) {
        (Some(message), _) => match message.parse() {
            Ok(message) => (message.role().as_str().to_owned(), said(&message)),
            Err(error) => ("entry".to_owned(), format!("(cannot be shown: {})", error.message)),
        },
        (None, Some(custom)) => (custom.custom_type.clone(), custom.data.get().to_owned()),
        (None, None) => ("entry".to_owned(), String::new()),
    };
    let whole = said.chars().count();
    let mut shown: String = said.chars().take(most).collect();
    if whole > most {
        let _ = write!(shown, "… ({} more characters)", whole - most);
    }
    format!("[{who}] entry_id={}\n{shown}\n\n", item.entry_id)
}

fn said(message: &AgentMessage) -> String {
    let mut text = String::new();
    if let AgentMessage::FunctionResult(result) = message {
        let _ = writeln!(text, "({} gave back)", result.function_id);
    }
    blocks(message.content(), &mut text);
    text.trim_end().to_owned()
}

fn blocks(content: &[ContentBlock], text: &mut String) {
    for block in content {
        let _ = match block {
            ContentBlock::Text(block) => writeln!(text, "{}", block.text),
            ContentBlock::Thinking(block) => writeln!(text, "(thinking) {}", block.text),
            ContentBlock::FunctionCall(call) => {
                writeln!(text, "(calls {} with {})", call.function_id, call.arguments.get())
            }
            ContentBlock::FunctionResult(result) => {
                blocks(&result.content, text);
                Ok(())
            }
            ContentBlock::Image(image) => writeln!(text, "(a picture, {})", image.mime),
            ContentBlock::File(file) => writeln!(text, "(a file, {})", file.name),
        };
    }
}
