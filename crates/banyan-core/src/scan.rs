//! Finding the way through JSON text without parsing it: where a value ends, which string stands where.
//!
//! Nothing here checks that the text is JSON. It is used on lines whose checksum holds, on text that was parsed
//! before, and, best effort, on damaged lines.

use std::ops::Range;

use banyan_model::quote_or_escape;

/// A place in JSON text, moving forward only.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn at(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos }
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// The next byte that is not white space, not consumed.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.pos) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.pos += 1;
        }
        None
    }

    /// Consumes `wanted` if it comes next.
    pub(crate) fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.pos += 1)
    }

    /// Consumes a string and gives the range between its quotes.
    pub(crate) fn string(&mut self) -> Option<Range<usize>> {
        self.take(b'"')?;
        let start = self.pos;
        let end = string_end(self.bytes, start)?;
        self.pos = end + 1;
        Some(start..end)
    }

    /// Consumes any value and gives its range.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.pos;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.container()?,
            _ => self.scalar(),
        }
        (self.pos > start).then_some(start..self.pos)
    }

    fn container(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.pos)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.pos += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn scalar(&mut self) {
        let rest = &self.bytes[self.pos..];
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        self.pos += rest.iter().position(ends).unwrap_or(rest.len());
    }
}

/// Where the string that begins at `start` (after its quote) has its closing quote.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut pos = start;
    loop {
        pos += quote_or_escape(bytes.get(pos..)?)?;
        if bytes[pos] == b'"' {
            return Some(pos);
        }
        pos += 2;
    }
}

/// One step from a JSON value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Index(usize),
    /// The range of the key, between its quotes.
    Key(Range<usize>),
}

/// Calls `visit` for every string that is a value (not a key), in order, with the steps that lead to it.
pub(crate) fn each_string_value(json: &str, mut visit: impl FnMut(&[Step], Range<usize>)) {
    let bytes = json.as_bytes();
    let mut steps: Vec<Step> = Vec::new();
    let mut expects_key = false;
    let mut pos = 0;
    while let Some(byte) = bytes.get(pos) {
        match byte {
            b'{' => {
                steps.push(Step::Key(pos..pos));
                expects_key = true;
            }
            b'[' => {
                steps.push(Step::Index(0));
                expects_key = false;
            }
            b'}' | b']' => {
                steps.pop();
                expects_key = false;
            }
            b':' => expects_key = false,
            b',' => match steps.last_mut() {
                Some(Step::Index(index)) => *index += 1,
                Some(Step::Key(_)) => expects_key = true,
                None => {}
            },
            b'"' => {
                let Some(end) = string_end(bytes, pos + 1) else { return };
                let text = pos + 1..end;
                pos = end;
                match steps.last_mut() {
                    Some(Step::Key(key)) if expects_key => *key = text,
                    _ => visit(&steps, text),
                }
            }
            _ => {}
        }
        pos += 1;
    }
}

/// The JSON pointer (RFC 6901) that the steps make.
pub(crate) fn pointer(json: &str, steps: &[Step]) -> String {
    let mut pointer = String::new();
    for step in steps {
        pointer.push('/');
        match step {
            Step::Index(index) => pointer.push_str(&index.to_string()),
            Step::Key(key) => {
                let key = unescape(&json[key.clone()]).unwrap_or_default();
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
        }
    }
    pointer
}

/// What a JSON string says, from the text between its quotes.
pub(crate) fn unescape(between_quotes: &str) -> Option<String> {
    if !between_quotes.contains('\\') {
        return Some(between_quotes.to_owned());
    }
    serde_json::from_str(&format!("\"{between_quotes}\"")).ok()
}
