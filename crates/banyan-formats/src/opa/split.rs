//! `history.json`, piece by piece: whoever reads it holds one message at a time, however long the history is.

use std::io::Read;
use std::ops::Range;

use super::error::{Error, Why};
use super::limits::DEPTH;
use super::manifest::safe_display;

const CHUNK: usize = 64 << 10;
/// How many bytes of fields besides the messages are kept.
const FIELDS: usize = 1 << 20;

/// A piece of the document, as JSON text that is not yet known to be well formed inside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A field of the document.
    Field(String, &'a str),
    /// A message.
    Message(&'a str),
}

/// A history that is read from a stream.
pub(crate) struct Document<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    state: State,
    keys: Vec<String>,
    fields: usize,
    message_size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Within the object; whether a field came before.
    Object(bool),
    /// Within the messages; whether one came before.
    Messages(bool),
    End,
}

impl<R: Read> Document<R> {
    pub(crate) fn new(input: R, message_size: usize) -> Self {
        let (buffer, keys) = (Vec::new(), Vec::new());
        Self { input, buffer, at: 0, state: State::Start, keys, fields: 0, message_size }
    }

    /// The next piece; none at the end. Nothing but blanks may follow the end.
    pub(crate) fn next(&mut self) -> Result<Option<Piece<'_>>, Error> {
        loop {
            let byte = self.peek()?;
            match (self.state, byte) {
                (State::Start, Some(0xef)) => self.skip_mark()?,
                (State::Start, Some(b'{')) => self.step(State::Object(false)),
                (State::Start, _) => return Err(malformed("it is not a JSON object")),
                (State::Object(_), Some(b'}')) => self.step(State::End),
                (State::Object(true), Some(b',')) => {
                    self.at += 1;
                    if self.peek()? != Some(b'"') {
                        return Err(malformed("a comma is not followed by a field"));
                    }
                    if let Some((key, value)) = self.field()? {
                        return Ok(Some(Piece::Field(key, self.text(value)?)));
                    }
                }
                (State::Object(false), Some(b'"')) => {
                    if let Some((key, value)) = self.field()? {
                        return Ok(Some(Piece::Field(key, self.text(value)?)));
                    }
                }
                (State::Messages(_), Some(b']')) => self.step(State::Object(true)),
                (State::Messages(true), Some(b',')) => {
                    self.at += 1;
                    return self.message().map(Some);
                }
                (State::Messages(false), Some(_)) => return self.message().map(Some),
                (State::End, None) if self.keys.iter().any(|key| key == "messages") => return Ok(None),
                (State::End, None) => {
                    return Err(Error::refused(Why::MissingPart, "the history has no `messages`"));
                }
                (State::End, Some(_)) => return Err(malformed("something follows its end")),
                (_, None) => return Err(malformed("it ends too early")),
                (_, Some(_)) => return Err(malformed("a comma or a bracket is missing")),
            }
        }
    }

    fn step(&mut self, state: State) {
        self.at += 1;
        self.state = state;
    }

    /// Skips the mark that some editors put before UTF-8.
    fn skip_mark(&mut self) -> Result<(), Error> {
        while self.buffer.len() < self.at + 3 && self.fill()?.is_some() {}
        if !self.buffer[self.at..].starts_with(b"\xef\xbb\xbf") {
            return Err(malformed("it is not a JSON object"));
        }
        self.at += 3;
        Ok(())
    }

    /// A field that is not the messages; at the messages the state says so instead.
    fn field(&mut self) -> Result<Option<(String, Range<usize>)>, Error> {
        let key = self.value(FIELDS)?;
        let key: String =
            serde_json::from_str(self.text(key)?).map_err(|_| malformed("the name of a field is not a string"))?;
        if self.peek()? != Some(b':') {
            return Err(malformed("a field has no value"));
        }
        self.at += 1;
        let first = self.peek()?;
        if self.keys.contains(&key) {
            let detail = format!("the history has the field `{}` twice", safe_display(&key));
            return Err(Error::refused(Why::Duplicate, detail));
        }
        self.keys.push(key.clone());
        if key == "messages" {
            if first != Some(b'[') {
                return Err(malformed("its `messages` are not a list"));
            }
            self.step(State::Messages(false));
            return Ok(None);
        }
        let value = self.value(FIELDS)?;
        self.fields += key.len() + value.len();
        if self.fields > FIELDS {
            return Err(Error::refused(Why::TooLarge, "the history has too much besides its messages"));
        }
        self.state = State::Object(true);
        Ok(Some((key, value)))
    }

    fn message(&mut self) -> Result<Piece<'_>, Error> {
        self.peek()?;
        let value = self.value(self.message_size)?;
        if value.is_empty() {
            return Err(malformed("a message is missing between commas"));
        }
        self.state = State::Messages(true);
        Ok(Piece::Message(self.text(value)?))
    }

    fn text(&self, range: Range<usize>) -> Result<&str, Error> {
        std::str::from_utf8(&self.buffer[range]).map_err(|_| malformed("it is not UTF-8"))
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.buffer.get(self.at).copied() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(byte) => return Ok(Some(byte)),
                None if self.fill()?.is_none() => return Ok(None),
                None => {}
            }
        }
    }

    /// Passes over one value, and says where it is.
    fn value(&mut self, limit: usize) -> Result<Range<usize>, Error> {
        let mut scan = Scan::default();
        let mut seen = self.at;
        loop {
            if let Some(length) = scan.end(&self.buffer[seen..])? {
                let value = self.at..seen + length;
                self.at = value.end;
                return Ok(value);
            }
            seen = self.buffer.len();
            if seen - self.at > limit {
                let detail = format!("a message or a field of the history has more than {limit} bytes");
                return Err(Error::refused(Why::TooLarge, detail));
            }
            match self.fill()? {
                Some(dropped) => seen -= dropped,
                None => return Err(malformed("it ends too early")),
            }
        }
    }

    /// Reads more, and says how many bytes at the beginning of the buffer were dropped; none at the end.
    fn fill(&mut self) -> Result<Option<usize>, Error> {
        let dropped = self.at;
        self.buffer.drain(..dropped);
        self.at = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK, 0);
        let read = self.input.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(dropped)),
            Err(error) => Err(Error::of_entry("session history", error)),
        }
    }
}

