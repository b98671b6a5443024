//! What an entry says, as it is searched.

use std::fmt;

use banyan_model::{AgentMessage, ContentBlock, CustomPayload, Error, Json, Origin, Role};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::bodies::{Body, Fetched};

/// What is indexed of an entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) role: Option<Role>,
    pub(super) text: String,
    /// The functions that it calls or has the result of.
    pub(super) tools: Vec<String>,
}

/// So much is indexed of one piece of text, from its beginning. Results of tools can be very long.
const FIRST: usize = 64 << 10;
/// And so much from its end, where errors stand.
const LAST: usize = 16 << 10;
/// So much is indexed of an entry.
const MOST: usize = 1 << 20;

impl Said {
    pub(super) fn of(entry: &Fetched) -> Result<Self, Error> {
        let mut said = Self::default();
        match &entry.body {
            Body::Message(message) => said.message(&message.parse()?),
            Body::Custom(custom) if is_record(custom, entry.origin.as_ref()) => {
                read(&custom.data, What::Sentences, &mut said)?;
            }
            Body::Custom(custom) => {
                said.put(&custom.custom_type);
                read(&custom.data, What::Everything, &mut said)?;
            }
        }
        Ok(said)
    }

    fn message(&mut self, message: &AgentMessage) {
        self.role = Some(message.role());
        match message {
            AgentMessage::FunctionResult(result) => self.tool(&result.function_id),
            AgentMessage::Custom(custom) => {
                self.put(&custom.custom_type);
                self.put(custom.display.as_deref().unwrap_or_default());
            }
            AgentMessage::Assistant(_) | AgentMessage::User(_) => {}
        }
        self.blocks(message.content());
        if let AgentMessage::Assistant(assistant) = message {
            self.put(assistant.error_message.as_deref().unwrap_or_default());
        }
    }

    fn blocks(&mut self, blocks: &[ContentBlock]) {
        for block in blocks {
            match block {
                ContentBlock::Text(text) => self.put(&text.text),
                ContentBlock::Thinking(thinking) => self.put(&thinking.text),
                ContentBlock::FunctionCall(call) => {
                    self.tool(&call.function_id);
                    // Arguments are JSON by their type, so this only fails when they nest too deep to be read.
                    let before = self.text.len();
                    if read(&call.arguments, What::Everything, self).is_err() {
                        self.text.truncate(before);
                    }
                }
                ContentBlock::FunctionResult(result) => self.blocks(&result.content),
                ContentBlock::File(file) => self.put(&file.name),
                ContentBlock::Image(_) => {}
            }
        }
    }

    fn tool(&mut self, id: &str) {
        self.put(id);
        if !self.tools.iter().any(|known| known == id) {
            self.tools.push(id.to_owned());
        }
    }

    fn put(&mut self, piece: &str) {
        let room = MOST.saturating_sub(self.text.len());
        if piece.is_empty() || room == 0 {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let piece = if piece.len() > FIRST + LAST {
            self.text.push_str(&piece[..piece.floor_char_boundary(FIRST)]);
            self.text.push_str("\n…\n");
            &piece[piece.ceil_char_boundary(piece.len() - LAST)..]
        } else {
            piece
        };
        self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
    }
}

/// Whether it is a record of the agent that the session comes from, kept as it is: its type begins with the agent's name.
fn is_record(custom: &CustomPayload, origin: Option<&Origin>) -> bool {
    let agent = custom.custom_type.split_once('.').map(|(agent, _)| agent);
    agent.zip(origin).is_some_and(|(agent, origin)| origin.has(agent))
}

/// Puts what JSON says. Texts are taken as they are, not as JSON spells them.
fn read(json: &Json, what: What, said: &mut Said) -> Result<(), Error> {
    let mut reader = serde_json::Deserializer::from_str(json.get());
    Reading { what, said }
        .deserialize(&mut reader)
        .map_err(|error| Error::storage(format!("stored JSON cannot be read: {error}")))
}

/// What is taken of JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// Its keys and values.
    Everything,
    /// Texts of several words. An agent's records are mostly bookkeeping, far more of it than was ever said, and nobody looks for
    /// that: names of fields, ids, counts and settings.
    Sentences,
}

