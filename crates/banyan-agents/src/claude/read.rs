//! One file, line by line.

use banyan_model::{
    AgentMessage, ContentBlock, CustomMessage, EntryId, FunctionResultMessage, SessionId, UserMessage,
};
use serde_json::Value;

use super::blocks;
use super::chat::{Chat, Known, Response, State};
use super::record::{Envelope, json, number, value};
use crate::build::{Place, millis};
use crate::lines::{Line, Taken};
use crate::native::{self, Native, json_of, text_at};
use crate::telling::Telling;
use crate::{COMPACTION, Note, Problem, Sink, entry_id, session_id};

/// What the commands of the user and their output begin with.
const COMMANDS: &[&str] =
    &["<command-", "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<user-memory-input>"];

/// Reads the lines of one file.
pub(super) struct Reading {
    /// The agent's own id of the main conversation.
    native: String,
    /// The main conversation first.
    pub(super) chats: Vec<Chat>,
    pub(super) known: Known,
    /// Whatever begins before was told in an earlier reading.
    told: u64,
    /// Whether the reading goes on from an earlier one, and does not know every record.
    continued: bool,
    /// Where a continued reading met a record that follows one it does not know.
    pub(super) stuck: Option<u64>,
}

impl Reading {
    pub(super) fn new(native: &str, telling: Telling, state: Option<State>, told: u64) -> Self {
        let continued = state.is_some();
        let state = state.unwrap_or_default();
        let mut known = Known::default();
        for (uuid, entry) in &state.recent {
            known.put(number(uuid), 0, entry);
        }
        let chats = vec![Chat::new(telling, state)];
        Self { native: native.to_owned(), chats, known, told, continued, stuck: None }
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
        match envelope.uuid.as_deref() {
            Some(uuid) => self.record(uuid, &envelope, line, sink)?,
            None => self.aside(&envelope, line, sink)?,
        }
        Ok(Taken::Yes)
    }

