//! What a text is found by: its words, and the parts that identifiers are made of.
//!
//! A *run* is a stretch of letters, digits and `_`. It is cut into *parts* at each `_` and where a capital letter begins a
//! new word, so `readFile_now` has the parts `read`, `file` and `now`. Each part takes one place, so that a path or a
//! qualified name is a row of parts in consecutive places. A run of several parts also stands *whole* in the place of its
//! first part. Scripts that are written without blanks have one part for each character. Everything is in lower case.

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case.
    pub text: String,
    /// Its place among the parts of the text.
    pub place: usize,
    /// Where it starts in the text, in bytes.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Whether it is a part, or a run of several parts.
    pub kind: Kind,
}

/// How a word came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It takes a place of its own.
    Part,
    /// It is a whole run of several parts, in the place of the first.
    Whole,
}

/// A longer run is known by its beginning, and has no parts.
const LONGEST: usize = 128;
/// A run of more parts is taken to be no words at all, for example base64, and stays whole.
const MOST_PARTS: usize = 16;

/// The words of a text, one after another.
pub struct Words<'t> {
    text: &'t str,
    at: usize,
    place: usize,
    /// What is still to be given of the last run: its end, and where its parts are.
    parts: Vec<(usize, usize)>,
    given: usize,
}

impl<'t> Words<'t> {
    /// The words of this text.
    pub fn of(text: &'t str) -> Self {
        Self { text, at: 0, place: 0, parts: Vec::new(), given: 0 }
    }

    /// Puts the next word into `word`, whose memory is used again. False when there is none.
    pub fn next_into(&mut self, word: &mut Word) -> bool {
        loop {
            if let Some((from, to)) = self.parts.get(self.given).copied() {
                self.given += 1;
                self.put(word, from, to, Kind::Part);
                self.place += 1;
                return true;
            }
            if let Some((from, to)) = self.next_plain() {
                word.text.clear();
                word.text.push_str(self.text.get(from..to).unwrap_or_default());
                (word.place, word.from, word.to, word.kind) = (self.place, from, to, Kind::Part);
                self.place += 1;
                return true;
            }
            let Some((from, to)) = self.next_run() else { return false };
            if self.parts.len() > 1 {
                self.put(word, from, to, Kind::Whole);
                return true;
            }
        }
    }

    /// The next run, if it is a plain one, as most are: small letters and digits of ASCII, which have nothing to cut or to
    /// change. Goes to the next run otherwise.
    fn next_plain(&mut self) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(self.at..)?;
        let skipped = rest.iter().position(|byte| CLASSES[usize::from(*byte)] != Class::Between);
        self.at += skipped.unwrap_or(rest.len());
        let run = bytes.get(self.at..)?;
        let len = run.iter().position(|byte| CLASSES[usize::from(*byte)] != Class::Plain).unwrap_or(run.len());
        let ends = run.get(len).is_none_or(|byte| CLASSES[usize::from(*byte)] == Class::Between);
        if len == 0 || len > LONGEST || !ends {
            return None;
        }
        let from = self.at;
        self.at += len;
        Some((from, self.at))
    }

    /// Finds the next run and its parts. What it says is where the run is, without `_` around it.
    fn next_run(&mut self) -> Option<(usize, usize)> {
        self.parts.clear();
        self.given = 0;
        let (start, end) = self.run_of_ascii().or_else(|| self.run_of_characters())?;
        self.at = end;
        let run = self.text.get(start..end)?;
        let trimmed = run.trim_matches('_');
        let from = start + (run.len() - run.trim_start_matches('_').len());
        let to = from + trimmed.len();
        if trimmed.len() > LONGEST {
            self.parts.push((from, from + trimmed.floor_char_boundary(LONGEST)));
            return Some((from, to));
        }
        cut(trimmed, from, &mut self.parts);
        if self.parts.len() > MOST_PARTS {
            self.parts.clear();
            self.parts.push((from, to));
        }
        Some((from, to))
    }

    /// Where the run is that begins here, if all of it is ASCII.
    fn run_of_ascii(&self) -> Option<(usize, usize)> {
        let run = self.text.as_bytes().get(self.at..)?;
        let class = |at: usize| run.get(at).map_or(Class::Between, |byte| CLASSES[usize::from(*byte)]);
        let len = (0..).find(|at| matches!(class(*at), Class::Between | Class::Wide))?;
        (len > 0 && class(len) == Class::Between).then_some((self.at, self.at + len))
    }

    /// Where the next run is, whatever it is made of.
    fn run_of_characters(&self) -> Option<(usize, usize)> {
        let rest = self.text.get(self.at..)?;
        let start = self.at + rest.find(is_word)?;
        let run = self.text.get(start..)?;
        let first = run.chars().next()?;
        if stands_alone(first) {
            return Some((start, start + first.len_utf8()));
        }
        let len = run.find(|c: char| !is_word(c) || stands_alone(c)).unwrap_or(run.len());
        Some((start, start + len))
    }

    fn put(&self, word: &mut Word, from: usize, to: usize, kind: Kind) {
        word.text.clear();
        let text = self.text.get(from..to).unwrap_or_default();
        if text.is_ascii() {
            word.text.push_str(text);
            word.text.make_ascii_lowercase();
        } else {
            word.text.extend(text.chars().flat_map(char::to_lowercase));
        }
        (word.place, word.from, word.to, word.kind) = (self.place, from, to, kind);
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        let mut word = Word { text: String::new(), place: 0, from: 0, to: 0, kind: Kind::Part };
        self.next_into(&mut word).then_some(word)
    }
}

