//! A session as Claude Code would have written it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use banyan_model::{AgentMessage, ContentBlock, EntryId, SessionEntry};
use serde_json::{Value, json};

use super::blocks;
use super::foreign::Foreign;
use crate::build::title_of;
use crate::files::write_new;
use crate::native::{Blocks, Native, natives, push_line, text_at};
use crate::story::{Step, Story};
use crate::{Destination, OWN, Outgoing, Own, Problem, Written, native_uuid};

/// Writes a session into a home.
pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let projects = to.home.join("projects");
    let old = session.native_id("claude").filter(|old| uuid::Uuid::try_parse(old).is_ok());
    let native_id = match old {
        Some(old) if !taken(&projects, old) => old.to_owned(),
        _ => native_uuid(&session.meta, to.now_ms),
    };
    let mut lines = Lines::new(session, &native_id, to);
    lines.path();
    let (text, lost) = (lines.text(), std::mem::take(&mut lines.lost));
    let path = projects.join(folder(&to.cwd)).join(format!("{native_id}.jsonl"));
    write_new(&path, text.as_bytes())?;
    let command = ["claude", "--resume", &native_id].map(str::to_owned).to_vec();
    Ok(Written { native_id, paths: vec![path], command, lost })
}

/// Whether some project has a session of this id.
fn taken(projects: &Path, id: &str) -> bool {
    let file = format!("{id}.jsonl");
    projects.read_dir().is_ok_and(|folders| folders.flatten().any(|folder| folder.path().join(&file).exists()))
}

/// The folder of a project.
fn folder(cwd: &Path) -> String {
    cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Writes our mark into a record, with the session that it belongs to: a copy elsewhere is not ours.
pub(super) fn mark(record: &mut Value, session: &Outgoing, entry: Option<&EntryId>, native: &str) {
    let own = Own { session: session.meta.session_id.clone(), entry: entry.cloned(), made_up: entry.is_none() };
    let mut own = json!(own);
    own["native"] = native.into();
    record[OWN] = own;
}

/// A file on its way.
struct Lines<'a> {
    session: &'a Outgoing,
    native: &'a str,
    /// Records, each with the line that it was.
    lines: Vec<(u64, Value)>,
    /// Records from here on have places that can be compared.
    run: usize,
    foreign: Foreign<'a>,
    lost: Vec<String>,
    first_said: Option<String>,
}

impl<'a> Lines<'a> {
    fn new(session: &'a Outgoing, native: &'a str, to: &Destination) -> Self {
        let foreign = Foreign::new(session, native, to);
        Self { session, native, lines: Vec::new(), run: 0, foreign, lost: Vec::new(), first_said: None }
    }

    /// All entries of the active path: as they were written once, or as Claude would write them.
    fn path(&mut self) {
        let path = self.session.path();
        let mut steps: HashMap<EntryId, Step> = HashMap::new();
        if path.iter().any(|entry| natives(entry, "claude").is_none()) || !self.try_path(&path) {
            let story = Story::of(self.session);
            self.lost.extend(story.lost);
            for step in story.steps {
                let (Step::User { entry, .. } | Step::Assistant { entry, .. }) = &step;
                steps.insert(entry.clone(), step);
            }
        }
        let mut last = None;
        for entry in path {
            self.first_said = self.first_said.take().or_else(|| first_text(entry));
            if !self.own(entry, &mut last) {
                self.settle_run();
                if let Some(step) = steps.remove(entry.id()) {
                    let made = self.foreign.step(&step, &mut last);
                    self.lines.extend(made.into_iter().map(|record| (0, record)));
                }
                self.run = self.lines.len();
            }
        }
        self.settle_run();
        self.lost.append(&mut self.foreign.lost);
    }

    /// Whether every entry goes back into the records that it was read from.
    fn try_path(&mut self, path: &[&SessionEntry]) -> bool {
        let mut last = None;
        let fits = path.iter().all(|entry| self.own(entry, &mut last));
        self.lines.clear();
        fits
    }

