//! One file, line by line.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use banyan_model::{AgentMessage, CustomMessage, EntryId, Json, Object, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blocks;
use crate::build::{Place, millis};
use crate::lines::{Line, Taken, without_bom};
use crate::native::{self, Left, take_own, text_at};
use crate::rest::{Text, if_text};
use crate::telling::Telling;
use crate::{COMPACTION, Head, Note, OWN, Own, Problem, Sink, entry_id, session_id};

/// So many entries back a continued reading finds the one that a new one follows.
const RECENT: usize = 32;
/// A header is at most so long.
const HEADER: u64 = 1 << 20;

/// The fields that decide where a line goes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "if_text", rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    parent_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    timestamp: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    name: Option<Text<'a>>,
    #[serde(default, rename = "x_banyan")]
    own: Option<Own>,
}

/// What a reading has to remember between two lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The newest entry, and the one of the header.
    tip: Option<EntryId>,
    root: Option<EntryId>,
    recent: VecDeque<(String, EntryId)>,
    at: i64,
}

/// Reads the lines of one file.
pub(super) struct Reading {
    pub(super) telling: Telling,
    state: State,
    known: HashMap<String, EntryId>,
    told: u64,
    continued: bool,
    /// Where a continued reading met an entry that follows one it does not know.
    pub(super) stuck: Option<u64>,
}

impl Reading {
    pub(super) fn new(telling: Telling, state: Option<State>, told: u64) -> Self {
        let continued = state.is_some();
        let state = state.unwrap_or_default();
        let known = state.recent.iter().cloned().collect();
        Self { telling, state, known, told, continued, stuck: None }
    }

    pub(super) fn finish(mut self, sink: &mut dyn Sink) -> Result<(Telling, State), Problem> {
        if let Some(tip) = &self.state.tip {
            sink.leaf(&self.telling.head.session, tip)?;
        }
        self.telling.head.updated_at = self.telling.head.updated_at.max(self.state.at);
        self.telling.end(sink)?;
        Ok((self.telling, self.state))
    }

    /// Takes a line.
    pub(super) fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        if self.stuck.is_some() {
            return Ok(Taken::Yes);
        }
        let envelope: Envelope<'_> = match serde_json::from_str(&line.text) {
            Ok(envelope) => envelope,
            Err(error) => return Ok(Taken::NotARecord(error.to_string())),
        };
        if line.glued && (envelope.kind.is_none() || envelope.id.is_none() || envelope.timestamp.is_none()) {
            return Ok(Taken::is_a_part());
        }
        let kind = envelope.kind.as_deref().unwrap_or("record");
        if let Some(at) = envelope.timestamp.and_then(time) {
            self.state.at = at;
        }
        self.telling.begin(Some(self.state.at), sink)?;
        if kind == "session_info" {
            self.telling.name(envelope.name.as_deref().unwrap_or_default());
            self.telling.tell(sink)?;
        }
        let is_header = kind == "session" && self.state.root.is_none();
        let native = envelope.id.as_deref().filter(|_| !is_header);
        let Some(parent) = self.parent(native, envelope.parent_id.as_deref(), line, sink)? else {
            return Ok(Taken::Yes);
        };
        let own = envelope.own.filter(|_| self.telling.own);
        if own.as_ref().is_some_and(|own| own.made_up) {
            if let (Some(native), Some(parent)) = (native, &parent) {
                self.remember(native, parent);
                self.state.tip = Some(parent.clone());
            }
            return Ok(Taken::Yes);
        }
        let mut key = native.map_or_else(|| format!("line {}", line.number), str::to_owned);
        if native.is_some_and(|native| self.known.contains_key(native)) {
            sink.note(note(line, format!("entry {key} is there twice"), false));
            key = format!("{key} line {}", line.number);
        }
        let id = own.and_then(|own| own.entry).unwrap_or_else(|| entry_id(&self.telling.head.session, &key));
        self.tell(kind, id.clone(), parent, line, sink)?;
        if is_header {
            self.state.root = Some(id.clone());
        }
        if let Some(native) = native {
            self.remember(native, &id);
        }
        self.state.tip = Some(id);
        Ok(Taken::Yes)
    }

    /// The entry that a line follows. None if only a reading from the start can tell.
    fn parent(
        &mut self,
        native: Option<&str>,
        parent: Option<&str>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<Option<EntryId>>, Problem> {
        // Lines without ids, as the first version wrote them, follow one another.
        if native.is_none() {
            return Ok(Some(self.state.tip.clone()));
        }
        let Some(parent) = parent else { return Ok(Some(self.state.root.clone())) };
        if let Some(known) = self.known.get(parent) {
            return Ok(Some(Some(known.clone())));
        }
        if self.continued {
            let id = entry_id(&self.telling.head.session, parent);
            if !self.telling.own && sink.knows(&self.telling.head.session, &id)? {
                return Ok(Some(Some(id)));
            }
            self.stuck = Some(line.offset);
            return Ok(None);
        }
        sink.note(note(
            line,
            format!("it follows {parent}, which is not there; put behind the one before"),
            false,
        ));
        Ok(Some(self.state.tip.clone()))
    }

    fn tell(
        &mut self,
        kind: &str,
        id: EntryId,
        parent: Option<EntryId>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let at = self.state.at;
        let place = |record: Value| {
            let record = (!record.is_null()).then(|| record.to_string());
            let origin = Some(native::origin("pi", &[Left { line: line.number, record }]));
            Place { id: id.clone(), parent: parent.clone(), at, revision: 0, origin }
        };
        let is_message = matches!(kind, "message" | "custom_message" | "branch_summary" | "compaction");
        let value = if is_message { value(&line.text) } else { None };
        let entry = match value {
            Some(mut record) => {
                let message = match record.get_mut("message").filter(|_| kind == "message") {
                    Some(message) => blocks::take_message(message, at),
                    None => None,
                };
                match message {
                    Some(message) => {
                        self.learn(&message, sink)?;
                        place(record).message(&message)?
                    }
                    None => place(record.clone()).message(&context(kind, &record, at))?,
                }
            }
            None => {
                let Some(data) = json(&line.text) else {
                    sink.note(note(line, "the record is too deep or too odd to be kept".to_owned(), true));
                    return Ok(());
                };
                place(Value::Null).custom(format!("pi.{kind}"), data)
            }
        };
        if line.offset >= self.told {
            sink.entry(&self.telling.head.session, entry)?;
        }
        Ok(())
    }

    fn learn(&mut self, message: &AgentMessage, sink: &mut dyn Sink) -> Result<(), Problem> {
        match message {
            AgentMessage::User(message) => self.telling.said(&message.content, sink)?,
            AgentMessage::Assistant(message) => {
                self.telling.model(&message.model);
                self.telling.put("provider", &message.provider);
            }
            AgentMessage::FunctionResult(_) | AgentMessage::Custom(_) => {}
        }
        Ok(())
    }

    fn remember(&mut self, native: &str, entry: &EntryId) {
        self.known.insert(native.to_owned(), entry.clone());
        self.state.recent.push_back((native.to_owned(), entry.clone()));
        if self.state.recent.len() > RECENT {
            self.state.recent.pop_front();
        }
    }
}

