//! Messages become entries: typed content as far as it goes, and the rest in the entries' origins.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, EntryId, FunctionCallBlock,
    FunctionResultMessage, ImageBlock, Json, Object, StopReason, ThinkingBlock, UserMessage,
};
use serde_json::Value;

use super::display;
use super::entry::{Entry, MESSAGE, PART};
use super::fields::{Fields, json_of, same_value, value_of};
use super::identity;
use super::message::{HistoryMessage, Speaker, joined_text};
use super::origin::Mark;
use super::part::{Activity, Part};
use super::parts::{Options, PartMaker, Texts};
use super::time::milliseconds;

/// An entry to append.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Its id, always the same for the same message.
    pub entry_id: EntryId,
    /// What it holds.
    pub message: AgentMessage,
    /// What no content holds.
    pub origin: Object,
}

/// The entries of a message that is not there yet; at least one.
pub fn entries_of(message: &HistoryMessage) -> Vec<NewEntry> {
    let mut run = Run::new(message, 0);
    let left = match message.role {
        Speaker::User => run.question(),
        Speaker::Assistant => &message.parts,
    };
    left.iter().for_each(|part| run.part(part));
    if run.entries.is_empty() {
        run.nothing_but_fields();
    }
    run.finish()
}

/// The entries of parts that are new in a message that has this many entries already.
pub(crate) fn entries_of_rest(message: &HistoryMessage, parts: &[Part], entries: usize) -> Vec<NewEntry> {
    let mut run = Run::new(message, entries);
    parts.iter().for_each(|part| run.part(part));
    if run.entries.is_empty() {
        run.nothing_but_fields();
    }
    run.finish()
}

/// The entries of one message, one after another.
struct Run<'a> {
    of: &'a HistoryMessage,
    first: usize,
    time: i64,
    entries: Vec<(AgentMessage, Mark)>,
}

impl<'a> Run<'a> {
    fn new(of: &'a HistoryMessage, first: usize) -> Self {
        Self { of, first, time: milliseconds(&of.timestamp).unwrap_or_default(), entries: Vec::new() }
    }

    /// The question itself, with as many of its parts as blocks can hold. Gives the parts that are left.
    fn question(&mut self) -> &'a [Part] {
        let parts = &self.of.parts;
        let held: Vec<ContentBlock> = parts.iter().map_while(block_of).collect();
        let left = &parts[held.len()..];
        let text = self.of.text_content.iter().filter(|_| parts.is_empty());
        let content = text.map(ContentBlock::text).chain(held).collect();
        self.push(AgentMessage::User(UserMessage { content, timestamp: self.time }), self.mark());
        left
    }

    fn part(&mut self, part: &Part) {
        let mut shown = part.clone();
        shown.remove_technical_details();
        let hidden = differences(&object_of(&shown), &object_of(part));
        let (messages, changes) = match self.typed(&shown) {
            Some(typed) => typed,
            None => (vec![self.as_custom(&shown)], Object::new()),
        };
        for (at, message) in messages.into_iter().enumerate() {
            let mut mark = self.mark();
            if at == 0 {
                mark.part.clone_from(&changes);
                mark.hidden.part.clone_from(&hidden);
            } else {
                mark.joined = true;
            }
            self.push(message, mark);
        }
    }

    /// The part as messages with typed content, and what the content does not say. None when no content says most of it.
    fn typed(&self, part: &Part) -> Option<(Vec<AgentMessage>, Object)> {
        if self.of.role == Speaker::User {
            return None;
        }
        let messages = match part {
            Part::Activity(activity) => self.typed_activity(activity)?,
            part => vec![self.assistant(vec![block_like(part)?], StopReason::End)],
        };
        let bare = parts_made_of(&messages);
        let [bare] = bare.as_slice() else { return None };
        let (bare, whole) = (object_of(bare), object_of(part));
        let all_there = bare.keys().all(|key| whole.contains_key(key));
        if all_there { Some((messages, differences(&bare, &whole))) } else { None }
    }

    fn typed_activity(&self, activity: &Activity) -> Option<Vec<AgentMessage>> {
        let Activity { activity_type, content, tools, results, .. } = activity;
        let time = milliseconds(&activity.timestamp).unwrap_or(self.time);
        let mut messages = match (activity_type.as_str(), content, tools, results) {
            ("thought", Some(text), None, None) => {
                let thought = ThinkingBlock { text: text.clone(), signature: None };
                vec![self.assistant(vec![ContentBlock::Thinking(thought)], StopReason::End)]
            }
            ("tool_request", _, Some(tools), None) => {
                let call = |tool: &super::part::ToolCall| {
                    ContentBlock::FunctionCall(FunctionCallBlock {
                        id: tool.id.clone(),
                        function_id: tool.name.clone(),
                        arguments: tool.arguments.clone(),
                    })
                };
                vec![self.assistant(tools.iter().map(call).collect(), StopReason::FunctionCall)]
            }
            ("tool_result", _, None, Some(results)) => {
                let result = |result: &super::part::ToolResult| {
                    AgentMessage::FunctionResult(FunctionResultMessage {
                        function_call_id: result.call_id.clone(),
                        function_id: result.name.clone(),
                        content: vec![ContentBlock::text(result.content.as_str())],
                        details: Json::null(),
                        is_error: result.is_error,
                        timestamp: time,
                    })
                };
                results.iter().map(result).collect()
            }
            ("error", Some(words), None, None) => {
                vec![self.assistant_with(Vec::new(), StopReason::Error, Some(words))]
            }
            _ => return None,
        };
        for message in &mut messages {
            if let AgentMessage::Assistant(message) = message {
                message.timestamp = time;
            }
        }
        Some(messages)
    }

    fn assistant(&self, content: Vec<ContentBlock>, stop_reason: StopReason) -> AgentMessage {
        self.assistant_with(content, stop_reason, None)
    }

    fn assistant_with(
        &self,
        content: Vec<ContentBlock>,
        stop_reason: StopReason,
        error: Option<&String>,
    ) -> AgentMessage {
        AgentMessage::Assistant(AssistantMessage {
            content,
            model: self.of.model_used.clone().unwrap_or_default(),
            provider: String::new(),
            stop_reason,
            native_stop_reason: None,
            error_kind: None,
            error_message: error.cloned(),
            usage: None,
            warnings: None,
            agent: None,
            timestamp: self.time,
        })
    }

    fn as_custom(&self, part: &Part) -> AgentMessage {
        // How an activity is shown when nobody said how may change; what nobody said is not stored.
        let part = match part {
            Part::Activity(activity) if activity.display_info == Some(display::default_of(activity)) => {
                Part::Activity(Activity { display_info: None, ..activity.clone() })
            }
            part => part.clone(),
        };
        self.custom(PART, Some(json_of(&part)))
    }

    fn nothing_but_fields(&mut self) {
        self.push(self.custom(MESSAGE, None), self.mark());
    }

    fn custom(&self, custom_type: &str, details: Option<Json>) -> AgentMessage {
        AgentMessage::Custom(CustomMessage {
            custom_type: custom_type.to_owned(),
            content: Vec::new(),
            display: None,
            details,
            timestamp: self.time,
        })
    }

    fn mark(&self) -> Mark {
        Mark::new(&self.of.interaction_id, self.of.role)
    }

    fn push(&mut self, message: AgentMessage, mut mark: Mark) {
        if self.entries.is_empty() {
            (mark.message, mark.hidden.message) = fields_of(self.of);
        }
        self.entries.push((message, mark));
    }

    fn finish(self) -> Vec<NewEntry> {
        let Self { of, first, entries, .. } = self;
        let entry = |(at, (message, mark)): (usize, (AgentMessage, Mark))| NewEntry {
            entry_id: identity::entry_id(&of.interaction_id, of.role, first + at),
            message,
            origin: mark.into_origin(),
        };
        entries.into_iter().enumerate().map(entry).collect()
    }
}

