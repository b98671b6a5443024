//! Lines are read one at a time; entries come out as soon as they are whole.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use banyan_model::{AttachmentMeta, EntryId, SessionEntry, SessionId, SessionMeta};

use super::report::Report;
use super::take::Taker;

/// A line that is longer is set aside, unread.
const LONGEST_LINE: usize = 256 << 20;

/// What a log says about its session, once it was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The session.
    pub meta: SessionMeta,
    /// The entry that its active path ends in.
    pub active_leaf: Option<EntryId>,
    /// The entries, each after the one that it follows; empty when they were taken one by one.
    pub entries: Vec<SessionEntry>,
    /// Attachments that the session has where it comes from.
    pub attachments: Vec<AttachmentMeta>,
    /// What was made up, and what was set aside.
    pub report: Report,
}

/// Reads a log. Holds one line, one message, and the ids of the entries that it gave.
pub struct Reader<R> {
    input: R,
    longest: usize,
    taker: Taker,
    ready: VecDeque<SessionEntry>,
    line: u64,
    at_end: bool,
}

/// Reads a log to its end.
pub fn read(input: impl BufRead) -> io::Result<Log> {
    let mut reader = Reader::new(input);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok(Log { entries, ..reader.finish() })
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of a log.
    pub fn new(input: R) -> Self {
        Self::with_longest_line(input, LONGEST_LINE)
    }

    /// The same with another bound on the length of a line, in bytes.
    pub fn with_longest_line(input: R, longest: usize) -> Self {
        Self { input, longest, taker: Taker::default(), ready: VecDeque::new(), line: 0, at_end: false }
    }

    /// The next entry; none at the end of the log. An error is one of the input: broken lines are none.
    pub fn next_entry(&mut self) -> io::Result<Option<SessionEntry>> {
        let mut line = Vec::new();
        while self.ready.is_empty() && !self.at_end {
            line.clear();
            match self.read_line(&mut line)? {
                Length::None => {
                    self.at_end = true;
                    self.taker.end();
                }
                Length::Whole => {
                    self.line += 1;
                    let text = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| self.line == 1).unwrap_or(&line);
                    self.taker.line(self.line, text.trim_ascii());
                }
                Length::TooLong(bytes) => {
                    self.line += 1;
                    self.taker.too_long(self.line, bytes, self.longest);
                }
            }
            self.ready.extend(self.taker.given());
        }
        Ok(self.ready.pop_front())
    }

    /// The session that the log is of, once a line has said it.
    pub fn session_id(&self) -> Option<SessionId> {
        self.taker.session_id().map(SessionId::from)
    }

    /// What the log says about its session. Entries that were not taken are not read.
    pub fn finish(self) -> Log {
        self.taker.finish()
    }

    /// Reads up to the next end of line, which is left out, and not more than a line may have.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<Length> {
        let most = self.longest as u64 + 1;
        let mut length = Read::take(&mut self.input, most).read_until(b'\n', line)? as u64;
        let nothing = length == 0;
        if line.last() == Some(&b'\n') {
            line.pop();
            length -= 1;
        } else if length == most {
            let skipped = self.input.skip_until(b'\n')? as u64;
            // Whether the last of them is the end of the line is not told; it is, unless the log ends here.
            length += skipped.saturating_sub(1);
        }
        Ok(self.measured(length, nothing))
    }

    fn measured(&self, length: u64, nothing: bool) -> Length {
        match nothing {
            true => Length::None,
            false if length > self.longest as u64 => Length::TooLong(length),
            false => Length::Whole,
        }
    }
}

enum Length {
    None,
    Whole,
    TooLong(u64),
}
