//! Reads a log: the session's own events, and those of each agent that it called as a session of its own.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use banyan_model::{AgentMessage, ContentBlock, EntryId, Json, Object, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ID;
use super::event::{Consumed, Event};
use super::place::Workspace;
use crate::build::{Place, title_of};
use crate::{Between, Head, Line, Lines, Mark, Note, Problem, Sink, Source, Taken, entry_id, session_id};

/// What is known after a part of a log was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    place: Between,
    /// The last event.
    last: String,
    /// The session itself.
    main: Option<Thread>,
    /// The agents that it called, by their ids.
    #[serde(default)]
    called: BTreeMap<String, Thread>,
}

/// The events of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Thread {
    head: Head,
    last: Option<EntryId>,
    #[serde(default)]
    consumed: Option<Consumed>,
    /// The tools of calls that have no result yet.
    #[serde(default)]
    open: BTreeMap<String, String>,
    /// Whether the title is not made of what was said.
    #[serde(default)]
    named: bool,
}

pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let state: State = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
    let lines = Lines::open(&source.path, state.place)?;
    let state = if lines.anew() { State::default() } else { state };
    let before = state.clone();
    for thread in before.main.iter().chain(before.called.values()) {
        sink.head(&thread.head)?;
    }
    let workspace = Workspace::beside(&source.path);
    let mut reader = Reader { path: &source.path, workspace, state, seen: HashSet::new() };
    let place = lines.each(sink, |line, sink| reader.line(line, sink))?;
    reader.state.place = place;
    reader.name();
    let state = reader.state;
    let known = |id: &String| before.called.get(id);
    let threads = state.called.iter().map(|(id, thread)| (thread, known(id)));
    for (thread, before) in state.main.iter().map(|main| (main, before.main.as_ref())).chain(threads) {
        if before.is_none_or(|before| before.head != thread.head) {
            sink.head(&thread.head)?;
        }
        if let Some(last) = &thread.last {
            sink.leaf(&thread.head.session, last)?;
        }
    }
    Ok(Mark(Json::of(&state)?))
}

struct Reader<'a> {
    path: &'a Path,
    workspace: Workspace,
    state: State,
    /// The events of this reading.
    seen: HashSet<String>,
}

impl Reader<'_> {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) -> Result<Taken, Problem> {
        let event: Event<'_> = match serde_json::from_str(&line.text) {
            Ok(event) => event,
            Err(error) => return Ok(Taken::NotARecord(error.to_string())),
        };
        let record: Object = match serde_json::from_str(&line.text) {
            Ok(record) => record,
            Err(error) => return Ok(Taken::NotARecord(error.to_string())),
        };
        if line.glued && !(event.timestamp.is_some() && record.contains_key("data")) {
            return Ok(Taken::is_a_part());
        }
        if !self.seen.insert((*event.id).to_owned()) {
            let what = format!("the event {} stands twice; the second one was left out", &*event.id);
            sink.note(Note { place: format!("line {}", line.number), what, lost: true });
            return Ok(Taken::Yes);
        }
        let follows = event.parent.as_deref() == Some(&self.state.last);
        (*event.id).clone_into(&mut self.state.last);
        let at = event.at().or(self.state.main.as_ref().map(|main| main.head.updated_at)).unwrap_or_default();
        self.begin(&event, &record, at, sink)?;
        let thread = match event.agent.as_deref() {
            Some(agent) => self.state.called.get_mut(agent),
            None => self.state.main.as_mut(),
        };
        if let Some(thread) = thread {
            thread.heard(&event, &record, at);
            thread.take(&event, record, follows, at, sink)?;
        }
        Ok(Taken::Yes)
    }

    /// Begins a session with its first event, whatever that is.
    fn begin(&mut self, event: &Event<'_>, record: &Object, at: i64, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.state.main.is_none() {
            let data = |key: &str| record.get("data").and_then(|data| data.get(key)?.as_str());
            let folder =
                self.path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            let native = data("sessionId").map(str::to_owned).or(folder).unwrap_or_default();
            let session = event.own.as_ref().map_or_else(|| session_id(ID, &native), |own| own.session.clone());
            let mut head = head(session.as_str(), &native, self.path, at);
            let Workspace { cwd, branch, .. } = &self.workspace;
            for (key, value) in [("cwd", cwd), ("git_branch", branch)] {
                if let Some(value) = value {
                    head.metadata.insert(key.to_owned(), value.clone().into());
                }
            }
            sink.head(&head)?;
            self.state.main = Some(Thread::new(head));
        }
        let (Some(agent), Some(main)) = (event.agent.as_deref(), &self.state.main) else { return Ok(()) };
        if self.state.called.contains_key(agent) {
            return Ok(());
        }
        let mut head = head(session_id(ID, agent).as_str(), agent, self.path, at);
        let data = |key: &str| record.get("data").and_then(|data| data.get(key)?.as_str());
        head.title = data("agentDisplayName").unwrap_or_default().to_owned();
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                head.metadata.insert(key.to_owned(), value.into());
            }
        };
        for key in ["cwd", "git_branch", "git_commit", "version"] {
            put(key, main.head.metadata.get(key).and_then(Value::as_str));
        }
        put("parent_session_id", Some(main.head.session.as_str()));
        put("parent_call_id", data("toolCallId"));
        sink.head(&head)?;
        self.state.called.insert(agent.to_owned(), Thread::new(head));
        Ok(())
    }

    /// The title is in the file beside.
    fn name(&mut self) {
        let name = self.workspace.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        if let (Some(main), Some(name)) = (&mut self.state.main, name) {
            main.named = true;
            name.clone_into(&mut main.head.title);
        }
    }
}

