//! A session as AG-UI's events: a snapshot, and from then on what happens, in an order that AG-UI's own client accepts.
//!
//! Everything is told within a run. A run begins when something happens and none is under way. It ends when the session's status
//! says so; while nobody is said to work on the session, it ends with an answer.

use banyan_model::{AgentMessage, EntryId, SessionStatus, StopReason};
use serde_json::{Value, json};

use super::bits::{Bit, Calls, Kind, bits};
use super::left::{Left, Thing};
use super::messages;
use crate::shapes::item::{Body, Item, Scene, public};

/// What a front end was told so far, as far as that decides what it is told next.
#[derive(Clone, Debug)]
pub struct Live {
    scene: Scene,
    status: SessionStatus,
    run: Option<String>,
    open: Option<Open>,
    /// What a front end has begun and can only end, because it left in the middle of it.
    stale: Vec<(Thing, String)>,
    newest: Option<Item>,
    calls: Calls,
    /// The calls before those of the newest entry.
    calls_before: Calls,
}

/// A text that may go on.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    id: String,
    reasoning: bool,
}

/// What came of something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// These events tell it.
    Events(Vec<Value>),
    /// No event tells it: read everything, and give it to [`Live::snapshot`].
    Snapshot,
}

impl Live {
    /// Nothing was told yet.
    pub fn new(scene: Scene) -> Self {
        Self {
            scene,
            status: SessionStatus::Idle,
            run: None,
            open: None,
            stale: Vec::new(),
            newest: None,
            calls: Calls::default(),
            calls_before: Calls::default(),
        }
    }

    /// Where a front end is that comes back.
    #[must_use]
    pub fn resumed(mut self, left: &Left) -> Self {
        self.run.clone_from(&left.run);
        match left.open.as_slice() {
            [(Thing::Text, id)] => self.open = Some(Open { id: id.clone(), reasoning: false }),
            [(Thing::Span, _), (Thing::Thought, id)] => {
                self.open = Some(Open { id: id.clone(), reasoning: true });
            }
            others => self.stale = others.to_vec(),
        }
        self
    }

    /// Tells all messages at once.
    pub fn snapshot(&mut self, items: &[Item], status: SessionStatus, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        self.status = status;
        self.close(&mut events);
        self.begin_run(run, &mut events);
        // AG-UI's client keeps activities that a snapshot does not have, unless it is told that there are no others.
        let all = json!({"@ag-ui/client": {"authoritativeActivityTypes": null}});
        events.push(json!({"type": "MESSAGES_SNAPSHOT", "messages": self.look(items), "metadata": all}));
        if status != SessionStatus::Working {
            self.end_run(None, &mut events);
        }
        events
    }

    /// Takes in all messages without telling them, because nothing has changed.
    pub fn goes_on(&mut self, items: &[Item], status: SessionStatus) {
        self.status = status;
        self.look(items);
    }

    fn look(&mut self, items: &[Item]) -> Vec<Value> {
        let (before, newest) = items.split_at(items.len().saturating_sub(1));
        let mut calls = Calls::default();
        let mut told = messages(before, &self.scene, &mut calls);
        self.calls_before = calls.clone();
        told.extend(messages(newest, &self.scene, &mut calls));
        self.calls = calls;
        self.newest = newest.first().cloned();
        told
    }

    /// Tells an entry that follows the newest one.
    pub fn added(&mut self, item: Item, run: &str) -> Told {
        self.calls_before = self.calls.clone();
        let bits = bits(&item, &self.scene, &mut self.calls);
        self.newest = Some(item);
        if bits.iter().any(|bit| matches!(bit.kind, Kind::Parts(_))) {
            return Told::Snapshot;
        }
        let mut events = Vec::new();
        self.begin_run(run, &mut events);
        for bit in &bits {
            self.tell(bit, &mut events);
        }
        Told::Events(events)
    }

    /// Tells that a text was added to the end of a block.
    pub fn grew(&mut self, entry: &EntryId, block: usize, text: &str, run: &str) -> Told {
        let grown = self.newest.as_ref().filter(|newest| newest.id == *entry).and_then(|newest| {
            let mut message = newest.message()?.clone();
            match message.content_mut().get_mut(block)? {
                banyan_model::ContentBlock::Text(block) => block.text.push_str(text),
                banyan_model::ContentBlock::Thinking(block) => block.text.push_str(text),
                _ => return None,
            }
            Some(message)
        });
        match grown {
            Some(message) => self.updated(entry, message, run),
            None => Told::Snapshot,
        }
    }

