//! One file, line by line.

use std::borrow::Cow;

use banyan_model::{EntryId, SessionId};

use super::blocks::Message;
use super::chat::{Chat, Known, State};
use super::messages::Spot;
use super::record::{Envelope, number};
use crate::build::{Place, millis};
use crate::lines::{Line, Taken};
use crate::native;
use crate::outline::{Found, Outline};
use crate::rest::without_own;
use crate::telling::Telling;
use crate::{Note, Problem, Sink, entry_id, session_id};

/// Reads the lines of one file.
pub(super) struct Reading {
    /// The agent's own id of the main conversation.
    native: String,
    /// The main conversation first.
    pub(super) chats: Vec<Chat>,
    pub(super) known: Known,
    /// Whatever begins before was told in an earlier reading.
    pub(super) told: u64,
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
        let outline = match Outline::of(&line.text) {
            Ok(outline) => outline,
            Err(why) => return Ok(Taken::NotARecord(why)),
        };
        let envelope = Envelope::of(Some(outline.root()));
        if line.glued && !envelope.is_whole() {
            return Ok(Taken::is_a_part());
        }
        if envelope.own.is_none() {
            self.record_or_aside(&envelope, line, outline.root(), sink)?;
            return Ok(Taken::Yes);
        }
        // What we added is no part of the record.
        let text = without_own(&line.text).unwrap_or_else(|| line.text.clone().into_owned());
        match Outline::of(&text) {
            Ok(bare) => {
                let bare = bare.root();
                let envelope = Envelope { own: envelope.own, ..Envelope::of(Some(bare)) };
                self.record_or_aside(&envelope, line, bare, sink)?;
            }
            Err(why) => return Ok(Taken::NotARecord(why)),
        }
        Ok(Taken::Yes)
    }

    fn record_or_aside(
        &mut self,
        envelope: &Envelope<'_>,
        line: &Line<'_>,
        record: Found<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        self.chats[0].telling.begin(envelope.timestamp.as_deref().and_then(millis), sink)?;
        match envelope.uuid.as_deref() {
            Some(uuid) => self.record(uuid, envelope, (line, record), sink),
            None => self.aside(envelope, (line, record), sink),
        }
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
            chat.telling.end(sink)?;
        }
        Ok(())
    }

    /// A record that has no place in the tree: it stays behind whatever is newest.
    fn aside(
        &mut self,
        envelope: &Envelope<'_>,
        (line, record): (&Line<'_>, Found<'_>),
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
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
        let Some(data) = record.json() else {
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
        let origin = native::line_of("claude", line.number);
        let parent = chat.state.tip.clone();
        let at = chat.state.at;
        let place = Place { id: id.clone(), parent, at, revision: 0, origin: Some(origin) };
        let entry = place.custom(format!("claude.{}", envelope.kind()), data);
        chat.tell(entry, line.offset >= told, sink)?;
        // Whatever follows the newest record goes behind this.
        if let Some(last) = chat.state.last.clone() {
            let was_leaf = chat.leaf.is_some();
            chat.state.remember(&last, &id, false);
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
        (line, record): (&Line<'_>, Found<'_>),
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let name = number(uuid);
        if self.known.get(name).is_some() {
            sink.note(note(line, &format!("record {uuid} is there twice; the first one counts"), true));
            return Ok(());
        }
        let is_assistant = envelope.kind() == "assistant";
        let said = is_assistant.then(|| Message::of(envelope.message));
        let message_id = said.as_ref().and_then(|said| said.id.as_deref()).unwrap_or_default();
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
        let made = || entry_id(&self.chats[at].telling.head.session, uuid);
        let id = self.own_entry(envelope).unwrap_or_else(made);
        let spot = Spot { at, uuid, id, parent, line, record };
        if let Some(said) = said {
            return self.assistant(spot, envelope, &said, sink);
        }
        self.chats[at].flush(told, sink)?;
        match envelope.kind() {
            "user" => self.user(spot, envelope, sink),
            "attachment" if envelope.rendered.is_some() => self.attachment(spot, envelope, sink),
            kind => self.other(spot, kind, sink),
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
            if response.message != message_id
                && (is_result || response.results.contains(&name))
                && let Some((_, tail)) = response.results.last().and_then(|last| self.known.get(*last))
            {
                return Ok(Some((at, Some(tail.clone()))));
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

    /// Whatever follows this record goes behind this entry.
    pub(super) fn place(&mut self, at: usize, uuid: &str, entry: &EntryId) {
        let is_new = self.known.put(number(uuid), at, entry);
        let state = &mut self.chats[at].state;
        state.remember(uuid, entry, is_new);
        state.last = Some(uuid.to_owned());
    }

    /// The entry that we wrote a line for. A line that the agent copied to another session is not that entry.
    fn own_entry(&self, envelope: &Envelope<'_>) -> Option<EntryId> {
        let marked = envelope.own.as_ref()?;
        let here = marked.native.as_ref().is_none_or(|native| *native == self.native);
        marked.own.entry.clone().filter(|_| here)
    }
}

/// What a record says of the whole.
fn learn(telling: &mut Telling, envelope: &Envelope<'_>, at: i64) {
    let said = |text: &Option<Cow<'_, str>>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
    if !telling.head.metadata.contains_key("cwd")
        && let Some(cwd) = said(&envelope.cwd)
    {
        telling.put("cwd", &cwd);
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

pub(super) fn note(line: &Line<'_>, what: &str, lost: bool) -> Note {
    Note { place: format!("line {}", line.number), what: what.to_owned(), lost }
}

/// The session of a file that we wrote ourselves.
pub(super) fn own_session(first: &str, native: &str) -> Option<SessionId> {
    let outline = Outline::of(first).ok()?;
    let marked = Envelope::of(Some(outline.root())).own?;
    let here = marked.native.as_ref().is_none_or(|named| named == native);
    here.then_some(marked.own.session)
}