fn head(session: &str, native: &str, path: &Path, at: i64) -> Head {
    let mut metadata = Object::new();
    metadata.insert("agent".to_owned(), ID.into());
    metadata.insert("native_id".to_owned(), native.into());
    metadata.insert("source".to_owned(), path.to_string_lossy().into());
    Head {
        session: session.into(),
        title: String::new(),
        created_at: at,
        updated_at: at,
        status: SessionStatus::Idle,
        metadata,
        forked_from: None,
    }
}

impl Thread {
    fn new(head: Head) -> Self {
        Self { named: !head.title.is_empty(), head, last: None, consumed: None, open: BTreeMap::new() }
    }

    /// Takes from an event what is of interest to the whole session.
    fn heard(&mut self, event: &Event<'_>, record: &Object, at: i64) {
        self.head.updated_at = self.head.updated_at.max(at);
        let data = record.get("data").unwrap_or(&Value::Null);
        let context = data.get("context").unwrap_or(&Value::Null);
        let mut put = |key: &str, value: Option<&Value>| {
            if let Some(value) = value.and_then(Value::as_str).filter(|value| !value.is_empty()) {
                self.head.metadata.insert(key.to_owned(), value.into());
            }
        };
        match &*event.kind {
            "session.start" | "session.resume" => {
                put("cwd", context.get("cwd"));
                put("git_branch", context.get("branch"));
                put("git_commit", context.get("headCommit"));
                put("version", data.get("copilotVersion"));
                put("model", data.get("selectedModel"));
            }
            "session.model_change" => put("model", data.get("newModel")),
            "assistant.message" => put("model", data.get("model")),
            "session.usage_record" => self.consumed = Consumed::of(record),
            _ => {}
        }
    }

    fn take(
        &mut self,
        event: &Event<'_>,
        record: Object,
        follows: bool,
        at: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let session = self.head.session.clone();
        let own = event.own.as_ref().filter(|own| own.session == session);
        if own.is_some_and(|own| own.made_up) {
            return Ok(());
        }
        let parent = match event.parent.as_deref().filter(|_| !follows).map(|parent| entry_id(&session, parent)) {
            Some(parent) if sink.knows(&session, &parent)? => Some(parent),
            _ => self.last.clone(),
        };
        let id = own.and_then(|own| own.entry.clone()).unwrap_or_else(|| entry_id(&session, &event.id));
        let mut place = Place { id: id.clone(), parent, at, revision: 0, origin: None };
        let entry = match self.told(event, &record, at) {
            Some((message, origin)) => {
                self.said(&message);
                place.origin = Some(origin.into());
                place.message(&message)?
            }
            None => {
                let mut record = record;
                record.shift_remove(crate::OWN);
                place.custom(format!("{ID}.{}", &*event.kind), Json::of(&record)?)
            }
        };
        sink.entry(&session, entry)?;
        self.last = Some(id);
        Ok(())
    }

    fn told(&self, event: &Event<'_>, record: &Object, at: i64) -> Option<(AgentMessage, Object)> {
        if !event.speaks() {
            return None;
        }
        let name = |call: &str| self.open.get(call).cloned().unwrap_or_default();
        event.told(record.clone(), self.consumed.as_ref(), &name, at)
    }

    fn said(&mut self, message: &AgentMessage) {
        match message {
            AgentMessage::User(message) if !self.named && self.head.title.is_empty() => {
                let text = message.content.iter().find_map(|block| match block {
                    ContentBlock::Text(text) => Some(title_of(&text.text)),
                    _ => None,
                });
                self.head.title = text.unwrap_or_default();
            }
            AgentMessage::Assistant(message) => {
                for block in &message.content {
                    if let ContentBlock::FunctionCall(call) = block {
                        self.open.insert(call.id.clone(), call.function_id.clone());
                    }
                }
            }
            AgentMessage::FunctionResult(result) => {
                self.open.remove(&result.function_call_id);
            }
            _ => {}
        }
    }
}
