//! A turn in the making: what its entries amount to, without what they say.

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, EntryId, SessionEntry, StopReason, ToolUse, Turn, TurnError,
    TurnStatus, Usage,
};
use serde::Deserialize;

use super::tools::Tools;
use super::{Outlook, turn_id};
use crate::audit::Facts;
use crate::body::Body;
use crate::history::{Entry, Standing, Status, ended_as, failure};
use crate::redact::Redactor;

#[derive(Debug)]
pub(super) struct Open {
    turn: Turn,
    tools: Tools,
    /// Why the model stopped last, and whether that came in as a whole message.
    last_stop: Option<(StopReason, bool)>,
    /// Whether anything was said after the question.
    answered: bool,
    /// When the newest message was said.
    time: i64,
    stated: Stated,
    redactor: Redactor,
}

/// What a posted history message says of itself.
#[derive(Debug, Default, Deserialize)]
struct Stated {
    status: Option<Status>,
    processing_time_ms: Option<f64>,
    model_used: Option<String>,
}

impl Open {
    pub(super) fn begin(first: &Entry, entry: &SessionEntry, facts: &Facts) -> Self {
        let started_at = first.time().unwrap_or_else(|| entry.timestamp());
        let turn = Turn {
            turn_id: turn_id(first, entry.origin()),
            status: TurnStatus::Pending,
            model: facts.model.clone(),
            provider: facts.provider.clone(),
            usage: None,
            started_at,
            ended_at: None,
            duration_ms: None,
            first_entry_id: entry.id().clone(),
            last_entry_id: entry.id().clone(),
            tools: Vec::new(),
            errors: Vec::new(),
            working_directory: None,
            instructions: Vec::new(),
        };
        Self {
            turn,
            tools: Tools::default(),
            last_stop: None,
            answered: false,
            time: started_at,
            stated: Stated::default(),
            redactor: Redactor::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.turn.turn_id
    }

    pub(super) fn settled_by(&self, entry_id: &EntryId) -> Option<&ToolUse> {
        self.tools.settled_by(entry_id)
    }

    /// Takes the surroundings as they are by now.
    pub(super) fn know(&mut self, facts: &Facts) {
        self.turn.working_directory.clone_from(&facts.directory);
        self.turn.instructions.clone_from(&facts.sources);
        if self.last_stop.is_none() {
            self.turn.model.clone_from(&facts.model);
            self.turn.provider.clone_from(&facts.provider);
        }
    }

    pub(super) fn take(&mut self, entry: &Entry) {
        self.turn.last_entry_id = entry.id.clone();
        let Body::Message(message) = &entry.body else { return };
        self.time = message.timestamp();
        self.state(entry);
        match &**message {
            AgentMessage::User(message) => self.blocks(&entry.id, &message.content, None),
            AgentMessage::Assistant(message) => self.assistant(entry, message),
            AgentMessage::FunctionResult(message) => {
                self.answered = true;
                self.tools.result(&entry.id, message);
            }
            AgentMessage::Custom(_) => {}
        }
    }

    fn state(&mut self, entry: &Entry) {
        let Some(mark) = entry.mark.as_ref().filter(|mark| !mark.message.is_empty()) else { return };
        if mark.role == crate::history::Speaker::Assistant
            && let Ok(stated) = serde_json::from_value::<Stated>(mark.message.clone().into())
        {
            self.stated.status = stated.status.or(self.stated.status);
            self.stated.processing_time_ms = stated.processing_time_ms.or(self.stated.processing_time_ms);
            self.stated.model_used = stated.model_used.or(self.stated.model_used.take());
        }
    }

    fn assistant(&mut self, entry: &Entry, message: &AssistantMessage) {
        self.answered = true;
        self.tools.go_on();
        let named = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        self.turn.model = named(&message.model).or(self.turn.model.take());
        self.turn.provider = named(&message.provider).or(self.turn.provider.take());
        if let Some(usage) = &message.usage {
            add(self.turn.usage.get_or_insert_default(), usage);
        }
        self.last_stop = Some((message.stop_reason, entry.mark.is_some()));
        self.blocks(&entry.id, &message.content, Some(message.stop_reason));
        if let Some(words) = failure(message) {
            self.error(words, message.error_kind, Some(entry.id.clone()));
        }
    }

    fn blocks(&mut self, entry_id: &EntryId, blocks: &[ContentBlock], stop: Option<StopReason>) {
        for block in blocks {
            match block {
                ContentBlock::FunctionCall(call) => self.tools.call(entry_id, call, self.time, stop),
                ContentBlock::FunctionResult(result) => self.tools.block(entry_id, result, self.time),
                _ => {}
            }
        }
    }

    fn error(&mut self, words: String, kind: Option<banyan_model::ErrorKind>, entry_id: Option<EntryId>) {
        let message = self.redactor.text(&words, "").into_owned();
        self.turn.errors.push(TurnError { kind, message, entry_id });
    }

    /// The turn as it is. Without an outlook something else follows, so it is over.
    pub(super) fn close(mut self, outlook: Option<&Outlook>) -> Turn {
        let status = self.status(outlook);
        if let Some(reason) = outlook.and_then(|outlook| outlook.reason.clone())
            && !self.turn.errors.iter().any(|error| error.message == reason)
        {
            self.error(reason, None, None);
        }
        self.turn.status = status;
        self.turn.tools = self.tools.close(status);
        self.turn.model = self.stated.model_used.or(self.turn.model);
        if status.is_over() {
            self.turn.ended_at = Some(self.time);
            let took = u64::try_from(self.time.saturating_sub(self.turn.started_at)).ok();
            let stated = self.stated.processing_time_ms.filter(|ms| ms.is_finite() && *ms >= 0.0);
            self.turn.duration_ms = stated.map(|ms| ms as u64).or(took);
        }
        self.turn
    }

    fn status(&self, outlook: Option<&Outlook>) -> TurnStatus {
        if let Some(stated) = self.stated.status.filter(|status| *status != Status::Streaming) {
            return told(stated);
        }
        let open_ended = match self.last_stop {
            None => !self.answered,
            Some((StopReason::FunctionCall, posted)) => !posted,
            // Some say that they are done and wait all the same.
            Some((StopReason::End, posted)) => !posted && self.tools.awaits_any(),
            Some(_) => false,
        };
        match outlook.map(|outlook| (outlook.standing, outlook.idle)) {
            Some((Standing::Running, _)) => TurnStatus::Running,
            Some((Standing::Failed, _)) => TurnStatus::Failed,
            Some((Standing::Abandoned, _)) => TurnStatus::Interrupted,
            Some((Standing::Over, true)) if open_ended => TurnStatus::Pending,
            _ if self.stated.status == Some(Status::Streaming) => TurnStatus::Interrupted,
            _ if open_ended => TurnStatus::Interrupted,
            _ => told(ended_as(self.last_stop)),
        }
    }
}

fn told(status: Status) -> TurnStatus {
    match status {
        Status::Complete => TurnStatus::Finished,
        Status::Streaming => TurnStatus::Running,
        Status::Cancelled => TurnStatus::Cancelled,
        Status::Error => TurnStatus::Failed,
        Status::Interrupted => TurnStatus::Interrupted,
    }
}

fn add(sum: &mut Usage, usage: &Usage) {
    let plus = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or_default().saturating_add(more));
        }
    };
    plus(&mut sum.input, usage.input);
    plus(&mut sum.output, usage.output);
    plus(&mut sum.cache_read, usage.cache_read);
    plus(&mut sum.cache_write, usage.cache_write);
    plus(&mut sum.reasoning, usage.reasoning);
    if let Some(cost) = usage.cost_usd {
        sum.cost_usd = Some(sum.cost_usd.unwrap_or_default() + cost);
    }
}
