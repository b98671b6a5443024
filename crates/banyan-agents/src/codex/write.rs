//! A session as Codex would have written it: one rollout, with everything in it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use banyan_model::{AgentMessage, ContentBlock, EntryId, SessionEntry, SessionId};
use serde_json::{Value, json};

use super::foreign::{Foreign, line};
use super::{filled, lineage};
use crate::build::{iso, title_of};
use crate::files::write_new;
use crate::native::{Blocks, Native, natives, push_line, put_own, text_at};
use crate::story::{Step, Story};
use crate::{COMPACTION, Destination, OWN, Outgoing, Own, Problem, Written, native_uuid};

/// The version that a session from elsewhere says it was written by: the newest one that this was tried with.
const VERSION: &str = "0.166.0";

/// Writes a session into a home.
pub(super) fn write(session: &Outgoing, to: &Destination) -> Result<Written, Problem> {
    let old = session.native_id("codex");
    let native_id = match old {
        Some(old) if !taken(&to.home, old)? => old.to_owned(),
        _ => native_uuid(&session.meta, to.now_ms),
    };
    let mut rollout = Rollout::new(session, &native_id, to);
    rollout.path(session);
    let lost = std::mem::take(&mut rollout.lost);
    let path = to.home.join(file_name(session.meta.created_at, &native_id));
    write_new(&path, rollout.text(old).as_bytes())?;
    name(&to.home, session, &native_id, rollout.first_said.as_deref())?;
    let command = ["codex", "resume", &native_id].map(str::to_owned).to_vec();
    Ok(Written { native_id, paths: vec![path], command, lost })
}

/// Whether a home has a thread of this id.
fn taken(home: &Path, id: &str) -> Result<bool, Problem> {
    let named = |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
    Ok(lineage::rollouts(home)?.iter().any(named))
}

fn file_name(created_at: i64, id: &str) -> PathBuf {
    let time = iso(created_at);
    let (date, clock) = (time.get(..10).unwrap_or_default(), time.get(11..19).unwrap_or_default());
    let folder = format!("sessions/{}", date.replace('-', "/"));
    Path::new(&folder).join(format!("rollout-{date}T{}-{id}.jsonl", clock.replace(':', "-")))
}

/// Adds the session's name to the index, as a rename does. A title that is only the first words needs no name.
fn name(home: &Path, session: &Outgoing, id: &str, first_said: Option<&str>) -> Result<(), Problem> {
    let title = session.meta.title.trim();
    if title.is_empty() || first_said.map(title_of).as_deref() == Some(title) {
        return Ok(());
    }
    let path = home.join("session_index.jsonl");
    let failed = |error| Problem::io(&path, error);
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path).map_err(failed)?;
    let mut line = json!({"id": id, "thread_name": title, "updated_at": iso(session.meta.updated_at)}).to_string();
    line.push('\n');
    if file.seek(SeekFrom::End(-1)).is_ok() {
        let mut last = [0];
        file.read_exact(&mut last).map_err(failed)?;
        if last != *b"\n" {
            line.insert(0, '\n');
        }
    }
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// A rollout on its way.
struct Rollout {
    meta: Value,
    /// Lines with the place that they had, so that what stood between the parts of a response stands there again.
    lines: Vec<(u64, Value)>,
    /// Lines from here on have places that can be compared.
    run: usize,
    lost: Vec<String>,
    first_said: Option<String>,
    paginated: bool,
}

impl Rollout {
    fn new(session: &Outgoing, id: &str, to: &Destination) -> Self {
        let mut meta = session.path().into_iter().rev().find_map(meta_of).unwrap_or_else(|| {
            let created = iso(session.meta.created_at);
            let payload = json!({
                "id": id, "timestamp": created, "cwd": "", "originator": "codex_cli_rs", "cli_version": VERSION,
                "source": "cli",
            });
            line(session.meta.created_at, "session_meta", payload)
        });
        if meta.get("payload").is_none() {
            let payload = meta.take();
            meta = line(session.meta.created_at, "session_meta", payload);
        }
        let paginated = text_at(&meta["payload"], "history_mode") == "paginated";
        if let Some(payload) = meta["payload"].as_object_mut() {
            let family = payload.get("session_id") == payload.get("id");
            if family && payload.contains_key("session_id") {
                payload.insert("session_id".to_owned(), id.into());
            }
            payload.insert("id".to_owned(), id.into());
            payload.insert("cwd".to_owned(), to.cwd.to_string_lossy().into());
            for gone in ["history_base", "forked_from_ordinal_exclusive"] {
                payload.shift_remove(gone);
            }
        }
        let own = Own { session: session.meta.session_id.clone(), entry: None, made_up: false };
        put_own(&mut meta, &own);
        Self { meta, lines: Vec::new(), run: 0, lost: Vec::new(), first_said: None, paginated }
    }