    /// Tells that an entry holds another message now.
    pub fn updated(&mut self, entry: &EntryId, message: AgentMessage, run: &str) -> Told {
        let Some(newest) = self.newest.take_if(|newest| newest.id == *entry) else { return Told::Snapshot };
        let before = bits(&newest, &self.scene, &mut self.calls_before.clone());
        let item = Item { body: Body::Message(Box::new(public(message))), ..newest };
        self.calls = self.calls_before.clone();
        let after = bits(&item, &self.scene, &mut self.calls);
        self.newest = Some(item);
        if after.len() < before.len() || !before.iter().zip(&after).all(|(one, other)| goes_on(one, other)) {
            return Told::Snapshot;
        }
        let mut events = Vec::new();
        self.begin_run(run, &mut events);
        for (one, other) in before.iter().zip(&after) {
            self.tell_difference(one, other, &mut events);
        }
        for bit in &after[before.len()..] {
            self.tell(bit, &mut events);
        }
        Told::Events(events)
    }

    /// Tells what the session is doing now.
    pub fn status_changed(&mut self, status: SessionStatus, reason: Option<&str>, run: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let before = std::mem::replace(&mut self.status, status);
        match status {
            SessionStatus::Working => self.begin_run(run, &mut events),
            SessionStatus::Error => {
                self.begin_run(run, &mut events);
                self.end_run(Some(reason.unwrap_or(FAILED)), &mut events);
            }
            SessionStatus::Idle | SessionStatus::Done if before == SessionStatus::Working => {
                self.end_run(None, &mut events);
            }
            SessionStatus::Idle | SessionStatus::Done => {}
        }
        events
    }

    /// Ends a run that nobody is said to work on, if its last message is an answer. To be asked when nothing else is to be told.
    pub fn settle(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        let answered = match self.newest.as_ref().and_then(Item::message) {
            Some(AgentMessage::Assistant(message)) => message.stop_reason != StopReason::FunctionCall,
            Some(AgentMessage::User(_) | AgentMessage::FunctionResult(_)) => false,
            Some(AgentMessage::Custom(_)) | None => true,
        };
        if answered && self.status != SessionStatus::Working && self.run.is_some() {
            self.end_run(None, &mut events);
        }
        events
    }

    fn begin_run(&mut self, run: &str, events: &mut Vec<Value>) {
        if self.run.is_none() {
            let run = format!("run-{run}");
            events.push(json!({"type": "RUN_STARTED", "threadId": self.scene.session_id, "runId": run}));
            self.run = Some(run);
        }
    }

