//! Sessions made at random: branches, parallel calls, failures, pictures, thinking. Every entry has a proper place.

use banyan_agents::{Outgoing, Step, Story};
use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, EntryId, FunctionCallBlock, FunctionResultMessage, ImageBlock,
    Json, MessageEntry, Object, Raw, Revision, SessionEntry, SessionId, SessionMeta, SessionStatus, StopReason,
    ThinkingBlock, Usage, UserMessage,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// When the first entry was made: 2026-01-02 03:04:05 UTC.
pub const BEGIN: i64 = 1_767_323_045_000;
/// A picture of one pixel.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What one round of a generated session is: somebody asks, a model answers.
#[derive(Clone, Debug)]
pub struct Round {
    /// How many entries before the newest the round begins; 0 goes on from the newest.
    pub back: usize,
    pub question: String,
    pub picture: bool,
    pub answers: Vec<Answer>,
}

/// What one response of a model is.
#[derive(Clone, Debug)]
pub struct Answer {
    pub thinking: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<Called>,
    pub failed: bool,
}

/// A call, and what came of it.
#[derive(Clone, Debug)]
pub struct Called {
    pub argument: String,
    pub result: String,
    pub is_error: bool,
    pub picture: bool,
}

/// Text as people and programs write it, never blank.
pub fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-zA-Z0-9äöü,.!?\"'\\\\ ]{1,40}".prop_map(|text| format!("w{text}w")),
        1 => "[a-z]{1,8}\n\n[#>*`{}<\\[\\]|:-] ?[a-z]{1,8}\t[a-z]{1,8}",
        1 => Just("日本語 🌳 \u{1}\u{7f} end".to_owned()),
        1 => Just("long ".repeat(400) + "end"),
    ]
}

/// A whole session.
pub fn sessions() -> impl Strategy<Value = Outgoing> {
    vec(rounds(), 1..6).prop_map(|rounds| session(&rounds))
}

/// A session without branches and without answers that failed, for agents that hold nothing else.
pub fn plain_sessions() -> impl Strategy<Value = Outgoing> {
    vec(rounds(), 1..6).prop_map(|mut rounds| {
        for round in &mut rounds {
            round.back = 0;
            round.answers.iter_mut().for_each(|answer| answer.failed = false);
        }
        session(&rounds)
    })
}

fn rounds() -> impl Strategy<Value = Round> {
    let back = prop_oneof![3 => Just(0_usize), 1 => 1..12_usize];
    (back, words(), prop::bool::weighted(0.2), vec(answers(), 1..4))
        .prop_map(|(back, question, picture, answers)| Round { back, question, picture, answers })
}

fn answers() -> impl Strategy<Value = Answer> {
    let calls = vec(calls(), 0..4);
    let some = |chance| prop::option::weighted(chance, words());
    (some(0.3), some(0.8), calls, prop::bool::weighted(0.1)).prop_map(|(thinking, text, calls, failed)| Answer {
        thinking,
        text,
        calls,
        failed,
    })
}

fn calls() -> impl Strategy<Value = Called> {
    (words(), words(), prop::bool::weighted(0.2), prop::bool::weighted(0.1))
        .prop_map(|(argument, result, is_error, picture)| Called { argument, result, is_error, picture })
}

/// The session of these rounds. Results stand in the reverse order of their calls every other time.
pub fn session(rounds: &[Round]) -> Outgoing {
    let mut made = Made::default();
    for round in rounds {
        if round.back > 0 && !made.entries.is_empty() {
            let at = made.entries.len().saturating_sub(1 + round.back);
            made.leaf = made.entries.get(at).map(|entry| entry.id().clone());
        }
        let mut content = vec![ContentBlock::text(&round.question)];
        content.extend(round.picture.then(picture));
        made.push(|timestamp| AgentMessage::User(UserMessage { content, timestamp }));
        for answer in &round.answers {
            made.answer(answer);
        }
    }
    made.finish()
}

fn picture() -> ContentBlock {
    ContentBlock::Image(ImageBlock { mime: "image/png".to_owned(), data: PIXEL.to_owned(), attachment_id: None })
}

#[derive(Default)]
struct Made {
    entries: Vec<SessionEntry>,
    leaf: Option<EntryId>,
    calls: usize,
}

