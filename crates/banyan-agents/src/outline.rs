//! Where the values of a JSON text are, found in one look at it.
//!
//! Readers ask for the few fields that they know, level by level. Parsing what is between the levels again each time would be
//! most of what reading costs.

use std::borrow::Cow;
use std::ops::Range;

use banyan_model::Json;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Own;

/// What nests deeper, or has so many digits, is looked at more closely before it is kept.
const PLAIN_DEPTH: usize = 100;
const PLAIN_DIGITS: usize = 300;

/// A JSON text and where its values are.
pub(crate) struct Outline<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    /// Whether it is as we write JSON ourselves: no blanks between tokens, nothing that a reader could stumble over.
    plain: bool,
}

/// A value or a key. What a list or an object holds comes right after it.
struct Node {
    from: u32,
    to: u32,
    /// The first node that is not inside it.
    after: u32,
    /// Whether it is a string with escapes.
    escaped: bool,
}

/// A value in a text.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    of: &'a Outline<'a>,
    at: usize,
}

impl<'t> Outline<'t> {
    /// Looks a text over. Says why if it is no object.
    pub(crate) fn of(text: &'t str) -> Result<Self, String> {
        match Self::of_any(text) {
            Some(outline) if text[outline.nodes[0].range()].starts_with('{') => Ok(outline),
            Some(_) => Err("not an object".to_owned()),
            None => {
                Err(serde_json::from_str::<IgnoredAny>(text).err().map_or_else(String::new, |why| why.to_string()))
            }
        }
    }

    /// The same for whatever value it is. None if it is not JSON.
    pub(crate) fn of_any(text: &'t str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let nodes = Vec::with_capacity((text.len() / 12).clamp(4, 4096));
        let mut look = Look { bytes: text.as_bytes(), at: 0, nodes, open: Vec::new(), plain: true };
        look.over()?;
        Some(Self { text, nodes: look.nodes, plain: look.plain })
    }

    /// The value that the text is.
    pub(crate) fn root(&self) -> Found<'_> {
        Found { of: self, at: 0 }
    }
}

impl<'a> Found<'a> {
    fn node(self) -> &'a Node {
        &self.of.nodes[self.at]
    }

    /// Where it stands in the text.
    pub(crate) fn place(self) -> Range<usize> {
        self.node().range()
    }

    /// How it is spelled.
    pub(crate) fn spelled(self) -> &'a str {
        &self.of.text[self.place()]
    }

    /// The text that all of this is in.
    pub(crate) fn whole(self) -> &'a str {
        self.of.text
    }

    /// Whether that text is as we write JSON ourselves, so that any value in it can be kept as it is spelled.
    pub(crate) fn is_plain(self) -> bool {
        self.of.plain
    }

    /// The text that it is; none if it is something else.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let between = self.spelled().strip_prefix('"')?.strip_suffix('"')?;
        if self.node().escaped { self.read().map(Cow::Owned) } else { Some(Cow::Borrowed(between)) }
    }

    /// What a list holds; nothing if it is none.
    pub(crate) fn items(self) -> impl Iterator<Item = Found<'a>> {
        let mut inside = self.inside('[');
        std::iter::from_fn(move || {
            let item = Found { of: self.of, at: inside.start };
            (!inside.is_empty()).then(|| inside.start = item.node().after as usize)?;
            Some(item)
        })
    }

    /// What an object holds; nothing if it is none.
    pub(crate) fn fields(self) -> impl Iterator<Item = (Cow<'a, str>, Found<'a>)> {
        let mut inside = self.inside('{');
        std::iter::from_fn(move || {
            let [key, value] = [0, 1].map(|after| Found { of: self.of, at: inside.start + after });
            (!inside.is_empty()).then(|| inside.start = value.node().after as usize)?;
            Some((key.text().unwrap_or_default(), value))
        })
    }

    /// The nodes inside it; none if it begins otherwise.
    fn inside(self, opening: char) -> Range<usize> {
        let end = if self.spelled().starts_with(opening) { self.node().after as usize } else { 0 };
        self.at + 1..end
    }

    /// What an object holds by a name.
    pub(crate) fn get(self, name: &str) -> Option<Found<'a>> {
        self.fields().filter(|(key, _)| key == name).map(|(_, value)| value).last()
    }

    /// The same as a type of the caller's choice; none if it does not fit.
    pub(crate) fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.spelled()).ok()
    }

    /// To be carried on as it is spelled. None if nobody could read it again.
    pub(crate) fn json(self) -> Option<Json> {
        if self.of.plain { Some(Json::from_written(self.spelled())) } else { Json::vouched(self.spelled()).ok() }
    }
}

impl Node {
    fn range(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Something that a field can be looked for as. What it is not counts as missing: agents change their formats, and the rest of
/// a record is worth more than one field.
pub(crate) trait Sought<'a>: Sized {
    fn sought(value: Found<'a>) -> Option<Self>;
}

impl<'a> Sought<'a> for Found<'a> {
    fn sought(value: Found<'a>) -> Option<Self> {
        Some(value).filter(|value| value.spelled() != "null")
    }
}

impl<'a> Sought<'a> for Cow<'a, str> {
    fn sought(value: Found<'a>) -> Option<Self> {
        value.text()
    }
}

impl Sought<'_> for bool {
    fn sought(value: Found<'_>) -> Option<Self> {
        value.spelled().parse().ok()
    }
}

