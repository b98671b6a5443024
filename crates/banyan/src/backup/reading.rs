//! Reading one session for a backup: its lines up to the cut, from where the destination has none on.

use banyan_core::Born;
use banyan_log::{At, SessionLog};
use banyan_model::{Error, SessionId};

use super::frames::{self, Kind, Known, SessionEnd, SessionFrame};
use super::lines::{self, Cut, Line, LineReader};
use super::manifest::{SessionKind, SourceDamage};
use super::repository::PIECE;
use crate::store::Store;

/// A session that is being read.
pub(crate) struct Reading {
    frame: SessionFrame,
    /// The file, for people.
    file: String,
    lines: LineReader,
    hasher: blake3::Hasher,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    /// Where in the file `rest` begins.
    at: u64,
    /// Where the file ended when the reading began.
    end: u64,
    sent_frame: bool,
    done: bool,
    known: SessionEnd,
}

/// What of a session is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What the destination does not have.
    New,
    /// Everything.
    All,
}

/// Where the records of a session are.
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: SessionKind,
    pub(crate) id: &'a SessionId,
    /// The incarnation, where it is known already.
    pub(crate) born: Option<Born>,
}

impl Place<'_> {
    /// The file, relative to the data directory.
    pub(crate) fn file(&self) -> String {
        match self.kind {
            SessionKind::Live => format!("{}.jsonl", self.name),
            SessionKind::Base => format!(".banyan/bases/{}.jsonl", self.name),
        }
    }

    fn at(&self) -> At<'_> {
        match self.born {
            Some(born) => At::Incarnation(self.id, born),
            None => At::Live(self.id),
        }
    }
}

impl Reading {
    /// Begins to read a session. `None` if it has no records.
    /// With [`Scope::All`], what the destination has is read and checked as well, and not sent.
    pub(crate) fn begin(
        store: &Store,
        place: &Place<'_>,
        known: Option<&Known>,
        scope: Scope,
    ) -> Result<Option<Self>, Error> {
        let Some(end) = store.log.whole_length(place.at())? else { return Ok(None) };
        let first_line = store.log.first_line(place.at())?.unwrap_or_default();
        let (stated, base) = lines::beginning(&first_line, place.id);
        let born = place.born.unwrap_or(stated);
        let frame = SessionFrame {
            name: place.name.to_owned(),
            kind: place.kind,
            id: place.id.clone(),
            born,
            base: base.map(|base| base.born),
            from: 0,
            unchanged: false,
        };
        let mut reading = Self {
            frame,
            file: place.file(),
            lines: LineReader::from_start(),
            hasher: blake3::Hasher::new(),
            rest: Vec::new(),
            at: 0,
            end,
            sent_frame: false,
            done: false,
            known: SessionEnd::default(),
        };
        if let Some(known) = known {
            reading.go_on_from(store, known, &first_line)?;
        }
        if scope == Scope::All && !reading.done {
            reading.at = 0;
            reading.lines = LineReader::from_start();
        }
        Ok(Some(reading))
    }

    /// Finds out whether the session goes on where the destination's copy ends. If it is another session, all of it is read.
    fn go_on_from(&mut self, store: &Store, known: &Known, first_line: &[u8]) -> Result<(), Error> {
        let (tail_at, tail) = &known.tail;
        // Another beginning that is sound was put there on purpose.
        let is_replaced = lines::digest(first_line) != known.first && is_sound(first_line);
        let reason = if self.end < known.length {
            if is_replaced {
                return Ok(());
            }
            self.done = true;
            format!("has {} bytes and had {}; the backup keeps its copy", self.end, known.length)
        } else {
            let bytes = store.log.read(self.place(), *tail_at, (known.length - tail_at) as usize)?;
            if lines::digest(&bytes) == *tail {
                self.begin_at(known.length);
                return Ok(());
            }
            if is_replaced || is_sound(&bytes) {
                return Ok(());
            }
            "a record that the backup has is damaged; the backup keeps its copy".to_owned()
        };
        self.begin_at(known.length);
        self.damage(Some(*tail_at), reason);
        Ok(())
    }

    fn begin_at(&mut self, from: u64) {
        self.frame.from = from;
        self.at = from;
        self.lines = LineReader::default();
    }

