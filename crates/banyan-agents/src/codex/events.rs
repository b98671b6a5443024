//! What events and usage records say that a conversation wants to know.

use std::borrow::Cow;

use banyan_model::{EntryId, Usage};
use serde::Deserialize;

use crate::Own;
use crate::outline::{Found, sought};

sought! {
    /// An event, as far as anybody looks.
    pub(super) struct Event<'a> {
        kind: Cow<'a, str> = "type",
        info: Found<'a> = "info",
        error: Found<'a> = "error",
        num_turns: u64 = "num_turns",
        x_banyan: Own = "x_banyan",
    }
}

#[derive(Deserialize)]
struct Count {
    total_token_usage: Tokens,
    last_token_usage: Tokens,
}

/// The record of what one response used.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct TokenUsage {
    usage: Tokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: Option<u64>,
    output_tokens: u64,
    reasoning_output_tokens: u64,
    total_tokens: u64,
}

impl Tokens {
    fn usage(&self) -> Usage {
        Usage {
            input: Some(self.input_tokens),
            output: Some(self.output_tokens),
            cache_read: Some(self.cached_input_tokens),
            cache_write: self.cache_write_input_tokens,
            reasoning: Some(self.reasoning_output_tokens),
            cost_usd: None,
        }
    }
}

impl TokenUsage {
    pub(super) fn usage(&self) -> Usage {
        self.usage.usage()
    }
}

impl Event<'_> {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    /// Whether we wrote it as a part of a response.
    pub(super) fn is_own(&self) -> bool {
        self.x_banyan.is_some()
    }

    /// The response that it is a part of.
    pub(super) fn entry(&self) -> Option<EntryId> {
        self.x_banyan.as_ref()?.entry.clone()
    }

    /// Why the turn failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        if self.kind() != "task_complete" {
            return None;
        }
        Some(self.error?.get("message")?.text()?.into_owned())
    }

    /// How many tokens there were so far, and what the last response used.
    pub(super) fn count(&self) -> Option<(u64, Usage)> {
        let count: Count = self.info?.read()?;
        Some((count.total_token_usage.total_tokens, count.last_token_usage.usage()))
    }

    /// How many turns are taken back.
    pub(super) fn rolled_back(&self) -> u64 {
        self.num_turns.filter(|_| self.kind() == "thread_rolled_back").unwrap_or_default()
    }
}