/// What a byte says about the character that it begins or belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It belongs to no run.
    Between,
    /// A small letter or a digit.
    Plain,
    /// A capital letter or `_`.
    Other,
    /// The character has to be looked at.
    Wide,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Wide; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => Class::Plain,
            b'A'..=b'Z' | b'_' => Class::Other,
            _ => Class::Between,
        };
        byte += 1;
    }
    classes
};

/// Whether a character belongs to a run.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether a character is of a script that is written without blanks between words.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF // Thai, Lao, Burmese, Khmer
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x30FF | 0x3100..=0x312F | 0x31A0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F
        | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF)
}

/// What a character is to a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Line,
    Capital,
    Small,
    Other,
}

/// Cuts a run at `_`, and before a capital letter that begins a word.
fn cut(run: &str, offset: usize, parts: &mut Vec<(usize, usize)>) {
    if run.is_ascii() {
        let sort = |byte: u8| match byte {
            b'_' => Sort::Line,
            b'A'..=b'Z' => Sort::Capital,
            b'a'..=b'z' => Sort::Small,
            _ => Sort::Other,
        };
        return cut_at(run.bytes().map(sort).enumerate(), run.len(), offset, parts);
    }
    let sort = |c: char| match c {
        '_' => Sort::Line,
        c if c.is_uppercase() => Sort::Capital,
        c if c.is_lowercase() => Sort::Small,
        _ => Sort::Other,
    };
    cut_at(run.char_indices().map(|(at, c)| (at, sort(c))), run.len(), offset, parts);
}

fn cut_at(
    characters: impl Iterator<Item = (usize, Sort)>,
    len: usize,
    offset: usize,
    parts: &mut Vec<(usize, usize)>,
) {
    let mut start = 0;
    let mut end_part = |start: usize, end: usize| {
        if end > start {
            parts.push((offset + start, offset + end));
        }
    };
    let mut before = Sort::Line;
    let mut characters = characters.peekable();
    while let Some((at, sort)) = characters.next() {
        let begins = sort == Sort::Capital
            && match before {
                Sort::Line => false,
                Sort::Capital => characters.peek().is_some_and(|(_, next)| *next == Sort::Small),
                Sort::Small | Sort::Other => true,
            };
        if sort == Sort::Line || begins {
            end_part(start, at);
            start = if begins { at } else { at + 1 };
        }
        before = sort;
    }
    end_part(start, len);
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