impl Made {
    fn push(&mut self, message: impl FnOnce(i64) -> AgentMessage) {
        let number = self.entries.len();
        let timestamp = BEGIN + 1000 * number as i64;
        let id = EntryId::from(format!("e_{:032x}", 0xabc0_0000 + number));
        let message = Raw::of(&message(timestamp)).unwrap();
        let parent_id = self.leaf.replace(id.clone());
        let revision = Revision::default();
        self.entries.push(SessionEntry::Message(MessageEntry {
            id,
            parent_id,
            timestamp,
            revision,
            origin: None,
            message,
        }));
    }

    fn answer(&mut self, answer: &Answer) {
        let mut content = Vec::new();
        if let Some(text) = &answer.thinking {
            let signature = Some("c2VhbGVk".to_owned());
            content.push(ContentBlock::Thinking(ThinkingBlock { text: text.clone(), signature }));
        }
        content.extend(answer.text.as_ref().map(ContentBlock::text));
        let mut results = Vec::new();
        for called in &answer.calls {
            self.calls += 1;
            let id = format!("call_{}", self.calls);
            let arguments = Json::of(&serde_json::json!({"path": called.argument, "limit": self.calls})).unwrap();
            content.push(ContentBlock::FunctionCall(FunctionCallBlock {
                id: id.clone(),
                function_id: "read_file".to_owned(),
                arguments,
            }));
            results.push((id, called));
        }
        if self.calls.is_multiple_of(2) {
            results.reverse();
        }
        // An answer that says nothing is one that failed, or none at all.
        if content.is_empty() && !answer.failed {
            content.push(ContentBlock::text("…"));
        }
        let stop_reason = match (answer.failed, results.is_empty()) {
            (true, _) => StopReason::Error,
            (false, true) => StopReason::End,
            (false, false) => StopReason::FunctionCall,
        };
        let error_message = answer.failed.then(|| "overloaded".to_owned());
        let usage = Usage { input: Some(100), output: Some(7), cache_read: Some(20), ..Usage::default() };
        self.push(|timestamp| {
            AgentMessage::Assistant(AssistantMessage {
                content,
                model: "gpt-5".to_owned(),
                provider: "openai".to_owned(),
                stop_reason,
                native_stop_reason: None,
                error_kind: None,
                error_message,
                usage: Some(usage),
                warnings: None,
                agent: None,
                timestamp,
            })
        });
        for (id, called) in results {
            let mut content = vec![ContentBlock::text(&called.result)];
            content.extend(called.picture.then(picture));
            self.push(|timestamp| {
                AgentMessage::FunctionResult(FunctionResultMessage {
                    function_call_id: id,
                    function_id: "read_file".to_owned(),
                    content,
                    details: Json::null(),
                    is_error: called.is_error,
                    timestamp,
                })
            });
        }
    }

    fn finish(self) -> Outgoing {
        let updated_at = self.entries.last().map_or(BEGIN, SessionEntry::timestamp);
        let mut metadata = Object::new();
        metadata.insert("cwd".to_owned(), "/home/dev/proj01".into());
        let meta = SessionMeta {
            session_id: SessionId::from("s_generated"),
            title: "A generated session".to_owned(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata: Some(metadata),
            forked_from: None,
            message_count: self.entries.len() as u64,
            created_at: BEGIN,
            updated_at,
        };
        Outgoing { meta, entries: self.entries, leaf: self.leaf }
    }
}

/// The conversation on the active path, one line each thing said, to be compared with what came back.
pub fn told(session: &Outgoing, with_thinking: bool) -> Vec<String> {
    let mut told = Vec::new();
    for step in Story::of(session).steps {
        match step {
            Step::User { content, .. } => told.extend(blocks("user", &content, with_thinking)),
            Step::Assistant { message, calls, .. } => {
                told.extend(blocks("assistant", &message.content, with_thinking));
                for call in calls {
                    let error = if call.outcome.is_error { "error" } else { "result" };
                    let head = format!("{error} of {}", call.call.id);
                    told.extend(blocks(&head, &call.outcome.content, with_thinking));
                }
            }
        }
    }
    told
}

fn blocks(head: &str, content: &[ContentBlock], with_thinking: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for block in content {
        lines.push(match block {
            ContentBlock::Text(block) => format!("{head}: {}", block.text),
            ContentBlock::Image(block) => format!("{head}: [{} {}]", block.mime, block.data),
            ContentBlock::Thinking(block) if with_thinking => format!("{head} thinks: {}", block.text),
            ContentBlock::FunctionCall(call) => {
                format!("{head} calls {} {} {:?}", call.id, call.function_id, call.arguments)
            }
            ContentBlock::Thinking(_) | ContentBlock::FunctionResult(_) | ContentBlock::File(_) => continue,
        });
    }
    lines
}
