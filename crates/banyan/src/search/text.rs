//! What an entry says, as it is searched.

use std::fmt;

use banyan_model::{AgentMessage, ContentBlock, Role};
use memchr::memchr2;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::bodies::Spelled;

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
    pub(super) fn of(entry: &Spelled<'_>) -> Result<Self, serde_json::Error> {
        let mut said = Self::default();
        match entry.custom_type.as_deref() {
            None => said.message(&serde_json::from_str(&entry.text)?),
            Some(custom_type) if is_record(custom_type, entry.origin.as_deref()) => {
                if may_have_sentences(&entry.text) {
                    read(&entry.text, What::Sentences, &mut said)?;
                }
            }
            Some(custom_type) => {
                said.put(custom_type);
                read(&entry.text, What::Everything, &mut said)?;
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
                    if read(call.arguments.get(), What::Everything, self).is_err() {
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

/// Whether custom data is a record of the agent that the session comes from, kept as it is: its type begins with the agent's name,
/// and so does its origin.
fn is_record(custom_type: &str, origin: Option<&str>) -> bool {
    let Some((agent, _)) = custom_type.split_once('.') else { return false };
    let named = origin.and_then(|origin| origin.strip_prefix("{\"")?.strip_prefix(agent));
    named.is_some_and(|rest| rest.starts_with("\":"))
}

/// Whether there can be a text of several words in JSON. In most of an agent's records there is none, and they need not be read.
fn may_have_sentences(json: &str) -> bool {
    memchr2(b' ', b'\\', json.as_bytes()).is_some() || !json.is_ascii()
}

/// Puts what JSON says. Texts are taken as they are, not as JSON spells them.
fn read(json: &str, what: What, said: &mut Said) -> Result<(), serde_json::Error> {
    Reading { what, said }.deserialize(&mut serde_json::Deserializer::from_str(json))
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

    use serde_json::json;

    use super::*;

    fn said(message: serde_json::Value) -> Said {
        Said::of(&Spelled { custom_type: None, text: message.to_string().into(), origin: None }).unwrap()
    }

    fn said_of_custom(custom_type: &str, origin: Option<serde_json::Value>) -> String {
        let data = json!({
            "type": "event_msg", "id": "7f-e2", "tokens": 12, "n": -1.5, "note": " one ", "nothing": null,
            "payload": { "message": "two words", "list": ["数据库", "naïve", "x\ty"] }
        });
        let (custom_type, origin) = (Some(custom_type.into()), origin.map(|origin| origin.to_string().into()));
        Said::of(&Spelled { custom_type, text: data.to_string().into(), origin }).unwrap().text
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
