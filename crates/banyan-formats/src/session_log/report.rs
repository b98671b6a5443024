//! What a reader has to say about a log besides what it gives.

/// One remark about a place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line, counted from 1; none when it is about all of the log.
    pub line: Option<u64>,
    /// What it is.
    pub note: String,
}

/// What a reader made up, and what it could not place. Both are kept up to a bound and counted beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many lines the log has, empty ones left out.
    pub lines: u64,
    /// What the log did not say and had to be made up.
    pub invented: Vec<Note>,
    /// Lines that were set aside, and why: they cannot be read, or there is no place for what they say.
    pub aside: Vec<Note>,
    /// How many notes there were beyond those that are listed.
    pub more: u64,
}

/// So many notes of each sort are kept: a log of nothing but broken lines is not held in memory as notes.
const MOST: usize = 1000;

/// So much of a broken line is shown.
const SHOWN: usize = 60;

impl Report {
    pub(super) fn invented(&mut self, line: Option<u64>, note: impl Into<String>) {
        match self.invented.len() < MOST {
            true => self.invented.push(Note { line, note: note.into() }),
            false => self.more += 1,
        }
    }

    pub(super) fn aside(&mut self, line: u64, note: impl Into<String>) {
        match self.aside.len() < MOST {
            true => self.aside.push(Note { line: Some(line), note: note.into() }),
            false => self.more += 1,
        }
    }

    /// Sets a line aside that cannot be read, with its beginning, so that it can be found and mended.
    pub(super) fn unreadable(&mut self, line: u64, why: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN * 4)]);
        let shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.aside(line, format!("{why} ({} bytes, beginning with `{shown}`)", bytes.len()));
    }
}