    /// All entries of the active path: as they were written once, or as Codex would write them.
    fn path(&mut self, session: &Outgoing) {
        let path = session.path();
        let is_own = |entry: &&SessionEntry| own_lines(entry, &session.meta.session_id).is_some();
        let mut steps: HashMap<EntryId, Step> = HashMap::new();
        if !path.iter().all(is_own) {
            let story = Story::of(session);
            self.lost.extend(story.lost);
            for step in story.steps {
                let (Step::User { entry, .. } | Step::Assistant { entry, .. }) = &step;
                steps.insert(entry.clone(), step);
            }
        }
        let mut foreign = Foreign::new(session, self.paginated);
        for entry in path {
            self.first_said = self.first_said.take().or_else(|| first_text(entry));
            let lines = match own_lines(entry, &session.meta.session_id) {
                Some(lines) => lines,
                None => {
                    self.settle_run();
                    let made = steps.remove(entry.id()).map(|step| foreign.step(&step)).unwrap_or_default();
                    self.lines.extend(made.into_iter().map(|line| (0, line)));
                    self.run = self.lines.len();
                    continue;
                }
            };
            let own =
                Own { session: session.meta.session_id.clone(), entry: Some(entry.id().clone()), made_up: false };
            for (place, mut line) in lines {
                if text_at(&line, "type") == "session_meta" {
                    if meta_key(&line) == meta_key(&self.meta) {
                        put_own(&mut self.meta, &own);
                    }
                    continue;
                }
                put_own(&mut line, &own);
                self.lines.push((place, line));
            }
        }
        self.settle_run();
        self.lost.append(&mut foreign.lost);
        self.lost.dedup();
    }

    /// Puts lines that were read in the order in which they stood.
    fn settle_run(&mut self) {
        if let Some(run) = self.lines.get_mut(self.run..) {
            run.sort_by_key(|(place, _)| *place);
        }
        self.run = self.lines.len();
    }

    /// The file. Another id than before stands wherever the old one stood.
    fn text(&self, old: Option<&str>) -> String {
        let mut text = String::new();
        let all = std::iter::once(&self.meta).chain(self.lines.iter().map(|(_, line)| line));
        for (ordinal, line) in all.enumerate() {
            let mut line = line.clone();
            if let Some(fields) = line.as_object_mut() {
                fields.shift_remove("ordinal");
                if self.paginated {
                    let at = usize::from(fields.contains_key("timestamp"));
                    fields.shift_insert(at, "ordinal".to_owned(), ordinal.into());
                }
            }
            push_line(&mut text, &line);
        }
        let new = text_at(&self.meta["payload"], "id");
        match old.filter(|old| *old != new && old.len() == 36) {
            // Our own marks name the session, whose id holds the old one.
            Some(old) => text.replace(old, new).replace(&format!("codex_{new}"), &format!("codex_{old}")),
            None => text,
        }
    }
}

fn meta_of(entry: &SessionEntry) -> Option<Value> {
    let SessionEntry::Custom(entry) = entry else { return None };
    if entry.custom_type == "codex.session_meta" { entry.data.parse().ok() } else { None }
}

/// What tells one first line from another.
fn meta_key(meta: &Value) -> (&str, &str) {
    (text_at(meta, "timestamp"), text_at(&meta["payload"], "timestamp"))
}

fn first_text(entry: &SessionEntry) -> Option<String> {
    let SessionEntry::Message(entry) = entry else { return None };
    let AgentMessage::User(message) = entry.message.parse().ok()? else { return None };
    message.content.into_iter().find_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text).filter(|text| !text.trim_start().starts_with('<')),
        _ => None,
    })
}

/// The lines that an entry was read from, with their places, if it was and if they still fit what it says.
fn own_lines(entry: &SessionEntry, session: &SessionId) -> Option<Vec<(u64, Value)>> {
    let natives = natives(entry, "codex")?;
    let lines = match entry {
        SessionEntry::Custom(entry) => {
            let line = natives.first()?.line;
            entry
                .custom_type
                .starts_with("codex.")
                .then(|| entry.data.parse().ok())?
                .map(|data| vec![(line, data)])?
        }
        SessionEntry::Message(entry) => {
            let message = entry.message.parse().ok()?;
            if let AgentMessage::Custom(custom) = &message
                && custom.custom_type == COMPACTION
            {
                return Some(vec![(natives.first()?.line, custom.details.as_ref()?.parse().ok()?)]);
            }
            let mut blocks = Blocks::new(message.content().to_vec());
            let mut lines = Vec::new();
            for Native { line, mut record } in natives {
                if text_at(&record, "type") == "event_msg" {
                    let event = &mut record["payload"];
                    if text_at(event, "type") == "agent_reasoning" {
                        let ContentBlock::Thinking(thinking) = blocks.next()? else { return None };
                        event["text"] = thinking.text.into();
                        put_own(
                            event,
                            &Own { session: session.clone(), entry: Some(entry.id.clone()), made_up: false },
                        );
                    }
                } else {
                    let bare = record.get("payload").is_none();
                    filled::fill(if bare { &mut record } else { &mut record["payload"] }, &mut blocks)?;
                }
                lines.push((line, record));
            }
            blocks.is_empty().then_some(lines)?
        }
    };
    let wrapped = lines.into_iter().map(|(place, record)| {
        let place = record.get("ordinal").and_then(Value::as_u64).unwrap_or(place);
        let is_bare = record.get("payload").is_none();
        (place, if is_bare { line(entry.timestamp(), "response_item", record) } else { record })
    });
    Some(wrapped.filter(|(_, record)| record.get(OWN).is_none()).collect())
}
