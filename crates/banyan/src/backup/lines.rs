//! Record lines as a backup sees them: which belong to a commit or a time, and whether they are sound.

use banyan_core::Born;
use banyan_core::record::{self, Base, Head, HeadKind, Record, SalvagedWhat, StoredRecord};
use banyan_model::{CommitNo, SessionId};

/// A point in the history: everything up to a commit and up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The last commit that belongs to it.
    pub commit: CommitNo,
    /// The last millisecond that belongs to it.
    pub time_ms: i64,
}

impl Cut {
    /// Everything.
    pub const NONE: Self = Self { commit: CommitNo(u64::MAX), time_ms: i64::MAX };

    /// Everything up to a commit.
    pub fn at_commit(commit: CommitNo) -> Self {
        Self { commit, ..Self::NONE }
    }

    /// Everything up to a time, in milliseconds since 1970.
    pub fn at_time(time_ms: i64) -> Self {
        Self { time_ms, ..Self::NONE }
    }

    fn has(&self, commit: CommitNo, time_ms: i64) -> bool {
        commit <= self.commit && time_ms <= self.time_ms
    }
}

/// What a line is worth to a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It belongs to the cut as a whole.
    Whole,
    /// Only its first additions belong to the cut. This is the line with those; no later line belongs to it.
    Shortened(Vec<u8>),
    /// Neither it nor any later line belongs to the cut.
    After,
}

/// Reads the lines of one session in order.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    /// The number that the next line must have, once one was seen.
    next_seq: Option<u64>,
    /// The last commit that was seen.
    pub(crate) commit: CommitNo,
    /// Content that the lines refer to.
    pub(crate) blobs: Vec<String>,
}

impl LineReader {
    /// A reader that begins with the first line of a session.
    pub(crate) fn from_start() -> Self {
        Self { next_seq: Some(0), ..Self::default() }
    }

    /// Reads a line with its line feed. Returns what it is worth and what is wrong with it.
    pub(crate) fn read(&mut self, line: &[u8], cut: Cut) -> (Line, Option<String>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return (Line::Whole, None);
        }
        let head = match Head::parse(line) {
            Ok(head) => head,
            Err(fault) => {
                self.next_seq = self.next_seq.map(|seq| seq + 1);
                return (Line::Whole, Some(fault.to_string()));
            }
        };
        let Some(envelope) = head.envelope else {
            self.next_seq = self.next_seq.map(|seq| seq + 1);
            self.blobs.extend(head.blobs.into_iter().map(|blob| blob.hash));
            return (Line::Whole, None);
        };
        if !cut.has(envelope.commit, envelope.time_ms) {
            return (Line::After, None);
        }
        let found = envelope.seq.0;
        let fault = self.next_seq.filter(|expected| *expected != found).map(|expected| {
            if found > expected {
                format!("records {expected} to {} before it are missing", found - 1)
            } else {
                format!("record {found} again, where record {expected} follows")
            }
        });
        self.next_seq = Some(found + 1);
        self.blobs.extend(head.blobs.into_iter().map(|blob| blob.hash));
        match head.kind {
            HeadKind::Attached(attached) => self.blobs.push(attached.blob),
            HeadKind::Grew(grew) if !cut.has(grew.last_commit, grew.last_time_ms) => {
                let shortened = shorten(line, cut).map_or(Line::After, Line::Shortened);
                self.commit = self.commit.max(envelope.commit);
                return (shortened, fault);
            }
            HeadKind::Grew(grew) => self.commit = self.commit.max(grew.last_commit),
            _ => {}
        }
        self.commit = self.commit.max(envelope.commit);
        (Line::Whole, fault)
    }
}

/// A line that grew, with the additions that belong to a cut.
fn shorten(line: &[u8], cut: Cut) -> Option<Vec<u8>> {
    let stored = record::parse_full(line).ok()?;
    let (Some(envelope), StoredRecord::Own(Record::Grew(mut grew))) = (stored.envelope, stored.record) else {
        return None;
    };
    let kept = grew.adds.iter().take_while(|add| {
        let commit = CommitNo(envelope.commit.0.saturating_add(add.commits_since));
        cut.has(commit, envelope.time_ms.saturating_add(add.ms_since))
    });
    let kept = kept.count();
    grew.adds.truncate(kept);
    if grew.adds.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(line.len());
    record::encode(&Record::Grew(grew), envelope.seq, envelope.time_ms, &mut out);
    record::seal(&mut out, 0, envelope.commit);
    Some(out)
}

/// Which incarnation a first line begins, and what it inherits from.
pub(crate) fn beginning(first_line: &[u8], id: &SessionId) -> (Born, Option<Base>) {
    match Head::parse(first_line) {
        Ok(Head { kind: HeadKind::Created(created), .. }) => (created.born, created.base),
        Ok(Head { kind: HeadKind::Begun(begun), .. }) => (begun.born, None),
        Ok(_) => (Born::unsaid(id), None),
        Err(fault) => match fault.salvage.map(|salvaged| salvaged.what) {
            Some(SalvagedWhat::Created { born, base, .. }) => (born.unwrap_or_else(|| Born::unsaid(id)), base),
            _ => (Born::unsaid(id), None),
        },
    }
}

/// What a line is recognised by.
pub(crate) fn digest(line: &[u8]) -> String {
    let hash = blake3::hash(line).to_hex();
    hash.as_str().get(..32).unwrap_or_default().to_owned()
}