    /// Puts back the records that an entry was read from, if there are any and they still fit.
    fn own(&mut self, entry: &SessionEntry, last: &mut Option<String>) -> bool {
        let Some(records) = natives(entry, "claude") else { return false };
        let Some(records) = self.filled(entry, records) else { return false };
        for (line, mut record) in records {
            if record.get("sessionId").is_some() {
                record["sessionId"] = self.native.into();
            }
            // A sub-agent goes on as a session of its own.
            if let Some(fields) = record.as_object_mut().filter(|fields| fields.contains_key("isSidechain")) {
                fields.insert("isSidechain".to_owned(), false.into());
                fields.shift_remove("agentId");
            }
            if let Some(uuid) = record.get("uuid").and_then(Value::as_str) {
                *last = Some(uuid.to_owned());
            }
            mark(&mut record, self.session, Some(entry.id()), self.native);
            self.lines.push((line, record));
        }
        true
    }

    fn filled(&mut self, entry: &SessionEntry, records: Vec<Native>) -> Option<Vec<(u64, Value)>> {
        let entry = match entry {
            SessionEntry::Custom(custom) => {
                let line = records.first()?.line;
                return Some(vec![(line, custom.data.parse().ok()?)]);
            }
            SessionEntry::Message(entry) => entry,
        };
        let mut message = entry.message.parse().ok()?;
        if let AgentMessage::Assistant(assistant) = &mut message {
            assistant.content.extend(assistant.error_message.take().map(ContentBlock::text));
        }
        let mut blocks = Blocks::new(message.content().to_vec());
        // A part of a record whose beginning another entry put there.
        if records.is_empty() {
            let (_, record) = self.lines.last_mut()?;
            fill(record, &message, &mut blocks)?;
            return blocks.is_empty().then(Vec::new);
        }
        let mut filled = Vec::new();
        for Native { line, mut record } in records {
            fill(&mut record, &message, &mut blocks)?;
            filled.push((line, record));
        }
        blocks.is_empty().then_some(filled)
    }

    /// Puts records that were read in the order in which they stood.
    fn settle_run(&mut self) {
        if let Some(run) = self.lines.get_mut(self.run..) {
            run.sort_by_key(|(line, _)| *line);
        }
        self.run = self.lines.len();
    }

    /// The file. Nothing in it names a record that is not there.
    fn text(&self) -> String {
        let uuids: HashSet<&str> = self.lines.iter().map(|(_, record)| text_at(record, "uuid")).collect();
        let mut text = String::new();
        let title = self.session.meta.title.trim();
        let named = self.lines.iter().any(|(_, record)| text_at(record, "customTitle") == title);
        let derived = self.first_said.as_deref().map(title_of).is_some_and(|derived| derived == title);
        if !title.is_empty() && !named && !derived {
            let mut record = json!({ "type": "custom-title", "customTitle": title, "sessionId": self.native });
            mark(&mut record, self.session, None, self.native);
            push_line(&mut text, &record);
        }
        let mut last: Option<&str> = None;
        for (_, record) in &self.lines {
            let parent = text_at(record, "parentUuid");
            let names_leaf = text_at(record, "leafUuid");
            if text_at(record, "type") == "last-prompt" && !uuids.contains(names_leaf) {
                continue;
            }
            if !parent.is_empty() && !uuids.contains(parent) {
                let mut record = record.clone();
                record["parentUuid"] = json!(last);
                push_line(&mut text, &record);
            } else {
                push_line(&mut text, record);
            }
            last = record.get("uuid").and_then(Value::as_str).or(last);
        }
        text
    }
}

fn fill(record: &mut Value, message: &AgentMessage, blocks: &mut Blocks) -> Option<()> {
    if text_at(record, "type") == "attachment" {
        for rendered in record.get_mut("rendered")?.as_array_mut()? {
            blocks::fill(rendered, blocks)?;
        }
        return Some(());
    }
    let AgentMessage::FunctionResult(result) = message else {
        return record.get_mut("message").map_or(Some(()), |message| blocks::fill(message, blocks));
    };
    if !result.details.is_null() {
        record["toolUseResult"] = result.details.parse().ok()?;
    }
    blocks::fill_answer(record.get_mut("message")?, &result.function_call_id, blocks)
}

fn first_text(entry: &SessionEntry) -> Option<String> {
    let SessionEntry::Message(entry) = entry else { return None };
    let AgentMessage::User(message) = entry.message.parse().ok()? else { return None };
    message.content.into_iter().find_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text),
        _ => None,
    })
}