/// The fields of a message that its entries do not say by themselves, and those that only operators see.
fn fields_of(message: &HistoryMessage) -> (Object, Object) {
    let shown = message.more.without_technical_details();
    let mut fields = shown.to_object();
    let mut state = |key: &str, value: Value| {
        if !value.is_null() {
            fields.insert(key.to_owned(), value);
        }
    };
    let text_is_told = message.role == Speaker::User
        && (message.parts.is_empty() || message.text_content == joined_text(&message.parts));
    if !text_is_told {
        state("text_content", message.text_content.clone().into());
    }
    state("response_text_main", message.response_text_main.clone().into());
    state("timestamp", message.timestamp.clone().into());
    state("processing_time_ms", message.processing_time_ms.clone().map_or(Value::Null, Value::Number));
    state("processed_at", message.processed_at.clone().into());
    state("model_used", message.model_used.clone().into());
    state("selection_mode", message.selection_mode.clone().into());
    state("message_type", message.message_type.clone().into());
    state("status", value_of(&json_of(&message.status)));
    if message.is_welcome_message {
        state("is_welcome_message", true.into());
    }
    let mut hidden = differences(&shown.to_object(), &message.more.to_object());
    hidden.extend(message.kept.to_object());
    (fields, hidden)
}

/// The block that is exactly this part.
fn block_of(part: &Part) -> Option<ContentBlock> {
    let block = block_like(part)?;
    let said = AgentMessage::User(UserMessage { content: vec![block.clone()], timestamp: 0 });
    match parts_made_of(&[said]).as_slice() {
        [made] if same_value(&value_of(&json_of(made)), &value_of(&json_of(part))) => Some(block),
        _ => None,
    }
}

/// The block that comes nearest to this part.
fn block_like(part: &Part) -> Option<ContentBlock> {
    match part {
        Part::Text(part) => Some(ContentBlock::text(part.text.as_str())),
        Part::Activity(_) => None,
        Part::Other(json) => {
            let fields: Fields = json.parse().ok()?;
            let url = fields.text("url").filter(|_| fields.text("type").as_deref() == Some("image"))?;
            let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some(ContentBlock::Image(ImageBlock {
                mime: mime.to_owned(),
                data: data.to_owned(),
                attachment_id: None,
            }))
        }
    }
}

/// The parts that messages make on the way out when their origins say nothing.
fn parts_made_of(messages: &[AgentMessage]) -> Vec<Part> {
    let options = Options::default();
    let mut maker = PartMaker::new(&options, 0, Texts::Moved);
    for (at, message) in messages.iter().enumerate() {
        let mut mark = Mark::new("", Speaker::Assistant);
        mark.joined = at > 0;
        let origin = mark.into_origin();
        maker.take(&mut Entry::of_message("".into(), message.clone(), Some(&origin)));
    }
    display::fill_in(&mut maker.parts);
    maker.parts
}

/// The keys of an object that are not the same in the other, with their values.
fn differences(than: &Object, object: &Object) -> Object {
    let differs = |(key, value): &(&String, &Value)| !than.get(*key).is_some_and(|other| same_value(other, value));
    object.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn object_of(part: &Part) -> Object {
    json_of(part).parse().unwrap_or_default()
}
