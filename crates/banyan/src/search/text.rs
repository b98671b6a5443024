//! What an entry says, as it is searched.

use std::fmt;

use banyan_core::record;
use banyan_model::{AgentMessage, ContentBlock, Role};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
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
            Some(custom_type) if record::is_kept_record(custom_type, entry.origin.as_deref()) => {}
            Some(custom_type) => {
                said.put(custom_type);
                values(&entry.text, &mut said)?;
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
                    if values(call.arguments.get(), self).is_err() {
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

/// Puts the keys and values of JSON. Texts are taken as they are, not as JSON spells them.
fn values(json: &str, said: &mut Said) -> Result<(), serde_json::Error> {
    Values(said).deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// Takes what a value says while it is read, without making a value of it first.
struct Values<'s>(&'s mut Said);

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.put(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.put(&number.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.0.put(&number.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.put(&Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default());
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(Values(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_key_seed(Values(&mut *self.0))?.is_some() {
            fields.next_value_seed(Values(&mut *self.0))?;
        }
        Ok(())
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
    fn an_agents_own_record_says_nothing() {
        assert_eq!(said_of_custom("codex.event_msg", Some(json!({"codex": 12}))), "");
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