    fn place(&self) -> At<'_> {
        At::Incarnation(&self.frame.id, self.frame.born)
    }

    /// The incarnation that is read.
    pub(crate) fn born(&self) -> Born {
        self.frame.born
    }

    /// Notes damage.
    pub(crate) fn damage(&mut self, offset: Option<u64>, reason: String) {
        self.known.damage.push(SourceDamage { file: self.file.clone(), offset, reason, copied: false });
    }

    /// Whether the records are still there. Those of an import that was given up are not.
    fn is_there(&self, store: &Store) -> Result<bool, Error> {
        let first = store.log.first_line(At::Live(&self.frame.id))?.unwrap_or_default();
        Ok(store.log.is_retained(self.frame.born) || lines::beginning(&first, &self.frame.id).0 == self.frame.born)
    }

    /// Reads a piece and adds its frames. False at the end, when the last frame was added.
    pub(crate) fn step(&mut self, store: &Store, cut: Cut, out: &mut Vec<u8>) -> Result<bool, Error> {
        let read_to = self.at + self.rest.len() as u64;
        if !self.done && read_to < self.end {
            let want = PIECE.max(self.rest.len()).min(usize::try_from(self.end - read_to).unwrap_or(usize::MAX));
            let bytes = store.log.read(self.place(), read_to, want)?;
            if bytes.is_empty() {
                self.done = true;
                if self.is_there(store)? {
                    self.damage(Some(read_to), format!("has {read_to} bytes and had {}", self.end));
                }
            }
            self.rest.extend_from_slice(&bytes);
            self.take_lines(cut, out);
            return Ok(true);
        }
        if !self.done && !self.rest.is_empty() {
            self.take_last(cut, out);
        }
        self.finish(out);
        Ok(false)
    }

    fn take_lines(&mut self, cut: Cut, out: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.rest);
        let mut kept = 0;
        let mut last_line = None;
        let mut shortened = None;
        for end in memchr::memchr_iter(b'\n', &rest) {
            let line = &rest[kept..=end];
            let offset = self.at + kept as u64;
            let is_new = offset >= self.frame.from;
            match self.lines.read(line, cut) {
                (Line::Whole, fault) => {
                    if let Some(reason) = fault {
                        let (file, offset) = (self.file.clone(), Some(offset));
                        self.known.damage.push(SourceDamage { file, offset, reason, copied: is_new });
                    }
                    if offset == 0 && is_new {
                        self.known.first = Some(lines::digest(line));
                    }
                    last_line = is_new.then_some(kept..end + 1);
                    kept = end + 1;
                }
                (Line::Shortened(line), _) => {
                    shortened = Some(line);
                    self.done = true;
                    break;
                }
                (Line::After, _) => {
                    self.done = true;
                    break;
                }
            }
        }
        if let Some(line) = last_line {
            let digest = lines::digest(rest.get(line.clone()).unwrap_or_default());
            self.known.tail = Some((self.at + line.start as u64, digest));
        }
        let known = usize::try_from(self.frame.from.saturating_sub(self.at)).unwrap_or(usize::MAX).min(kept);
        self.send(&rest[known..kept], out);
        self.at += kept as u64;
        if let Some(line) = shortened {
            self.known.provisional = line.len() as u64;
            self.send(&line, out);
        } else if !self.done {
            self.rest = rest;
            self.rest.drain(..kept);
        }
    }

    /// A last line without its line feed: whole, or never finished.
    fn take_last(&mut self, cut: Cut, out: &mut Vec<u8>) {
        self.rest.push(b'\n');
        let mut probe = LineReader::default();
        if probe.read(&self.rest, cut).1.is_none() {
            let line = std::mem::take(&mut self.rest);
            // The file has no line feed there, so the next backup sends the line again.
            if let (Line::Whole, _) = self.lines.read(&line, cut) {
                self.known.provisional = line.len() as u64;
                self.send(&line, out);
            }
        } else {
            let bytes = self.rest.len() - 1;
            self.damage(Some(self.at), format!("a last line of {bytes} bytes was never finished"));
        }
    }

    fn send(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.send_frame(out);
        self.hasher.update(bytes);
        bytes.chunks(PIECE).for_each(|piece| frames::push(Kind::Data, piece, out));
    }

    fn send_frame(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.sent_frame, true) {
            frames::push_json(Kind::Session, &self.frame, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let has_nothing = self.frame.from == 0 && !self.sent_frame && self.known.damage.is_empty();
        if has_nothing {
            // It began after the cut.
            return;
        }
        self.send_frame(out);
        self.known.hash = self.hasher.finalize().to_hex().to_string();
        self.known.commit = self.lines.commit;
        self.lines.blobs.sort_unstable();
        self.lines.blobs.dedup();
        self.known.blobs = std::mem::take(&mut self.lines.blobs);
        frames::push_json(Kind::SessionEnd, &self.known, out);
    }

    /// Content that the records which were sent refer to.
    pub(crate) fn blobs(self) -> Vec<String> {
        self.known.blobs
    }
}

/// Whether these bytes are one whole line that can be read.
fn is_sound(line: &[u8]) -> bool {
    line.ends_with(b"\n") && LineReader::default().read(line, Cut::NONE).1.is_none()
}