/// A message that nobody said: what pi or an extension put there, and what stands for everything before it.
fn context(kind: &str, record: &Value, timestamp: i64) -> AgentMessage {
    let holder = record.get("message").filter(|_| kind == "message").unwrap_or(record);
    let is_compaction = kind == "compaction";
    let custom_type = match kind {
        "compaction" => COMPACTION.to_owned(),
        "message" => format!("pi.{}", text_at(holder, "role")),
        kind => format!("pi.{kind}"),
    };
    let details = is_compaction.then(|| native::json_of(record));
    let content = blocks::context(holder);
    AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details, timestamp })
}

fn time(raw: &serde_json::value::RawValue) -> Option<i64> {
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => millis(&text),
        number => number.as_i64(),
    }
}

fn value(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    take_own(&mut value);
    Some(value)
}

fn json(text: &str) -> Option<Json> {
    if memchr::memmem::find(text.as_bytes(), OWN.as_bytes()).is_none() {
        return Json::vouched(text).ok();
    }
    Json::of(&value(text)?).ok()
}

fn note(line: &Line<'_>, what: String, lost: bool) -> Note {
    Note { place: format!("line {}", line.number), what, lost }
}

/// What the header says of the session.
pub(super) fn head(path: &Path) -> Result<Telling, Problem> {
    let failed = |error| Problem::io(path, error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    BufReader::new(file).take(HEADER).read_until(b'\n', &mut bytes).map_err(failed)?;
    let header: Value = serde_json::from_slice(without_bom(&bytes)).unwrap_or_default();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let native_id = match text_at(&header, "id") {
        "" => id_in(stem),
        id => id,
    };
    let own: Option<Own> = header.get(OWN).and_then(|own| serde_json::from_value(own.clone()).ok());
    let created_at = millis(text_at(&header, "timestamp")).unwrap_or_default();
    let mut metadata = Object::new();
    metadata.insert("agent".to_owned(), "pi".into());
    metadata.insert("native_id".to_owned(), native_id.into());
    metadata.insert("source".to_owned(), path.to_string_lossy().into());
    metadata.extend(header.get("cwd").map(|cwd| ("cwd".to_owned(), cwd.clone())));
    let parent = header.get("parentSession").and_then(Value::as_str);
    let parent =
        parent.map(|parent| Path::new(parent).file_stem().and_then(|stem| stem.to_str()).unwrap_or(parent));
    let is_own = own.is_some();
    let head = Head {
        session: own.map_or_else(|| session_id("pi", native_id), |own| own.session),
        title: String::new(),
        created_at,
        updated_at: created_at,
        status: SessionStatus::Idle,
        metadata,
        forked_from: parent.map(|parent| session_id("pi", id_in(parent))),
    };
    Ok(Telling::new(head, false, is_own))
}

/// The id in a file's name, which comes after the time.
fn id_in(stem: &str) -> &str {
    stem.rsplit_once('_').map_or(stem, |(_, id)| id)
}