/// Looks for the end of one JSON value, over as many buffers as it takes.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    in_word: bool,
}

impl Scan {
    /// How many of these bytes still belong to the value; none when it goes on after them.
    fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let mut at = 0;
        while at < bytes.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) else { return Ok(None) };
                at += found + 1;
                if bytes[at - 1] == b'\\' {
                    self.escaped = true;
                } else {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Ok(Some(at));
                    }
                }
                continue;
            }
            match bytes[at] {
                b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    return Ok(Some(at));
                }
                b'"' if self.in_word => return Ok(Some(at)),
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth > DEPTH {
                        let detail = format!("the history nests deeper than {DEPTH} levels");
                        return Err(Error::refused(Why::TooLarge, detail));
                    }
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(Some(at + 1));
                    }
                }
                _ if self.depth == 0 => self.in_word = true,
                _ => {}
            }
            at += 1;
        }
        Ok(None)
    }
}

fn malformed(what: &str) -> Error {
    Error::refused(Why::Malformed, format!("the history is not JSON of its kind: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &[u8]) -> Result<Vec<String>, Error> {
        struct OneByOne<'a>(&'a [u8]);
        impl Read for OneByOne<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let most = into.len().min(1);
                self.0.read(&mut into[..most])
            }
        }
        let read = |input: &mut dyn Read| {
            let mut document = Document::new(input, 100);
            let mut pieces = Vec::new();
            while let Some(piece) = document.next()? {
                pieces.push(match piece {
                    Piece::Field(key, value) => format!("{key}={value}"),
                    Piece::Message(text) => text.to_owned(),
                });
            }
            Ok(pieces)
        };
        let whole = read(&mut &*text);
        let slow = read(&mut OneByOne(text));
        match (&whole, &slow) {
            (Ok(whole), Ok(slow)) => assert_eq!(whole, slow),
            (Err(_), Err(_)) => {}
            _ => panic!("{whole:?} {slow:?}"),
        }
        whole
    }

    #[test]
    fn given_a_history_when_it_is_split_then_its_fields_and_messages_come_in_order() {
        let text = br#" {"a": "x\"}]" , "messages" : [ {"b":[1,{"c":"]"}]}, "s" ,3, null], "z":{"y":[]} } "#;
        assert_eq!(
            pieces(text).unwrap(),
            [r#"a="x\"}]""#, r#"{"b":[1,{"c":"]"}]}"#, r#""s""#, "3", "null", r#"z={"y":[]}"#]
        );
        assert!(pieces(b"\xef\xbb\xbf{\"messages\":[]}").unwrap().is_empty());
    }

    #[test]
    fn given_what_is_no_history_when_it_is_split_then_it_is_refused() {
        let deep = format!("{{\"messages\":[{}{}]}}", "[".repeat(101), "]".repeat(101));
        let long = format!("{{\"messages\":[\"{}\"]}}", "x".repeat(200_000));
        for text in [
            "",
            "[]",
            "{",
            "{}",
            "{\"messages\":{}}",
            "{\"messages\":[}",
            "{\"messages\":[1 2]}",
            "{\"messages\":[1,]}",
            "{\"messages\":[,1]}",
            "{\"messages\":[]}x",
            "{\"messages\":[],\"messages\":[]}",
            "{\"a\":1,\"a\":2,\"messages\":[]}",
            "{\"messages\":[],}",
            "{\"a\" 1}",
            "{a:1}",
            "\u{feff}x",
            &deep,
            &long,
        ] {
            assert!(pieces(text.as_bytes()).is_err(), "{text}");
        }
        assert!(pieces(b"{\"messages\":[\"\xff\"]}").is_err());
    }
}