    fn end_run(&mut self, failure: Option<&str>, events: &mut Vec<Value>) {
        self.close(events);
        let Some(run) = self.run.take() else { return };
        let last = match self.newest.as_ref().and_then(Item::message) {
            Some(AgentMessage::Assistant(message)) => Some(message),
            _ => None,
        };
        let failed = match (failure, self.status, last.map(|message| message.stop_reason)) {
            (Some(words), _, _) => Some(words.to_owned()),
            (None, SessionStatus::Error, _) | (None, _, Some(StopReason::Error)) => {
                Some(last.and_then(|message| message.error_message.clone()).unwrap_or_else(|| FAILED.to_owned()))
            }
            _ => None,
        };
        let thread = &self.scene.session_id;
        events.push(match failed {
            Some(words) => json!({"type": "RUN_ERROR", "message": words}),
            None if last.is_some_and(|message| message.stop_reason == StopReason::Aborted) => {
                json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": {"type": "cancelled"}})
            }
            None => json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run}),
        });
    }

    /// Tells something new.
    fn tell(&mut self, bit: &Bit, events: &mut Vec<Value>) {
        self.close(events);
        let (id, metadata) = (&bit.id, &bit.metadata);
        match &bit.kind {
            Kind::Text { role, text } => {
                events.push(
                    json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": role, "metadata": metadata}),
                );
                self.open = Some(Open { id: id.clone(), reasoning: false });
                self.add(text, events);
                if *role != "assistant" {
                    self.close(events);
                }
            }
            Kind::Reasoning { text, signature } => {
                events.push(json!({"type": "REASONING_START", "messageId": id}));
                events.push(json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning",
                    "metadata": metadata}));
                self.open = Some(Open { id: id.clone(), reasoning: true });
                self.add(text, events);
                seal(id, signature.as_ref(), events);
            }
            Kind::Call { call, name, arguments } => {
                events.push(json!({"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name,
                    "parentMessageId": id, "metadata": metadata}));
                events.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments}));
                events.push(json!({"type": "TOOL_CALL_END", "toolCallId": call}));
            }
            Kind::Result { call, content, .. } => events.push(json!({"type": "TOOL_CALL_RESULT", "messageId": id,
                "toolCallId": call, "content": content, "role": "tool", "metadata": metadata})),
            Kind::Activity { name, content } => events.push(json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id,
                "activityType": name, "content": content, "replace": true, "metadata": metadata})),
            // Only a snapshot tells these.
            Kind::Parts(_) => {}
        }
    }

    /// Tells what is new in something that was told.
    fn tell_difference(&mut self, before: &Bit, after: &Bit, events: &mut Vec<Value>) {
        let (reasoning, old, new) = match (&before.kind, &after.kind) {
            (Kind::Text { text: old, .. }, Kind::Text { text: new, .. }) => (false, old, new),
            (Kind::Reasoning { text: old, .. }, Kind::Reasoning { text: new, .. }) => (true, old, new),
            (Kind::Activity { content: old, .. }, Kind::Activity { content: new, .. }) if old != new => {
                return self.tell(after, events);
            }
            _ => return,
        };
        if let (Some(added), true) = (new.strip_prefix(old.as_str()), new.len() > old.len()) {
            let open = Open { id: after.id.clone(), reasoning };
            if self.open.as_ref() != Some(&open) {
                self.close(events);
                let start = match reasoning {
                    true => json!({"type": "REASONING_MESSAGE_START", "messageId": open.id, "role": "reasoning"}),
                    false => json!({"type": "TEXT_MESSAGE_START", "messageId": open.id, "role": role_of(after)}),
                };
                if reasoning {
                    events.push(json!({"type": "REASONING_START", "messageId": open.id}));
                }
                events.push(start);
                self.open = Some(open);
            }
            self.add(added, events);
        }
        if let (Kind::Reasoning { signature: old, .. }, Kind::Reasoning { signature: new, .. }) =
            (&before.kind, &after.kind)
            && old != new
        {
            seal(&after.id, new.as_ref(), events);
        }
    }

    /// Adds to the text that is open.
    fn add(&mut self, text: &str, events: &mut Vec<Value>) {
        let Some(open) = self.open.as_ref().filter(|_| !text.is_empty()) else { return };
        let kind = if open.reasoning { "REASONING_MESSAGE_CONTENT" } else { "TEXT_MESSAGE_CONTENT" };
        events.push(json!({"type": kind, "messageId": open.id, "delta": text}));
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        let open = self.open.take().map(|Open { id, reasoning }| match reasoning {
            true => vec![(Thing::Span, id.clone()), (Thing::Thought, id)],
            false => vec![(Thing::Text, id)],
        });
        for (thing, id) in open.unwrap_or_else(|| std::mem::take(&mut self.stale)).into_iter().rev() {
            events.push(match thing {
                Thing::Text => json!({"type": "TEXT_MESSAGE_END", "messageId": id}),
                Thing::Thought => json!({"type": "REASONING_MESSAGE_END", "messageId": id}),
                Thing::Span => json!({"type": "REASONING_END", "messageId": id}),
                Thing::Call => json!({"type": "TOOL_CALL_END", "toolCallId": id}),
            });
        }
    }
}

const FAILED: &str = "The work on this session failed.";

fn seal(id: &str, signature: Option<&String>, events: &mut Vec<Value>) {
    if let Some(signature) = signature {
        events.push(json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": id,
            "encryptedValue": signature}));
    }
}

fn role_of(bit: &Bit) -> &'static str {
    match &bit.kind {
        Kind::Text { role, .. } => role,
        _ => "assistant",
    }
}

/// Whether something that was told can be told on until it is the other.
fn goes_on(before: &Bit, after: &Bit) -> bool {
    let grows = |old: &String, new: &String| new.starts_with(old.as_str());
    let same = match (&before.kind, &after.kind) {
        (Kind::Text { text: old, .. }, Kind::Text { text: new, .. }) => grows(old, new),
        (Kind::Reasoning { text: old, signature: seal }, Kind::Reasoning { text: new, signature }) => {
            grows(old, new) && (seal.is_none() || seal == signature)
        }
        (Kind::Activity { name: old, .. }, Kind::Activity { name: new, .. }) => old == new,
        (old, new) => old == new,
    };
    before.id == after.id && same
}