    /// The end of the file: tells what is still open.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        for chat in &mut self.chats {
            chat.flush(self.told, sink)?;
            let at = chat.state.at;
            chat.telling.head.updated_at = chat.telling.head.updated_at.max(at);
            let newest = chat.state.last.as_deref().and_then(|last| self.known.get(number(last)));
            let newest = newest.map(|(_, entry)| entry.clone()).or_else(|| chat.state.tip.clone());
            if let Some(leaf) = chat.leaf.clone().or(newest) {
                sink.leaf(&chat.telling.head.session, &leaf)?;
            }
            chat.telling.tell(sink)?;
        }
        Ok(())
    }

    /// A record that has no place in the tree: it stays behind whatever is newest.
    fn aside(&mut self, envelope: &Envelope<'_>, line: &Line<'_>, sink: &mut dyn Sink) -> Result<(), Problem> {
        let (told, own) = (self.told, envelope.own.as_ref().map(|marked| &marked.own));
        let chat = &mut self.chats[0];
        if let Some(title) = envelope.custom_title.as_deref() {
            chat.telling.name(title);
            chat.telling.tell(sink)?;
        } else if let Some(title) = envelope.ai_title.as_deref().filter(|_| !chat.telling.named) {
            title.clone_into(&mut chat.telling.head.title);
        }
        if let (Some(summary), Some(leaf)) = (envelope.summary.as_deref(), envelope.leaf_uuid.as_deref()) {
            if self.known.get(number(leaf)).is_some() {
                chat.telling.name(summary);
            }
        } else if let Some(leaf) = envelope.leaf_uuid.as_deref() {
            chat.leaf = self.known.get(number(leaf)).map(|(_, entry)| entry.clone());
        }
        if own.is_some_and(|own| own.made_up) {
            return Ok(());
        }
        let Some(data) = json(line) else {
            sink.note(note(line, "the record is too deep or too odd to be kept", true));
            return Ok(());
        };
        chat.flush(told, sink)?;
        let session = chat.telling.head.session.clone();
        let id = self.own_entry(envelope).unwrap_or_else(|| entry_id(&session, &format!("line {}", line.number)));
        let chat = &mut self.chats[0];
        if let Some(at) = envelope.timestamp.as_deref().and_then(millis) {
            chat.state.at = at;
        }
        let origin = native::origin("claude", vec![Native { line: line.number, record: Value::Null }]);
        let parent = chat.state.tip.clone();
        let at = chat.state.at;
        let place = Place { id: id.clone(), parent, at, revision: 0, origin: Some(origin) };
        let entry = place.custom(format!("claude.{}", envelope.kind()), data);
        chat.tell(entry, line.offset >= told, sink)?;
        // Whatever follows the newest record goes behind this.
        if let Some(last) = chat.state.last.clone() {
            let was_leaf = chat.leaf.is_some();
            chat.state.remember(&last, &id);
            self.known.put(number(&last), 0, &id);
            if was_leaf && envelope.leaf_uuid.as_deref() == Some(last.as_str()) {
                chat.leaf = None;
            }
        }
        Ok(())
    }

    /// A record of the tree.
    fn record(
        &mut self,
        uuid: &str,
        envelope: &Envelope<'_>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let name = number(uuid);
        if self.known.get(name).is_some() {
            sink.note(note(line, &format!("record {uuid} is there twice; the first one counts"), true));
            return Ok(());
        }
        let is_assistant = envelope.kind() == "assistant";
        let mut value = if is_assistant { value(line) } else { None };
        let message_id =
            value.as_ref().and_then(|value| value.get("message")).map_or("", |message| text_at(message, "id"));
        let Some((at, parent)) = self.place_of(envelope, message_id, line, sink)? else { return Ok(()) };
        let told = self.told;
        let chat = &mut self.chats[at];
        if let Some(time) = envelope.timestamp.as_deref().and_then(millis) {
            chat.state.at = time;
        }
        let is_first = chat.state.last.is_none();
        learn(&mut chat.telling, envelope, chat.state.at);
        if is_first {
            chat.telling.tell(sink)?;
        }
        chat.leaf = None;
        if envelope.own.as_ref().is_some_and(|marked| marked.own.made_up) {
            // Nothing stands for it here; whatever follows it follows what it follows.
            chat.flush(told, sink)?;
            if let Some(parent) = parent {
                self.place(at, uuid, &parent);
            }
            return Ok(());
        }
        if let Some(value) = value.take() {
            let own = self.own_entry(envelope);
            return self.assistant(at, uuid, value, own, parent, line, sink);
        }
        chat.flush(told, sink)?;
        let id = self.own_entry(envelope).unwrap_or_else(|| entry_id(&self.chats[at].telling.head.session, uuid));
        match envelope.kind() {
            "user" => self.user(at, uuid, id, envelope, parent, line, sink),
            "attachment" if envelope.rendered.is_some() => self.attachment(at, uuid, id, parent, line, sink),
            kind => self.other(at, uuid, id, kind, parent, line, sink),
        }
    }

    /// Which conversation a record belongs to, and which entry it follows. None if only a reading from the start can tell.
    fn place_of(
        &mut self,
        envelope: &Envelope<'_>,
        message_id: &str,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<(usize, Option<EntryId>)>, Problem> {
        let named = envelope.parent_uuid.as_deref().or(envelope.logical_parent_uuid.as_deref());
        let Some(named) = named else {
            let sidechain = envelope.is_sidechain == Some(true) && !self.is_sub_agent();
            if sidechain {
                return self.side_chat(envelope, sink).map(|at| Some((at, None)));
            }
            // The first record follows whatever was noted before it; a later root is another beginning.
            let chat = &self.chats[0];
            let parent = if chat.state.last.is_none() { chat.state.tip.clone() } else { None };
            return Ok(Some((0, parent)));
        };
        let name = number(named);
        let Some((at, behind)) = self.known.get(name) else {
            if self.continued {
                for chat in &mut self.chats {
                    chat.flush(self.told, sink)?;
                }
                self.stuck = Some(line.offset);
                return Ok(None);
            }
            self.chats[0].flush(self.told, sink)?;
            let parent = self.chats[0].state.tip.clone();
            if parent.is_some() {
                sink.note(note(
                    line,
                    &format!("it follows {named}, which is not there; put behind the one before"),
                    false,
                ));
            }
            return Ok(Some((0, parent)));
        };
        let behind = behind.clone();
        // Results of parallel calls hang off their own calls; here they come one after another.
        if let Some(response) = &self.chats[at].response {
            let is_result = envelope.kind() == "user" && response.lines.contains(&name);
            if response.message != message_id && (is_result || response.results.contains(&name)) {
                if let Some((_, tail)) = response.results.last().and_then(|last| self.known.get(*last)) {
                    return Ok(Some((at, Some(tail.clone()))));
                }
            }
        }
        Ok(Some((at, Some(behind))))
    }

    fn is_sub_agent(&self) -> bool {
        self.chats[0].telling.head.metadata.contains_key("parent_session_id")
    }

    /// A sub-agent of an old version begins in the middle of the file.
    fn side_chat(&mut self, envelope: &Envelope<'_>, sink: &mut dyn Sink) -> Result<usize, Problem> {
        let main = &self.chats[0].telling.head;
        let uuid = envelope.uuid.as_deref().unwrap_or_default();
        let native = format!("{}.{uuid}", self.native);
        let mut head = main.clone();
        head.metadata.insert("parent_session_id".to_owned(), main.session.as_str().into());
        head.metadata.insert("native_id".to_owned(), native.as_str().into());
        head.session = session_id("claude", &native);
        head.title = String::new();
        head.created_at = envelope.timestamp.as_deref().and_then(millis).unwrap_or(head.created_at);
        let mut telling = Telling::new(head, false, false);
        telling.tell(sink)?;
        self.chats.push(Chat::new(telling, State::default()));
        Ok(self.chats.len() - 1)
    }

    fn assistant(
        &mut self,
        at: usize,
        uuid: &str,
        mut value: Value,
        own: Option<EntryId>,
        parent: Option<EntryId>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let told = self.told;
        let chat = &mut self.chats[at];
        let is_error = value.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true);
        let mut message = value.get_mut("message").map_or(Value::Null, Value::take);
        let message_id = match text_at(&message, "id") {
            "" => uuid.to_owned(),
            id => id.to_owned(),
        };
        let mut content = blocks::take(&mut message);
        let mut error = None;
        if is_error {
            let text = |block: &ContentBlock| match block {
                ContentBlock::Text(block) => block.text.clone(),
                _ => String::new(),
            };
            error = Some(content.drain(..).map(|block| text(&block)).collect::<String>());
        }
        for block in &content {
            if let ContentBlock::FunctionCall(call) = block {
                chat.state.calls.insert(call.id.clone(), call.function_id.clone());
            }
        }
        let model = text_at(&message, "model").to_owned();
        if !model.is_empty() && model != "<synthetic>" {
            chat.telling.model(&model);
        }
        let (usage, stop) = (blocks::usage(&message), message.get("stop_reason").and_then(Value::as_str));
        let stop = stop.map(str::to_owned);
        value["message"] = message;
        let goes_on = chat.response.as_ref().is_some_and(|open| open.message == message_id);
        if !goes_on {
            chat.flush(told, sink)?;
            let session = &chat.telling.head.session;
            let id = own.unwrap_or_else(|| entry_id(session, uuid));
            chat.response = Some(Response {
                message: message_id,
                id,
                parent,
                at: chat.state.at,
                natives: Vec::new(),
                content: Vec::new(),
                usage: None,
                model: String::new(),
                stop: None,
                error: None,
                lines: Vec::new(),
                results: Vec::new(),
                newest: 0,
                told: false,
                begins: (line.offset, line.number - 1),
                before: chat.state.clone(),
            });
        }
        let Some(response) = &mut chat.response else { return Ok(()) };
        response.natives.push(Native { line: line.number, record: value });
        response.content.extend(content);
        response.usage = usage.or_else(|| response.usage.take());
        response.model = model;
        response.stop = stop.or_else(|| response.stop.take());
        response.error = error.or_else(|| response.error.take());
        response.lines.push(number(uuid));
        response.newest = line.offset;
        response.told = false;
        let id = response.id.clone();
        if !goes_on {
            chat.state.tip = Some(id.clone());
        }
        self.place(at, uuid, &id);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a record has that many sides")]
    fn user(
        &mut self,
        at: usize,
        uuid: &str,
        id: EntryId,
        envelope: &Envelope<'_>,
        mut parent: Option<EntryId>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut record) = value(line) else { return self.other(at, uuid, id, "user", parent, line, sink) };
        let mut message = record.get_mut("message").map_or(Value::Null, Value::take);
        let answers = blocks::take_answers(&mut message);
        let content = blocks::take(&mut message);
        let mut details = if answers.is_empty() { None } else { record.get_mut("toolUseResult").map(Value::take) };
        record["message"] = message;
        let is_new = line.offset >= self.told;
        let chat = &mut self.chats[at];
        let timestamp = chat.state.at;
        let origin = native::origin("claude", vec![Native { line: line.number, record }]);
        // The record stands at the first entry that is made of it; the others say only that they are parts.
        let mut origin = Some(origin);
        let mut origin = || origin.take().or_else(|| Some(native::origin("claude", Vec::new())));
        let mut next = Some(id);
        let mut last = None;
        let session = chat.telling.head.session.clone();
        let mut part = 0_u32;
        let mut id_of = |next: &mut Option<EntryId>| {
            part += 1;
            next.take().unwrap_or_else(|| entry_id(&session, &format!("{uuid}#{part}")))
        };
        let is_result = !answers.is_empty();
        for answer in answers {
            let message = AgentMessage::FunctionResult(FunctionResultMessage {
                function_id: chat.state.calls.remove(&answer.call).unwrap_or_default(),
                function_call_id: answer.call,
                content: answer.content,
                details: details.take().map(|details| json_of(&details)).unwrap_or_default(),
                is_error: answer.is_error,
                timestamp,
            });
            let id = id_of(&mut next);
            let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin: origin() };
            chat.tell(place.message(&message)?, is_new, sink)?;
            parent = Some(id.clone());
            last = Some(id);
        }
        if !content.is_empty() || last.is_none() {
            let kind = context_of(envelope, &content);
            if kind.is_none() {
                chat.telling.said(&content, sink)?;
            }
            let message = match kind {
                None => AgentMessage::User(UserMessage { content, timestamp }),
                Some(custom_type) => AgentMessage::Custom(CustomMessage {
                    custom_type,
                    content,
                    display: None,
                    details: None,
                    timestamp,
                }),
            };
            let id = id_of(&mut next);
            let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin: origin() };
            chat.tell(place.message(&message)?, is_new, sink)?;
            last = Some(id);
        }
        if let Some(response) = chat.response.as_mut().filter(|_| is_result) {
            response.results.push(number(uuid));
        }
        if let Some(last) = last {
            self.place(at, uuid, &last);
        }
        Ok(())
    }

    fn attachment(
        &mut self,
        at: usize,
        uuid: &str,
        id: EntryId,
        parent: Option<EntryId>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut record) = value(line) else {
            return self.other(at, uuid, id, "attachment", parent, line, sink);
        };
        let rendered = record.get_mut("rendered").and_then(Value::as_array_mut);
        let content: Vec<ContentBlock> = rendered.into_iter().flatten().flat_map(blocks::take).collect();
        let timestamp = self.chats[at].state.at;
        let custom_type = "claude.attachment".to_owned();
        let message =
            AgentMessage::Custom(CustomMessage { custom_type, content, display: None, details: None, timestamp });
        let origin = Some(native::origin("claude", vec![Native { line: line.number, record }]));
        let place = Place { id: id.clone(), parent, at: timestamp, revision: 0, origin };
        self.chats[at].tell(place.message(&message)?, line.offset >= self.told, sink)?;
        self.place(at, uuid, &id);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a record has that many sides")]
    fn other(
        &mut self,
        at: usize,
        uuid: &str,
        id: EntryId,
        kind: &str,
        parent: Option<EntryId>,
        line: &Line<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(data) = json(line) else {
            sink.note(note(line, "the record is too deep or too odd to be kept", true));
            if let Some(parent) = parent {
                self.place(at, uuid, &parent);
            }
            return Ok(());
        };
        let origin = Some(native::origin("claude", vec![Native { line: line.number, record: Value::Null }]));
        let place = Place { id: id.clone(), parent, at: self.chats[at].state.at, revision: 0, origin };
        let entry = place.custom(format!("claude.{kind}"), data);
        self.chats[at].tell(entry, line.offset >= self.told, sink)?;
        self.place(at, uuid, &id);
        Ok(())
    }

    /// Whatever follows this record goes behind this entry.
    fn place(&mut self, at: usize, uuid: &str, entry: &EntryId) {
        self.known.put(number(uuid), at, entry);
        let state = &mut self.chats[at].state;
        state.remember(uuid, entry);
        state.last = Some(uuid.to_owned());
    }

    /// The entry that we wrote a line for. A line that the agent copied to another session is not that entry.
    fn own_entry(&self, envelope: &Envelope<'_>) -> Option<EntryId> {
        let marked = envelope.own.as_ref()?;
        let here = marked.native.as_ref().is_none_or(|native| *native == self.native);
        marked.own.entry.clone().filter(|_| here)
    }
}