impl Sought<'_> for u64 {
    fn sought(value: Found<'_>) -> Option<Self> {
        value.spelled().parse().ok()
    }
}

impl Sought<'_> for Own {
    fn sought(value: Found<'_>) -> Option<Self> {
        value.read()
    }
}

/// A struct of the fields that somebody looks for in an object, each with its type and its name there. All are missing if the
/// value is no object.
macro_rules! sought {
    ($(#[$about:meta])* $seen:vis struct $name:ident<$life:lifetime> {
        $($(#[$said:meta])* $shown:vis $field:ident: $kind:ty = $key:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Default)]
        $seen struct $name<$life> {
            $($(#[$said])* $shown $field: Option<$kind>,)*
        }

        impl<$life> $name<$life> {
            $seen fn of(value: Option<$crate::outline::Found<$life>>) -> Self {
                let mut found = Self::default();
                for (key, value) in value.into_iter().flat_map($crate::outline::Found::fields) {
                    match key.as_ref() {
                        $($key => found.$field = $crate::outline::Sought::sought(value),)*
                        _ => {}
                    }
                }
                found
            }
        }
    };
}
pub(crate) use sought;

/// One look at a text.
struct Look<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The lists and objects that are not closed yet.
    open: Vec<u32>,
    plain: bool,
}

impl Look<'_> {
    fn over(&mut self) -> Option<()> {
        loop {
            let opened = self.value()?;
            if opened {
                continue;
            }
            if self.close()? {
                return Some(());
            }
        }
    }

    /// Takes a value, or the beginning of one that holds others, up to where the first of those begins. Says whether it is that.
    fn value(&mut self) -> Option<bool> {
        let next = self.next()?;
        let from = self.at;
        match next {
            b'"' => self.string()?,
            opening @ (b'{' | b'[') => {
                self.open.push(self.nodes.len() as u32);
                self.node(from, false);
                self.plain &= self.open.len() <= PLAIN_DEPTH;
                self.at += 1;
                let closing = opening + 2;
                if self.next()? != closing {
                    if opening == b'{' {
                        self.key()?;
                    }
                    return Some(true);
                }
            }
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        Some(false)
    }

    /// Goes on after a value, up to where the next one begins. Says whether that was all.
    fn close(&mut self) -> Option<bool> {
        while let Some(open) = self.open.last().copied() {
            let opening = self.bytes[self.nodes[open as usize].from as usize];
            let next = self.next()?;
            self.at += 1;
            if next == b',' {
                self.next()?;
                if opening == b'{' {
                    self.key()?;
                }
                return Some(false);
            }
            if next != opening + 2 {
                return None;
            }
            let after = self.nodes.len() as u32;
            let node = &mut self.nodes[open as usize];
            (node.to, node.after) = (self.at as u32, after);
            self.open.pop();
        }
        self.blanks();
        (self.at == self.bytes.len()).then_some(true)
    }

    /// The next byte that is no blank.
    fn next(&mut self) -> Option<u8> {
        match self.bytes.get(self.at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => {
                self.blanks();
                self.bytes.get(self.at).copied()
            }
            next => next.copied(),
        }
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.plain = false;
            self.at += 1;
        }
    }

    /// A node that ends where the look is.
    fn node(&mut self, from: usize, escaped: bool) {
        let after = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { from: from as u32, to: self.at as u32, after, escaped });
    }

    fn key(&mut self) -> Option<()> {
        if self.next()? != b'"' {
            return None;
        }
        self.string()?;
        if self.next()? != b':' {
            return None;
        }
        self.at += 1;
        self.next().map(|_| ())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let from = self.at;
        self.at += self.bytes[from..].starts_with(word).then_some(word.len())?;
        self.node(from, false);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let from = self.at;
        let byte = |look: &Self| look.bytes.get(look.at).copied().unwrap_or_default();
        if byte(self) == b'-' {
            self.at += 1;
        }
        if byte(self) == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if byte(self) == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(byte(self), b'e' | b'E') {
            self.at += 1;
            self.plain = false;
            if matches!(byte(self), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        self.plain &= self.at - from < PLAIN_DIGITS;
        self.node(from, false);
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        self.at += digits;
        (digits > 0).then_some(())
    }

    fn string(&mut self) -> Option<()> {
        let from = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += first_special(self.bytes.get(self.at..)?)?;
            match self.bytes[self.at] {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return None,
            }
        }
        self.at += 1;
        self.node(from, escaped);
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        self.at += match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                // It may be half of a pair.
                self.plain &= !matches!(digits[0], b'd' | b'D');
                6
            }
            _ => return None,
        };
        Some(())
    }
}

/// Where the first byte is that is not just a part of a string: a quote, a backslash or one that must not be there. Eight at a
/// time, because most strings are short.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const fn every(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A bit in each byte that is less than a small number, the lowest of which is certain.
    const fn below(word: u64, least: u8) -> u64 {
        word.wrapping_sub(every(least)) & !word & every(0x80)
    }
    let (eights, rest) = bytes.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let word = u64::from_le_bytes(*eight);
        let found = below(word, b' ') | below(word ^ every(b'"'), 1) | below(word ^ every(b'\\'), 1);
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    rest.iter().position(special).map(|at| eights.len() * 8 + at)
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
