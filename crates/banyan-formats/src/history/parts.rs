//! The parts that entries make, in their order.

use std::borrow::Cow;

use banyan_model::{
    AgentMessage, AssistantMessage, AttachmentId, ContentBlock, CustomMessage, ErrorKind, FunctionCallBlock,
    FunctionResultMessage, ImageBlock, Json, Object, StopReason,
};
use serde_json::{Value, json};

use super::dialect::SOMEBODY;
use super::entry::{Entry, MESSAGE, PART, display_of};
use super::fields::{Fields, json_of};
use super::message::Disclosure;
use super::origin::Mark;
use super::part::{Activity, Part, ToolCall, ToolResult};
use super::time::iso;
use crate::body::Body;

/// How a history is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who it is for.
    pub disclosure: Disclosure,
    /// The address of the session's attachments; an id is added to it.
    pub attachments: String,
}

/// Where a part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which entry of the message, counted from 0.
    pub entry: usize,
    /// The block whose text is the part's text, so that one grows as the other does.
    pub block: Option<usize>,
}

/// What becomes of the texts of entries that parts are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// They are copied, because the entries are needed again.
    Copied,
    /// They go into the parts.
    Moved,
}

/// Makes parts of one entry after another.
pub(crate) struct PartMaker<'a> {
    options: &'a Options,
    texts: Texts,
    pub(crate) parts: Vec<Part>,
    pub(crate) places: Vec<Place>,
    source: Cow<'static, str>,
    time: i64,
    entry: usize,
    calls: Vec<(String, String)>,
}