/// What kind of context a record of the user is; none if the human typed it.
fn context_of(envelope: &Envelope<'_>, content: &[ContentBlock]) -> Option<String> {
    if envelope.is_compact_summary == Some(true) {
        return Some(COMPACTION.to_owned());
    }
    if envelope.is_meta == Some(true) {
        return Some("claude.meta".to_owned());
    }
    let is_command = matches!(content, [ContentBlock::Text(text)]
        if COMMANDS.iter().any(|command| text.text.trim_start().starts_with(command)));
    is_command.then(|| "claude.command".to_owned())
}

/// What a record says of the whole.
fn learn(telling: &mut Telling, envelope: &Envelope<'_>, at: i64) {
    let said = |text: &Option<std::borrow::Cow<'_, str>>| {
        text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if !telling.head.metadata.contains_key("cwd") {
        if let Some(cwd) = said(&envelope.cwd) {
            telling.put("cwd", &cwd);
        }
    }
    if let Some(version) = said(&envelope.version) {
        telling.put("version", &version);
    }
    if let Some(branch) = said(&envelope.git_branch) {
        telling.put("git_branch", &branch);
    }
    if telling.head.created_at == 0 {
        telling.head.created_at = at;
        telling.head.updated_at = at;
    }
}

fn note(line: &Line<'_>, what: &str, lost: bool) -> Note {
    Note { place: format!("line {}", line.number), what: what.to_owned(), lost }
}

/// The session of a file that we wrote ourselves.
pub(super) fn own_session(first: &str, native: &str) -> Option<SessionId> {
    let envelope: Envelope<'_> = serde_json::from_str(first).ok()?;
    let marked = envelope.own?;
    let here = marked.native.as_ref().is_none_or(|named| named == native);
    here.then_some(marked.own.session)
}
