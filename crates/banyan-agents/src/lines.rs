//! Files of lines, one JSON object each, as agents leave them: torn by crashes, glued by the next run, half written right now.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use memchr::{memchr, memmem};
use serde::{Deserialize, Serialize};

use crate::{Note, Problem, Sink, packed};

/// A longer line is not read: no agent writes one, and memory is bounded.
const LONGEST: usize = 64 << 20;
/// So many bytes before a place tell whether it is still the same file.
const FINGERPRINT: u64 = 64;
/// Progress is told after so many bytes.
const PROGRESS: u64 = 1 << 18;
/// So many beginnings of an object are tried in a line that is not one.
const TRIES: usize = 4096;

/// A place between two lines of a file, which can be found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// Bytes before it.
    pub offset: u64,
    /// Lines before it.
    pub lines: u64,
    /// A hash of the bytes right before it.
    pub before: u64,
}

/// A line, or the record that was found in one.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Which line, from 1.
    pub number: u64,
    /// Where the line begins in the file.
    pub offset: u64,
    /// What it says, without the line's end.
    pub text: Cow<'a, str>,
    /// Whether it is the rest of a line that is torn. It may be a record, or a part of one: whoever takes it looks closely.
    pub glued: bool,
}

/// Whether a line was a record.
#[derive(Debug)]
pub enum Taken {
    /// It was, and it was taken.
    Yes,
    /// It was not; why. Nothing was done.
    NotARecord(String),
}

impl Taken {
    /// The rest of a torn line does not look like a whole record.
    pub(crate) fn is_a_part() -> Self {
        Self::NotARecord("a part of a record".to_owned())
    }
}

/// A file of lines that is read from some place on.
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// After the last line that was taken.
    place: Between,
    /// Whether the file is another one than it was, so that the reading began again.
    anew: bool,
    /// No line that begins here or later is read.
    end: u64,
}

impl Lines {
    /// Opens a file at a place where an earlier reading stopped, or at its beginning if it is another file by now.
    pub fn open(path: &Path, from: Between) -> Result<Self, Problem> {
        let file = packed::open(path).map_err(|error| Problem::io(path, error))?;
        let mut lines = Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 18, file),
            place: from,
            anew: false,
            end: u64::MAX,
        };
        let before = lines.fingerprint(from.offset).map_err(|error| Problem::io(path, error))?;
        if before != Some(from.before) && from.offset > 0 {
            lines.place = Between::default();
            lines.anew = true;
        }
        let offset = lines.place.offset;
        lines.reader.seek(SeekFrom::Start(offset)).map_err(|error| Problem::io(path, error))?;
        Ok(lines)
    }

    /// Whether the file is another one than it was, so that the reading began again.
    pub fn anew(&self) -> bool {
        self.anew
    }

    /// Leaves out whatever begins at this offset or later.
    #[must_use]
    pub fn until(mut self, end: u64) -> Self {
        self.end = end;
        self
    }

    /// A place in the file that an earlier line said it begins at, to be found again later.
    pub(crate) fn between(path: &Path, offset: u64, lines: u64) -> Result<Between, Problem> {
        let mut opened = Self::open(path, Between::default())?;
        let before = opened.fingerprint(offset).map_err(|error| Problem::io(path, error))?;
        Ok(Between { offset, lines, before: before.unwrap_or_default() })
    }

    /// Gives every line to `take`, and tells the sink of those that are no records. A line that is torn and has another record
    /// glued to it gives that record. Gives the place to go on from: a last line that is not finished is left for the next time.
    pub fn each(
        mut self,
        sink: &mut dyn Sink,
        mut take: impl FnMut(&Line<'_>, &mut dyn Sink) -> Result<Taken, Problem>,
    ) -> Result<Between, Problem> {
        let (mut bytes, mut untold) = (Vec::new(), 0);
        while self.place.offset < self.end {
            bytes.clear();
            let read = read_line(&mut self.reader, &mut bytes).map_err(|error| Problem::io(&self.path, error))?;
            if read.bytes == 0 {
                break;
            }
            let number = self.place.lines + 1;
            if read.cut {
                let what = format!("the line has {} bytes, which is more than is read", read.bytes);
                sink.note(note(number, what, true));
            } else if !self.take_line(&bytes, read.ended, sink, &mut take)? {
                break;
            }
            self.place.offset += read.bytes;
            // The end of a line that has none yet is still a part of it.
            self.place.lines = if read.ended { number } else { number - 1 };
            untold += read.bytes;
            if untold >= PROGRESS {
                sink.progress(std::mem::take(&mut untold));
            }
        }
        sink.progress(untold);
        let offset = self.place.offset;
        let before = self.fingerprint(offset).map_err(|error| Problem::io(&self.path, error))?;
        self.place.before = before.unwrap_or_default();
        Ok(self.place)
    }

    /// Takes a line. Says no if it is the last one and not finished.
    fn take_line(
        &self,
        bytes: &[u8],
        ended: bool,
        sink: &mut dyn Sink,
        take: &mut impl FnMut(&Line<'_>, &mut dyn Sink) -> Result<Taken, Problem>,
    ) -> Result<bool, Problem> {
        let bytes = if self.place.offset == 0 { without_bom(bytes) } else { bytes };
        if bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0) {
            return Ok(true);
        }
        let number = self.place.lines + 1;
        // Looking whether all of it is UTF-8 is much faster than mending it.
        let mut text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        let mended = matches!(text, Cow::Owned(_));
        if let Some(whole) = without_half_pairs(&text) {
            sink.note(note(number, "half of a surrogate pair; it was replaced".to_owned(), true));
            text = Cow::Owned(whole);
        }
        let line = Line { number, offset: self.place.offset, text, glued: false };
        let why = match take(&line, sink)? {
            Taken::Yes if mended => {
                sink.note(note(number, "some bytes are no UTF-8; they were replaced".to_owned(), true));
                return Ok(true);
            }
            Taken::Yes => return Ok(true),
            Taken::NotARecord(why) => why,
        };
        if !ended {
            // Whatever is in it, the record that it will be is not there yet.
            sink.note(note(number, "the last line is not finished; it is read when it is".to_owned(), false));
            return Ok(false);
        }
        for at in memmem::find_iter(bytes, b"{\"").filter(|at| *at > 0).take(TRIES) {
            let text = String::from_utf8_lossy(&bytes[at..]);
            let glued = Line { number, offset: self.place.offset + at as u64, text, glued: true };
            if matches!(take(&glued, sink)?, Taken::Yes) {
                sink.note(note(number, format!("the line is torn after {at} bytes; what follows was read"), true));
                return Ok(true);
            }
        }
        sink.note(note(number, format!("no record: {why}"), true));
        Ok(true)
    }

    /// A hash of the bytes before an offset; none if the file is shorter.
    fn fingerprint(&mut self, offset: u64) -> std::io::Result<Option<u64>> {
        let file = self.reader.get_mut();
        if file.metadata()?.len() < offset {
            return Ok(None);
        }
        let from = offset.saturating_sub(FINGERPRINT);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        Read::take(file, offset - from).read_to_end(&mut bytes)?;
        let hash = blake3::hash(&bytes);
        Ok(hash.as_bytes().first_chunk::<8>().map(|first| u64::from_le_bytes(*first)))
    }
}