impl<'a> PartMaker<'a> {
    /// A maker for entries that follow what was said at this time.
    pub(crate) fn new(options: &'a Options, time: i64, texts: Texts) -> Self {
        let (parts, places, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self { options, texts, parts, places, source: Cow::Borrowed(SOMEBODY), time, entry: 0, calls }
    }

    /// The parts of the next entry.
    pub(crate) fn take(&mut self, entry: &mut Entry) {
        let first = self.parts.len();
        self.time = entry.time().unwrap_or(self.time);
        match &mut entry.body {
            Body::Message(message) => self.message(message, entry.mark.as_ref()),
            Body::Custom(custom) => {
                if let Some(display) = display_of(custom) {
                    self.other(&custom.custom_type, display, None);
                }
            }
            Body::Unreadable => self.other("banyan", "This entry could not be read.".to_owned(), None),
        }
        if let (Some(mark), true) = (&entry.mark, self.parts.len() > first) {
            self.change(first, &mark.part);
        }
        match (self.options.disclosure, &entry.mark) {
            (Disclosure::Operator, Some(mark)) if self.parts.len() > first => {
                self.change(first, &mark.hidden.part)
            }
            (Disclosure::Operator, _) => {}
            (Disclosure::Public, _) => self.parts[first..].iter_mut().for_each(Part::remove_technical_details),
        }
        self.entry += 1;
    }

    fn change(&mut self, at: usize, changes: &Object) {
        if !changes.is_empty() {
            let part = std::mem::replace(&mut self.parts[at], Part::Other(Json::null()));
            self.parts[at] = part.with(&Fields::from(changes));
        }
    }

    fn message(&mut self, message: &mut AgentMessage, mark: Option<&Mark>) {
        match message {
            AgentMessage::User(message) => self.blocks(&mut message.content),
            AgentMessage::Assistant(message) => self.assistant(message),
            AgentMessage::FunctionResult(message) => self.result(message, mark.is_some_and(|mark| mark.joined)),
            AgentMessage::Custom(message) => self.custom(message),
        }
    }

    fn assistant(&mut self, message: &mut AssistantMessage) {
        if let Some(name) = message.agent.as_ref().and_then(agent_name) {
            self.source = Cow::Owned(name);
        }
        self.blocks(&mut message.content);
        if let Some(words) = failure(message) {
            let error = Activity { content: Some(words), ..self.activity("error") };
            self.push(Part::Activity(error), None);
        }
    }

    fn result(&mut self, message: &mut FunctionResultMessage, joined: bool) {
        let result = ToolResult {
            name: message.function_id.clone(),
            content: text_of(&message.content),
            is_error: message.is_error,
            call_id: message.function_call_id.clone(),
        };
        match self.parts.last_mut() {
            Some(Part::Activity(Activity { results: Some(results), .. })) if joined => results.push(result),
            _ => {
                let activity = Activity { results: Some(vec![result]), ..self.activity("tool_result") };
                self.push(Part::Activity(activity), None);
            }
        }
        self.beside_text(&mut message.content);
    }

    fn custom(&mut self, message: &mut CustomMessage) {
        match (message.custom_type.as_str(), &message.details, &message.display) {
            (PART, Some(part), _) => self.push(Part::from_json(part), None),
            (MESSAGE, _, _) => {}
            (own, _, Some(display)) if !display.is_empty() => self.other(own, display.clone(), None),
            (_, _, Some(_)) => {}
            (own, _, None) => {
                for (at, block) in message.content.iter_mut().enumerate() {
                    match block {
                        ContentBlock::Text(block) if !block.text.is_empty() => {
                            let text = self.text(&mut block.text);
                            self.other(own, text, Some(at));
                        }
                        ContentBlock::Text(_) => {}
                        block => self.block(at, block),
                    }
                }
            }
        }
    }

    fn blocks(&mut self, blocks: &mut [ContentBlock]) {
        let mut calls: Vec<&FunctionCallBlock> = Vec::new();
        for (at, block) in blocks.iter_mut().enumerate() {
            if let ContentBlock::FunctionCall(call) = block {
                calls.push(call);
            } else {
                self.calls(&std::mem::take(&mut calls));
                self.block(at, block);
            }
        }
        self.calls(&calls);
    }

    /// One activity of calls that were made together.
    fn calls(&mut self, calls: &[&FunctionCallBlock]) {
        if calls.is_empty() {
            return;
        }
        let tool = |call: &&FunctionCallBlock| ToolCall {
            name: call.function_id.clone(),
            arguments: call.arguments.clone(),
            id: call.id.clone(),
        };
        let tools: Vec<ToolCall> = calls.iter().map(tool).collect();
        self.calls.extend(tools.iter().map(|tool| (tool.id.clone(), tool.name.clone())));
        let activity = Activity { tools: Some(tools), ..self.activity("tool_request") };
        self.push(Part::Activity(activity), None);
    }

    fn block(&mut self, at: usize, block: &mut ContentBlock) {
        match block {
            ContentBlock::Text(block) if block.text.is_empty() => {}
            ContentBlock::Text(block) => {
                let text = self.text(&mut block.text);
                self.push(Part::text(text), Some(at));
            }
            ContentBlock::Thinking(block) => {
                let text = self.text(&mut block.text);
                let thought = Activity { content: Some(text), ..self.activity("thought") };
                self.push(Part::Activity(thought), Some(at));
            }
            ContentBlock::FunctionCall(call) => self.calls(&[call]),
            ContentBlock::FunctionResult(block) => {
                let known = self.calls.iter().rev().find(|(id, _)| *id == block.function_call_id);
                let result = ToolResult {
                    name: known.map(|(_, name)| name.clone()).unwrap_or_default(),
                    content: text_of(&block.content),
                    is_error: block.is_error.unwrap_or_default(),
                    call_id: block.function_call_id.clone(),
                };
                let activity = Activity { results: Some(vec![result]), ..self.activity("tool_result") };
                self.push(Part::Activity(activity), None);
                self.beside_text(&mut block.content);
            }
            ContentBlock::Image(image) => {
                let picture = json!({"type": "image", "url": self.image_url(image), "alt": null});
                self.push(Part::Other(json_of(&picture)), None);
            }
            ContentBlock::File(file) => {
                let link = json!({
                    "type": "file_reference_output",
                    "file_id": file.attachment_id,
                    "filename": file.name,
                    "mime_type": file.mime,
                    "download_url": self.attachment_url(&file.attachment_id),
                    "size_bytes": file.size,
                });
                self.push(Part::Other(json_of(&link)), None);
            }
        }
    }

    /// Whatever a result has besides text is shown after it.
    fn beside_text(&mut self, blocks: &mut [ContentBlock]) {
        for block in blocks {
            if !matches!(block, ContentBlock::Text(_)) {
                self.block(0, block);
                if let Some(place) = self.places.last_mut() {
                    place.block = None;
                }
            }
        }
    }

    fn text(&self, text: &mut String) -> String {
        match self.texts {
            Texts::Copied => text.clone(),
            Texts::Moved => std::mem::take(text),
        }
    }

    fn image_url(&self, image: &ImageBlock) -> String {
        match &image.attachment_id {
            Some(id) => self.attachment_url(id),
            None => format!("data:{};base64,{}", image.mime, image.data),
        }
    }

    fn attachment_url(&self, id: &AttachmentId) -> String {
        format!("{}{id}", self.options.attachments)
    }

    fn other(&mut self, source: &str, content: String, block: Option<usize>) {
        let activity = Activity { source: source.to_owned(), content: Some(content), ..self.activity("other") };
        self.push(Part::Activity(activity), block);
    }

    fn activity(&self, kind: &str) -> Activity {
        Activity {
            activity_type: kind.to_owned(),
            source: self.source.clone().into_owned(),
            timestamp: iso(self.time),
            ..Activity::default()
        }
    }

    fn push(&mut self, part: Part, block: Option<usize>) {
        self.parts.push(part);
        self.places.push(Place { entry: self.entry, block });
    }
}

/// What failed, in words; none when nothing did.
pub(crate) fn failure(message: &AssistantMessage) -> Option<String> {
    if let Some(words) = &message.error_message {
        return Some(words.clone());
    }
    let words = match message.error_kind {
        Some(ErrorKind::AuthExpired) => "The credentials for the model are no longer accepted.",
        Some(ErrorKind::RateLimited) => "The model was asked too often.",
        Some(ErrorKind::ContextOverflow) => "The conversation does not fit the model.",
        Some(ErrorKind::Transient) => "The model could not answer. A later attempt can succeed.",
        Some(ErrorKind::Permanent) => "The model could not answer.",
        None if message.stop_reason == StopReason::Error => "The model could not answer.",
        None => return None,
    };
    Some(words.to_owned())
}

/// The name of an agent, in whatever form a caller keeps it.
fn agent_name(agent: &Json) -> Option<String> {
    let name = match agent.parse::<Value>().ok()? {
        Value::String(name) => name,
        Value::Object(mut agent) => match agent.remove("name").or_else(|| agent.remove("id"))? {
            Value::String(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    if name.is_empty() { None } else { Some(name) }
}

/// The texts among blocks, a line each.
pub(crate) fn text_of(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
