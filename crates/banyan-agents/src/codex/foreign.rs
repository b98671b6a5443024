//! What was said elsewhere, as items of Codex.

use banyan_model::{AssistantMessage, ContentBlock, EntryId, Usage};
use serde_json::{Value, json};

use crate::build::iso;
use crate::native::put_own;
use crate::story::{Call, Step};
use crate::{Outgoing, Own};

/// A line of a rollout.
pub(super) fn line(at: i64, kind: &str, payload: Value) -> Value {
    json!({ "timestamp": iso(at), "type": kind, "payload": payload })
}

/// Makes lines of what was said elsewhere.
pub(super) struct Foreign<'a> {
    session: &'a Outgoing,
    /// In a paginated rollout events have another form, and items are enough.
    paginated: bool,
    total: Usage,
    pub(super) lost: Vec<String>,
}

impl<'a> Foreign<'a> {
    pub(super) fn new(session: &'a Outgoing, paginated: bool) -> Self {
        Self { session, paginated, total: Usage::default(), lost: Vec::new() }
    }

    fn own(&self, entry: Option<&EntryId>) -> Own {
        Own { session: self.session.meta.session_id.clone(), entry: entry.cloned(), made_up: entry.is_none() }
    }

    fn item(&self, at: i64, payload: Value, entry: Option<&EntryId>) -> Value {
        let mut line = line(at, "response_item", payload);
        put_own(&mut line, &self.own(entry));
        line
    }

    /// An event that repeats an item for those who look at the history.
    fn event(&self, at: i64, payload: Value) -> Option<Value> {
        let mut line = line(at, "event_msg", payload);
        put_own(&mut line, &self.own(None));
        (!self.paginated).then_some(line)
    }

    /// The lines of one step.
    pub(super) fn step(&mut self, step: &Step) -> Vec<Value> {
        match step {
            Step::User { entry, content, at } => {
                let items = content.iter().filter_map(|block| part(block, "input_text")).collect::<Vec<_>>();
                let message = json!({ "type": "message", "role": "user", "content": items });
                let mut lines = vec![self.item(*at, message, Some(entry))];
                let said = json!({ "type": "user_message", "message": texts(content), "kind": "plain" });
                lines.extend(self.event(*at, said));
                lines
            }
            Step::Assistant { entry, message, calls, at } => self.assistant(entry, message, calls, *at),
        }
    }

    fn assistant(&mut self, entry: &EntryId, message: &AssistantMessage, calls: &[Call], at: i64) -> Vec<Value> {
        let mut lines = Vec::new();
        for block in &message.content {
            let item = match block {
                ContentBlock::Text(text) => {
                    let content = [json!({ "type": "output_text", "text": text.text })];
                    lines.extend(self.event(at, json!({ "type": "agent_message", "message": text.text })));
                    json!({ "type": "message", "role": "assistant", "content": content })
                }
                ContentBlock::FunctionCall(call) => json!({
                    "type": "function_call", "name": call.function_id, "arguments": call.arguments.get(),
                    "call_id": call.id,
                }),
                ContentBlock::Thinking(thinking) => {
                    self.lose("thinking, which Codex takes back only with its own seal: it is shown and not sent");
                    let mut line =
                        line(at, "event_msg", json!({ "type": "agent_reasoning", "text": thinking.text }));
                    put_own(&mut line["payload"], &self.own(Some(entry)));
                    lines.push(line);
                    continue;
                }
                ContentBlock::Image(_) => {
                    self.lose("a picture that the model made");
                    continue;
                }
                ContentBlock::FunctionResult(_) | ContentBlock::File(_) => continue,
            };
            lines.push(self.item(at, item, Some(entry)));
        }
        lines.extend(message.usage.as_ref().and_then(|usage| self.usage(usage, entry, at)));
        lines.extend(calls.iter().map(|call| self.output(call)));
        lines
    }

    /// What came of a call.
    fn output(&mut self, Call { call, outcome }: &Call) -> Value {
        if outcome.is_error {
            self.lose("that calls failed: Codex has only the text of a result");
        }
        let plain = matches!(outcome.content.as_slice(), [ContentBlock::Text(_)] | []);
        let output = if plain {
            Value::String(texts(&outcome.content))
        } else {
            outcome.content.iter().filter_map(|block| part(block, "input_text")).collect()
        };
        let item = json!({ "type": "function_call_output", "call_id": call.id, "output": output });
        self.item(outcome.at, item, outcome.entry.as_ref())
    }

    fn usage(&mut self, usage: &Usage, entry: &EntryId, at: i64) -> Option<Value> {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = Some(sum.unwrap_or_default() + more.unwrap_or_default());
        };
        add(&mut self.total.input, usage.input);
        add(&mut self.total.output, usage.output);
        add(&mut self.total.cache_read, usage.cache_read);
        add(&mut self.total.reasoning, usage.reasoning);
        let info = json!({ "total_token_usage": tokens(&self.total), "last_token_usage": tokens(usage) });
        let mut line = line(at, "event_msg", json!({ "type": "token_count", "info": info, "rate_limits": null }));
        put_own(&mut line["payload"], &self.own(Some(entry)));
        (!self.paginated).then_some(line)
    }

    fn lose(&mut self, what: &str) {
        if self.lost.iter().all(|known| known != what) {
            self.lost.push(what.to_owned());
        }
    }
}

fn tokens(usage: &Usage) -> Value {
    let [input, output] = [usage.input, usage.output].map(Option::unwrap_or_default);
    json!({
        "input_tokens": input, "cached_input_tokens": usage.cache_read.unwrap_or_default(), "output_tokens": output,
        "reasoning_output_tokens": usage.reasoning.unwrap_or_default(), "total_tokens": input + output,
    })
}

/// Text or a picture as part of an item.
fn part(block: &ContentBlock, text: &str) -> Option<Value> {
    match block {
        ContentBlock::Text(block) => Some(json!({ "type": text, "text": block.text })),
        ContentBlock::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime, image.data);
            Some(json!({ "type": "input_image", "image_url": url }))
        }
        _ => None,
    }
}

fn texts(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