/// What a file says, without the mark of UTF-8 that some editors put before it.
pub(crate) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The text with every escape that is half of a surrogate pair replaced. Agents cut strings in the middle of a pair, and no
/// parser takes what is left. None if there is none.
fn without_half_pairs(text: &str) -> Option<String> {
    static ESCAPE: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(b"\\u"));
    let bytes = text.as_bytes();
    if !ESCAPE.find_iter(bytes).any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D'))) {
        return None;
    }
    let unit = |at: usize| {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut whole, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(next) = memchr(b'\\', &bytes[at..]) {
        at += next;
        let pair = (unit(at), unit(at + 6));
        at += match pair {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str(&text[kept..at]);
                whole.push_str("\\ufffd");
                kept = at + 6;
                6
            }
            _ => 2,
        };
        at = at.min(bytes.len());
    }
    if kept == 0 {
        return None;
    }
    whole.push_str(&text[kept..]);
    Some(whole)
}

fn note(number: u64, what: String, lost: bool) -> Note {
    Note { place: format!("line {number}"), what, lost }
}

struct ReadLine {
    /// How many bytes it has in the file, with its end.
    bytes: u64,
    /// Whether its end is there.
    ended: bool,
    /// Whether it is too long, and was not kept.
    cut: bool,
}

/// Reads up to the end of a line, without keeping one that is too long.
fn read_line(reader: &mut impl BufRead, into: &mut Vec<u8>) -> std::io::Result<ReadLine> {
    let mut line = ReadLine { bytes: 0, ended: false, cut: false };
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(line);
        }
        let end = memchr(b'\n', available);
        let part = &available[..end.unwrap_or(available.len())];
        if into.len() + part.len() > LONGEST {
            line.cut = true;
            into.clear();
        }
        if !line.cut {
            into.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        line.bytes += used as u64;
        reader.consume(used);
        if end.is_some() {
            line.ended = true;
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_half_pairs;

    #[test]
    fn half_pairs_are_replaced_and_whole_ones_stay() {
        assert_eq!(without_half_pairs(r#"{"a":"\ud83c\udf33 \\ud83c"}"#), None);
        let halves = r#"{"a":"\ud83c, \uDF33\ud83c"}"#;
        assert_eq!(without_half_pairs(halves).as_deref(), Some(r#"{"a":"\ufffd, \ufffd\ufffd"}"#));
        assert_eq!(without_half_pairs(r"\ud8"), None);
    }
}