/// Takes what a value says while it is read, without making a value of it first.
struct Reading<'s> {
    what: What,
    said: &'s mut Said,
}

impl Reading<'_> {
    fn inner(&mut self) -> Reading<'_> {
        Reading { what: self.what, said: &mut *self.said }
    }

    fn number(self, number: &dyn fmt::Display) {
        if self.what == What::Everything {
            self.said.put(&number.to_string());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        // Not every script has blanks between words.
        let parted = |byte: u8| byte.is_ascii_whitespace() || !byte.is_ascii();
        if self.what == What::Everything || text.trim_ascii().bytes().any(parted) {
            self.said.put(text);
        }
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(&number);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(&number);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if let Some(number) = Number::from_f64(number) {
            self.number(&number);
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        loop {
            let more = match self.what {
                What::Everything => fields.next_key_seed(self.inner())?.is_some(),
                What::Sentences => fields.next_key::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(());
            }
            fields.next_value_seed(self.inner())?;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use banyan_model::Raw;
    use serde_json::json;

    use super::*;

    fn said(message: serde_json::Value) -> Said {
        let body = Body::Message(Raw::vouched(&message.to_string()));
        Said::of(&Fetched { body, origin: None }).unwrap()
    }

    fn said_of_custom(custom_type: &str, origin: Option<serde_json::Value>) -> String {
        let data = json!({
            "type": "event_msg", "id": "7f-e2", "tokens": 12, "n": -1.5, "note": " one ", "nothing": null,
            "payload": { "message": "two words", "list": ["数据库", "naïve", "x\ty"] }
        });
        let body =
            Body::Custom(CustomPayload { custom_type: custom_type.to_owned(), data: Json::of(&data).unwrap() });
        let origin = origin.map(|origin| Origin::vouched(&origin.to_string()).unwrap());
        Said::of(&Fetched { body, origin }).unwrap().text
    }

    #[test]
    fn of_an_agents_own_record_only_the_sentences_are_taken() {
        let sentences = "two words\n数据库\nnaïve\nx\ty";
        assert_eq!(said_of_custom("codex.event_msg", Some(json!({"codex": 12}))), sentences);
    }

    #[test]
    fn of_other_custom_entries_everything_is_taken() {
        let everything = "type\nevent_msg\nid\n7f-e2\ntokens\n12\nn\n-1.5\nnote\n one \nnothing\npayload\nmessage\n\
                          two words\nlist\n数据库\nnaïve\nx\ty";
        for (custom_type, origin) in [
            ("mine", None),
            ("codex.note", None),
            ("codex", Some(json!({"codex": 1}))),
            ("my.note", Some(json!({"codex": 1}))),
        ] {
            assert_eq!(said_of_custom(custom_type, origin), format!("{custom_type}\n{everything}"));
        }
    }

    #[test]
    fn a_message_is_all_that_a_person_could_have_read() {
        let message = json!({
            "role": "assistant", "model": "m", "provider": "p", "stop_reason": "function_call", "timestamp": 1,
            "content": [
                {"type": "thinking", "text": "hmm", "signature": "c2VjcmV0"},
                {"type": "text", "text": "I will look"},
                {"type": "function_call", "id": "c1", "function_id": "fs::read",
                 "arguments": {"path": "src/main.rs", "lines": [1, 2], "text": "a\"b"}},
                {"type": "image", "mime": "image/png", "data": "AAAA"}
            ]
        });
        let expected = Said {
            role: Some(Role::Assistant),
            text: "hmm\nI will look\nfs::read\npath\nsrc/main.rs\nlines\n1\n2\ntext\na\"b".to_owned(),
            tools: vec!["fs::read".to_owned()],
        };
        assert_eq!(said(message), expected);
    }

    #[test]
    fn of_a_very_long_result_the_beginning_and_the_end_are_taken() {
        let long = format!("begin {} end", "é".repeat(200_000));
        let message = json!({
            "role": "function_result", "function_call_id": "c1", "function_id": "sh", "timestamp": 1,
            "content": [{"type": "text", "text": long}]
        });
        let said = said(message);
        assert!(said.text.starts_with("sh\nbegin ") && said.text.ends_with(" end"));
        assert!(said.text.len() < FIRST + LAST + 16, "{}", said.text.len());
    }
}
