//! Stores, sessions and messages to measure with.

use std::path::Path;

use banyan::{Banyan, Durability, Options, block_on};
use banyan_model::{
    AgentMessage, AppendManyRequest, AppendRequest, AssistantMessage, ContentBlock, CreateRequest, SessionId,
    StopReason, UserMessage,
};

use crate::workbench::Outcome;

/// Opens a store whose answers leave after the flush.
pub(crate) fn open(dir: &Path) -> Outcome<Banyan> {
    Ok(Banyan::open(dir, Options::default())?)
}

/// Opens a store whose answers leave after the write, for what is only being prepared.
pub(crate) fn open_buffered(dir: &Path) -> Outcome<Banyan> {
    Ok(Banyan::open(dir, Options { durability: Durability::Buffered, ..Options::default() })?)
}

/// A new session without a title.
pub(crate) fn create(store: &Banyan) -> Outcome<SessionId> {
    Ok(block_on(store.create(CreateRequest::default()))?.session_id)
}

/// Prose of so many bytes, different for each number.
pub(crate) fn text(number: usize, bytes: usize) -> String {
    const WORDS: [&str; 8] = ["the ", "roots ", "of ", "a ", "banyan ", "reach ", "down ", "slowly "];
    let mut text = format!("{number}: ");
    let mut next = number;
    while text.len() < bytes {
        text.push_str(WORDS[next % WORDS.len()]);
        next = next.wrapping_mul(31).wrapping_add(7) >> 1;
        next = if next < WORDS.len() { next + number + text.len() } else { next };
    }
    text.truncate(bytes);
    text
}

/// A message of a person.
pub(crate) fn user(text: String) -> AgentMessage {
    AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: 1_717_800_000_000 })
}

/// A message of a model.
pub(crate) fn assistant(text: String) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content: vec![ContentBlock::text(text)],
        model: "model".to_owned(),
        provider: "provider".to_owned(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp: 1_717_800_000_000,
    })
}

/// Asks to append a message.
pub(crate) fn append(session: &SessionId, message: AgentMessage) -> AppendRequest {
    AppendRequest {
        session_id: session.clone(),
        message: Some(message),
        custom: None,
        parent_id: None,
        entry_id: None,
        origin: None,
        expected_leaf: None,
    }
}

/// Fills a session with messages of 1 KiB, a person's and a model's in turn.
pub(crate) fn fill(store: &Banyan, session: &SessionId, entries: usize) -> Outcome<()> {
    const AT_ONCE: usize = 500;
    let numbers: Vec<usize> = (0..entries).collect();
    for chunk in numbers.chunks(AT_ONCE) {
        let message = |number: &usize| match number % 2 {
            0 => user(text(*number, 1024)),
            _ => assistant(text(*number, 1024)),
        };
        block_on(store.append_many(AppendManyRequest {
            session_id: session.clone(),
            messages: chunk.iter().map(message).collect(),
            parent_id: None,
            origin: None,
        }))?;
    }
    Ok(())
}
