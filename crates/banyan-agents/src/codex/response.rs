//! A model's response: its items, and what stands between them.

use banyan_model::{AgentMessage, AssistantMessage, ContentBlock, EntryId, SessionEntry, StopReason, Usage};

use super::read::{Record, Rollout, State};
use crate::build::Place;
use crate::native::{self, Left};
use crate::{Problem, Sink};

/// A model's response that may not be complete.
pub(super) struct Response {
    pub(super) id: EntryId,
    pub(super) own: Option<EntryId>,
    pub(super) parent: Option<EntryId>,
    pub(super) at: i64,
    pub(super) natives: Vec<Left>,
    pub(super) content: Vec<ContentBlock>,
    pub(super) usage: Option<Usage>,
    pub(super) model: String,
    /// What was read after it began. Told behind it.
    pub(super) behind: Vec<(u64, SessionEntry)>,
    /// Where its newest part stands.
    pub(super) newest: u64,
    pub(super) told: bool,
    /// Where it begins, and what was remembered there.
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) before: State,
}

impl Rollout<'_> {
    /// One more item of a model's response.
    pub(super) fn response(
        &mut self,
        record: &Record<'_>,
        left: Option<String>,
        content: Vec<ContentBlock>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        for block in &content {
            if let ContentBlock::FunctionCall(call) = block {
                self.state.calls.insert(call.id.clone(), call.function_id.clone());
            }
        }
        let goes_on = self.response.as_ref().is_some_and(|open| !open.told && open.own == record.own);
        if !goes_on {
            self.close(sink)?;
            let id = self.entry_id(record);
            let parent = self.state.tip.clone();
            let before = self.state.clone();
            self.response = Some(Response {
                id: id.clone(),
                own: record.own.clone(),
                parent,
                at: self.state.at,
                natives: Vec::new(),
                content: Vec::new(),
                usage: self.state.held.take(),
                model: self.state.model.clone(),
                behind: Vec::new(),
                newest: 0,
                told: false,
                offset: record.line.offset,
                line: record.line.number,
                before,
            });
            self.state.tip = Some(id);
        }
        if let Some(open) = &mut self.response {
            open.newest = record.line.offset;
            open.natives.push(Left { line: record.line.number, record: left });
            open.content.extend(content);
        }
        Ok(())
    }

    pub(super) fn usage(&mut self, usage: Usage, record: &Record<'_>) {
        match &mut self.response {
            Some(latest) if latest.usage.is_none() => {
                latest.usage = Some(usage);
                latest.newest = record.line.offset;
            }
            _ => self.state.held = (!self.state.records).then_some(usage),
        }
    }

    /// The response is complete: tells it, and what stands behind it. Its usage may still come.
    pub(super) fn close(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        if self.response.as_ref().is_none_or(|response| response.told) {
            return Ok(());
        }
        self.tell_response(sink)?;
        let Some(response) = &mut self.response else { return Ok(()) };
        response.told = true;
        for (offset, entry) in std::mem::take(&mut response.behind) {
            self.tell(offset, entry, sink)?;
        }
        self.response = self.response.take().filter(|response| response.usage.is_none());
        Ok(())
    }

    pub(super) fn tell_response(&mut self, sink: &mut dyn Sink) -> Result<(), Problem> {
        let provider = self.telling.provider();
        let Some(response) = &mut self.response else { return Ok(()) };
        let calls = response.content.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)));
        let message = AssistantMessage {
            content: std::mem::take(&mut response.content),
            model: response.model.clone(),
            provider,
            stop_reason: if calls { StopReason::FunctionCall } else { StopReason::End },
            native_stop_reason: None,
            error_kind: None,
            error_message: None,
            usage: response.usage.clone(),
            warnings: None,
            agent: None,
            timestamp: response.at,
        };
        let parts = response.natives.len() as u64 + u64::from(response.usage.is_some());
        let place = Place {
            id: response.id.clone(),
            parent: response.parent.clone(),
            at: response.at,
            revision: parts.saturating_sub(1),
            origin: Some(native::origin("codex", &response.natives)),
        };
        let whole = AgentMessage::Assistant(message);
        let entry = place.message(&whole)?;
        // It is told once more when its usage comes.
        if let AgentMessage::Assistant(said) = whole {
            response.content = said.content;
        }
        let newest = response.newest;
        self.tell(newest, entry, sink)
    }
}
