//! The conversations of one file: the main one, and in old versions those of its sub-agents.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use banyan_model::{AgentMessage, AssistantMessage, ContentBlock, EntryId, SessionEntry, StopReason, Usage};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::build::Place;
use crate::native::{self, Left};
use crate::telling::Telling;
use crate::{Problem, Sink};

/// So many records back a continued reading finds the one that a new one follows.
const RECENT: usize = 32;

/// What a reading has to remember between two lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The newest entry.
    pub(super) tip: Option<EntryId>,
    /// The newest record that has a place in the tree, by its name.
    pub(super) last: Option<String>,
    /// The functions of calls that have no result yet.
    pub(super) calls: BTreeMap<String, String>,
    /// Where the newest records are: what follows one of them goes behind the entry named here.
    pub(super) recent: VecDeque<(Arc<str>, EntryId)>,
    pub(super) at: i64,
}

impl State {
    /// `is_new` says that the record was not there before, so that it need not be looked for.
    pub(super) fn remember(&mut self, uuid: &str, entry: &EntryId, is_new: bool) {
        match self.recent.iter_mut().rev().find(|(known, _)| !is_new && **known == *uuid) {
            Some((_, at)) => at.clone_from(entry),
            None => self.recent.push_back((uuid.into(), entry.clone())),
        }
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }
}

/// A model's response, to which lines may still be added.
pub(super) struct Response {
    pub(super) message: String,
    pub(super) id: EntryId,
    pub(super) parent: Option<EntryId>,
    pub(super) at: i64,
    pub(super) natives: Vec<Left>,
    pub(super) content: Vec<ContentBlock>,
    pub(super) usage: Option<Usage>,
    pub(super) model: String,
    pub(super) stop: Option<String>,
    pub(super) error: Option<String>,
    /// The names of its lines, and of the results of its calls.
    pub(super) lines: Vec<u128>,
    pub(super) results: Vec<u128>,
    /// Where its newest line begins, and whether that was told.
    pub(super) newest: u64,
    pub(super) told: bool,
    /// Where it begins, and what was remembered there.
    pub(super) begins: (u64, u64),
    pub(super) before: State,
}

/// One conversation of a file.
pub(super) struct Chat {
    pub(super) telling: Telling,
    pub(super) state: State,
    pub(super) response: Option<Response>,
    /// The entry that a later record says is the live one.
    pub(super) leaf: Option<EntryId>,
}

impl Chat {
    pub(super) fn new(telling: Telling, state: State) -> Self {
        Self { telling, state, response: None, leaf: None }
    }

    /// Tells an entry, unless an earlier reading did.
    pub(super) fn tell(&mut self, entry: SessionEntry, is_new: bool, sink: &mut dyn Sink) -> Result<(), Problem> {
        self.state.tip = Some(entry.id().clone());
        if is_new {
            sink.entry(&self.telling.head.session, entry)?;
        }
        Ok(())
    }

    /// Tells the response as far as it is known.
    pub(super) fn flush(&mut self, told: u64, sink: &mut dyn Sink) -> Result<(), Problem> {
        let Some(response) = self.response.as_mut().filter(|response| !response.told) else { return Ok(()) };
        response.told = true;
        if response.newest < told {
            return Ok(());
        }
        let calls = response.content.iter().any(|block| matches!(block, ContentBlock::FunctionCall(_)));
        let stop_reason = match response.stop.as_deref() {
            _ if response.error.is_some() => StopReason::Error,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("tool_use") => StopReason::FunctionCall,
            None if calls => StopReason::FunctionCall,
            _ => StopReason::End,
        };
        let message = AgentMessage::Assistant(AssistantMessage {
            content: std::mem::take(&mut response.content),
            model: response.model.clone(),
            provider: "anthropic".to_owned(),
            stop_reason,
            native_stop_reason: response.stop.clone(),
            error_kind: None,
            error_message: response.error.clone(),
            usage: response.usage.clone(),
            warnings: None,
            agent: None,
            timestamp: response.at,
        });
        let place = Place {
            id: response.id.clone(),
            parent: response.parent.clone(),
            at: response.at,
            revision: (response.natives.len() as u64).saturating_sub(1),
            origin: Some(native::origin("claude", &response.natives)),
        };
        let entry = place.message(&message)?;
        // More may be added to it, and then it is told once more.
        if let AgentMessage::Assistant(said) = message {
            response.content = said.content;
        }
        sink.entry(&self.telling.head.session, entry)?;
        Ok(())
    }
}

/// Where records are: in which conversation, and behind which entry their followers go.
#[derive(Default)]
pub(super) struct Known(HashMap<u128, (u32, EntryId)>);

impl Known {
    pub(super) fn get(&self, uuid: u128) -> Option<(usize, &EntryId)> {
        self.0.get(&uuid).map(|(chat, entry)| (*chat as usize, entry))
    }

    /// Says whether it was not known before.
    pub(super) fn put(&mut self, uuid: u128, chat: usize, entry: &EntryId) -> bool {
        let chat = u32::try_from(chat).unwrap_or(u32::MAX);
        self.0.insert(uuid, (chat, entry.clone())).is_none()
    }
}
