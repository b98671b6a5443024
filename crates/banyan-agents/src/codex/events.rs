//! What events and usage records say that a conversation wants to know.

use std::borrow::Cow;

use banyan_model::{EntryId, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Own;

/// An event, as far as anybody looks.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    num_turns: Option<u64>,
    x_banyan: Option<Own>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
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
        if self.kind != "task_complete" {
            return None;
        }
        let failure: Failure = serde_json::from_str(self.error?.get()).ok()?;
        Some(failure.message)
    }

    /// How many tokens there were so far, and what the last response used.
    pub(super) fn count(&self) -> Option<(u64, Usage)> {
        let count: Count = serde_json::from_str(self.info?.get()).ok()?;
        Some((count.total_token_usage.total_tokens, count.last_token_usage.usage()))
    }

    /// How many turns are taken back.
    pub(super) fn rolled_back(&self) -> u64 {
        self.num_turns.filter(|_| self.kind == "thread_rolled_back").unwrap_or_default()
    }
}
